//! A snapshot folder, opened: what it is, how large, whether it changed, and readers for its parts.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err::File;

use crate::model::{Digest, DigestBuilder, Reject, Timestamp};

use super::detect::{Findings, Print, detect, detect_file};
use super::layouts::Layout;
use super::part::{Opening, SnapshotPart, Window};
use super::walk::{COMPLETE, SourceFile, modified, walk};
use super::{ArchiveError, CaptureReader};

/// How much of each end of an archive file goes into the fingerprint.
const SAMPLE: u64 = 4 << 10;
/// A manifest is hashed in pieces of this size.
const PIECE: u64 = 256 << 10;

/// A snapshot, opened.
#[derive(Debug)]
pub struct SnapshotFolder {
    path: PathBuf,
    /// What the paths of files are relative to: the folder, or that of a snapshot that is one file.
    root: PathBuf,
    real_root: PathBuf,
    layouts: Vec<Layout>,
    files: Arc<[SourceFile]>,
    prints: Vec<Print>,
    parts: Vec<Box<dyn SnapshotPart>>,
    rejects: Vec<Reject>,
    remarks: Vec<String>,
    doubts: Vec<String>,
}

impl SnapshotFolder {
    /// The newest capture of a folder whose name states no time.
    pub fn newest_capture(path: &Path, layout: Layout) -> Result<Option<Timestamp>, ArchiveError> {
        let folder = Self::open(path, layout)?;
        // A tree knows no times but those of its files.
        let mut newest = folder.newest_modified();
        for reader in folder.readers(None, None) {
            for capture in reader.flatten() {
                newest = newest.max(capture.fetched_at.map(|(time, _)| time));
            }
        }
        Ok(newest)
    }

    /// Looks at every file of the folder, but reads none. A snapshot may also be one file, of any kind that holds many
    /// captures.
    pub fn open(path: &Path, layout: Layout) -> Result<Self, ArchiveError> {
        let real_path = fs_err::canonicalize(path)?;
        let metadata = fs_err::metadata(path)?;
        let (root, real_root, found) = if metadata.is_file() {
            let name = path.file_name().map(PathBuf::from).unwrap_or_default();
            let parent = |path: &Path| path.parent().map(Path::to_path_buf).unwrap_or_default();
            let file = SourceFile { path: name, bytes: metadata.len(), modified: modified(&metadata) };
            let found = detect_file(&parent(path), file, layout)?;
            (parent(path), parent(&real_path), found)
        } else {
            // Walking something else than a folder would find nothing and not say why.
            fs_err::read_dir(path)?;
            let found = detect(path, &real_path, layout)?;
            (path.to_path_buf(), real_path, found)
        };
        let Findings { layouts, files, prints, parts, rejects, remarks, doubts } = found;
        let folder = Self {
            path: path.to_path_buf(),
            root,
            real_root,
            layouts,
            files: files.into(),
            prints,
            parts,
            rejects,
            remarks,
            doubts,
        };
        let (files, rejects) = (folder.files.len(), folder.rejects.len());
        log::debug!("{}: {}, {files} files, {rejects} rejected", path.display(), folder.layout_names());
        Ok(folder)
    }

    /// Whether nothing more will be added: its crawler left a file that says so. A snapshot that is one file is complete.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.path.is_dir() || self.path.join(COMPLETE).is_file()
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The layout found, never `Auto`; of a folder that mixes several, the first of [`layouts`](Self::layouts).
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layouts[0]
    }

    /// The layouts found, in the order in which they are read; at least one.
    #[must_use]
    pub fn layouts(&self) -> &[Layout] {
        &self.layouts
    }

    /// Such as `warc`, or `warc+manifest`.
    #[must_use]
    pub fn layout_names(&self) -> String {
        self.layouts.iter().map(|layout| layout.as_str()).collect::<Vec<_>>().join("+")
    }

    /// The files that captures are read from. With a manifest or HTTrack's cache: all files beside it, whether it names
    /// them or not.
    #[must_use]
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// What was met on the way and will not be read: links that leave the folder, files that are not what they are
    /// named, files still being written, entries of zip files that cannot be trusted. The readers do not repeat them.
    #[must_use]
    pub fn rejects(&self) -> &[Reject] {
        &self.rejects
    }

    /// What was left out because its captures are read from elsewhere, such as a mirror beside WARC files of the same
    /// crawl.
    #[must_use]
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// What may be other than it is read as, such as URLs that the names of files do not tell for sure.
    #[must_use]
    pub fn doubts(&self) -> &[String] {
        &self.doubts
    }

    /// What the layouts were told by, in words.
    #[must_use]
    pub fn evidence(&self) -> String {
        let rules = self.layouts.iter().filter_map(|layout| layout.rules());
        rules.map(|rules| rules.evidence(&self.files)).collect::<Vec<_>>().join("; ")
    }

    /// What a capture without status is called in this snapshot.
    #[must_use]
    pub fn without_status(&self) -> &'static str {
        self.layout().rules().map_or("file", |rules| rules.without_status())
    }

    /// Reads each file of records whole and in pieces of about `size` bytes. An error if what comes out differs though
    /// no reader says that it misread.
    #[cfg(any(test, feature = "lab"))]
    pub(crate) fn pieces_equal_whole(&self, size: u64) -> Result<(), String> {
        self.parts.iter().filter_map(|part| part.as_records()).try_for_each(|part| part.pieces_equal_whole(size))
    }

    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The newest modification time among files whose captures state no time of their own.
    #[must_use]
    pub fn newest_modified(&self) -> Option<Timestamp> {
        self.parts.iter().filter_map(|part| part.newest_modified(&self.files)).max()
    }

    /// Changes when reading the folder again could give something else; equal means that a rerun is needless.
    ///
    /// It covers the layout, the path and size of every file, and what is cheap to read of their content: both ends
    /// of each archive file (a record carries its date and an id, a gzip member ends with a checksum, a zip file with
    /// its directory, so two crawls differ there) and the whole manifest. Modification times are left out, for a copied
    /// archive is the same archive, except in a mirror, where they are data. What it cannot see is an edit inside a
    /// large file that leaves its size and both ends alone.
    pub fn fingerprint(&self) -> Result<Digest, ArchiveError> {
        let mut digest = DigestBuilder::new();
        digest.field(self.layout_names().as_bytes()).number(self.files.len() as u64);
        let mut whole = Vec::new();
        for (file, print) in self.files.iter().zip(&self.prints) {
            digest.field(file.path.as_os_str().as_encoded_bytes()).number(file.bytes);
            match print {
                Print::Ends => {
                    digest.field(&ends(&self.root.join(&file.path))?);
                }
                Print::Time => {
                    digest.field(&file.modified.map_or([0; 8], |time| time.micros().to_le_bytes()));
                }
                Print::Whole => whole.push(file),
                Print::Size => {}
            }
        }
        for file in whole {
            add_content(&self.root.join(&file.path), &mut digest)?;
        }
        Ok(digest.finish())
    }

    /// Identifies the files of a folder that is no snapshot (yet), by path, size and time.
    #[must_use]
    pub fn listing(path: &Path) -> Digest {
        let mut digest = DigestBuilder::new();
        let files = match fs_err::metadata(path) {
            Ok(metadata) if metadata.is_file() => {
                vec![SourceFile { path: PathBuf::new(), bytes: metadata.len(), modified: modified(&metadata) }]
            }
            _ => {
                let real_path = fs_err::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
                let walk = walk(path, &real_path);
                for reject in &walk.rejects {
                    digest.field(reject.source_file.as_bytes()).field(reject.reason.as_bytes());
                }
                walk.files
            }
        };
        for file in &files {
            digest.field(file.path.as_os_str().as_encoded_bytes()).number(file.bytes);
            digest.field(&file.modified.map_or([0; 8], |time| time.micros().to_le_bytes()));
        }
        digest.finish()
    }

    /// Readers that together yield every capture once. `time` is the time the snapshot states, if it does, and
    /// `previous` that of the snapshot before it; only trees need them. Without `time` the captures of a mirror
    /// have no fetch time.
    #[must_use]
    pub fn readers(&self, previous: Option<Timestamp>, time: Option<Timestamp>) -> Vec<Box<dyn CaptureReader>> {
        self.split_readers(previous, time, 1)
    }

    /// As [`readers`](Self::readers), with large files shared out among several readers for `threads` threads. The
    /// same captures with the same offsets come out, unless a reader says that it [misread](CaptureReader::misread).
    #[must_use]
    pub fn split_readers(
        &self,
        previous: Option<Timestamp>,
        time: Option<Timestamp>,
        threads: usize,
    ) -> Vec<Box<dyn CaptureReader>> {
        let opening = Opening {
            root: &self.root,
            real_root: &self.real_root,
            files: &self.files,
            bytes: self.bytes(),
            window: Window { previous, time },
            threads,
        };
        self.parts.iter().flat_map(|part| part.readers(&opening)).collect()
    }
}

/// The first and the last bytes of a file; all bytes of a small one. A file that cannot be read counts as empty here:
/// reading it will reject it, and the fingerprint changes once it can be read.
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

/// Adds a file piece by piece. All pieces but the last have one size, however many bytes a single read returns, so that
/// equal files have equal digests.
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

#[cfg(test)]
mod tests;
