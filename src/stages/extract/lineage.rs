//! What each extractor goes on from: which definition found what is there, and what of it still holds tonight.

use std::collections::BTreeMap;

use super::edits::Edits;
use super::live::{Live, LiveExtractor};
use crate::extract::Adopt;
use crate::manifests::{Extracted, lineage};
use crate::model::{Digest, SnapshotId};
use crate::run::problems::TOLD;
use crate::store::manifest::Manifest;

/// The fingerprints that a manifest names, in the order of the extractors.
pub(super) fn fingerprints(manifest: Option<&Manifest<Extracted>>, live: &Live) -> Vec<Option<Digest>> {
    let of = |name: &str| manifest?.summary.fingerprints.get(name).copied();
    live.all.iter().map(|live| of(&live.name)).collect()
}

/// What each extractor goes on from: the snapshot before, if the same definition extracted it, or if old text is left to
/// the one that did.
pub(super) fn sources(live: &Live, before: Option<&Manifest<Extracted>>) -> BTreeMap<String, Digest> {
    let source = |live: &LiveExtractor| {
        let before = &before?.summary;
        match live.adopt {
            Adopt::Now => before.source(&live.name, live.fingerprint),
            Adopt::NewText => before.lineage.get(&*live.name).copied(),
        }
    };
    live.all.iter().filter_map(|live| Some((live.name.to_string(), source(live)?))).collect()
}

/// Identifies how the mentions of each extractor came about.
pub(super) fn lineages(
    live: &Live,
    snapshot: &SnapshotId,
    built_on: &BTreeMap<String, Digest>,
) -> BTreeMap<String, Digest> {
    let of = |name: &str, fingerprint| lineage(snapshot, fingerprint, built_on.get(name).copied());
    live.all.iter().map(|live| (live.name.to_string(), of(&live.name, live.fingerprint))).collect()
}

/// The extractors whose mentions of this snapshot are already there: made by the same definition, from the same sources.
pub(super) fn kept(
    live: &Live,
    earlier: Option<&Manifest<Extracted>>,
    built_on: &BTreeMap<String, Digest>,
) -> Vec<bool> {
    let is_kept = |i: usize| {
        let live = &live.all[i];
        // With answers at hand it costs nothing to do it again, and some of them may be new.
        if live.answers().is_some() {
            return false;
        }
        earlier.is_some_and(|earlier| {
            earlier.summary.fingerprints.get(&*live.name) == Some(&live.fingerprint)
                && earlier.summary.built_on.get(&*live.name) == built_on.get(&*live.name)
        })
    };
    (0..live.all.len()).map(|i| is_kept(i) && live.all[i].parts().iter().all(|&part| is_kept(part))).collect()
}

/// Tells which extractors start anew, one line each, if there is anything that they could have gone on from.
pub(super) fn announce(
    live: &Live,
    edits: &Edits<'_>,
    before: &[Option<Digest>],
    snapshot: &SnapshotId,
    started: bool,
) {
    for (i, live) in live.all.iter().enumerate() {
        match before[i] {
            None if started => {
                log::warn!(target: TOLD, "extractor '{}' is new: starts with snapshot {snapshot}", live.name);
            }
            before if live.leaves(before) => {
                log::warn!(
                    target: TOLD,
                    "extractor '{}' changed: pages that change from snapshot {snapshot} on are extracted with it",
                    live.name
                );
            }
            Some(print) if print != live.fingerprint && edits.of(i).is_none() => {
                log::warn!(target: TOLD, "extractor '{}' changed: starts from scratch with snapshot {snapshot}", live.name);
            }
            _ => {}
        }
    }
}
