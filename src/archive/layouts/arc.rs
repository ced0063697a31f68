//! ARC files, versions 1 and 2, as crawlers wrote them before there was WARC.
//!
//! A record is one line ([`ArcLine`]), a block of the length that it states, and a line feed. The first describes the
//! file itself. The block is an HTTP response; where it is not, it is the body alone, as servers of the time also sent.

mod line;

use crate::archive::detect::Search;
use crate::archive::is_http;
use crate::archive::records::format::Format;
use crate::archive::records::http::{NotHttp, add_http, shorter_than_stated};
use crate::archive::records::{Record, Records};
use crate::archive::walk::SourceFile;
use crate::model::{Body, RawCapture, TimeSource};

use super::warc::parse_date;
use super::{Layout, Rules, first_with_ending, record_files};
use line::ArcLine;

/// How a response starts, and a body alone does not.
const HTTP_START: &[u8] = b"HTTP/";
/// Longest first line of a record: its URL and a few words.
const MAX_LINE: usize = 16 << 10;

#[derive(Debug)]
pub(crate) struct Arc;

impl Rules for Arc {
    fn expected(&self) -> &'static str {
        "ARC files, plain or gzip"
    }

    fn evidence(&self, files: &[SourceFile]) -> String {
        format!("{} starts with an ARC record", first_with_ending(files, self.endings()))
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".arc", ".arc.gz", ".arc.zst"]
    }

    fn format(&self) -> Option<&'static dyn Format> {
        Some(&Self)
    }

    fn without_status(&self) -> &'static str {
        "resource"
    }

    fn find(&self, search: &mut Search<'_>, archives: &[usize]) {
        record_files::find(search, archives, Layout::Arc, false);
    }
}

impl Format for Arc {
    fn name(&self) -> &'static str {
        "ARC"
    }

    fn starts_file(&self, text: &[u8]) -> bool {
        text.starts_with(b"filedesc:") || self.starts_member(text)
    }

    fn starts_member(&self, bytes: &[u8]) -> bool {
        let window = &bytes[..bytes.len().min(MAX_LINE)];
        memchr::memchr(b'\n', window).is_some_and(|feed| self.is_first_line(&bytes[..=feed]))
    }

    fn member_bytes(&self) -> usize {
        MAX_LINE
    }

    fn is_first_line(&self, line: &[u8]) -> bool {
        ArcLine::parse(line).is_some()
    }

    fn line_bytes(&self) -> usize {
        MAX_LINE
    }

    fn needle(&self) -> &'static [u8] {
        b"\nhttp"
    }

    fn read_record(&self, records: &mut Records, record: Record) {
        records.read_arc(record);
    }
}

impl Records {
    /// Reads the record whose line was just read.
    fn read_arc(&mut self, mut record: Record) {
        let Some(line) = ArcLine::parse(&self.line) else {
            return;
        };
        record.left = line.length;
        self.bound_by_file(&mut record);
        let outcome = self.read_arc_block(line, &mut record);
        self.close_record(record, outcome);
    }

    fn read_arc_block(&mut self, line: ArcLine, record: &mut Record) -> Result<Option<RawCapture>, String> {
        if !is_http(&line.url) {
            return Ok(None);
        }
        record.url = Some(line.url.clone());
        if record.left > self.max_record {
            return Err(format!("record of {} bytes is over the limit of {}", record.left, self.max_record));
        }
        let date = format!("{:0<14}", line.date);
        let mut capture = RawCapture {
            url: line.url,
            fetched_at: parse_date(&date).map(|time| (time, TimeSource::Header)),
            status: None,
            content_type: line.content_type,
            content_encoding: None,
            transfer_encoding: None,
            last_modified: None,
            etag: None,
            wall: None,
            mirrored: false,
            archive_digest: None,
            revisit: None,
            body: Body::None,
            truncated: None,
            source_file: self.name.clone(),
            source_offset: record.offset,
        };
        if self.is_http_block(record) {
            match self.read_http(record) {
                Ok(()) => {}
                Err(NotHttp::Cut) => return Ok(None),
                Err(NotHttp::Reason(reason)) => return Err(reason.to_owned()),
            }
            let stated_type = capture.content_type.take();
            add_http(&self.http, &mut capture);
            capture.content_type = capture.content_type.or(stated_type);
            if capture.status == Some(304) {
                return Ok(Some(capture));
            }
            let body = self.read_bytes(record);
            capture.truncated = shorter_than_stated(&self.http, capture.status, &body);
            capture.body = Body::Bytes(body);
        } else {
            capture.body = Body::Bytes(self.read_bytes(record));
        }
        Ok(Some(capture))
    }

    /// Whether the block starts as a response does. Only the bytes at hand are looked at; the start of a member is
    /// always among them.
    fn is_http_block(&mut self, record: &Record) -> bool {
        if record.left == 0 || !self.stream.fill() {
            return false;
        }
        let data = self.stream.data();
        let known = data.len().min(HTTP_START.len());
        data[..known] == HTTP_START[..known]
    }
}

#[cfg(test)]
mod tests;
