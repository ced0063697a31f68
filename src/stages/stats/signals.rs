//! Which versions of pages show the signal that `[schedule]` asks for.

use anyhow::Result;

use crate::model::maps::{HashMap, HashSet};
use crate::model::{MentionChange, RegionChange, SnapshotId, Timestamp};
use crate::stats::SignalRule;
use crate::store::Store;
use crate::store::parquet::Partition;
use crate::tables::delta::{RegionDelta, RegionText};
use crate::tables::extract::{MentionChangedOn, MentionDelta};
use crate::tables::record::Table as _;
use crate::tables::stats::UpdateSignal;

/// Where it is found whether versions show the signal.
pub(super) enum Signals<'a> {
    Nowhere,
    /// In what is new on pages.
    Found {
        rule: &'a SignalRule,
        regions: Option<Partition>,
        mentions: Option<Partition>,
    },
    /// In the updates as they were written: rules may be others by now.
    Told(Partition),
}

/// The same for the URLs of a shard.
pub(super) enum ShardSignals<'a> {
    Nowhere,
    Found {
        rule: &'a SignalRule,
        urls: HashSet<String>,
    },
    /// By URL and the end of the update's interval.
    Told(HashMap<(String, Timestamp), bool>),
}

impl<'a> Signals<'a> {
    pub(super) fn asked(store: &Store, snapshot: &SnapshotId, rule: Option<&'a SignalRule>) -> Result<Self> {
        let Some(rule) = rule else { return Ok(Self::Nowhere) };
        let open = |wanted: bool, table: &str| wanted.then(|| store.partition(table, snapshot)).transpose();
        Ok(Self::Found {
            rule,
            regions: open(rule.new_text.is_some(), RegionDelta::NAME)?,
            mentions: open(rule.mention.is_some(), MentionDelta::NAME)?,
        })
    }

    pub(super) fn shard(&self, shard: u32) -> Result<ShardSignals<'a>> {
        match self {
            Self::Nowhere => Ok(ShardSignals::Nowhere),
            Self::Found { rule, regions, mentions } => {
                let mut urls = HashSet::default();
                if let Some(regions) = regions {
                    let added = |row: &RegionText| row.change == RegionChange::Added;
                    let shows = |row: &RegionText| row.text.as_deref().is_some_and(|text| rule.is_in(text));
                    let rows = regions.shard::<RegionText>(shard)?.into_iter();
                    urls.extend(rows.filter(|row| added(row) && shows(row)).map(|row| row.url));
                }
                if let Some(mentions) = mentions {
                    let added = |row: &MentionChangedOn| row.change == MentionChange::Added;
                    let rows = mentions.shard::<MentionChangedOn>(shard)?.into_iter();
                    urls.extend(rows.filter(|row| added(row) && rule.is_mention_of(&row.extractor)).map(|row| row.url));
                }
                Ok(ShardSignals::Found { rule, urls })
            }
            Self::Told(updates) => {
                let rows = updates.shard::<UpdateSignal>(shard)?.into_iter();
                Ok(ShardSignals::Told(rows.filter_map(|row| Some(((row.url, row.before), row.signal?))).collect()))
            }
        }
    }
}

impl ShardSignals<'_> {
    /// Whether the version of a URL that was fetched then shows the signal; `None`: nobody asks.
    pub(super) fn of(&self, url: &str, fetched_at: Option<Timestamp>, new_text_share: f64) -> Option<bool> {
        match self {
            Self::Nowhere => None,
            Self::Found { rule, urls } => Some(rule.is_enough(new_text_share) || urls.contains(url)),
            Self::Told(told) => told.get(&(url.to_owned(), fetched_at?)).copied(),
        }
    }
}
