//! Files that live no longer than the stage that makes them, below `.staging`.

use std::path::Path;

pub(crate) use std::fs::File as ScratchFile;

/// Makes a file for writing and reading.
pub(crate) fn create(path: &Path) -> std::io::Result<ScratchFile> {
    let file = fs_err::OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    Ok(file.into_parts().0)
}

pub(crate) fn open(path: &Path) -> std::io::Result<ScratchFile> {
    Ok(fs_err::File::open(path)?.into_parts().0)
}
