//! Every layout as its writer leaves it, alone and beside others.

use std::path::Path;

use tempfile::TempDir;

use crate::archive::samples::{
    Packed, arc_record, arc_start, cached, conversion, gzip, http, noise, record, response, zip, zstd_file,
};
use crate::archive::{Layout, SnapshotFolder, list_snapshots};
use crate::model::{Body, RawCapture, Reject, TimeSource, Timestamp};

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, bytes).unwrap();
    }
    folder
}

fn read(path: &Path, layout: Layout) -> (Vec<RawCapture>, Vec<Reject>, String) {
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

fn urls(captures: &[RawCapture]) -> Vec<&str> {
    captures.iter().map(|capture| capture.url.as_str()).collect()
}

fn body(capture: &RawCapture) -> Vec<u8> {
    match &capture.body {
        Body::Bytes(bytes) => bytes.clone(),
        Body::File(path) => fs_err::read(path).unwrap(),
        Body::None => Vec::new(),
    }
}

fn entry(name: &str, body: &[u8]) -> Packed {
    Packed { name: name.to_owned(), body: body.to_vec(), ..Packed::default() }
}

fn wacz() -> Vec<Packed> {
    let members = [gzip(&response("http://a/", b"<p>a")), gzip(&response("http://b/", b"<p>b"))].concat();
    vec![
        entry("datapackage.json", b"{}"),
        entry("archive/data.warc.gz", &members),
        Packed { deflated: true, ..entry("archive/more.warc", &response("http://c/", &noise(3, 5000))) },
        Packed { deflated: true, ..entry("pages/pages.jsonl", b"{}") },
        entry("indexes/index.cdx", b"x"),
    ]
}

#[test]
fn wacz_files() {
    for streamed in [false, true] {
        let entries: Vec<_> = wacz().into_iter().map(|entry| Packed { streamed, ..entry }).collect();
        let file = zip(&entries);
        for name in ["crawl.wacz", "crawl.zip"] {
            let dir = folder(&[(name, &file)]);
            let (captures, rejects, layout) = read(dir.path(), Layout::Auto);
            assert_eq!(
                (urls(&captures), rejects, layout.as_str()),
                (vec!["http://a/", "http://b/", "http://c/"], vec![], "wacz")
            );
            assert_eq!(captures[1].source_file, format!("{name}/archive/data.warc.gz"));
            assert_eq!(captures[1].source_offset, gzip(&response("http://a/", b"<p>a")).len() as u64);
            assert_eq!((body(&captures[2]), captures[2].source_offset), (noise(3, 5000), 0));
            assert_eq!(captures[0].fetched_at.unwrap().1, TimeSource::Header);
            let opened = SnapshotFolder::open(dir.path(), Layout::Wacz).unwrap();
            let read: u64 = opened
                .readers(None, None)
                .into_iter()
                .map(|mut r| {
                    r.by_ref().count();
                    r.bytes_read()
                })
                .sum();
            assert_eq!(read, opened.bytes());
        }
    }
}

/// Cut anywhere: no directory, so the entries are looked for.
#[test]
fn cut_wacz_files() {
    for streamed in [false, true] {
        let entries: Vec<_> = wacz().into_iter().map(|entry| Packed { streamed, ..entry }).collect();
        let file = zip(&entries);
        let mut most = 0;
        for cut in (10..file.len()).step_by(61) {
            let dir = folder(&[("crawl.wacz", &file[..cut])]);
            match SnapshotFolder::open(dir.path(), Layout::Auto) {
                Err(error) => assert!(error.to_string().contains("crawl.wacz"), "{error}"),
                Ok(_) => {
                    let (captures, rejects, _) = read(dir.path(), Layout::Auto);
                    assert!(!rejects.is_empty(), "{cut}");
                    assert!(rejects.iter().all(|reject| reject.source_file.starts_with("crawl.wacz")), "{rejects:?}");
                    let whole: Vec<_> = captures.into_iter().filter(|c| c.truncated.is_none()).collect();
                    assert!(whole.len() >= most, "{cut} {streamed}");
                    most = whole.len();
                }
            }
        }
        assert_eq!(most, 3, "all of it before the directory");
    }
}

#[test]
fn zip_files_that_no_writer_writes() {
    let warc = |url: &str| response(url, b"x");
    let entries = [
        entry("archive/../../evil.warc", &warc("http://evil/")),
        entry("archive/twice.warc", &warc("http://first/")),
        entry("archive/twice.warc", &warc("http://last/")),
        entry("archive/text.warc", b"no record"),
        entry("archive/good.warc", &warc("http://good/")),
    ];
    let dir = folder(&[("x.wacz", &zip(&entries))]);
    let (captures, rejects, _) = read(dir.path(), Layout::Auto);
    assert_eq!(urls(&captures), ["http://last/", "http://good/"]);
    let reasons: Vec<&str> = rejects.iter().map(|reject| reject.reason.as_str()).collect();
    assert_eq!(rejects.len(), 3, "{reasons:?}");
    for part in ["leaves the archive", "another one of this name", "is no archive"] {
        assert!(reasons.iter().any(|reason| reason.contains(part)), "{part} {reasons:?}");
    }
    assert!(rejects.iter().all(|reject| reject.source_file == "x.wacz" && reject.source_offset.is_some()));
    // Two entries of the directory that point to the same bytes.
    let mut file = zip(&[entry("archive/a.warc", &warc("http://a/")), entry("archive/b.warc", &warc("http://b/"))]);
    let directory = file.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    file[directory + 42..directory + 46].copy_from_slice(&[0; 4]);
    let dir = folder(&[("x.wacz", &file)]);
    let (captures, rejects, _) = read(dir.path(), Layout::Auto);
    assert_eq!(captures.len(), 1);
    assert!(rejects[0].reason.contains("shares bytes"), "{rejects:?}");
    // Other compressions, encryption, sizes that lie.
    for (at, bytes, reason) in [(10, [12, 0], "method 12"), (8, [1, 0], "encrypted")] {
        let mut file = zip(&[entry("archive/a.warc", &warc("http://a/")), entry("archive/b.warc", &warc("http://b/"))]);
        let directory = file.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
        file[directory + at..directory + at + 2].copy_from_slice(&bytes);
        let dir = folder(&[("x.wacz", &file)]);
        let (captures, rejects, _) = read(dir.path(), Layout::Auto);
        assert_eq!(urls(&captures), ["http://a/"]);
        assert!(rejects.len() == 1 && rejects[0].reason.contains(reason), "{rejects:?}");
    }
}

/// Bytes lost or added in the middle: the directory points beside the entries, which are looked for then.
#[test]
fn zip_files_whose_directory_does_not_fit() {
    let file = zip(&wacz());
    let middle = file.windows(16).position(|window| window == b"archive/more.war").unwrap() - 35;
    for shifted in
        [[&file[..middle], b"some bytes", &file[middle..]].concat(), [&file[..middle - 3], &file[middle..]].concat()]
    {
        let dir = folder(&[("x.wacz", &shifted)]);
        let (captures, rejects, _) = read(dir.path(), Layout::Auto);
        assert!(captures.len() >= 2 && urls(&captures).contains(&"http://c/"), "{rejects:?}");
        assert!(rejects.iter().any(|reject| reject.reason.contains("looked for")), "{rejects:?}");
    }
}

/// Headers that state nothing, without end: a search from each to the end of the file would take for ever.
#[test]
fn zip_files_of_headers_alone() {
    let header = &zip(&[Packed { streamed: true, ..entry("archive/a.warc", b"") }])[..44];
    for method in [0, 8] {
        let mut header = header.to_vec();
        header[8] = method;
        let dir = folder(&[("x.wacz", &header.repeat(100_000))]);
        let error = SnapshotFolder::open(dir.path(), Layout::Auto).unwrap_err().to_string();
        assert!(error.contains("x.wacz"), "{error}");
    }
}

fn httrack(extra: &[Packed]) -> Vec<u8> {
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

const COMMENT: &str =
    "\n<!-- Mirrored from a.org by HTTrack Website Copier/3.x [XR&CO'2014], Mon, 16 Nov 2026 08:01:59 GMT -->\n";

#[test]
fn httrack_folders() {
    let tree = format!("<html>{COMMENT}<p>in the tree{COMMENT}</html>");
    let dir = folder(&[
        ("hts-cache/new.zip", &httrack(&[])),
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
    let dir =
        folder(&[("run/hts-cache/new.zip", &httrack(&[])), ("run/a.org/p.png", b"P"), ("run/a.org/big.html", b"b")]);
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
    let dir = folder(&[("hts-cache/new.zip", &httrack(&bad)), ("a.org/p.png", b"P"), ("a.org/big.html", b"b")]);
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
    let file = httrack(&[again, note.clone(), note]);
    let dir = folder(&[("hts-cache/new.zip", &file), ("a.org/p.png", b"P"), ("a.org/big.html", b"b")]);
    let (captures, rejects, _) = read(dir.path(), Layout::Auto);
    assert_eq!(rejects, []);
    let gone = captures.iter().filter(|capture| capture.url == "http://a.org/gone").map(|capture| capture.status);
    assert_eq!(gone.collect::<Vec<_>>(), [Some(404), Some(410)]);
}

#[test]
fn httrack_that_was_interrupted() {
    let file = httrack(&[cached("http://a.org/last", "200 OK", "text/html", "", Some(&noise(1, 4000)))]);
    let mut most = 0;
    for cut in (500..file.len()).step_by(97) {
        let dir = folder(&[("hts-cache/new.zip", &file[..cut]), ("a.org/p.png", b"P"), ("a.org/big.html", b"b")]);
        let (captures, rejects, _) = read(dir.path(), Layout::Auto);
        assert!(captures.len() >= most && !rejects.is_empty(), "{cut} {rejects:?}");
        most = captures.len();
    }
    assert_eq!(most, 5);
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

fn arc() -> Vec<u8> {
    [arc_start(), arc_record("http://arc/", &http("200 OK", &[], b"<p>arc"))].concat()
}

#[test]
fn arc_wet_and_zstd_are_told_by_their_bytes() {
    let wet = [record("warcinfo", &[], b"x: y\r\n"), conversion("http://wet/", "text")];
    for (name, file, layout, url) in [
        ("x.arc", arc(), "arc", "http://arc/"),
        ("x.arc.gz", gzip(&arc()), "arc", "http://arc/"),
        ("no.name", gzip(&arc()), "arc", "http://arc/"),
        ("x.warc.wet.gz", wet.iter().flat_map(|r| gzip(r)).collect(), "wet", "http://wet/"),
        ("x.warc", wet.concat(), "wet", "http://wet/"),
        ("x.warc.zst", zstd_file(&[response("http://z/", b"z")], b"some words", true), "warc", "http://z/"),
    ] {
        let dir = folder(&[(name, &file)]);
        let (captures, rejects, found) = read(dir.path(), Layout::Auto);
        assert_eq!((urls(&captures), rejects.len(), found.as_str()), (vec![url], 0, layout), "{name}");
        let forced: Layout = layout.parse().unwrap();
        assert_eq!(read(dir.path(), forced).0.len(), 1, "{name}");
        let error = SnapshotFolder::open(dir.path(), Layout::Manifest).unwrap_err().to_string();
        assert!(error.contains("expected a manifest.jsonl"), "{error}");
    }
    let dir = folder(&[
        ("x.arc", b"<html>"),
        ("y.wacz", b"text"),
        ("z.wet.gz", b""),
        ("a.warc", &response("http://a/", b"")),
    ]);
    let (captures, rejects, _) = read(dir.path(), Layout::Auto);
    let files: Vec<_> = rejects.iter().map(|reject| reject.source_file.as_str()).collect();
    assert_eq!((captures.len(), files), (1, vec!["x.arc", "y.wacz", "z.wet.gz"]), "{rejects:?}");
}

/// Files, the layouts found, the URLs read.
type Mix<'a> = (&'a [(&'a str, &'a [u8])], &'a str, &'a [&'a str]);

#[test]
fn folders_that_mix() {
    let warc = response("http://warc/", b"<p>w");
    let wet = conversion("http://warc/", "w");
    let manifest =
        b"{\"url\":\"http://m/\",\"file\":\"m.html\"}\n{\"url\":\"http://m/x.warc\",\"file\":\"./sub/named.warc\"}\n";
    let wacz = zip(&[entry("archive/a.warc", &response("http://wacz/", b"z"))]);
    let cases: &[Mix<'_>] = &[
        // Everything that stands for itself is read; what the manifest names is a body.
        (
            &[
                ("manifest.jsonl", manifest),
                ("m.html", b"<p>m"),
                ("sub/named.warc", &warc),
                ("a.warc", &warc),
                ("b.arc", &arc()),
                ("c.wacz", &wacz),
            ],
            "manifest+warc+arc+wacz",
            &["http://m/", "http://m/x.warc", "http://warc/", "http://arc/", "http://wacz/"],
        ),
        // What says less of the same captures is not.
        (&[("a.warc", &warc), ("a.warc.wet", &wet), ("warc/index.html", b"<p>w")], "warc", &["http://warc/"]),
        (&[("a.warc", &warc), ("a.org/index.html", b"<p>w")], "warc", &["http://warc/"]),
        (&[("a.warc.wet", &wet), ("a.org/index.html", b"<p>w")], "wet", &["http://warc/"]),
        // HTTrack's tree belongs to its cache; WARC that it wrote itself replaces both.
        (
            &[
                ("a.warc", &warc),
                ("run/hts-cache/new.zip", &httrack(&[])),
                ("run/a.org/p.png", b"P"),
                ("run/a.org/big.html", b"b"),
            ],
            "warc+httrack",
            &["http://warc/", "http://a.org/", "http://a.org/p.png", "http://a.org/big.html", "http://a.org/gone"],
        ),
        (
            &[("run/a.warc", &warc), ("run/hts-cache/new.zip", &httrack(&[])), ("run/a.org/p.png", b"P")],
            "warc",
            &["http://warc/"],
        ),
        // Archives below hosts, beside another.
        (&[("a.org/1.warc", &warc), ("index.warc", &warc)], "warc", &["http://warc/", "http://warc/"]),
    ];
    for (files, layout, expected) in cases {
        let dir = folder(files);
        let (captures, rejects, found) = read(dir.path(), Layout::Auto);
        assert_eq!((found.as_str(), urls(&captures), rejects.len()), (*layout, expected.to_vec(), 0), "{rejects:?}");
        let remarks = SnapshotFolder::open(dir.path(), Layout::Auto).unwrap().remarks().len();
        assert_eq!(remarks > 0, files.len() > expected.len() && captures.len() == 1, "{layout}");
        let opened = SnapshotFolder::open(dir.path(), Layout::Auto).unwrap();
        assert_eq!(
            opened.fingerprint().unwrap(),
            SnapshotFolder::open(dir.path(), Layout::Auto).unwrap().fingerprint().unwrap()
        );
    }
}

#[test]
fn snapshots_of_one_file() {
    let warc = response("http://a/", b"a");
    let root = folder(&[
        ("2024-03-01.warc.gz", &gzip(&warc)),
        ("2024-03-02.wacz", &zip(&wacz())),
        ("2024-03-03.warc.wet.gz", &gzip(&conversion("http://a/", "a"))),
        ("2024-03-04.ARC", &arc()),
        ("2024-03-05.warc.zst", &zstd_file(std::slice::from_ref(&warc), b"", false)),
        ("2024-03-06/x.warc", &warc),
        ("2024-03-07.warc.gz.open", &gzip(&warc)),
        (".hidden.warc", &warc),
        ("notes.txt", b""),
        ("warc", b""),
    ]);
    let listed = list_snapshots(root.path()).unwrap();
    let ids: Vec<_> = listed.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["2024-03-01", "2024-03-02", "2024-03-03", "2024-03-04", "2024-03-05", "2024-03-06"]);
    for ((id, path), (layout, count)) in
        listed.iter().zip([("warc", 1), ("wacz", 3), ("wet", 1), ("arc", 1), ("warc", 1), ("warc", 1)])
    {
        let (captures, rejects, found) = read(path, Layout::Auto);
        assert_eq!((found.as_str(), captures.len(), rejects.len()), (layout, count, 0), "{id}");
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(captures[0].source_file.starts_with(name) || layout == "warc", "{}", captures[0].source_file);
        SnapshotFolder::open(path, Layout::Auto).unwrap().fingerprint().unwrap();
    }
    fs_err::write(root.path().join("2024-03-06.warc"), &warc).unwrap();
    let message = list_snapshots(root.path()).unwrap_err().to_string();
    assert!(message.contains("both snapshot 2024-03-06") && message.contains("rename"), "{message}");
    let error = SnapshotFolder::open(&root.path().join("notes.txt"), Layout::Auto).unwrap_err().to_string();
    assert!(error.contains("notes.txt") && error.contains("one file"), "{error}");
}

/// Random bytes behind a good magic number: rejects, nothing worse.
#[test]
fn rubbish_behind_good_starts() {
    for start in [
        &b"PK\x03\x04"[..],
        b"PK\x05\x06",
        b"\x1f\x8b\x08\0\0\0\0\0\0\0",
        b"\x28\xb5\x2f\xfd",
        b"\x5d\x2a\x4d\x18\x10\0\0\0",
        b"WARC/1.0\r\n",
        b"filedesc://x 0.0.0.0 20010301120000 text/plain 5\n",
    ] {
        for seed in 0..20 {
            let rubbish: Vec<u8> =
                noise(seed + 1, 3000).iter().zip((0..251u8).cycle()).map(|(byte, i)| byte.wrapping_mul(i)).collect();
            let file = [start, &rubbish].concat();
            for name in ["x.wacz", "hts-cache/new.zip", "x.warc.gz", "x.arc"] {
                let dir = folder(&[(name, &file)]);
                match SnapshotFolder::open(dir.path(), Layout::Auto) {
                    Err(error) => assert!(error.to_string().contains("no capture in"), "{error}"),
                    Ok(_) => {
                        let (captures, rejects, _) = read(dir.path(), Layout::Auto);
                        assert!(captures.is_empty() && !rejects.is_empty(), "{name} {captures:?}");
                    }
                }
            }
        }
    }
}
