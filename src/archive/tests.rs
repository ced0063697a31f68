//! Folders of files, and what is read from them: for the tests of this module and of its layouts.

use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::lab::archives::samples::{Packed, arc_record, arc_start, cached, gzip, http, noise, response, zip};
use crate::model::{Body, Timestamp};

pub(super) fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, bytes).unwrap();
    }
    folder
}

/// Captures, rejects, and the names of the layouts.
pub(super) fn read(path: &Path, layout: Layout) -> (Vec<RawCapture>, Vec<Reject>, String) {
    let opened = SnapshotFolder::open(path, layout).unwrap();
    let (mut captures, mut rejects) = (Vec::new(), opened.rejects().to_vec());
    for reader in opened.readers(None, Some(Timestamp(1_000_000_000_000_000))) {
        for item in reader {
            match item {
                Ok(capture) => captures.push(capture),
                Err(reject) => rejects.push(reject),
            }
        }
    }
    (captures, rejects, opened.layout_names())
}

pub(super) fn open(folder: &TempDir) -> SnapshotFolder {
    SnapshotFolder::open(folder.path(), Layout::Auto).unwrap()
}

/// URLs and rejects of all readers, which come to the end of their bytes.
pub(super) fn read_to_end(folder: &SnapshotFolder) -> (Vec<String>, Vec<Reject>) {
    let (mut urls, mut rejects) = (Vec::new(), folder.rejects().to_vec());
    let mut bytes = 0;
    for mut reader in folder.readers(None, None) {
        for item in reader.by_ref() {
            match item {
                Ok(capture) => urls.push(capture.url),
                Err(reject) => rejects.push(reject),
            }
        }
        bytes += reader.bytes_read();
    }
    assert_eq!(bytes, folder.bytes());
    (urls, rejects)
}

pub(super) fn urls(captures: &[RawCapture]) -> Vec<&str> {
    captures.iter().map(|capture| capture.url.as_str()).collect()
}

pub(super) fn body(capture: &RawCapture) -> Vec<u8> {
    match &capture.body {
        Body::Bytes(bytes) => bytes.clone(),
        Body::File(path) => fs_err::read(path).unwrap(),
        Body::None => Vec::new(),
    }
}

/// An entry of a zip file.
pub(super) fn entry(name: &str, body: &[u8]) -> Packed {
    Packed { name: name.to_owned(), body: body.to_vec(), ..Packed::default() }
}

/// The entries of a WACZ file.
pub(super) fn wacz_entries() -> Vec<Packed> {
    let members = [gzip(&response("http://a/", b"<p>a")), gzip(&response("http://b/", b"<p>b"))].concat();
    vec![
        entry("datapackage.json", b"{}"),
        entry("archive/data.warc.gz", &members),
        Packed { deflated: true, ..entry("archive/more.warc", &response("http://c/", &noise(3, 5000))) },
        Packed { deflated: true, ..entry("pages/pages.jsonl", b"{}") },
        entry("indexes/index.cdx", b"x"),
    ]
}

/// A cache of HTTrack with some more entries.
pub(super) fn httrack_cache(extra: &[Packed]) -> Vec<u8> {
    let mut entries = vec![
        cached("http://a.org/", "200 OK", "text/html", "a.org/index.html", Some(b"<p>from the cache")),
        cached("http://a.org/p.png", "200 OK", "image/png", "a.org/p.png", None),
        cached("http://a.org/big.html", "200 OK", "text/html", "a.org/big.html", None),
        cached("http://a.org/gone", "404 Not Found", "text/html", "", None),
        cached("ftp://a.org/x", "200 OK", "text/html", "", Some(b"x")),
    ];
    entries.extend_from_slice(extra);
    zip(&entries)
}

/// An ARC file of one capture.
pub(super) fn arc_file() -> Vec<u8> {
    [arc_start(), arc_record("http://arc/", &http("200 OK", &[], b"<p>arc"))].concat()
}

#[test]
fn only_web_addresses_are_captures() {
    assert!(is_http("http://a/") && is_http("HTTPS://a/"));
    assert!(!is_http("dns:a") && !is_http("http:") && !is_http("htt\u{e9}p://a/") && !is_http(""));
}
