use super::*;
use crate::archive::SnapshotFolder;
use crate::archive::tests::{body, entry, folder, read, urls, wacz_entries};
use crate::lab::archives::samples::{Packed, gzip, noise, response, zip};
use crate::model::TimeSource;

#[test]
fn wacz_files() {
    for streamed in [false, true] {
        let entries: Vec<_> = wacz_entries().into_iter().map(|entry| Packed { streamed, ..entry }).collect();
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
        let entries: Vec<_> = wacz_entries().into_iter().map(|entry| Packed { streamed, ..entry }).collect();
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
    let file = zip(&wacz_entries());
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
