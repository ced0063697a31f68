//! As much HTTP/1.1 as a client of models needs.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use super::answer::{Ending, Reply};

/// No client of ours has more.
const MOST_HEAD: usize = 16 << 10;

pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    headers: Vec<(String, String)>,
    /// Whole, though its last byte is still in the socket.
    pub(super) body: Vec<u8>,
}

impl Request {
    /// By a name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The next request of a connection; `None` when the client has closed it. The last byte of the body is looked at but left
/// in the socket.
pub(super) fn receive(mut connection: &TcpStream) -> io::Result<Option<Request>> {
    let Some(length) = head_length(connection)? else { return Ok(None) };
    let mut head = vec![0; length];
    connection.read_exact(&mut head)?;
    let head = String::from_utf8(head).map_err(io::Error::other)?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (first.next().unwrap_or_default().to_owned(), first.next().unwrap_or_default().to_owned());
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut request = Request { method, path, headers, body: Vec::new() };
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    if length > 0 {
        request.body = vec![0; length];
        connection.read_exact(&mut request.body[..length - 1])?;
        if connection.peek(&mut request.body[length - 1..])? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(request))
}

/// Waits for the first bytes of another request, and leaves them in the socket.
pub(super) fn await_next(connection: &TcpStream) -> io::Result<()> {
    connection.peek(&mut [0]).map(|_| ())
}

/// How long the head of the next request is, its blank line included.
fn head_length(connection: &TcpStream) -> io::Result<Option<usize>> {
    let mut seen = vec![0; MOST_HEAD];
    loop {
        let arrived = connection.peek(&mut seen)?;
        if arrived == 0 {
            return Ok(None);
        }
        if let Some(at) = seen[..arrived].windows(4).position(|window| window == b"\r\n\r\n") {
            return Ok(Some(at + 4));
        }
        if arrived == MOST_HEAD {
            return Err(io::Error::other("a head without an end"));
        }
        // The rest of the head is on its way.
        thread::sleep(Duration::from_millis(1));
    }
}

pub(super) fn send(mut connection: &TcpStream, reply: &Reply) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} {}\r\nContent-Type: application/json\r\n", reply.status, reason(reply.status));
    if let Some(after) = &reply.retry_after {
        head += &format!("Retry-After: {after}\r\n");
    }
    match reply.ending {
        Ending::Reset => Ok(()),
        Ending::Whole | Ending::Close | Ending::CloseOnNext => {
            head += &format!("Content-Length: {}\r\n\r\n", reply.body.len());
            connection.write_all(&[head.as_bytes(), reply.body.as_bytes()].concat())
        }
        Ending::Cut => {
            head += &format!("Content-Length: {}\r\n\r\n", reply.body.len());
            connection.write_all(&[head.as_bytes(), &reply.body.as_bytes()[..reply.body.len() / 2]].concat())
        }
        Ending::Chunks => {
            head += "Transfer-Encoding: chunked\r\n\r\n";
            connection.write_all(head.as_bytes())?;
            for chunk in reply.body.as_bytes().chunks(40) {
                connection.write_all(&[format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat())?;
            }
            connection.write_all(b"0\r\n\r\n")
        }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        429 => "Too Many Requests",
        400..500 => "Bad Request",
        _ => "Server Error",
    }
}
