//! Checksums inside of partitions, so that what is read is known to be what was written.
//!
//! A file is its data (row groups) and its tail (indexes, footer). The footer lists a sum for every block of the data; the
//! manifest has a sum of the tail. Whoever reads some bytes reads the blocks around them, compares each once, and so pays
//! in proportion to what is read. The sums find bits that went bad; against forgers there is the digest of the whole file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{ChunkReader, Length};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The list of sums in the footer.
pub(super) const SUMS_KEY: &str = "ratoon.sums";
const BLOCK: u64 = 64 << 10;
/// Hex digits of one sum.
const DIGITS: usize = 8;

/// Where the tail of a file begins, and its sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tail {
    pub at: u64,
    pub sum: u64,
}

impl Tail {
    /// Whether the end of a file is what was written.
    pub(super) fn holds(self, file: &File, len: u64) -> io::Result<bool> {
        let Some(bytes) = len.checked_sub(self.at).and_then(|bytes| usize::try_from(bytes).ok()) else {
            return Ok(false);
        };
        let mut tail = vec![0; bytes];
        file.read_exact_at(&mut tail, self.at)?;
        Ok(xxh3_64(&tail) == self.sum)
    }
}

/// What is kept of a block's sum.
#[expect(clippy::cast_possible_truncation, reason = "half of it is enough to find what went bad")]
fn kept(sum: u64) -> u32 {
    sum as u32
}

/// Sums of a file that is being written.
pub(super) struct Summing {
    block: Xxh3,
    in_block: u64,
    sums: Vec<u32>,
    bytes: u64,
    /// Since the data is complete.
    tail: Option<(u64, Xxh3)>,
}

impl Summing {
    pub(super) fn new() -> Self {
        Self { block: Xxh3::new(), in_block: 0, sums: Vec::new(), bytes: 0, tail: None }
    }

    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if let Some((_, tail)) = &mut self.tail {
            tail.update(bytes);
            return;
        }
        while !bytes.is_empty() {
            let room = usize::try_from(BLOCK - self.in_block).expect("a block is small");
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.block.update(now);
            self.in_block += now.len() as u64;
            if self.in_block == BLOCK {
                self.close_block();
            }
            bytes = later;
        }
    }

    fn close_block(&mut self) {
        self.sums.push(kept(self.block.digest()));
        self.block.reset();
        self.in_block = 0;
    }

    /// The data is complete; what follows is the tail. Gives the list for the footer.
    pub(super) fn end_data(&mut self) -> String {
        if self.in_block > 0 {
            self.close_block();
        }
        self.tail = Some((self.bytes, Xxh3::new()));
        let sums = self.sums.iter().map(|sum| format!("{sum:08x}"));
        format!("{BLOCK}:{}:{}", self.bytes, sums.collect::<String>())
    }

    pub(super) fn finish(self) -> Tail {
        self.tail.map_or(Tail::default(), |(at, tail)| Tail { at, sum: tail.digest() })
    }
}

/// Sums of a file that is read.
pub(super) struct Sums {
    block: u64,
    data: u64,
    sums: Vec<u32>,
    /// By block, whether it was compared.
    sound: Vec<AtomicBool>,
}

impl Sums {
    /// Reads the list that [`Summing::end_data`] wrote.
    pub(super) fn parse(listed: &str) -> Option<Self> {
        let mut parts = listed.split(':');
        let block: u64 = parts.next()?.parse().ok().filter(|block| (1..=BLOCK * 64).contains(block))?;
        let data: u64 = parts.next()?.parse().ok()?;
        let digits = parts.next()?.as_bytes();
        let sum = |digits: &[u8]| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        let sums = digits.chunks(DIGITS).map(sum).collect::<Option<Vec<u32>>>()?;
        if sums.len() as u64 != data.div_ceil(block) {
            return None;
        }
        let sound = sums.iter().map(|_| AtomicBool::new(false)).collect();
        Some(Self { block, data, sums, sound })
    }

    /// The blocks that a range of bytes lies in, as far as it is data.
    fn blocks(&self, start: u64, len: u64) -> Range<u64> {
        let end = (start + len).min(self.data);
        if start >= end { 0..0 } else { start / self.block..end.div_ceil(self.block) }
    }

    fn is_sound(&self, block: u64) -> bool {
        self.flag(block).is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    fn flag(&self, block: u64) -> Option<&AtomicBool> {
        self.sound.get(usize::try_from(block).ok()?)
    }

    /// Compares a block with its sum.
    fn compare(&self, block: u64, bytes: &[u8]) -> Result<(), WentBad> {
        let at = usize::try_from(block).unwrap_or(usize::MAX);
        if self.sums.get(at) != Some(&kept(xxh3_64(bytes))) {
            return Err(WentBad { at: block * self.block });
        }
        if let Some(flag) = self.flag(block) {
            flag.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Bytes that are not what was written.
#[derive(Debug, thiserror::Error)]
#[error("damaged: bytes around {at} are not what was written; `ratoon check PIPELINE` says what repairs it")]
pub(super) struct WentBad {
    at: u64,
}

/// A file read by position. (A clone of a `File` shares its cursor, so that two threads would disturb each other.)
#[derive(Clone)]
pub(super) struct SharedFile {
    file: Arc<File>,
    len: u64,
    sums: Option<Arc<Sums>>,
}

impl SharedFile {
    pub(super) fn new(file: File, len: u64) -> Self {
        Self { file: Arc::new(file), len, sums: None }
    }

    /// From now on what is read is compared with sums.
    pub(super) fn with_sums(self, sums: Option<Sums>) -> Self {
        Self { sums: sums.map(Arc::new), ..self }
    }

    fn bytes(&self, start: u64, length: usize) -> io::Result<Bytes> {
        let plain = |start: u64, length: usize| {
            let mut buffer = vec![0; length];
            self.file.read_exact_at(&mut buffer, start)?;
            Ok::<_, io::Error>(Bytes::from(buffer))
        };
        let Some(sums) = &self.sums else { return plain(start, length) };
        let blocks = sums.blocks(start, length as u64);
        if blocks.clone().all(|block| sums.is_sound(block)) {
            return plain(start, length);
        }
        // Whole blocks are read, and what may lie behind the data with them.
        let from = (blocks.start * sums.block).min(start);
        let to = (blocks.end * sums.block).min(sums.data).max(start + length as u64);
        let whole = plain(from, usize::try_from(to - from).map_err(io::Error::other)?)?;
        for block in blocks.filter(|block| !sums.is_sound(*block)) {
            let at = |position: u64| usize::try_from(position - from).unwrap_or(usize::MAX);
            let (first, last) = (block * sums.block, ((block + 1) * sums.block).min(sums.data));
            sums.compare(block, &whole[at(first)..at(last)]).map_err(io::Error::other)?;
        }
        let skip = usize::try_from(start - from).map_err(io::Error::other)?;
        Ok(whole.slice(skip..skip + length))
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.len
    }
}

/// Reads a [`SharedFile`] from a position of its own.
pub(super) struct At {
    file: SharedFile,
    position: u64,
}

impl io::Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.file.len.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let bytes = self.file.bytes(self.position, length)?;
        buffer[..length].copy_from_slice(&bytes);
        self.position += length as u64;
        Ok(length)
    }
}

impl ChunkReader for SharedFile {
    type T = io::BufReader<At>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(io::BufReader::new(At { file: self.clone(), position: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        Ok(self.bytes(start, length)?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn every_bit_that_goes_bad_is_found_by_who_reads_it() {
        let data: Vec<u8> = (0..3 * BLOCK + 77).map(|i| u8::try_from(i * 31 % 251).unwrap()).collect();
        let mut summing = Summing::new();
        data.chunks(10_007).for_each(|part| summing.update(part));
        let listed = summing.end_data();
        summing.update(b"the tail");
        let tail = summing.finish();
        let open = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            let len = bytes.len() as u64;
            let holds = tail.holds(&file, len).unwrap();
            (SharedFile::new(file, len).with_sums(Sums::parse(&listed)), holds)
        };
        let mut sound = data.clone();
        sound.extend_from_slice(b"the tail");
        let (file, holds) = open(&sound);
        assert!(holds);
        let size = |bytes: u64| usize::try_from(bytes).unwrap();
        for (start, length) in [(0, 1), (BLOCK - 3, 9), (5, 2 * BLOCK), (3 * BLOCK + 70, 15), (3 * BLOCK + 77, 8)] {
            let bytes = file.get_bytes(start, size(length)).unwrap();
            assert_eq!(bytes, sound[size(start)..size(start + length)]);
        }
        let mut all = Vec::new();
        file.get_read(7).unwrap().read_to_end(&mut all).unwrap();
        assert_eq!(all, sound[7..]);
        for at in [0, size(BLOCK), data.len() - 1] {
            let mut bad = sound.clone();
            bad[at] ^= 4;
            let (file, holds) = open(&bad);
            assert!(holds, "the tail is as it was");
            let error = file.get_bytes(at as u64, 1).unwrap_err().to_string();
            assert!(error.contains("not what was written"), "{error}");
            let elsewhere = if at < size(BLOCK) { 2 * BLOCK } else { 0 };
            assert!(file.get_bytes(elsewhere, 10).is_ok(), "what is not read is not looked at");
        }
        let mut bad = sound.clone();
        *bad.last_mut().unwrap() ^= 1;
        assert!(!open(&bad).1);
        assert!(!open(&sound[..data.len() - 1]).1, "cut before its tail");
    }

    #[test]
    fn a_list_that_does_not_fit_is_refused() {
        for listed in ["", "65536", "65536:9:", "65536:9:0000000g", "0:9:00000000", "65536:65537:00000000"] {
            assert!(Sums::parse(listed).is_none(), "{listed}");
        }
    }
}
