//! Records as WARC writers write them, for tests.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

/// A record; `fields` are header lines besides type and length.
pub(super) fn record(kind: &str, fields: &[(&str, &str)], block: &[u8]) -> Vec<u8> {
    let mut bytes = format!("WARC/1.0\r\nWARC-Type: {kind}\r\n").into_bytes();
    for (name, value) in fields {
        write!(bytes, "{name}: {value}\r\n").unwrap();
    }
    write!(bytes, "Content-Length: {}\r\n\r\n", block.len()).unwrap();
    bytes.extend_from_slice(block);
    bytes.extend_from_slice(b"\r\n\r\n");
    bytes
}

pub(super) fn http(status: &str, fields: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status}\r\n").into_bytes();
    for (name, value) in fields {
        write!(bytes, "{name}: {value}\r\n").unwrap();
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

/// A response of status 200 that states its length.
pub(super) fn response(url: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len().to_string();
    let block = http("200 OK", &[("Content-Type", "text/html"), ("Content-Length", &length)], body);
    let fields = [
        ("WARC-Target-URI", url),
        ("WARC-Date", "2024-03-01T12:00:00Z"),
        ("WARC-Record-ID", "<urn:uuid:92283950-ef2f-4d72-b224-f54c6ec90bb0>"),
        ("Content-Type", "application/http; msgtype=response"),
    ];
    record("response", &fields, &block)
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Text that does not repeat itself, so that compression leaves something to cut.
pub(super) fn noise(seed: usize, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        b"abcdefghijklmnopqrstuvwxyz \n<>/\"="[state % 33]
    };
    std::iter::repeat_with(step).take(length).collect()
}
