//! What was found in the newest snapshot.

use std::collections::BTreeMap;

use anyhow::Result;

use super::{Look, ROWS};
use crate::manifests::Extracted;
use crate::model::MentionChange;
use crate::report::overview::{ExtractorLine, Found, MentionLine};
use crate::tables::extract::MentionDelta;
use crate::tables::record::Table as _;

pub(super) fn found(look: &Look<'_>) -> Result<Found> {
    let mut found = Found::default();
    let Some(newest) = look.newest() else { return Ok(found) };
    let Some(extracted) = look.store.manifest::<Extracted>(newest)? else { return Ok(found) };
    let extracted = extracted.summary;
    let line = |(name, mentions): (&String, &u64)| {
        let costs = extracted.costs.get(name).copied().unwrap_or_default();
        let (failed, deferred) = (costs.failed, costs.deferred);
        (
            name.clone(),
            ExtractorLine { name: name.clone(), mentions: *mentions, added: 0, deleted: 0, failed, deferred },
        )
    };
    let mut extractors: BTreeMap<String, ExtractorLine> = extracted.mentions.iter().map(line).collect();
    let mut texts: BTreeMap<(String, String), MentionLine> = BTreeMap::new();
    for row in look.rows::<MentionDelta>(MentionDelta::NAME, newest)? {
        let (extractor, url) = (row.extractor.to_string(), row.url.to_string());
        let new = || MentionLine {
            extractor: extractor.clone(),
            text: row.text.clone(),
            added: 0,
            deleted: 0,
            url: String::new(),
        };
        let line = texts.entry((extractor.clone(), row.text.clone())).or_insert_with(new);
        let came = row.change == MentionChange::Added;
        // Where it came counts before where it went.
        let better = line.url.is_empty()
            || if came { line.added == 0 || url < line.url } else { line.added == 0 && url < line.url };
        if better {
            line.url = url;
        }
        *(if came { &mut line.added } else { &mut line.deleted }) += 1;
        if let Some(line) = extractors.get_mut(&extractor) {
            *(if came { &mut line.added } else { &mut line.deleted }) += 1;
        }
    }
    // In the order of the pipeline file, then those that it no longer declares.
    for declared in &look.pipeline.extractors {
        found.extractors.extend(extractors.remove(&declared.config.name));
    }
    found.extractors.extend(extractors.into_values());
    found.texts_in_all = texts.len();
    let mut texts: Vec<MentionLine> = texts.into_values().collect();
    // Those first that are only new or only gone.
    let one_sided = |line: &MentionLine| line.added == 0 || line.deleted == 0;
    texts.sort_by_key(|line| (!one_sided(line), std::cmp::Reverse(line.added + line.deleted)));
    texts.truncate(ROWS);
    found.texts = texts;
    Ok(found)
}
