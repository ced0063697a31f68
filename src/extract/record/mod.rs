//! Records: attributes found by other extractors, joined where they stand close together, such as
//! talk(speaker, time, place, {topics}).
//!
//! A join is not local (a nearer room that appears on the other side of a name changes the name's record), so records
//! are not recycled: their parts are, and the join is redone from the parts' complete mentions each time, which is
//! cheap. A record counts as copied iff all its parts are.
//!
//! **Meaning.** Attributes are *single* or *set-valued* (`many`), *required* or *optional*; one required single one
//! is the *key* (`key`, else the first in the file). The hull of a record runs from its first part's start to its
//! last part's end and has at most `scope` bytes. No mention is used twice in a record. The distance of two mentions
//! is the number of bytes between them, 0 if they touch or overlap; of equally distant ones the earlier by (start,
//! end) is the nearer.
//!
//! - `nearest`: one record per key mention. The other single attributes choose in the file's order, each the nearest
//!   mention to the key that keeps the hull within `scope`. None left: no record if required, empty if optional.
//! - `once`: the same, key mentions choosing in page order, and what a record has chosen nobody else gets.
//! - in both, a mention of a set-valued attribute belongs to the record whose key is nearest to it; of those a record
//!   takes, the nearest first, as many as keep the hull within `scope`.
//! - `all`: every combination of single attributes within `scope`, an optional one being empty only if none fits; a
//!   set-valued one takes, the nearest to the hull first, as many as fit. Their number explodes where many mentions
//!   stand close together, so a page has at most `max_records`; the result says if some were left out. The cut is by
//!   a fixed order, so it is the same every time.
//!
//! A record whose required set stays empty is dropped.
//!
//! Two more conditions may say which mentions go with a key at all, before anything is chosen. `within`: all of a record
//! lies in one line, one sentence or one block. `side`: its other parts begin where the key ends or later (`after`), or end
//! where it begins or earlier (`before`); a mention of a set-valued attribute then belongs to the nearest key on that side.
//!
//! **Cost.** `nearest` and `once`: n log n for n mentions, plus looking past mentions that do not fit. `all`: the
//! number of combinations looked at, which is capped too.

mod free;
mod places;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::extract::mention::{Mention, Origin, Piece, Value};
use crate::extract::schema::Schema;
use crate::extract::traits::{Prior, Recycles, Traits, Works};
use crate::model::closed_set::closed_set;
use crate::model::{DigestBuilder, Span};

use free::Free;
use places::Places;

closed_set! {
    /// Which mentions become a record. The module says what each means.
    #[derive(Default)]
    pub enum Pairing: "pairing" {
        All = "all",
        #[default]
        Nearest = "nearest",
        Once = "once",
    }
}

closed_set! {
    /// What of the page a record keeps to.
    pub enum Within: "part of a page" {
        Line = "line",
        Sentence = "sentence",
        /// As `unit = "block"` cuts them, at their default size.
        Block = "block",
    }
}

closed_set! {
    /// Where the other parts of a record stand from its key.
    pub enum Side: "side" {
        After = "after",
        Before = "before",
    }
}

/// One attribute of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub attribute: String,
    /// Name of the extractor that finds it.
    pub extractor: String,
    pub many: bool,
    pub optional: bool,
}

#[derive(Clone, Debug)]
pub struct Record {
    scope: u32,
    parts: Vec<Part>,
    /// Per part, its extractor as an index into `extractors`.
    lists: Vec<usize>,
    extractors: Vec<String>,
    key: usize,
    pairing: Pairing,
    max_records: usize,
    schema: Schema,
    within: Option<Within>,
    side: Option<Side>,
}

/// A mention that a record is made of: an extractor (index into [`Record::extractors`]) and a mention of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Used {
    pub extractor: u32,
    pub mention: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Joined {
    pub mention: Mention,
    /// Its parts: it is copied iff they all are, and as new as the newest of them.
    pub parts: Vec<Used>,
}

impl Joined {
    /// Copied iff all its parts are.
    #[must_use]
    pub fn origin(&self, is_copied: impl Fn(&Used) -> bool) -> Origin {
        if self.parts.iter().all(is_copied) { Origin::Copied } else { Origin::Extracted }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Join {
    /// In canonical order.
    pub records: Vec<Joined>,
    /// `all` had more combinations than `max_records`, or took too long to find them: say so.
    pub capped: bool,
}

/// Combinations looked at per record allowed, before `all` gives up on a page.
const STEPS_PER_RECORD: usize = 64;

impl Record {
    /// `key` is an index into `parts` and names a required single one; `config` checks that.
    #[must_use]
    pub fn new(scope: u32, parts: Vec<Part>, key: usize, pairing: Pairing, max_records: usize, schema: Schema) -> Self {
        let mut extractors: Vec<String> = Vec::new();
        let mut lists = Vec::new();
        for part in &parts {
            let known = extractors.iter().position(|name| *name == part.extractor);
            lists.push(known.unwrap_or(extractors.len()));
            if known.is_none() {
                extractors.push(part.extractor.clone());
            }
        }
        Self { scope, parts, lists, extractors, key, pairing, max_records, schema, within: None, side: None }
    }

    /// Only with what lies in the same place of the page as the key, and on that side of it.
    #[must_use]
    pub fn keeping(self, within: Option<Within>, side: Option<Side>) -> Self {
        Self { within, side, ..self }
    }

    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The extractors whose mentions [`Record::join`] wants, in this order.
    #[must_use]
    pub fn extractors(&self) -> &[String] {
        &self.extractors
    }

    #[must_use]
    pub fn max_records(&self) -> usize {
        self.max_records
    }

    /// It is joined on every plan, whatever that costs.
    #[must_use]
    pub fn traits(&self) -> Traits {
        Traits {
            recycles: Recycles::Never,
            works: Works::Here,
            prior: Prior::NOTHING,
            label: None,
            useful_region: None,
        }
    }

    pub(crate) fn describe(&self, digest: &mut DigestBuilder) {
        digest.number(u64::from(self.scope)).number(self.key as u64).number(self.pairing as u64);
        digest.number(self.max_records as u64).number(self.parts.len() as u64);
        for part in &self.parts {
            digest.field(part.attribute.as_bytes()).field(part.extractor.as_bytes());
            digest.number(u64::from(part.many)).number(u64::from(part.optional));
        }
        if let Some(within) = self.within {
            digest.field(b"within").field(within.as_str().as_bytes());
        }
        if let Some(side) = self.side {
            digest.field(b"side").field(side.as_str().as_bytes());
        }
    }

    /// `mentions[i]` are all mentions of `extractors()[i]` on the page with this text, in canonical order.
    ///
    /// # Panics
    /// If there are not as many lists as extractors.
    #[must_use]
    pub fn join(&self, text: &str, mentions: &[&[Mention]]) -> Join {
        assert_eq!(mentions.len(), self.extractors.len(), "one list of mentions per extractor");
        let longest = mentions.iter().map(|list| list.iter().map(|m| m.end - m.start).max().unwrap_or(0)).collect();
        let places = Places::of(text, self.within, mentions);
        let page = Candidates { record: self, mentions, longest, places };
        let mut join = match self.pairing {
            Pairing::All => page.all(),
            Pairing::Nearest | Pairing::Once => page.by_key(),
        };
        join.records.sort_unstable();
        join
    }
}

/// A record in the making: what each part has chosen, and the hull.
#[derive(Clone)]
struct Draft {
    chosen: Vec<Vec<u32>>,
    start: u32,
    end: u32,
    /// Of the key.
    key: (u32, u32),
    /// The place of the page that all of it lies in.
    home: Span,
}

/// The mentions of a page that records are made of.
struct Candidates<'a> {
    record: &'a Record,
    mentions: &'a [&'a [Mention]],
    /// Per list, the length of its longest mention.
    longest: Vec<u32>,
    places: Places,
}

/// Bytes between two spans.
fn distance(a: (u32, u32), b: (u32, u32)) -> u32 {
    b.0.saturating_sub(a.1).max(a.0.saturating_sub(b.1))
}

impl Candidates<'_> {
    fn list(&self, part: usize) -> &[Mention] {
        self.mentions[self.record.lists[part]]
    }

    /// A record of a key alone; `None` if the key does not keep to one place of the page.
    fn draft(&self, key: u32) -> Option<Draft> {
        let mention = &self.list(self.record.key)[key as usize];
        let span = (mention.start, mention.end);
        let mut chosen = vec![Vec::new(); self.record.parts.len()];
        chosen[self.record.key].push(key);
        Some(Draft { chosen, start: span.0, end: span.1, key: span, home: self.places.home(span)? })
    }

    /// Whether a mention may go with a key that has this home: by place and side.
    fn belongs(&self, mention: (u32, u32), key: (u32, u32), home: Span) -> bool {
        let on_side = match self.record.side {
            None => true,
            Some(Side::After) => key.1 <= mention.0,
            Some(Side::Before) => mention.1 <= key.0,
        };
        on_side && home.contains(Span::new(mention.0, mention.1))
    }

    /// The hull with `mention` in it, if it fits.
    fn fits(&self, draft: &Draft, mention: &Mention) -> Option<(u32, u32)> {
        let (start, end) = (draft.start.min(mention.start), draft.end.max(mention.end));
        let fits = end - start <= self.record.scope;
        (fits && self.belongs((mention.start, mention.end), draft.key, draft.home)).then_some((start, end))
    }

    fn add(&self, draft: &mut Draft, part: usize, index: u32) -> bool {
        let Some((start, end)) = self.fits(draft, &self.list(part)[index as usize]) else {
            return false;
        };
        (draft.start, draft.end) = (start, end);
        draft.chosen[part].push(index);
        true
    }

    /// Whether another attribute of the record has that mention already.
    fn uses(&self, draft: &Draft, part: usize, index: u32) -> bool {
        let list = self.record.lists[part];
        let mut others = (0..draft.chosen.len()).filter(|&other| other != part && self.record.lists[other] == list);
        others.any(|other| draft.chosen[other].contains(&index))
    }

    fn other_singles(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.record.parts.len()).filter(|&part| part != self.record.key && !self.record.parts[part].many)
    }

    fn sets(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.record.parts.len()).filter(|&part| self.record.parts[part].many)
    }

    // The pairings `nearest` and `once`.

    fn by_key(&self) -> Join {
        let once = self.record.pairing == Pairing::Once;
        let mut free: Vec<Free> = self.mentions.iter().map(|list| Free::new(list.len())).collect();
        let key_list = self.record.lists[self.record.key];
        let mut drafts = Vec::new();
        for key in (0..).take(self.mentions[key_list].len()) {
            if !free[key_list].is_free(key) {
                continue;
            }
            let Some(draft) = self.choose(key, &mut free) else {
                continue;
            };
            if once {
                for (part, chosen) in draft.chosen.iter().enumerate() {
                    chosen.iter().for_each(|&index| free[self.record.lists[part]].take(index));
                }
            }
            drafts.push(draft);
        }
        for part in self.sets() {
            self.fill_set(part, &mut drafts, &mut free[self.record.lists[part]], once);
        }
        let records = drafts.iter().filter_map(|draft| self.finish(draft)).collect();
        Join { records, capped: false }
    }

    /// The single attributes of the record of a key mention.
    fn choose(&self, key: u32, free: &mut [Free]) -> Option<Draft> {
        let mut draft = self.draft(key)?;
        for part in self.other_singles() {
            let nearest = self.nearest(part, &draft, &mut free[self.record.lists[part]]);
            match nearest {
                Some(index) => _ = self.add(&mut draft, part, index),
                None if self.record.parts[part].optional => {}
                None => return None,
            }
        }
        Some(draft)
    }

    /// The free mention of a part nearest to the key that can be added to a draft. Looks outward from the key and stops
    /// as soon as nothing nearer, within `scope` or in the same place can follow.
    fn nearest(&self, part: usize, draft: &Draft, free: &mut Free) -> Option<u32> {
        let (list, span, home) = (self.list(part), draft.key, draft.home);
        let longest = self.longest[self.record.lists[part]];
        let allowed =
            |index: u32, mention: &Mention| self.fits(draft, mention).is_some() && !self.uses(draft, part, index);
        let middle = u32::try_from(list.partition_point(|m| m.start < span.0)).expect("fewer than 2^32 mentions");
        let mut best: Option<(u32, u32)> = None;
        let mut at = free.at_or_after(middle).filter(|_| self.record.side != Some(Side::Before));
        while let Some(index) = at {
            let mention = &list[index as usize];
            if mention.start - span.0 > self.record.scope || mention.start >= home.end {
                break;
            }
            if allowed(index, mention) {
                best = Some((distance(span, (mention.start, mention.end)), index));
                break;
            }
            at = free.at_or_after(index + 1);
        }
        let before = middle.checked_sub(1).filter(|_| self.record.side != Some(Side::After));
        let mut at = before.and_then(|index| free.at_or_before(index));
        while let Some(index) = at {
            let mention = &list[index as usize];
            // No mention further left can be nearer than this.
            let bound = span.0.saturating_sub(mention.start.saturating_add(longest));
            let nearer_is_known = best.is_some_and(|(nearest, _)| bound > nearest);
            if span.0 - mention.start > self.record.scope || mention.start < home.start || nearer_is_known {
                break;
            }
            let gap = distance(span, (mention.start, mention.end));
            // Further left is earlier, so it wins a tie.
            if best.is_none_or(|(nearest, _)| gap <= nearest) && allowed(index, mention) {
                best = Some((gap, index));
            }
            at = index.checked_sub(1).and_then(|index| free.at_or_before(index));
        }
        best.map(|(_, index)| index)
    }

    /// Gives every mention of a set-valued part to the record with the nearest key.
    fn fill_set(&self, part: usize, drafts: &mut [Draft], free: &mut Free, once: bool) {
        let longest = drafts.iter().map(|draft| draft.key.1 - draft.key.0).max().unwrap_or(0);
        let mut given: Vec<Vec<(u32, u32)>> = vec![Vec::new(); drafts.len()];
        for (index, mention) in (0..).zip(self.list(part)) {
            if free.is_free(index) {
                let span = (mention.start, mention.end);
                if let Some(draft) = self.nearest_key(drafts, longest, span) {
                    given[draft].push((distance(drafts[draft].key, span), index));
                }
            }
        }
        for (draft, mut offered) in drafts.iter_mut().zip(given) {
            offered.sort_unstable();
            for (_, index) in offered {
                if !self.uses(draft, part, index) && self.add(draft, part, index) && once {
                    free.take(index);
                }
            }
        }
    }

    /// Of drafts in the order of their keys, the one whose key is nearest to `span`, if that goes with it and is at most
    /// `scope` away. `longest` is the length of the longest key.
    fn nearest_key(&self, drafts: &[Draft], longest: u32, span: (u32, u32)) -> Option<usize> {
        let scope = self.record.scope;
        let home = self.places.home(span)?;
        let middle = drafts.partition_point(|draft| draft.key.0 < span.0);
        let mut best: Option<(u32, usize)> = None;
        let after = if self.record.side == Some(Side::After) { drafts.len() } else { middle };
        for (index, draft) in drafts.iter().enumerate().skip(after) {
            let gap = distance(span, draft.key);
            if gap > scope || draft.key.0 >= home.end {
                break;
            }
            // Gaps to the right grow with the start, so the first one is the nearest.
            if self.belongs(span, draft.key, draft.home) {
                best = Some((gap, index));
                break;
            }
        }
        let before = if self.record.side == Some(Side::Before) { 0 } else { middle };
        for (index, draft) in drafts[..before].iter().enumerate().rev() {
            let bound = span.0.saturating_sub(draft.key.0.saturating_add(longest));
            if bound > scope || draft.key.0 < home.start || best.is_some_and(|(nearest, _)| bound > nearest) {
                break;
            }
            let gap = distance(span, draft.key);
            let is_nearer = gap <= scope && best.is_none_or(|(nearest, _)| gap <= nearest);
            if is_nearer && self.belongs(span, draft.key, draft.home) {
                best = Some((gap, index));
            }
        }
        best.map(|(_, index)| index)
    }

    // The pairing `all`.

    fn all(&self) -> Join {
        let mut join = Join::default();
        let singles: Vec<usize> = self.other_singles().collect();
        let mut steps = self.record.max_records.saturating_mul(STEPS_PER_RECORD);
        for key in (0..).take(self.list(self.record.key).len()) {
            let Some(draft) = self.draft(key).filter(|draft| draft.end - draft.start <= self.record.scope) else {
                continue;
            };
            let complete =
                singles.iter().all(|&part| self.record.parts[part].optional || !self.within(part, &draft).is_empty());
            if complete && !self.extend(&draft, &singles, &mut steps, &mut join) {
                join.capped = true;
                break;
            }
        }
        join
    }

    /// The mentions of a part that start where they might fit.
    fn within(&self, part: usize, draft: &Draft) -> std::ops::Range<usize> {
        let list = self.list(part);
        let scope = self.record.scope;
        let first = list.partition_point(|m| m.start < draft.end.saturating_sub(scope).max(draft.home.start));
        let last = list.partition_point(|m| m.start < draft.start.saturating_add(scope).min(draft.home.end));
        first..last.max(first)
    }

    /// All ways to complete a draft by the parts still open; false if a limit was reached.
    fn extend(&self, draft: &Draft, open: &[usize], steps: &mut usize, join: &mut Join) -> bool {
        let Some((&part, rest)) = open.split_first() else {
            let mut draft = draft.clone();
            self.sets().for_each(|part| self.take_all_that_fit(part, &mut draft, steps));
            if let Some(record) = self.finish(&draft) {
                if join.records.len() >= self.record.max_records {
                    return false;
                }
                join.records.push(record);
            }
            return true;
        };
        let mut any = false;
        for index in self.within(part, draft) {
            if *steps == 0 {
                return false;
            }
            *steps -= 1;
            let index = u32::try_from(index).expect("fewer than 2^32 mentions");
            let mut longer = draft.clone();
            if !self.uses(draft, part, index) && self.add(&mut longer, part, index) {
                any = true;
                if !self.extend(&longer, rest, steps, join) {
                    return false;
                }
            }
        }
        any || !self.record.parts[part].optional || self.extend(draft, rest, steps, join)
    }

    fn take_all_that_fit(&self, part: usize, draft: &mut Draft, steps: &mut usize) {
        let hull = (draft.start, draft.end);
        let list = self.list(part);
        let mut offered: Vec<(u32, u32)> = self
            .within(part, draft)
            .map(|index| {
                (
                    distance(hull, (list[index].start, list[index].end)),
                    u32::try_from(index).expect("fewer than 2^32 mentions"),
                )
            })
            .collect();
        *steps = steps.saturating_sub(offered.len());
        offered.sort_unstable();
        for (_, index) in offered {
            if !self.uses(draft, part, index) {
                self.add(draft, part, index);
            }
        }
    }

    /// The record of a draft, unless a required set is empty or the key alone is too long.
    fn finish(&self, draft: &Draft) -> Option<Joined> {
        if draft.end - draft.start > self.record.scope {
            return None;
        }
        let mut used = Vec::new();
        let mut attributes = Vec::new();
        for (part, spec) in self.record.parts.iter().enumerate() {
            let mut chosen = draft.chosen[part].clone();
            chosen.sort_unstable();
            if chosen.is_empty() && !spec.optional {
                return None;
            }
            let piece = |&index: &u32| {
                let mention = &self.list(part)[index as usize];
                Piece::Span(Span::new(mention.start - draft.start, mention.end - draft.start))
            };
            let list = u32::try_from(self.record.lists[part]).expect("few extractors");
            used.extend(chosen.iter().map(|&mention| Used { extractor: list, mention }));
            attributes.push(match chosen.first() {
                _ if spec.many => Value::Many(chosen.iter().map(piece).collect()),
                Some(index) => Value::One(piece(index)),
                None => Value::Absent,
            });
        }
        used.sort_unstable();
        let mention = Mention { start: draft.start, end: draft.end, label: 0, attributes: attributes.into() };
        Some(Joined { mention, parts: used })
    }
}

/// Checks the parts of every record of a pipeline against the extractors there are. `extractors` maps a name to
/// whether it is itself a record; the first problem is returned.
pub(crate) fn check_parts(record: &str, parts: &[Part], extractors: &BTreeMap<&str, bool>) -> Result<(), String> {
    for part in parts {
        match extractors.get(part.extractor.as_str()) {
            Some(false) => {}
            Some(true) => {
                return Err(format!("record '{record}' joins '{}', which is a record itself", part.extractor));
            }
            None => {
                return Err(format!("record '{record}' joins '{}', and there is no such extractor", part.extractor));
            }
        }
    }
    Ok(())
}
