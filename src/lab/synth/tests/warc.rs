//! WARC files, read back with a foreign reader.

use std::io::{BufReader, Cursor, Read};

use fastwarc::warc::iter::{ArchiveIterator, ArchiveIteratorOptions};
use fastwarc::warc::record::{AutoDecode, WarcRecordType};

use super::*;

struct Record {
    kind: WarcRecordType,
    url: String,
    date: String,
    profile: String,
    refers_to: Option<(String, String)>,
    digest: Option<String>,
    status: Option<u16>,
    /// Chunks and gzip undone.
    body: Vec<u8>,
    encodings: BTreeSet<&'static str>,
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let line = body.windows(2).position(|w| w == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&body[..line]).unwrap(), 16).unwrap();
        body = &body[line + 2..];
        if size == 0 {
            assert_eq!(body, b"\r\n");
            return out;
        }
        out.extend_from_slice(&body[..size]);
        assert_eq!(&body[size..size + 2], b"\r\n");
        body = &body[size + 2..];
    }
}

#[allow(clippy::redundant_closure_for_method_calls, reason = "the method's type is not public")]
fn read(file: &[u8]) -> Vec<Record> {
    let options = ArchiveIteratorOptions {
        quirks_mode: false,
        parse_http: true,
        decode_http_payload: AutoDecode::None,
        ..ArchiveIteratorOptions::default()
    };
    let mut records = Vec::new();
    for record in ArchiveIterator::with_options(BufReader::new(Cursor::new(file.to_vec())), options) {
        let record = record.unwrap();
        let mut record = record.borrow_mut();
        let header = |name: &str| record.headers().get(name).map(std::borrow::Cow::into_owned);
        let bare = |text: String| text.trim_matches(['<', '>']).to_owned();
        let http = |name: &str| record.http_headers().and_then(|h| h.get(name).map(std::borrow::Cow::into_owned));
        let refers_to = header("WARC-Refers-To-Target-URI").map(bare).zip(header("WARC-Refers-To-Date"));
        let mut encodings = BTreeSet::new();
        let (chunked, gzip) = (http("Transfer-Encoding").is_some(), http("Content-Encoding").is_some());
        let length = http("Content-Length").map(|text| text.parse::<usize>().unwrap());
        let mut read = Record {
            kind: record.record_type(),
            url: header("WARC-Target-URI").map(bare).unwrap_or_default(),
            date: header("WARC-Date").unwrap(),
            profile: header("WARC-Profile").unwrap_or_default(),
            refers_to,
            digest: header("WARC-Payload-Digest"),
            status: record.http_headers().and_then(|h| h.status_code()),
            body: Vec::new(),
            encodings: BTreeSet::new(),
        };
        record.reader_mut().unwrap().read_to_end(&mut read.body).unwrap();
        if read.kind == WarcRecordType::Response && read.status != Some(304) {
            if chunked {
                encodings.insert("chunked");
                read.body = unchunked(&read.body);
            } else {
                assert_eq!(length, Some(read.body.len()));
            }
            assert_eq!(read.digest.as_deref(), Some(sha1_of(&read.body).as_str()));
            if gzip {
                encodings.insert("gzip");
                let mut plain = Vec::new();
                flate2::read::GzDecoder::new(read.body.as_slice()).read_to_end(&mut plain).unwrap();
                read.body = plain;
            }
        }
        read.encodings = encodings;
        records.push(read);
    }
    records
}

/// Through a hexadecimal detour, to check the base 32 of the writer.
fn sha1_of(bytes: &[u8]) -> String {
    use sha1::Digest as _;
    let hash = sha1::Sha1::digest(bytes);
    let bits: String = hash.iter().map(|byte| format!("{byte:08b}")).collect();
    let letter = |five: &[u8]| {
        let value = usize::from_str_radix(std::str::from_utf8(five).unwrap(), 2).unwrap();
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[value])
    };
    format!("sha1:{}", bits.as_bytes().chunks(5).map(letter).collect::<String>())
}

#[test]
fn a_foreign_reader_finds_every_capture() {
    for layout in [Layout::Warc, Layout::WarcPlain] {
        let params = Params { layout, snapshots: 6, ..small() };
        let site = Site::new(params.clone()).unwrap();
        let files = written(&params);
        let mut kinds = BTreeMap::<String, u32>::new();
        // Full responses so far: (URL, date) to body and digest.
        let mut stored = BTreeMap::new();
        for night in 0..6 {
            let id = site.snapshot_id(night);
            let ending = if layout == Layout::Warc { ".gz" } else { "" };
            let records = read(&files[&(Root::Snapshots, format!("{id}/crawl-00000.warc{ending}"))]);
            let captures = site.snapshot(night);
            let answers: Vec<_> = records
                .iter()
                .filter(|r| matches!(r.kind, WarcRecordType::Response | WarcRecordType::Revisit))
                .collect();
            assert_eq!(answers.len(), captures.len());
            for record in &records {
                *kinds
                    .entry(format!("{:?} {}", record.kind, record.profile.rsplit('/').next().unwrap()))
                    .or_default() += 1;
                for encoding in &record.encodings {
                    *kinds.entry((*encoding).to_owned()).or_default() += 1;
                }
            }
            for (record, capture) in answers.iter().zip(&captures) {
                assert_eq!(record.url, capture.url);
                assert_eq!(record.date, capture.fetched_at.to_string());
                match record.kind {
                    WarcRecordType::Response if record.status == Some(304) => {
                        *kinds.entry("304".to_owned()).or_default() += 1;
                        assert!(record.body.is_empty());
                    }
                    WarcRecordType::Response => {
                        assert_eq!(record.status, Some(capture.status));
                        assert_eq!(record.body, capture.body);
                        stored.insert(
                            (record.url.clone(), record.date.clone()),
                            (record.body.clone(), record.digest.clone()),
                        );
                    }
                    _ => {
                        // A revisit leads to a stored response with the same digest and the body of this capture.
                        let (body, digest) = &stored[record.refers_to.as_ref().unwrap()];
                        assert_eq!((body, digest), (&capture.body, &record.digest));
                        if record.refers_to.as_ref().unwrap().0 != record.url {
                            *kinds.entry("revisit of another URL".to_owned()).or_default() += 1;
                        }
                    }
                }
            }
        }
        for wanted in [
            "WarcInfo ",
            "Request ",
            "Metadata ",
            "Response ",
            "Revisit identical-payload-digest",
            "Revisit server-not-modified",
            "304",
            "gzip",
            "chunked",
        ] {
            assert!(kinds.get(wanted).is_some_and(|&count| count > 2), "{wanted}: {kinds:?}");
        }
    }
}
