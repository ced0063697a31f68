//! One writer at a time. The kernel frees the lock when its holder ends, however it ends.

use std::fs::TryLockError;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;

#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    #[error("{store} is in use by another run ({holder}); wait for it to end")]
    Held { store: PathBuf, holder: String },
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Held for as long as it lives.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _file: std::fs::File,
}

impl StoreLock {
    /// Takes the lock of the store at `root`, making the folder if need be. `purpose` tells others who holds it.
    pub(crate) fn take(root: &Path, purpose: &str) -> Result<Self, LockError> {
        fs::create_dir_all(root.join("_meta"))?;
        let path = root.join("_meta/lock");
        let file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        let (mut file, _) = file.into_parts();
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = Vec::new();
                file.read_to_end(&mut holder)?;
                let holder = String::from_utf8_lossy(&holder).trim().to_owned();
                return Err(LockError::Held { store: root.to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "process {}: {purpose}", std::process::id())?;
        Ok(Self { _file: file })
    }
}

/// Whether somebody holds the lock of the store at `root`. Trying to take it would keep a run from beginning, so that the
/// kernel's list is asked; where there is none, whether the process lives that says that it holds it.
pub(crate) fn is_held(root: &Path, process: u32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let inode = fs::metadata(root.join("_meta/lock")).map(|file| format!(":{} ", file.ino()));
    match (fs::read_to_string("/proc/locks"), inode) {
        (Ok(locks), Ok(inode)) => locks.lines().any(|line| line.contains("FLOCK") && line.contains(&inode)),
        _ => Path::new("/proc").join(process.to_string()).exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_told_who_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let first = StoreLock::take(dir.path(), "ingest").unwrap();
        let error = StoreLock::take(dir.path(), "run").unwrap_err().to_string();
        assert!(error.contains("in use by another run (process") && error.contains("ingest"), "{error}");
        assert!(is_held(dir.path(), std::process::id()));
        drop(first);
        assert!(!is_held(dir.path(), std::process::id()));
        StoreLock::take(dir.path(), "run").unwrap();
    }
}
