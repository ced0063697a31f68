//! The entries of a zip file without a directory, found by following their headers from the start.
//!
//! An entry whose header states its size is passed over to the next. One whose sizes follow the data is unpacked to
//! find its end, or searched for what follows. What is searched and unpacked is bounded by a few times the file's size:
//! headers that state nothing are easily made.

use std::io::{self, BufRead as _, BufReader, Read, Seek as _};

use flate2::bufread::DeflateDecoder;
use fs_err::File;
use memchr::memmem::Finder;

use super::{Directory, Entry, Fault, LOCAL_HEADER, LOCAL_MAGIC, Local, Method};
use crate::bounds::grows_too_much;
use crate::model::Loss;

const CENTRAL_MAGIC: &[u8] = b"PK\x01\x02";
const DESCRIPTOR_MAGIC: &[u8] = b"PK\x07\x08";
/// So many bytes from the start of a mark decide whether it is one.
const PROBE: usize = 16;

/// Lists the entries of a zip file. An entry that the end of the file cuts is listed with the bytes that are there.
pub(crate) fn scan(mut file: File, length: u64) -> io::Result<Directory> {
    file.rewind()?;
    let file = BufReader::with_capacity(64 << 10, file);
    let mut scan = Scan { file, pos: 0, length, budget: length.saturating_mul(8) + (4 << 20) };
    let mut directory = Directory::default();
    let mut at = 0;
    while let Some(offset) = scan.find(at, &[LOCAL_MAGIC], |_, _| true)? {
        scan.seek(offset)?;
        let header = scan.read(LOCAL_HEADER)?;
        let Some(local) = Local::parse(&header) else { break };
        let wanted = usize::from(local.name) + usize::from(local.extra);
        let names = scan.read(wanted)?;
        if names.len() < wanted {
            let reason = "the header of an entry is cut by the end of the file".to_owned();
            directory.faults.push(Fault { offset, reason, lost: Loss::Rest });
            break;
        }
        let start = scan.pos;
        let (mut entry, measured) = local.entry(&names, offset, length);
        if !measured {
            scan.measure(&mut entry, start)?;
        }
        let mut end = start.saturating_add(entry.packed_bytes);
        if end < length && !scan.is_mark(end)? {
            // Nothing starts where the entry should end, so bytes were lost. It ends where the next thing starts.
            let next = scan.find(start, &[LOCAL_MAGIC, CENTRAL_MAGIC], |_, _| true)?;
            end = next.map_or(end, |next| next.min(end));
            resize(&mut entry, end - start);
        }
        if end > length {
            let reason = format!("entry '{}' is cut by the end of the file", entry.name);
            directory.faults.push(Fault { offset, reason, lost: Loss::Rest });
            end = length;
            resize(&mut entry, length - start);
        }
        directory.entries.push(entry);
        at = end.max(offset + 1);
    }
    if scan.budget == 0 {
        let reason = "too little of the zip file is as it should be; the rest is given up".to_owned();
        directory.faults.push(Fault { offset: at, reason, lost: Loss::Rest });
    }
    Ok(directory)
}

fn resize(entry: &mut Entry, packed_bytes: u64) {
    entry.packed_bytes = packed_bytes;
    if entry.method == Method::Stored {
        entry.bytes = packed_bytes;
    }
}

struct Scan {
    file: BufReader<File>,
    pos: u64,
    length: u64,
    /// Bytes that may still be searched or unpacked.
    budget: u64,
}

impl Scan {
    /// Moves to an offset. Most steps are short, so what is buffered is kept.
    fn seek(&mut self, to: u64) -> io::Result<()> {
        let by = i64::try_from(to).and_then(|to| i64::try_from(self.pos).map(|pos| to - pos));
        self.file.seek_relative(by.map_err(io::Error::other)?)?;
        self.pos = to;
        Ok(())
    }

    /// So many bytes, or as many as there are.
    fn read(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(count);
        self.file.by_ref().take(count as u64).read_to_end(&mut bytes)?;
        self.pos += bytes.len() as u64;
        Ok(bytes)
    }

    /// Does something of a zip file start here?
    fn is_mark(&mut self, at: u64) -> io::Result<bool> {
        self.seek(at)?;
        Ok(b"PK".starts_with(&self.read(2)?))
    }

    /// Finds the sizes of an entry whose header does not state them.
    fn measure(&mut self, entry: &mut Entry, start: u64) -> io::Result<()> {
        // What follows the data: a mark, a checksum, and both sizes in four or eight bytes.
        let sized = |at: u64, bytes: &[u8]| -> Option<u32> {
            let crc = u32::from_le_bytes(*bytes.get(4..)?.first_chunk::<4>()?);
            let short = u64::from(u32::from_le_bytes(*bytes.get(8..)?.first_chunk::<4>()?));
            let long = bytes.get(8..)?.first_chunk::<8>().map(|long| u64::from_le_bytes(*long));
            (short == at - start || long == Some(at - start)).then_some(crc)
        };
        let end = match entry.method {
            Method::Deflated => self.inflate(entry, start)?,
            _ => self.find(start, &[DESCRIPTOR_MAGIC], |at, bytes| sized(at, bytes).is_some())?,
        };
        let Some(end) = end else {
            // Its end was not found, so it reaches up to whatever comes next.
            let next = self.find(start, &[LOCAL_MAGIC, CENTRAL_MAGIC], |_, _| true)?;
            resize(entry, next.map_or(self.length, |next| next).saturating_sub(start));
            return Ok(());
        };
        resize(entry, end - start);
        self.seek(end)?;
        let descriptor = self.read(PROBE)?;
        if descriptor.starts_with(DESCRIPTOR_MAGIC) {
            entry.crc = sized(end, &descriptor).unwrap_or(entry.crc);
        }
        Ok(())
    }

    /// Unpacks a deflated entry; where it ends, if it does.
    fn inflate(&mut self, entry: &mut Entry, start: u64) -> io::Result<Option<u64>> {
        self.seek(start)?;
        let mut decoder = DeflateDecoder::new(&mut self.file);
        let mut piece = vec![0; 64 << 10];
        let ended = loop {
            match decoder.read(&mut piece) {
                Ok(0) => break true,
                Ok(_) if grows_too_much(decoder.total_in(), decoder.total_out()) => break false,
                Ok(_) if decoder.total_in() > self.budget => break false,
                Ok(_) => {}
                Err(_) => break false,
            }
        };
        entry.bytes = decoder.total_out();
        let used = decoder.total_in();
        self.pos = start + used;
        self.budget = self.budget.saturating_sub(used);
        Ok(ended.then_some(self.pos))
    }

    /// Offset of the first of some marks, from `from` on, that `accept` agrees to.
    fn find(&mut self, from: u64, marks: &[&[u8]], accept: impl Fn(u64, &[u8]) -> bool) -> io::Result<Option<u64>> {
        self.seek(from)?;
        // Mostly the mark stands right here.
        let here = self.file.fill_buf()?;
        if here.len() >= PROBE && marks.iter().any(|mark| here.starts_with(mark)) && accept(from, &here[..PROBE]) {
            return Ok(Some(from));
        }
        let finders: Vec<_> = marks.iter().map(|mark| Finder::new(*mark)).collect();
        let (mut window, mut window_start) = (Vec::new(), from);
        while self.budget > 0 {
            let piece = self.file.fill_buf()?;
            let got = piece.len();
            window.extend_from_slice(piece);
            self.file.consume(got);
            self.pos += got as u64;
            self.budget = self.budget.saturating_sub(got as u64);
            let judged = if got == 0 { window.len() } else { window.len().saturating_sub(PROBE) };
            let first = finders.iter().filter_map(|finder| {
                let mut hits = finder.find_iter(&window).take_while(|&at| at < judged);
                hits.find(|&at| accept(window_start + at as u64, &window[at..window.len().min(at + PROBE)]))
            });
            if let Some(at) = first.min() {
                return Ok(Some(window_start + at as u64));
            }
            if got == 0 {
                break;
            }
            window.drain(..judged);
            window_start += judged as u64;
        }
        Ok(None)
    }
}
