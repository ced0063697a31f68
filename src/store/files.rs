//! Small files that are no tables: pipeline files, exports.

use std::io;
use std::path::Path;

use crate::model::Digest;

/// Reads a text file; the error is the operating system's alone, for messages that name the path themselves.
#[expect(clippy::disallowed_methods, reason = "store is disk access; fs_err would name the path twice")]
pub(crate) fn read_to_string(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

/// Reads a file of at most `max` bytes; the error names the path.
pub(crate) fn read_capped(path: &Path, max: usize) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    let file = fs_err::File::open(path)?;
    let len = file.metadata()?.len();
    if len > max as u64 {
        return Err(io::Error::other(format!("{} has {len} bytes, more than {max}", path.display())));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
    // It may grow while it is read.
    file.take(max as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Identifies a file by its content; one that is very large by its size and time.
pub(crate) fn digest(path: &Path) -> io::Result<Digest> {
    /// Hashing more would be felt at every run.
    const MOST: u64 = 256 << 20;
    let file = fs_err::File::open(path)?;
    let found = file.metadata()?;
    let mut hasher = blake3::Hasher::new();
    if found.len() > MOST {
        let modified = found.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        hasher.update(&found.len().to_le_bytes()).update(&modified.as_nanos().to_le_bytes());
    } else {
        hasher.update_reader(file)?;
    }
    Ok(Digest::finish(&hasher))
}

/// Writes a whole file, making its folder if need be.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        fs_err::create_dir_all(dir)?;
    }
    fs_err::write(path, bytes)
}

/// Writes a file so that a reader sees the old one or the new one, whole.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    write(&temporary, bytes)?;
    fs_err::rename(&temporary, path)
}

/// Where something is that exists, without links and dots.
pub(crate) fn absolute(path: &Path) -> Option<std::path::PathBuf> {
    fs_err::canonicalize(path).ok()
}

pub(crate) fn make_dir(path: &Path) -> io::Result<()> {
    fs_err::create_dir_all(path)
}

/// Whether there is something at `path` other than an empty folder.
pub(crate) fn is_in_use(path: &Path) -> io::Result<bool> {
    if !path.is_dir() {
        return Ok(path.exists());
    }
    Ok(fs_err::read_dir(path)?.next().is_some())
}

/// Makes a file for writing, and its folder if need be.
#[cfg(any(test, feature = "lab"))]
pub(crate) fn create(path: &Path) -> io::Result<impl io::Write + 'static> {
    if let Some(dir) = path.parent() {
        fs_err::create_dir_all(dir)?;
    }
    Ok(io::BufWriter::with_capacity(1 << 18, fs_err::File::create(path)?))
}
