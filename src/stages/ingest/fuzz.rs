//! The fuzzer of archives, with what ingest does to each capture.

use std::path::Path;

use super::read::MAX_PAYLOAD;
use crate::archive::fuzz::{Report, Subject, fuzz};
use crate::model::Body;
use crate::text::{TextReader, encoding, url};

/// Reads damaged archives as ingest does, up to the text of pages. See [`crate::archive::fuzz`].
pub fn fuzz_archives(subject: Subject, seed: u64, scratch: &Path, go_on: impl FnMut(u64) -> bool) -> Report {
    let mut text = TextReader::new(false);
    fuzz(subject, seed, 0, scratch, go_on, |capture| {
        let Ok(url) = url::normalise(&capture.url, false) else { return };
        let body = match capture.body {
            Body::Bytes(bytes) => bytes,
            Body::File(path) => crate::store::files::read_capped(&path, MAX_PAYLOAD).unwrap_or_default(),
            Body::None => return,
        };
        let (transfer, content) = (capture.transfer_encoding.as_deref(), capture.content_encoding.as_deref());
        if let Ok(payload) = encoding::decode_body(body, transfer, content, MAX_PAYLOAD) {
            text.read(&payload.bytes, capture.content_type.as_deref(), &url);
        }
    })
}
