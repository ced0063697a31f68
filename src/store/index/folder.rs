//! The folder of the index. All that changes it goes through here, so that tests can look at it after every step.
//!
//! ```text
//! <dir>/CURRENT        the catalogue; written beside it and renamed, so that there is the old one or the new one
//! <dir>/<number>.run   immutable once the catalogue names it
//! ```

use std::collections::HashSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::store::{Result, remove_dir_if_there, remove_file_if_there, sync_dir};

const CURRENT: &str = "CURRENT";
const TEMPORARY: &str = "CURRENT.tmp";
const RUN: &str = "run";

pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(super) fn current(&self) -> PathBuf {
        self.0.join(CURRENT)
    }

    pub(super) fn run(&self, number: u64) -> PathBuf {
        self.0.join(format!("{number}.{RUN}"))
    }

    /// The catalogue's bytes, if there is one.
    pub(super) fn read_current(&self) -> Result<Option<Vec<u8>>> {
        match fs::read(self.current()) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// From here on the index is as the catalogue says, whatever happens.
    pub(super) fn write_current(&self, bytes: &[u8]) -> Result<()> {
        fs::create_dir_all(&self.0)?;
        // Runs that it names are there before it is.
        sync_dir(&self.0)?;
        step(Step::FolderSynced);
        let path = self.0.join(TEMPORARY);
        let mut file = fs::File::create(&path)?;
        step(Step::Written(&path));
        file.write_all(bytes)?;
        step(Step::Written(&path));
        file.sync_all()?;
        step(Step::Synced(&path));
        fs::rename(&path, self.current())?;
        step(Step::Renamed(&path, &self.current()));
        sync_dir(&self.0)?;
        step(Step::FolderSynced);
        Ok(())
    }

    pub(super) fn create_run(&self, number: u64) -> Result<RunFile> {
        fs::create_dir_all(&self.0)?;
        let path = self.run(number);
        let file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        step(Step::Written(&path));
        Ok(RunFile { file, buffer: Vec::new(), length: 0 })
    }

    pub(super) fn remove_run(&self, number: u64) -> Result<()> {
        remove_file_if_there(&self.run(number))?;
        step(Step::Removed);
        Ok(())
    }

    /// Removes what a process left that did not come to its end.
    pub(super) fn sweep(&self, named: &HashSet<u64>) -> Result<()> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for entry in entries {
            let path = entry?.path();
            let is_run = path.extension().is_some_and(|extension| extension == RUN);
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            if is_run && !number.is_some_and(|number| named.contains(&number)) {
                remove_file_if_there(&path)?;
            }
        }
        Ok(())
    }

    pub(super) fn remove(&self) -> Result<()> {
        // Without its catalogue the rest is no index any more.
        remove_file_if_there(&self.current())?;
        remove_dir_if_there(&self.0)
    }
}

/// A run that is being written.
pub(super) struct RunFile {
    file: fs::File,
    buffer: Vec<u8>,
    length: u64,
}

/// Blocks are gathered, so that the system is not asked for every one.
const BUFFER: usize = 1 << 18;

impl RunFile {
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        self.length += bytes.len() as u64;
        if self.buffer.len() >= BUFFER { self.write() } else { Ok(()) }
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The file, whole, but not yet safe from a crash.
    pub(super) fn finish(mut self) -> Result<fs::File> {
        self.write()?;
        Ok(self.file)
    }

    fn write(&mut self) -> Result<()> {
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        step(Step::Written(self.file.path()));
        Ok(())
    }
}

/// Makes a run safe from a crash.
pub(super) fn sync(file: &fs::File) -> Result<()> {
    file.sync_all()?;
    step(Step::Synced(file.path()));
    Ok(())
}

/// Something that was done to the folder.
#[cfg_attr(not(test), expect(dead_code, reason = "only tests look at the steps"))]
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Written(&'a Path),
    Synced(&'a Path),
    Renamed(&'a Path, &'a Path),
    Removed,
    FolderSynced,
}

#[cfg(not(test))]
fn step(_: Step<'_>) {}

#[cfg(test)]
use self::watched::step;

#[cfg(test)]
pub(super) mod watched {
    use std::cell::RefCell;

    use super::Step;

    type Watcher = Box<dyn FnMut(Step<'_>)>;

    thread_local! {
        static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
    }

    pub(super) fn step(step: Step<'_>) {
        WATCHER.with_borrow_mut(|watcher| {
            if let Some(watcher) = watcher {
                watcher(step);
            }
        });
    }

    /// Calls `watcher` after every step that `work` takes on this thread.
    pub(in crate::store::index) fn watch<T>(watcher: impl FnMut(Step<'_>) + 'static, work: impl FnOnce() -> T) -> T {
        WATCHER.set(Some(Box::new(watcher)));
        let result = work();
        WATCHER.set(None);
        result
    }
}
