//! What HTTrack leaves: `hts-cache/new.zip` and a tree of files beside `hts-cache`.
//!
//! The cache has an entry for each answer. Its header, in the manner of HTTP, stands in the extra field in front of the
//! entry; the body is in the entry (pages) or in the tree (the rest), where `X-Save` says. A body from the cache is as
//! the server sent it. Pages in the tree were changed: links rewritten, and comments added that hold the time of the
//! crawl, which would make every page differ from last night's; they are dropped.
//!
//! `Last-Modified` is not used: where the server sent none, HTTrack writes the time of the fetch. When a page was
//! fetched it does not say; the time of the cache file stands in for it, under the same rule as in a mirror.
//!
//! Below a folder that holds `hts-cache/new.zip` everything is HTTrack's, and only what the cache names is read. If
//! HTTrack was told to write WARC too, beside its cache, that is read instead.

mod comments;

use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err::File;
use memchr::memmem;

use crate::archive::detect::{Print, Search};
use crate::archive::part::{Opening, SnapshotPart, Window};
use crate::archive::records::headers::Headers;
use crate::archive::tree::Tree;
use crate::archive::walk::SourceFile;
use crate::archive::zip::{Entry, Names, list};
use crate::archive::{CaptureReader, is_http};
use crate::bounds::{self, MAX_BODY};
use crate::model::{Body, Loss, RawCapture, Reject, Timestamp};

use super::{Layout, Rules};
pub(super) use comments::without_comments;

const CACHE_FOLDER: &str = "hts-cache";
const CACHE: &str = "new.zip";
/// A cache of fewer entries is not worth two readers.
const MIN_ENTRIES: usize = 256;

pub(crate) struct Httrack;

impl Rules for Httrack {
    fn expected(&self) -> &'static str {
        "hts-cache/new.zip"
    }

    fn evidence(&self, _files: &[SourceFile]) -> String {
        "it has a cache of HTTrack, hts-cache/new.zip".to_owned()
    }

    fn set_aside(&self, search: &Search<'_>, archives: &mut Vec<usize>) {
        let is_outside = outside_trees(&search.walk.files);
        archives.retain(|&at| is_outside(at));
    }

    fn find(&self, search: &mut Search<'_>, _archives: &[usize]) {
        for folder in folders(&search.walk.files) {
            find_cache(search, &folder);
        }
    }
}

/// Folders that hold `hts-cache/new.zip`.
fn folders(files: &[SourceFile]) -> Vec<PathBuf> {
    let end = Path::new(CACHE_FOLDER).join(CACHE);
    let caches = files.iter().filter(|file| file.path.ends_with(&end));
    caches.filter_map(|file| file.path.parent()?.parent().map(Path::to_path_buf)).collect()
}

/// Tells of each file, by its index, whether it lies outside of all trees that have a cache.
pub(super) fn outside_trees(files: &[SourceFile]) -> impl Fn(usize) -> bool {
    let folders = folders(files);
    move |at| !folders.iter().any(|folder| in_tree(&files[at].path, folder))
}

/// Whether a file belongs to the tree that HTTrack wrote into this folder. What lies directly in the folder, or in its
/// `hts-cache`, does not.
fn in_tree(path: &Path, folder: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(folder) else { return false };
    inside.iter().count() > 1 && !inside.starts_with(CACHE_FOLDER)
}

/// Whether HTTrack wrote this file beside a tree at the top of the snapshot.
pub(super) fn is_beside_tree(file: &SourceFile) -> bool {
    in_cache_folder(file) || file.path == Path::new("hts-log.txt")
}

/// Whether a file lies in `hts-cache` at the top of the snapshot.
pub(super) fn in_cache_folder(file: &SourceFile) -> bool {
    file.path.starts_with(CACHE_FOLDER)
}

/// Adds the cache in `folder`.
fn find_cache(search: &mut Search<'_>, folder: &Path) {
    let files = &search.walk.files;
    let path = folder.join(CACHE_FOLDER).join(CACHE);
    let Some(cache_at) = files.iter().position(|file| file.path == path) else { return };
    let beside = |file: &SourceFile| !in_tree(&file.path, folder) && file.path.starts_with(folder);
    if search.auto && (0..files.len()).any(|at| search.is_used(at) && beside(&files[at])) {
        search.remark(format!("{}: left out, HTTrack wrote WARC too", files[cache_at].name()));
        return;
    }
    let path = search.path(cache_at);
    let directory = match File::open(&path).and_then(|opened| list(opened, true, Names::MayRepeat)) {
        Ok(directory) => directory,
        Err(error) => return search.reject(cache_at, error.to_string()),
    };
    search.reject_faults(cache_at, directory.faults);
    if directory.entries.is_empty() {
        return search.reject(cache_at, "HTTrack's cache is empty; hint: layout = \"mirror\" reads its tree");
    }
    let cache = Cache {
        name: files[cache_at].name(),
        path,
        root: search.root.join(folder),
        modified: files[cache_at].modified,
        entries: directory.entries.into(),
    };
    search.add(Layout::Httrack, cache);
    for (at, file) in files.iter().enumerate() {
        if at == cache_at || (in_tree(&file.path, folder) && !search.is_used(at)) {
            search.take(at, if at == cache_at { Print::Ends } else { Print::Size });
        }
    }
}

/// The cache of one crawl.
#[derive(Clone, Debug)]
struct Cache {
    /// Path of the zip file, relative to the snapshot folder.
    name: String,
    /// The same in full.
    path: PathBuf,
    /// The folder that holds `hts-cache`, which `X-Save` is relative to.
    root: PathBuf,
    modified: Option<Timestamp>,
    entries: Arc<[Entry]>,
}

impl SnapshotPart for Cache {
    fn readers(&self, opening: &Opening<'_>) -> Vec<Box<dyn CaptureReader>> {
        let (count, threads) = (self.entries.len(), opening.threads);
        let share = count.div_ceil(threads.max(1) * 4).max(if threads > 1 { MIN_ENTRIES } else { count }).max(1);
        let reader = |start: usize| -> Box<dyn CaptureReader> {
            let range = start..count.min(start + share);
            Box::new(HttrackReader::new(self.clone(), range, opening.real_root.to_path_buf(), opening.window))
        };
        (0..count).step_by(share).map(reader).collect()
    }

    fn newest_modified(&self, _files: &[SourceFile]) -> Option<Timestamp> {
        self.modified
    }
}

struct HttrackReader {
    cache: Cache,
    range: Range<usize>,
    tree: Tree,
    window: Window,
    file: Option<File>,
    headers: Headers,
    bytes_read: u64,
}

/// Why an entry is no capture.
enum NoCapture {
    /// It was never meant to be one: a file of another protocol, or a note about a request that was not made, such as a
    /// further round of a loop of redirects.
    Note,
    Reject(String),
}

impl From<std::io::Error> for NoCapture {
    fn from(error: std::io::Error) -> Self {
        Self::Reject(error.to_string())
    }
}

impl HttrackReader {
    fn new(cache: Cache, range: Range<usize>, real_root: PathBuf, window: Window) -> Self {
        let tree = Tree::new(cache.root.clone(), real_root);
        Self { cache, range, tree, window, file: None, headers: Headers::default(), bytes_read: 0 }
    }

    /// `None` for an entry that was never meant to be a capture.
    fn read(&mut self, at: usize) -> Option<Result<RawCapture, Reject>> {
        let entries = Arc::clone(&self.cache.entries);
        let entry = &entries[at];
        let mut url = entry.name.clone();
        match self.read_entry(entry, &mut url) {
            Ok(capture) => Some(Ok(capture)),
            Err(NoCapture::Note) => None,
            Err(NoCapture::Reject(reason)) => Some(Err(Reject {
                source_file: self.cache.name.clone(),
                source_offset: Some(entry.offset),
                url: Some(url),
                reason,
                lost: Loss::Nothing,
            })),
        }
    }

    /// `url`: the name of the entry, which is completed if it is only a part of a URL.
    fn read_entry(&mut self, entry: &Entry, url: &mut String) -> Result<RawCapture, NoCapture> {
        let unpacked = self.unpack(entry)?;
        if !url.contains("://")
            && let (Some(address), Some(path)) = (self.headers.get("X-Addr"), self.headers.get("X-Fil"))
        {
            let scheme = if address.contains("://") { "" } else { "http://" };
            *url = format!("{scheme}{address}{path}");
        }
        if !is_http(url) {
            return Err(NoCapture::Note);
        }
        let mut capture = self.capture(entry, url)?;
        capture.body = self.body(unpacked, capture.status)?;
        let is_page = capture.content_type.as_deref().is_none_or(|kind| kind.contains("html"));
        if let (true, Body::File(path)) = (is_page, &capture.body) {
            let mut page = Vec::new();
            bounds::before_growing(usize::try_from(path.metadata()?.len()).unwrap_or(usize::MAX));
            File::open(path).and_then(|file| file.take(MAX_BODY as u64).read_to_end(&mut page))?;
            capture.body = Body::Bytes(without_comments(page));
        }
        Ok(capture)
    }

    /// Reads HTTrack's header of an entry into `headers`, and unpacks the entry.
    fn unpack(&mut self, entry: &Entry) -> Result<std::io::Result<Vec<u8>>, NoCapture> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::open(&self.cache.path)?),
        };
        self.bytes_read += entry.packed_bytes;
        let (extra, unpacked) = entry.read(file, MAX_BODY as u64)?;
        let start = memmem::find(&extra, b"HTTP/1.");
        let start = start.ok_or_else(|| NoCapture::Reject("the entry has no header of HTTrack".to_owned()))?;
        self.headers.set(&extra[start..]);
        Ok(unpacked)
    }

    /// What the header says, without the body.
    fn capture(&self, entry: &Entry, url: &str) -> Result<RawCapture, NoCapture> {
        let get = |name: &str| self.headers.get(name);
        let status = match get("X-StatusCode").map(|code| code.parse::<i32>()) {
            None => self.headers.status(),
            Some(Ok(code @ 100..=999)) => u16::try_from(code).ok(),
            Some(_) => return Err(NoCapture::Reject("it was not retrieved".to_owned())),
        };
        let no_answer = ["X-Size", "Content-Type", "X-Save"].into_iter().all(|name| get(name).is_none());
        if no_answer && status != Some(200) {
            return Err(NoCapture::Note);
        }
        let content_type = match (get("Content-Type"), get("X-Charset")) {
            (Some(kind), Some(charset)) if !kind.contains("charset") => Some(format!("{kind}; charset={charset}")),
            (kind, _) => kind,
        };
        Ok(RawCapture {
            url: url.to_owned(),
            fetched_at: self.window.fetched_at(self.cache.modified),
            status,
            content_type,
            content_encoding: None,
            transfer_encoding: None,
            last_modified: None,
            etag: get("Etag"),
            wall: None,
            mirrored: false,
            archive_digest: None,
            revisit: None,
            body: Body::None,
            truncated: None,
            source_file: self.cache.name.clone(),
            source_offset: entry.offset,
        })
    }

    /// The body, from the entry or from the tree.
    fn body(&mut self, unpacked: std::io::Result<Vec<u8>>, status: Option<u16>) -> Result<Body, NoCapture> {
        if self.headers.get("X-In-Cache").as_deref() != Some("0") {
            return Ok(Body::Bytes(unpacked?));
        }
        match self.headers.get("X-Save") {
            Some(save) => {
                let (path, bytes) = self.tree.locate(&save.replace('\\', "/")).map_err(NoCapture::Reject)?;
                self.bytes_read += bytes;
                Ok(Body::File(path))
            }
            None if status == Some(200) => {
                Err(NoCapture::Reject("its body is neither in the cache nor in the tree".to_owned()))
            }
            None => Ok(Body::None),
        }
    }
}

impl Iterator for HttrackReader {
    type Item = Result<RawCapture, Reject>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let at = self.range.next()?;
            if let Some(item) = self.read(at) {
                return Some(item);
            }
        }
    }
}

impl CaptureReader for HttrackReader {
    fn name(&self) -> &str {
        &self.cache.name
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read
    }
}

#[cfg(test)]
mod tests;
