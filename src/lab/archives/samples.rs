//! Small archives of every layout, as their writers write them: for tests and for fuzzing.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};

use crate::model::Rng;

/// A record; `fields` are header lines besides type and length.
pub fn record(kind: &str, fields: &[(&str, &str)], block: &[u8]) -> Vec<u8> {
    let mut head = format!("WARC/1.0\r\nWARC-Type: {kind}\r\n");
    for (name, value) in fields {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {}\r\n\r\n", block.len());
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

pub fn http(status: &str, fields: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status}\r\n");
    for (name, value) in fields {
        head += &format!("{name}: {value}\r\n");
    }
    [head.as_bytes(), b"\r\n", body].concat()
}

/// A response of status 200 that states its length.
pub fn response(url: &str, body: &[u8]) -> Vec<u8> {
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

/// A record of a WET file.
pub fn conversion(url: &str, text: &str) -> Vec<u8> {
    let fields = [("WARC-Target-URI", url), ("WARC-Date", "2024-03-01T12:00:00Z"), ("Content-Type", "text/plain")];
    record("conversion", &fields, text.as_bytes())
}

/// The record that an ARC file starts with.
pub fn arc_start() -> Vec<u8> {
    let block = "1 0 Alexa Internet\nURL IP-address Archive-date Content-type Archive-length\n\n";
    format!("filedesc://x.arc 0.0.0.0 20010301120000 text/plain {}\n{block}\n", block.len()).into_bytes()
}

pub fn arc_record(url: &str, block: &[u8]) -> Vec<u8> {
    let line = format!("{url} 1.2.3.4 20010301120000 text/html {}\n", block.len());
    [line.as_bytes(), block, b"\n"].concat()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("writing to memory does not fail")
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("writing to memory does not fail")
}

pub fn zstd_frame(bytes: &[u8], dictionary: &[u8]) -> Vec<u8> {
    let mut compressor = zstd::bulk::Compressor::with_dictionary(3, dictionary).expect("a dictionary of any bytes");
    compressor.include_checksum(true).expect("a known parameter");
    compressor.compress(bytes).expect("compressing in memory does not fail")
}

/// Records as a `.warc.zst` file: a frame for each, and before them one with the dictionary, if there is one.
pub fn zstd_file(records: &[Vec<u8>], dictionary: &[u8], packed: bool) -> Vec<u8> {
    let mut file = Vec::new();
    if !dictionary.is_empty() {
        let content = if packed { zstd_frame(dictionary, b"") } else { dictionary.to_vec() };
        file.extend_from_slice(b"\x5d\x2a\x4d\x18");
        file.extend_from_slice(&u32::try_from(content.len()).expect("a small dictionary").to_le_bytes());
        file.extend_from_slice(&content);
    }
    for record in records {
        file.extend_from_slice(&zstd_frame(record, dictionary));
    }
    file
}

/// An entry of a zip file.
#[derive(Clone, Debug, Default)]
pub struct Packed {
    pub name: String,
    /// The extra field of the local header.
    pub extra: Vec<u8>,
    pub body: Vec<u8>,
    pub deflated: bool,
    /// Sizes behind the data instead of before it.
    pub streamed: bool,
}

/// A zip file of these entries.
pub fn zip(entries: &[Packed]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let packed = if entry.deflated { deflate(&entry.body) } else { entry.body.clone() };
        let four = |n: usize| u32::try_from(n).expect("a small file").to_le_bytes();
        let two = |n: usize| u16::try_from(n).expect("a short name").to_le_bytes();
        let crc = rawzip::crc32(&entry.body).to_le_bytes();
        let sizes = [crc, four(packed.len()), four(entry.body.len())].concat();
        let flags = if entry.streamed { 8u16 } else { 0 }.to_le_bytes();
        let method = if entry.deflated { 8u16 } else { 0 }.to_le_bytes();
        let offset = four(file.len());
        let common = [[20, 0], flags, method, [0, 0], [0x61, 0x58]].concat();
        let local_sizes = if entry.streamed { vec![0; 12] } else { sizes.clone() };
        let lengths = [two(entry.name.len()), two(entry.extra.len())].concat();
        for part in [b"PK\x03\x04", &common[..], &local_sizes, &lengths, entry.name.as_bytes(), &entry.extra, &packed] {
            file.extend_from_slice(part);
        }
        if entry.streamed {
            file.extend_from_slice(b"PK\x07\x08");
            file.extend_from_slice(&sizes);
        }
        let lengths = [two(entry.name.len()), [0; 2], [0; 2], [0; 2], [0; 2]].concat();
        for part in [b"PK\x01\x02\x14\x00", &common[..], &sizes, &lengths, &[0; 4], &offset, entry.name.as_bytes()] {
            directory.extend_from_slice(part);
        }
    }
    let (count, start) = (entries.len(), file.len());
    file.extend_from_slice(&directory);
    file.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    let count = u16::try_from(count).expect("few entries").to_le_bytes();
    file.extend_from_slice(&[count, count].concat());
    file.extend_from_slice(&u32::try_from(directory.len()).expect("a small file").to_le_bytes());
    file.extend_from_slice(&u32::try_from(start).expect("a small file").to_le_bytes());
    file.extend_from_slice(&[0, 0]);
    file
}

/// An entry of HTTrack's cache; without `body` it is in the tree, at `save`.
pub fn cached(url: &str, status: &str, kind: &str, save: &str, body: Option<&[u8]>) -> Packed {
    let in_cache = u8::from(body.is_some());
    let (code, message) = status.split_once(' ').unwrap_or((status, ""));
    let mut extra = format!(
        "HTTP/1.1 {status}\r\nX-In-Cache: {in_cache}\r\nX-StatusCode: {code}\r\nX-StatusMessage: {message}\r\n\
         X-Size: {}\r\nContent-Type: {kind}\r\nX-Charset: utf-8\r\nLast-Modified: Fri, 01 Mar 2024 12:00:00 GMT\r\n\
         Etag: \"e\"\r\nX-Addr: a.org\r\nX-Fil: /\r\n",
        body.map_or(0, <[u8]>::len)
    );
    if !save.is_empty() {
        extra += &format!("X-Save: {save}\r\n");
    }
    let body = body.unwrap_or_default().to_vec();
    Packed { name: url.to_owned(), extra: extra.into_bytes(), body, deflated: true, streamed: false }
}

/// Text that does not repeat itself, so that compression leaves something to cut.
#[must_use]
pub fn noise(seed: usize, length: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed as u64);
    std::iter::repeat_with(|| *rng.choose(b"abcdefghijklmnopqrstuvwxyz \n<>/\"=")).take(length).collect()
}
