//! What is done: one file per snapshot, with an entry for each stage, written after everything that the entry names.
//!
//! An entry also carries what its stage leaves for later ones, as a typed [`Summary`]. Reading is strict: an entry of
//! another version, or one with a field too few or too many, is an error that names the file and what to do.
//!
//! Every entry has a lineage: it identifies what the stage made, and what that was made of. Where an entry was made of
//! something that has been made anew since, it is out of date; that is all there is to know about what must be redone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::parquet::Written;
use super::sums::{is_as_written, summed};
use super::{Result, Store, StoreError, read_if_there, remove_file_if_there, write_bytes};
use crate::model::{Digest, DigestBuilder, Problem, Snapshot, SnapshotId, StageId, Timestamp};

/// What a stage leaves for later ones.
pub trait Summary: Serialize + DeserializeOwned {
    const STAGE: StageId;
    /// Raised when a field comes, goes or changes its meaning.
    const VERSION: u32;
}

/// A stage is done for a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest<S> {
    pub snapshot: SnapshotId,
    /// The snapshot's time, which orders snapshots.
    pub time: Timestamp,
    /// Version of the program that wrote it.
    pub ratoon: String,
    /// What was read: folder listing, earlier manifests.
    pub inputs: Digest,
    /// Settings that the result depends on.
    pub settings: Digest,
    /// Identifies the result and what it was made of; set when it is committed.
    pub lineage: Digest,
    /// Lineages of what it was made of: stages of the same snapshot.
    pub made_of: BTreeMap<StageId, Digest>,
    /// The lineage of `ingest` in the snapshot before, if the stage goes on from there.
    pub follows: Option<Digest>,
    pub tables: BTreeMap<String, Written>,
    /// What the stage found wrong with the snapshot. No result depends on it.
    pub problems: Vec<Problem>,
    /// What the stage could not do and the next run tries again on the newest snapshot.
    pub shortfall: Shortfall,
    pub seconds: f64,
    pub summary: S,
}

/// Extractions of a snapshot that failed, and those that were left for later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shortfall {
    pub failed: u64,
    pub deferred: u64,
}

impl Shortfall {
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// A manifest without what the stage leaves for others: all that is needed to know that a stage is done.
pub(crate) type Done = Manifest<()>;

impl<S> Manifest<S> {
    pub fn new(snapshot: &Snapshot, inputs: Digest, settings: Digest, summary: S) -> Self {
        Self {
            snapshot: snapshot.id.clone(),
            time: snapshot.time,
            ratoon: env!("CARGO_PKG_VERSION").to_owned(),
            inputs,
            settings,
            lineage: Digest::of(b""),
            made_of: BTreeMap::new(),
            follows: None,
            tables: BTreeMap::new(),
            problems: Vec::new(),
            shortfall: Shortfall::default(),
            seconds: 0.0,
            summary,
        }
    }

    /// Rows that were written to a table.
    #[must_use]
    pub fn rows(&self, table: &str) -> u64 {
        self.tables.get(table).map_or(0, |written| written.rows)
    }

    /// Size of the file of a table's partition; 0 without one.
    pub(super) fn bytes(&self, table: &str) -> u64 {
        self.tables.get(table).map_or(0, |written| written.bytes)
    }

    /// Rows by table.
    #[must_use]
    pub fn all_rows(&self) -> BTreeMap<String, u64> {
        self.tables.iter().map(|(name, written)| (name.clone(), written.rows)).collect()
    }

    fn with_summary<T>(self, summary: T) -> Manifest<T> {
        let (snapshot, time) = (self.snapshot, self.time);
        let Self { ratoon, inputs, settings, lineage, made_of, follows, tables, problems, shortfall, seconds, .. } =
            self;
        Manifest {
            snapshot,
            time,
            ratoon,
            inputs,
            settings,
            lineage,
            made_of,
            follows,
            tables,
            problems,
            shortfall,
            seconds,
            summary,
        }
    }
}

impl<S: Summary> Manifest<S> {
    /// The manifest without its summary.
    #[must_use]
    pub fn done(&self) -> Done {
        Manifest {
            snapshot: self.snapshot.clone(),
            time: self.time,
            ratoon: self.ratoon.clone(),
            inputs: self.inputs,
            settings: self.settings,
            lineage: self.lineage,
            made_of: self.made_of.clone(),
            follows: self.follows,
            tables: self.tables.clone(),
            problems: self.problems.clone(),
            shortfall: self.shortfall,
            seconds: self.seconds,
            summary: (),
        }
    }

    /// Identifies what was made, and what of. Times that were measured on the way do not count.
    fn identity(&self) -> Digest {
        let mut builder = DigestBuilder::new();
        builder.field(S::STAGE.as_str().as_bytes()).field(self.snapshot.as_str().as_bytes());
        builder.field(&self.settings.0).field(&self.inputs.0);
        if let Some(before) = self.follows {
            builder.field(&before.0);
        }
        for (stage, lineage) in &self.made_of {
            builder.field(stage.as_str().as_bytes()).field(&lineage.0);
        }
        for (table, written) in self.tables.iter().filter(|(table, _)| !MEASURED.contains(&table.as_str())) {
            builder.field(table.as_bytes()).field(&written.digest.0);
        }
        builder.finish()
    }
}

/// Tables that hold measured times, which are never twice the same.
const MEASURED: [&str; 2] = ["plans", "plan_costs"];

/// An entry as it lies on disk.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry<S> {
    version: u32,
    ratoon: String,
    inputs: Digest,
    settings: Digest,
    lineage: Digest,
    made_of: BTreeMap<StageId, Digest>,
    follows: Option<Digest>,
    tables: BTreeMap<String, Written>,
    problems: Vec<Problem>,
    shortfall: Shortfall,
    seconds: f64,
    summary: S,
}

impl Entry<()> {
    /// A manifest as the catalogue has it.
    pub(super) fn of(done: &Done) -> Self {
        Self {
            version: 0,
            ratoon: done.ratoon.clone(),
            inputs: done.inputs,
            settings: done.settings,
            lineage: done.lineage,
            made_of: done.made_of.clone(),
            follows: done.follows,
            tables: done.tables.clone(),
            problems: done.problems.clone(),
            shortfall: done.shortfall,
            seconds: done.seconds,
            summary: (),
        }
    }
}

impl<S> Entry<S> {
    pub(super) fn into_manifest(self, snapshot: &Snapshot) -> Manifest<S> {
        let Self { ratoon, inputs, settings, lineage, made_of, follows, tables, .. } = self;
        let Self { problems, shortfall, seconds, summary, .. } = self;
        let empty = Manifest::new(snapshot, inputs, settings, summary);
        Manifest { ratoon, lineage, made_of, follows, tables, problems, shortfall, seconds, ..empty }
    }
}

/// A file as it lies on disk, with what is wanted of its entries.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(bound(deserialize = "E: Deserialize<'de>"))]
struct File<E> {
    snapshot: SnapshotId,
    time: Timestamp,
    stages: E,
    #[serde(rename = "sum", default)]
    _sum: Option<Digest>,
}

/// All entries, as they are.
#[derive(Serialize)]
struct WholeFile<'a> {
    snapshot: &'a SnapshotId,
    time: Timestamp,
    stages: &'a BTreeMap<StageId, serde_json::Value>,
}

/// The entry of one stage; the others are passed over.
struct OneStage<S>(Option<serde_json::Value>, PhantomData<fn() -> S>);

impl<'de, S: Summary> Deserialize<'de> for OneStage<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pick(StageId);

        impl<'de> Visitor<'de> for Pick {
            type Value = Option<serde_json::Value>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the stages of a snapshot")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut found = None;
                while let Some(stage) = map.next_key::<StageId>()? {
                    if stage == self.0 {
                        found = Some(map.next_value()?);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(found)
            }
        }
        Ok(Self(deserializer.deserialize_map(Pick(S::STAGE))?, PhantomData))
    }
}

/// What is done for a snapshot.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotDone {
    pub(crate) snapshot: Snapshot,
    pub(crate) stages: BTreeMap<StageId, Done>,
    /// What ingest left for others, as JSON with its version: every stage asks for it.
    pub(super) ingested: Option<(u32, String)>,
}

impl SnapshotDone {
    /// What is wrong with the snapshot, by the stage that saw it.
    pub(crate) fn problems(&self) -> impl Iterator<Item = (StageId, &Problem)> {
        self.stages.iter().flat_map(|(stage, done)| done.problems.iter().map(|problem| (*stage, problem)))
    }

    /// The partition of a table, if a stage names it.
    pub(crate) fn table(&self, table: &str) -> Option<&Written> {
        self.stages.values().find_map(|done| done.tables.get(table))
    }
}

impl Store {
    fn manifest_folder(&self) -> PathBuf {
        self.meta().join("snapshots")
    }

    pub(super) fn manifest_file(&self, snapshot: &SnapshotId) -> PathBuf {
        self.manifest_folder().join(format!("{snapshot}.json"))
    }

    /// The manifest of a stage for a snapshot; `None` if the stage is not done for it.
    pub fn manifest<S: Summary>(&self, snapshot: &SnapshotId) -> Result<Option<Manifest<S>>> {
        self.note_manifest(S::STAGE)?;
        self.read_manifest(snapshot)
    }

    fn read_manifest<S: Summary>(&self, snapshot: &SnapshotId) -> Result<Option<Manifest<S>>> {
        let path = self.manifest_file(snapshot);
        if S::STAGE == StageId::Ingest
            && let Some(done) = self.snapshot_done(snapshot)?
            && let Some((done, (version, summary))) = done.stages.get(&S::STAGE).zip(done.ingested.as_ref())
            && *version == S::VERSION
            && let Ok(summary) = serde_json::from_str(summary)
        {
            return Ok(Some(done.clone().with_summary(summary)));
        }
        let Some(bytes) = read_if_there(&path)? else { return Ok(None) };
        let file = parse::<OneStage<S>>(&bytes, &path)?;
        let Some(entry) = file.stages.0 else { return Ok(None) };
        let bad = |problem: String| StoreError::Manifest { path: path.clone(), stage: S::STAGE, problem };
        let mut entry: Entry<serde_json::Value> =
            serde_json::from_value(entry).map_err(|error| bad(error.to_string()))?;
        if entry.version != S::VERSION {
            return Err(bad(format!("version {}, this program reads {}", entry.version, S::VERSION)));
        }
        let summary = S::deserialize(entry.summary.take()).map_err(|error| bad(format!("summary: {error}")))?;
        let snapshot = Snapshot { id: file.snapshot, time: file.time };
        Ok(Some(entry.into_manifest(&snapshot).with_summary(summary)))
    }

    /// All manifests of a stage, oldest snapshot first.
    pub fn manifests<S: Summary>(&self) -> Result<Vec<Manifest<S>>> {
        self.note_manifest(S::STAGE)?;
        let mut manifests = Vec::new();
        for id in self.named_snapshots()? {
            manifests.extend(self.read_manifest(&id)?);
        }
        manifests.sort_by(|a, b| (a.time, &a.snapshot).cmp(&(b.time, &b.snapshot)));
        Ok(manifests)
    }

    /// Whether a stage is done for a snapshot, whatever its summary says.
    pub fn done(&self, stage: StageId, snapshot: &SnapshotId) -> Result<Option<Done>> {
        Ok(self.snapshot_done(snapshot)?.and_then(|done| done.stages.get(&stage).cloned()))
    }

    /// The stages that are done for a snapshot.
    pub(crate) fn snapshot_done(&self, snapshot: &SnapshotId) -> Result<Option<Arc<SnapshotDone>>> {
        if let Some(done) = self.remembered_done(snapshot) {
            return Ok(Some(done));
        }
        let done = match self.gathered(snapshot)? {
            Some(done) => Some(done),
            None => self.read_done(snapshot)?,
        };
        if let Some(done) = &done {
            self.remember_done(done);
        }
        Ok(done)
    }

    fn read_done(&self, snapshot: &SnapshotId) -> Result<Option<Arc<SnapshotDone>>> {
        let path = self.manifest_file(snapshot);
        let Some(bytes) = read_if_there(&path)? else { return Ok(None) };
        let file = parse::<BTreeMap<StageId, serde_json::Value>>(&bytes, &path)?;
        let snapshot = Snapshot { id: file.snapshot, time: file.time };
        let (mut stages, mut ingested) = (BTreeMap::new(), None);
        for (stage, mut entry) in file.stages {
            let bad = |problem: String| StoreError::Manifest { path: path.clone(), stage, problem };
            let summary = entry.get_mut("summary").map(serde_json::Value::take);
            let entry: Entry<IgnoredAny> = serde_json::from_value(entry).map_err(|error| bad(error.to_string()))?;
            if stage == StageId::Ingest {
                ingested = summary.map(|summary| (entry.version, summary.to_string()));
            }
            stages.insert(stage, entry.into_manifest(&snapshot).with_summary(()));
        }
        Ok(Some(Arc::new(SnapshotDone { snapshot, stages, ingested })))
    }

    /// What is done for all snapshots, oldest first.
    pub(crate) fn all_done(&self) -> Result<Arc<Vec<Arc<SnapshotDone>>>> {
        if let Some(all) = self.remembered_all_done() {
            return Ok(all);
        }
        let mut all = Vec::new();
        for id in self.named_snapshots()? {
            all.extend(self.snapshot_done(&id)?);
        }
        all.sort_by(|a, b| (a.snapshot.time, &a.snapshot.id).cmp(&(b.snapshot.time, &b.snapshot.id)));
        let all = Arc::new(all);
        self.remember_all_done(&all);
        Ok(all)
    }

    /// The snapshots that have a manifest.
    pub(super) fn named_snapshots(&self) -> Result<BTreeSet<SnapshotId>> {
        let dir = self.manifest_folder();
        let mut ids = BTreeSet::new();
        if dir.is_dir() {
            for entry in fs::read_dir(&dir)? {
                let name = entry?.file_name();
                let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
                ids.extend(id.and_then(|id| SnapshotId::new(id).ok()));
            }
        }
        Ok(ids)
    }

    /// Changes what a manifest says. Its lineage stays: what was made of it is not out of date.
    pub fn replace_manifest<S: Summary>(&self, manifest: &Manifest<S>) -> Result<()> {
        let (path, bytes) = self.manifest_bytes(manifest)?;
        write_bytes(&path, &bytes)?;
        self.forget_done(&manifest.snapshot);
        Ok(())
    }

    /// The file of a snapshot with this manifest in it.
    pub(super) fn manifest_bytes<S: Summary>(&self, manifest: &Manifest<S>) -> Result<(PathBuf, Vec<u8>)> {
        let snapshot = &manifest.snapshot;
        let path = self.manifest_file(snapshot);
        let json = |source| StoreError::Json { path: path.clone(), source };
        let entry = Entry { version: S::VERSION, ..Entry::of(&manifest.done()) };
        let mut entry = serde_json::to_value(entry).map_err(json)?;
        entry["summary"] = serde_json::to_value(&manifest.summary).map_err(json)?;
        let mut stages = self.entries(&path)?;
        stages.insert(S::STAGE, entry);
        let bytes = serde_json::to_vec(&WholeFile { snapshot, time: manifest.time, stages: &stages }).map_err(json)?;
        Ok((path, summed(bytes)))
    }

    fn entries(&self, path: &Path) -> Result<BTreeMap<StageId, serde_json::Value>> {
        let Some(bytes) = read_if_there(path)? else { return Ok(BTreeMap::new()) };
        Ok(parse::<BTreeMap<StageId, serde_json::Value>>(&bytes, path)?.stages)
    }

    /// From now on these stages have not been done for this snapshot.
    pub fn forget(&self, stages: &[StageId], snapshot: &SnapshotId) -> Result<()> {
        let path = self.manifest_file(snapshot);
        let Some(done) = self.snapshot_done(snapshot)? else { return Ok(()) };
        let mut entries = self.entries(&path)?;
        entries.retain(|stage, _| !stages.contains(stage));
        self.forget_done(snapshot);
        if entries.is_empty() {
            return remove_file_if_there(&path);
        }
        let Snapshot { id, time } = &done.snapshot;
        let bytes = serde_json::to_vec(&WholeFile { snapshot: id, time: *time, stages: &entries })
            .map_err(|source| StoreError::Json { path: path.clone(), source })?;
        write_bytes(&path, &summed(bytes))
    }

    /// Takes away the manifest of a snapshot if it cannot be read, so that all that it said is made again.
    pub(crate) fn forget_unreadable(&self, snapshot: &SnapshotId) -> Result<()> {
        match self.snapshot_done(snapshot) {
            Err(StoreError::Damaged { .. } | StoreError::Manifest { .. }) => {
                remove_file_if_there(&self.manifest_file(snapshot))
            }
            other => other.map(|_| ()),
        }
    }

    /// Seals a manifest: from now on it says what was made, and what of.
    pub(super) fn sealed<S: Summary>(manifest: &mut Manifest<S>) {
        manifest.lineage = manifest.identity();
    }
}

fn parse<'a, E: Deserialize<'a>>(bytes: &'a [u8], path: &Path) -> Result<File<E>> {
    let id = path.file_stem().unwrap_or_default().display();
    let damaged = |problem: String| {
        let hint = format!("`ratoon run PIPELINE --force --snapshot {id}` makes it again");
        StoreError::Damaged { path: path.to_owned(), problem: format!("{problem}; {hint}") }
    };
    if !is_as_written(bytes) {
        return Err(damaged("damaged: it is not what was written".to_owned()));
    }
    let read = serde_json::from_slice::<File<E>>(bytes);
    let file = read.map_err(|error| damaged(format!("no manifest that this program can read ({error})")))?;
    // A sound file in the wrong place: all that it names would be looked for under another snapshot.
    if file.snapshot.as_str() != id.to_string() {
        return Err(damaged(format!("damaged: it is the manifest of {}", file.snapshot)));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::super::sums;
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Counted {
        pages: u64,
    }

    impl Summary for Counted {
        const STAGE: StageId = StageId::Ingest;
        const VERSION: u32 = 3;
    }

    #[test]
    fn what_a_manifest_lacks_is_told_and_never_made_up() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path()).unwrap();
        let snapshot = Snapshot { id: SnapshotId::new("n1").unwrap(), time: Timestamp(7) };
        let manifest = Manifest::new(&snapshot, Digest::of(b"i"), Digest::of(b"s"), Counted { pages: 5 });
        store.replace_manifest(&manifest).unwrap();
        assert_eq!(store.manifest::<Counted>(&snapshot.id).unwrap().unwrap(), manifest);
        assert_eq!(store.all_done().unwrap()[0].stages[&StageId::Ingest], manifest.done());
        let path = store.manifest_file(&snapshot.id);
        let sound = fs::read_to_string(&path).unwrap();
        for (from, to, said) in [
            ("\"pages\":5", "", "missing field `pages`"),
            ("\"pages\":5", "\"pages\":5, \"page\":5", "unknown field `page`"),
            ("\"version\":3", "\"version\":2", "version 2, this program reads 3"),
            ("\"ingest\"", "\"swallow\"", "unknown variant `swallow`"),
        ] {
            assert!(sound.contains(from), "{sound}");
            let object = sound[..sound.len() - sums::SUM.len() - sums::SUM_END].to_owned() + "}";
            fs::write(&path, summed(object.replace(from, to).into_bytes())).unwrap();
            let store = Store::open(dir.path()).unwrap().unwrap();
            let error = store.manifest::<Counted>(&snapshot.id).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("n1.json"), "{error}");
        }
    }

    #[test]
    fn the_manifest_of_another_snapshot_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path()).unwrap();
        let ids = ["n1", "n2"].map(|id| SnapshotId::new(id).unwrap());
        for (time, id) in (7..).zip(&ids) {
            let snapshot = Snapshot { id: id.clone(), time: Timestamp(time) };
            let manifest = Manifest::new(&snapshot, Digest::of(b"i"), Digest::of(b"s"), Counted { pages: 5 });
            store.replace_manifest(&manifest).unwrap();
        }
        fs::copy(store.manifest_file(&ids[0]), store.manifest_file(&ids[1])).unwrap();
        let store = Store::open(dir.path()).unwrap().unwrap();
        store.manifest::<Counted>(&ids[0]).unwrap().unwrap();
        for error in [store.manifest::<Counted>(&ids[1]).unwrap_err(), store.all_done().unwrap_err()] {
            let error = error.to_string();
            assert!(error.contains("the manifest of n1") && error.contains("--force --snapshot n2"), "{error}");
        }
        store.forget_unreadable(&ids[1]).unwrap();
        assert_eq!(store.all_done().unwrap().len(), 1);
    }

    /// A flipped bit in a number would go unnoticed, and with it whatever rests on the number.
    #[test]
    fn no_byte_of_a_manifest_changes_unnoticed() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path()).unwrap();
        let snapshot = Snapshot { id: SnapshotId::new("n1").unwrap(), time: Timestamp(7) };
        let manifest = Manifest::new(&snapshot, Digest::of(b"i"), Digest::of(b"s"), Counted { pages: 5 });
        store.replace_manifest(&manifest).unwrap();
        let path = store.manifest_file(&snapshot.id);
        let sound = fs::read(&path).unwrap();
        serde_json::from_slice::<serde_json::Value>(&sound).expect("it is JSON");
        for at in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 1 << (at % 7);
            fs::write(&path, bytes).unwrap();
            let store = Store::open(dir.path()).unwrap().unwrap();
            let error = store.manifest::<Counted>(&snapshot.id).unwrap_err().to_string();
            assert!(error.contains("--force --snapshot n1"), "{at}: {error}");
            store.forget_unreadable(&snapshot.id).unwrap();
            assert!(!path.exists());
        }
    }
}
