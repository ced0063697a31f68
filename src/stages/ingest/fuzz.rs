//! The fuzzer of archives, with what ingest does to each capture.

use std::path::Path;

use super::judge::judge;
use crate::archive::fuzz::{Report, Subject, fuzz};
use crate::text::TextReader;

/// Reads damaged archives as ingest does, up to the text of pages. See [`crate::archive::fuzz`].
pub fn fuzz_archives(subject: Subject, seed: u64, scratch: &Path, go_on: impl FnMut(u64) -> bool) -> Report {
    let mut text = TextReader::new(false);
    fuzz(subject, seed, 0, scratch, go_on, |mut capture| {
        if let Some(judged) = judge(&mut capture, false, |_| {})
            && let Some(payload) = judged.payload
        {
            text.read(&payload, capture.content_type.as_deref(), &judged.url);
        }
    })
}
