//! What revisits name by URL: a record may say "as that other URL was, at that time" and state no digest that is known.
//!
//! The URLs asked for are collected while reading; then their captures are looked up among the spilled ones and the heads.
//! A stated digest that contradicts what is found there leaves the revisit unresolved: another payload is no evidence.

use std::collections::{HashMap, HashSet};

use anyhow::Result;

use super::read::{Place, Seen};
use super::spill::Spilled;
use crate::captures::{CaptureNote, Found};
use crate::model::Timestamp;
use crate::store::shard_of;

/// Captures of one URL that hold content.
struct Spilt {
    fetched_at: Timestamp,
    archive_digest: Option<String>,
    place: Place,
}

#[derive(Default)]
pub(super) struct Referred {
    spilled: HashMap<String, Vec<Spilt>>,
    /// URLs with a last page, and the digest that the archive stated for it.
    heads: HashMap<String, Option<String>>,
}

/// Where what a revisit names lies.
pub(super) enum Named {
    Spilled(Place),
    Head(String),
}

impl Referred {
    /// Looks up the captures of this snapshot.
    pub(super) fn find(seen: &Seen, spilled: &Spilled, shards: u32) -> Result<Self> {
        let mut referred = Self::default();
        let asked: HashSet<u32> = seen.asked_urls.iter().map(|url| shard_of(url, shards)).collect();
        for shard in asked {
            for (note, at) in spilled.notes(shard)? {
                let holds = note.found != Found::Nothing && !note.broken && matches!(note.status, None | Some(200));
                if holds && seen.asked_urls.contains(&note.url) {
                    let (source_file, source_offset) = (note.source_file, note.source_offset);
                    let place = Place { source_file, source_offset, sequence: note.sequence, shard, at };
                    let spilt = Spilt { fetched_at: note.fetched_at, archive_digest: note.archive_digest, place };
                    referred.spilled.entry(note.url).or_default().push(spilt);
                }
            }
        }
        for captures in referred.spilled.values_mut() {
            captures.sort_by(|a, b| (a.fetched_at, &a.place).cmp(&(b.fetched_at, &b.place)));
        }
        Ok(referred)
    }

    /// Adds a last page of an earlier snapshot.
    pub(super) fn add_head(&mut self, url: String, archive_digest: Option<String>) {
        self.heads.insert(url, archive_digest);
    }

    /// The capture that a revisit names: at the time that it names, else the last before it, else the last page.
    pub(super) fn named(&self, note: &CaptureNote) -> Option<Named> {
        let revisit = note.revisit.as_ref()?;
        let url = revisit.refers_to_url.as_ref().filter(|url| **url != note.url)?;
        let agrees = |digest: &Option<String>| match (&note.archive_digest, digest) {
            (Some(stated), Some(known)) => stated == known,
            _ => true,
        };
        let mut captures = self.spilled.get(url).into_iter().flatten().filter(|spilt| agrees(&spilt.archive_digest));
        let found = match revisit.refers_to_date {
            // Dates are often written without their fraction.
            Some(date) => captures.find(|spilt| (spilt.fetched_at.0 - date.0).abs() < Timestamp::SECOND),
            None => captures.take_while(|spilt| spilt.fetched_at <= note.fetched_at).last(),
        };
        match found {
            Some(spilt) => Some(Named::Spilled(spilt.place.clone())),
            None => self.heads.get(url).filter(|digest| agrees(digest)).map(|_| Named::Head(url.clone())),
        }
    }
}
