//! Damaged and hostile archives of every layout: rejects with file and offset, no panic, no hang, bounded memory.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::Stdio;

use ratoon::inside::archive::{Layout, SnapshotFolder};
use ratoon::inside::model::{Body, RawCapture, Reject};
use ratoon::inside::tables::ingest::{Capture, Page, RejectRow};

use crate::workspace::{Workspace, peak_of};
use ratoon::inside::lab::archives::samples::{
    Packed, arc_record, arc_start, cached, conversion, gzip, http, noise, record, response, zip, zstd_file, zstd_frame,
};

const NIGHT: &str = "2024-03-01";

fn pages() -> Vec<(String, Vec<u8>)> {
    (0..12).map(|i| (format!("http://site.test/{i}"), noise(i + 1, 1500))).collect()
}

fn url(i: usize) -> String {
    format!("http://site.test/{i}")
}

/// A small archive of every layout that is one file: its name and bytes.
fn archives() -> Vec<(&'static str, Vec<u8>)> {
    let records: Vec<_> = pages().iter().map(|(url, body)| response(url, body)).collect();
    let members: Vec<u8> = records.iter().flat_map(|record| gzip(record)).collect();
    let packed = |name: &str, body: &[u8], deflated, streamed| Packed {
        name: name.into(),
        extra: Vec::new(),
        body: body.into(),
        deflated,
        streamed,
    };
    let block = |body: &[u8]| http("200 OK", &[("Content-Type", "text/html")], body);
    let arc: Vec<Vec<u8>> =
        [arc_start()].into_iter().chain(pages().iter().map(|(url, body)| arc_record(url, &block(body)))).collect();
    let wet = pages().iter().map(|(url, body)| conversion(url, &String::from_utf8_lossy(body))).collect::<Vec<_>>();
    let cache: Vec<Packed> =
        pages().iter().map(|(url, body)| cached(url, "200 OK", "text/html", "", Some(body))).collect();
    vec![
        ("x.warc", records.concat()),
        ("x.warc.gz", members.clone()),
        ("whole.warc.gz", gzip(&records.concat())),
        ("x.warc.zst", zstd_file(&records, b"", false)),
        ("words.warc.zst", zstd_file(&records, &noise(1, 900), true)),
        ("stored.wacz", zip(&[packed("archive/x.warc.gz", &members, false, false)])),
        ("streamed.wacz", zip(&[packed("archive/x.warc.gz", &members, false, true)])),
        ("deflated.wacz", zip(&[packed("archive/x.warc", &records.concat(), true, false)])),
        ("x.arc", arc.concat()),
        ("x.arc.gz", arc.iter().flat_map(|record| gzip(record)).collect()),
        ("x.warc.wet.gz", wet.iter().flat_map(|record| gzip(record)).collect()),
        ("hts-cache/new.zip", zip(&cache)),
    ]
}

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Through the readers that ingest uses, split as for two threads.
fn read(folder: &Path) -> Result<(Vec<RawCapture>, Vec<Reject>), String> {
    let opened = SnapshotFolder::open(folder, Layout::Auto).map_err(|error| error.to_string())?;
    let (mut captures, mut rejects) = (Vec::new(), opened.rejects().to_vec());
    for reader in opened.split_readers(None, None, 2) {
        for item in reader {
            match item {
                Ok(capture) => captures.push(capture),
                Err(reject) => rejects.push(reject),
            }
        }
    }
    Ok((captures, rejects))
}

fn body(capture: &RawCapture) -> &[u8] {
    match &capture.body {
        Body::Bytes(bytes) => bytes,
        Body::File(_) | Body::None => b"",
    }
}

#[test]
fn archives_cut_anywhere() {
    for (name, file) in archives() {
        let dir = tempfile::tempdir().unwrap();
        let whole = {
            write(dir.path(), name, &file);
            read(dir.path()).unwrap()
        };
        assert_eq!((whole.0.len(), whole.1.len()), (12, 0), "{name}: {:?}", whole.1);
        let mut most = 0;
        for cut in (1..file.len()).step_by(1000) {
            write(dir.path(), name, &file[..cut]);
            let (captures, rejects) = match read(dir.path()) {
                Ok(read) => read,
                Err(message) => {
                    assert!(cut < 1100 && message.contains(name), "{name} {cut}: {message}");
                    continue;
                }
            };
            // What lies before the cut is all there, as it was.
            let good: Vec<_> = captures.iter().filter(|capture| capture.truncated.is_none()).collect();
            for (i, capture) in good.iter().enumerate() {
                assert_eq!(capture.url, url(i), "{name} {cut}");
                assert!(body(capture) == noise(i + 1, 1500), "{name} {cut}");
            }
            assert!(good.len() >= most && captures.len() <= good.len() + 1, "{name} {cut}");
            most = good.len();
            // And somebody says what is missing, and where.
            assert!(!rejects.is_empty(), "{name} {cut}");
            assert!(rejects.iter().all(|reject| reject.source_file.starts_with(name)), "{name} {cut}: {rejects:?}");
            let placed = rejects.iter().any(|reject| reject.source_offset.is_some());
            assert!(placed || captures.is_empty(), "{name} {cut}: {rejects:?}");
        }
        assert!(most >= 8, "{name}: {most}");
    }
}

/// One cut of each layout through the program, beside a sound snapshot's worth of pages.
#[test]
fn cut_archives_are_rows_of_rejects() {
    for (name, file) in archives() {
        let w = Workspace::new("max_reject_share = 1.0");
        let dir = w.snapshot_dir(NIGHT);
        write(&dir, name, &file[..file.len() * 3 / 4 + 100]);
        w.ratoon(&["run", "p.toml", "--threads", "2"]).expect(3).says("is cut or cannot be read");
        let rejects = w.rows::<RejectRow>(NIGHT);
        assert!(
            !rejects.is_empty() && rejects.iter().all(|reject| reject.source_file.starts_with(name)),
            "{rejects:?}"
        );
        assert!(w.rows::<Page>(NIGHT).len() >= 4, "{name}");
    }
}

#[test]
fn a_mirror_and_a_manifest_with_holes() {
    let w = Workspace::new("max_reject_share = 1.0");
    let dir = w.snapshot_dir("2024-03-01");
    let line = |i: usize| format!("{{\"url\":\"{}\",\"file\":\"{i}\",\"status\":200}}\n", url(i));
    let manifest: String = (0..12).map(line).collect();
    for (i, (_, body)) in pages().iter().enumerate().skip(1) {
        write(&dir, &i.to_string(), body);
    }
    write(&dir, "manifest.jsonl", &manifest.as_bytes()[..manifest.len() - 20]);
    w.run();
    let rejects = w.rows::<RejectRow>("2024-03-01");
    let offsets: Vec<_> = rejects.iter().map(|reject| reject.source_offset).collect();
    assert_eq!(offsets, [Some(1), Some(12)], "the missing file and the cut line: {rejects:?}");
    assert_eq!(w.rows::<Page>("2024-03-01").len(), 10);
}

#[test]
fn wrong_lengths_missing_headers_and_long_ones() {
    let good = |i: usize| response(&url(i), b"<p>good");
    let long_value = "x".repeat(1 << 20);
    let long = record("response", &[("WARC-Target-URI", "http://site.test/long"), ("X", &long_value)], b"");
    let long_http = record(
        "response",
        &[("WARC-Target-URI", "http://site.test/long-http"), ("WARC-Date", "2024-03-01T12:00:00Z")],
        &http("200 OK", &[("X", &long_value)], b"<p>x"),
    );
    let lie = |length: &str| {
        let text = String::from_utf8(good(99)).unwrap();
        let at = text.find("Content-Length: ").unwrap();
        let end = at + text[at..].find("\r\n").unwrap();
        format!("{}Content-Length: {length}{}", &text[..at], &text[end..]).into_bytes()
    };
    let bad = [
        long,
        long_http,
        record("response", &[("WARC-Date", "2024-03-01T12:00:00Z")], &http("200 OK", &[], b"x")),
        b"WARC/1.0\r\nWARC-Type: response\r\n\r\n".to_vec(),
        b"WARC/1.0\r\n\r\n".to_vec(),
        lie("99999999999999999999"),
        lie("-1"),
        lie("1"),
        [noise(5, 5000).as_slice(), b"\n"].concat(),
    ];
    let plain = |bad: &[u8]| [good(0), bad.to_vec(), good(1)].concat();
    let zipped = |bad: &[u8]| [gzip(&good(0)), gzip(bad), gzip(&good(1))].concat();
    for (i, bad) in bad.iter().enumerate() {
        for (name, file, offset) in
            [("x.warc", plain(bad), good(0).len()), ("x.warc.gz", zipped(bad), gzip(&good(0)).len())]
        {
            let dir = tempfile::tempdir().unwrap();
            write(dir.path(), name, &file);
            let (captures, rejects) = read(dir.path()).unwrap();
            let urls: Vec<_> = captures.iter().map(|capture| capture.url.as_str()).collect();
            assert!(urls.contains(&url(0).as_str()) && urls.contains(&url(1).as_str()), "{i} {name}: {urls:?}");
            assert!((1..=2).contains(&rejects.len()), "{i} {name}: {rejects:?}");
            let at = rejects[0].source_offset.unwrap();
            assert!(
                rejects[0].source_file == name && at >= offset as u64 && at < file.len() as u64,
                "{i} {name} {rejects:?}"
            );
        }
    }
}

/// The most memory that a run took, in megabytes. It ends with this code.
fn run_measured(w: &Workspace, expected: i32) -> u64 {
    let mut command = w.command(&["run", "p.toml", "--threads", "2", "-q"]);
    let (code, peak) = peak_of(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    assert_eq!(code, expected, "{:?}", w.rows::<RejectRow>(NIGHT));
    peak
}

/// A file with a hole of 3 GB in it: no disk is used, and no memory may be.
#[test]
fn a_record_of_three_gigabytes() {
    const HOLE: u64 = 3 << 30;
    let head = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://site.test/huge\r\nContent-Length: {HOLE}\r\n\r\n"
    );
    let arc_head = format!("http://site.test/huge 1.2.3.4 20240301120000 text/html {HOLE}\n");
    let good = response(&url(0), b"<p>good");
    let arc_good = arc_record(&url(0), b"<p>good");
    for (name, first, head, good) in
        [("x.warc", &good, &head, &good), ("x.arc", &[arc_start(), arc_good.clone()].concat(), &arc_head, &arc_good)]
    {
        let w = Workspace::new("max_reject_share = 1.0");
        let path = w.snapshot_dir(NIGHT).join(name);
        let mut file = fs::File::create(path).unwrap();
        file.write_all(first).unwrap();
        file.write_all(head.as_bytes()).unwrap();
        file.seek(SeekFrom::Current(i64::try_from(HOLE).unwrap())).unwrap();
        file.write_all(b"\r\n\r\n").unwrap();
        file.write_all(good).unwrap();
        drop(file);
        let peak = run_measured(&w, 0);
        assert!(peak < 400, "{name}: {peak} MB");
        let rejects = w.rows::<RejectRow>(NIGHT);
        let found: Vec<_> =
            rejects.iter().map(|r| (r.source_file.as_str(), r.source_offset, r.url.as_deref())).collect();
        assert_eq!(found, [(name, Some(first.len() as i64), Some("http://site.test/huge"))]);
        assert_eq!((w.rows::<Page>(NIGHT).len(), w.rows::<Capture>(NIGHT).len()), (1, 2), "what follows is read");
    }
}

/// Small files that unpack to gigabytes.
#[test]
fn bombs() {
    // 2 GB of zeros as a record, deflated piece by piece.
    let bomb = |encoder: &mut dyn std::io::Write| {
        let head = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://site.test/bomb\r\nContent-Length: 400000000\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
        encoder.write_all(head.as_bytes()).unwrap();
        let zeros = vec![0; 1 << 20];
        for _ in 0..2048 {
            encoder.write_all(&zeros).unwrap();
        }
    };
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb(&mut gz);
    let gz = gz.finish().unwrap();
    let mut zst = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    bomb(&mut zst);
    let zst = zst.finish().unwrap();
    let mut inflated = Vec::new();
    bomb(&mut inflated);
    let wacz =
        zip(&[Packed { name: "archive/x.warc".into(), body: inflated.clone(), deflated: true, ..Packed::default() }]);
    let mut page = cached("http://site.test/bomb", "200 OK", "text/html", "", Some(b""));
    page.body = inflated;
    let cache = zip(&[page]);
    let good = response(&url(0), b"<p>good");
    // An archive that is given up in the middle is told as cut; a bad page among others is not.
    for (name, file, expected) in [
        ("x.warc.gz", [gzip(&good), gz].concat(), 0),
        ("x.warc.zst", [zstd_frame(&good, b""), zst].concat(), 0),
        ("x.wacz", wacz, 3),
        ("run/hts-cache/new.zip", cache, 0),
    ] {
        assert!(file.len() < 4 << 20, "{name}: {}", file.len());
        let w = Workspace::new("max_reject_share = 1.0");
        let dir = w.snapshot_dir(NIGHT);
        write(&dir, name, &file);
        // Something good beside it, so that there is a page.
        write(&dir, "good.warc", &good);
        let peak = run_measured(&w, expected);
        assert!(peak < 600, "{name}: {peak} MB");
        let rejects = w.rows::<RejectRow>(NIGHT);
        assert!(rejects.iter().any(|reject| reject.source_file.starts_with(name)), "{name}: {rejects:?}");
        assert!(w.rows::<Page>(NIGHT).iter().all(|page| !page.url.contains("bomb")), "{name}");
    }
}

#[test]
fn pages_that_are_made_to_hurt() {
    let w = Workspace::new("");
    let nested = "<div>".repeat(1_000_000) + "deep";
    let line = "word ".repeat(20 << 20);
    let redirect = |from: &str, to: &str| {
        let fields = [("WARC-Target-URI", from), ("WARC-Date", "2024-03-01T12:00:00Z")];
        record("response", &fields, &http("301 Moved", &[("Location", to)], b""))
    };
    let mut file = response("http://site.test/nested", nested.as_bytes());
    file.extend(response("http://site.test/line", line.as_bytes()));
    for i in 0..1000 {
        file.extend(redirect(&format!("http://site.test/r{i}"), &format!("http://site.test/r{}", (i + 1) % 1000)));
    }
    write(&w.snapshot_dir(NIGHT), "x.warc", &file);
    let peak = run_measured(&w, 0);
    assert!(peak < 1800, "{peak} MB");
    let mut found: Vec<_> = w.rows::<Page>(NIGHT).into_iter().map(|page| (page.url, page.text_bytes)).collect();
    found.sort();
    assert_eq!(found[0], ("http://site.test/line".to_owned(), (line.len() - 1) as i64));
    assert_eq!(found[1], ("http://site.test/nested".to_owned(), 4));
    assert_eq!((found.len(), w.rows::<Capture>(NIGHT).len()), (2, 1002), "a redirect is a capture, not a page");
}

/// A hundred thousand entries that all claim the same bytes, and names that lead out.
#[test]
fn zip_files_made_by_hand() {
    let w = Workspace::new("max_reject_share = 1.0");
    let dir = w.snapshot_dir(NIGHT);
    let entry = |name: &str, body: &[u8]| Packed { name: name.into(), body: body.into(), ..Packed::default() };
    let mut file = zip(&[
        entry("archive/a.warc", &response(&url(0), b"<p>a")),
        entry("../../archive/b.warc", &response(&url(1), b"<p>b")),
        entry("archive/c.warc", &response(&url(2), b"<p>c")),
        entry("archive/c.warc", &response(&url(3), b"<p>d")),
    ]);
    // The second entry of the directory points to the first one's bytes.
    let starts: Vec<_> = file.windows(4).enumerate().filter(|(_, w)| *w == b"PK\x01\x02").map(|(at, _)| at).collect();
    let mut twin = file[starts[0]..starts[1]].to_vec();
    twin[46..60].copy_from_slice(b"archive/z.warc");
    let end = file.len() - 22;
    file.splice(starts[1]..starts[1], twin.clone());
    let end = end + twin.len();
    for at in [end + 8, end + 10] {
        file[at] += 1;
    }
    let size = u32::from_le_bytes(file[end + 12..end + 16].try_into().unwrap()) + u32::try_from(twin.len()).unwrap();
    file[end + 12..end + 16].copy_from_slice(&size.to_le_bytes());
    write(&dir, "x.wacz", &file);
    w.run();
    let mut urls: Vec<_> = w.rows::<Page>(NIGHT).into_iter().map(|page| page.url).collect();
    urls.sort();
    assert_eq!(urls, [url(0), url(3)]);
    let rejects = w.rows::<RejectRow>(NIGHT);
    for part in ["leaves the archive", "another one of this name", "shares bytes"] {
        let found = rejects.iter().find(|reject| reject.reason.contains(part));
        assert!(found.is_some_and(|r| r.source_file == "x.wacz" && r.source_offset.is_some()), "{part}: {rejects:?}");
    }
    assert_eq!(rejects.len(), 3, "{rejects:?}");
}
