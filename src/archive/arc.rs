//! ARC files, versions 1 and 2, as crawlers wrote them before there was WARC.
//!
//! A record is one line ([`ArcLine`]), a block of the length that it states, and a line feed. The first describes the
//! file itself. The block is an HTTP response; where it is not, it is the body alone, as servers of the time also sent.

use std::io::{Read, Seek};

use crate::model::{Body, RawCapture, TimeSource};

use super::arc_line::ArcLine;
use super::http::{NotHttp, add_http, shorter_than_stated};
use super::is_http;
use super::records::{Record, Records};
use super::warc::parse_date;

/// Enough to tell a response from a body.
const HTTP_START: &[u8] = b"HTTP/";

impl<R: Read + Seek> Records<R> {
    /// Reads the record whose line was just read.
    pub(super) fn read_arc(&mut self, mut record: Record) {
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

    /// Does the block start as a response does? Looks at the bytes at hand, where all of a member's start is.
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
#[path = "arc_tests.rs"]
mod tests;
