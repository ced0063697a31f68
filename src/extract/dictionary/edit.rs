//! A changed term list costs only what it can affect.
//!
//! The same page under two lists. Both scans begin in step; as long as they are, they find the same mentions up to
//! the next *event*: an old mention whose term was removed, or an occurrence of an added term that is not inside an
//! old mention. (Before an event, no term of the old list starts between two old mentions, so only an added one can;
//! and at an old mention's start only a longer added term can beat it.) From an event on the page is searched with
//! the new list until the scan stands outside every old mention, where both are in step again. Dropping `new york`
//! from {new york, york city} thus uncovers `york city` in `new york city`, and the search ends behind it.
//!
//! Cost: a scan of the page for the added terms alone, which is fast while they are few, and a few words around each
//! event. If page and list both changed, bring the old mentions up to date on the old page, then recycle them.

use std::collections::HashMap;

use super::{Dictionary, Options, fold};
use crate::extract::mention::{Found, Mention};
use crate::extract::scan::{Pass as _, Scan};
use crate::model::KeyError;

pub(crate) struct Edit<'a> {
    new: &'a Dictionary,
    /// The terms that the old list does not have.
    added: Option<Dictionary>,
    /// Old label to new; `None` if removed.
    relabel: Vec<Option<u32>>,
}

/// A page's mentions under the new list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edited {
    pub found: Vec<Found>,
    /// Bytes searched with the whole new list; the search for added terms is not counted.
    pub bytes_extracted: u64,
}

impl<'a> Edit<'a> {
    /// `None` if the lists are not read the same way: then everything is extracted from scratch.
    pub(crate) fn new(old: &Dictionary, new: &'a Dictionary) -> Result<Option<Self>, KeyError> {
        let Options { whole_word, ignore_case, .. } = new.options;
        if (old.options.whole_word, old.options.ignore_case) != (whole_word, ignore_case) {
            return Ok(None);
        }
        let key = |term: &str| if ignore_case { fold(term) } else { term.to_owned() };
        let mut labels: HashMap<String, (u32, bool)> =
            (0..).zip(&new.terms).map(|(label, term)| (key(term), (label, true))).collect();
        let relabel = old
            .terms
            .iter()
            .map(|term| {
                let (label, is_added) = labels.get_mut(&key(term))?;
                *is_added = false;
                Some(*label)
            })
            .collect();
        let added: Vec<&str> = new
            .terms
            .iter()
            .filter(|term| labels.get(&key(term)).is_some_and(|&(_, is_added)| is_added))
            .map(AsRef::as_ref)
            .collect();
        let added = if added.is_empty() { None } else { Some(Dictionary::new(added, new.options)?) };
        Ok(Some(Self { new, added, relabel }))
    }

    /// The new list.
    #[must_use]
    pub(crate) fn dictionary(&self) -> &'a Dictionary {
        self.new
    }

    /// Terms added and removed.
    #[must_use]
    pub(crate) fn counts(&self) -> (usize, usize) {
        let removed = self.relabel.iter().filter(|label| label.is_none()).count();
        (self.added.as_ref().map_or(0, Dictionary::len), removed)
    }

    /// `old` must be the complete mentions of `text` under the old list, in canonical order, with its labels.
    #[must_use]
    pub(crate) fn apply(&self, text: &str, old: &[Mention]) -> Edited {
        let mut work = Work {
            text,
            old,
            next_old: 0,
            scan: self.new.scan(),
            scope: self.new.reach.scope as usize,
            out: Edited { found: Vec::new(), bytes_extracted: 0 },
        };
        let mut occurrences = self.added.as_ref().map(|added| added.scan());
        let mut next_added = |from: usize| {
            let found = occurrences.as_mut().and_then(|scan| scan.next(text, from, text.len()));
            found.map_or(usize::MAX, |mention| mention.start as usize)
        };
        let mut at = 0;
        let mut added = next_added(0);
        // Invariant: both scans stand at `at`; the old mentions from `next_old` on start there or later.
        loop {
            if added < at {
                added = next_added(at);
            }
            let Some(mention) = old.get(work.next_old).filter(|mention| (mention.start as usize) < added) else {
                if added == usize::MAX {
                    return work.out;
                }
                at = work.rescan(added, added + 1);
                continue;
            };
            match self.relabel[mention.label as usize] {
                Some(label) => {
                    let source = u32::try_from(work.next_old).ok();
                    work.out.found.push(Found { mention: Mention { label, ..mention.clone() }, source });
                    at = mention.end as usize;
                    work.next_old += 1;
                }
                None => at = work.rescan(mention.start as usize, mention.end as usize),
            }
        }
    }
}

struct Work<'a> {
    text: &'a str,
    old: &'a [Mention],
    next_old: usize,
    scan: Box<dyn Scan + 'a>,
    scope: usize,
    out: Edited,
}

impl Work<'_> {
    /// Searches with the new list for mentions that start in `[at, until)`, and on until in step with the old scan.
    fn rescan(&mut self, mut at: usize, mut until: usize) -> usize {
        loop {
            let end = (until - 1 + self.scope).min(self.text.len());
            let found = self.scan.next(self.text, at, end).filter(|mention| (mention.start as usize) < until);
            let stop = found.as_ref().map_or(until, |mention| mention.end as usize);
            self.out.bytes_extracted += (stop.min(self.text.len()) - at) as u64;
            self.out.found.extend(found.map(Found::extracted));
            at = stop;
            while self.old.get(self.next_old).is_some_and(|mention| mention.end as usize <= at) {
                self.next_old += 1;
            }
            match self.old.get(self.next_old) {
                Some(mention) if (mention.start as usize) < at => until = mention.end as usize,
                _ => return at,
            }
        }
    }
}
