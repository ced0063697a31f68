//! Bodies as archives keep them: transfer and content encodings undone.
//!
//! Headers may be wrong: an archive may have undone an encoding and kept its header, or may never have had one. A body
//! whose first bytes are not what the header says is therefore kept as it is, and [`Decoded::mislabelled`] says so. A
//! body that begins as stated and then breaks off is damaged, which is an error: half a page must not look like a change. Only
//! the last, empty chunk may be missing. (Brotli's decoder does not tell a cut body from a damaged one.)
//!
//! Sizes are bounded: by `max`, and by the size of the body as it was sent, over all its encodings together ([`bounds`]),
//! so that a small record cannot fill the memory.

use std::io::{ErrorKind, Read};

use thiserror::Error;

use super::gzip;
use crate::bounds;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    pub bytes: Vec<u8>,
    /// A header named an encoding that the body does not have, or that is unknown.
    pub mislabelled: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    #[error("truncated {0} body")]
    Truncated(&'static str),
    #[error("damaged {0} body")]
    Damaged(&'static str),
    #[error("decoded body is longer than {0} bytes")]
    TooLong(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Chunked,
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    fn name(self) -> &'static str {
        match self {
            Self::Chunked => "chunked",
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "brotli",
            Self::Zstd => "zstd",
        }
    }
}

/// What trying one coding gave.
enum Tried {
    Body(Vec<u8>),
    /// The body does not have this coding.
    Other,
}

/// Undoes the encodings that the values of `Transfer-Encoding` and `Content-Encoding` name, last applied first. A
/// body without encodings is returned without a copy. `max` bounds the result.
pub fn decode_body(
    body: Vec<u8>,
    transfer: Option<&str>,
    content: Option<&str>,
    max: usize,
) -> Result<Decoded, DecodeError> {
    let most = usize::try_from(bounds::most_unpacked(body.len() as u64)).unwrap_or(usize::MAX).min(max);
    let mut decoded = Decoded { bytes: body, mislabelled: false };
    for header in [transfer, content].into_iter().flatten() {
        for name in header.rsplit(',') {
            let coding = match name.trim().to_ascii_lowercase().as_str() {
                "" | "identity" | "none" => continue,
                "chunked" => Coding::Chunked,
                "gzip" | "x-gzip" => Coding::Gzip,
                "deflate" => Coding::Deflate,
                "br" => Coding::Brotli,
                "zstd" => Coding::Zstd,
                _ => {
                    decoded.mislabelled = true;
                    continue;
                }
            };
            // An empty body (of a HEAD, a redirect) has no encoding whatever its header says.
            if decoded.bytes.is_empty() {
                continue;
            }
            match undo(coding, &decoded.bytes, most)? {
                Tried::Body(bytes) => decoded.bytes = bytes,
                Tried::Other => decoded.mislabelled = true,
            }
        }
    }
    if decoded.bytes.len() > max { Err(DecodeError::TooLong(max)) } else { Ok(decoded) }
}

fn undo(coding: Coding, body: &[u8], limit: usize) -> Result<Tried, DecodeError> {
    match coding {
        Coding::Chunked => unchunk(body),
        Coding::Gzip if body.starts_with(GZIP) => gunzip(body, limit).map(Tried::Body),
        Coding::Zstd if is_zstd(body) => match zstd::stream::read::Decoder::with_buffer(body) {
            Ok(decoder) => inflate(decoder, coding, limit).map(Tried::Body),
            Err(_) => Err(DecodeError::Damaged(coding.name())),
        },
        Coding::Gzip | Coding::Zstd => Ok(Tried::Other),
        Coding::Deflate => {
            // The name means zlib, but some servers send bare deflate. The first two bytes nearly always tell them apart.
            let bare = || inflate(flate2::read::DeflateDecoder::new(body), coding, limit);
            let result = if is_zlib(body) {
                inflate(flate2::read::ZlibDecoder::new(body), coding, limit).or_else(|error| bare().or(Err(error)))
            } else {
                bare()
            };
            unless_text(result, body)
        }
        Coding::Brotli => unless_text(inflate(brotli::Decompressor::new(body, 1 << 14), coding, limit), body),
    }
}

/// For codings without a magic number: any text can be taken for the start of a stream. If decoding fails and the
/// body is text, then that is what it is.
fn unless_text(result: Result<Vec<u8>, DecodeError>, body: &[u8]) -> Result<Tried, DecodeError> {
    match result {
        Ok(bytes) => Ok(Tried::Body(bytes)),
        Err(error @ DecodeError::TooLong(_)) => Err(error),
        Err(_) if body.trim_ascii_start().starts_with(b"<") || std::str::from_utf8(body).is_ok() => Ok(Tried::Other),
        Err(error) => Err(error),
    }
}

const GZIP: &[u8] = &[0x1F, 0x8B];

fn is_zlib(body: &[u8]) -> bool {
    body.len() >= 2 && body[0] & 0x0F == 8 && u16::from_be_bytes([body[0], body[1]]).is_multiple_of(31)
}

/// Whether it begins with a frame, or with a frame to be skipped.
fn is_zstd(body: &[u8]) -> bool {
    body.first_chunk::<4>().is_some_and(|bytes| {
        let magic = u32::from_le_bytes(*bytes);
        magic == 0xFD2F_B528 || magic & 0xFFFF_FFF0 == 0x184D_2A50
    })
}

/// Several members may follow each other, and rubbish may follow the last.
fn gunzip(body: &[u8], limit: usize) -> Result<Vec<u8>, DecodeError> {
    if let Some(bytes) = gzip::unpack_body(body, limit.min(bounds::LARGE)) {
        return Ok(bytes);
    }
    let mut out = Vec::new();
    let mut rest = body;
    while rest.starts_with(GZIP) {
        let mut decoder = flate2::bufread::GzDecoder::new(rest);
        let member = inflate(&mut decoder, Coding::Gzip, limit - out.len())?;
        if out.is_empty() {
            out = member;
        } else {
            out.extend_from_slice(&member);
        }
        rest = decoder.into_inner();
    }
    Ok(out)
}

/// Reads a decoder to its end.
fn inflate(mut decoder: impl Read, coding: Coding, limit: usize) -> Result<Vec<u8>, DecodeError> {
    let mut out = Vec::new();
    // One byte more than allowed tells "just fits" from "too long".
    let all = limit.saturating_add(1);
    let mut result = decoder.by_ref().take(all.min(bounds::LARGE) as u64).read_to_end(&mut out);
    if result.is_ok() && out.len() == bounds::LARGE {
        bounds::before_growing(all);
        result = decoder.take((all - out.len()) as u64).read_to_end(&mut out);
    }
    if out.len() > limit {
        return Err(DecodeError::TooLong(limit));
    }
    match result {
        Ok(_) => Ok(out),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(DecodeError::Truncated(coding.name())),
        Err(_) => Err(DecodeError::Damaged(coding.name())),
    }
}

/// Chunked transfer: size in hex, optional extension, CRLF, data, CRLF, and so on to a chunk of size 0. Bare LF is
/// taken too. The first line must look right, and the first chunk must end as it says, or the body is not chunked.
fn unchunk(body: &[u8]) -> Result<Tried, DecodeError> {
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    loop {
        let first = rest.len() == body.len();
        let Some((size, after)) = chunk_size(rest) else {
            if rest.is_empty() {
                // The last chunk is missing; all data before it is whole.
                return Ok(Tried::Body(out));
            }
            return if first { Ok(Tried::Other) } else { Err(DecodeError::Damaged("chunked")) };
        };
        if size == 0 {
            return Ok(Tried::Body(out));
        }
        let Some((data, after)) = after.split_at_checked(size) else {
            // A page that begins with a hex number on a line of its own is likelier text than a chunk cut short,
            // unless the size was written as servers do, before CRLF.
            let written_so = first && memchr::memchr(b'\n', body).is_none_or(|line| !body[..line].ends_with(b"\r"));
            return if written_so { Ok(Tried::Other) } else { Err(DecodeError::Truncated("chunked")) };
        };
        let after = if after.is_empty() {
            after
        } else if let Some(after) = after.strip_prefix(b"\r\n").or_else(|| after.strip_prefix(b"\n")) {
            after
        } else if after == b"\r" {
            &[]
        } else {
            return if first { Ok(Tried::Other) } else { Err(DecodeError::Damaged("chunked")) };
        };
        out.extend_from_slice(data);
        rest = after;
    }
}

fn chunk_size(rest: &[u8]) -> Option<(usize, &[u8])> {
    // Sizes have a handful of digits and extensions are short: no need to look far.
    let line = memchr::memchr(b'\n', &rest[..rest.len().min(4096)])?;
    let text = std::str::from_utf8(&rest[..line]).ok()?;
    let size = text.split(';').next().unwrap_or_default().trim();
    if size.is_empty() || size.starts_with('+') {
        return None;
    }
    Some((usize::from_str_radix(size, 16).ok()?, &rest[line + 1..]))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use proptest::prelude::*;

    use super::*;

    const MAX: usize = 1 << 20;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(data: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn deflate(data: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn brotli(data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        brotli::CompressorWriter::new(&mut out, 4096, 5, 20).write_all(data).unwrap();
        out
    }

    fn chunked(data: &[u8], size: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for chunk in data.chunks(size) {
            write!(out, "{:X};ext=1\r\n", chunk.len()).unwrap();
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
        out
    }

    fn ok(bytes: &[u8]) -> Result<Decoded, DecodeError> {
        Ok(Decoded { bytes: bytes.to_vec(), mislabelled: false })
    }

    fn kept(bytes: &[u8]) -> Result<Decoded, DecodeError> {
        Ok(Decoded { bytes: bytes.to_vec(), mislabelled: true })
    }

    /// Text that compresses to several hundred bytes, so that cutting it cuts data.
    fn sample() -> Vec<u8> {
        (0..400u32).flat_map(|i| format!("<p>line {}</p>\n", i.wrapping_mul(2_654_435_761)).into_bytes()).collect()
    }

    #[test]
    fn each_coding_is_undone() {
        let data = sample();
        let zstd = zstd::encode_all(&data[..], 3).unwrap();
        for (body, transfer, content) in [
            (data.clone(), None, None),
            (data.clone(), Some("identity"), Some("")),
            (gzip(&data), None, Some("gzip")),
            (gzip(&data), None, Some(" X-GZip ")),
            (gzip(&data), Some("gzip"), None),
            (zlib(&data), None, Some("deflate")),
            (deflate(&data), None, Some("deflate")),
            (brotli(&data), None, Some("br")),
            (zstd.clone(), None, Some("zstd")),
            (chunked(&data, 100), Some("Chunked"), None),
            (chunked(&gzip(&data), 100), Some("chunked"), Some("gzip")),
            (chunked(&gzip(&brotli(&data)), 7), Some("gzip, chunked"), Some("br")),
            (gzip(&zlib(&data)), None, Some("deflate , gzip,identity")),
        ] {
            assert_eq!(decode_body(body, transfer, content, MAX), ok(&data), "{transfer:?} {content:?}");
        }
    }

    #[test]
    fn a_body_without_codings_is_not_copied() {
        let body = sample();
        let before = body.as_ptr();
        assert_eq!(decode_body(body, None, Some("identity"), MAX).unwrap().bytes.as_ptr(), before);
    }

    #[test]
    fn lies_keep_the_body() {
        let data = sample();
        for coding in ["gzip", "deflate", "br", "zstd", "compress"] {
            assert_eq!(decode_body(data.clone(), None, Some(coding), MAX), kept(&data), "{coding}");
        }
        assert_eq!(decode_body(data.clone(), Some("chunked"), None, MAX), kept(&data));
        // Only one of the two headers is wrong.
        assert_eq!(decode_body(gzip(&data), Some("chunked"), Some("gzip"), MAX), kept(&data));
        for text in ["abc\nis the start of the alphabet", "10", "ff\n", "\u{1F}short", "12\r"] {
            assert_eq!(decode_body(text.into(), Some("chunked"), None, MAX), kept(text.as_bytes()), "{text}");
        }
        assert_eq!(decode_body(Vec::new(), Some("chunked"), Some("gzip"), MAX), ok(b""));
    }

    #[test]
    fn a_cut_body_is_an_error() {
        let data = sample();
        let half = |body: Vec<u8>| body[..body.len() / 2].to_vec();
        let zstd = zstd::encode_all(&data[..], 3).unwrap();
        for (body, coding, error) in [
            (gzip(&data), "gzip", DecodeError::Truncated("gzip")),
            (zlib(&data), "deflate", DecodeError::Truncated("deflate")),
            (deflate(&data), "deflate", DecodeError::Truncated("deflate")),
            (brotli(&data), "br", DecodeError::Damaged("brotli")),
            (zstd, "zstd", DecodeError::Truncated("zstd")),
        ] {
            assert_eq!(decode_body(half(body), None, Some(coding), MAX), Err(error));
        }
        assert_eq!(
            decode_body(gzip(&data)[..5].to_vec(), None, Some("gzip"), MAX),
            Err(DecodeError::Truncated("gzip"))
        );
        let body = half(chunked(&data, 1000));
        assert_eq!(decode_body(body, Some("chunked"), None, MAX), Err(DecodeError::Truncated("chunked")));
        let mut body = gzip(&data);
        let middle = body.len() / 2;
        body[middle..middle + 40].fill(0xFF);
        assert!(matches!(
            decode_body(body, None, Some("gzip"), MAX),
            Err(DecodeError::Damaged("gzip") | DecodeError::Truncated("gzip"))
        ));
    }

    #[test]
    fn several_members_are_one_body() {
        let data = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(decode_body(data.clone(), None, Some("gzip"), MAX), ok(b"one two"));
        assert_eq!(decode_body([data, b"\0\0rubbish".to_vec()].concat(), None, Some("gzip"), MAX), ok(b"one two"));
        // The last chunk may be missing.
        assert_eq!(decode_body(b"3\r\nabc\r\n".to_vec(), Some("chunked"), None, MAX), ok(b"abc"));
        assert_eq!(decode_body(b"3\nabc\n0\n".to_vec(), Some("chunked"), None, MAX), ok(b"abc"));
    }

    #[test]
    fn sizes_are_bounded() {
        let bomb = gzip(&vec![0; 40 << 20]);
        assert_eq!(decode_body(bomb.clone(), None, Some("gzip"), 1000), Err(DecodeError::TooLong(1000)));
        let limit = |body: &[u8]| usize::try_from(bounds::most_unpacked(body.len() as u64)).unwrap();
        let most = limit(&bomb);
        assert_eq!(decode_body(bomb.clone(), None, Some("gzip"), usize::MAX >> 1), Err(DecodeError::TooLong(most)));
        // Packed twice it has a hundredth of that size, which bounds it all the same.
        let twice = gzip(&bomb);
        assert!(twice.len() < 1000 && limit(&twice) < 40 << 20);
        let most = limit(&twice);
        assert_eq!(decode_body(twice, None, Some("gzip, gzip"), usize::MAX >> 1), Err(DecodeError::TooLong(most)));
        // What is large for good reasons comes out whole.
        let large: Vec<u8> = (0..=250).cycle().take(bounds::LARGE + 5).collect();
        assert!(decode_body(gzip(&large), None, Some("gzip"), usize::MAX >> 1).unwrap().bytes == large);
        assert_eq!(decode_body(vec![0; 11], None, None, 10), Err(DecodeError::TooLong(10)));
        assert_eq!(decode_body(gzip(&[0; 10]), None, Some("gzip"), 10), ok(&[0; 10]));
    }

    proptest! {
        #[test]
        fn any_bytes_under_any_header_give_an_answer(
            body in prop::collection::vec(any::<u8>(), 0..200),
            transfer in prop::option::of("(chunked|gzip|, )"),
            content in prop::option::of("(gzip|deflate|br|zstd|x-gzip, br)"),
        ) {
            let raw = body.clone();
            if let Ok(decoded) = decode_body(body, transfer.as_deref(), content.as_deref(), MAX)
                && transfer.is_none() && content.is_none()
            {
                prop_assert_eq!(decoded.bytes, raw);
            }
        }

        #[test]
        fn codings_round_trip(data in prop::collection::vec(any::<u8>(), 1..2000), size in 1usize..300) {
            let body = chunked(&brotli(&gzip(&deflate(&data))), size);
            prop_assert_eq!(decode_body(body, Some("chunked"), Some("deflate,gzip,br"), MAX), ok(&data));
        }
    }
}
