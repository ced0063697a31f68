//! The HTTP responses inside records, and what their headers say of a capture.

use crate::model::{RawCapture, Suspect, TimeSource, Timestamp};

use super::headers::{Block, Headers};
use super::{Record, Records};

pub(crate) enum NotHttp {
    /// The file ends, or is damaged, before the header does: `close_record` says so.
    Cut,
    Reason(&'static str),
}

impl Records {
    /// Reads the HTTP header. Interim responses (100, 103) before the final one are passed over.
    pub(crate) fn read_http(&mut self, record: &mut Record) -> Result<(), NotHttp> {
        loop {
            let (block, taken) = self.http.read(&mut self.stream, b"", record.left);
            record.left -= taken;
            match block {
                Block::Whole => {}
                Block::Stopped => return Err(NotHttp::Cut),
                Block::TooLong => return Err(NotHttp::Reason("HTTP header is too long")),
            }
            // If a plain file ends inside the header, the block ends at its limit without a blank line.
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
}

/// Adds what the header of a response says.
pub(crate) fn add_http(http: &Headers, capture: &mut RawCapture) {
    capture.status = http.status();
    capture.content_type = http.get("Content-Type");
    capture.content_encoding = http.get("Content-Encoding");
    capture.transfer_encoding = http.get("Transfer-Encoding");
    capture.etag = http.get("ETag");
    capture.wall = wall(http);
    let modified = http.get("Last-Modified").and_then(|date| Timestamp::parse_http(&date));
    capture.last_modified = modified.map(|time| (time, TimeSource::Header));
}

/// What those who stand between crawlers and servers say in the headers of their own pages.
fn wall(http: &Headers) -> Option<Suspect> {
    let says = |name: &str, value: &str| http.get(name).is_some_and(|said| said.trim().eq_ignore_ascii_case(value));
    let challenges =
        [("cf-mitigated", "challenge"), ("x-amzn-waf-action", "challenge"), ("x-amzn-waf-action", "captcha")];
    if challenges.iter().any(|(name, value)| says(name, value)) || says("x-vercel-mitigated", "challenge") {
        return Some(Suspect::Challenge);
    }
    let blocks = http.get("x-sucuri-block").is_some() || says("x-vercel-mitigated", "deny");
    blocks.then_some(Suspect::Block)
}

/// Compares a body with its HTTP `Content-Length`. That header counts encoded bytes, so it says nothing of a body that
/// is chunked or that the archive holds decoded, nor of a response that never has a body.
pub(crate) fn shorter_than_stated(http: &Headers, status: Option<u16>, body: &[u8]) -> Option<String> {
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
