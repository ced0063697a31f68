//! What a folder holds: which layouts, and which of its files belong to which.
//!
//! A manifest and HTTrack's cache are told by their names, which are part of their definitions; everything else by its
//! bytes. Each layout has rules of its own for how it is told, in `layouts`. Where the layout is not given, all are
//! looked for in the order of the registry there, which says why none of a crawl's captures counts twice. First each
//! layout sets aside files that are its own whatever they look like: a page of a mirror may be an archive, and so may
//! what a manifest names. What is left out because its captures are read from elsewhere is remarked.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use crate::model::{Loss, Reject};

use super::ArchiveError;
use super::layouts::Layout;
use super::part::SnapshotPart;
use super::sniff::{FileKind, sniff};
use super::walk::{SourceFile, Walk, reject, walk};
use super::zip::Fault;

/// How a file shows that it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Print {
    /// Both its ends.
    Ends,
    /// All its bytes.
    Whole,
    /// Its modification time.
    Time,
    /// Its size.
    Size,
}

/// What was found in a folder.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// In the order in which they are read.
    pub(crate) layouts: Vec<Layout>,
    /// The files that belong to something, and how each shows that it changed.
    pub(crate) files: Vec<SourceFile>,
    pub(crate) prints: Vec<Print>,
    pub(crate) parts: Vec<Box<dyn SnapshotPart>>,
    pub(crate) rejects: Vec<Reject>,
    /// What was left out because its captures are read from elsewhere.
    pub(crate) remarks: Vec<String>,
    /// What may be other than it is read as, such as URLs that the names of files do not tell for sure.
    pub(crate) doubts: Vec<String>,
}

/// Looks at all files of a folder.
pub(crate) fn detect(root: &Path, real_root: &Path, layout: Layout) -> Result<Findings, ArchiveError> {
    let walk = walk(root, real_root);
    let mut search = Search::new(root, &walk, layout);
    search.findings.rejects.clone_from(&walk.rejects);
    let mut archives: Vec<usize> = (0..walk.files.len()).collect();
    // The weakest layouts first: a mirror sets aside most, and the manifest then has fewer files to look at.
    for (_, rules) in layout.wanted().rev() {
        rules.set_aside(&search, &mut archives);
    }
    for (_, rules) in layout.wanted() {
        rules.find(&mut search, &archives);
    }
    let Search { mut findings, used, .. } = search;
    if findings.parts.is_empty() {
        return Err(ArchiveError::NoCapture { path: root.to_path_buf(), hint: hint(layout, &findings.rejects) });
    }
    for (file, _) in walk.files.iter().zip(&used).filter(|(_, used)| !**used) {
        log::debug!("{}: ignored", root.join(&file.path).display());
    }
    findings.rejects.sort_by(|a, b| a.source_file.cmp(&b.source_file));
    Ok(findings)
}

/// Looks at a snapshot that is one file. `file` is relative to `root`.
pub(crate) fn detect_file(root: &Path, file: SourceFile, layout: Layout) -> Result<Findings, ArchiveError> {
    let path = root.join(&file.path);
    let walk = Walk { files: vec![file], ..Walk::default() };
    let mut search = Search::new(root, &walk, layout);
    for (_, rules) in layout.wanted().filter(|(_, rules)| !rules.endings().is_empty()) {
        rules.find(&mut search, &[0]);
    }
    let findings = search.findings;
    if findings.parts.is_empty() {
        let hint = match findings.rejects.first() {
            Some(first) => first.reason.clone(),
            None => {
                let files = Layout::Auto.wanted().filter(|(_, rules)| !rules.endings().is_empty());
                let names: Vec<String> = files.map(|(layout, _)| layout.as_str().to_uppercase()).collect();
                format!("a snapshot that is one file is one of {}", names.join(", "))
            }
        };
        return Err(ArchiveError::NoCapture { path, hint });
    }
    Ok(findings)
}

/// Why there is nothing to read.
fn hint(layout: Layout, rejects: &[Reject]) -> String {
    if let Some(first) = rejects.first() {
        return format!("{}: {} ({} rejected)", first.source_file, first.reason, rejects.len());
    }
    let expected: Vec<&str> = layout.wanted().map(|(_, rules)| rules.expected()).collect();
    format!("expected {}", expected.join("; or "))
}

/// The search for layouts in a folder, and what came of it so far.
pub(crate) struct Search<'a> {
    pub(crate) root: &'a Path,
    pub(crate) walk: &'a Walk,
    /// Whether all layouts are looked for, not a given one.
    pub(crate) auto: bool,
    findings: Findings,
    /// Which of the walked files belong to something.
    used: Vec<bool>,
    /// What each of them is, once it was looked at.
    kinds: Vec<OnceCell<Result<FileKind, String>>>,
}

impl<'a> Search<'a> {
    fn new(root: &'a Path, walk: &'a Walk, layout: Layout) -> Self {
        let count = walk.files.len();
        let kinds = std::iter::repeat_with(OnceCell::new).take(count).collect();
        let auto = layout == Layout::Auto;
        Self { root, walk, auto, findings: Findings::default(), used: vec![false; count], kinds }
    }

    /// The full path of a file.
    pub(crate) fn path(&self, at: usize) -> PathBuf {
        self.root.join(&self.walk.files[at].path)
    }

    /// What a file is, told from its bytes, or why it cannot be read.
    pub(crate) fn kind(&self, at: usize) -> &Result<FileKind, String> {
        self.kinds[at].get_or_init(|| sniff(&self.path(at)).map_err(|error| error.to_string()))
    }

    /// Whether nothing was found yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.findings.parts.is_empty()
    }

    pub(crate) fn is_used(&self, at: usize) -> bool {
        self.used[at]
    }

    /// The files found so far, which the parts of a snapshot name by their indices.
    pub(crate) fn files(&self) -> &[SourceFile] {
        &self.findings.files
    }

    /// Adds a part that is read behind those found before.
    pub(crate) fn add(&mut self, layout: Layout, part: impl SnapshotPart + 'static) {
        if !self.findings.layouts.contains(&layout) {
            self.findings.layouts.push(layout);
        }
        self.findings.parts.push(Box::new(part));
    }

    /// Adds a part that is read before all others.
    pub(crate) fn add_first(&mut self, layout: Layout, part: impl SnapshotPart + 'static) {
        self.findings.layouts.insert(0, layout);
        self.findings.parts.insert(0, Box::new(part));
    }

    /// Notes that a file belongs to what was found.
    pub(crate) fn take(&mut self, at: usize, print: Print) {
        self.used[at] = true;
        self.findings.files.push(self.walk.files[at].clone());
        self.findings.prints.push(print);
    }

    /// A file of which nothing can be read.
    pub(crate) fn reject(&mut self, at: usize, reason: impl Into<String>) {
        self.reject_place(at, None, reason, Loss::Rest);
    }

    /// Something at a place in a file.
    pub(crate) fn reject_at(&mut self, at: usize, offset: u64, reason: impl Into<String>) {
        self.reject_place(at, Some(offset), reason, Loss::Captures);
    }

    /// What is wrong with a zip file.
    pub(crate) fn reject_faults(&mut self, at: usize, faults: Vec<Fault>) {
        for Fault { offset, reason, lost } in faults {
            self.reject_place(at, Some(offset), reason, lost);
        }
    }

    fn reject_place(&mut self, at: usize, source_offset: Option<u64>, reason: impl Into<String>, lost: Loss) {
        let rejected = reject(&self.walk.files[at].path, reason);
        self.findings.rejects.push(Reject { source_offset, lost, ..rejected });
    }

    pub(crate) fn remark(&mut self, remark: String) {
        self.findings.remarks.push(remark);
    }

    pub(crate) fn doubt(&mut self, doubt: String) {
        self.findings.doubts.push(doubt);
    }
}

#[cfg(test)]
mod tests;
