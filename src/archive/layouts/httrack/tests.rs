use super::*;
use crate::archive::SnapshotFolder;
use crate::archive::tests::{body, folder, httrack_cache, read, urls};
use crate::lab::archives::samples::{cached, noise, response};
use crate::model::TimeSource;

const COMMENT: &str =
    "\n<!-- Mirrored from a.org by HTTrack Website Copier/3.x [XR&CO'2014], Mon, 16 Nov 2026 08:01:59 GMT -->\n";

#[test]
fn httrack_folders() {
    let tree = format!("<html>{COMMENT}<p>in the tree{COMMENT}</html>");
    let dir = folder(&[
        ("hts-cache/new.zip", &httrack_cache(&[])),
        ("hts-cache/old.zip", b"PK\x03\x04"),
        ("hts-cache/new.txt", b"x"),
        ("a.org/index.html", b"<p>rewritten"),
        ("a.org/p.png", b"\x89PNG"),
        ("a.org/big.html", tree.as_bytes()),
        ("a.org/orphan.html", b"<p>not in the cache"),
        ("a.org/data/x.warc", &response("http://x/", b"a page of the site")),
        ("index.html", b"<p>HTTrack's own"),
        ("hts-log.txt", b"HTTrack"),
    ]);
    let (captures, rejects, layout) = read(dir.path(), Layout::Auto);
    assert_eq!(layout, "httrack");
    assert_eq!(rejects, []);
    assert_eq!(urls(&captures), ["http://a.org/", "http://a.org/p.png", "http://a.org/big.html", "http://a.org/gone"]);
    let [page, picture, big, gone] = captures.as_slice() else { panic!("{captures:?}") };
    assert_eq!((body(page).as_slice(), page.status), (b"<p>from the cache".as_slice(), Some(200)));
    assert_eq!(page.content_type.as_deref(), Some("text/html; charset=utf-8"));
    assert_eq!((page.last_modified, page.etag.as_deref()), (None, Some("\"e\"")));
    assert_eq!(page.fetched_at.unwrap().1, TimeSource::Snapshot);
    assert_eq!(page.source_file, "hts-cache/new.zip");
    assert!(matches!(picture.body, Body::File(_)));
    assert_eq!(body(big), b"<html><p>in the tree</html>");
    assert!(gone.status == Some(404) && matches!(gone.body, Body::None));
    // When the cache was written between two snapshots, that is when pages were fetched.
    let opened = SnapshotFolder::open(dir.path(), Layout::Auto).unwrap();
    let modified = opened.newest_modified().unwrap();
    let around = (Some(Timestamp(modified.0 - 1)), Some(Timestamp(modified.0 + 1)));
    let first = opened.readers(around.0, around.1).remove(0).next().unwrap().unwrap();
    assert_eq!(first.fetched_at, Some((modified, TimeSource::Mtime)));
    // The same in a subfolder, and by name.
    let dir = folder(&[
        ("run/hts-cache/new.zip", &httrack_cache(&[])),
        ("run/a.org/p.png", b"P"),
        ("run/a.org/big.html", b"b"),
    ]);
    let (captures, rejects, layout) = read(dir.path(), Layout::Httrack);
    assert_eq!((captures.len(), rejects.len(), layout.as_str()), (4, 0, "httrack"));
    assert_eq!(captures[0].source_file, "run/hts-cache/new.zip");
}

#[test]
fn httrack_entries_that_cannot_be_used() {
    let mut no_header = cached("http://a.org/h", "200 OK", "text/html", "", Some(b"x"));
    no_header.extra = b"UT\x05\0\x03\0\0\0\0".to_vec();
    let bad = [
        cached("http://a.org/1", "200 OK", "image/png", "../../etc/passwd", None),
        cached("http://a.org/2", "200 OK", "image/png", "/etc/passwd", None),
        cached("http://a.org/3", "200 OK", "image/png", "a.org/missing", None),
        cached("http://a.org/4", "200 OK", "image/png", "", None),
        cached("http://a.org/5", "-5 Connect error", "text/html", "", Some(b"")),
        no_header,
    ];
    let dir = folder(&[("hts-cache/new.zip", &httrack_cache(&bad)), ("a.org/p.png", b"P"), ("a.org/big.html", b"b")]);
    let (captures, rejects, _) = read(dir.path(), Layout::Auto);
    assert_eq!((captures.len(), rejects.len()), (4, bad.len()), "{rejects:?}");
    for (reject, reason) in
        rejects.iter().zip(["leaves", "leaves", "missing", "neither", "not retrieved", "no header of HTTrack"])
    {
        assert!(reject.reason.contains(reason), "{reject:?}");
        assert!(reject.source_file == "hts-cache/new.zip" && reject.source_offset.is_some() && reject.url.is_some());
    }
}

/// Several answers of one URL are several captures; what HTTrack notes without having asked again is none.
#[test]
fn httrack_notes_a_loop() {
    let again = cached("http://a.org/gone", "410 Gone", "text/html", "", None);
    let mut note = cached("http://a.org/gone", "302 ", "", "", None);
    note.extra = b"HTTP/1.1 302 \r\nX-In-Cache: 0\r\nX-StatusCode: 302\r\nX-StatusMessage: \r\n".to_vec();
    let file = httrack_cache(&[again, note.clone(), note]);
    let dir = folder(&[("hts-cache/new.zip", &file), ("a.org/p.png", b"P"), ("a.org/big.html", b"b")]);
    let (captures, rejects, _) = read(dir.path(), Layout::Auto);
    assert_eq!(rejects, []);
    let gone = captures.iter().filter(|capture| capture.url == "http://a.org/gone").map(|capture| capture.status);
    assert_eq!(gone.collect::<Vec<_>>(), [Some(404), Some(410)]);
}

#[test]
fn httrack_that_was_interrupted() {
    let file = httrack_cache(&[cached("http://a.org/last", "200 OK", "text/html", "", Some(&noise(1, 4000)))]);
    let mut most = 0;
    for cut in (500..file.len()).step_by(97) {
        let dir = folder(&[("hts-cache/new.zip", &file[..cut]), ("a.org/p.png", b"P"), ("a.org/big.html", b"b")]);
        let (captures, rejects, _) = read(dir.path(), Layout::Auto);
        assert!(captures.len() >= most && !rejects.is_empty(), "{cut} {rejects:?}");
        most = captures.len();
    }
    assert_eq!(most, 5);
}
