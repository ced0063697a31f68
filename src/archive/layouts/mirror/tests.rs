use super::*;
use crate::archive::SnapshotFolder;
use crate::archive::tests::{body, folder, open, read, read_to_end, urls};
use crate::lab::archives::samples::{http, response};

#[test]
fn mirrors_are_told_by_their_hosts() {
    let snapshot = folder(&[
        ("a.org/index.html", b"<html>"),
        ("a.org/data/x.warc", &response("http://x/", b"")),
        ("a.org/robots.txt", b"User-agent: *"),
        ("127.0.0.1:8000/p?x=1", b"<p>"),
        ("wget.log", b"log"),
        ("logs/x", b"log"),
    ]);
    let snapshot = open(&snapshot);
    assert_eq!(snapshot.layout(), Layout::Mirror);
    let (urls, rejects) = read_to_end(&snapshot);
    assert!(rejects.is_empty());
    let expected =
        ["http://127.0.0.1:8000/p?x=1", "http://a.org/data/x.warc", "http://a.org/", "http://a.org/robots.txt"];
    assert_eq!(urls, expected);
    // The same names, but no page: a crawler that keeps its archives by host.
    let archives = folder(&[("a.org/data/x.warc", &response("http://x/", b"")), ("a.org/log", b"log")]);
    assert_eq!(read_to_end(&open(&archives)).0, ["http://x/"]);
    let intranet = folder(&[("wiki/index.html", b"<html>"), ("log", b"x")]);
    let forced = SnapshotFolder::open(intranet.path(), Layout::Mirror).unwrap();
    assert_eq!(read_to_end(&forced).0, ["http://wiki/"]);
}

#[test]
fn times_of_a_mirror() {
    let snapshot = folder(&[("a.org/x", b"x"), ("a.org/y", b"y")]);
    let at = |seconds: i64| Some(Timestamp(seconds * Timestamp::SECOND));
    for (name, seconds) in [("a.org/x", 150), ("a.org/y", 50)] {
        let file = std::fs::File::options().write(true).open(snapshot.path().join(name)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
    }
    let opened = open(&snapshot);
    let captures: Vec<_> = opened.readers(at(100), at(200)).remove(0).map(Result::unwrap).collect();
    assert_eq!(captures[0].fetched_at, at(150).map(|time| (time, TimeSource::Mtime)));
    assert_eq!(captures[1].fetched_at, at(200).map(|time| (time, TimeSource::Snapshot)));
    assert_eq!((captures[1].source_file.as_str(), captures[1].source_offset), ("a.org/y", 0));
    assert!(matches!(&captures[1].body, Body::File(path) if fs_err::read(path).unwrap() == b"y"));
    assert_eq!(opened.readers(at(100), None).remove(0).next().unwrap().unwrap().fetched_at, None);
}

#[test]
fn what_wget_does_to_a_tree() {
    // -k -K -E: rewritten pages, originals beside them, `.html` behind the names of pages.
    let dir = folder(&[
        ("a.org/index.html", b"<p>rewritten"),
        ("a.org/index.html.orig", b"<p>original index"),
        ("a.org/sub.html", b"<p>rewritten"),
        ("a.org/sub.orig", b"<p>original sub"),
        ("a.org/b.php?x=1&y=2.html", b"<p>b"),
        ("a.org/c.php.html", b"<p>c"),
        ("a.org/about.html", b"<p>about"),
        ("a.org/lonely.orig", b"a file that is named so"),
        ("a.org/p.png", b"\x89PNG\r\n\x1a\n"),
    ]);
    let (captures, rejects, layout) = read(dir.path(), Layout::Auto);
    assert_eq!((rejects.len(), layout.as_str()), (0, "mirror"));
    let mut found: Vec<(String, String)> =
        captures.iter().map(|c| (c.url.clone(), String::from_utf8_lossy(&body(c)).into_owned())).collect();
    found.sort();
    let expected = [
        ("http://a.org/", "<p>original index"),
        ("http://a.org/about.html", "<p>about"),
        ("http://a.org/b.php?x=1&y=2", "<p>b"),
        ("http://a.org/c.php", "<p>c"),
        ("http://a.org/lonely.orig", "a file that is named so"),
        ("http://a.org/p.png", "\u{fffd}PNG\r\n\u{1a}\n"),
        ("http://a.org/sub", "<p>original sub"),
    ];
    assert_eq!(found, expected.map(|(url, body)| (url.to_owned(), body.to_owned())));
    let opened = SnapshotFolder::open(dir.path(), Layout::Auto).unwrap();
    assert!(opened.doubts().len() == 1 && opened.doubts()[0].contains("of 1 it cannot"), "{:?}", opened.doubts());
    let mut reader = opened.readers(None, None).remove(0);
    reader.by_ref().count();
    assert_eq!(reader.bytes_read(), opened.bytes());
}

/// A query may end in `.html` by itself: pages of programs that do not show that nobody appended it.
#[test]
fn names_that_end_so_by_themselves() {
    let dir = folder(&[
        ("a.org/show.php?file=a.html", b"<p>a"),
        ("a.org/show.php?file=b", b"<p>b"),
        ("a.org/x.html", b"<p>x"),
    ]);
    let (captures, _, _) = read(dir.path(), Layout::Auto);
    assert_eq!(
        urls(&captures),
        ["http://a.org/show.php?file=a.html", "http://a.org/show.php?file=b", "http://a.org/x.html"]
    );
}

#[test]
fn headers_inside_files() {
    let fields = [
        ("Server", "x"),
        ("Date", "Fri, 01 Mar 2024 12:00:00 GMT"),
        ("Content-type", "text/html; charset=latin1"),
        ("Last-Modified", "Thu, 29 Feb 2024 10:00:00 GMT"),
        ("ETag", "\"e\""),
    ];
    let dir = folder(&[
        ("a.org/index.html", &http("200 OK", &fields, b"<p>page")),
        ("a.org/gone.html", &http("404 Not Found", &fields, b"<p>gone")),
        ("a.org/about-http.txt", b"HTTP/1.1 200 OK\nis how a response starts, and here a line without a name\n\nmore"),
        ("a.org/cut.txt", b"HTTP/1.1 200 OK\r\nServer: x\r\n"),
        ("a.org/plain.html", b"<p>plain"),
    ]);
    let (captures, rejects, _) = read(dir.path(), Layout::Auto);
    assert_eq!(rejects, []);
    let of = |url: &str| captures.iter().find(|c| c.url == url).unwrap();
    let index = of("http://a.org/");
    assert_eq!((index.status, body(index).as_slice()), (Some(200), b"<p>page".as_slice()));
    assert_eq!(index.content_type.as_deref(), Some("text/html; charset=latin1"));
    assert_eq!(index.fetched_at.unwrap().0.to_string(), "2024-03-01T12:00:00Z");
    assert_eq!(index.fetched_at.unwrap().1, TimeSource::Header);
    assert_eq!(index.last_modified.unwrap().1, TimeSource::Header);
    assert_eq!(index.etag.as_deref(), Some("\"e\""));
    assert_eq!(of("http://a.org/gone.html").status, Some(404));
    for url in ["http://a.org/about-http.txt", "http://a.org/cut.txt"] {
        let capture = of(url);
        assert!(capture.status.is_none() && body(capture).starts_with(b"HTTP/1.1"), "{url}");
        assert_eq!(capture.fetched_at.unwrap().1, TimeSource::Snapshot);
    }
}
