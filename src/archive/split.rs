//! Where one large file can be read by several threads.
//!
//! Problem: writers compress each record by itself, so a file can be decoded from any of them on; but where they start is
//! known only to who decoded everything before. A search for the magic number of a member that starts with a record may
//! find one inside another: a page that is itself an archive, stored without further compression.
//!
//! Idea: search, then make sure. From a place found a chain of members must lead on for more bytes than a compressor stores
//! without a header of its own in between, each starting with a record. What passes is still only believed: a reader
//! that comes to the end of its part inside a member, or meets damage, says that it misread, and everything is read again
//! by one reader. Sound files never come to that.
//!
//! Cost: some hundred kilobytes decoded for each part.

use std::io;

use super::record_file::Piece;
use super::records::Format;
use super::source::{Bytes, Source};
use super::stream::Stream;

/// Smaller parts are not worth their search.
const MIN_PIECE: u64 = 4 << 20;
/// A member that starts with a record is looked for in so many bytes.
const SEARCH: u64 = 16 << 20;
/// More than deflate (64 KB) or zstd (128 KB) store in one block.
const CHAIN: u64 = 256 << 10;

/// Parts of a file for so many threads, of a snapshot of `total` bytes; one part if it cannot be split.
pub(super) fn pieces(source: &Source, format: Format, total: u64, threads: usize) -> Vec<Piece> {
    let whole = vec![Piece { from: 0, to: None }];
    if threads < 2 || !source.is_seekable() {
        return whole;
    }
    // Enough parts that the last ones to be done are short.
    let size = (total / (threads as u64 * 8)).max(MIN_PIECE);
    split(source, format, size).unwrap_or(whole)
}

pub(super) fn split(source: &Source, format: Format, size: u64) -> io::Result<Vec<Piece>> {
    let mut stream = Stream::new(source.open()?, format.starts())?;
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

/// Does a chain of members that start with records begin here?
fn leads_on(stream: &mut Stream<Box<dyn Bytes>>, from: u64, format: Format) -> io::Result<bool> {
    stream.start_at(from, false)?;
    let mut member = None;
    while stream.fill() {
        if member != Some(stream.offset()) {
            member = Some(stream.offset());
            if !format.starts().member(stream.data()) {
                return Ok(false);
            }
            if stream.offset() >= from + CHAIN {
                return Ok(true);
            }
        }
        stream.consume(stream.data().len());
    }
    // The end of the file is as good as a long chain.
    Ok(matches!(stream.stop(), Some(super::stream::Stop::End)))
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
