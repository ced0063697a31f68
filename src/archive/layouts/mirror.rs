//! A `wget --mirror` tree: `host[:port]/path`, or `scheme/host[:port]/path` with `--protocol-directories`.
//!
//! A mirror keeps neither headers nor fetch times, so URLs are rebuilt from paths and times come from the files:
//! a modification time is taken for the fetch time if it lies after the previous snapshot and not after this one; else
//! (a copied tree, a page last modified long ago, a first snapshot) the snapshot's own time is all that is known.
//!
//! What wget's options do to a tree is undone where it can be:
//! - `-K` keeps the page as it came beside the one whose links `-k` rewrote: `x.html.orig`, or `x.orig` for an `x.html`
//!   that `-E` named so. The body is taken from there. Without `-K` the rewritten page is all there is.
//! - `-E` puts `.html` behind names of pages: `p.php?id=1.html`. It is dropped again where only `-E` explains it:
//!   behind a query, behind the name of a program (`.php`), where `-K` shows it. `about.html` stays: it was `/about` or
//!   `/about.html`, and nothing tells. A warning says how many such names there are.
//! - `--save-headers` puts the response's header into the file. Status, type, dates and ETag come from it then, and the
//!   fetch time from its `Date`.
//!
//! Trees that HTTrack left without its cache are read the same way, without the comments that it adds to pages.

mod names;

use std::collections::HashMap;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err::File;

use crate::archive::CaptureReader;
use crate::archive::detect::{Print, Search};
use crate::archive::part::{Opening, SnapshotPart, Window};
use crate::archive::records::headers::Headers;
use crate::archive::records::http::add_http;
use crate::archive::sniff::{FileKind, sniff};
use crate::archive::walk::{SourceFile, reject};
use crate::bounds::{self, MAX_BODY};
use crate::model::{Body, RawCapture, Reject, TimeSource, Timestamp};

use super::httrack::{in_cache_folder, is_beside_tree, outside_trees, without_comments};
use super::{Layout, Rules};
use names::{HTML, has_host, split_query, url_of};

/// Endings of programs whose pages `-E` renames.
const PROGRAMS: [&str; 17] = [
    "php", "php3", "php4", "php5", "phtml", "asp", "aspx", "jsp", "jspx", "cgi", "pl", "py", "cfm", "do", "shtml",
    "action", "ashx",
];
/// So many pages are looked at to see whether `-E` left them their names.
const LOOKS: usize = 64;

pub(crate) struct Mirror;

impl Rules for Mirror {
    fn expected(&self) -> &'static str {
        "a wget mirror with a folder for each host"
    }

    fn evidence(&self, files: &[SourceFile]) -> String {
        let is_host = |name: &&str| !matches!(*name, "http" | "https");
        let first = files.iter().map(SourceFile::name).find(|name| name.contains('/')).unwrap_or_default();
        let host = first.split('/').find(is_host).unwrap_or_default();
        format!("its files lie in folders named like hosts: {host}/")
    }

    /// What lies below the folder of a host is a page, even if it looks like an archive.
    fn set_aside(&self, search: &Search<'_>, archives: &mut Vec<usize>) {
        if is_mirror(search) {
            archives.retain(|&at| !has_host(&search.walk.files[at].path));
        }
    }

    fn find(&self, search: &mut Search<'_>, _archives: &[usize]) {
        if !is_mirror(search) {
            return;
        }
        if search.auto && !search.is_empty() {
            search.remark("the mirror is left out, there are archives".to_owned());
            return;
        }
        let files = &search.walk.files;
        // A folder with no name of a host may still be one where the user says so: `intranet/`.
        let any_folder = !search.auto && !files.iter().any(|file| has_host(&file.path));
        let in_folder = |file: &SourceFile| file.path.iter().count() > 1 && !in_cache_folder(file);
        let first = search.files().len();
        for (at, file) in files.iter().enumerate() {
            if has_host(&file.path) || (any_folder && in_folder(file)) {
                search.take(at, Print::Time);
            }
        }
        let tree = first..search.files().len();
        let pages = Pages::find(search.root, search.files(), tree.clone(), files.iter().any(is_beside_tree));
        if pages.ambiguous > 0 {
            let count = pages.ambiguous;
            search.doubt(format!(
                "wget put '.html' behind names; of {count} it cannot be told whether it was in the URL"
            ));
        }
        if !tree.is_empty() {
            search.add(Layout::Mirror, MirrorPart { tree, pages });
        }
    }
}

/// Whether the folders of hosts are a tree of pages. They may also be the work of a crawler that keeps its archives in
/// folders named so; a page among them decides for the mirror. A given layout is not doubted.
fn is_mirror(search: &Search<'_>) -> bool {
    if !search.auto {
        return true;
    }
    let files = &search.walk.files;
    let is_outside = outside_trees(files);
    let mut hosts = (0..files.len()).filter(|&at| is_outside(at) && has_host(&files[at].path)).peekable();
    let mut archives = hosts.peek().is_none();
    for at in hosts {
        match search.kind(at) {
            Ok(FileKind::Markup) => return true,
            Ok(FileKind::Records(..)) => archives = true,
            _ => {}
        }
    }
    !archives
}

#[derive(Debug)]
struct MirrorPart {
    /// Its files among those of the snapshot.
    tree: Range<usize>,
    pages: Pages,
}

impl SnapshotPart for MirrorPart {
    fn readers(&self, opening: &Opening<'_>) -> Vec<Box<dyn CaptureReader>> {
        let (root, files) = (opening.root.to_path_buf(), Arc::clone(opening.files));
        vec![Box::new(MirrorReader::new(root, files, self.pages.clone(), opening.window))]
    }

    fn newest_modified(&self, files: &[SourceFile]) -> Option<Timestamp> {
        files[self.tree.clone()].iter().filter_map(|file| file.modified).max()
    }
}

/// A page of a tree: which file names it, and which holds its body. Both are indices of files of the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MirrorPage {
    named: usize,
    body: usize,
    /// Whether wget put `.html` behind the name, so that it is no part of the URL.
    appended: bool,
}

/// The pages of a tree.
#[derive(Clone, Debug, Default)]
struct Pages {
    pages: Arc<[MirrorPage]>,
    /// How many names end in `.html` and may have been given that by `-E`.
    ambiguous: usize,
    /// Whether HTTrack made the tree and put its comments into pages.
    has_comments: bool,
}

impl Pages {
    /// `tree`: indices of the files that belong to the tree.
    fn find(root: &Path, files: &[SourceFile], tree: Range<usize>, has_comments: bool) -> Self {
        let by_path: HashMap<&[u8], usize> = tree.clone().map(|file| (name(&files[file]), file)).collect();
        let with = |stem: &[u8], end: &[u8]| by_path.get([stem, end].concat().as_slice()).copied();
        let mut pages = Vec::with_capacity(tree.len());
        for file in tree {
            let path = name(&files[file]);
            let stem = path.strip_suffix(b".orig");
            if stem.is_some_and(|stem| with(stem, b"").or(with(stem, HTML)).is_some()) {
                continue;
            }
            let mut page = MirrorPage { named: file, body: with(path, b".orig").unwrap_or(file), appended: false };
            if let Some(stem) = path.strip_suffix(HTML)
                && page.body == file
                && with(stem, b"").is_none()
                && let Some(original) = with(stem, b".orig")
            {
                (page.body, page.appended) = (original, true);
            }
            pages.push(page);
        }
        let shown = pages.iter().any(|page| page.appended);
        let mut ambiguous = 0;
        if shown || (pages.iter().any(|page| is_program(files, *page, true)) && !left_alone(root, files, &pages)) {
            for page in &mut pages {
                if is_program(files, *page, true) {
                    page.appended = true;
                } else if !page.appended && page.body == page.named && name(&files[page.named]).ends_with(HTML) {
                    ambiguous += usize::from(!name(&files[page.named]).ends_with(b"/index.html"));
                }
            }
        }
        Self { pages: pages.into(), ambiguous, has_comments }
    }
}

fn name(file: &SourceFile) -> &[u8] {
    file.path.as_os_str().as_encoded_bytes()
}

/// Is this the name of what a program made: with a query, or with a program's ending? `renamed`: with `.html` behind
/// it.
fn is_program(files: &[SourceFile], page: MirrorPage, renamed: bool) -> bool {
    let path = name(&files[page.named]);
    let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let last = match last.strip_suffix(HTML) {
        Some(stem) if renamed => stem,
        None if !renamed => last,
        _ => return false,
    };
    let (page, query) = split_query(last);
    let ending = page.rsplit(|&byte| byte == b'.').next().unwrap_or_default();
    query.is_some()
        || (ending.len() < page.len() && PROGRAMS.iter().any(|program| ending.eq_ignore_ascii_case(program.as_bytes())))
}

/// Are there pages of programs without `.html`? Then nobody put it behind the others.
fn left_alone(root: &Path, files: &[SourceFile], pages: &[MirrorPage]) -> bool {
    let programs = pages.iter().filter(|page| is_program(files, **page, false)).take(LOOKS);
    let kinds = programs.map(|page| sniff(&root.join(&files[page.named].path)));
    kinds.into_iter().any(|kind| matches!(kind, Ok(FileKind::Markup)))
}

struct MirrorReader {
    root: PathBuf,
    files: Arc<[SourceFile]>,
    pages: Pages,
    next: usize,
    window: Window,
    bytes_read: u64,
    headers: Headers,
}

impl MirrorReader {
    fn new(root: PathBuf, files: Arc<[SourceFile]>, pages: Pages, window: Window) -> Self {
        Self { root, files, pages, next: 0, window, bytes_read: 0, headers: Headers::default() }
    }

    fn read(&mut self, page: MirrorPage, url: String) -> Result<RawCapture, Reject> {
        let (named, file) = (&self.files[page.named], &self.files[page.body]);
        let path = self.root.join(&file.path);
        let mut capture = RawCapture {
            url,
            fetched_at: self.window.fetched_at(file.modified),
            status: None,
            content_type: None,
            content_encoding: None,
            transfer_encoding: None,
            last_modified: None,
            etag: None,
            wall: None,
            mirrored: true,
            archive_digest: None,
            revisit: None,
            body: Body::None,
            truncated: None,
            source_file: named.name(),
            source_offset: 0,
        };
        let fail =
            |error: std::io::Error| Reject { url: Some(capture.url.clone()), ..reject(&file.path, error.to_string()) };
        let mut start = Vec::new();
        let mut opened = File::open(&path).map_err(fail)?;
        opened.by_ref().take(16).read_to_end(&mut start).map_err(fail)?;
        let has_header = is_status_line(&start);
        if file.bytes > MAX_BODY as u64 || !(has_header || self.pages.has_comments) {
            capture.body = Body::File(path);
            return Ok(capture);
        }
        bounds::before_growing(usize::try_from(file.bytes).unwrap_or(usize::MAX));
        opened.take(MAX_BODY as u64).read_to_end(&mut start).map_err(fail)?;
        let mut bytes = start;
        if has_header
            && let Some(body) = self.headers.parse(&bytes)
            && self.headers.is_header()
        {
            add_http(&self.headers, &mut capture);
            let date = self.headers.get("Date").and_then(|date| Timestamp::parse_http(&date));
            capture.fetched_at = date.map(|date| (date, TimeSource::Header)).or(capture.fetched_at);
            bytes.drain(..body);
        }
        capture.body = Body::Bytes(if self.pages.has_comments { without_comments(bytes) } else { bytes });
        Ok(capture)
    }
}

/// `HTTP/1.1 200` and its like.
fn is_status_line(start: &[u8]) -> bool {
    let Some([_, b'.', _, b' ', code @ ..]) = start.strip_prefix(b"HTTP/") else {
        return false;
    };
    code.len() >= 3 && code[..3].iter().all(u8::is_ascii_digit)
}

impl Iterator for MirrorReader {
    type Item = Result<RawCapture, Reject>;

    fn next(&mut self) -> Option<Self::Item> {
        let page = *self.pages.pages.get(self.next)?;
        self.next += 1;
        let named = &self.files[page.named];
        self.bytes_read += named.bytes;
        if page.body != page.named {
            self.bytes_read += self.files[page.body].bytes;
        }
        let Some(url) = url_of(&named.path, page.appended) else {
            return Some(Err(reject(&named.path, "path has no host")));
        };
        Some(self.read(page, url))
    }
}

impl CaptureReader for MirrorReader {
    fn name(&self) -> &'static str {
        "."
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read
    }
}

#[cfg(test)]
mod tests;
