//! The bytes of an archive file, plain, gzip or zstd, and where in the file they come from.
//!
//! Problem: a decoder that hides the borders of compressed members cannot say where a record starts, takes the end of
//! a clipped member for the end of the file, and loses everything behind one damaged member.
//!
//! Idea: bytes are handed out one member at a time; wherever they cannot go on there is a [`Stop`] that says why,
//! and [`Stream::resume`] goes on behind it if it can. Writers start a member with each record, so behind damage
//! the next member that starts with a record is looked for. The same search finds places to split a file at.
//!
//! Cost: that of the decoder, plus one search over the rest of the damaged member for each damage.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use memchr::memmem::Finder;

use super::codec::{Decoder, Packing, check_dictionary, dictionary, dictionary_frame};
use super::format::Format;

/// Large enough that system calls do not count, small enough for the second level cache.
const BUFFER: usize = 128 << 10;
/// A file with more damaged members than this is given up: bounds the time on hostile input.
const MAX_RESUMES: u32 = 1000;
/// So many bytes are decoded in search of members that start with a record; then the file is given up.
const MAX_PROBED: u64 = 1 << 30;

/// Why there are no more bytes just now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The file ends, not inside a compressed member.
    End,
    /// The file ends inside a compressed member.
    CutMember,
    Corrupt(String),
    /// A member that starts with a record begins while another record is open ([`Stream::open_record`]).
    NextRecord,
    /// The file cannot be read on.
    Failed(String),
}

pub(crate) struct Stream<R> {
    raw: BufReader<R>,
    /// Offset of the first raw byte not yet consumed.
    raw_pos: u64,
    raw_len: u64,
    format: &'static dyn Format,
    members: Option<Members>,
    stop: Option<Stop>,
    in_record: bool,
    resumes: u32,
    /// Whether the stream ends before the file does, at a place where the next piece starts with a record.
    followed: bool,
}

struct Members {
    packing: Packing,
    decoder: Decoder,
    /// Decodes the starts of other members without disturbing `decoder`.
    prober: Decoder,
    probed: u64,
    /// Offset of the member that the bytes in `out` belong to.
    member: u64,
    out: Vec<u8>,
    pos: usize,
    len: usize,
    /// An error met while decoding. It is reported once the bytes before it are used up.
    error: Option<String>,
}

impl<R: Read + Seek> Stream<R> {
    pub(crate) fn new(mut inner: R, format: &'static dyn Format) -> io::Result<Self> {
        let raw_len = inner.seek(SeekFrom::End(0))?;
        inner.seek(SeekFrom::Start(0))?;
        let mut raw = BufReader::with_capacity(BUFFER, inner);
        let mut start = Vec::new();
        raw.by_ref().take(8).read_to_end(&mut start)?;
        let members = match Packing::of(&start) {
            None => None,
            Some(packing) => {
                let mut words = Vec::new();
                if let Some(range) = dictionary_frame(&start).filter(|_| packing == Packing::Zstd) {
                    check_dictionary(range.end - range.start)?;
                    raw.by_ref().take(range.end - range.start).read_to_end(&mut words)?;
                    words = dictionary(words)?;
                }
                Some(Members {
                    packing,
                    decoder: Decoder::new(packing, &words)?,
                    prober: Decoder::new(packing, &words)?,
                    probed: 0,
                    member: 0,
                    out: vec![0; BUFFER],
                    pos: 0,
                    len: 0,
                    error: None,
                })
            }
        };
        raw.seek(SeekFrom::Start(0))?;
        let (stop, in_record, resumes, followed) = (None, false, 0, false);
        Ok(Self { raw, raw_pos: 0, raw_len, format, members, stop, in_record, resumes, followed })
    }

    /// Starts over at `from`, the start of a member. `followed`: the stream ends where the next piece of the file
    /// starts.
    pub(crate) fn start_at(&mut self, from: u64, followed: bool) -> io::Result<()> {
        if let Some(members) = &mut self.members {
            members.decoder.reset();
            (members.pos, members.len, members.error) = (0, 0, None);
        }
        (self.stop, self.followed) = (None, followed);
        self.seek_raw(from)
    }

    /// The bytes at hand; empty before the first [`fill`](Self::fill) and at a stop.
    pub(crate) fn data(&self) -> &[u8] {
        if self.stop.is_some() {
            return &[];
        }
        match &self.members {
            Some(members) => &members.out[members.pos..members.len],
            None => self.raw.buffer(),
        }
    }

    /// Provides bytes if there are none at hand; false at a stop.
    pub(crate) fn fill(&mut self) -> bool {
        if self.stop.is_none() && self.data().is_empty() {
            self.stop = if self.members.is_some() { self.fill_member() } else { self.fill_plain() };
        }
        self.stop.is_none()
    }

    pub(crate) fn consume(&mut self, n: usize) {
        if let Some(members) = &mut self.members {
            members.pos += n;
        } else {
            self.raw.consume(n);
            self.raw_pos += n as u64;
        }
    }

    /// Where the bytes at hand come from: their member, or they themselves in a plain file.
    pub(crate) fn offset(&self) -> u64 {
        self.members.as_ref().map_or(self.raw_pos, |members| members.member)
    }

    pub(crate) fn stop(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }

    /// What a member of the file is called.
    pub(crate) fn member_name(&self) -> &'static str {
        self.members.as_ref().map_or("record", |members| members.packing.name())
    }

    /// How much of the file is used up.
    pub(crate) fn raw_position(&self) -> u64 {
        self.raw_pos
    }

    /// Whether reading went on behind damage.
    pub(crate) fn resumed(&self) -> bool {
        self.resumes > 0
    }

    pub(crate) fn raw_length(&self) -> u64 {
        self.raw_len
    }

    /// Bytes up to the end of a plain file.
    pub(crate) fn remaining(&self) -> Option<u64> {
        self.members.is_none().then(|| self.raw_len.saturating_sub(self.raw_pos))
    }

    pub(crate) fn is_packed(&self) -> bool {
        self.members.is_some()
    }

    /// While a record is open, a member that starts with another one stops the stream: a record whose stated length
    /// is too large must not swallow its neighbours.
    pub(crate) fn open_record(&mut self, open: bool) {
        self.in_record = open;
    }

    /// Appends bytes up to and with the next line feed, at most `max`. True if the line feed was found.
    pub(crate) fn read_line(&mut self, line: &mut Vec<u8>, max: u64) -> bool {
        let mut left = max;
        while left > 0 && self.fill() {
            let data = self.data();
            let data = &data[..usize::try_from(left).map_or(data.len(), |left| left.min(data.len()))];
            let feed = memchr::memchr(b'\n', data);
            let take = feed.map_or(data.len(), |feed| feed + 1);
            line.extend_from_slice(&data[..take]);
            self.consume(take);
            left -= take as u64;
            if feed.is_some() {
                return true;
            }
        }
        false
    }

    /// Passes over `n` bytes or as many as there are; returns how many.
    pub(crate) fn skip(&mut self, n: u64) -> u64 {
        let mut left = n;
        while left > 0 && self.fill() {
            let have = self.data().len();
            if let Some(remaining) = self.remaining()
                && left > have as u64
            {
                let jump = left.min(remaining);
                if let Err(error) = self.seek_raw(self.raw_pos + jump) {
                    self.stop = Some(Stop::Failed(error.to_string()));
                }
                return n - left + jump;
            }
            let take = usize::try_from(left).map_or(have, |left| left.min(have));
            self.consume(take);
            left -= take as u64;
        }
        n - left
    }

    /// Goes on behind a stop; false if there is nothing more to be had.
    pub(crate) fn resume(&mut self) -> bool {
        match self.stop {
            None => return true,
            Some(Stop::NextRecord) => {
                self.stop = None;
                // The next record is another reader's: then this is the end.
                self.followed &= !self.data().is_empty();
                return true;
            }
            Some(Stop::CutMember | Stop::Corrupt(_)) if self.resumes < MAX_RESUMES => self.resumes += 1,
            Some(_) => return false,
        }
        let Some(members) = &mut self.members else { return false };
        members.decoder.reset();
        (members.pos, members.len, members.error) = (0, 0, None);
        // The decoder may have run past the damaged member's real end, so search from its start.
        let from = members.member + 1;
        match self.find_member(from, u64::MAX) {
            Ok(Some(at)) => match self.seek_raw(at) {
                Ok(()) => self.stop = None,
                Err(error) => self.stop = Some(Stop::Failed(error.to_string())),
            },
            Ok(None) => self.stop = Some(Stop::End),
            Err(error) => self.stop = Some(Stop::Failed(error.to_string())),
        }
        self.stop.is_none()
    }

    /// Offset of the first member from `from` on, and before `to`, that starts with a record. Afterwards the
    /// reading position is undefined.
    pub(crate) fn find_member(&mut self, from: u64, to: u64) -> io::Result<Option<u64>> {
        let Some(mut members) = self.members.take() else { return Ok(None) };
        let (packing, format) = (members.packing, self.format);
        let found = self.search(from, to, &Finder::new(packing.magic()), packing.probe(), |member| {
            members.probed += member.len() as u64;
            members.probed <= MAX_PROBED && members.starts_record(member, format)
        });
        self.members = Some(members);
        found
    }

    /// In a plain file: how many bytes from here to the next line that starts a record.
    pub(crate) fn distance_to_record(&mut self) -> Option<u64> {
        let (here, format) = (self.raw_pos, self.format);
        let found = self.search(here, u64::MAX, &Finder::new(format.needle()), format.line_bytes() + 2, |bytes| {
            let line = bytes[1..].split_inclusive(|&byte| byte == b'\n').next().unwrap_or_default();
            line.ends_with(b"\n") && format.is_first_line(line)
        });
        if let Err(error) = self.seek_raw(here) {
            self.stop = Some(Stop::Failed(error.to_string()));
        }
        Some(found.ok().flatten()? + 1 - here)
    }

    fn fill_plain(&mut self) -> Option<Stop> {
        match self.raw.fill_buf() {
            Ok([]) => Some(Stop::End),
            Ok(_) => None,
            Err(error) => Some(Stop::Failed(error.to_string())),
        }
    }

    /// Decodes until the buffer is full or the member ends, so that one buffer never holds bytes of two members.
    fn fill_member(&mut self) -> Option<Stop> {
        let members = self.members.as_mut()?;
        if let Some(error) = members.error.take() {
            return Some(Stop::Corrupt(error));
        }
        (members.pos, members.len) = (0, 0);
        let mut fresh = false;
        while members.len < members.out.len() {
            let input = match self.raw.fill_buf() {
                Ok(input) => input,
                Err(error) => return Some(Stop::Failed(error.to_string())),
            };
            let open = members.decoder.is_open();
            if let (false, Some(&first)) = (open, input.first())
                && !members.packing.may_start(first)
            {
                // Zeros fill up the last block of some media; anything else does not belong here.
                let zeros = input.iter().take_while(|&&byte| byte == 0).count();
                if zeros == 0 {
                    members.member = self.raw_pos;
                    return Some(Stop::Corrupt(format!("bytes that are no {}", members.packing.name())));
                }
                self.raw.consume(zeros);
                self.raw_pos += zeros as u64;
                continue;
            }
            if input.is_empty() && !open {
                if members.len > 0 {
                    break;
                }
                return Some(if self.followed && self.in_record { Stop::NextRecord } else { Stop::End });
            }
            if !open {
                fresh = true;
                members.member = self.raw_pos;
            }
            let at_end = input.is_empty();
            match members.decoder.step(input, &mut members.out[members.len..]) {
                Ok(step) => {
                    self.raw.consume(step.used);
                    self.raw_pos += step.used as u64;
                    members.len += step.made;
                    if step.ended {
                        if members.len > 0 {
                            break;
                        }
                    } else if step.used == 0 && step.made == 0 {
                        match at_end {
                            true if members.len > 0 => break,
                            true => return Some(Stop::CutMember),
                            false => members.error = Some("the decoder makes no progress".to_owned()),
                        }
                    }
                }
                // At the end of the file the member is cut, whatever error the decoder reports when it is given no
                // bytes.
                Err(_) if at_end && members.len > 0 => break,
                Err(_) if at_end => return Some(Stop::CutMember),
                Err(error) => members.error = Some(error),
            }
            if let Some(error) = members.error.take() {
                if members.len == 0 {
                    return Some(Stop::Corrupt(error));
                }
                members.error = Some(error);
                break;
            }
        }
        let next_record = fresh && self.in_record && self.format.starts_member(&members.out[..members.len]);
        next_record.then_some(Stop::NextRecord)
    }

    fn seek_raw(&mut self, to: u64) -> io::Result<()> {
        self.raw_pos = self.raw.seek(SeekFrom::Start(to))?;
        Ok(())
    }

    /// Offset, from `from` on and before `to`, of the first match of `needle` that `accept` agrees to, shown the match
    /// and up to `probe` bytes from its start. Afterwards the reading position is undefined.
    fn search(
        &mut self,
        from: u64,
        to: u64,
        needle: &Finder<'_>,
        probe: usize,
        mut accept: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<Option<u64>> {
        self.seek_raw(from)?;
        let mut window = Vec::with_capacity(2 * BUFFER);
        let mut window_start = from;
        loop {
            let got = self.raw.by_ref().take(BUFFER as u64).read_to_end(&mut window)?;
            // A match is judged only when all bytes of its probe were read, or the file has ended.
            let judged = if got == 0 { window.len() } else { window.len().saturating_sub(probe) };
            for at in needle.find_iter(&window).take_while(|&at| at < judged) {
                if window_start + at as u64 >= to {
                    return Ok(None);
                }
                if accept(&window[at..window.len().min(at + probe)]) {
                    return Ok(Some(window_start + at as u64));
                }
            }
            if got == 0 || window_start >= to {
                return Ok(None);
            }
            window.drain(..judged);
            window_start += judged as u64;
        }
    }
}

impl Members {
    fn starts_record(&mut self, mut member: &[u8], format: &dyn Format) -> bool {
        let mut start = vec![0; format.member_bytes()];
        let mut len = 0;
        self.prober.reset();
        while len < start.len() {
            match self.prober.step(member, &mut start[len..]) {
                Ok(step) => {
                    len += step.made;
                    member = &member[step.used..];
                    if step.ended || (step.used == 0 && step.made == 0) {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        format.starts_member(&start[..len])
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;
    use crate::archive::layouts::Warc;

    fn member(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Everything the stream has, with the offset of each piece, and how it ends.
    fn drain(stream: &mut Stream<Cursor<Vec<u8>>>) -> (Vec<u8>, Vec<u64>, Stop) {
        let (mut bytes, mut offsets) = (Vec::new(), Vec::new());
        while stream.fill() {
            if offsets.last() != Some(&stream.offset()) {
                offsets.push(stream.offset());
            }
            bytes.extend_from_slice(stream.data());
            stream.consume(stream.data().len());
        }
        (bytes, offsets, stream.stop().unwrap().clone())
    }

    #[test]
    fn members_keep_their_offsets() {
        let (a, b) = (member(b"WARC/1.0 one"), member(b"WARC/1.0 two"));
        let empty = member(b"");
        let file = [a.clone(), empty.clone(), b, vec![0; 700], member(b"three")].concat();
        let mut stream = Stream::new(Cursor::new(file.clone()), &Warc).unwrap();
        let (bytes, offsets, stop) = drain(&mut stream);
        assert_eq!(bytes, b"WARC/1.0 oneWARC/1.0 twothree");
        assert_eq!(offsets[..2], [0, (a.len() + empty.len()) as u64]);
        assert_eq!((offsets.len(), stop), (3, Stop::End));
        assert_eq!(stream.raw_position(), file.len() as u64);
    }

    #[test]
    fn an_open_record_stops_at_the_next() {
        let first = member(b"WARC/1.0 one");
        let file = [first.clone(), member(b"more"), member(b"WARC/1.0 two")].concat();
        let mut stream = Stream::new(Cursor::new(file), &Warc).unwrap();
        assert!(stream.fill());
        stream.open_record(true);
        let (bytes, _, stop) = drain(&mut stream);
        assert_eq!((bytes.as_slice(), stop), (b"WARC/1.0 onemore".as_slice(), Stop::NextRecord));
        assert!(stream.resume());
        stream.open_record(false);
        assert_eq!(drain(&mut stream).0, b"WARC/1.0 two");
    }

    #[test]
    fn damage_ends_at_the_next_record() {
        let good = [member(b"WARC/1.0 one"), member(b"WARC/1.0 two"), member(b"WARC/1.0 three")];
        let (second, third) = (good[0].len(), good[0].len() + good[1].len());
        let mut file = good.concat();
        // The checksum of the second member.
        file[third - 8] ^= 1;
        let mut stream = Stream::new(Cursor::new(file), &Warc).unwrap();
        let (bytes, _, stop) = drain(&mut stream);
        assert_eq!(bytes, b"WARC/1.0 oneWARC/1.0 two");
        assert!(matches!(stop, Stop::Corrupt(_)));
        assert_eq!(stream.offset(), second as u64);
        assert!(stream.resume());
        assert_eq!(drain(&mut stream), (b"WARC/1.0 three".to_vec(), vec![third as u64], Stop::End));
        assert!(!stream.resume());
    }

    #[test]
    fn foreign_bytes_between_members_are_passed_over() {
        let file = [member(b"WARC/1.0 one"), b"some log line\n".to_vec(), member(b"WARC/1.0 two")].concat();
        let mut stream = Stream::new(Cursor::new(file), &Warc).unwrap();
        assert!(matches!(drain(&mut stream).2, Stop::Corrupt(_)));
        assert!(stream.resume());
        assert_eq!(drain(&mut stream).0, b"WARC/1.0 two");
    }

    #[test]
    fn a_cut_member_is_no_clean_end() {
        let file = member(b"WARC/1.0 and a text that is long enough to be cut");
        for cut in 3..file.len() {
            let mut stream = Stream::new(Cursor::new(file[..cut].to_vec()), &Warc).unwrap();
            assert_eq!(drain(&mut stream).2, Stop::CutMember, "{cut}");
            assert!(!stream.resume());
        }
    }

    #[test]
    fn distance_is_found_across_window_borders() {
        for length in [0, 5, BUFFER - 40, BUFFER - 9, BUFFER - 1, BUFFER, 2 * BUFFER - 20, 3 * BUFFER + 7] {
            let file = [vec![b'x'; length], b"\nWARC/x\n\nWARC/1.1\r\nrest".to_vec()].concat();
            let mut stream = Stream::new(Cursor::new(file), &Warc).unwrap();
            assert_eq!(stream.distance_to_record(), Some(length as u64 + 9), "{length}");
            assert!(stream.fill());
            assert_eq!(stream.offset(), 0);
        }
        let mut stream = Stream::new(Cursor::new(b"x\nWARC/1.0".to_vec()), &Warc).unwrap();
        assert_eq!(stream.distance_to_record(), None);
    }

    #[test]
    fn skipping_equals_reading() {
        let text: Vec<u8> = (0..400_000u32).map(|i| (i % 251) as u8).collect();
        for file in [text.clone(), member(&text)] {
            let mut stream = Stream::new(Cursor::new(file), &Warc).unwrap();
            assert_eq!(stream.skip(300_001), 300_001);
            assert_eq!(drain(&mut stream).0, text[300_001..]);
            assert_eq!(stream.skip(10), 0);
        }
    }

    proptest! {
        /// Whatever is in the file, reading it to the end and resuming at every stop comes to an end.
        #[test]
        fn any_bytes_come_to_an_end(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..2000),
            good in 0usize..3,
            at in any::<prop::sample::Index>(),
        ) {
            for _ in 0..good {
                let at = at.index(bytes.len() + 1);
                bytes.splice(at..at, member(b"WARC/1.0\r\nx\r\n"));
            }
            bytes.splice(..0, Packing::Gzip.magic().iter().copied());
            let mut stream = Stream::new(Cursor::new(bytes), &Warc).unwrap();
            loop {
                drain(&mut stream);
                if !stream.resume() {
                    break;
                }
            }
        }
    }
}
