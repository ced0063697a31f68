//! What stages look up by URL or digest: a small store of sorted runs under `_meta/index`.
//!
//! It only follows the tables, so that it need not survive damage, but notices all of it ([`run`]). Changes gather in
//! memory. A [flush](Index::flush) writes them as a run, immutable and sorted by kind and key, and then a
//! [`catalogue`] that names all runs; runs that have been outgrown by newer ones are merged with them ([`tiers`]). So a
//! poll writes what it touched and now and then a little more, and reads one block for each key it asks for. What every
//! capture changes has runs of its own ([`Pace`]): a night that reads all pages again rewrites these and no others.
//!
//! Keys that are asked for together should be neighbours: a block is read for each place in the order of keys.
//!
//! Processes that only read may open an index while another one writes it: they keep what they opened.

mod block;
mod bytes;
mod catalogue;
mod folder;
mod merge;
mod moment;
mod pending;
mod run;
#[cfg(test)]
mod tests;
mod tiers;

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::ScopedJoinHandle;

use serde::{Deserialize, Serialize};

use self::catalogue::{Amount, Catalogue};
use self::folder::Folder;
use self::merge::{Merge, Source};
pub use self::moment::Moment;
use self::pending::{Frozen, Pending};
use self::run::{Run, RunScan, RunWriter, Unpacker};
use self::tiers::Weight;
use super::{Result, StoreError};
use crate::model::closed_set::closed_set;
use crate::model::{Digest, SnapshotId};

closed_set! {
    /// What kind of fact an entry is. Order decides the place in a run.
    pub enum Kind: "kind of index entry" {
        Heads = "heads",
        Versions = "versions",
        Texts = "texts",
        Evidence = "evidence",
        Lines = "lines",
        LinksIn = "links_in",
        Linkers = "linkers",
        Extractions = "extractions",
        /// URLs with a page that some extractor failed on.
        Failing = "failing",
        Sources = "sources",
    }
}

const KINDS: usize = Kind::ALL.len();

/// How often entries change. Those of one pace share runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// With every capture. Heads are as much as all others of this pace, and are written beside them.
    Heads,
    Captures,
    /// With what pages hold.
    Contents,
}

impl Pace {
    const ALL: [Self; 3] = [Self::Heads, Self::Captures, Self::Contents];

    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Heads => Self::Heads,
            Kind::Evidence | Kind::Extractions => Self::Captures,
            Kind::Versions
            | Kind::Texts
            | Kind::Lines
            | Kind::LinksIn
            | Kind::Linkers
            | Kind::Failing
            | Kind::Sources => Self::Contents,
        }
    }

    /// In the order of runs.
    fn kinds(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |&kind| Self::of(kind) == self)
    }
}

/// Raised when files change their form: an index of another version is made anew.
const VERSION: u32 = 6;
/// A flush leaves no more runs of a pace than this.
const MOST_RUNS: usize = 8;
/// More runs of a pace than this do not wait for a flush.
const MOST_SPILLED: usize = 16;
/// Merging as many bytes is worth a thread.
const LARGE_MERGE: u64 = 4 << 20;
/// Lengths in a block fit into 32 bits.
const MOST_ENTRY_BYTES: usize = 1 << 30;

/// Is shown a key and its value; says whether it wants more.
pub(crate) type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<bool> + 'a;

/// How far a part of the index has followed the tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    pub snapshot: SnapshotId,
    pub digest: Digest,
}

/// The index. One process at a time may change it, which the store's lock sees to.
pub struct Index {
    folder: Folder,
    sizes: Sizes,
    state: RwLock<State>,
    /// Held by who writes files. Taken before `state`, never after it.
    writer: Mutex<Writer>,
}

#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// A block is ended when it has as many bytes.
    block: usize,
    /// Changes in memory are written to a run when they take as many bytes.
    spill: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { block: 16 << 10, spill: 32 << 20 }
    }
}

struct State {
    pending: Pending,
    /// Pending before, now being written to a run.
    frozen: Vec<Frozen>,
    /// Oldest first, those that were spilled included.
    runs: Vec<Arc<Run>>,
    /// For each kind the first run whose entries count.
    since: [u64; KINDS],
    next: u64,
    cursors: BTreeMap<String, Cursor>,
}

struct Writer {
    /// What is on disk.
    written: Catalogue,
    /// Whether what others left was removed.
    swept: bool,
}

/// All layers at one moment, oldest first, and for each pace the number of the run that some of them are merged to.
struct Layers {
    runs: Vec<Arc<Run>>,
    frozen: Vec<Frozen>,
    since: [u64; KINDS],
    cursors: BTreeMap<String, Cursor>,
    outputs: [u64; Pace::ALL.len()],
}

/// What a flush merges of a pace.
struct PaceMerge {
    pace: Pace,
    /// Its runs, oldest first.
    all: Vec<Arc<Run>>,
    /// The first that is merged with all newer ones.
    first: usize,
    /// Of all that is merged.
    bytes: u64,
}

/// A merge that others work on, or that nobody has begun.
enum Begun<'scope, 'merge> {
    Beside(ScopedJoinHandle<'scope, Result<Option<Arc<Run>>>>),
    Here(&'merge PaceMerge),
}

/// How the blocks of a run are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Zstd,
    /// For runs that are merged before the program ends.
    None,
}

impl Index {
    /// Opens what lies in `dir`; an empty index if there is none. Damage of the catalogue or of a run's frame is an error.
    pub fn open(dir: &Path) -> Result<Self> {
        Self::open_with(dir, Sizes::default())
    }

    /// The index of somebody else: what is changed here stays in memory.
    pub fn open_to_read(dir: &Path) -> Result<Self> {
        Self::open_with(dir, Sizes { spill: usize::MAX, ..Sizes::default() })
    }

    fn open_with(dir: &Path, sizes: Sizes) -> Result<Self> {
        let folder = Folder::new(dir);
        let (written, runs) = read(&folder)?;
        let Catalogue { since, next, cursors, .. } = written.clone();
        let state = State { pending: Pending::default(), frozen: Vec::new(), runs, since, next, cursors };
        Ok(Self { folder, sizes, state: RwLock::new(state), writer: Mutex::new(Writer { written, swept: false }) })
    }

    /// How far a part has come; what was set last counts, flushed or not.
    pub fn cursor(&self, name: &str) -> Option<Cursor> {
        self.state().cursors.get(name).cloned()
    }

    /// Takes effect in memory at once and on disk with the next flush.
    pub fn set_cursor(&self, name: &str, cursor: Cursor) {
        self.state_mut().cursors.insert(name.to_owned(), cursor);
    }

    /// Takes effect in memory at once and on disk with the next flush.
    pub fn forget_cursor(&self, name: &str) {
        self.state_mut().cursors.remove(name);
    }

    /// The value of a key; pending changes count.
    pub fn get(&self, kind: Kind, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.get_many(kind, &[key])?.pop().flatten())
    }

    /// The values of keys in any order; pending changes count.
    pub fn get_many<K: AsRef<[u8]>>(&self, kind: Kind, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut found = vec![None; keys.len()];
        let mut left: Vec<usize> = (0..keys.len()).collect();
        let runs: Vec<Arc<Run>> = {
            let state = self.state();
            left.retain(|&place| match state.changed(kind, keys[place].as_ref()) {
                Some(value) => {
                    found[place] = value.cloned();
                    false
                }
                None => true,
            });
            state.runs.iter().rev().filter(|run| run.holds(kind, &state.since)).cloned().collect()
        };
        if left.is_empty() || runs.is_empty() {
            return Ok(found);
        }
        left.sort_unstable_by_key(|&place| keys[place].as_ref());
        let mut unpacker = Unpacker::default();
        for run in runs {
            if left.is_empty() {
                break;
            }
            run.find(kind, keys, &mut left, &mut found, &mut unpacker)?;
        }
        Ok(found)
    }

    /// Shows all entries whose key starts with `prefix`, by key; `visit` ends it by returning false. What is changed
    /// meanwhile is not seen. Of each run a block is held.
    pub fn scan(&self, kind: Kind, prefix: &[u8], visit: &mut Visit<'_>) -> Result<()> {
        self.moment().scan(kind, prefix, visit)
    }

    /// Sets what a key holds.
    pub fn put(&self, kind: Kind, key: Vec<u8>, value: Vec<u8>) -> Result<()> {
        self.change(kind, key, Some(value))
    }

    /// Removes a key, if it is there.
    pub fn delete(&self, kind: Kind, key: Vec<u8>) -> Result<()> {
        self.change(kind, key, None)
    }

    fn change(&self, kind: Kind, key: Vec<u8>, value: Option<Vec<u8>>) -> Result<()> {
        if key.len() + value.as_ref().map_or(0, Vec::len) > MOST_ENTRY_BYTES {
            let problem = format!("an entry of the index has more than {MOST_ENTRY_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem).into());
        }
        let mut state = self.state_mut();
        state.pending.insert(kind, key, value);
        let full = state.pending.bytes() >= self.sizes.spill;
        drop(state);
        if full { self.spill() } else { Ok(()) }
    }

    /// Drops all entries of a kind.
    pub fn clear(&self, kind: Kind) -> Result<()> {
        let mut state = self.state_mut();
        state.pending.clear(kind);
        state.since[kind as usize] = state.next;
        Ok(())
    }

    /// Makes everything durable, all or nothing: after a crash at any point the index is as after the last flush that
    /// ended, or as after this one.
    pub fn flush(&self) -> Result<()> {
        self.flush_with(false)
    }

    /// The same. What is much of each pace is written on a thread of its own.
    pub fn flush_on_threads(&self) -> Result<()> {
        self.flush_with(true)
    }

    fn flush_with(&self, threads: bool) -> Result<()> {
        let mut writer = self.writer();
        let layers = self.freeze();
        let named = writer.written.numbers();
        let merges = Pace::ALL.map(|pace| {
            let all = layers.runs_of(pace);
            let weights = layers.weights(pace, &all);
            let loose = all.iter().position(|run| !run.is_packed()).unwrap_or(all.len());
            let first = tiers::first_to_merge(&weights, MOST_RUNS).min(loose);
            let bytes = weights[first..].iter().map(|weight| weight.bytes).sum();
            PaceMerge { pace, all, first, bytes }
        });
        if !layers.frozen.is_empty() || merges.iter().any(|merge| merge.first < merge.all.len()) {
            self.sweep(&mut writer)?;
        }
        let outputs = self.merge_all(&layers, &merges, threads)?;
        let mut runs = Vec::new();
        for (PaceMerge { pace, all, first, .. }, output) in merges.iter().zip(outputs) {
            let kept = all[..*first].iter().filter(|run| pace.kinds().any(|kind| run.holds(kind, &layers.since)));
            runs.extend(kept.cloned().chain(output));
        }
        runs.sort_unstable_by_key(|run| run.entry.number);
        let catalogue = Catalogue {
            runs: runs.iter().map(|run| run.entry.clone()).collect(),
            since: layers.since,
            next: layers.end(),
            cursors: layers.cursors.clone(),
        };
        if catalogue != (Catalogue { next: catalogue.next, ..writer.written.clone() }) {
            for run in runs.iter().filter(|run| !named.contains(&run.entry.number)) {
                run.sync()?;
            }
            self.sweep(&mut writer)?;
            self.folder.write_current(&catalogue.to_bytes())?;
            writer.written = catalogue;
        }
        self.install(runs, &layers)
    }

    /// Removes an index that is damaged, so that the next open finds none.
    pub fn remove(dir: &Path) -> Result<()> {
        Folder::new(dir).remove()
    }

    /// Writes pending changes to runs that count, but are not named before the next flush.
    fn spill(&self) -> Result<()> {
        let mut writer = self.writer();
        if self.state().pending.bytes() < self.sizes.spill {
            // Another thread did it.
            return Ok(());
        }
        self.sweep(&mut writer)?;
        let layers = self.freeze();
        let named = writer.written.numbers();
        let mut runs = Vec::new();
        for pace in Pace::ALL {
            let all = layers.runs_of(pace);
            let spilled = all.iter().filter(|run| !named.contains(&run.entry.number)).count();
            let first_spilled = all.len() - spilled;
            let first = if spilled < MOST_SPILLED {
                all.len()
            } else {
                let first = tiers::first_to_merge(&layers.weights(pace, &all[first_spilled..]), MOST_SPILLED);
                (first_spilled + first).min(all.len())
            };
            let output = self.merge(&layers, pace, &all[first..], Packing::None)?;
            runs.extend(all[..first].iter().cloned().chain(output));
        }
        runs.sort_unstable_by_key(|run| run.entry.number);
        self.install(runs, &layers)
    }

    /// Takes what is pending out of the way of new changes; it is still seen.
    fn freeze(&self) -> Layers {
        let mut state = self.state_mut();
        state.freeze();
        Layers {
            runs: state.runs.clone(),
            frozen: state.frozen.clone(),
            since: state.since,
            cursors: state.cursors.clone(),
            outputs: Pace::ALL.map(|_| state.take_number()),
        }
    }

    /// Merges what flushing merges of each pace. Threads are made for it: those of a pool may take up work meanwhile that
    /// waits for this to end.
    fn merge_all(&self, layers: &Layers, merges: &[PaceMerge], threads: bool) -> Result<Vec<Option<Arc<Run>>>> {
        let merge =
            |PaceMerge { pace, all, first, .. }: &PaceMerge| self.merge(layers, *pace, &all[*first..], Packing::Zstd);
        if !threads {
            return merges.iter().map(merge).collect();
        }
        std::thread::scope(|scope| {
            let begun = merges.iter().map(|each| match each.bytes >= LARGE_MERGE {
                true => Begun::Beside(scope.spawn(move || merge(each))),
                false => Begun::Here(each),
            });
            let begun: Vec<Begun<'_, '_>> = begun.collect();
            let ended = begun.into_iter().map(|begun| match begun {
                Begun::Here(each) => merge(each),
                Begun::Beside(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            });
            ended.collect()
        })
    }

    /// Merges the newest runs of a pace and all that is frozen of it to one run, if that gives any entries.
    fn merge(&self, layers: &Layers, pace: Pace, newest: &[Arc<Run>], packing: Packing) -> Result<Option<Arc<Run>>> {
        let oldest = newest.first().map_or(u64::MAX, |run| run.entry.number);
        let mut output = None;
        for kind in pace.kinds() {
            let mut sources = Vec::new();
            let frozen = layers.frozen.iter().rev().filter(|frozen| frozen.counts(kind, &layers.since));
            sources.extend(frozen.map(|frozen| Source::memory(frozen.of(kind), &[])));
            for run in newest.iter().rev().filter(|run| run.holds(kind, &layers.since)) {
                sources.push(Source::Run(Box::new(RunScan::new(run, kind, &[])?)));
            }
            // A deletion has done its work where there is nothing older to be hidden.
            let mut older = layers.runs.iter().filter(|run| run.entry.number < oldest);
            let hides = older.any(|run| run.holds(kind, &layers.since));
            let mut merge = Merge::new(sources)?;
            while let Some((key, value)) = merge.next()? {
                if value.is_none() && !hides {
                    continue;
                }
                let run = match &mut output {
                    Some(run) => run,
                    None => {
                        let number = layers.outputs[pace as usize];
                        output.insert(RunWriter::new(&self.folder, number, self.sizes.block, packing)?)
                    }
                };
                run.add(kind, key, value)?;
            }
        }
        output.map(|run| run.finish().map(Arc::new)).transpose()
    }

    /// Puts runs in the place of the layers that they were made of, and removes files that are not used any more.
    fn install(&self, runs: Vec<Arc<Run>>, layers: &Layers) -> Result<()> {
        let used: HashSet<u64> = runs.iter().map(|run| run.entry.number).collect();
        {
            let mut state = self.state_mut();
            state.runs = runs;
            // What was frozen meanwhile is in no run yet.
            let end = layers.end();
            state.frozen.retain(|frozen| frozen.number >= end);
        }
        let mut unused = layers.runs.iter().map(|run| run.entry.number).filter(|number| !used.contains(number));
        unused.try_for_each(|number| self.folder.remove_run(number))
    }

    /// Removes runs that no catalogue names, before the first file of this process is written. Who only reads leaves
    /// them alone: they may belong to a process that is about to name them.
    fn sweep(&self, writer: &mut Writer) -> Result<()> {
        if !writer.swept {
            self.folder.sweep(&writer.written.numbers())?;
            writer.swept = true;
        }
        Ok(())
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The catalogue and the runs it names.
fn read(folder: &Folder) -> Result<(Catalogue, Vec<Arc<Run>>)> {
    let mut bytes = folder.read_current()?;
    loop {
        let Some(present) = &bytes else { return Ok((Catalogue::default(), Vec::new())) };
        let catalogue = Catalogue::from_bytes(present)
            .map_err(|problem| StoreError::Damaged { path: folder.current(), problem })?;
        let runs = catalogue.runs.iter().map(|entry| Run::open(folder, entry.clone()).map(Arc::new)).collect();
        match runs {
            Ok(runs) => return Ok((catalogue, runs)),
            Err(StoreError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                // Another process may have removed it after naming others.
                let later = folder.read_current()?;
                if later == bytes {
                    return Err(StoreError::Damaged { path: folder.current(), problem: error.to_string() });
                }
                bytes = later;
            }
            Err(error) => return Err(error),
        }
    }
}

impl State {
    /// What changes in memory say of a key.
    fn changed(&self, kind: Kind, key: &[u8]) -> Option<Option<&Vec<u8>>> {
        let pending = self.pending.of(kind).get(key);
        let changed = pending.or_else(|| self.frozen_of(kind).find_map(|frozen| frozen.of(kind).get(key)));
        changed.map(Option::as_ref)
    }

    /// Newest first.
    fn frozen_of(&self, kind: Kind) -> impl Iterator<Item = &Frozen> {
        self.frozen.iter().rev().filter(move |frozen| frozen.counts(kind, &self.since))
    }

    /// Makes what is pending a layer of its own.
    fn freeze(&mut self) {
        if !self.pending.is_empty() {
            let changes = Arc::new(std::mem::take(&mut self.pending));
            let number = self.take_number();
            self.frozen.push(Frozen { number, changes });
        }
    }

    fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}

impl Layers {
    /// The runs that hold kinds of a pace, oldest first.
    fn runs_of(&self, pace: Pace) -> Vec<Arc<Run>> {
        self.runs.iter().filter(|run| run.pace() == pace).cloned().collect()
    }

    /// Greater than the numbers of all layers, and of what is made of them.
    fn end(&self) -> u64 {
        self.outputs.iter().max().map_or(0, |last| last + 1)
    }

    /// Of runs of a pace, then of what is frozen of it.
    fn weights(&self, pace: Pace, runs: &[Arc<Run>]) -> Vec<Weight> {
        let weight = |number: u64, amount: &dyn Fn(Kind) -> Amount| {
            let mut weight = Weight::default();
            for kind in pace.kinds() {
                let amount = amount(kind);
                if number >= self.since[kind as usize] {
                    weight.entries += amount.entries + amount.deletions;
                    weight.bytes += amount.bytes;
                } else {
                    weight.cleared_bytes += amount.bytes;
                }
            }
            weight
        };
        let runs = runs.iter().map(|run| weight(run.entry.number, &|kind| run.entry.amounts[kind as usize]));
        let frozen = self.frozen.iter().map(|frozen| weight(frozen.number, &|kind| frozen.changes.amount(kind)));
        runs.chain(frozen).collect()
    }
}
