//! What a file is, told from its first bytes.

use std::io::{self, Read, Seek};
use std::path::Path;

use fs_err::File;

use super::layouts::{Layout, Warc, format_of};
use super::records::Packing;
use super::records::format::Format;
use super::records::stream::{Stop, Stream};

/// Bytes that are read of every file.
const PROBE: u64 = 4 << 10;
/// Bytes that are decoded: enough for the record that describes the file and the start of the next.
const DECODED: usize = 32 << 10;

/// A file whose first record is damaged is told by another one within so many bytes.
const REACH: u64 = 1 << 20;

/// What a file is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FileKind {
    /// A sequence of records, as files of this layout are.
    Records(Layout, &'static dyn Format),
    Zip,
    Empty,
    /// Starts like markup: a page, which no archive file is.
    Markup,
    /// Why it is no file of records.
    Other(&'static str),
}

pub(crate) fn sniff(path: &Path) -> io::Result<FileKind> {
    sniff_bytes(File::open(path)?)
}

pub(crate) fn sniff_bytes(mut bytes: impl Read + Seek) -> io::Result<FileKind> {
    let mut first = Vec::new();
    // Where reading fails, the bytes before that decide.
    let read = bytes.by_ref().take(PROBE).read_to_end(&mut first);
    if first.is_empty() {
        return read.map(|_| FileKind::Empty);
    }
    if first.starts_with(b"PK\x03\x04") || first.starts_with(b"PK\x05\x06") {
        return Ok(FileKind::Zip);
    }
    let packing = Packing::of(&first);
    let mut damaged = false;
    if packing.is_some() {
        bytes.rewind()?;
        first.clear();
        // A dictionary that cannot be used is damage.
        match Stream::new(bytes, &Warc) {
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
    } else if Warc.starts_member(&first) {
        // More than the probe, for the second record tells WET from other WARC files.
        let _ = bytes.take(DECODED as u64).read_to_end(&mut first);
    }
    let text = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&first).trim_ascii_start();
    if let Some((layout, format)) = format_of(text) {
        return Ok(FileKind::Records(layout, format));
    }
    Ok(match packing {
        None if text.starts_with(b"<") => FileKind::Markup,
        None => FileKind::Other("it does not start with a record"),
        Some(Packing::Gzip) if damaged => FileKind::Other("its gzip data cannot be decoded"),
        Some(Packing::Zstd) if damaged => FileKind::Other("its zstd data cannot be decoded"),
        Some(Packing::Gzip) => FileKind::Other("it is gzip, but of something else"),
        Some(Packing::Zstd) => FileKind::Other("it is zstd, but of something else"),
    })
}

fn collect(stream: &mut Stream<impl Read + Seek>, first: &mut Vec<u8>) {
    while first.len() < DECODED && stream.fill() {
        first.extend_from_slice(stream.data());
        stream.consume(stream.data().len());
    }
}
