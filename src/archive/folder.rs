//! A snapshot folder, opened: what it is, how large, whether it changed, and readers for its parts.

use std::collections::BTreeSet;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err::File;

use crate::model::snapshot::SnapshotId;
use crate::model::{Digest, DigestBuilder, Reject, Timestamp};

use super::detect::{Found, detect};
use super::manifest::{MANIFEST, ManifestReader};
use super::mirror::{MirrorReader, Window};
use super::sniff::{Kind, sniff};
use super::warc::WarcReader;
use super::{ArchiveError, CaptureReader, Layout};

pub use super::walk::SourceFile;

/// How much of each end of a WARC file goes into the fingerprint.
const SAMPLE: u64 = 4 << 10;
/// A manifest is hashed in pieces of this size.
const PIECE: u64 = 256 << 10;

#[derive(Debug)]
pub struct SnapshotFolder {
    path: PathBuf,
    real_path: PathBuf,
    layout: Layout,
    files: Arc<[SourceFile]>,
    rejects: Vec<Reject>,
}

impl SnapshotFolder {
    /// Looks at every file of the folder, but reads none. A WARC file may stand for a folder that holds just it.
    pub fn open(path: &Path, layout: Layout) -> Result<Self, ArchiveError> {
        if fs_err::metadata(path)?.is_file() {
            return Self::open_file(path);
        }
        let real_path = fs_err::canonicalize(path)?;
        // Walking something else than a folder would find nothing and not say why.
        fs_err::read_dir(path)?;
        let Found { layout, files, rejects } = detect(path, &real_path, layout)?;
        log::debug!("{}: {layout}, {} files, {} rejected", path.display(), files.len(), rejects.len());
        Ok(Self { path: path.to_path_buf(), real_path, layout, files: files.into(), rejects })
    }

    fn open_file(path: &Path) -> Result<Self, ArchiveError> {
        if sniff(path)? != Kind::Warc {
            let hint = "it is not a WARC file; a mirror or manifest is a folder".to_owned();
            return Err(ArchiveError::NoCapture { path: path.to_path_buf(), hint });
        }
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = PathBuf::from(path.file_name().unwrap_or_default());
        let file = SourceFile { path: name, bytes: fs_err::metadata(path)?.len(), modified: None };
        Ok(Self {
            path: folder.to_path_buf(),
            real_path: fs_err::canonicalize(folder)?,
            layout: Layout::Warc,
            files: [file].into(),
            rejects: Vec::new(),
        })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The layout found, never `Auto`.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The files that captures are read from, in order of their paths. With a manifest: all files beside it, whether
    /// it names them or not.
    #[must_use]
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// What was met on the way and will not be read: links that leave the folder, files that are not what they are
    /// named, files still being written. The readers do not repeat them.
    #[must_use]
    pub fn rejects(&self) -> &[Reject] {
        &self.rejects
    }

    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Changes when reading the folder again could give something else; equal means that a rerun is needless.
    ///
    /// It covers the layout, the path and size of every file, and what is cheap to read of their content: both ends
    /// of each WARC file (a record carries its date and an id, a gzip member ends with a checksum, so two crawls
    /// differ there) and the whole manifest. Modification times are left out, for a copied archive is the same
    /// archive, except in a mirror, where they are data. What it cannot see is an edit inside a large file that
    /// leaves its size and both ends alone.
    pub fn fingerprint(&self) -> Result<Digest, ArchiveError> {
        let mut digest = DigestBuilder::new();
        digest.field(self.layout.as_str().as_bytes()).number(self.files.len() as u64);
        for file in self.files.iter() {
            digest.field(file.path.as_os_str().as_encoded_bytes()).number(file.bytes);
            match self.layout {
                Layout::Warc => {
                    digest.field(&ends(&self.path.join(&file.path))?);
                }
                Layout::Mirror => {
                    digest.field(&file.modified.map_or([0; 8], |time| time.micros().to_le_bytes()));
                }
                Layout::Manifest | Layout::Auto => {}
            }
        }
        if self.layout == Layout::Manifest {
            add_content(&self.path.join(MANIFEST), &mut digest)?;
        }
        Ok(digest.finish())
    }

    /// Readers that together yield every capture once. `time` is the time the snapshot states, if it does, and
    /// `previous` that of the snapshot before it; only a mirror needs them. Without `time` the captures of a mirror
    /// have no fetch time.
    #[must_use]
    pub fn readers(&self, previous: Option<Timestamp>, time: Option<Timestamp>) -> Vec<Box<dyn CaptureReader>> {
        match self.layout {
            Layout::Warc | Layout::Auto => {
                let reader = |file: &SourceFile| WarcReader::new(self.path.join(&file.path), file.name());
                self.files.iter().map(|file| Box::new(reader(file)) as Box<dyn CaptureReader>).collect()
            }
            Layout::Manifest => vec![Box::new(ManifestReader::new(self.path.clone(), self.real_path.clone()))],
            Layout::Mirror => {
                let window = Window { previous, time };
                vec![Box::new(MirrorReader::new(self.path.clone(), Arc::clone(&self.files), window))]
            }
        }
    }
}

/// The first and the last bytes of a file; all of a small one. A file that cannot be read has none: reading it will
/// say so, and the fingerprint changes when that ends.
fn ends(path: &Path) -> Result<Vec<u8>, ArchiveError> {
    let Ok(mut file) = File::open(path) else {
        return Ok(Vec::new());
    };
    let mut bytes = Vec::new();
    (&mut file).take(SAMPLE).read_to_end(&mut bytes)?;
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(SAMPLE).max(bytes.len() as u64)))?;
    file.take(SAMPLE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Adds a file piece by piece; the pieces have one size, however the system hands them out.
fn add_content(path: &Path, digest: &mut DigestBuilder) -> Result<(), ArchiveError> {
    let mut file = File::open(path)?;
    let mut piece = Vec::new();
    loop {
        piece.clear();
        if (&mut file).take(PIECE).read_to_end(&mut piece)? == 0 {
            return Ok(());
        }
        digest.field(&piece);
    }
}

/// The snapshot folders below `root`, sorted by id. Plain files and hidden folders are no snapshots; a folder may be
/// a link.
pub fn list_snapshots(root: &Path) -> Result<Vec<(SnapshotId, PathBuf)>, ArchiveError> {
    let entries =
        fs_err::read_dir(root)?.map(|entry| Ok(entry?.path())).collect::<Result<BTreeSet<_>, ArchiveError>>()?;
    let mut snapshots = Vec::new();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Follows links; one that leads nowhere is an error, for its snapshot is missing, not absent.
        if name.starts_with('.') || !fs_err::metadata(&path)?.is_dir() {
            continue;
        }
        match SnapshotId::new(name) {
            Ok(id) => snapshots.push((id, path)),
            Err(source) => return Err(ArchiveError::BadSnapshotId { path, source }),
        }
    }
    snapshots.sort();
    Ok(snapshots)
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
