//! Snapshots as WARC 1.1 files, the way crawlers really write them.
//!
//! Beside plain responses there are: `warcinfo`, `request` and `metadata` records; bodies with `Content-Encoding: gzip`
//! and `Transfer-Encoding: chunked`; `revisit` records for unchanged payloads (also of another URL, for moved pages)
//! and for 304 answers; 304 answers as plain responses; on some nights URIs in angle brackets, as wget writes them. The
//! writer remembers two digests and a URL per page to know what is unchanged: about 200 bytes a page.
//!
//! A payload digest covers the entity body as sent, after undoing chunks and before undoing gzip.

use std::collections::BTreeMap;
use std::io::{self, Write};

use sha1::{Digest as _, Sha1};

use crate::lab::synth::clock::http_date;
use crate::lab::synth::gzip::Gzip;
use crate::lab::synth::site::{SynthPage, reason};
use crate::model::Timestamp;
use crate::model::rng::{Rng, key};

const WIRE: u64 = 41;
const RECORD: u64 = 42;
const NIGHT: u64 = 43;

/// What the last full response of a page was.
#[derive(Debug)]
struct Seen {
    /// Digest of the body without content encoding.
    content: [u8; 20],
    /// Digest of the body as sent.
    payload: [u8; 20],
    url: Box<str>,
    date: Timestamp,
}

/// Writes one file after the other, and remembers pages across files and snapshots.
pub(crate) struct WarcWriter {
    file: Box<dyn Write>,
    gzip: Option<Gzip>,
    /// Compresses bodies that have a content encoding.
    body_gzip: Gzip,
    seed: u64,
    night: u32,
    /// The last response of each page, by the page's identity.
    last: BTreeMap<u64, Seen>,
    records: u64,
    written: u64,
    /// Header of the record and its block; kept, so that large blocks do not scatter the heap.
    buffer: Vec<u8>,
    block: Vec<u8>,
}

impl WarcWriter {
    pub(crate) fn new(gzip: bool, seed: u64) -> Self {
        Self {
            file: Box::new(io::sink()),
            gzip: gzip.then(Gzip::new),
            body_gzip: Gzip::new(),
            seed,
            night: 0,
            last: BTreeMap::new(),
            records: 0,
            written: 0,
            buffer: Vec::new(),
            block: Vec::new(),
        }
    }

    pub(crate) fn start(&mut self, file: Box<dyn Write>, name: &str, night: u32, time: Timestamp) -> io::Result<()> {
        (self.file, self.night, self.written) = (file, night, 0);
        let fields = b"software: ratoon synth\r\nformat: WARC File Format 1.1\r\nrobots: ignore\r\n";
        let header = [("WARC-Filename", name), ("Content-Type", "application/warc-fields")];
        self.record("warcinfo", None, time, &header, fields)
    }

    /// Bytes written to the current file.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let mut file = std::mem::replace(&mut self.file, Box::new(io::sink()));
        file.flush()
    }

    pub(crate) fn page(&mut self, page: &SynthPage) -> io::Result<()> {
        let mut of_page = Rng::keyed(&[self.seed, page.identity, WIRE]);
        let compressed = page.status == 200 && of_page.percent(20);
        let chunked = page.status == 200 && of_page.percent(15);
        let mut of_night = Rng::keyed(&[self.seed, page.identity, NIGHT, page.fetched_at.0.cast_unsigned()]);

        if of_night.percent(20) {
            self.request(page)?;
        }
        let content: [u8; 20] = Sha1::digest(&page.body).into();
        let unchanged = self.last.get(&page.identity).filter(|seen| page.status == 200 && seen.content == content);
        let validators = page.etag.is_some() || page.last_modified.is_some();
        match unchanged.map(|seen| (base32(&seen.payload), seen.url.clone(), seen.date)) {
            Some((payload, url, date)) if *url == *page.url && validators && of_night.percent(40) => {
                self.not_modified(page, &payload, date, of_night.percent(50))?;
            }
            Some((payload, url, date)) if of_night.percent(55) => {
                let head = Self::head(page, page.status, compressed, chunked, None);
                let date = date.to_string();
                let fields = [
                    ("WARC-Profile", "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"),
                    ("WARC-Refers-To-Target-URI", &*url),
                    ("WARC-Refers-To-Date", date.as_str()),
                    ("WARC-Payload-Digest", payload.as_str()),
                    ("Content-Type", "application/http; msgtype=response"),
                ];
                self.record("revisit", Some(&page.url), page.fetched_at, &fields, &head)?;
            }
            _ => {
                let payload = self.response(page, &content, compressed, chunked)?;
                if page.status == 200 {
                    let seen = Seen { content, payload, url: page.url.as_str().into(), date: page.fetched_at };
                    self.last.insert(page.identity, seen);
                }
            }
        }
        if of_night.percent(4) {
            let fields = b"fetchTimeMs: 137\r\n";
            let header = [("Content-Type", "application/warc-fields")];
            self.record("metadata", Some(&page.url), page.fetched_at, &header, fields)?;
        }
        Ok(())
    }

    /// A full response; returns its payload digest.
    fn response(
        &mut self,
        page: &SynthPage,
        content: &[u8; 20],
        compressed: bool,
        chunked: bool,
    ) -> io::Result<[u8; 20]> {
        let (body, payload) = if compressed {
            let packed = self.body_gzip.member(&[&page.body])?;
            (packed, Sha1::digest(packed).into())
        } else {
            (page.body.as_slice(), *content)
        };
        let mut block = std::mem::take(&mut self.block);
        block.clear();
        block.extend_from_slice(&Self::head(page, page.status, compressed, chunked, Some(body.len())));
        if chunked {
            for piece in body.chunks(1_400) {
                block.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                block.extend_from_slice(piece);
                block.extend_from_slice(b"\r\n");
            }
            block.extend_from_slice(b"0\r\n\r\n");
        } else {
            block.extend_from_slice(body);
        }
        let digest = base32(&payload);
        let fields = [("WARC-Payload-Digest", digest.as_str()), ("Content-Type", "application/http; msgtype=response")];
        self.record("response", Some(&page.url), page.fetched_at, &fields, &block)?;
        self.block = block;
        Ok(payload)
    }

    fn not_modified(&mut self, page: &SynthPage, payload: &str, date: Timestamp, revisit: bool) -> io::Result<()> {
        let head = Self::head(page, 304, false, false, None);
        if !revisit {
            let fields = [("Content-Type", "application/http; msgtype=response")];
            return self.record("response", Some(&page.url), page.fetched_at, &fields, &head);
        }
        let date = date.to_string();
        let fields = [
            ("WARC-Profile", "http://netpreserve.org/warc/1.1/revisit/server-not-modified"),
            ("WARC-Refers-To-Target-URI", page.url.as_str()),
            ("WARC-Refers-To-Date", date.as_str()),
            ("WARC-Payload-Digest", payload),
            ("Content-Type", "application/http; msgtype=response"),
        ];
        self.record("revisit", Some(&page.url), page.fetched_at, &fields, &head)
    }

    fn request(&mut self, page: &SynthPage) -> io::Result<()> {
        let rest = page.url.strip_prefix("http://").unwrap_or(&page.url);
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let path = if path.is_empty() { "/" } else { path };
        let block =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: ratoon-synth\r\nAccept-Encoding: gzip\r\n\r\n");
        let fields = [("Content-Type", "application/http; msgtype=request")];
        self.record("request", Some(&page.url), page.fetched_at, &fields, block.as_bytes())
    }

    /// HTTP status line and headers.
    fn head(page: &SynthPage, status: u16, compressed: bool, chunked: bool, length: Option<usize>) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
        let mut field = |name: &str, value: &str| {
            head.push_str(name);
            head.push_str(": ");
            head.push_str(value);
            head.push_str("\r\n");
        };
        field("Date", &http_date(page.fetched_at));
        field("Server", "synth/1");
        if let Some(location) = &page.location {
            field("Location", location);
        }
        if let Some(time) = page.last_modified {
            field("Last-Modified", &http_date(time));
        }
        if let Some(etag) = &page.etag {
            field("ETag", etag);
        }
        if status != 304 {
            field("Content-Type", &page.content_type);
            if compressed {
                field("Content-Encoding", "gzip");
            }
            match length {
                _ if chunked => field("Transfer-Encoding", "chunked"),
                Some(length) => field("Content-Length", &length.to_string()),
                None => {}
            }
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    fn record(
        &mut self,
        kind: &str,
        url: Option<&str>,
        date: Timestamp,
        fields: &[(&str, &str)],
        block: &[u8],
    ) -> io::Result<()> {
        self.records += 1;
        let id = key(&[self.seed, RECORD, self.records]);
        let id2 = key(&[id, RECORD]);
        self.buffer.clear();
        let brackets = self.night % 4 == 3;
        let mut line = |name: &str, value: &str| {
            for part in [name, ": ", value, "\r\n"] {
                self.buffer.extend_from_slice(part.as_bytes());
            }
        };
        line("WARC-Type", kind);
        line(
            "WARC-Record-ID",
            &format!(
                "<urn:uuid:{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}>",
                id >> 32,
                (id >> 16) & 0xffff,
                id & 0xfff,
                id2 >> 52,
                id2 & 0xffff_ffff_ffff
            ),
        );
        line("WARC-Date", &date.to_string());
        if let Some(url) = url {
            if brackets {
                line("WARC-Target-URI", &format!("<{url}>"));
            } else {
                line("WARC-Target-URI", url);
            }
        }
        for (name, value) in fields {
            line(name, value);
        }
        line("Content-Length", &block.len().to_string());
        let version = b"WARC/1.1\r\n";
        let parts: [&[u8]; 5] = [version, &self.buffer, b"\r\n", block, b"\r\n\r\n"];
        match &mut self.gzip {
            Some(gzip) => {
                let member = gzip.member(&parts)?;
                self.written += member.len() as u64;
                self.file.write_all(member)
            }
            None => {
                self.written += parts.iter().map(|part| part.len() as u64).sum::<u64>();
                parts.iter().try_for_each(|part| self.file.write_all(part))
            }
        }
    }
}

/// `sha1:` and the digest in base 32, as crawlers write it.
fn base32(hash: &[u8; 20]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut out = String::from("sha1:");
    // Five bytes are eight letters; twenty bytes need no padding.
    for five in hash.chunks_exact(5) {
        let bits = five.iter().fold(0u64, |acc, &byte| acc << 8 | u64::from(byte));
        for place in (0..8).rev() {
            out.push(char::from(LETTERS[(bits >> (5 * place) & 31) as usize]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_as_crawlers_do() {
        // SHA-1 of nothing, in base 32: seen in every WARC with an empty payload.
        assert_eq!(base32(&Sha1::digest(b"").into()), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
    }
}
