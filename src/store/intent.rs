//! How partitions that exist are replaced: the new files lie beside the old ones, a note says what is to be done with
//! them, and only then is anything moved or removed. Whoever finds the note completes it, so that a store that was
//! interrupted in the middle of a replacement ends up with the new tables, never with a mixture. The note carries a
//! checksum, and nothing outside of the store is touched, whatever it says.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::{Result, Store, StoreError, remove_dir_if_there, remove_file_if_there, sync_dir, write_bytes};

/// What a commit does to the store. All paths are below its root.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Intent {
    /// Finished files and where they belong.
    pub(super) moves: Vec<(PathBuf, PathBuf)>,
    /// Small files and what they are to hold.
    pub(super) writes: Vec<(PathBuf, String)>,
    /// Files that are no longer named.
    pub(super) removals: Vec<PathBuf>,
    /// The folder that the finished files come from.
    pub(super) staging: PathBuf,
}

const FILE: &str = "intent.json";
/// What to do where a note is damaged: some tables may be new while the manifest is old.
const DAMAGED: &str = "make again what does not fit (`ratoon check PIPELINE --repair`)";

impl Intent {
    /// A path that leads out of the store, or to the store itself.
    fn stray(&self) -> Option<&Path> {
        let moved = self.moves.iter().flat_map(|(from, to)| [from, to]);
        let all = moved.chain(self.writes.iter().map(|(path, _)| path)).chain(&self.removals).chain([&self.staging]);
        let strays = |path: &Path| {
            path.as_os_str().is_empty() || path.components().any(|part| !matches!(part, Component::Normal(_)))
        };
        all.map(PathBuf::as_path).find(|path| strays(path))
    }
}

impl Store {
    fn intent_file(&self) -> PathBuf {
        self.meta().join(FILE)
    }

    /// A path as an intent has it.
    pub(super) fn inside(&self, path: &Path) -> PathBuf {
        path.strip_prefix(self.root()).unwrap_or(path).to_owned()
    }

    /// Does what an intent says. If it replaces or removes anything, the intent is written down first.
    pub(super) fn carry_out(&self, intent: &Intent) -> Result<()> {
        let replaces = intent.moves.iter().any(|(_, to)| self.root().join(to).exists());
        if replaces || !intent.removals.is_empty() {
            self.say(FILE, intent)?;
            self.complete(intent)?;
            return remove_file_if_there(&self.intent_file());
        }
        self.complete(intent)
    }

    /// Completes a replacement that was interrupted. Only for the holder of the lock.
    pub fn recover(&self) -> Result<()> {
        let path = self.intent_file();
        if let Some(intent) = self.said::<Intent>(FILE, DAMAGED)? {
            if let Some(stray) = intent.stray() {
                let problem =
                    format!("it names {}, which is not in the store; remove it, and {DAMAGED}", stray.display());
                return Err(StoreError::Damaged { path, problem });
            }
            log::info!("completing a replacement that was interrupted");
            self.complete(&intent)?;
            remove_file_if_there(&path)?;
        }
        Ok(())
    }

    fn complete(&self, intent: &Intent) -> Result<()> {
        let root = self.root();
        let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
        for (from, to) in &intent.moves {
            let (from, to) = (root.join(from), root.join(to));
            let folder = to.parent().expect("a file has a folder").to_owned();
            if !folder.is_dir() {
                fs::create_dir_all(&folder)?;
                // Each folder that may have been made is an entry of the one above it.
                let made = folder.ancestors().skip(1).take_while(|above| above.starts_with(root));
                folders.extend(made.map(Path::to_owned));
            }
            // What is no longer there was moved before the interruption.
            if from.exists() {
                fs::rename(&from, &to)?;
            }
            folders.insert(folder);
        }
        for folder in &folders {
            sync_dir(folder)?;
        }
        for (path, text) in &intent.writes {
            write_bytes(&root.join(path), text.as_bytes())?;
        }
        for path in &intent.removals {
            let path = root.join(path);
            remove_file_if_there(&path)?;
            // A partition is a folder with one file.
            if let Some(folder) = path.parent().filter(|folder| folder.is_dir()) {
                let _ = fs::remove_dir(folder);
            }
        }
        remove_dir_if_there(&root.join(&intent.staging))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store in which two partitions are to be replaced, one is to go and a small file is to say something else.
    fn prepared(root: &Path) -> (Store, Intent) {
        let store = Store::open_or_create(root).unwrap();
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for table in ["a", "b", "c"] {
            put(&format!("{table}/snapshot=n1/part-00000.parquet"), "old");
        }
        put("_meta/snapshots/n1.json", "old");
        put(".staging/x/a", "new");
        put(".staging/x/b", "new");
        let place = |table: &str| PathBuf::from(format!("{table}/snapshot=n1/part-00000.parquet"));
        let intent = Intent {
            moves: ["a", "b"].map(|table| (PathBuf::from(format!(".staging/x/{table}")), place(table))).into(),
            writes: vec![("_meta/snapshots/n1.json".into(), "new".into())],
            removals: vec![place("c")],
            staging: ".staging/x".into(),
        };
        (store, intent)
    }

    fn assert_done(root: &Path, stopped: usize) {
        for file in ["a/snapshot=n1/part-00000.parquet", "b/snapshot=n1/part-00000.parquet", "_meta/snapshots/n1.json"]
        {
            assert_eq!(fs::read_to_string(root.join(file)).unwrap(), "new", "{file}, stopped before step {stopped}");
        }
        for gone in ["c/snapshot=n1", ".staging/x", "_meta/intent.json"] {
            assert!(!root.join(gone).exists(), "{gone}, stopped before step {stopped}");
        }
    }

    #[test]
    fn a_replacement_that_stopped_anywhere_is_completed() {
        // Whatever was done of the steps, in their order, the rest is done by who finds the note.
        for stopped in 0..=4 {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path();
            let (store, intent) = prepared(root);
            store.say(FILE, &intent).unwrap();
            let steps: [&dyn Fn(); 4] = [
                &|| fs::rename(root.join(".staging/x/a"), root.join(&intent.moves[0].1)).unwrap(),
                &|| fs::rename(root.join(".staging/x/b"), root.join(&intent.moves[1].1)).unwrap(),
                &|| fs::write(root.join("_meta/snapshots/n1.json"), "new").unwrap(),
                &|| fs::remove_file(root.join("c/snapshot=n1/part-00000.parquet")).unwrap(),
            ];
            steps[..stopped].iter().for_each(|step| step());
            store.recover().unwrap();
            assert_done(root, stopped);
            store.recover().unwrap();
            assert_done(root, stopped);
        }
    }

    #[test]
    fn what_replaces_nothing_needs_no_note() {
        let dir = tempfile::tempdir().unwrap();
        let (store, intent) = prepared(dir.path());
        // Before the note is there, nothing has happened.
        store.recover().unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("a/snapshot=n1/part-00000.parquet")).unwrap(), "old");
        store.carry_out(&intent).unwrap();
        assert_done(dir.path(), 0);
    }

    #[test]
    fn a_note_that_leads_out_of_the_store_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = prepared(dir.path());
        let outside = dir.path().with_extension("outside");
        for path in ["../outside", "/", "", ".", outside.to_str().unwrap(), "a/../../outside"] {
            let path = PathBuf::from(path);
            for intent in [
                Intent { moves: vec![("a".into(), path.clone())], staging: "s".into(), ..Intent::default() },
                Intent { moves: vec![(path.clone(), "a".into())], staging: "s".into(), ..Intent::default() },
                Intent { writes: vec![(path.clone(), "x".into())], staging: "s".into(), ..Intent::default() },
                Intent { removals: vec![path.clone()], staging: "s".into(), ..Intent::default() },
                Intent { staging: path.clone(), ..Intent::default() },
            ] {
                store.say(FILE, &intent).unwrap();
                let error = store.recover().unwrap_err().to_string();
                assert!(error.contains("not in the store") && error.contains("--repair"), "{error}");
            }
        }
        // A note of an older program has no checksum.
        fs::write(store.intent_file(), "{\"moves\":[],\"writes\":[],\"removals\":[],\"staging\":\"x\"}\n").unwrap();
        store.recover().unwrap();
        assert!(!store.intent_file().exists());
    }
}
