//! What the records of WARC files say, of any writer.
//!
//! `response`, `revisit` and `resource` records of web addresses are captures, and in WET files (`wet`) `conversion`
//! records. In other files a conversion is passed over, for the page that it was made from stands there too.

use crate::archive::detect::Search;
use crate::archive::is_http;
use crate::archive::records::format::Format;
use crate::archive::records::headers::{Block, Headers};
use crate::archive::records::http::{NotHttp, add_http, shorter_than_stated};
use crate::archive::records::{Record, Records};
use crate::archive::walk::SourceFile;
use crate::model::{Body, RawCapture, Revisit, TimeSource, Timestamp};

use super::{Layout, Rules, first_with_ending, record_files};

/// What the names of WARC files end in.
pub(crate) const ENDING: &str = ".warc";
/// How every WARC record starts.
const START: &[u8] = b"WARC/";

#[derive(Debug)]
pub(crate) struct Warc;

impl Rules for Warc {
    fn expected(&self) -> &'static str {
        "WARC files, plain, gzip or zstd"
    }

    fn evidence(&self, files: &[SourceFile]) -> String {
        format!("{} starts with a WARC record", first_with_ending(files, self.endings()))
    }

    fn endings(&self) -> &'static [&'static str] {
        &[ENDING, ".warc.gz", ".warc.zst"]
    }

    fn format(&self) -> Option<&'static dyn Format> {
        Some(&Self)
    }

    fn without_status(&self) -> &'static str {
        "resource"
    }

    fn find(&self, search: &mut Search<'_>, archives: &[usize]) {
        record_files::find(search, archives, Layout::Warc, false);
    }
}

impl Format for Warc {
    fn name(&self) -> &'static str {
        "WARC"
    }

    fn starts_file(&self, text: &[u8]) -> bool {
        self.starts_member(text) && !holds_conversions(text)
    }

    fn starts_member(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(START)
    }

    fn member_bytes(&self) -> usize {
        START.len()
    }

    /// `WARC/1.0` and its like.
    fn is_first_line(&self, line: &[u8]) -> bool {
        line.trim_ascii_end().strip_prefix(START).is_some_and(|version| {
            (3..=5).contains(&version.len()) && version.iter().all(|&byte| byte.is_ascii_digit() || byte == b'.')
        })
    }

    fn line_bytes(&self) -> usize {
        256
    }

    fn needle(&self) -> &'static [u8] {
        b"\nWARC/"
    }

    fn read_record(&self, records: &mut Records, record: Record) {
        records.read_warc(record, false);
    }
}

/// Whether the first record of a file, besides those that describe it, is a conversion. This makes it a WET file.
pub(super) fn holds_conversions(mut text: &[u8]) -> bool {
    let mut headers = Headers::default();
    loop {
        text = text.trim_ascii_start();
        let Some(end) = headers.parse(text).filter(|_| text.starts_with(START)) else {
            return false;
        };
        match headers.get("WARC-Type").unwrap_or_default().to_ascii_lowercase().as_str() {
            "conversion" => return true,
            "warcinfo" => {}
            _ => return false,
        }
        let length = headers.get("Content-Length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let Some(rest) = text.get(end..).and_then(|rest| rest.get(length..)) else {
            return false;
        };
        text = rest;
    }
}

impl Records {
    /// Reads the record whose version line was just read. `conversions`: texts that were made from pages are captures.
    pub(super) fn read_warc(&mut self, mut record: Record, conversions: bool) {
        match self.header.read(&mut self.stream, &self.line, u64::MAX).0 {
            Block::Whole => self.read_after_header(record, conversions),
            Block::Stopped => {
                record.short = Some(self.why_short());
                self.close_record(record, Ok(None));
            }
            Block::TooLong => {
                self.reject(Some(record.offset), None, "record header is too long");
                self.explained = Some(record.offset);
            }
        }
    }

    fn read_after_header(&mut self, mut record: Record, conversions: bool) {
        let Some(length) = self.block_length(record.offset) else {
            self.reject(Some(record.offset), self.target_url(), "record has no valid Content-Length");
            self.explained = Some(record.offset);
            return;
        };
        record.left = length;
        self.bound_by_file(&mut record);
        let outcome = self.read_block(&mut record, conversions);
        self.close_record(record, outcome);
    }

    /// The stated length of the block. `warcinfo` records without one exist, and end where the next record starts.
    fn block_length(&mut self, offset: u64) -> Option<u64> {
        match self.header.get("Content-Length") {
            Some(length) => length.parse().ok(),
            None if self.record_type() == "warcinfo" => {
                self.explained = Some(offset);
                Some(0)
            }
            None => None,
        }
    }

    fn record_type(&self) -> String {
        self.header.get("WARC-Type").unwrap_or_default().to_ascii_lowercase()
    }

    fn target_url(&self) -> Option<String> {
        self.header.get("WARC-Target-URI").map(|uri| bare_uri(&uri).to_owned()).filter(|uri| !uri.is_empty())
    }

    /// Reads the block if it is one we want, and leaves the unread part to `close_record`. `Err` says why a record
    /// that should be a capture is none.
    fn read_block(&mut self, record: &mut Record, conversions: bool) -> Result<Option<RawCapture>, String> {
        let kind = self.record_type();
        if kind.is_empty() {
            return Err("record has no WARC-Type".to_owned());
        }
        match kind.as_str() {
            "response" | "revisit" | "resource" => {}
            "conversion" if conversions => {}
            _ => return Ok(None),
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
            "resource" | "conversion" => {
                capture.content_type = self.header.get("Content-Type");
                capture.body = Body::Bytes(self.read_bytes(record));
            }
            "revisit" => {
                capture.revisit = Some(self.revisit());
                // Its body was left out on purpose, not cut: wget says `WARC-Truncated: length` of every revisit.
                capture.truncated = None;
                // Without a block, or with one that is no HTTP, the record still says "as before".
                if record.left > 0 && self.read_http(record).is_ok() {
                    add_http(&self.http, &mut capture);
                }
            }
            _ => {
                match self.read_http(record) {
                    Ok(()) => {}
                    Err(NotHttp::Cut) => return Ok(None),
                    Err(NotHttp::Reason(reason)) => return Err(reason.to_owned()),
                }
                add_http(&self.http, &mut capture);
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

    /// What the header of the record says.
    fn capture_from_warc(&self, url: String, offset: u64) -> RawCapture {
        let segment = self.header.get("WARC-Segment-Number").map(|number| format!("segment {number} of a record"));
        RawCapture {
            url,
            fetched_at: self
                .header
                .get("WARC-Date")
                .and_then(|date| parse_date(&date))
                .map(|t| (t, TimeSource::Header)),
            status: None,
            content_type: None,
            content_encoding: None,
            transfer_encoding: None,
            last_modified: None,
            etag: None,
            wall: None,
            mirrored: false,
            archive_digest: self.header.get("WARC-Payload-Digest"),
            revisit: None,
            body: Body::None,
            truncated: self.header.get("WARC-Truncated").map(|why| format!("WARC-Truncated: {why}")).or(segment),
            source_file: self.name.clone(),
            source_offset: offset,
        }
    }

    fn revisit(&self) -> Revisit {
        Revisit {
            refers_to_url: self.header.get("WARC-Refers-To-Target-URI").map(|uri| bare_uri(&uri).to_owned()),
            refers_to_date: self.header.get("WARC-Refers-To-Date").and_then(|date| parse_date(&date)),
        }
    }
}

/// Some writers (wget) put URIs into angle brackets.
fn bare_uri(uri: &str) -> &str {
    let uri = uri.trim();
    uri.strip_prefix('<').and_then(|uri| uri.strip_suffix('>')).unwrap_or(uri).trim()
}

/// RFC 3339 as the standard wants it; without its zone or as 14 digits, both UTC, as some writers have it.
pub(crate) fn parse_date(date: &str) -> Option<Timestamp> {
    let date = date.trim();
    if date.len() == 14 && date.bytes().all(|byte| byte.is_ascii_digit()) {
        let (d, t) = date.split_at(8);
        let full = format!("{}-{}-{}T{}:{}:{}Z", &d[..4], &d[4..6], &d[6..], &t[..2], &t[2..4], &t[4..]);
        return Timestamp::parse_rfc3339(&full);
    }
    Timestamp::parse_rfc3339(date).or_else(|| Timestamp::parse_rfc3339(&format!("{date}Z")))
}

#[cfg(test)]
mod tests;
