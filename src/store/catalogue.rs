//! What the manifests of all snapshots say, gathered in one file, so that a command need not read hundreds of small ones.
//!
//! It is a copy: a manifest that is not the file it was made from is read itself, and a catalogue that is damaged or
//! missing is no loss. It also says up to which snapshot a run has found everything done, so that the next need not ask
//! again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::manifest::{Entry, SnapshotDone};
use super::memory::{Identity, identity};
use super::{Result, Store, write_bytes};
use crate::model::{Digest, DigestBuilder, Snapshot, SnapshotId, StageId, Timestamp};

/// Raised when the form of the file changes.
const VERSION: u32 = 2;

#[derive(Default, Serialize, Deserialize)]
struct Catalogue {
    version: u32,
    entries: Vec<Gathered>,
    /// All snapshots up to this one are done; identifies their manifests.
    settled: Option<(SnapshotId, Digest)>,
}

/// What the manifest of a snapshot says.
#[derive(Serialize, Deserialize)]
struct Gathered {
    snapshot: SnapshotId,
    time: Timestamp,
    manifest: Identity,
    stages: BTreeMap<StageId, Entry<()>>,
    /// What ingest left for others, as JSON with its version: every stage asks for it.
    ingested: Option<(u32, String)>,
}

/// The catalogue as it was when the store was first asked for it.
#[derive(Default)]
pub(super) struct Remembered {
    snapshots: HashMap<SnapshotId, (Identity, Arc<SnapshotDone>)>,
    settled: Option<(SnapshotId, Digest)>,
}

impl Store {
    fn catalogue_file(&self) -> std::path::PathBuf {
        self.meta().join("catalogue")
    }

    fn read_catalogue(&self) -> Remembered {
        let Ok(bytes) = fs::read(self.catalogue_file()) else { return Remembered::default() };
        let Some((digest, rest)) = bytes.split_at_checked(16) else { return Remembered::default() };
        if Digest::of(rest).0 != digest {
            return Remembered::default();
        }
        let Ok(catalogue) = postcard::from_bytes::<Catalogue>(rest) else { return Remembered::default() };
        if catalogue.version != VERSION {
            return Remembered::default();
        }
        let done = |entry: Gathered| {
            let Gathered { snapshot, time, manifest, stages, ingested } = entry;
            let snapshot = Snapshot { id: snapshot, time };
            let stages = stages.into_iter().map(|(stage, entry)| (stage, entry.into_manifest(&snapshot))).collect();
            (snapshot.id.clone(), (manifest, Arc::new(SnapshotDone { snapshot, stages, ingested })))
        };
        Remembered { snapshots: catalogue.entries.into_iter().map(done).collect(), settled: catalogue.settled }
    }

    /// What the catalogue says of a snapshot, if its manifest is the one that it was made from.
    pub(super) fn gathered(&self, snapshot: &SnapshotId) -> Result<Option<Arc<SnapshotDone>>> {
        let catalogue = self.remembered_catalogue(|| self.read_catalogue());
        let Some((manifest, done)) = catalogue.snapshots.get(snapshot) else { return Ok(None) };
        let same = identity(&self.manifest_file(snapshot))? == Some(*manifest);
        Ok(same.then(|| Arc::clone(done)))
    }

    /// Identifies the manifests of snapshots up to one.
    fn manifests_digest(&self, upto: &SnapshotId) -> Result<Option<Digest>> {
        let mut builder = DigestBuilder::new();
        for done in self.all_done()?.iter() {
            let id = &done.snapshot.id;
            let Some(Identity { inode, bytes, modified }) = identity(&self.manifest_file(id))? else { return Ok(None) };
            builder.field(id.as_str().as_bytes()).number(inode).number(bytes);
            builder.number(modified.0.cast_unsigned()).number(modified.1.cast_unsigned());
            if id == upto {
                return Ok(Some(builder.finish()));
            }
        }
        Ok(None)
    }

    /// The snapshot up to which an earlier run has found everything done, if no manifest has changed since.
    pub(crate) fn settled(&self) -> Result<Option<SnapshotId>> {
        let catalogue = self.remembered_catalogue(|| self.read_catalogue());
        let Some((snapshot, digest)) = &catalogue.settled else { return Ok(None) };
        Ok((self.manifests_digest(snapshot)? == Some(*digest)).then(|| snapshot.clone()))
    }

    /// Writes the catalogue; everything is done up to `settled`.
    pub(crate) fn write_catalogue(&self, settled: Option<&SnapshotId>) -> Result<()> {
        let mut catalogue = Catalogue { version: VERSION, ..Catalogue::default() };
        for done in self.all_done()?.iter() {
            let Some(manifest) = identity(&self.manifest_file(&done.snapshot.id))? else { continue };
            let stages = done.stages.iter().map(|(stage, done)| (*stage, Entry::of(done))).collect();
            let Snapshot { id, time } = done.snapshot.clone();
            catalogue.entries.push(Gathered { snapshot: id, time, manifest, stages, ingested: done.ingested.clone() });
        }
        if let Some(settled) = settled {
            catalogue.settled = self.manifests_digest(settled)?.map(|digest| (settled.clone(), digest));
        }
        let rest = postcard::to_stdvec(&catalogue).unwrap_or_default();
        write_bytes(&self.catalogue_file(), &[&Digest::of(&rest).0, rest.as_slice()].concat())
    }
}
