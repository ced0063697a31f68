//! Small archives as their writers leave them: one subject of the fuzzer for each layout, and for each way to pack it
//! that is read by other code.

use std::path::PathBuf;

use crate::model::Rng;

use super::Files;
use super::samples::{
    Packed, arc_record, arc_start, cached, conversion, gzip, http, noise, record, response, zip, zstd_file, zstd_frame,
};

/// What is fuzzed: a way to make archives.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub name: &'static str,
    /// Tells subjects apart where they share a seed.
    number: u64,
    make: fn(&mut Rng, Harm) -> Files,
}

/// What is done to a record or an entry before it is packed: a checksum of what is packed does not tell it.
pub(super) type Harm = fn(&mut Vec<u8>, &mut Rng);

pub(crate) const SUBJECTS: [Subject; 8] = [
    Subject { name: "warc", number: 0, make: warc },
    Subject { name: "warc-zst", number: 1, make: warc_zst },
    Subject { name: "wacz", number: 2, make: wacz },
    Subject { name: "httrack", number: 3, make: httrack },
    Subject { name: "arc", number: 4, make: arc },
    Subject { name: "wet", number: 5, make: wet },
    Subject { name: "mirror", number: 6, make: mirror },
    Subject { name: "manifest", number: 7, make: manifest },
];

impl Subject {
    /// Decides a round of a seed.
    pub(super) fn rng(&self, seed: u64, round: u64) -> Rng {
        Rng::of_round(seed ^ (self.number << 56), round)
    }

    /// A small archive as its writer leaves it.
    pub(super) fn sound(&self, rng: &mut Rng) -> Files {
        (self.make)(rng, |_, _| ())
    }

    /// The same of harmed records.
    pub(super) fn harmed(&self, rng: &mut Rng, harm: Harm) -> Files {
        (self.make)(rng, harm)
    }
}

fn file(name: &str, bytes: Vec<u8>) -> (PathBuf, Vec<u8>) {
    (PathBuf::from(name), bytes)
}

fn body(rng: &mut Rng) -> Vec<u8> {
    let most = if rng.index(8) == 0 { 20_000 } else { 300 };
    let length = rng.index(most);
    let noise = noise(rng.index(1000), length);
    match rng.index(3) {
        0 => [b"<title>T</title><base href='/b/'><p>One <a href='x?y'>two</a> ".as_slice(), &noise].concat(),
        _ => noise,
    }
}

fn url(rng: &mut Rng) -> String {
    let path = *rng.choose(&["", "a", "a b", "x?y=1", "%41", "\u{e9}", "../b", "index.html"]);
    format!("{}a.org/{path}", rng.choose(&["http://", "https://", "http://u:p@", "ftp://", "HTTP://"]))
}

fn warc_records(rng: &mut Rng, harm: Harm) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    for _ in 0..=rng.index(6) {
        let (url, body) = (url(rng), body(rng));
        let fields = [("WARC-Target-URI", url.as_str()), ("WARC-Date", "2024-03-01T12:00:00Z")];
        records.push(match rng.index(8) {
            0 => record("warcinfo", &[], b"software: x\r\n"),
            1 => record("request", &fields, b"GET / HTTP/1.1\r\n\r\n"),
            2 => record("revisit", &fields, &http("200 OK", &[], b"")),
            3 => record("resource", &fields, &body),
            4 => record("response", &fields, &http("200 OK", &[("Content-Encoding", "gzip")], &gzip(&body))),
            5 => {
                let chunks = [format!("{:x}\r\n", body.len()).as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
                record("response", &fields, &http("200 OK", &[("Transfer-Encoding", "chunked")], &chunks))
            }
            _ => response(&url, &body),
        });
    }
    records.iter_mut().for_each(|record| harm(record, rng));
    records
}

fn pack(records: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    match rng.index(4) {
        0 => records.concat(),
        1 => gzip(&records.concat()),
        _ => records.iter().flat_map(|record| gzip(record)).collect(),
    }
}

fn pack_zstd(records: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    match rng.index(4) {
        0 => zstd_frame(&records.concat(), b""),
        1 => zstd_file(records, b"", false),
        _ => zstd_file(records, b"WARC/1.0 200 OK Content-Length", rng.index(2) == 0),
    }
}

fn warc(rng: &mut Rng, harm: Harm) -> Files {
    vec![file("x.warc.gz", pack(&warc_records(rng, harm), rng))]
}

fn warc_zst(rng: &mut Rng, harm: Harm) -> Files {
    vec![file("x.warc.zst", pack_zstd(&warc_records(rng, harm), rng))]
}

fn wacz(rng: &mut Rng, harm: Harm) -> Files {
    let mut entries = Vec::new();
    for name in ["archive/a.warc.gz", "archive/b.warc", "pages/pages.jsonl", "indexes/index.cdx.gz"] {
        if rng.index(4) > 0 {
            let mut body = pack(&warc_records(rng, harm), rng);
            harm(&mut body, rng);
            let (deflated, streamed) = (rng.index(2) == 0, rng.index(2) == 0);
            entries.push(Packed { name: name.to_owned(), extra: Vec::new(), body, deflated, streamed });
        }
    }
    vec![file("x.wacz", zip(&entries))]
}

fn httrack(rng: &mut Rng, harm: Harm) -> Files {
    let mut entries = Vec::new();
    for _ in 0..=rng.index(5) {
        let (url, body) = (url(rng), body(rng));
        let inside = rng.index(3) > 0;
        let save = *rng.choose(&["a.org/a.html", "a.org/b.html", "../x", ""]);
        let status = *rng.choose(&["200 OK", "404 Not Found", "301 Moved", "-1 Error"]);
        entries.push(cached(&url, status, "text/html", save, inside.then_some(body.as_slice())));
    }
    entries.iter_mut().for_each(|entry| {
        harm(&mut entry.extra, rng);
        harm(&mut entry.body, rng);
    });
    vec![
        file("hts-cache/new.zip", zip(&entries)),
        file("a.org/a.html", body(rng)),
        file("a.org/b.html", b"<p><!-- Mirrored from a by HTTrack Website Copier/3 -->x".to_vec()),
    ]
}

fn arc(rng: &mut Rng, harm: Harm) -> Files {
    let mut records = vec![arc_start()];
    for _ in 0..=rng.index(5) {
        let (url, body) = (url(rng), body(rng));
        let block = if rng.index(3) == 0 { body } else { http("200 OK", &[("ETag", "x")], &body) };
        records.push(arc_record(&url, &block));
    }
    records.iter_mut().for_each(|record| harm(record, rng));
    vec![file("x.arc.gz", pack(&records, rng))]
}

fn wet(rng: &mut Rng, harm: Harm) -> Files {
    let mut records = vec![record("warcinfo", &[], b"software: x\r\n")];
    for _ in 0..=rng.index(5) {
        let (url, body) = (url(rng), body(rng));
        records.push(conversion(&url, &String::from_utf8_lossy(&body)));
    }
    records.iter_mut().for_each(|record| harm(record, rng));
    vec![file("x.warc.wet.gz", pack(&records, rng))]
}

fn mirror(rng: &mut Rng, _: Harm) -> Files {
    let names = [
        "a.org/index.html",
        "a.org/index.html.orig",
        "a.org/b.php?x=1.html",
        "a.org/b.php?x=1",
        "a.org/sub.html",
        "a.org/sub.orig",
        "b.org:8080/x/y.html",
        "https/c.org/z",
        "hts-log.txt",
    ];
    let mut files = vec![file("a.org/page.html", b"<p>page".to_vec())];
    for name in names {
        if rng.index(2) == 0 {
            let page = body(rng);
            let headed = rng.index(3) == 0;
            let fields = [("Date", "Fri, 01 Mar 2024 12:00:00 GMT"), ("Content-Type", "text/html")];
            files.push(file(name, if headed { http("200 OK", &fields, &page) } else { page }));
        }
    }
    files
}

fn manifest(rng: &mut Rng, harm: Harm) -> Files {
    let mut lines = String::new();
    for i in 0..=rng.index(6) {
        let name = *rng.choose(&["a.html", "sub/b.html", "./c", "../d", "/etc/hostname", "x.warc"]);
        let url = url(rng);
        lines += &format!(
            "{{\"url\":\"{url}\",\"file\":\"{name}\",\"status\":200,\"fetched_at\":\"2024-03-01T12:00:0{i}Z\"}}\n"
        );
    }
    let mut files = vec![file("manifest.jsonl", lines.into_bytes())];
    files.extend(["a.html", "sub/b.html", "c"].map(|name| file(name, body(rng))));
    files.push(file("x.warc", pack(&warc_records(rng, harm), rng)));
    files
}
