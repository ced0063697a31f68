use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::archive::tests::{folder, open, read_to_end};
use crate::lab::archives::samples::{gzip, response};

fn names(folder: &SnapshotFolder) -> Vec<String> {
    folder.files().iter().map(SourceFile::name).collect()
}

#[test]
fn extensions_may_lie() {
    let (a, b) = (response("http://a/", b"a"), response("http://b/", b"b"));
    let snapshot = folder(&[
        ("a.warc", &gzip(&a)),
        ("b.warc.gz", &b),
        ("deep/er/c", &gzip(&a)),
        ("crawl.cdx", b" CDX N b a m s"),
        ("crawl.log", b"done"),
    ]);
    let snapshot = open(&snapshot);
    assert_eq!(
        (snapshot.layout(), names(&snapshot)),
        (Layout::Warc, ["a.warc", "b.warc.gz", "deep/er/c"].map(str::to_owned).to_vec())
    );
    let (urls, rejects) = read_to_end(&snapshot);
    assert_eq!((urls, rejects.len()), (["http://a/", "http://b/", "http://a/"].map(str::to_owned).to_vec(), 0));
}

#[test]
fn what_is_named_warc_and_is_not() {
    let good = response("http://a/", b"a");
    let snapshot = folder(&[
        ("a.warc", &good),
        ("empty.warc.gz", b""),
        ("page.warc", b"<html>"),
        ("text.WARC.GZ", &gzip(b"text")),
        ("cut.warc.gz", &gzip(&good)[..12]),
        ("z.warc.zst", b"\x28\xb5\x2f\xfd...."),
        ("b.warc.gz.open", &gzip(&good)),
        ("notes.open", b"x"),
    ]);
    let snapshot = open(&snapshot);
    assert_eq!(names(&snapshot), ["a.warc"]);
    let (_, rejects) = read_to_end(&snapshot);
    let reasons: Vec<_> = rejects.iter().map(|r| format!("{}: {}", r.source_file, r.reason)).collect();
    assert_eq!(reasons.len(), 6, "{reasons:#?}");
    for (reason, part) in reasons.iter().zip(["being written", "decoded", "empty", "a page", "something else", "zstd"])
    {
        assert!(reason.contains(part), "{reasons:#?}");
    }
}

#[test]
fn a_manifest_comes_first() {
    let manifest = b"{\"url\":\"http://a/\",\"file\":\"a\"}\n{}\n";
    let files: [(&str, &[u8]); 3] =
        [("manifest.jsonl", manifest), ("a", b"text"), ("b.warc", &response("http://b/", b""))];
    let snapshot = folder(&files[..2]);
    assert_eq!(open(&snapshot).layout(), Layout::Manifest);
    let (urls, rejects) = read_to_end(&open(&snapshot));
    assert_eq!((urls, rejects.len()), (vec!["http://a/".to_owned()], 1));
    let snapshot = folder(&files);
    assert_eq!(open(&snapshot).layout(), Layout::Manifest);
    let forced = SnapshotFolder::open(snapshot.path(), Layout::Warc).unwrap();
    assert_eq!(read_to_end(&forced).0, ["http://b/"]);
}

#[test]
fn folders_without_captures() {
    let error = |folder: &TempDir, layout| SnapshotFolder::open(folder.path(), layout).unwrap_err().to_string();
    let empty = folder(&[]);
    for &layout in Layout::ALL {
        let message = error(&empty, layout);
        assert!(message.contains("no capture in") && message.contains(empty.path().to_str().unwrap()), "{message}");
        assert!(message.contains("expected"), "{message}");
    }
    assert!(error(&folder(&[("x.txt", b"x")]), Layout::Auto).contains("expected WARC"));
    assert!(error(&folder(&[("x.warc", b"x")]), Layout::Auto).contains("x.warc: not a WARC file"));
    let file = folder(&[("x", b"x")]);
    assert!(SnapshotFolder::open(&file.path().join("x"), Layout::Auto).is_err());
    let message = SnapshotFolder::open(Path::new("/no/such"), Layout::Auto).unwrap_err().to_string();
    assert!(message.contains("/no/such"), "{message}");
}

#[cfg(unix)]
#[test]
fn links_are_followed_inside_only() {
    use std::os::unix::fs::symlink;
    let outside = folder(&[("o.warc", &response("http://o/", b""))]);
    let snapshot = folder(&[("a.warc", &response("http://a/", b"")), ("sub/b.warc", &response("http://b/", b""))]);
    let link = |to: &Path, name: &str| symlink(to, snapshot.path().join(name)).unwrap();
    link(Path::new("a.warc"), "again.warc");
    link(Path::new("sub"), "sub2");
    link(Path::new(".."), "sub/loop");
    link(&outside.path().join("o.warc"), "o.warc");
    link(outside.path(), "out");
    link(Path::new("nowhere"), "dangling.warc");
    let (urls, rejects) = read_to_end(&open(&snapshot));
    assert_eq!(urls, ["http://a/", "http://b/"]);
    let of = |name: &str| {
        let found: Vec<_> = rejects.iter().filter(|r| r.source_file == name).map(|r| r.reason.as_str()).collect();
        assert_eq!(found.len(), 1, "{name} {rejects:?}");
        found[0]
    };
    assert_eq!(of("o.warc"), "link leaves the snapshot");
    assert_eq!(of("out"), "link leaves the snapshot");
    assert_eq!(of("sub/loop"), "link makes a loop");
    assert!(of("dangling.warc").contains("No such file"));
    // The snapshot itself may be a link.
    let links = tempfile::tempdir().unwrap();
    symlink(snapshot.path(), links.path().join("night")).unwrap();
    let through = SnapshotFolder::open(&links.path().join("night"), Layout::Auto).unwrap();
    assert_eq!(read_to_end(&through).0, urls);
}

#[test]
fn fingerprints_follow_content() {
    let base: [(&str, &[u8]); 2] = [("a.warc", &response("http://a/", b"a")), ("log", b"x")];
    let of = |files: &[(&str, &[u8])]| open(&folder(files)).fingerprint().unwrap();
    assert_eq!(of(&base), of(&base));
    assert_eq!(of(&base), of(&base[..1]), "what is ignored does not count");
    assert_ne!(of(&base), of(&[("b.warc", base[0].1)]));
    assert_ne!(of(&base), of(&[("a.warc", &response("http://a/", b"b"))]));
    assert_ne!(of(&base), of(&[base[0], ("b.warc", base[0].1)]));
    let line = b"{\"url\":\"http://a/\",\"file\":\"a\"}\n".as_slice();
    let other = b"{\"url\":\"http://b/\",\"file\":\"a\"}\n".as_slice();
    assert_ne!(of(&[("manifest.jsonl", line), ("a", b"")]), of(&[("manifest.jsonl", other), ("a", b"")]));
    assert_ne!(of(&[("manifest.jsonl", line), ("a", b"")]), of(&[("manifest.jsonl", line), ("a", b"1")]));
}
