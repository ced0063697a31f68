//! WARC files of any writer, plain or gzip (a member for each record, or one for all).
//!
//! Problem: archives of many years and many writers are clipped, padded, mislabelled and at odds with their own
//! headers, and a library that reads the good ones fast is silent about the bad ones.
//!
//! Idea: a record is a header block, a block of bytes of the stated length, and blank lines. Each of the three is read
//! through [`Stream`], which knows why bytes end; so every record is whole, or there is a [`Reject`] with its offset.
//! Behind damage reading goes on at the next thing that starts a record: a gzip member, or in plain files a line.
//!
//! A record that the file cuts short yields both the capture, marked `truncated`, and one reject of the same file and
//! offset. A body shorter than its HTTP `Content-Length` inside a whole record yields the marked capture only.
//!
//! Cost: that of decompression plus one copy of each body; memory: the largest body, at most [`MAX_RECORD`].

use std::collections::VecDeque;
use std::io::{Read, Seek};
use std::path::PathBuf;

use fs_err::File;

use crate::model::{Body, RawCapture, Reject, Revisit, TimeSource, Timestamp};

use super::headers::{Block, Headers};
use super::stream::{Stop, Stream, is_version_line};
use super::{CaptureReader, is_http};

/// Larger records are passed over: a page of this size is no page.
const MAX_RECORD: u64 = 1 << 30;
/// Memory taken on the word of a header; beyond it buffers grow with the bytes that really come.
const MAX_TRUST: u64 = 1 << 20;
/// Longest line looked at while searching for a record.
const MAX_VERSION_LINE: u64 = 256;

type Item = Result<RawCapture, Reject>;

/// A WARC file, opened at the first `next`.
pub(super) struct WarcReader {
    name: String,
    state: State,
}

enum State {
    Closed(PathBuf),
    Open(Box<Records<File>>),
    Failed,
}

impl WarcReader {
    pub(super) fn new(path: PathBuf, name: String) -> Self {
        Self { name, state: State::Closed(path) }
    }
}

impl Iterator for WarcReader {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if let State::Closed(path) = &self.state {
            match File::open(path).and_then(Stream::new) {
                Ok(stream) => self.state = State::Open(Box::new(Records::new(stream, self.name.clone()))),
                Err(error) => {
                    self.state = State::Failed;
                    return Some(Err(Reject {
                        source_file: self.name.clone(),
                        source_offset: None,
                        url: None,
                        reason: error.to_string(),
                    }));
                }
            }
        }
        match &mut self.state {
            State::Open(records) => records.next(),
            State::Closed(_) | State::Failed => None,
        }
    }
}

impl CaptureReader for WarcReader {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes_read(&self) -> u64 {
        match &self.state {
            State::Open(records) => records.stream.raw_position(),
            State::Closed(_) | State::Failed => 0,
        }
    }
}

/// The records of one stream.
struct Records<R> {
    stream: Stream<R>,
    name: String,
    max_record: u64,
    /// The version line of the record about to be read.
    line: Vec<u8>,
    warc: Headers,
    http: Headers,
    ready: VecDeque<Item>,
    /// Offset of the record that the bytes up to the next one belong to, if what is wrong with it was said already.
    explained: Option<u64>,
    /// A record or a reject came out.
    found: bool,
    done: bool,
}

/// What is known of a record before its block is read.
struct Record {
    offset: u64,
    url: Option<String>,
    /// Bytes of the block that are still to be read.
    left: u64,
    /// Why the block is known to be shorter than stated.
    short: Option<String>,
}

enum NotHttp {
    /// The file ends, or is damaged, before the header does: `close_record` says so.
    Cut,
    Reason(&'static str),
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
    fn new(stream: Stream<R>, name: String) -> Self {
        Self {
            stream,
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
                self.reject(None, None, "no WARC record found");
            }
            return;
        };
        self.explained = None;
        self.stream.open_record(true);
        let mut record = Record { offset, url: None, left: 0, short: None };
        match self.warc.read(&mut self.stream, &self.line, u64::MAX).0 {
            Block::Whole => self.read_after_header(record),
            Block::Stopped => {
                record.short = Some(self.why_short());
                self.close_record(record, Ok(None));
            }
            Block::TooLong => {
                self.reject(Some(offset), None, "record header is too long");
                self.explained = Some(offset);
            }
        }
        self.stream.open_record(false);
    }

    fn read_after_header(&mut self, mut record: Record) {
        let Some(length) = self.block_length(record.offset) else {
            self.reject(Some(record.offset), self.target_url(), "record has no valid Content-Length");
            self.explained = Some(record.offset);
            return;
        };
        record.left = length;
        self.bound_by_file(&mut record);
        let outcome = self.read_block(&mut record);
        self.close_record(record, outcome);
    }

    /// Moves behind the next version line and returns the offset of its record; `None` at the end of the file.
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
            let line_ends = self.stream.read_line(&mut self.line, MAX_VERSION_LINE);
            if line_starts && is_version_line(&self.line) {
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
            self.reject(Some(offset), None, format!("{bytes} bytes here are no WARC record"));
        }
    }

    /// The stated length of the block. `warcinfo` records without one exist, and end where the next record starts.
    fn block_length(&mut self, offset: u64) -> Option<u64> {
        match self.warc.get("Content-Length") {
            Some(length) => length.parse().ok(),
            None if self.record_type() == "warcinfo" => {
                self.explained = Some(offset);
                Some(0)
            }
            None => None,
        }
    }

    fn record_type(&self) -> String {
        self.warc.get("WARC-Type").unwrap_or_default().to_ascii_lowercase()
    }

    fn target_url(&self) -> Option<String> {
        self.warc.get("WARC-Target-URI").map(|uri| bare_uri(&uri).to_owned()).filter(|uri| !uri.is_empty())
    }

    /// A length that runs past the end of a plain file is cut at the next record, or else at the end.
    fn bound_by_file(&mut self, record: &mut Record) {
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

    /// Reads the block if it is one we want, and leaves the unread part to `close_record`. `Err` says why a record
    /// that should be a capture is none.
    fn read_block(&mut self, record: &mut Record) -> Result<Option<RawCapture>, String> {
        let kind = self.record_type();
        if kind.is_empty() {
            return Err("record has no WARC-Type".to_owned());
        }
        if !matches!(kind.as_str(), "response" | "revisit" | "resource") {
            return Ok(None);
        }
        record.url = self.target_url();
        let url = record.url.clone().ok_or_else(|| format!("{kind} record has no WARC-Target-URI"))?;
        if !is_http(&url) {
            return Ok(None);
        }
        if record.left > self.max_record {
            return Err(format!("record of {} bytes is over the limit of {}", record.left, self.max_record));
        }
        let mut capture = self.capture_from_warc(url, record.offset);
        match kind.as_str() {
            "resource" => {
                capture.content_type = self.warc.get("Content-Type");
                capture.body = Body::Bytes(self.read_bytes(record));
            }
            "revisit" => {
                capture.revisit = Some(self.revisit());
                // Left out on purpose is not cut: wget says `WARC-Truncated: length` of every revisit.
                capture.truncated = None;
                // Without a block, or with one that is no HTTP, the record still says "as before".
                if record.left > 0 && self.read_http(record).is_ok() {
                    self.add_http(&mut capture);
                }
            }
            _ => {
                match self.read_http(record) {
                    Ok(()) => {}
                    Err(NotHttp::Cut) => return Ok(None),
                    Err(NotHttp::Reason(reason)) => return Err(reason.to_owned()),
                }
                self.add_http(&mut capture);
                if capture.status != Some(304) {
                    let body = self.read_bytes(record);
                    if capture.truncated.is_none() {
                        capture.truncated = shorter_than_stated(&self.http, capture.status, &body);
                    }
                    capture.body = Body::Bytes(body);
                }
            }
        }
        Ok(Some(capture))
    }

    /// Passes over the rest of the record and the blank lines behind it, and hands out what came of it: at most one
    /// capture, and at most one reject.
    fn close_record(&mut self, record: Record, outcome: Result<Option<RawCapture>, String>) {
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

    /// What the header of the record says.
    fn capture_from_warc(&self, url: String, offset: u64) -> RawCapture {
        let segment = self.warc.get("WARC-Segment-Number").map(|number| format!("segment {number} of a record"));
        RawCapture {
            url,
            fetched_at: self.warc.get("WARC-Date").and_then(|date| parse_date(&date)).map(|t| (t, TimeSource::Header)),
            status: None,
            content_type: None,
            content_encoding: None,
            transfer_encoding: None,
            last_modified: None,
            etag: None,
            archive_digest: self.warc.get("WARC-Payload-Digest"),
            revisit: None,
            body: Body::None,
            truncated: self.warc.get("WARC-Truncated").map(|why| format!("WARC-Truncated: {why}")).or(segment),
            source_file: self.name.clone(),
            source_offset: offset,
        }
    }

    fn revisit(&self) -> Revisit {
        Revisit {
            refers_to_url: self.warc.get("WARC-Refers-To-Target-URI").map(|uri| bare_uri(&uri).to_owned()),
            refers_to_date: self.warc.get("WARC-Refers-To-Date").and_then(|date| parse_date(&date)),
        }
    }

    /// Reads the HTTP header, of the last response where interim ones come before it.
    fn read_http(&mut self, record: &mut Record) -> Result<(), NotHttp> {
        loop {
            let (block, taken) = self.http.read(&mut self.stream, b"", record.left);
            record.left -= taken;
            match block {
                Block::Whole => {}
                Block::Stopped => return Err(NotHttp::Cut),
                Block::TooLong => return Err(NotHttp::Reason("HTTP header is too long")),
            }
            // A header that a plain file cuts ends at the limit, without its blank line.
            if record.left == 0 && record.short.is_some() {
                return Err(NotHttp::Cut);
            }
            if !self.http.first_line().starts_with(b"HTTP/") {
                return Err(NotHttp::Reason("response is not HTTP"));
            }
            let interim = matches!(self.http.status(), Some(100 | 102..=199));
            if !interim || record.left == 0 {
                return Ok(());
            }
        }
    }

    fn add_http(&self, capture: &mut RawCapture) {
        let http = &self.http;
        capture.status = http.status();
        capture.content_type = http.get("Content-Type");
        capture.content_encoding = http.get("Content-Encoding");
        capture.transfer_encoding = http.get("Transfer-Encoding");
        capture.etag = http.get("ETag");
        let modified = http.get("Last-Modified").and_then(|date| Timestamp::parse_http(&date));
        capture.last_modified = modified.map(|time| (time, TimeSource::Header));
    }

    /// The rest of the block, as much of it as there is.
    fn read_bytes(&mut self, record: &mut Record) -> Vec<u8> {
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

    fn why_short(&self) -> String {
        match self.stream.stop() {
            Some(Stop::End) => "file ends inside the record".to_owned(),
            Some(Stop::CutMember) => "file ends inside a gzip member".to_owned(),
            Some(Stop::Corrupt(why)) => format!("damaged gzip member: {why}"),
            Some(Stop::NextRecord) => "record has fewer bytes than its Content-Length".to_owned(),
            Some(Stop::Failed(why)) => why.clone(),
            None => "record is incomplete".to_owned(),
        }
    }

    fn reject(&mut self, source_offset: Option<u64>, url: Option<String>, reason: impl Into<String>) {
        self.found = true;
        self.ready.push_back(Err(Reject { source_file: self.name.clone(), source_offset, url, reason: reason.into() }));
    }
}

/// Some writers (wget) put URIs into angle brackets.
fn bare_uri(uri: &str) -> &str {
    let uri = uri.trim();
    uri.strip_prefix('<').and_then(|uri| uri.strip_suffix('>')).unwrap_or(uri).trim()
}

/// RFC 3339 as the standard wants it; without its zone or as 14 digits, both UTC, as some writers have it.
fn parse_date(date: &str) -> Option<Timestamp> {
    let date = date.trim();
    if date.len() == 14 && date.bytes().all(|byte| byte.is_ascii_digit()) {
        let (d, t) = date.split_at(8);
        let full = format!("{}-{}-{}T{}:{}:{}Z", &d[..4], &d[4..6], &d[6..], &t[..2], &t[2..4], &t[4..]);
        return Timestamp::parse_rfc3339(&full);
    }
    Timestamp::parse_rfc3339(date).or_else(|| Timestamp::parse_rfc3339(&format!("{date}Z")))
}

/// Compares a body with its HTTP `Content-Length`. That header counts encoded bytes, so it says nothing of a body that
/// the archive holds decoded, chunked, or not at all by nature of the response.
fn shorter_than_stated(http: &Headers, status: Option<u16>, body: &[u8]) -> Option<String> {
    if http.get("Transfer-Encoding").is_some_and(|coding| !coding.eq_ignore_ascii_case("identity"))
        || matches!(status, Some(100..=199 | 204 | 205 | 304))
    {
        return None;
    }
    let stated: u64 = http.get("Content-Length")?.parse().ok()?;
    let coding = http.get("Content-Encoding").unwrap_or_default().to_ascii_lowercase();
    let magic: &[u8] = match coding.as_str() {
        "gzip" | "x-gzip" => b"\x1f\x8b",
        "zstd" => b"\x28\xb5\x2f\xfd",
        _ => b"",
    };
    let decoded = !body.is_empty() && !body.starts_with(magic);
    let short = (body.len() as u64) < stated && !decoded;
    short.then(|| format!("body has {} of the {stated} bytes of its Content-Length", body.len()))
}

#[cfg(test)]
#[path = "warc_tests.rs"]
mod tests;
