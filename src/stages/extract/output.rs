//! What comes of a shard: rows, counts, and how they are handed to whoever commits them.

use std::ops::Range;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::costs::CostsBy;
use super::job::Job;
use super::known::UrlTonight;
use super::live::Live;
use crate::model::{Digest, Span};
use crate::plan::model::Speed;
use crate::store::parquet::GROUP_ROWS;
use crate::store::passes::Parcel;
use crate::tables::extract::{Extraction, MentionDelta};
use crate::tables::mentions::{Mentions, mentions_of};
use crate::tables::record::Table as _;

/// The rows of a shard. Vectors of vectors are by extractor.
#[derive(Default)]
pub(super) struct Output {
    pub(super) mentions: Vec<Mentions>,
    pub(super) extractions: Vec<Extraction>,
    pub(super) deltas: Vec<MentionDelta>,
    pub(super) costs: Vec<CostsBy>,
    /// URLs that have no page any more.
    pub(super) gone: Vec<String>,
    /// By extractor, mentions that the pages worked on had before, and those that went.
    pub(super) old_mentions: Vec<i64>,
    /// By extractor, pages that it failed on and had not failed on before.
    pub(super) failed_anew: Vec<u64>,
    /// By extractor, pages that have what another definition found, and of the pages worked on and those that went, how
    /// many had.
    pub(super) older: Vec<u64>,
    pub(super) older_before: Vec<u64>,
    /// Pages with units that were asked about in this snapshot, in the order of the table.
    pub(super) asked: Vec<AskedPage>,
    /// Texts read.
    pub(super) read: Speed,
    /// What is known of the URLs now, in the order of `extractions`; `None` if others found it out.
    pub(super) known: Option<Vec<UrlTonight>>,
}

/// What is no table of an [`Output`].
#[derive(Serialize, Deserialize)]
struct BesideRows {
    costs: Vec<CostsBy>,
    gone: Vec<String>,
    old_mentions: Vec<i64>,
    failed_anew: Vec<u64>,
    older: Vec<u64>,
    older_before: Vec<u64>,
    read: Speed,
}

impl Output {
    /// Without rows.
    pub(super) fn new(live: &Live, gone: Vec<String>) -> Self {
        let extractors = live.all.len();
        Self {
            mentions: live.all.iter().map(|_| Mentions::default()).collect(),
            costs: vec![CostsBy::new(); extractors],
            gone,
            old_mentions: vec![0; extractors],
            failed_anew: vec![0; extractors],
            older: vec![0; extractors],
            older_before: vec![0; extractors],
            known: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// For whoever takes it. What was asked for is not handed on: who keeps answers works alone.
    pub(super) fn pack(self, job: &Job<'_>) -> Result<Parcel> {
        let mut parcel = Parcel::default();
        for ((live, mentions), whole) in job.live.all.iter().zip(&self.mentions).zip(&job.whole) {
            for batch in live.schema.encode_all(mentions, *whole, GROUP_ROWS) {
                parcel.put_batch(&mentions_of(&live.name), &batch)?;
            }
        }
        parcel.put(Extraction::NAME, &self.extractions)?;
        parcel.put(MentionDelta::NAME, &self.deltas)?;
        let Self { costs, gone, old_mentions, failed_anew, older, older_before, read, .. } = self;
        parcel.put_values(&BesideRows { costs, gone, old_mentions, failed_anew, older, older_before, read })?;
        Ok(parcel)
    }

    pub(super) fn unpack(mut parcel: Parcel, live: &Live) -> Result<Self> {
        let BesideRows { costs, gone, old_mentions, failed_anew, older, older_before, read } = parcel.take_values()?;
        let mut mentions = Vec::new();
        for live in &live.all {
            let mut rows = Vec::new();
            for batch in parcel.take_batches(&mentions_of(&live.name))? {
                rows.extend(live.schema.decode(&batch)?);
            }
            mentions.push(Mentions::of(rows));
        }
        let (extractions, deltas) = (parcel.take(Extraction::NAME)?, parcel.take(MentionDelta::NAME)?);
        let (asked, known) = (Vec::new(), None);
        Ok(Self {
            mentions,
            extractions,
            deltas,
            costs,
            gone,
            old_mentions,
            failed_anew,
            older,
            older_before,
            asked,
            read,
            known,
        })
    }
}

/// A page with units whose answers were asked for in this snapshot, for it or for another page.
pub(super) struct AskedPage {
    /// By index.
    pub(super) extractor: usize,
    pub(super) extraction: usize,
    pub(super) rows: Range<usize>,
    /// With the digest of the request.
    pub(super) units: Vec<(Span, Digest)>,
}
