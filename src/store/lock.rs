//! One writer at a time. The kernel frees the lock when its holder ends, however it ends.

use std::fs::TryLockError;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;

#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    #[error("{store} is in use by another run ({holder}); wait for it to end")]
    Held { store: PathBuf, holder: String },
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// How often the holder's line is looked for, every 10 ms.
const HOLDER_LOOKS: usize = 50;

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
                let holder = holder(&mut file)?;
                return Err(LockError::Held { store: root.to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        // The line of the last holder is written over before the rest of it is cut off, so that there is always a first line.
        let line = format!("process {}: {purpose}\n", std::process::id());
        file.rewind()?;
        file.write_all(line.as_bytes())?;
        file.set_len(line.len() as u64)?;
        Ok(Self { _file: file })
    }
}

/// Who holds the lock, as its file says. The first one of all may not have said it yet.
fn holder(file: &mut std::fs::File) -> std::io::Result<String> {
    for _ in 0..HOLDER_LOOKS {
        let mut said = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut said)?;
        if let Some((line, _)) = String::from_utf8_lossy(&said).split_once('\n') {
            return Ok(line.trim().to_owned());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok("it does not say which".to_owned())
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
        let shorter = StoreLock::take(dir.path(), "x").unwrap();
        let error = StoreLock::take(dir.path(), "run").unwrap_err().to_string();
        assert!(error.contains(": x)"), "{error}");
        drop(shorter);
        assert!(!is_held(dir.path(), std::process::id()));
        StoreLock::take(dir.path(), "run").unwrap();
    }
}
