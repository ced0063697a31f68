//! The tables: names, columns, row types, Arrow schemas. No files.
//!
//! This is the only place where a column's name exists. [`all`] lists what analysts see, in the order in which a
//! run writes it; `ratoon tables` prints it.

pub(crate) mod close;
pub(crate) mod delta;
pub(crate) mod extract;
pub(crate) mod ingest;
pub(crate) mod matching;
pub(crate) mod mentions;
pub(crate) mod nature;
pub(crate) mod plan;
pub(crate) mod record;
pub(crate) mod schedule;
pub(crate) mod stats;

use record::{Column, Record, Table};

/// A table of the schema reference.
pub struct TableInfo {
    pub name: &'static str,
    pub about: &'static str,
    pub columns: Vec<Column>,
}

fn info<T: Table>() -> TableInfo {
    TableInfo { name: T::NAME, about: T::ABOUT, columns: <T as Record>::columns() }
}

#[must_use]
pub fn all() -> Vec<TableInfo> {
    let [web_tuples, web_links, web_joins] =
        delta::of_queries().map(|(name, about, columns)| TableInfo { name, about, columns });
    vec![
        info::<ingest::Capture>(),
        info::<ingest::Page>(),
        info::<ingest::LinkRow>(),
        info::<ingest::RejectRow>(),
        info::<ingest::Head>(),
        info::<ingest::VersionRow>(),
        info::<plan::PlanRow>(),
        info::<matching::RegionRow>(),
        info::<extract::Extraction>(),
        TableInfo {
            name: "mentions/<extractor>",
            about: "one table per extractor, one row per mention, with a column per attribute: a struct of text, start and end, or a list of them",
            columns: mentions::mention_columns(),
        },
        TableInfo {
            name: "answers/<extractor>",
            about: "one table per extractor whose answers are kept, one row per request about a unit, with what it cost",
            columns: <extract::AnswerRow as Record>::columns(),
        },
        info::<extract::MentionDelta>(),
        info::<plan::PlanCost>(),
        info::<extract::AwayRow>(),
        info::<delta::PageDelta>(),
        info::<delta::LinkDelta>(),
        info::<delta::RegionDelta>(),
        web_tuples,
        web_links,
        web_joins,
        info::<delta::TupleDelta>(),
        info::<delta::TupleLinkDelta>(),
        info::<delta::WebSchemaRow>(),
        info::<delta::Alert>(),
        info::<delta::SeenRow>(),
        info::<stats::UpdateRow>(),
        info::<stats::UpdateStatsRow>(),
        info::<stats::EvidenceRow>(),
        info::<schedule::ScheduleRow>(),
        info::<schedule::RecallCurveRow>(),
        info::<close::SnapshotRow>(),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};

    use super::record::View;
    use super::*;
    use crate::model::{Digest, LinkKind, SnapshotId, Timestamp};

    #[test]
    fn every_column_has_a_description() {
        for table in all() {
            for column in table.columns {
                assert!(!column.description.is_empty(), "{}.{}", table.name, column.name);
            }
        }
    }

    /// Records that read some columns of a table name columns that exist there, with the same type.
    #[test]
    fn projections_fit_their_tables() {
        fn fits<P: Record, T: Record>() {
            for column in P::columns() {
                let there = T::columns().into_iter().find(|c| c.name == column.name);
                let there = there.unwrap_or_else(|| panic!("no column {}", column.name));
                // What a deleted page lacks is NULL there, but never met by who reads pages.
                assert_eq!((there.data_type, there.nullable | column.nullable), (column.data_type, there.nullable));
            }
        }
        fits::<ingest::RejectReason, ingest::RejectRow>();
        fits::<ingest::CaptureSuspect, ingest::Capture>();
        fits::<extract::ExtractionOutcome, extract::Extraction>();
        fits::<stats::UpdateMoment, stats::UpdateRow>();
        fits::<stats::SourceRate, stats::UpdateStatsRow>();
        fits::<schedule::PollSummary, schedule::ScheduleRow>();
        fits::<ingest::PageFacts, ingest::Page>();
        fits::<ingest::PagePointer, ingest::Page>();
        fits::<ingest::PageText, ingest::Page>();
        fits::<ingest::PageElements, ingest::Page>();
        fits::<ingest::ElementsPointer, ingest::Page>();
        fits::<ingest::PagePair, ingest::Page>();
        fits::<ingest::PageTitle, ingest::Page>();
        fits::<ingest::TitledText, ingest::Page>();
        fits::<ingest::PageVersion, ingest::Page>();
        fits::<ingest::LinkPointer, ingest::Page>();
        fits::<ingest::PageNode, ingest::Page>();
        fits::<ingest::PageVersionPair, ingest::Page>();
        fits::<ingest::PagePointers, ingest::Page>();
        fits::<ingest::GonePage, ingest::Page>();
        fits::<ingest::Tombstone, ingest::Page>();
        fits::<ingest::PageReturned, ingest::Page>();
        fits::<delta::NewTextBytes, delta::PageDelta>();
        fits::<delta::WebTupleNode, delta::WebTupleRow>();
        fits::<extract::MentionChanged, extract::MentionDelta>();
        fits::<stats::SourceOnly, stats::UpdateRow>();
        fits::<stats::SourceOnly, stats::UpdateStatsRow>();
        fits::<ingest::CaptureOutcome, ingest::Capture>();
        fits::<ingest::PageStanding, ingest::Page>();
        fits::<ingest::CaptureEvidence, ingest::Capture>();
        fits::<ingest::PageEvidence, ingest::Page>();
        fits::<delta::PageNewText, delta::PageDelta>();
    }

    /// Views name text columns that exist in their tables.
    #[test]
    fn views_fit_their_tables() {
        fn fits<V: View>(table: &[Column]) {
            for name in V::COLUMNS {
                let there = table.iter().find(|column| column.name == *name);
                let there = there.unwrap_or_else(|| panic!("no column {name}"));
                assert_eq!((there.type_name().as_str(), there.nullable), ("string", false), "{name}");
            }
        }
        fits::<ingest::LinkView<'_>>(&ingest::LinkRow::columns());
        fits::<ingest::TargetView<'_>>(&ingest::LinkRow::columns());
        for table in [ingest::Page::columns(), ingest::LinkRow::columns(), mentions::mention_columns()] {
            fits::<ingest::UrlOnly<'_>>(&table);
        }
    }

    #[test]
    fn a_view_shows_rows_and_refuses_what_is_none() {
        let link = |target: &str| ingest::LinkRow {
            url: "http://a/".into(),
            target: target.to_owned(),
            label: "a label".to_owned(),
            kind: LinkKind::Global,
            ordinal: 0,
            element: None,
            dated: None,
        };
        let batch = ingest::LinkRow::encode(&[link("http://b/"), link("http://c/")]);
        let mut seen = Vec::new();
        ingest::LinkView::visit(&batch, |link| seen.push((link.target.to_owned(), link.kind))).unwrap();
        assert_eq!(seen, [("http://b/".to_owned(), LinkKind::Global), ("http://c/".to_owned(), LinkKind::Global)]);
        let text = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
        let columns = ingest::LinkView::COLUMNS.iter().map(|name| (*name, text("x")));
        let bad = RecordBatch::try_from_iter(columns).unwrap();
        let error = ingest::LinkView::visit(&bad, |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "column 'kind' has no usable value in row 0");
    }

    #[test]
    fn rows_survive_encoding() {
        let rows = vec![
            ingest::PageFacts {
                content: ingest::ContentFacts {
                    title: None,
                    charset: None,
                    text_digest: Digest::of(b"t"),
                    text_bytes: 1,
                    content_digest: Digest::of(b"c"),
                    change_digest: Digest::of(b"m"),
                    masked_text_digest: Digest::of(b"x"),
                    canonical: None,
                    structure_digest: Some(Digest::of(b"s")),
                    elements_digest: None,
                },
                url: "http://a/".into(),
                content_type: Some("text/html".into()),
                fetched_at: Some(Timestamp(-1)),
                last_modified: None,
                etag: Some("\"e\"".into()),
                text_snapshot: SnapshotId::new("2024-01-01").unwrap(),
                content_snapshot: SnapshotId::new("n1").unwrap(),
                payload_digest: None,
                archive_digest: Some(String::new()),
                reading_digest: Some(Digest::of(b"r")),
                ignore_digest: Digest::of(b"i"),
            };
            3
        ];
        assert_eq!(ingest::PageFacts::decode(&ingest::PageFacts::encode(&rows)).unwrap(), rows);
        let err =
            ingest::PageMove::decode(&delta::NewTextBytes::encode(&[delta::NewTextBytes { new_text_bytes: None }]));
        assert_eq!(err.unwrap_err().to_string(), "column 'url' is missing");
        // A column that may be NULL came later than the file.
        let older = ingest::PageText::decode(&ingest::PageFacts::encode(&rows)).unwrap();
        assert_eq!(older[2], ingest::PageText { url: "http://a/".into(), text: None });
    }
}
