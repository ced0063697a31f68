mod fold;
mod referred;
mod resolve;

use super::*;
use crate::model::{Digest, Revisit, TimeSource, Timestamp};
use crate::tables::ingest::ContentFacts;

fn note(minute: i64, status: u16) -> CaptureNote {
    CaptureNote {
        url: "http://a/".into(),
        fetched_at: Timestamp(minute),
        fetched_at_source: TimeSource::Header,
        status: Some(status),
        content_type: None,
        last_modified: None,
        etag: None,
        archive_digest: None,
        revisit: None,
        payload: None,
        text: NotedText::Parsed(ContentFacts {
            title: None,
            charset: None,
            text_digest: Digest::of(&minute.to_le_bytes()),
            text_bytes: 8,
            content_digest: Digest::of(b"c"),
            change_digest: Digest::of(b"c"),
            masked_text_digest: Digest::of(b"m"),
            canonical: None,
            structure_digest: None,
            elements_digest: None,
        }),
        suspect: None,
        sign: None,
        broken: false,
        source_file: "x.warc".into(),
        source_offset: 0,
        sequence: 0,
    }
}

fn revisit(minute: i64, status: u16, digest: Option<&str>, of: Option<&str>) -> CaptureNote {
    CaptureNote {
        revisit: Some(Revisit { refers_to_url: of.map(Into::into), refers_to_date: None }),
        archive_digest: digest.map(Into::into),
        text: NotedText::None,
        ..note(minute, status)
    }
}
