//! Term lists of earlier runs: when only the terms of a dictionary changed, its mentions are brought up to date instead
//! of being extracted again.

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::live::{Live, text_version};
use crate::extract::dictionary::Edit;
use crate::extract::{Dictionary, Extractor};
use crate::model::Digest;
use crate::store::Store;

/// A term list as it was used.
#[derive(Serialize, Deserialize)]
struct TermList {
    fingerprint_without_terms: Digest,
    terms: Vec<String>,
}

/// By extractor, how to get from the last list to the one now.
pub(super) struct Edits<'a> {
    all: Vec<Option<Entry<'a>>>,
}

struct Entry<'a> {
    fingerprint: Digest,
    old: Dictionary,
    edit: Edit<'a>,
}

fn file(fingerprint: Digest) -> String {
    format!("terms/{fingerprint}.json")
}

impl<'a> Edits<'a> {
    /// `before[i]`: the fingerprint that extractor `i` had when it last ran.
    pub(super) fn new(store: &Store, live: &'a Live, before: &[Option<Digest>]) -> Result<Self> {
        let mut all = Vec::new();
        for (live, before) in live.all.iter().zip(before) {
            let mut entry = None;
            if let (Some(extractor @ Extractor::Dictionary(now)), Some(before)) = (live.extractor(), before)
                && *before != live.fingerprint
                && let Some(list) = store.meta_file::<TermList>(&file(*before))?
                && list.fingerprint_without_terms == extractor.fingerprint_without_terms(&text_version())
            {
                let old = Dictionary::new(list.terms.iter().map(String::as_str), now.options())
                    .context("the last term list cannot be read again")?;
                if let Some(edit) = Edit::new(&old, now).context("the term lists cannot be compared")? {
                    let (added, removed) = edit.counts();
                    log::warn!(
                        "extractor '{}': {added} terms added, {removed} removed; only what they affect is rescanned",
                        live.name
                    );
                    entry = Some(Entry { fingerprint: *before, old, edit });
                }
            }
            all.push(entry);
        }
        Ok(Self { all })
    }

    /// The last list and the way from it, if there is one.
    pub(super) fn of(&self, extractor: usize) -> Option<(&Dictionary, &Edit<'a>)> {
        self.all[extractor].as_ref().map(|entry| (&entry.old, &entry.edit))
    }

    /// Whether mentions with this fingerprint can be brought up to date.
    pub(super) fn is_from(&self, extractor: usize, fingerprint: Digest) -> bool {
        self.all[extractor].as_ref().is_some_and(|entry| entry.fingerprint == fingerprint)
    }
}

/// Keeps the term lists that are in use, so that later changes of them can be told.
pub(super) fn remember(store: &Store, live: &Live) -> Result<()> {
    for live in &live.all {
        if let Some(extractor @ Extractor::Dictionary(dictionary)) = live.extractor() {
            let name = file(live.fingerprint);
            if store.has_meta_file(&name) {
                continue;
            }
            let terms = (0..).map_while(|label| dictionary.term(label)).map(str::to_owned).collect();
            let fingerprint_without_terms = extractor.fingerprint_without_terms(&text_version());
            store.write_meta_file(&name, &TermList { fingerprint_without_terms, terms })?;
        }
    }
    Ok(())
}
