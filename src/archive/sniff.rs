//! What a file is, told from its first bytes.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use fs_err::File;

use super::stream::RECORD_START;

/// Enough for the first bytes of a gzip member with a long file name in its header.
const PROBE: usize = 8 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Warc,
    Empty,
    /// Starts like markup: a page, which no archive file is.
    Markup,
    Other(&'static str),
}

pub(super) fn sniff(path: &Path) -> io::Result<Kind> {
    let mut file = BufReader::with_capacity(PROBE, File::open(path)?);
    let start = file.fill_buf()?;
    Ok(match start {
        [] => Kind::Empty,
        [0x1f, 0x8b, ..] => {
            let mut first = Vec::new();
            // What cannot be decoded is not WARC: the bytes before the error decide.
            let decoded = MultiGzDecoder::new(file).take(64).read_to_end(&mut first);
            match first.trim_ascii_start() {
                text if text.starts_with(RECORD_START) => Kind::Warc,
                _ if decoded.is_err() => Kind::Other("its gzip data cannot be decoded"),
                _ => Kind::Other("it is gzip, but of something else"),
            }
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x5d, 0x2a, 0x4d, 0x18, ..] => {
            Kind::Other("it is compressed by zstd; hint: recompress it with gzip")
        }
        [b'P', b'K', 3, 4, ..] => Kind::Other("it is a zip file"),
        _ => match start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start() {
            text if text.starts_with(RECORD_START) => Kind::Warc,
            [b'<', ..] => Kind::Markup,
            _ => Kind::Other("it does not start with a record"),
        },
    })
}
