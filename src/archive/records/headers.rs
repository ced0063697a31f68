//! A block of header lines as WARC and HTTP write them: a first line, then `Name: value` lines, then a blank line.
//!
//! Lenient where archives differ: line feeds without carriage return, any case of names, continuation lines, a block
//! that ends without its blank line. Values are UTF-8 if they can be, else Latin-1. One block is reused for all
//! records of a file, and a lookup is a scan over its lines: a dozen lines need no index but where they end.

use std::io::{Read, Seek};

use super::stream::Stream;

/// Longer headers exist only in broken or hostile files.
const MAX_BLOCK: usize = 256 << 10;

#[derive(Default)]
pub(crate) struct Headers {
    block: Vec<u8>,
    /// Where its lines end. A block is asked for a dozen names.
    ends: Vec<usize>,
}

/// How reading a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// The block ended at its blank line, or at the limit.
    Whole,
    /// The stream stopped inside the block.
    Stopped,
    TooLong,
}

impl Headers {
    /// Reads a block of at most `limit` bytes behind `first`, the part already read. Says how it ended and how
    /// many bytes it took from the stream.
    pub(crate) fn read<R: Read + Seek>(&mut self, stream: &mut Stream<R>, first: &[u8], limit: u64) -> (Block, u64) {
        let read = self.read_block(stream, first, limit);
        self.find_ends();
        read
    }

    fn read_block<R: Read + Seek>(&mut self, stream: &mut Stream<R>, first: &[u8], limit: u64) -> (Block, u64) {
        self.block.clear();
        self.block.extend_from_slice(first);
        let mut taken = 0;
        loop {
            let line_start = self.block.len();
            let room = (limit - taken).min((MAX_BLOCK - line_start.min(MAX_BLOCK)) as u64);
            let ended = stream.read_line(&mut self.block, room);
            taken += (self.block.len() - line_start) as u64;
            if !ended {
                let block = match () {
                    () if taken == limit => Block::Whole,
                    () if stream.stop().is_some() => Block::Stopped,
                    () => Block::TooLong,
                };
                return (block, taken);
            }
            // Blank lines before the block are passed over.
            if self.block[line_start..].trim_ascii().is_empty() {
                if line_start == 0 {
                    self.block.clear();
                    continue;
                }
                return (Block::Whole, taken);
            }
        }
    }

    /// Takes the block at the start of `bytes`. Returns where it ends, or `None` if it does not end in them.
    pub(crate) fn parse(&mut self, bytes: &[u8]) -> Option<usize> {
        self.set(b"");
        let window = &bytes[..bytes.len().min(MAX_BLOCK)];
        let mut end = 0;
        for line in window.split_inclusive(|&byte| byte == b'\n') {
            end += line.len();
            if line.trim_ascii().is_empty() && line.ends_with(b"\n") {
                self.set(&bytes[..end]);
                return Some(end);
            }
        }
        None
    }

    /// Takes all of `bytes` for a block, though its blank line is missing.
    pub(crate) fn set(&mut self, bytes: &[u8]) {
        self.block.clear();
        self.block.extend_from_slice(&bytes[..bytes.len().min(MAX_BLOCK)]);
        self.find_ends();
    }

    fn find_ends(&mut self) {
        self.ends.clear();
        self.ends.extend(memchr::memchr_iter(b'\n', &self.block).map(|feed| feed + 1));
        if self.ends.last().is_none_or(|&end| end < self.block.len()) && !self.block.is_empty() {
            self.ends.push(self.block.len());
        }
    }

    /// Does every line but the first have a name, as those of a real header have?
    pub(crate) fn is_header(&self) -> bool {
        let named = |line: &[u8]| {
            let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
            let part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(byte);
            name.len() < line.len() && !name.is_empty() && name.iter().all(part)
        };
        let mut lines = self.lines().skip(1).filter(|line| !line.trim_ascii().is_empty()).peekable();
        lines.peek().is_some() && lines.all(|line| named(line) || matches!(line.first(), Some(b' ' | b'\t')))
    }

    pub(crate) fn first_line(&self) -> &[u8] {
        self.lines().next().unwrap_or_default().trim_ascii()
    }

    /// The number in `HTTP/1.1 200 OK`.
    pub(crate) fn status(&self) -> Option<u16> {
        let line = self.first_line().strip_prefix(b"HTTP/")?;
        let number = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).nth(1)?;
        std::str::from_utf8(number).ok()?.parse().ok()
    }

    /// The first value of that name, trimmed, with its continuation lines; `None` if it is absent or empty.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let mut lines = self.lines().skip(1).peekable();
        let first = lines.by_ref().find_map(|line| {
            let (start, rest) = line.split_at_checked(name.len())?;
            // Most lines have another name, and few of those have one of the same length.
            let ends = rest.first().is_some_and(|&byte| byte == b':' || byte.is_ascii_whitespace());
            let named = ends && start.eq_ignore_ascii_case(name.as_bytes());
            named.then(|| rest.trim_ascii_start().strip_prefix(b":")).flatten()
        })?;
        let mut value = decode(first.trim_ascii());
        while let Some(more) = lines.next_if(|line| matches!(line.first(), Some(b' ' | b'\t'))) {
            value.push(' ');
            value.push_str(&decode(more.trim_ascii()));
        }
        (!value.is_empty()).then_some(value)
    }

    /// The lines with their line ends.
    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.block[std::mem::replace(&mut start, end)..end])
    }
}

fn decode(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::archive::layouts::Warc;

    fn read(bytes: &[u8], limit: u64) -> (Headers, Block, u64) {
        let mut headers = Headers::default();
        let (block, taken) = headers.read(&mut Stream::new(Cursor::new(bytes.to_vec()), &Warc).unwrap(), b"", limit);
        (headers, block, taken)
    }

    #[test]
    fn a_block_is_read_up_to_its_blank_line() {
        let text =
            b"HTTP/1.1  404 Not Found\r\ncontent-TYPE: text/html;\r\n\tcharset=x\r\nA:b:c\nX: \xe9\r\nE:\r\n\r\nbody";
        let (headers, block, taken) = read(text, 1000);
        assert_eq!((block, taken), (Block::Whole, text.len() as u64 - 4));
        assert_eq!(headers.status(), Some(404));
        assert_eq!(headers.get("Content-Type").as_deref(), Some("text/html; charset=x"));
        assert_eq!(headers.get("a").as_deref(), Some("b:c"));
        assert_eq!(headers.get("x").as_deref(), Some("\u{e9}"));
        assert_eq!((headers.get("e"), headers.get("absent")), (None, None));
    }

    #[test]
    fn blocks_without_end() {
        let text = b"HTTP/1.0 200\nA: b";
        let (headers, block, taken) = read(text, text.len() as u64);
        assert_eq!((block, taken), (Block::Whole, text.len() as u64));
        assert_eq!((headers.status(), headers.get("A").as_deref()), (Some(200), Some("b")));
        assert_eq!(read(text, 100).1, Block::Stopped);
        assert_eq!(read(&vec![b'x'; MAX_BLOCK + 10], u64::MAX).1, Block::TooLong);
        assert_eq!(read(b"x: y\n".repeat(MAX_BLOCK).as_slice(), u64::MAX).1, Block::TooLong);
    }

    #[test]
    fn first_lines_that_are_no_status() {
        for text in
            ["HTTP/1.1\r\n\r\n", "HTTP/1.1 OK\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "\r\n", "HTTP/1.1 99999\r\n\r\n"]
        {
            assert_eq!(read(text.as_bytes(), 1000).0.status(), None, "{text}");
        }
    }
}
