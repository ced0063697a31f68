use tempfile::TempDir;

use super::*;
use crate::archive::tests::{arc_file, folder, read, wacz_entries};
use crate::archive::{Layout, SnapshotFolder};
use crate::lab::archives::samples::{conversion, gzip, response, zip, zstd_file};

#[test]
fn snapshots_are_listed_in_order() {
    let root =
        folder(&[("2024-03-02/x", b""), ("2024-03-01/x", b""), (".hidden/x", b""), ("README", b""), ("a/x", b"")]);
    let list = |root: &TempDir| {
        list_snapshots(root.path()).map(|list| list.into_iter().map(|(id, _)| id.to_string()).collect::<Vec<_>>())
    };
    assert_eq!(list(&root).unwrap(), ["2024-03-01", "2024-03-02", "a"]);
    fs_err::create_dir(root.path().join("first night")).unwrap();
    let message = list(&root).unwrap_err().to_string();
    assert!(message.contains("first night") && message.contains("rename"), "{message}");
    assert!(list_snapshots(Path::new("/no/such")).unwrap_err().to_string().contains("/no/such"));
}

#[test]
fn what_is_set_aside_is_no_snapshot() {
    let names = ["2024-03-03.tmp", "2024-03-03.partial", "n.PART", "_wip", "2024-03-03~", "_2024-03-04.warc", "tmp"];
    let root = folder(&[]);
    for name in names.iter().filter(|name| !name.ends_with("warc")) {
        fs_err::create_dir(root.path().join(name)).unwrap();
    }
    fs_err::write(root.path().join("_2024-03-04.warc"), response("http://a/", b"a")).unwrap();
    fs_err::write(root.path().join("2024-03-05.warc.gz.tmp"), gzip(&response("http://a/", b"a"))).unwrap();
    let listed: Vec<String> = list_snapshots(root.path()).unwrap().into_iter().map(|(id, _)| id.to_string()).collect();
    assert_eq!(listed, ["tmp"]);
}

#[cfg(unix)]
#[test]
fn linked_snapshots_are_listed() {
    let (target, root) = (folder(&[("x", b"")]), folder(&[]));
    std::os::unix::fs::symlink(target.path(), root.path().join("n1")).unwrap();
    assert_eq!(list_snapshots(root.path()).unwrap()[0].1, root.path().join("n1"));
    std::os::unix::fs::symlink("nowhere", root.path().join("n2")).unwrap();
    assert!(list_snapshots(root.path()).unwrap_err().to_string().contains("n2"));
}

#[test]
fn snapshots_of_one_file() {
    let warc = response("http://a/", b"a");
    let root = folder(&[
        ("2024-03-01.warc.gz", &gzip(&warc)),
        ("2024-03-02.wacz", &zip(&wacz_entries())),
        ("2024-03-03.warc.wet.gz", &gzip(&conversion("http://a/", "a"))),
        ("2024-03-04.ARC", &arc_file()),
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
