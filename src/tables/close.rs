//! The table that `close` writes.

use crate::model::Timestamp;
use crate::tables::record::{Table, record};

record! {
    /// A snapshot in numbers.
    #[derive(serde::Serialize, serde::Deserialize)]
    pub struct SnapshotRow {
        time: Timestamp = "the snapshot's time: from its name, else its newest capture",
        whole: bool = "pages has all pages of the snapshot; else only those of URLs that it touched",
        base: bool = "it stores all texts and links, and what is known of all URLs",
        incomplete: bool = "the crawl ended before it was done: absent pages were carried, not deleted",
        layout: String = "layouts of its folder, joined by +",
        captures: i64 = "captures, good or not",
        pages: i64 = "pages of the snapshot, carried ones included",
        added: i64 = "pages of URLs that no earlier snapshot has a page of",
        modified: i64 = "pages that differ from the last good page of their URL",
        unchanged: i64 = "pages that do not",
        carried: i64 = "pages that the crawl did not bring, as an earlier snapshot left them",
        deleted: i64 = "pages of the snapshot before that are no longer there",
        suspects: i64 = "captures that are no pages though the server says so",
        rejects: i64 = "what could not be used",
        mentions: i64 = "mentions on the pages of the snapshot, of all extractors",
        mentions_added: i64 = "mentions that came",
        mentions_deleted: i64 = "mentions that went",
        failed_extractions: i64 = "pages and extractors that failed in the snapshot",
        deferred_extractions: i64 = "pages and extractors that wait for a budget",
        text_bytes: i64 = "text of all pages",
        new_text_bytes: i64 = "text of added and changed pages that stood nowhere on the page before",
        alerts: i64 = "watches that fired",
        price: Option<f64> = "what asking extractors cost in the snapshot; NULL: none has a price",
    }
}

impl Table for SnapshotRow {
    const NAME: &'static str = "snapshots";
    const ABOUT: &'static str = "one row per snapshot, written last: what it brought, in numbers";
}
