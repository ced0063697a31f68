//! Archive files that are a sequence of records: WARC, its derivative WET, and ARC; plain, gzip or zstd.
//!
//! Problem: archives of many years and many writers are clipped, padded, mislabelled and at odds with their own
//! headers, and a library that reads the good ones fast is silent about the bad ones.
//!
//! Idea: a record is a first line or header block, a block of bytes of the stated length, and blank lines. Each is read
//! through [`Stream`], which knows why bytes end; so every record is whole, or there is a [`Reject`] with its offset.
//! Behind damage reading goes on at the next thing that starts a record: a compressed member, or in plain files a
//! line. What stands in the header is the matter of `warc` and `arc`.
//!
//! A record that the file cuts short yields both the capture, marked `truncated`, and one reject of the same file and
//! offset. A body shorter than its HTTP `Content-Length` inside a whole record yields the marked capture only.
//!
//! Cost: that of decompression plus one copy of each body; memory: the largest body, at most [`MAX_RECORD`].

use std::collections::VecDeque;
use std::io::{Read, Seek};

use crate::model::{RawCapture, Reject};

use super::headers::Headers;
use super::starts::Starts;
use super::stream::{Stop, Stream};

/// Larger records are passed over: a page of this size is no page.
pub(super) const MAX_RECORD: u64 = 512 << 20;
/// Memory taken on the word of a header; beyond it buffers grow with the bytes that really come.
const MAX_TRUST: u64 = 1 << 20;

pub(super) type Item = Result<RawCapture, Reject>;

/// What the records of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Warc,
    /// WARC whose `conversion` records are all there is: the texts of pages.
    Wet,
    Arc,
}

impl Format {
    pub(super) fn starts(self) -> Starts {
        match self {
            Self::Warc | Self::Wet => Starts::Warc,
            Self::Arc => Starts::Arc,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Warc | Self::Wet => "WARC",
            Self::Arc => "ARC",
        }
    }
}

/// The records of one stream.
pub(super) struct Records<R> {
    pub(super) stream: Stream<R>,
    pub(super) format: Format,
    pub(super) name: String,
    pub(super) max_record: u64,
    /// The first line of the record about to be read.
    pub(super) line: Vec<u8>,
    pub(super) warc: Headers,
    pub(super) http: Headers,
    ready: VecDeque<Item>,
    /// Offset of the record that the bytes up to the next one belong to, if what is wrong with it was said already.
    pub(super) explained: Option<u64>,
    /// A record or a reject came out.
    found: bool,
    done: bool,
}

/// What is known of a record before its block is read.
pub(super) struct Record {
    pub(super) offset: u64,
    pub(super) url: Option<String>,
    /// Bytes of the block that are still to be read.
    pub(super) left: u64,
    /// Why the block is known to be shorter than stated.
    pub(super) short: Option<String>,
}

impl<R: Read + Seek> Iterator for Records<R> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        while self.ready.is_empty() && !self.done {
            self.read_record();
        }
        self.ready.pop_front()
    }
}

impl<R: Read + Seek> Records<R> {
    pub(super) fn new(stream: Stream<R>, format: Format, name: String) -> Self {
        Self {
            stream,
            format,
            name,
            max_record: MAX_RECORD,
            line: Vec::new(),
            warc: Headers::default(),
            http: Headers::default(),
            ready: VecDeque::new(),
            explained: None,
            found: false,
            done: false,
        }
    }

    /// Reads up to the end of the next record; what came of it is in `ready`.
    fn read_record(&mut self) {
        let Some(offset) = self.find_record() else {
            self.done = true;
            if !self.found {
                self.reject(None, None, format!("no {} record found", self.format.name()));
            }
            return;
        };
        self.explained = None;
        self.stream.open_record(true);
        let record = Record { offset, url: None, left: 0, short: None };
        match self.format {
            Format::Warc | Format::Wet => self.read_warc(record),
            Format::Arc => self.read_arc(record),
        }
        self.stream.open_record(false);
    }

    /// Moves behind the first line of the next record and returns its offset; `None` at the end of the file.
    fn find_record(&mut self) -> Option<u64> {
        let mut foreign: Option<(u64, u64)> = None;
        let mut line_starts = true;
        loop {
            if !self.stream.fill() {
                let clean = matches!(self.stream.stop(), Some(Stop::End | Stop::NextRecord));
                if !clean && self.explained != Some(self.stream.offset()) {
                    self.reject(Some(self.stream.offset()), None, self.why_short());
                } else if let (true, Some((offset, bytes))) = (clean, foreign) {
                    self.reject_foreign(offset, bytes);
                }
                foreign = None;
                if !self.stream.resume() {
                    return None;
                }
                line_starts = true;
                continue;
            }
            let offset = self.stream.offset();
            self.line.clear();
            let starts = self.format.starts();
            let line_ends = self.stream.read_line(&mut self.line, starts.line_bytes() as u64);
            if line_starts && starts.line(&self.line) {
                self.found = true;
                if let Some((offset, bytes)) = foreign {
                    self.reject_foreign(offset, bytes);
                }
                return Some(offset);
            }
            line_starts = line_ends;
            // Zeros fill up the last block of some media.
            if self.line.iter().any(|byte| !byte.is_ascii_whitespace() && *byte != 0) {
                foreign.get_or_insert((offset, 0)).1 += self.line.len() as u64;
            }
        }
    }

    fn reject_foreign(&mut self, offset: u64, bytes: u64) {
        // In a file without any record there is more to say.
        if self.explained.is_none() && self.found {
            self.reject(Some(offset), None, format!("{bytes} bytes here are no {} record", self.format.name()));
        }
    }

    /// A length that runs past the end of a plain file is cut at the next record, or else at the end.
    pub(super) fn bound_by_file(&mut self, record: &mut Record) {
        if let Some(rest) = self.stream.remaining()
            && record.left > rest
        {
            let next = self.stream.distance_to_record();
            record.short = Some(match next {
                Some(_) => format!("record has fewer bytes than its Content-Length of {}", record.left),
                None => format!("record of {} bytes is cut by the end of the file", record.left),
            });
            record.left = next.unwrap_or(rest);
        }
    }

    /// Passes over the rest of the record and the blank lines behind it, and hands out what came of it: at most one
    /// capture, and at most one reject.
    pub(super) fn close_record(&mut self, record: Record, outcome: Result<Option<RawCapture>, String>) {
        let mut broken = record.short;
        if self.stream.skip(record.left) < record.left && broken.is_none() {
            broken = Some(self.why_short());
        }
        self.stream.open_record(false);
        let mut clipped = None;
        if broken.is_none() {
            let member = self.stream.offset();
            self.skip_blank();
            // The checksum of a member is met only behind the last byte of its record.
            match self.stream.stop() {
                Some(Stop::Corrupt(_) | Stop::Failed(_)) if self.stream.offset() == member => {
                    broken = Some(self.why_short());
                }
                Some(Stop::CutMember) if self.stream.offset() == member => clipped = Some(self.why_short()),
                _ => {}
            }
        }
        let (capture, unfit) = match outcome {
            Ok(capture) => (capture, None),
            Err(reason) => (None, Some(reason)),
        };
        if let Some(mut capture) = capture {
            if let Some(reason) = &broken {
                capture.truncated = Some(reason.clone());
            }
            self.ready.push_back(Ok(capture));
        }
        let damaged = broken.is_some() || clipped.is_some();
        if let Some(reason) = broken.or(clipped).or(unfit) {
            self.reject(Some(record.offset), record.url, reason);
        }
        if damaged {
            self.explained = Some(record.offset);
            self.done |= !self.stream.resume();
        }
    }

    fn skip_blank(&mut self) {
        while self.stream.fill() {
            let data = self.stream.data();
            let blank = data.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let all = blank == data.len();
            self.stream.consume(blank);
            if !all {
                return;
            }
        }
    }

    /// The rest of the block, as much of it as there is.
    pub(super) fn read_bytes(&mut self, record: &mut Record) -> Vec<u8> {
        let trusted = usize::try_from(record.left.min(MAX_TRUST)).expect("a small number");
        let mut bytes = Vec::with_capacity(trusted);
        while record.left > 0 && self.stream.fill() {
            let data = self.stream.data();
            let take = usize::try_from(record.left).map_or(data.len(), |left| left.min(data.len()));
            bytes.extend_from_slice(&data[..take]);
            self.stream.consume(take);
            record.left -= take as u64;
        }
        bytes
    }

    pub(super) fn why_short(&self) -> String {
        match self.stream.stop() {
            Some(Stop::End) => "file ends inside the record".to_owned(),
            Some(Stop::CutMember) => format!("file ends inside a {}", self.stream.member_name()),
            Some(Stop::Corrupt(why)) => format!("damaged {}: {why}", self.stream.member_name()),
            Some(Stop::NextRecord) => "record has fewer bytes than its Content-Length".to_owned(),
            Some(Stop::Failed(why)) => why.clone(),
            None => "record is incomplete".to_owned(),
        }
    }

    pub(super) fn reject(&mut self, source_offset: Option<u64>, url: Option<String>, reason: impl Into<String>) {
        self.found = true;
        self.ready.push_back(Err(Reject { source_file: self.name.clone(), source_offset, url, reason: reason.into() }));
    }
}
