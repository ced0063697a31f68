//! A `wget --mirror` tree: `host[:port]/path`, or `scheme/host[:port]/path` with `--protocol-directories`.
//!
//! A mirror keeps neither headers nor fetch times, so URLs are rebuilt from paths and times come from the files:
//! a modification time is taken for the fetch time if it lies after the previous snapshot and not after this one; else
//! (a copied tree, a page last modified long ago, a first snapshot) the snapshot's own time is all that is known.
//!
//! What wget's options do to a tree is undone where it can be:
//! - `-K` keeps the page as it came beside the one whose links `-k` rewrote: `x.html.orig`, or `x.orig` for an `x.html`
//!   that `-E` named so. The body is taken from there. Without `-K` the rewritten page is all there is.
//! - `-E` puts `.html` behind names of pages: `p.php?id=1.html`. It is dropped again where only `-E` explains it: behind
//!   a query, behind the name of a program (`.php`), where `-K` shows it. `about.html` stays: it was `/about` or
//!   `/about.html`, and nothing tells. A warning says how many such names there are.
//! - `--save-headers` puts the response's header into the file. Status, type, dates and ETag come from it then, and the
//!   fetch time from its `Date`.
//!
//! Trees that HTTrack left without its cache are read the same way, without the comments that it adds to pages.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err::File;

use crate::model::{Body, RawCapture, Reject, TimeSource, Timestamp};

use super::CaptureReader;
use super::headers::Headers;
use super::http::add_http;
use super::httrack::without_comments;
use super::mirror_names::{HTML, split_query, url_of};
use super::records::MAX_RECORD;
use super::sniff::{Kind, sniff};
use super::walk::{SourceFile, reject};

/// Programs whose pages `-E` renames.
const PROGRAMS: [&str; 17] = [
    "php", "php3", "php4", "php5", "phtml", "asp", "aspx", "jsp", "jspx", "cgi", "pl", "py", "cfm", "do", "shtml",
    "action", "ashx",
];
/// So many pages are looked at to see whether `-E` left them their names.
const LOOKS: usize = 64;

/// When the captures of a mirror can have been made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    pub(super) previous: Option<Timestamp>,
    pub(super) time: Option<Timestamp>,
}

impl Window {
    pub(super) fn fetched_at(self, modified: Option<Timestamp>) -> Option<(Timestamp, TimeSource)> {
        let time = self.time?;
        match (self.previous, modified) {
            (Some(previous), Some(modified)) if previous < modified && modified <= time => {
                Some((modified, TimeSource::Mtime))
            }
            _ => Some((time, TimeSource::Snapshot)),
        }
    }
}

/// A page of a tree: which file names it, and which holds its body. Indices into the files of the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    named: usize,
    body: usize,
    /// `.html` is no part of its URL.
    appended: bool,
}

/// The pages of a tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    pub(super) pages: Arc<[Page]>,
    /// Names that end in `.html`, maybe by the hand of `-E`.
    pub(super) ambiguous: usize,
    /// HTTrack made it.
    pub(super) has_comments: bool,
}

impl Pages {
    /// `tree`: indices of the files that belong to the tree.
    pub(super) fn find(root: &Path, files: &[SourceFile], tree: &[usize], has_comments: bool) -> Self {
        let by_path: HashMap<&[u8], usize> = tree.iter().map(|&file| (name(&files[file]), file)).collect();
        let with = |stem: &[u8], end: &[u8]| by_path.get([stem, end].concat().as_slice()).copied();
        let mut pages = Vec::with_capacity(tree.len());
        for &file in tree {
            let path = name(&files[file]);
            let stem = path.strip_suffix(b".orig");
            if stem.is_some_and(|stem| with(stem, b"").or(with(stem, HTML)).is_some()) {
                continue;
            }
            let mut page = Page { named: file, body: with(path, b".orig").unwrap_or(file), appended: false };
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

/// Is this the name of what a program made: with a query, or with a program's ending? `renamed`: with `.html` behind it.
fn is_program(files: &[SourceFile], page: Page, renamed: bool) -> bool {
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
fn left_alone(root: &Path, files: &[SourceFile], pages: &[Page]) -> bool {
    let programs = pages.iter().filter(|page| is_program(files, **page, false)).take(LOOKS);
    let kinds = programs.map(|page| sniff(&root.join(&files[page.named].path)));
    kinds.into_iter().any(|kind| matches!(kind, Ok(Kind::Markup)))
}

pub(super) struct MirrorReader {
    root: PathBuf,
    files: Arc<[SourceFile]>,
    pages: Pages,
    next: usize,
    window: Window,
    bytes_read: u64,
    headers: Headers,
}

impl MirrorReader {
    pub(super) fn new(root: PathBuf, files: Arc<[SourceFile]>, pages: Pages, window: Window) -> Self {
        Self { root, files, pages, next: 0, window, bytes_read: 0, headers: Headers::default() }
    }

    fn read(&mut self, page: Page, url: String) -> Result<RawCapture, Reject> {
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
        if file.bytes > MAX_RECORD || !(has_header || self.pages.has_comments) {
            capture.body = Body::File(path);
            return Ok(capture);
        }
        opened.take(MAX_RECORD).read_to_end(&mut start).map_err(fail)?;
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
mod tests {
    use super::*;

    #[test]
    fn mtimes_count_between_two_snapshots() {
        let t = |n: i64| Some(Timestamp(n));
        let window = Window { previous: t(10), time: t(20) };
        assert_eq!(window.fetched_at(t(15)), Some((Timestamp(15), TimeSource::Mtime)));
        assert_eq!(window.fetched_at(t(20)), Some((Timestamp(20), TimeSource::Mtime)));
        for outside in [t(10), t(5), t(21), None] {
            assert_eq!(window.fetched_at(outside), Some((Timestamp(20), TimeSource::Snapshot)));
        }
        let first = Window { previous: None, time: t(20) };
        assert_eq!(first.fetched_at(t(15)), Some((Timestamp(20), TimeSource::Snapshot)));
        assert_eq!(Window::default().fetched_at(t(15)), None);
    }
}
