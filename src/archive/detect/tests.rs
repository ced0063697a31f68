//! Layouts told by their bytes, and beside each other.

use crate::archive::tests::{arc_file, entry, folder, httrack_cache, read, urls};
use crate::archive::{Layout, SnapshotFolder};
use crate::lab::archives::samples::{conversion, gzip, noise, record, response, zip, zstd_file};

#[test]
fn arc_wet_and_zstd_are_told_by_their_bytes() {
    let wet = [record("warcinfo", &[], b"x: y\r\n"), conversion("http://wet/", "text")];
    for (name, file, layout, url) in [
        ("x.arc", arc_file(), "arc", "http://arc/"),
        ("x.arc.gz", gzip(&arc_file()), "arc", "http://arc/"),
        ("no.name", gzip(&arc_file()), "arc", "http://arc/"),
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
                ("b.arc", &arc_file()),
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
                ("run/hts-cache/new.zip", &httrack_cache(&[])),
                ("run/a.org/p.png", b"P"),
                ("run/a.org/big.html", b"b"),
            ],
            "warc+httrack",
            &["http://warc/", "http://a.org/", "http://a.org/p.png", "http://a.org/big.html", "http://a.org/gone"],
        ),
        (
            &[("run/a.warc", &warc), ("run/hts-cache/new.zip", &httrack_cache(&[])), ("run/a.org/p.png", b"P")],
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
