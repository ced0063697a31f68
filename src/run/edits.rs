//! Edits of the pipeline file that take effect only later, or only in part: what they affect, and from when, is said once.
//!
//! What the file said at the last run is kept in `_meta/settings.json`. Extractors are not here: their stage says itself
//! what starts anew.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::problems::TOLD;
use crate::config::{CONVERSION_VERSION, Pipeline};
use crate::manifests::Ingested;
use crate::model::{Digest, SnapshotId};
use crate::store::Store;

const FILE: &str = "settings.json";

/// What of the pipeline file is compared from run to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Settings {
    ignore: Option<Digest>,
    coverage: String,
    time_zone: String,
    schedule: Option<Digest>,
    /// The same whatever the time zone; of runs before that nothing was written down.
    #[serde(default)]
    schedule_in_any_zone: Option<Digest>,
    /// The version of the conversion from bytes to text; of the first one nothing was written down.
    #[serde(default)]
    conversion: Option<u32>,
    /// Links of mirrors to `index.html` lead to the page of its folder; of runs before that nothing was written down.
    #[serde(default)]
    mirrors_meet: bool,
    /// By name.
    queries: BTreeMap<String, Digest>,
}

impl Settings {
    fn of(pipeline: &Pipeline) -> Self {
        let query =
            |declared: &crate::config::DeclaredQuery| (declared.query.name().to_owned(), declared.query.fingerprint());
        Self {
            ignore: Some(pipeline.corpus.ignore_digest()),
            coverage: pipeline.corpus.coverage.to_string(),
            time_zone: pipeline.corpus.time_zone_name.clone(),
            schedule: Some(pipeline.schedule.digest()),
            schedule_in_any_zone: Some(pipeline.schedule.digest_in_any_zone()),
            conversion: Some(CONVERSION_VERSION),
            mirrors_meet: true,
            queries: pipeline.queries.iter().map(query).collect(),
        }
    }

    /// One line for each edit between `before` and this. `newest`: the newest snapshot that is done, and its layout.
    fn edits(&self, before: &Self, newest: &SnapshotId, layout: &str) -> Vec<String> {
        let mut lines = Vec::new();
        if self.ignore != before.ignore {
            lines.push(format!(
                "`ignore` was edited: from the next snapshot on pages are compared by the new rules; what is told of {newest} and earlier ones stays"
            ));
        }
        if self.coverage != before.coverage {
            lines.push(format!(
                "`coverage` is {} now, it was {}: it holds from the next snapshot on; {newest} and earlier ones stay as they are",
                self.coverage, before.coverage
            ));
        }
        if self.time_zone != before.time_zone {
            lines.push(format!(
                "`time_zone` is {} now, it was {}: names of snapshots are read in it from the next one on, and polls are planned in it from {newest} on",
                self.time_zone, before.time_zone
            ));
        }
        let is_edited = match before.schedule_in_any_zone {
            Some(_) => self.schedule_in_any_zone != before.schedule_in_any_zone,
            None => self.time_zone == before.time_zone && self.schedule != before.schedule,
        };
        if is_edited {
            lines.push(format!("[schedule] was edited: it is applied to {newest} now; earlier schedules stay"));
        }
        if self.conversion.unwrap_or(1) != before.conversion.unwrap_or(1) {
            lines.push(format!(
                "this version of ratoon reads pages in another way (titles and links of XML, links of frames, labels of pictures): pages that it reads otherwise count as modified when they are next seen; {newest} and earlier ones stay"
            ));
        }
        if self.mirrors_meet != before.mirrors_meet && layout.contains("mirror") {
            lines.push(format!(
                "in mirrors a link to `index.html` leads to the page of its folder now: pages with such links count as modified when they are next seen; {newest} and earlier ones stay"
            ));
        }
        for (name, query) in &self.queries {
            match before.queries.get(name) {
                None => lines.push(format!("query '{name}' is new: it is asked of {newest} now, and compared from the next snapshot on")),
                Some(old) if old != query => lines.push(format!(
                    "query '{name}' was edited: it is asked again of {newest}, and compared from the next snapshot on; earlier answers stay"
                )),
                Some(_) => {}
            }
        }
        let gone = before.queries.keys().filter(|name| !self.queries.contains_key(*name));
        lines.extend(gone.map(|name| format!("query '{name}' is gone: it is asked no more from the next snapshot on")));
        lines
    }
}

/// Says what was edited since the last run, also with `-q`.
pub(super) fn tell(pipeline: &Pipeline, store: &Store, newest: Option<&SnapshotId>) -> Result<()> {
    let now = Settings::of(pipeline);
    // What cannot be read is as good as none: nothing is known of the last run.
    let before: Option<Settings> = store.meta_file(FILE).ok().flatten();
    if let (Some(before), Some(newest)) = (&before, newest) {
        let layout = store.manifest::<Ingested>(newest)?.map(|ingested| ingested.summary.layout).unwrap_or_default();
        for line in now.edits(before, newest, &layout) {
            log::warn!(target: TOLD, "{line}");
        }
    }
    if before.as_ref() != Some(&now) {
        store.write_meta_file(FILE, &now)?;
    }
    Ok(())
}
