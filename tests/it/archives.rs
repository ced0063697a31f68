//! Every layout through the program: the same site gives the same pages, with the right times and sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ratoon::inside::model::TimeSource;
use ratoon::inside::tables::ingest::{Capture, LinkRow, Page, RejectRow};

use crate::workspace::{Workspace, html};
use ratoon::inside::lab::archives::samples::{
    Packed, arc_record, arc_start, cached, conversion, gzip, http, record, response, zip, zstd_file,
};

const NIGHT: &str = "2024-03-01";

/// A file of a snapshot.
type File = (String, Vec<u8>);

fn file(name: &str, bytes: impl Into<Vec<u8>>) -> File {
    (name.to_owned(), bytes.into())
}

fn put(folder: &Path, files: &[File]) {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Three pages of one site.
fn site() -> Vec<(&'static str, String)> {
    vec![
        ("http://site.test/", html("Home", "welcome", "a.html")),
        ("http://site.test/a.html", html("A", "the first page", "/b?x=1")),
        ("http://site.test/b?x=1", html("B", "the second page", "/")),
    ]
}

fn responses() -> Vec<Vec<u8>> {
    site().iter().map(|(url, page)| response(url, page.as_bytes())).collect()
}

/// The site in every layout: name, files, and where its fetch times come from.
fn layouts() -> Vec<(&'static str, Vec<File>, &'static str)> {
    let members: Vec<u8> = responses().iter().flat_map(|record| gzip(record)).collect();
    let block = |page: &str| http("200 OK", &[("Content-Type", "text/html")], page.as_bytes());
    let arc: Vec<Vec<u8>> =
        [arc_start()].into_iter().chain(site().iter().map(|(url, page)| arc_record(url, &block(page)))).collect();
    let entry = |name: &str, body: &[u8], deflated| Packed {
        name: name.into(),
        body: body.into(),
        deflated,
        ..Packed::default()
    };
    let cache: Vec<Packed> = site()
        .iter()
        .map(|(url, page)| cached(url, "200 OK", "text/html", "site.test/x.html", Some(page.as_bytes())))
        .collect();
    let names = ["index.html", "a.html", "b?x=1"];
    let tree = |end: &str| -> Vec<File> {
        let pages = site();
        let named = names.iter().zip(&pages);
        named.map(|(name, (_, page))| file(&format!("site.test/{name}{end}"), page.as_bytes())).collect()
    };
    let rewritten = names.map(|name| file(&format!("site.test/{name}"), "<p>links were rewritten"));
    let with_headers = site().into_iter().zip(names).map(|((_, page), name)| {
        let fields = [("Content-Type", "text/html"), ("Date", "Fri, 01 Mar 2024 12:00:00 GMT")];
        file(&format!("site.test/{name}"), http("200 OK", &fields, page.as_bytes()))
    });
    let mut manifest = String::new();
    for (i, (url, _)) in site().iter().enumerate() {
        manifest += &format!(
            "{{\"url\":\"{url}\",\"file\":\"{i}.html\",\"fetched_at\":\"2024-03-01T12:00:00Z\",\"status\":200}}\n"
        );
    }
    let bodies = site().into_iter().enumerate().map(|(i, (_, page))| file(&format!("{i}.html"), page));
    vec![
        ("warc", vec![file("x.warc", responses().concat())], "header"),
        ("warc, a member for each", vec![file("x.warc.gz", members.clone())], "header"),
        ("warc, one member", vec![file("x.warc.gz", gzip(&responses().concat()))], "header"),
        ("warc, zstd", vec![file("x.warc.zst", zstd_file(&responses(), b"", false))], "header"),
        (
            "warc, zstd with a dictionary",
            vec![file("x.warc.zst", zstd_file(&responses(), b"the page", true))],
            "header",
        ),
        ("wacz, stored", vec![file("x.wacz", zip(&[entry("archive/x.warc.gz", &members, false)]))], "header"),
        (
            "wacz, deflated",
            vec![file("x.wacz", zip(&[entry("archive/x.warc", &responses().concat(), true)]))],
            "header",
        ),
        ("arc", vec![file("x.arc", arc.concat())], "header"),
        ("arc, gzip", vec![file("x.arc.gz", arc.iter().flat_map(|r| gzip(r)).collect::<Vec<u8>>())], "header"),
        ("httrack", vec![file("hts-cache/new.zip", zip(&cache))], "snapshot"),
        ("mirror", tree(""), "snapshot"),
        ("mirror with originals", [tree(".orig"), rewritten.to_vec()].concat(), "snapshot"),
        ("mirror with headers", with_headers.collect(), "header"),
        ("manifest", bodies.chain([file("manifest.jsonl", manifest)]).collect(), "manifest"),
    ]
}

fn pages(w: &Workspace, night: &str) -> BTreeMap<String, (Option<String>, Option<String>, String)> {
    w.rows::<Page>(night).into_iter().map(|page| (page.url, (page.title, page.text, page.change.to_string()))).collect()
}

#[test]
fn one_site_in_every_layout() {
    let mut expected = None;
    for (layout, files, source) in layouts() {
        let w = Workspace::new("");
        put(&w.snapshot_dir(NIGHT), &files);
        w.run();
        let found = pages(&w, NIGHT);
        assert_eq!(found.len(), 3, "{layout}");
        assert_eq!(&found, expected.get_or_insert_with(|| found.clone()), "{layout}");
        assert_eq!(w.rows::<LinkRow>(NIGHT).len(), 3, "{layout}");
        assert_eq!(w.rows::<RejectRow>(NIGHT), [], "{layout}");
        let captures = w.rows::<Capture>(NIGHT);
        assert_eq!(captures.len(), 3, "{layout}: nothing counts twice");
        for capture in captures {
            assert_eq!(capture.fetched_at_source.map(TimeSource::as_str), Some(source), "{layout}");
            assert_eq!((capture.last_modified, capture.last_modified_source), (None, None), "{layout}");
        }
        // A second night of the same files is unchanged, and its payloads are as they were.
        put(&w.snapshot_dir("2024-03-02"), &files);
        w.run();
        assert!(pages(&w, "2024-03-02").values().all(|(_, _, change)| change == "unchanged"), "{layout}");
    }
}

/// The layout named in the pipeline file is the only one that is looked for.
#[test]
fn a_layout_that_is_given() {
    for (layout, files, _) in layouts() {
        let name = layout.split([',', ' ']).next().unwrap();
        let w = Workspace::new(&format!("layout = '{name}'"));
        put(&w.snapshot_dir(NIGHT), &files);
        w.run();
        assert_eq!(w.rows::<Page>(NIGHT).len(), 3, "{layout}");
        w.pipeline(&format!("layout = '{}'", if name == "arc" { "wet" } else { "arc" }));
        w.ratoon(&["run", "p.toml", "--force"]).expect(1).says("no capture in");
    }
}

#[test]
fn nights_may_change_their_layout() {
    let w = Workspace::new("");
    let mut nights = Vec::new();
    for (day, (_, files, _)) in layouts().into_iter().enumerate() {
        nights.push(format!("2024-03-{:02}", day + 1));
        put(&w.snapshot_dir(&nights[day]), &files);
    }
    w.run();
    for night in &nights[1..] {
        assert!(pages(&w, night).values().all(|(_, _, change)| change == "unchanged"), "{night}");
    }
}

#[test]
fn wet_files_give_texts_without_links() {
    let w = Workspace::new("");
    let records = [
        record("warcinfo", &[], b"software: x\r\n"),
        conversion("http://site.test/", "welcome\nto a caf\u{e9}"),
        conversion("http://site.test/a", "<p>is text here"),
    ];
    let members: Vec<u8> = records.iter().flat_map(|record| gzip(record)).collect();
    put(&w.snapshot_dir(NIGHT), &[file("x.warc.wet.gz", members)]);
    w.run();
    let found = pages(&w, NIGHT);
    assert_eq!(found["http://site.test/"].1.as_deref(), Some("welcome\nto a caf\u{e9}"));
    assert_eq!(found["http://site.test/a"].1.as_deref(), Some("<p>is text here"));
    assert_eq!(w.rows::<LinkRow>(NIGHT), []);
    for capture in w.rows::<Capture>(NIGHT) {
        assert_eq!((capture.status, capture.fetched_at_source.map(TimeSource::as_str)), (None, Some("header")));
    }
}

#[test]
fn requisites_of_pages_are_captured_and_not_paged() {
    let w = Workspace::new("");
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    put(&w.snapshot_dir(NIGHT), &[file("site.test/index.html", "<p>x"), file("site.test/p.png", png)]);
    w.run();
    assert_eq!((w.rows::<Page>(NIGHT).len(), w.rows::<Capture>(NIGHT).len()), (1, 2));
}

#[test]
fn httrack_comments_are_no_change() {
    let w = Workspace::new("");
    let comment = |day: u32| {
        format!(
            "\n<!-- Mirrored from site.test by HTTrack Website Copier/3.x [XR&CO'2014], Mon, {day} Nov 2026 08:01:59 GMT -->\n"
        )
    };
    for day in 1..=2 {
        let cache = [cached("http://site.test/", "200 OK", "text/html", "site.test/index.html", None)];
        let page = format!("<html>{}<p>same{}</html>", comment(day), comment(day + 10));
        let night = w.snapshot_dir(&format!("2024-03-0{day}"));
        put(&night, &[file("hts-cache/new.zip", zip(&cache)), file("site.test/index.html", page)]);
    }
    w.run();
    let second = &w.rows::<Capture>("2024-03-02")[0];
    assert_eq!(second.payload_digest, w.rows::<Capture>("2024-03-01")[0].payload_digest);
    assert_eq!(second.last_modified, None, "what HTTrack says of it is not trusted");
    assert_eq!(pages(&w, "2024-03-02")["http://site.test/"].2, "unchanged");
}

#[test]
fn a_snapshot_may_be_one_file() {
    let w = Workspace::new("");
    let members: Vec<u8> = responses().iter().flat_map(|record| gzip(record)).collect();
    let packed = Packed { name: "archive/x.warc".into(), body: responses().concat(), ..Packed::default() };
    put(
        &w.path("snapshots"),
        &[
            file("2024-03-01.warc.gz", members),
            file("2024-03-02.wacz", zip(&[packed])),
            file("README.txt", "not a snapshot"),
        ],
    );
    w.run();
    assert_eq!(pages(&w, "2024-03-01").len(), 3);
    assert!(pages(&w, "2024-03-02").values().all(|(_, _, change)| change == "unchanged"));
    let files: Vec<_> = w.rows::<Capture>("2024-03-02").into_iter().map(|c| c.source_file).collect();
    assert_eq!(files[0], "2024-03-02.wacz/archive/x.warc");
    w.snapshot("2024-03-02", &[("a", "<p>a")]);
    w.ratoon(&["run", "p.toml"]).expect(1).says("both snapshot 2024-03-02");
}

#[test]
fn urls_have_one_spelling_in_every_layout() {
    let w = Workspace::new("");
    let arc = [
        arc_start(),
        arc_record("http://SITE.test:80/a b", b"<p>arc"),
        arc_record("http://b\u{fc}cher.test/", b"<p>b"),
    ];
    put(&w.snapshot_dir("2024-03-01"), &[file("x.arc", arc.concat())]);
    let warc = [
        response("<http://user:secret@site.test/a%20b#part>", b"<p>warc"),
        response("http://xn--bcher-kva.test:80/", b"<p>b"),
    ];
    put(&w.snapshot_dir("2024-03-02"), &[file("x.warc", warc.concat())]);
    put(
        &w.snapshot_dir("2024-03-03"),
        &[file("site.test:80/a b", "<p>mirror"), file("b\u{fc}cher.test/index.html", "<p>b")],
    );
    w.run();
    for night in ["2024-03-01", "2024-03-02", "2024-03-03"] {
        let urls: Vec<String> = pages(&w, night).into_keys().collect();
        assert_eq!(urls, ["http://site.test/a%20b", "http://xn--bcher-kva.test/"], "{night}");
    }
    for (_, bytes) in w.table_bytes() {
        assert!(!bytes.windows(6).any(|window| window == b"secret"), "credentials are kept nowhere");
    }
}

#[test]
fn credentials_are_not_in_rejects_either() {
    let w = Workspace::new("max_reject_share = 1.0");
    let short = http("200 OK", &[("Content-Length", "99")], b"<p>short");
    let fields = [("WARC-Target-URI", "http://user:secret@site.test/"), ("WARC-Date", "2024-03-01T12:00:00Z")];
    let records = [
        response("http://site.test/a", b"<p>a"),
        record("response", &fields, &short),
        record("response", &fields, b"x"),
    ];
    put(&w.snapshot_dir(NIGHT), &[file("x.warc", records.concat())]);
    w.run();
    let rejects = w.rows::<RejectRow>(NIGHT);
    assert_eq!(rejects.len(), 2);
    assert!(rejects.iter().all(|reject| reject.url.as_deref() == Some("http://site.test/")), "{rejects:?}");
}

#[test]
fn schemes_are_equated_in_links_and_pages() {
    let w = Workspace::new("equate_schemes = true");
    let records = [
        response("https://site.test/", b"<p>x<a href='https://site.test/a'>a</a>"),
        response("http://site.test:80/", b"<p>x"),
    ];
    put(&w.snapshot_dir(NIGHT), &[file("x.warc", records.concat())]);
    w.run();
    assert_eq!(pages(&w, NIGHT).into_keys().collect::<Vec<_>>(), ["http://site.test/"]);
    assert_eq!(w.rows::<Capture>(NIGHT).len(), 2);
}

/// A revisit of one URL that names another, in another file or in an earlier snapshot.
#[test]
fn revisits_that_name_a_url() {
    let w = Workspace::new("");
    let at = |url: &str, time: &str, body: &[u8]| {
        let fields = [("WARC-Target-URI", url), ("WARC-Date", time)];
        record("response", &fields, &http("200 OK", &[("Content-Type", "text/html")], body))
    };
    let revisit = |url: &str, time: &str, more: &[(&str, &str)]| {
        let fields = [&[("WARC-Target-URI", url), ("WARC-Date", time)], more].concat();
        record("revisit", &fields, &http("200 OK", &[("Content-Type", "text/html")], b""))
    };
    let original = "http://site.test/original";
    let to = ("WARC-Refers-To-Target-URI", original);
    let first =
        [at(original, "2024-03-01T01:00:00Z", b"<p>at one"), at(original, "2024-03-01T02:00:00Z", b"<p>at two")];
    let same_night = [
        revisit(
            "http://site.test/dated",
            "2024-03-01T03:00:00Z",
            &[to, ("WARC-Refers-To-Date", "2024-03-01T01:00:00Z")],
        ),
        revisit("http://site.test/undated", "2024-03-01T03:00:00Z", &[to]),
        revisit(
            "http://site.test/unknown",
            "2024-03-01T03:00:00Z",
            &[("WARC-Refers-To-Target-URI", "http://site.test/nowhere")],
        ),
    ];
    // The file that refers comes first.
    put(&w.snapshot_dir("2024-03-01"), &[file("1.warc", same_night.concat()), file("2.warc", first.concat())]);
    let next_night = [
        revisit(
            "http://site.test/later",
            "2024-03-02T03:00:00Z",
            &[to, ("WARC-Refers-To-Date", "2024-03-01T02:00:00Z")],
        ),
        revisit(original, "2024-03-02T04:00:00Z", &[to]),
    ];
    put(&w.snapshot_dir("2024-03-02"), &[file("1.warc", next_night.concat())]);
    w.run();
    let texts = |night: &str| -> Vec<(String, Option<String>)> {
        pages(&w, night).into_iter().map(|(url, (_, text, _))| (url, text)).collect()
    };
    let expected = [
        ("http://site.test/dated", Some("at one")),
        ("http://site.test/original", Some("at two")),
        ("http://site.test/undated", Some("at two")),
    ];
    assert_eq!(texts("2024-03-01"), expected.map(|(url, text)| (url.to_owned(), text.map(str::to_owned))));
    let expected = [("http://site.test/later", Some("at two")), ("http://site.test/original", None)];
    assert_eq!(texts("2024-03-02"), expected.map(|(url, text)| (url.to_owned(), text.map(str::to_owned))));
    assert_eq!(pages(&w, "2024-03-02")[original].2, "unchanged");
    assert_eq!(w.rows::<RejectRow>("2024-03-01"), [], "an unresolved revisit is no reject");
}

/// A digest that contradicts what the named URL held is no evidence.
#[test]
fn a_revisit_whose_digest_contradicts() {
    let w = Workspace::new("");
    let fields = |url, digest| {
        [("WARC-Target-URI", url), ("WARC-Date", "2024-03-01T12:00:00Z"), ("WARC-Payload-Digest", digest)]
    };
    let page = http("200 OK", &[("Content-Type", "text/html")], b"<p>x");
    let records = [
        record("response", &fields("http://site.test/a", "sha1:AAAA"), &page),
        record(
            "revisit",
            &[
                fields("http://site.test/b", "sha1:BBBB").as_slice(),
                &[("WARC-Refers-To-Target-URI", "http://site.test/a")],
            ]
            .concat(),
            b"",
        ),
        record("revisit", &fields("http://site.test/c", "sha1:AAAA"), b""),
    ];
    put(&w.snapshot_dir(NIGHT), &[file("x.warc", records.concat())]);
    w.run();
    assert_eq!(pages(&w, NIGHT).into_keys().collect::<Vec<_>>(), ["http://site.test/a", "http://site.test/c"]);
}

/// One large file on two threads: the same tables as on one.
#[test]
fn one_large_file_on_many_threads() {
    let mut state = 7u64;
    let mut noise = |length: usize| -> String {
        let mut step = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + (state >> 59) as u8 % 26)
        };
        (0..length).map(|_| step()).collect()
    };
    let mut members = Vec::new();
    for i in 0..700 {
        let page = html("T", &noise(30_000), "/");
        members.extend(gzip(&response(&format!("http://site.test/{}", i % 600), page.as_bytes())));
    }
    assert!(members.len() > 10 << 20, "{}", members.len());
    // Sound, and with damage in its first part, which has it read again in one piece.
    let mut damaged = members.clone();
    damaged[1 << 20] ^= 0x55;
    for (members, rejected) in [(members, 0), (damaged, 1)] {
        let mut tables = Vec::new();
        for threads in ["1", "4"] {
            let w = Workspace::new("max_reject_share = 1.0");
            put(&w.snapshot_dir(NIGHT), &[file("x.warc.gz", members.clone())]);
            let ended = w.ratoon(&["run", "p.toml", "--threads", threads, "-v"]).expect(0);
            assert_eq!(ended.stderr.contains("read in one piece"), rejected == 1 && threads == "4", "{}", ended.stderr);
            // Each of the first hundred pages is there twice.
            assert_eq!((w.rows::<Page>(NIGHT).len(), w.rows::<RejectRow>(NIGHT).len()), (600, rejected));
            tables.push(w.table_bytes());
        }
        assert!(tables[0] == tables[1]);
    }
}
