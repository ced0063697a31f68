//! What a folder holds: which layouts, and which of its files belong to which.
//!
//! A manifest and HTTrack's cache are told by their names, which are part of their definitions; everything else by its
//! bytes. One crawl may leave the same captures in several forms (`wget --warc-file` also writes a tree, a WET file is made
//! from a WARC file), and none may count twice. So, where the layout is not given:
//!
//! 1. Files of records (WARC, ARC) and WACZ are read wherever they lie, all of them, each file once though links show
//!    it under several names.
//! 2. A manifest is read, and what it names is a body, though it look like an archive.
//! 3. Below a folder that holds `hts-cache/new.zip` everything is HTTrack's, and only what the cache names is read. If
//!    HTTrack was told to write WARC too, beside its cache, that is read instead.
//! 4. WET files and mirror trees say less of the same captures, so they are read only where there is nothing of 1 to 3:
//!    WET if there is any, else the tree.
//! 5. WARC files below the folder of a host may be pages of a mirror or the work of a crawler that names its folders so;
//!    a page among them decides for the mirror.
//!
//! What is left out for one of these reasons is remarked.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fs_err::File;

use crate::model::Reject;

use super::httrack::{CACHE, CACHE_FOLDER, Cache};
use super::manifest::{MANIFEST, named};
use super::mirror::Pages;
use super::mirror_names::has_host;
use super::records::Format;
use super::sniff::{Kind, sniff, sniff_bytes};
use super::source::Source;
use super::walk::{SourceFile, Walk, reject, walk};
use super::zip::{Directory, Names, leaves, list};
use super::{ArchiveError, Layout};

/// A part of a folder that is read by readers of its own.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// A file of records.
    Records {
        source: Source,
        format: Format,
        /// Path in the snapshot, through the zip file if it lies in one.
        name: String,
        /// Bytes of the zip file that this part stands for besides its own.
        extra_bytes: u64,
    },
    Manifest,
    Httrack(Cache),
    Mirror(Pages),
}

/// How a file shows that it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Print {
    /// Both its ends.
    Ends,
    /// All its bytes.
    Whole,
    /// Its modification time.
    Time,
    /// Its size.
    Size,
}

#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) layouts: Vec<Layout>,
    pub(super) files: Vec<SourceFile>,
    pub(super) prints: Vec<Print>,
    pub(super) parts: Vec<Part>,
    pub(super) rejects: Vec<Reject>,
    /// What was left out because its captures are read from elsewhere.
    pub(super) remarks: Vec<String>,
    /// What may be other than it is read as.
    pub(super) doubts: Vec<String>,
}

/// Looks at all files of a folder.
pub(super) fn detect(root: &Path, real_root: &Path, layout: Layout) -> Result<Found, ArchiveError> {
    let walk = walk(root, real_root);
    let mut finder = Finder::new(root, &walk, layout);
    finder.found.rejects.clone_from(&walk.rejects);
    finder.look(layout);
    let Finder { mut found, used, .. } = finder;
    if found.parts.is_empty() {
        return Err(ArchiveError::NoCapture { path: root.to_path_buf(), hint: hint(layout, &found.rejects) });
    }
    for (file, _) in walk.files.iter().zip(&used).filter(|(_, used)| !**used) {
        log::debug!("{}: ignored", root.join(&file.path).display());
    }
    found.rejects.sort_by(|a, b| a.source_file.cmp(&b.source_file));
    Ok(found)
}

/// Looks at a snapshot that is one file. `file` is relative to `root`.
pub(super) fn detect_file(root: &Path, file: SourceFile, layout: Layout) -> Result<Found, ArchiveError> {
    let path = root.join(&file.path);
    let walk = Walk { files: vec![file], ..Walk::default() };
    let mut finder = Finder::new(root, &walk, layout);
    let wanted = |of: Layout| layout == Layout::Auto || layout == of;
    for (of, format) in FORMATS {
        if wanted(of) {
            finder.records(&[0], of, format);
        }
    }
    if wanted(Layout::Wacz) {
        finder.wacz(&[0]);
    }
    let found = finder.found;
    if found.parts.is_empty() {
        let hint = match found.rejects.first() {
            Some(first) => first.reason.clone(),
            None => "a snapshot that is one file is WARC, WET, ARC or WACZ".to_owned(),
        };
        return Err(ArchiveError::NoCapture { path, hint });
    }
    Ok(found)
}

const FORMATS: [(Layout, Format); 3] =
    [(Layout::Warc, Format::Warc), (Layout::Arc, Format::Arc), (Layout::Wet, Format::Wet)];

fn hint(layout: Layout, rejects: &[Reject]) -> String {
    if let Some(first) = rejects.first() {
        return format!("{}: {} ({} rejected)", first.source_file, first.reason, rejects.len());
    }
    let expected = match layout {
        Layout::Auto => {
            "expected WARC, WACZ, ARC or WET files, a manifest.jsonl, HTTrack's hts-cache, or a wget mirror with a folder for each host"
        }
        Layout::Warc => "expected WARC files, plain, gzip or zstd",
        Layout::Manifest => "expected a manifest.jsonl",
        Layout::Wacz => "expected WACZ files",
        Layout::Mirror => "expected a wget mirror with a folder for each host",
        Layout::Httrack => "expected hts-cache/new.zip",
        Layout::Arc => "expected ARC files, plain or gzip",
        Layout::Wet => "expected WET files: WARC whose records are conversions",
    };
    expected.to_owned()
}

struct Finder<'a> {
    root: &'a Path,
    walk: &'a Walk,
    auto: bool,
    found: Found,
    /// Which of the walked files belong to something.
    used: Vec<bool>,
    /// What each of them is, once it was looked at.
    kinds: Vec<OnceCell<Result<Kind, String>>>,
}

impl<'a> Finder<'a> {
    fn new(root: &'a Path, walk: &'a Walk, layout: Layout) -> Self {
        let count = walk.files.len();
        let kinds = std::iter::repeat_with(OnceCell::new).take(count).collect();
        Self { root, walk, auto: layout == Layout::Auto, found: Found::default(), used: vec![false; count], kinds }
    }

    fn kind(&self, at: usize) -> &Result<Kind, String> {
        let path = || self.root.join(&self.walk.files[at].path);
        self.kinds[at].get_or_init(|| sniff(&path()).map_err(|error| error.to_string()))
    }

    fn look(&mut self, layout: Layout) {
        let walk = self.walk;
        let wanted = |of: Layout| layout == Layout::Auto || layout == of;
        let caches = if wanted(Layout::Httrack) { caches(walk) } else { Vec::new() };
        let has_manifest = walk.files.iter().any(|file| file.path == Path::new(MANIFEST));
        // Files that may be archives: not those in a tree of HTTrack's, or in a mirror.
        let below_cache = |file: &SourceFile| caches.iter().any(|cache| in_tree(&file.path, cache));
        let all: Vec<usize> = (0..walk.files.len()).filter(|&at| !below_cache(&walk.files[at])).collect();
        let (hosts, others): (Vec<usize>, Vec<usize>) =
            all.iter().copied().partition(|&at| has_host(&walk.files[at].path));
        let is_mirror = layout == Layout::Mirror || (wanted(Layout::Mirror) && self.is_mirror(&hosts));
        let mut archives = if is_mirror { others } else { all.clone() };
        if has_manifest && wanted(Layout::Manifest) {
            self.leave_named(&mut archives);
        }
        for (of, format) in FORMATS {
            if wanted(of) && (of != Layout::Wet || !self.auto) {
                self.records(&archives, of, format);
            }
        }
        if wanted(Layout::Wacz) {
            self.wacz(&archives);
        }
        if has_manifest && wanted(Layout::Manifest) {
            self.manifest();
        }
        for cache in &caches {
            self.httrack(cache);
        }
        if self.auto {
            self.records(&archives, Layout::Wet, Format::Wet);
        }
        if is_mirror {
            self.mirror(layout);
        }
    }

    /// Whether the folders of hosts are a tree of pages rather than of archives.
    fn is_mirror(&self, hosts: &[usize]) -> bool {
        let mut archives = hosts.is_empty();
        for &at in hosts {
            match self.kind(at) {
                Ok(Kind::Markup) => return true,
                Ok(Kind::Records(_)) => archives = true,
                _ => {}
            }
        }
        !archives
    }

    /// Adds all files of one format among `files`, and says which only claim to be.
    fn records(&mut self, files: &[usize], layout: Layout, format: Format) {
        let walk = self.walk;
        let mut seen = BTreeSet::new();
        let weaker = layout == Layout::Wet && self.auto && !self.found.parts.is_empty();
        for &at in files {
            let file = &walk.files[at];
            let path = self.root.join(&file.path);
            let claims = claim(&file.name());
            let kind = match self.kind(at) {
                Ok(kind) => *kind,
                Err(error) => {
                    let reason = error.clone();
                    if format == Format::Warc {
                        self.found.rejects.push(reject(&file.path, reason));
                    }
                    continue;
                }
            };
            let is_open = file.name().ends_with(".open");
            if is_open && (kind == Kind::Records(format) || (claims == Some(layout) && format == Format::Warc)) {
                let reason = "still being written; hint: it is read when it loses '.open'";
                self.found.rejects.push(reject(&file.path, reason));
                continue;
            }
            let not = |why: &str| reject(&file.path, format!("not a {} file: {why}", layout.as_str().to_uppercase()));
            match kind {
                Kind::Records(of) if of != format => {}
                Kind::Records(_) if weaker => {
                    let remark = format!("{}: left out, what it was made from is there", file.name());
                    self.found.remarks.push(remark);
                }
                // With links in the folder a file may be met under several names; its records count once.
                Kind::Records(_) if !walk.linked || fs_err::canonicalize(&path).is_ok_and(|real| seen.insert(real)) => {
                    let part = Part::Records { source: Source::File(path), format, name: file.name(), extra_bytes: 0 };
                    self.add(layout, part);
                    self.take(at, Print::Ends);
                }
                Kind::Records(_) => log::debug!("{}: read under another name, ignored", path.display()),
                _ if claims != Some(layout) => {}
                Kind::Empty => self.found.rejects.push(not("it is empty")),
                Kind::Markup => self.found.rejects.push(not("it is a page")),
                Kind::Zip => self.found.rejects.push(not("it is a zip file")),
                Kind::Other(why) => self.found.rejects.push(not(why)),
            }
        }
    }

    fn wacz(&mut self, files: &[usize]) {
        let walk = self.walk;
        let mut seen = BTreeSet::new();
        for &at in files {
            let file = &walk.files[at];
            let path = self.root.join(&file.path);
            let claims = claim(&file.name()) == Some(Layout::Wacz);
            match self.kind(at) {
                Ok(Kind::Zip) if file.name().ends_with(".open") => {
                    let reason = "still being written; hint: it is read when it loses '.open'";
                    self.found.rejects.push(reject(&file.path, reason));
                    continue;
                }
                Ok(Kind::Zip) => {}
                Ok(_) if claims => {
                    self.found.rejects.push(reject(&file.path, "not a WACZ file: it is no zip file"));
                    continue;
                }
                _ => continue,
            }
            if walk.linked && !fs_err::canonicalize(&path).is_ok_and(|real| seen.insert(real)) {
                continue;
            }
            let directory = match File::open(&path).and_then(|opened| list(opened, claims, Names::Unique)) {
                Ok(directory) => directory,
                Err(error) => {
                    if claims {
                        self.found.rejects.push(reject(&file.path, error.to_string()));
                    }
                    continue;
                }
            };
            if !claims && !directory.entries.iter().any(|entry| in_archive(&entry.name)) {
                continue;
            }
            if self.entries(file, &path, directory) {
                self.take(at, Print::Ends);
            }
        }
    }

    /// Adds the archives in a WACZ file; false if there are none.
    fn entries(&mut self, file: &SourceFile, path: &Path, directory: Directory) -> bool {
        let at = |offset: Option<u64>, reason: String| Reject { source_offset: offset, ..reject(&file.path, reason) };
        self.found.rejects.extend(directory.faults.into_iter().map(|fault| at(fault.offset, fault.reason)));
        let mut rest = file.bytes;
        let mut parts = Vec::new();
        for entry in directory.entries {
            if leaves(&entry.name) {
                let reason = format!("entry '{}' leaves the archive", entry.name);
                self.found.rejects.push(at(Some(entry.offset), reason));
                continue;
            }
            if !in_archive(&entry.name) {
                continue;
            }
            let (name, offset, packed) = (entry.name.clone(), entry.offset, entry.packed_bytes);
            let source = Source::Entry(path.to_path_buf(), entry);
            match source.open().and_then(sniff_bytes) {
                Ok(Kind::Records(format)) => {
                    rest = rest.saturating_sub(packed);
                    let name = format!("{}/{name}", file.name());
                    parts.push(Part::Records { source, format, name, extra_bytes: 0 });
                }
                Ok(Kind::Empty) => {}
                Ok(kind) if claim(&name).is_some() => {
                    let why = match kind {
                        Kind::Other(why) => why,
                        _ => "it is something else",
                    };
                    self.found.rejects.push(at(Some(offset), format!("entry '{name}' is no archive: {why}")));
                }
                Ok(_) => {}
                Err(error) => self.found.rejects.push(at(Some(offset), format!("entry '{name}': {error}"))),
            }
        }
        if parts.is_empty() {
            self.found.rejects.push(reject(&file.path, "no archive in this WACZ file"));
            return false;
        }
        if let Some(Part::Records { extra_bytes, .. }) = parts.first_mut() {
            *extra_bytes = rest;
        }
        for part in parts {
            self.add(Layout::Wacz, part);
        }
        true
    }

    /// Takes what the manifest names from the files that may be archives.
    fn leave_named(&self, archives: &mut Vec<usize>) {
        let walk = self.walk;
        let path = |at: &usize| walk.files[*at].path.clone();
        let may_be = |at: &&usize| {
            matches!(self.kind(**at), Ok(Kind::Records(_) | Kind::Zip)) || claim(&walk.files[**at].name()).is_some()
        };
        let candidates: BTreeSet<PathBuf> = archives.iter().filter(may_be).map(path).collect();
        let bodies = if candidates.is_empty() { candidates } else { named(self.root, &candidates) };
        archives.retain(|at| !bodies.contains(&walk.files[*at].path));
    }

    fn manifest(&mut self) {
        let walk = self.walk;
        // What it says of itself comes first.
        self.found.layouts.insert(0, Layout::Manifest);
        self.found.parts.insert(0, Part::Manifest);
        for at in 0..walk.files.len() {
            if !self.used[at] {
                let is_manifest = walk.files[at].path == Path::new(MANIFEST);
                self.take(at, if is_manifest { Print::Whole } else { Print::Size });
            }
        }
    }

    /// `folder`: the one that holds `hts-cache`.
    fn httrack(&mut self, folder: &Path) {
        let walk = self.walk;
        let cache = folder.join(CACHE_FOLDER).join(CACHE);
        let beside = |file: &SourceFile| !in_tree(&file.path, folder) && file.path.starts_with(folder);
        let at = |path: &Path| walk.files.iter().position(|file| file.path == path);
        let Some(cache_at) = at(&cache) else { return };
        if self.auto && (0..walk.files.len()).any(|at| self.used[at] && beside(&walk.files[at])) {
            self.found.remarks.push(format!("{}: left out, HTTrack wrote WARC too", walk.files[cache_at].name()));
            return;
        }
        let file = &walk.files[cache_at];
        let path = self.root.join(&cache);
        let directory = match File::open(&path).and_then(|opened| list(opened, true, Names::MayRepeat)) {
            Ok(directory) => directory,
            Err(error) => {
                self.found.rejects.push(reject(&file.path, error.to_string()));
                return;
            }
        };
        let fault =
            |fault: super::zip::Fault| Reject { source_offset: fault.offset, ..reject(&file.path, fault.reason) };
        self.found.rejects.extend(directory.faults.into_iter().map(fault));
        if directory.entries.is_empty() {
            self.found
                .rejects
                .push(reject(&file.path, "HTTrack's cache is empty; hint: layout = \"mirror\" reads its tree"));
            return;
        }
        let cache = Cache {
            name: file.name(),
            path,
            root: self.root.join(folder),
            modified: file.modified,
            entries: directory.entries.into(),
        };
        self.add(Layout::Httrack, Part::Httrack(cache));
        for (at, file) in walk.files.iter().enumerate() {
            if at == cache_at || (in_tree(&file.path, folder) && !self.used[at]) {
                self.take(at, if at == cache_at { Print::Ends } else { Print::Size });
            }
        }
    }

    fn mirror(&mut self, layout: Layout) {
        let walk = self.walk;
        if self.auto && !self.found.parts.is_empty() {
            self.found.remarks.push("the mirror is left out, there are archives".to_owned());
            return;
        }
        // A folder with no name of a host may still be one where the user says so: `intranet/`.
        let any_host = walk.files.iter().any(|file| has_host(&file.path));
        let deep = |file: &SourceFile| {
            layout == Layout::Mirror
                && !any_host
                && file.path.iter().count() > 1
                && !file.path.starts_with(CACHE_FOLDER)
        };
        let first = self.found.files.len();
        for (at, file) in walk.files.iter().enumerate() {
            if has_host(&file.path) || deep(file) {
                self.take(at, Print::Time);
            }
        }
        let tree: Vec<usize> = (first..self.found.files.len()).collect();
        let by_httrack =
            |file: &SourceFile| file.path.starts_with(CACHE_FOLDER) || file.path == Path::new("hts-log.txt");
        let pages = Pages::find(self.root, &self.found.files, &tree, walk.files.iter().any(by_httrack));
        if pages.ambiguous > 0 {
            let count = pages.ambiguous;
            let doubt =
                format!("wget put '.html' behind names; of {count} it cannot be told whether it was in the URL");
            self.found.doubts.push(doubt);
        }
        if !tree.is_empty() {
            self.add(Layout::Mirror, Part::Mirror(pages));
        }
    }

    fn add(&mut self, layout: Layout, part: Part) {
        if !self.found.layouts.contains(&layout) {
            self.found.layouts.push(layout);
        }
        self.found.parts.push(part);
    }

    fn take(&mut self, at: usize, print: Print) {
        self.used[at] = true;
        self.found.files.push(self.walk.files[at].clone());
        self.found.prints.push(print);
    }
}

/// The layout that the name of a file claims.
pub(super) fn claim(name: &str) -> Option<Layout> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".open").unwrap_or(&name);
    let packed = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    match () {
        () if name.ends_with(".wacz") => Some(Layout::Wacz),
        () if packed.ends_with(".wet") => Some(Layout::Wet),
        () if packed.ends_with(".warc") => Some(Layout::Warc),
        () if packed.ends_with(".arc") => Some(Layout::Arc),
        () => None,
    }
}

fn in_archive(name: &str) -> bool {
    let folders = name.rsplit_once('/').map_or("", |(folders, file)| if file.is_empty() { "" } else { folders });
    folders.split('/').any(|folder| folder == "archive")
}

/// Folders that hold `hts-cache/new.zip`.
fn caches(walk: &Walk) -> Vec<PathBuf> {
    let end = Path::new(CACHE_FOLDER).join(CACHE);
    let caches = walk.files.iter().filter(|file| file.path.ends_with(&end));
    caches.filter_map(|file| file.path.parent()?.parent().map(Path::to_path_buf)).collect()
}

/// Does a file belong to the tree that HTTrack wrote into this folder? What lies directly in it, or in `hts-cache`, does
/// not.
fn in_tree(path: &Path, folder: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(folder) else { return false };
    inside.iter().count() > 1 && !inside.starts_with(CACHE_FOLDER)
}
