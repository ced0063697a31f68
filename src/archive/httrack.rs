//! What HTTrack leaves: `hts-cache/new.zip` and a tree of files beside `hts-cache`.
//!
//! The cache has an entry for each answer. Its header, in the manner of HTTP, stands in the extra field in front of the
//! entry; the body is in the entry (pages) or in the tree (the rest), where `X-Save` says. A body from the cache is as the
//! server sent it. Pages in the tree were changed: links rewritten, and comments added that hold the time of the crawl,
//! which would make every page differ from last night's; they are dropped.
//!
//! `Last-Modified` is not used: where the server sent none, HTTrack writes the time of the fetch. When a page was
//! fetched it does not say; the time of the cache file stands in for it, under the same rule as in a mirror.

use std::io::Read as _;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use fs_err::File;
use memchr::memmem;

use crate::model::{Body, RawCapture, Reject, Timestamp};

use super::headers::Headers;
use super::mirror::Window;
use super::records::MAX_RECORD;
use super::tree::Tree;
use super::zip::Entry;
use super::{CaptureReader, is_http};

pub(super) const CACHE_FOLDER: &str = "hts-cache";
pub(super) const CACHE: &str = "new.zip";

/// The cache of one crawl.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    /// Of the zip file, relative to the snapshot folder, and in full.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// The folder that holds `hts-cache`, which `X-Save` is relative to.
    pub(super) root: PathBuf,
    pub(super) modified: Option<Timestamp>,
    pub(super) entries: Arc<[Entry]>,
}

pub(super) struct HttrackReader {
    cache: Cache,
    range: Range<usize>,
    tree: Tree,
    window: Window,
    file: Option<File>,
    headers: Headers,
    bytes_read: u64,
}

impl HttrackReader {
    pub(super) fn new(cache: Cache, range: Range<usize>, real_root: PathBuf, window: Window) -> Self {
        let tree = Tree::new(cache.root.clone(), real_root);
        Self { cache, range, tree, window, file: None, headers: Headers::default(), bytes_read: 0 }
    }

    /// `None` for an entry that is no capture: a file of another protocol, or a note about a request that was not made,
    /// such as a further round of a loop of redirects.
    fn read(&mut self, at: usize) -> Option<Result<RawCapture, Reject>> {
        let entries = Arc::clone(&self.cache.entries);
        let entry = &entries[at];
        let mut url = entry.name.clone();
        let reject = |url: &str, reason: String| Reject {
            source_file: self.cache.name.clone(),
            source_offset: Some(entry.offset),
            url: Some(url.to_owned()),
            reason,
        };
        let file = match &mut self.file {
            Some(file) => file,
            none => match File::open(&self.cache.path) {
                Ok(file) => none.insert(file),
                Err(error) => return Some(Err(reject(&url, error.to_string()))),
            },
        };
        self.bytes_read += entry.packed_bytes;
        let (extra, unpacked) = match entry.read(file, MAX_RECORD) {
            Ok(read) => read,
            Err(error) => return Some(Err(reject(&url, error.to_string()))),
        };
        let Some(start) = memmem::find(&extra, b"HTTP/1.") else {
            return Some(Err(reject(&url, "the entry has no header of HTTrack".to_owned())));
        };
        self.headers.set(&extra[start..]);
        let get = |name: &str| self.headers.get(name);
        if !url.contains("://")
            && let (Some(address), Some(path)) = (get("X-Addr"), get("X-Fil"))
        {
            let scheme = if address.contains("://") { "" } else { "http://" };
            url = format!("{scheme}{address}{path}");
        }
        if !is_http(&url) {
            return None;
        }
        let status = match get("X-StatusCode").map(|code| code.parse::<i32>()) {
            None => self.headers.status(),
            Some(Ok(code @ 100..=999)) => u16::try_from(code).ok(),
            Some(_) => return Some(Err(reject(&url, "it was not retrieved".to_owned()))),
        };
        let no_answer = ["X-Size", "Content-Type", "X-Save"].into_iter().all(|name| get(name).is_none());
        if no_answer && status != Some(200) {
            return None;
        }
        let content_type = match (get("Content-Type"), get("X-Charset")) {
            (Some(kind), Some(charset)) if !kind.contains("charset") => Some(format!("{kind}; charset={charset}")),
            (kind, _) => kind,
        };
        let mut capture = RawCapture {
            url: url.clone(),
            fetched_at: self.window.fetched_at(self.cache.modified),
            status,
            content_type,
            content_encoding: None,
            transfer_encoding: None,
            last_modified: None,
            etag: get("Etag"),
            archive_digest: None,
            revisit: None,
            body: Body::None,
            truncated: None,
            source_file: self.cache.name.clone(),
            source_offset: entry.offset,
        };
        if get("X-In-Cache").as_deref() != Some("0") {
            capture.body = match unpacked {
                Ok(bytes) => Body::Bytes(bytes),
                Err(error) => return Some(Err(reject(&url, error.to_string()))),
            };
        } else if let Some(save) = get("X-Save") {
            let save = save.replace('\\', "/");
            match self.tree.locate(&save) {
                Ok((path, bytes)) => {
                    self.bytes_read += bytes;
                    capture.body = Body::File(path);
                }
                Err(reason) => return Some(Err(reject(&url, reason))),
            }
        } else if status == Some(200) {
            return Some(Err(reject(&url, "its body is neither in the cache nor in the tree".to_owned())));
        }
        let is_page = capture.content_type.as_deref().is_none_or(|kind| kind.contains("html"));
        if let (true, Body::File(path)) = (is_page, &capture.body) {
            let mut page = Vec::new();
            let read = File::open(path).and_then(|file| file.take(MAX_RECORD).read_to_end(&mut page));
            match read {
                Ok(_) => capture.body = Body::Bytes(without_comments(page)),
                Err(error) => return Some(Err(reject(&url, error.to_string()))),
            }
        }
        Some(Ok(capture))
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

/// A page without the comments that HTTrack adds, each on a line of its own.
pub(super) fn without_comments(page: Vec<u8>) -> Vec<u8> {
    const START: &[u8] = b"<!-- Mirrored from ";
    const NAME: &[u8] = b" by HTTrack Website Copier";
    let (mut kept, mut kept_to, mut from) = (Vec::new(), 0, 0);
    while let Some(found) = memmem::find(&page[from..], START) {
        let start = from + found;
        let Some(length) = memmem::find(&page[start..], b"-->") else { break };
        from = start + length + 3;
        if memmem::find(&page[start..from], NAME).is_none() {
            continue;
        }
        let before = &page[kept_to..start];
        let before = before.strip_suffix(b"\n").unwrap_or(before);
        kept.extend_from_slice(before.strip_suffix(b"\r").unwrap_or(before));
        from += usize::from(page[from..].starts_with(b"\r"));
        from += usize::from(page[from..].starts_with(b"\n"));
        kept_to = from;
    }
    if kept_to == 0 {
        return page;
    }
    kept.extend_from_slice(&page[kept_to..]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_of_the_crawl_are_dropped() {
        let comment =
            "<!-- Mirrored from a.org/ by HTTrack Website Copier/3.x [XR&CO'2014], Mon, 16 Nov 2026 08:01:59 GMT -->";
        let page =
            format!("<html>\n{comment}\n<head><!-- kept --></head>\r\n{comment}\r\n<!-- Mirrored from b --></html>");
        let expected = "<html><head><!-- kept --></head><!-- Mirrored from b --></html>";
        assert_eq!(String::from_utf8(without_comments(page.into_bytes())).unwrap(), expected);
        for page in ["", "<!-- Mirrored from ", comment.trim_end_matches("-->")] {
            assert_eq!(without_comments(page.as_bytes().to_vec()), page.as_bytes());
        }
        assert_eq!(without_comments(comment.as_bytes().to_vec()), b"");
    }

    #[test]
    fn a_page_of_comments_takes_no_time() {
        let page = b"<!-- Mirrored from x -->".repeat(200_000);
        assert_eq!(without_comments(page.clone()), page);
        let page = b"x<!-- Mirrored from x by HTTrack Website Copier -->".repeat(200_000);
        assert_eq!(without_comments(page), b"x".repeat(200_000));
    }
}
