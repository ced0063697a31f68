//! Archive files that are a sequence of records: WARC, its derivative WET, and ARC; plain, gzip or zstd.
//!
//! Problem: archives of many years and many writers are clipped, padded, mislabelled and at odds with their own
//! headers, and a library that reads the good ones fast is silent about the bad ones.
//!
//! Idea: a record is a first line or header block, a block of bytes of the stated length, and blank lines. Each is read
//! through [`Stream`], which knows why bytes end; so every record is whole, or there is a [`Reject`] with its offset.
//! Behind damage reading goes on at the next thing that starts a record: a compressed member, or in plain files a
//! line.
//!
//! | file | what it does |
//! | --- | --- |
//! | `source` | opens the bytes of a file, of a part of it, or of an entry of a zip file |
//! | `codec`, `stream` | decodes compressed members and says where bytes come from and why they end |
//! | `format` | what a format of records must say of itself |
//! | here, `headers`, `http` | finds and bounds records, and reads headers and the HTTP responses inside |
//! | `split`, `record_file` | where a large file can be split, and a file or piece of one as a reader of captures |
//!
//! What the header of a record means belongs to its layout (`layouts::warc`, `wet`, `arc`), not here.
//!
//! A record that the file cuts short yields both the capture, marked `truncated`, and one reject of the same file and
//! offset. A body shorter than its HTTP `Content-Length` inside a whole record yields the marked capture only.
//!
//! Cost: that of decompression plus one copy of each body; memory: the largest body, at most [`MAX_BODY`].

mod codec;
pub(crate) mod format;
pub(crate) mod headers;
pub(crate) mod http;
mod record_file;
pub(crate) mod source;
mod split;
pub(crate) mod stream;

use std::collections::VecDeque;

use crate::bounds::{self, MAX_BODY};
use crate::model::{Loss, RawCapture, Reject};

use format::Format;
use headers::Headers;
use source::Bytes;
use stream::{Stop, Stream};

pub(crate) use codec::Packing;
#[cfg(test)]
pub(crate) use record_file::RecordFile;
pub(crate) use record_file::RecordsPart;

/// Memory that is reserved because a header states a length. Beyond it buffers grow with the bytes that really come.
const MAX_TRUST: u64 = 1 << 20;

pub(crate) type Item = Result<RawCapture, Reject>;

/// The records of one stream.
pub(crate) struct Records {
    pub(crate) stream: Stream<Box<dyn Bytes>>,
    format: &'static dyn Format,
    pub(crate) name: String,
    pub(crate) max_record: u64,
    /// The first line of the record about to be read.
    pub(crate) line: Vec<u8>,
    /// Headers of the record, and of the HTTP response in it. Kept from record to record for their memory.
    pub(crate) header: Headers,
    pub(crate) http: Headers,
    ready: VecDeque<Item>,
    /// Offset of the last record if it was rejected already. The bytes from there to the next record need no reject
    /// of their own.
    pub(crate) explained: Option<u64>,
    /// Whether a record or a reject came out.
    found: bool,
    done: bool,
}

/// What is known of a record before its block is read.
pub(crate) struct Record {
    pub(crate) offset: u64,
    pub(crate) url: Option<String>,
    /// Bytes of the block that are still to be read.
    pub(crate) left: u64,
    /// Why the block is known to be shorter than stated.
    pub(crate) short: Option<String>,
}

impl Iterator for Records {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        while self.ready.is_empty() && !self.done {
            self.read_record();
        }
        self.ready.pop_front()
    }
}

impl Records {
    pub(crate) fn new(stream: Stream<Box<dyn Bytes>>, format: &'static dyn Format, name: String) -> Self {
        Self {
            stream,
            format,
            name,
            max_record: MAX_BODY as u64,
            line: Vec::new(),
            header: Headers::default(),
            http: Headers::default(),
            ready: VecDeque::new(),
            explained: None,
            found: false,
            done: false,
        }
    }

    /// The records of bytes in memory.
    #[cfg(test)]
    pub(crate) fn of(bytes: Vec<u8>, format: &'static dyn Format, name: &str) -> Self {
        let bytes: Box<dyn Bytes> = Box::new(std::io::Cursor::new(bytes));
        Self::new(Stream::new(bytes, format).unwrap(), format, name.to_owned())
    }

    /// Reads up to the end of the next record; what came of it is in `ready`.
    fn read_record(&mut self) {
        let Some(offset) = self.find_record() else {
            self.done = true;
            if !self.found {
                self.push_reject(None, None, format!("no {} record found", self.format.name()), Loss::Rest);
            }
            return;
        };
        self.explained = None;
        self.stream.open_record(true);
        let record = Record { offset, url: None, left: 0, short: None };
        self.format.read_record(self, record);
        self.stream.open_record(false);
    }

    /// Moves behind the first line of the next record and returns its offset; `None` at the end of the file.
    fn find_record(&mut self) -> Option<u64> {
        let mut foreign: Option<(u64, u64)> = None;
        let mut line_starts = true;
        // What does not belong here must not swallow the first line of a member that starts with a record either.
        self.stream.open_record(true);
        loop {
            if !self.stream.fill() {
                let clean = matches!(self.stream.stop(), Some(Stop::End | Stop::NextRecord));
                // A record follows, here or in the next piece of the file.
                self.found |= matches!(self.stream.stop(), Some(Stop::NextRecord));
                if !clean && self.explained != Some(self.stream.offset()) {
                    let torn = matches!(self.stream.stop(), Some(Stop::Corrupt(_)));
                    let lost = if torn { Loss::Captures } else { Loss::Rest };
                    self.push_reject(Some(self.stream.offset()), None, self.why_short(), lost);
                } else if let (true, Some((offset, bytes))) = (clean, foreign) {
                    // A line without an end may be the first one of a record that was cut.
                    self.reject_foreign(offset, bytes, if line_starts { Loss::Nothing } else { Loss::Captures });
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
            let line_ends = self.stream.read_line(&mut self.line, self.format.line_bytes() as u64);
            if line_starts && self.format.is_first_line(&self.line) {
                self.found = true;
                if let Some((offset, bytes)) = foreign {
                    self.reject_foreign(offset, bytes, Loss::Nothing);
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

    fn reject_foreign(&mut self, offset: u64, bytes: u64, lost: Loss) {
        // A file without any record gets one reject at its end that says so.
        if self.explained.is_none() && self.found {
            let reason = format!("{bytes} bytes here are no {} record", self.format.name());
            self.push_reject(Some(offset), None, reason, lost);
        }
    }

    /// A length that runs past the end of a plain file is cut at the next record, or else at the end.
    pub(crate) fn bound_by_file(&mut self, record: &mut Record) {
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
    pub(crate) fn close_record(&mut self, record: Record, outcome: Result<Option<RawCapture>, String>) {
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
        let mut lost = Loss::Nothing;
        if damaged {
            self.explained = Some(record.offset);
            // Of a record that a torn member hides nobody knows the URL.
            lost = match self.stream.stop() {
                Some(Stop::End | Stop::CutMember | Stop::Failed(_)) => Loss::Rest,
                Some(Stop::Corrupt(_)) if record.url.is_none() => Loss::Captures,
                _ if self.stream.remaining() == Some(0) => Loss::Rest,
                _ => Loss::Nothing,
            };
            self.done |= !self.stream.resume();
        }
        if let Some(reason) = broken.or(clipped).or(unfit) {
            self.push_reject(Some(record.offset), record.url, reason, lost);
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
    pub(crate) fn read_bytes(&mut self, record: &mut Record) -> Vec<u8> {
        let trusted = usize::try_from(record.left.min(MAX_TRUST)).expect("a small number");
        let mut bytes = Vec::with_capacity(trusted);
        while record.left > 0 && self.stream.fill() {
            let data = self.stream.data();
            let take = usize::try_from(record.left).map_or(data.len(), |left| left.min(data.len()));
            bounds::before_growing(bytes.len() + take);
            bytes.extend_from_slice(&data[..take]);
            self.stream.consume(take);
            record.left -= take as u64;
        }
        bytes
    }

    pub(crate) fn why_short(&self) -> String {
        match self.stream.stop() {
            Some(Stop::End) => "file ends inside the record".to_owned(),
            Some(Stop::CutMember) => format!("file ends inside a {}", self.stream.member_name()),
            Some(Stop::Corrupt(why)) => format!("damaged {}: {why}", self.stream.member_name()),
            Some(Stop::NextRecord) => "record has fewer bytes than its Content-Length".to_owned(),
            Some(Stop::Failed(why)) => why.clone(),
            None => "record is incomplete".to_owned(),
        }
    }

    pub(crate) fn reject(&mut self, source_offset: Option<u64>, url: Option<String>, reason: impl Into<String>) {
        self.push_reject(source_offset, url, reason.into(), Loss::Nothing);
    }

    fn push_reject(&mut self, source_offset: Option<u64>, url: Option<String>, reason: String, lost: Loss) {
        self.found = true;
        self.ready.push_back(Err(Reject { source_file: self.name.clone(), source_offset, url, reason, lost }));
    }
}
