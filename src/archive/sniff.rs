//! What a file is, told from its first bytes.

use std::io::{self, Read, Seek};
use std::path::Path;

use fs_err::File;

use super::codec::Packing;
use super::headers::Headers;
use super::records::Format;
use super::starts::{Starts, WARC_START};
use super::stream::{Stop, Stream};

/// Read of every file.
const PROBE: u64 = 4 << 10;
/// Enough for the record that describes the file and the start of the next.
const DECODED: usize = 32 << 10;

/// A file whose first record is damaged is told by another one within so many bytes.
const REACH: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Records(Format),
    Zip,
    Empty,
    /// Starts like markup: a page, which no archive file is.
    Markup,
    Other(&'static str),
}

pub(super) fn sniff(path: &Path) -> io::Result<Kind> {
    sniff_bytes(File::open(path)?)
}

pub(super) fn sniff_bytes(mut bytes: impl Read + Seek) -> io::Result<Kind> {
    let mut first = Vec::new();
    // What comes before damage decides.
    let read = bytes.by_ref().take(PROBE).read_to_end(&mut first);
    if first.is_empty() {
        return read.map(|_| Kind::Empty);
    }
    if first.starts_with(b"PK\x03\x04") || first.starts_with(b"PK\x05\x06") {
        return Ok(Kind::Zip);
    }
    let packing = Packing::of(&first);
    let mut damaged = false;
    if packing.is_some() {
        bytes.rewind()?;
        first.clear();
        // A dictionary that cannot be used is damage.
        match Stream::new(bytes, Starts::Warc) {
            Ok(mut stream) => {
                collect(&mut stream, &mut first);
                // The bytes before the damage decide, or if there are none, those behind it.
                damaged = matches!(stream.stop(), Some(Stop::Corrupt(_) | Stop::CutMember | Stop::Failed(_)));
                if damaged
                    && first.is_empty()
                    && let Ok(Some(at)) = stream.find_member(1, REACH)
                {
                    stream.start_at(at, false)?;
                    collect(&mut stream, &mut first);
                }
            }
            Err(_) => damaged = true,
        }
    } else if first.starts_with(WARC_START) {
        let _ = bytes.take(DECODED as u64).read_to_end(&mut first);
    }
    let text = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&first).trim_ascii_start();
    Ok(match packing {
        _ if text.starts_with(WARC_START) => Kind::Records(warc_kind(text)),
        _ if text.starts_with(b"filedesc:") || Starts::Arc.member(text) => Kind::Records(Format::Arc),
        None if text.starts_with(b"<") => Kind::Markup,
        None => Kind::Other("it does not start with a record"),
        Some(Packing::Gzip) if damaged => Kind::Other("its gzip data cannot be decoded"),
        Some(Packing::Zstd) if damaged => Kind::Other("its zstd data cannot be decoded"),
        Some(Packing::Gzip) => Kind::Other("it is gzip, but of something else"),
        Some(Packing::Zstd) => Kind::Other("it is zstd, but of something else"),
    })
}

fn collect(stream: &mut Stream<impl Read + Seek>, first: &mut Vec<u8>) {
    while first.len() < DECODED && stream.fill() {
        first.extend_from_slice(stream.data());
        stream.consume(stream.data().len());
    }
}

/// A WARC file whose first record besides its description is a conversion is WET.
fn warc_kind(mut text: &[u8]) -> Format {
    let mut headers = Headers::default();
    loop {
        text = text.trim_ascii_start();
        let Some(end) = headers.parse(text).filter(|_| text.starts_with(WARC_START)) else {
            return Format::Warc;
        };
        let kind = headers.get("WARC-Type").unwrap_or_default().to_ascii_lowercase();
        match kind.as_str() {
            "conversion" => return Format::Wet,
            "warcinfo" => {}
            _ => return Format::Warc,
        }
        let length = headers.get("Content-Length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let Some(rest) = text.get(end..).and_then(|rest| rest.get(length..)) else {
            return Format::Warc;
        };
        text = rest;
    }
}
