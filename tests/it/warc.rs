//! WARC snapshots: encodings, revisits, 304, duplicates, cut files.

use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use ratoon::inside::model::Digest;
use ratoon::inside::tables::ingest::{Capture, Page, RejectRow};

use crate::workspace::Workspace;

/// A WARC record with an HTTP response.
struct Response<'a> {
    path: &'a str,
    minute: u32,
    status: u16,
    headers: &'a str,
    body: &'a [u8],
    digest: &'a str,
}

const OK: Response<'_> =
    Response { path: "a", minute: 0, status: 200, headers: "Content-Type: text/html\r\n", body: b"", digest: "" };

impl Response<'_> {
    fn record(&self) -> Vec<u8> {
        self.typed("response", "")
    }

    fn typed(&self, kind: &str, warc_headers: &str) -> Vec<u8> {
        let mut http = format!("HTTP/1.1 {} X\r\n{}\r\n", self.status, self.headers).into_bytes();
        http.extend_from_slice(self.body);
        let digest =
            if self.digest.is_empty() { String::new() } else { format!("WARC-Payload-Digest: {}\r\n", self.digest) };
        let mut record = format!(
            "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://site.test/{}\r\nWARC-Date: 2024-01-01T00:{:02}:00Z\r\n\
             WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{:012}>\r\nContent-Type: application/http; msgtype=response\r\n\
             {digest}{warc_headers}Content-Length: {}\r\n\r\n",
            self.path,
            self.minute,
            self.minute,
            http.len()
        )
        .into_bytes();
        record.extend_from_slice(&http);
        record.extend_from_slice(b"\r\n\r\n");
        record
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn put(w: &Workspace, snapshot: &str, name: &str, bytes: &[u8]) {
    fs::write(w.snapshot_dir(snapshot).join(name), bytes).unwrap();
}

fn texts(w: &Workspace, snapshot: &str) -> Vec<(String, Option<String>, String)> {
    let mut pages: Vec<_> =
        w.rows::<Page>(snapshot).into_iter().map(|p| (p.url, p.text, p.change.to_string())).collect();
    pages.sort();
    pages
}

#[test]
fn transfer_and_content_encodings_are_undone_and_lies_are_kept() {
    let body = b"<p>hello";
    let chunked = b"4\r\n<p>h\r\n4\r\nello\r\n0\r\n\r\n";
    let zipped = gzip(body);
    let cases: [(&str, &str, &[u8]); 4] = [
        ("chunked", "Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n", chunked),
        ("gzip", "Content-Type: text/html\r\nContent-Encoding: gzip\r\n", &zipped),
        ("lie1", "Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n", body),
        ("lie2", "Content-Type: text/html\r\nContent-Encoding: gzip\r\n", body),
    ];
    let w = Workspace::new("");
    let mut file = Vec::new();
    for (path, headers, body) in cases {
        file.extend(gzip(&Response { path, headers, body, ..OK }.record()));
    }
    put(&w, "2024-01-01", "x.warc.gz", &file);
    w.run();
    for (url, text, _) in texts(&w, "2024-01-01") {
        assert_eq!(text.as_deref(), Some("hello"), "{url}");
    }
    assert_eq!(w.rows::<Page>("2024-01-01").len(), 4);
    let digests: Vec<_> = w.rows::<Capture>("2024-01-01").into_iter().map(|c| c.payload_digest).collect();
    assert!(digests.iter().all(|digest| *digest == digests[0]));
}

#[test]
fn files_that_lie_about_their_extension_are_read() {
    let w = Workspace::new("");
    let a = Response { path: "a", body: b"<p>a", ..OK }.record();
    let b = Response { path: "b", body: b"<p>b", ..OK }.record();
    put(&w, "2024-01-01", "packed.warc", &gzip(&a));
    put(&w, "2024-01-01", "plain.warc.gz", &b);
    w.run();
    assert_eq!(w.rows::<Page>("2024-01-01").len(), 2);
}

#[test]
fn the_last_good_capture_is_the_page_and_all_are_captures() {
    let w = Workspace::new("");
    let records = [
        Response { minute: 2, body: b"<p>second", ..OK }.record(),
        Response { minute: 1, body: b"<p>first", ..OK }.record(),
        Response { minute: 3, status: 500, body: b"<p>oops", ..OK }.record(),
    ];
    put(&w, "2024-01-01", "x.warc", &records.concat());
    w.run();
    assert_eq!(texts(&w, "2024-01-01"), [("http://site.test/a".into(), Some("second".into()), "added".into())]);
    assert_eq!(w.rows::<Capture>("2024-01-01").len(), 3);
}

#[test]
fn a_revisit_and_a_304_are_the_page_as_it_was() {
    let w = Workspace::new("");
    let digest = "sha1:AAAA";
    let first = [
        Response { path: "a", body: b"<p>a", digest, ..OK }.record(),
        Response { path: "b", body: b"<p>b", digest: "sha1:BBBB", ..OK }.record(),
    ];
    put(&w, "2024-01-01", "x.warc", &first.concat());
    let profile = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n";
    let second = [
        Response { path: "a", digest, ..OK }.typed("revisit", profile),
        Response { path: "b", status: 304, ..OK }.record(),
        // The same payload under a new URL, and one that was never seen.
        Response { path: "c", digest, ..OK }.typed("revisit", profile),
        Response { path: "d", digest: "sha1:DDDD", ..OK }.typed("revisit", profile),
    ];
    put(&w, "2024-01-02", "x.warc", &second.concat());
    w.run();
    let expected: [(String, Option<String>, String); 3] = [
        ("http://site.test/a".into(), None, "unchanged".into()),
        ("http://site.test/b".into(), None, "unchanged".into()),
        ("http://site.test/c".into(), Some("a".into()), "added".into()),
    ];
    assert_eq!(texts(&w, "2024-01-02"), expected);
    let captures = w.rows::<Capture>("2024-01-02");
    assert!(captures.iter().all(|capture| capture.revisit));
    let resolved = captures.iter().filter(|capture| capture.text_digest.is_some()).count();
    assert_eq!((captures.len(), resolved), (4, 3));
    assert_eq!(w.rows::<RejectRow>("2024-01-02"), [], "an unresolved revisit is no reject");
}

#[test]
fn a_cut_file_keeps_what_came_before_and_names_the_cut() {
    let w = Workspace::new("max_reject_share = 1.0");
    let a = gzip(&Response { path: "a", body: b"<p>a", ..OK }.record());
    let b = gzip(&Response { path: "b", body: "<p>b ".repeat(50).as_bytes(), ..OK }.record());
    let whole = [a.clone(), b].concat();
    put(&w, "2024-01-01", "x.warc.gz", &whole[..whole.len() - 30]);
    w.ratoon(&["run", "p.toml"]).expect(3).says("x.warc.gz is cut");
    let urls: Vec<_> = w.rows::<Page>("2024-01-01").into_iter().map(|p| p.url).collect();
    assert_eq!(urls, ["http://site.test/a"]);
    let rejects = w.rows::<RejectRow>("2024-01-01");
    assert_eq!(rejects.len(), 1, "{rejects:?}");
    assert_eq!((&*rejects[0].source_file, rejects[0].source_offset), ("x.warc.gz", Some(a.len() as i64)));
}

#[test]
fn a_short_body_is_a_capture_and_a_reject_but_no_page() {
    let w = Workspace::new("max_reject_share = 1.0");
    let headers = "Content-Type: text/html\r\nContent-Length: 1000\r\n";
    let records = [
        Response { path: "a", body: b"<p>a", ..OK }.record(),
        Response { path: "short", headers, body: b"<p>cut", ..OK }.record(),
    ];
    put(&w, "2024-01-01", "x.warc", &records.concat());
    w.run();
    assert_eq!(w.rows::<Page>("2024-01-01").len(), 1);
    assert_eq!(w.rows::<Capture>("2024-01-01").len(), 2);
    let rejects = w.rows::<RejectRow>("2024-01-01");
    assert_eq!(rejects.len(), 1);
    assert_eq!(rejects[0].url.as_deref(), Some("http://site.test/short"));
}

#[test]
fn a_payload_equal_to_last_times_is_not_parsed_again() {
    let w = Workspace::new("");
    let records: Vec<_> = (0..20u32)
        .map(|i| Response { path: &format!("p{i}"), body: format!("<p>page {i}").as_bytes(), ..OK }.record())
        .collect();
    put(&w, "2024-01-01", "x.warc", &records.concat());
    put(&w, "2024-01-02", "x.warc", &records.concat());
    let ended = w.ratoon(&["run", "p.toml", "--json"]).expect(0);
    let summary: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let steps = summary["done"].as_array().unwrap().iter().filter(|step| step["stage"] == "ingest");
    let parsed: Vec<_> = steps.map(|step| step["summary"]["parsed"].as_u64()).collect();
    assert_eq!(parsed, [Some(20), Some(0)]);
}

/// A page that moved is known again, whether the crawler stored it once more or wrote that it has it: by its digest, by the
/// URL that had it, or by another capture of the night.
#[test]
fn a_page_that_moved_may_come_as_a_revisit() {
    let profile = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n";
    let named = format!("{profile}WARC-Refers-To-Target-URI: http://site.test/old\r\n");
    let body = format!("<p>{}", "a long enough text ".repeat(5));
    let (a, b) = ("sha1:AAAA", "sha1:BBBB");
    let stored = Response { path: "old", body: body.as_bytes(), digest: a, ..OK };
    let gone = Response { path: "old", status: 404, ..OK }.record();
    let new = |digest: &'static str| Response { path: "new", minute: 9, body: b"", digest, ..OK };
    let ways = [
        [gone.clone(), Response { body: body.as_bytes(), ..new(a) }.record()].concat(),
        [gone.clone(), new(a).typed("revisit", profile)].concat(),
        [gone, new("").typed("revisit", &named)].concat(),
        [stored.record(), new(a).typed("revisit", profile)].concat(),
    ];
    let other = Response { path: "other", body: b"<p>of others", digest: b, ..OK }.record();
    for (way, second) in ways.iter().enumerate() {
        let w = Workspace::new("");
        put(&w, "2024-01-01", "x.warc", &[stored.record(), other.clone()].concat());
        put(&w, "2024-01-02", "x.warc", &[second.as_slice(), &other].concat());
        w.run();
        let pages = w.rows::<Page>("2024-01-02");
        let moved = pages.iter().find(|page| page.url.ends_with("new")).unwrap();
        assert_eq!(moved.change.as_str(), "added", "{way}");
        assert_eq!(moved.moved_from.as_deref(), Some("http://site.test/old"), "{way}");
        assert_eq!(moved.old_snapshot.as_ref().map(ToString::to_string), Some("2024-01-01".to_owned()), "{way}");
    }
}

/// Crawlers that know all that they ever stored write a revisit for a page that is as it once was.
#[test]
fn a_revisit_of_an_older_version_is_that_version() {
    let w = Workspace::new("");
    let page = |body: &'static [u8], digest: &'static str| Response { path: "a", body, digest, ..OK };
    let other = |minute| Response { path: "b", minute, body: b"<p>of b", digest: "sha1:BBBB", ..OK };
    let profile = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n";
    put(&w, "2024-01-01", "x.warc", &[page(b"<p>first", "sha1:1111").record(), other(1).record()].concat());
    put(&w, "2024-01-02", "x.warc", &[page(b"<p>second", "sha1:2222").record(), other(2).record()].concat());
    let back = [page(b"", "sha1:1111").typed("revisit", profile), other(3).record()].concat();
    put(&w, "2024-01-03", "x.warc", &back);
    // An old version of another URL serves as well.
    let c = Response { path: "c", digest: "sha1:2222", ..OK }.typed("revisit", profile);
    put(&w, "2024-01-04", "x.warc", &[page(b"", "sha1:1111").typed("revisit", profile), c].concat());
    w.run();
    let row = |night: &str, path: &str| {
        let rows = w.rows::<Page>(night);
        let row = rows.into_iter().find(|page| page.url == format!("http://site.test/{path}"));
        row.map(|page| (page.change.to_string(), page.text_digest))
    };
    let says = |change: &str, text: &str| Some((change.to_owned(), Digest::of(text.as_bytes())));
    assert_eq!(row("2024-01-03", "a"), says("modified", "first"));
    assert_eq!(row("2024-01-04", "a"), says("unchanged", "first"));
    assert_eq!(row("2024-01-04", "c"), says("added", "second"));
}
