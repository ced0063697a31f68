//! Files that live no longer than the stage that makes them, below `.staging`.

use std::path::{Path, PathBuf};

pub(crate) use std::fs::File as ScratchFile;

/// A folder for a process that has no store of its own to work in; gone when it is dropped.
pub(crate) struct Workroom(PathBuf);

impl Workroom {
    pub(crate) fn make() -> std::io::Result<Self> {
        let dir = std::env::temp_dir().join(format!("ratoon-worker-{}", std::process::id()));
        fs_err::create_dir_all(&dir)?;
        Ok(Self(dir))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Workroom {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever clears the temporary folder.
        let _ = fs_err::remove_dir_all(&self.0);
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
