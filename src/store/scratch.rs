//! Files that live no longer than the stage that makes them, below `.staging`.

use std::path::{Path, PathBuf};

pub(crate) use std::fs::File as ScratchFile;

/// What the names of workrooms begin with.
const ROOM: &str = "ratoon-worker-";
/// The file of a room that its process holds locked: the kernel frees it, however that ends.
const LOCK: &str = "lock";

/// A folder for a process that has no store of its own to work in; gone when it is dropped.
pub(crate) struct Workroom {
    path: PathBuf,
    _lock: ScratchFile,
}

impl Workroom {
    /// Makes one in the temporary folder, and removes what killed processes left there.
    pub(crate) fn make() -> std::io::Result<Self> {
        Self::make_in(&std::env::temp_dir())
    }

    fn make_in(parent: &Path) -> std::io::Result<Self> {
        sweep(parent);
        let mut number = 0;
        loop {
            // A number of a process may be held elsewhere, where machines or containers share the folder.
            let id = std::process::id();
            let name = if number == 0 { format!("{ROOM}{id}") } else { format!("{ROOM}{id}-{number}") };
            let (path, unlocked) = (parent.join(&name), parent.join(format!(".{name}")));
            number += 1;
            match fs_err::create_dir(&unlocked) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                other => other?,
            }
            // Under its own name a room is locked from the start: nobody takes it for one that was left.
            let lock = create(&unlocked.join(LOCK))?;
            lock.lock()?;
            if !path.exists() && fs_err::rename(&unlocked, &path).is_ok() {
                return Ok(Self { path, _lock: lock });
            }
            fs_err::remove_dir_all(&unlocked)?;
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
impl Drop for Workroom {
    fn drop(&mut self) {
        // What cannot be removed is left to the next worker.
        let _ = fs_err::remove_dir_all(&self.path);
    }
}

/// Removes the rooms of processes that are no more. What cannot be looked at belongs to somebody else.
fn sweep(parent: &Path) {
    let Ok(entries) = fs_err::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_room = entry.file_name().to_string_lossy().starts_with(ROOM);
        if !is_room || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let lock = fs_err::OpenOptions::new().read(true).write(true).open(entry.path().join(LOCK));
        if lock.is_ok_and(|lock| lock.file().try_lock().is_ok()) {
            let _ = fs_err::remove_dir_all(entry.path());
        }
    }
}

/// Makes a file for writing and reading.
pub(crate) fn create(path: &Path) -> std::io::Result<ScratchFile> {
    let file = fs_err::OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    Ok(file.into_parts().0)
}

/// `None` if there is no such file.
pub(crate) fn open_if_there(path: &Path) -> std::io::Result<Option<ScratchFile>> {
    match open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

pub(crate) fn open(path: &Path) -> std::io::Result<ScratchFile> {
    Ok(fs_err::File::open(path)?.into_parts().0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_of_the_dead_are_removed_and_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let names = || {
            let entries = fs_err::read_dir(dir.path()).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let left = dir.path().join("ratoon-worker-1");
        fs_err::create_dir_all(left.join("store")).unwrap();
        fs_err::write(left.join(LOCK), "").unwrap();
        // One without a lock says nothing about who made it.
        fs_err::create_dir(dir.path().join("ratoon-worker-2")).unwrap();
        let first = Workroom::make_in(dir.path()).unwrap();
        let second = Workroom::make_in(dir.path()).unwrap();
        let id = std::process::id();
        let mut expected = [format!("{ROOM}2"), format!("{ROOM}{id}"), format!("{ROOM}{id}-1")];
        // Names are ordered as texts, whatever number the process has.
        expected.sort();
        assert_eq!(names(), expected);
        fs_err::write(first.path().join("x"), "x").unwrap();
        drop(first);
        let mut expected = [format!("{ROOM}2"), format!("{ROOM}{id}-1")];
        expected.sort();
        assert_eq!(names(), expected);
        drop(second);
    }
}
