//! What stages look up by URL or digest: a small store of sorted runs under `_meta/index`.
//!
//! It only follows the tables, so that it need not survive damage, but notices all of it ([`run`]). Changes gather in
//! memory. A [flush](Index::flush) writes them as a run, immutable and sorted by kind and key, and then a
//! [`catalogue`] that names all runs; runs that have been outgrown by newer ones are merged with them ([`tiers`]). So a
//! poll writes what it touched and now and then a little more, and reads one block for each key it asks for.
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
/// Raised when files change their form: an index of another version is made anew.
const VERSION: u32 = 5;
/// A flush leaves no more runs than this.
const MOST_RUNS: usize = 12;
/// More runs than this do not wait for a flush.
const MOST_SPILLED: usize = 16;
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
        Self { block: 8 << 10, spill: 32 << 20 }
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

/// All layers at one moment, oldest first, and the number of the run that some of them are merged to.
struct Layers {
    runs: Vec<Arc<Run>>,
    frozen: Vec<Frozen>,
    since: [u64; KINDS],
    cursors: BTreeMap<String, Cursor>,
    output: u64,
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
        let mut writer = self.writer();
        let layers = self.freeze();
        let first = tiers::first_to_merge(&layers.weights(), MOST_RUNS).min(layers.runs.len());
        let output = self.merge(&layers, first, &mut writer)?;
        let kept =
            layers.runs[..first].iter().filter(|run| Kind::ALL.iter().any(|&kind| run.holds(kind, &layers.since)));
        let runs: Vec<Arc<Run>> = kept.cloned().chain(output).collect();
        let catalogue = Catalogue {
            runs: runs.iter().map(|run| run.entry.clone()).collect(),
            since: layers.since,
            next: layers.output + 1,
            cursors: layers.cursors,
        };
        if catalogue != (Catalogue { next: catalogue.next, ..writer.written.clone() }) {
            let named = writer.written.numbers();
            for run in runs.iter().filter(|run| !named.contains(&run.entry.number)) {
                run.sync()?;
            }
            self.sweep(&mut writer)?;
            self.folder.write_current(&catalogue.to_bytes())?;
            writer.written = catalogue;
        }
        self.install(runs, &layers.runs)
    }

    /// Removes an index that is damaged, so that the next open finds none.
    pub fn remove(dir: &Path) -> Result<()> {
        Folder::new(dir).remove()
    }

    /// Writes pending changes to a run that counts, but is not named before the next flush.
    fn spill(&self) -> Result<()> {
        let mut writer = self.writer();
        if self.state().pending.bytes() < self.sizes.spill {
            // Another thread did it.
            return Ok(());
        }
        let layers = self.freeze();
        let named = writer.written.numbers();
        let spilled = layers.runs.iter().filter(|run| !named.contains(&run.entry.number)).count();
        let first_spilled = layers.runs.len() - spilled;
        let first = if spilled < MOST_SPILLED {
            layers.runs.len()
        } else {
            let first = first_spilled + tiers::first_to_merge(&layers.weights()[first_spilled..], MOST_SPILLED);
            first.min(layers.runs.len())
        };
        let output = self.merge(&layers, first, &mut writer)?;
        let runs = layers.runs[..first].iter().cloned().chain(output).collect();
        self.install(runs, &layers.runs)
    }

    /// Takes what is pending out of the way of new changes; it is still seen.
    fn freeze(&self) -> Layers {
        let mut state = self.state_mut();
        if !state.pending.is_empty() {
            let changes = Arc::new(std::mem::take(&mut state.pending));
            let number = state.take_number();
            state.frozen.push(Frozen { number, changes });
        }
        Layers {
            runs: state.runs.clone(),
            frozen: state.frozen.clone(),
            since: state.since,
            cursors: state.cursors.clone(),
            output: state.take_number(),
        }
    }

    /// Merges the runs from `first` on and all that is frozen to one run, if that gives any entries.
    fn merge(&self, layers: &Layers, first: usize, writer: &mut Writer) -> Result<Option<Arc<Run>>> {
        let (older, newer) = layers.runs.split_at(first);
        let mut output = None;
        for kind in Kind::ALL {
            let mut sources = Vec::new();
            let frozen = layers.frozen.iter().rev().filter(|frozen| frozen.counts(kind, &layers.since));
            sources.extend(frozen.map(|frozen| Source::memory(frozen.of(kind), &[])));
            for run in newer.iter().rev().filter(|run| run.holds(kind, &layers.since)) {
                sources.push(Source::Run(Box::new(RunScan::new(run, kind, &[])?)));
            }
            // A deletion has done its work where there is nothing older to be hidden.
            let hides = older.iter().any(|run| run.holds(kind, &layers.since));
            let mut merge = Merge::new(sources)?;
            while let Some((key, value)) = merge.next()? {
                if value.is_none() && !hides {
                    continue;
                }
                let run = match &mut output {
                    Some(run) => run,
                    None => {
                        self.sweep(writer)?;
                        output.insert(RunWriter::new(&self.folder, layers.output, self.sizes.block)?)
                    }
                };
                run.add(kind, key, value)?;
            }
        }
        output.map(|run| run.finish().map(Arc::new)).transpose()
    }

    /// Puts runs in the place of those before and of all that was frozen, and removes files that are not used any more.
    fn install(&self, runs: Vec<Arc<Run>>, before: &[Arc<Run>]) -> Result<()> {
        let used: HashSet<u64> = runs.iter().map(|run| run.entry.number).collect();
        {
            let mut state = self.state_mut();
            state.runs = runs;
            state.frozen.clear();
        }
        let mut unused = before.iter().map(|run| run.entry.number).filter(|number| !used.contains(number));
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

    fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}

impl Layers {
    /// Of all runs, then of what is frozen.
    fn weights(&self) -> Vec<Weight> {
        let runs = self.runs.iter().map(|run| (run.entry.number, run.entry.amounts));
        let frozen = self.frozen.iter().map(|frozen| (frozen.number, frozen.changes.amounts()));
        let weight = |(number, amounts): (u64, [Amount; KINDS])| {
            let mut weight = Weight::default();
            for (amount, since) in amounts.iter().zip(self.since) {
                if number >= since {
                    weight.entries += amount.entries + amount.deletions;
                    weight.bytes += amount.bytes;
                } else {
                    weight.cleared_bytes += amount.bytes;
                }
            }
            weight
        };
        runs.chain(frozen).map(weight).collect()
    }
}
