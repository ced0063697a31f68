//! Small files that are no tables: pipeline files, exports.

use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
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
    make_parent(path)?;
    fs_err::write(path, bytes)
}

fn make_parent(path: &Path) -> io::Result<()> {
    match path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        Some(dir) => fs_err::create_dir_all(dir),
        None => Ok(()),
    }
}

/// Writes a file so that a reader sees the old one or the new one, whole. What a process that was killed meanwhile left
/// beside it is gone afterwards.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".ratoon.tmp");
    let temporary = path.with_file_name(name);
    make_parent(path)?;
    let mut file = open_alone(&temporary)?;
    let written = file.set_len(0).and_then(|()| file.write_all(bytes)).and_then(|()| fs_err::rename(&temporary, path));
    if written.is_err() {
        let _ = fs_err::remove_file(&temporary);
    }
    written
}

/// Opens a file for writing that nobody else who asks so writes to.
fn open_alone(path: &Path) -> io::Result<fs_err::File> {
    loop {
        let file = fs_err::OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        // On a disk without locks two at once are not kept apart.
        let _ = file.file().lock();
        // Whoever had it may have renamed it while this one waited.
        let own = file.metadata()?.ino();
        if fs_err::metadata(path).is_ok_and(|there| there.ino() == own) {
            return Ok(file);
        }
    }
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
    make_parent(path)?;
    Ok(io::BufWriter::with_capacity(1 << 18, fs_err::File::create(path)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs_err::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        fs_err::read_dir(dir).unwrap().map(name).collect()
    }

    #[test]
    fn what_a_killed_process_left_is_gone_with_the_next_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("made/report.html");
        write_whole(&path, b"old").unwrap();
        fs_err::write(dir.path().join("made/report.html.ratoon.tmp"), "half of a long report").unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(fs_err::read(&path).unwrap(), b"new");
        assert_eq!(names(&dir.path().join("made")), ["report.html"]);
    }

    #[test]
    fn nothing_is_left_of_a_file_that_cannot_be_written() {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("taken")).unwrap();
        write_whole(&dir.path().join("taken"), b"x").unwrap_err();
        assert_eq!(names(dir.path()), ["taken"]);
    }

    #[test]
    fn of_files_that_are_written_at_once_one_is_there_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = &dir.path().join("page");
        std::thread::scope(|scope| {
            for writer in 0..4u8 {
                scope.spawn(move || {
                    for length in 1..100 {
                        write_whole(path, &vec![writer; 500 * length]).unwrap();
                        let there = fs_err::read(path).unwrap();
                        assert!(there.len() % 500 == 0 && there.iter().all(|byte| *byte == there[0]));
                    }
                });
            }
        });
        assert_eq!(names(dir.path()), ["page"]);
    }
}
