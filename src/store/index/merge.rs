//! Several sorted lists of changes as one: the newest says what a key holds.

use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;

use super::run::{RunScan, Unpacker};
use crate::store::Result;

/// Changes of one kind, by key; no value: deleted.
pub(super) type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// A key and what it holds; no value: deleted.
pub(super) type Change<'a> = (&'a [u8], Option<&'a [u8]>);

/// The changes of keys from a prefix on.
fn from_prefix<'a>(changes: &'a Changes, prefix: &[u8]) -> btree_map::Range<'a, Vec<u8>, Option<Vec<u8>>> {
    changes.range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded))
}

pub(super) enum Source<'a> {
    Memory { rest: btree_map::Range<'a, Vec<u8>, Option<Vec<u8>>>, prefix: &'a [u8], entry: Option<Change<'a>> },
    Run(Box<RunScan<'a>>),
}

impl<'a> Source<'a> {
    pub(super) fn memory(changes: &'a Changes, prefix: &'a [u8]) -> Self {
        Self::Memory { rest: from_prefix(changes, prefix), prefix, entry: None }
    }

    fn advance(&mut self, unpacker: &mut Unpacker) -> Result<bool> {
        match self {
            Self::Memory { rest, prefix, entry } => {
                let next = rest.next().filter(|(key, _)| key.starts_with(prefix));
                *entry = next.map(|(key, value)| (key.as_slice(), value.as_deref()));
                Ok(entry.is_some())
            }
            Self::Run(scan) => scan.advance(unpacker),
        }
    }

    fn key(&self) -> &[u8] {
        match self {
            Self::Memory { entry, .. } => entry.map(|(key, _)| key).unwrap_or_default(),
            Self::Run(scan) => scan.key(),
        }
    }

    fn value(&self) -> Option<&[u8]> {
        match self {
            Self::Memory { entry, .. } => entry.and_then(|(_, value)| value),
            Self::Run(scan) => scan.value(),
        }
    }
}

/// Shows each key once, with what the newest source says of it.
pub(super) struct Merge<'a> {
    /// Newest first.
    sources: Vec<Source<'a>>,
    /// Those that have entries left. The least key comes last, of equal ones that of the newest.
    waiting: Vec<usize>,
    unpacker: Unpacker,
    shown: Vec<u8>,
    begun: bool,
}

impl<'a> Merge<'a> {
    /// Sources come newest first.
    pub(super) fn new(sources: impl IntoIterator<Item = Source<'a>>) -> Result<Self> {
        let sources: Vec<Source<'a>> = sources.into_iter().collect();
        let count = sources.len();
        let (waiting, unpacker, shown) = (Vec::with_capacity(count), Unpacker::default(), Vec::new());
        let mut merge = Self { sources, waiting, unpacker, shown, begun: false };
        for source in 0..count {
            merge.waiting.push(source);
            merge.advance()?;
        }
        Ok(merge)
    }

    /// The next key with what it holds.
    pub(super) fn next(&mut self) -> Result<Option<Change<'_>>> {
        while self.begun && self.waiting.last().is_some_and(|&least| self.sources[least].key() == self.shown) {
            self.advance()?;
        }
        self.begun = true;
        let Some(&least) = self.waiting.last() else { return Ok(None) };
        let source = &self.sources[least];
        self.shown.clear();
        self.shown.extend_from_slice(source.key());
        Ok(Some((source.key(), source.value())))
    }

    /// Goes to the next entry of the last of those that wait, and puts it where it belongs, if there is one.
    fn advance(&mut self) -> Result<()> {
        let Some(moving) = self.waiting.pop() else { return Ok(()) };
        if !self.sources[moving].advance(&mut self.unpacker)? {
            return Ok(());
        }
        let key = self.sources[moving].key();
        let comes_after =
            |&other: &usize| self.sources[other].key().cmp(key).then(other.cmp(&moving)) == Ordering::Greater;
        // Mostly it is the least again.
        let at = match self.waiting.last() {
            Some(last) if !comes_after(last) => self.waiting.partition_point(comes_after),
            _ => self.waiting.len(),
        };
        self.waiting.insert(at, moving);
        Ok(())
    }
}
