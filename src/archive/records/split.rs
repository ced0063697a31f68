//! Where one large file can be read by several threads.
//!
//! Problem: writers compress each record by itself, so a file can be decoded from the start of any record on. But
//! nothing lists these starts: one has to decode everything before a record to know where it starts. A search for the
//! magic number of a member that starts with a record may find one inside another member: a page that is itself an
//! archive, stored without further compression.
//!
//! Idea: search, then make sure. From a place found, members must follow one another, each starting with a record, for
//! more bytes than a compressor stores without a header of its own in between. A place that passes may still be wrong:
//! a reader that comes to the end of its piece inside a member, or meets damage, says that it misread, and everything
//! is read again by one reader. With sound files this never happens.
//!
//! Cost: some hundred kilobytes decoded for each piece.

use std::io;

use super::format::Format;
use super::record_file::Piece;
use super::source::{Bytes, Source};
use super::stream::{Stop, Stream};

/// Smaller pieces are not worth their search.
const MIN_PIECE: u64 = 4 << 20;
/// In so many bytes a member that starts with a record is looked for.
const SEARCH: u64 = 16 << 20;
/// More than deflate (64 KB) or zstd (128 KB) store in one block.
const CHAIN: u64 = 256 << 10;

/// Pieces of a file for so many threads, of a snapshot of `total` bytes; one piece if it cannot be split.
pub(crate) fn pieces(source: &Source, format: &'static dyn Format, total: u64, threads: usize) -> Vec<Piece> {
    let whole = vec![Piece { from: 0, to: None }];
    if threads < 2 || !source.is_seekable() {
        return whole;
    }
    // There are enough pieces for the last ones to be done to be short.
    let size = (total / (threads as u64 * 8)).max(MIN_PIECE);
    split(source, format, size).unwrap_or(whole)
}

/// Pieces of about `size` bytes.
pub(crate) fn split(source: &Source, format: &'static dyn Format, size: u64) -> io::Result<Vec<Piece>> {
    let mut stream = Stream::new(source.open()?, format)?;
    let mut starts = vec![0];
    let mut wanted = size;
    while stream.is_packed() && wanted + size / 2 <= stream.raw_length() {
        match stream.find_member(wanted, wanted.saturating_add(SEARCH))? {
            Some(at) if leads_on(&mut stream, at, format)? => starts.push(at),
            _ => {}
        }
        wanted = starts[starts.len() - 1].max(wanted) + size;
    }
    let ends = starts[1..].iter().copied().map(Some).chain([None]);
    Ok(starts.iter().copied().zip(ends).map(|(from, to)| Piece { from, to }).collect())
}

/// Does a chain of members begin here that each start with a record?
fn leads_on(stream: &mut Stream<Box<dyn Bytes>>, from: u64, format: &'static dyn Format) -> io::Result<bool> {
    stream.start_at(from, false)?;
    let mut member = None;
    while stream.fill() {
        if member != Some(stream.offset()) {
            member = Some(stream.offset());
            if !format.starts_member(stream.data()) {
                return Ok(false);
            }
            // Whoever reads on from before does not take anything else for a record.
            let line = stream.data().split_inclusive(|&byte| byte == b'\n').next().unwrap_or_default();
            if stream.offset() == from && !(line.ends_with(b"\n") && format.is_first_line(line)) {
                return Ok(false);
            }
            if stream.offset() >= from + CHAIN {
                return Ok(true);
            }
        }
        stream.consume(stream.data().len());
    }
    // The end of the file is as good as a long chain.
    Ok(matches!(stream.stop(), Some(Stop::End)))
}

#[cfg(test)]
mod tests;
