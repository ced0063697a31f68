//! Files that something inside a snapshot names: found only if they lie in it.

use std::path::{Component, Path, PathBuf};

use fs_err::File;

pub(crate) struct Tree {
    root: PathBuf,
    /// Canonical path of the snapshot, which nothing may lead out of.
    real_root: PathBuf,
    /// The last folder that was found to lie inside the snapshot. Files that are named one after the other mostly lie
    /// in the same folder, which is then checked once.
    known_folder: Option<PathBuf>,
}

impl Tree {
    /// Names are relative to `root`.
    pub(crate) fn new(root: PathBuf, real_root: PathBuf) -> Self {
        Self { root, real_root, known_folder: None }
    }

    /// The file of that name, if it lies in the snapshot and can be opened, and its size.
    pub(crate) fn locate(&mut self, file: &str) -> Result<(PathBuf, u64), String> {
        let named = Path::new(file);
        let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !named.components().all(inside) {
            return Err(format!("file '{file}' leaves the snapshot"));
        }
        let path = self.root.join(named);
        let folder = path.parent().unwrap_or(&self.root).to_path_buf();
        let is_link = fs_err::symlink_metadata(&path).map_err(|error| error.to_string())?.is_symlink();
        if is_link || self.known_folder.as_ref() != Some(&folder) {
            let real = fs_err::canonicalize(&path).map_err(|error| error.to_string())?;
            if !real.starts_with(&self.real_root) {
                return Err(format!("file '{file}' leaves the snapshot"));
            }
            if !is_link {
                self.known_folder = Some(folder);
            }
        }
        // Checked before opening, for opening a pipe would wait for a writer.
        let metadata = fs_err::metadata(&path).map_err(|error| error.to_string())?;
        if !metadata.is_file() {
            return Err(format!("file '{file}' is not a regular file"));
        }
        File::open(&path).map_err(|error| error.to_string())?;
        Ok((path, metadata.len()))
    }
}
