use std::io::{Cursor, Read as _};

use fastwarc::warc::iter::{ArchiveIterator, ArchiveIteratorOptions};
use fastwarc::warc::record::WarcRecordType;
use proptest::prelude::*;

use super::*;
use crate::archive::layouts::wet::Wet;
use crate::archive::records::RecordFile;
use crate::archive::records::source::Source;
use crate::archive::records::stream::Stream;
use crate::lab::archives::samples::{conversion, gzip, http, noise, record, response, zstd_file, zstd_frame};
use crate::model::Reject;

fn open(file: &[u8]) -> Records {
    Records::of(file.to_vec(), &Warc, "f")
}

fn read(file: &[u8]) -> (Vec<RawCapture>, Vec<Reject>) {
    let (mut captures, mut rejects) = (Vec::new(), Vec::new());
    for item in open(file) {
        match item {
            Ok(capture) => captures.push(capture),
            Err(reject) => rejects.push(reject),
        }
    }
    (captures, rejects)
}

fn only(file: &[u8]) -> RawCapture {
    let (mut captures, rejects) = read(file);
    assert!(rejects.is_empty() && captures.len() == 1, "{captures:?} {rejects:?}");
    captures.remove(0)
}

fn urls(captures: &[RawCapture]) -> Vec<&str> {
    captures.iter().map(|capture| capture.url.as_str()).collect()
}

fn body(capture: &RawCapture) -> &[u8] {
    match &capture.body {
        Body::Bytes(bytes) => bytes,
        Body::File(_) | Body::None => b"",
    }
}

/// Three ways to store records: as they are, a gzip member for each, one for all.
fn packings(records: &[Vec<u8>]) -> [Vec<u8>; 3] {
    let members: Vec<_> = records.iter().map(|record| gzip(record)).collect();
    [records.concat(), members.concat(), gzip(&records.concat())]
}

#[test]
fn a_response_arrives_whole() {
    let fields = [
        ("Content-Type", "text/html; charset=utf-8"),
        ("content-encoding", "gzip"),
        ("Transfer-Encoding", "chunked"),
        ("Last-Modified", "Thu, 29 Feb 2024 10:00:00 GMT"),
        ("ETag", "\"abc\""),
    ];
    let block = http("200 OK", &fields, b"5\r\nhello\r\n0\r\n\r\n");
    let fields = [
        ("WARC-Target-URI", "<http://a.org/x>"),
        ("WARC-Date", "2024-03-01T12:00:00.5Z"),
        ("WARC-Payload-Digest", "sha1:XYZ"),
        ("Content-Type", "application/http;msgtype=response"),
    ];
    let info = record("warcinfo", &[], b"software: x\r\n");
    for (file, offset) in packings(&[info.clone(), record("response", &fields, &block)]).iter().zip([
        info.len() as u64,
        gzip(&info).len() as u64,
        0,
    ]) {
        let capture = only(file);
        assert_eq!(capture.url, "http://a.org/x");
        let (time, source) = capture.fetched_at.unwrap();
        assert_eq!((time.to_string().as_str(), source), ("2024-03-01T12:00:00.5Z", TimeSource::Header));
        assert_eq!(capture.status, Some(200));
        assert_eq!(capture.content_type.as_deref(), Some("text/html; charset=utf-8"));
        assert_eq!(capture.content_encoding.as_deref(), Some("gzip"));
        assert_eq!(capture.transfer_encoding.as_deref(), Some("chunked"));
        assert_eq!(capture.last_modified.unwrap().0.to_string(), "2024-02-29T10:00:00Z");
        assert_eq!(capture.etag.as_deref(), Some("\"abc\""));
        assert_eq!(capture.archive_digest.as_deref(), Some("sha1:XYZ"));
        assert_eq!((capture.revisit.clone(), capture.truncated.clone()), (None, None));
        assert_eq!((capture.source_file.as_str(), capture.source_offset), ("f", offset));
        assert_eq!(body(&capture), b"5\r\nhello\r\n0\r\n\r\n");
    }
}

#[test]
fn revisits_refer() {
    let fields = [
        ("WARC-Target-URI", "http://a.org/"),
        ("WARC-Refers-To-Target-URI", "<http://a.org/old>"),
        ("WARC-Refers-To-Date", "2024-02-01T00:00:00Z"),
        ("WARC-Payload-Digest", "sha1:XYZ"),
    ];
    let block = http("200 OK", &[("Content-Length", "4000"), ("Content-Type", "text/html")], b"");
    let capture = only(&record("revisit", &fields, &block));
    let revisit = capture.revisit.clone().unwrap();
    assert_eq!(revisit.refers_to_url.as_deref(), Some("http://a.org/old"));
    assert_eq!(revisit.refers_to_date.unwrap().to_string(), "2024-02-01T00:00:00Z");
    assert_eq!((capture.status, capture.content_type.as_deref()), (Some(200), Some("text/html")));
    assert!(matches!(capture.body, Body::None));
    assert_eq!((capture.truncated, capture.fetched_at), (None, None));
    let cut_on_purpose = [fields[0], ("WARC-Truncated", "length")];
    assert_eq!(only(&record("revisit", &cut_on_purpose, &block)).truncated, None);
    let bare = only(&record("revisit", &fields[..1], b""));
    assert_eq!((bare.revisit, bare.status), (Some(Revisit::default()), None));
}

#[test]
fn resources_and_the_unmodified() {
    let fields = [("WARC-Target-URI", "https://a.org/x.txt"), ("Content-Type", "text/plain")];
    let capture = only(&record("resource", &fields, b"HTTP/1.1 200 is how this text starts"));
    assert_eq!((capture.status, capture.content_type.as_deref()), (None, Some("text/plain")));
    assert_eq!(body(&capture), b"HTTP/1.1 200 is how this text starts");
    let block = http("304 Not Modified", &[("Content-Length", "10")], b"");
    let capture = only(&record("response", &fields[..1], &block));
    assert!(matches!(capture.body, Body::None) && capture.truncated.is_none());
    assert_eq!(capture.status, Some(304));
}

#[test]
fn what_is_no_capture_is_passed_over() {
    let web = [("WARC-Target-URI", "http://a.org/")];
    let records = [
        record("warcinfo", &[], b"x: y\r\n"),
        record("request", &web, b"GET / HTTP/1.1\r\n\r\n"),
        record("metadata", &web, b"x: y\r\n"),
        record("conversion", &web, b"text"),
        record("response", &[("WARC-Target-URI", "dns:a.org")], b"a.org. 1 IN A 1.2.3.4"),
        record("resource", &[("WARC-Target-URI", "metadata://gnu.org/log")], b"log"),
        record("something", &web, b""),
        response("http://b.org/", b"b"),
    ];
    for file in packings(&records) {
        assert_eq!(only(&file).url, "http://b.org/");
    }
}

#[test]
fn records_without_the_needful() {
    let good = response("http://good/", b"g");
    let bad = [
        (record("response", &[], &http("200 OK", &[], b"x")), "WARC-Target-URI"),
        (record("response", &[("WARC-Target-URI", "<>")], b""), "WARC-Target-URI"),
        (record("response", &[("WARC-Target-URI", "http://a/")], b"no http at all"), "not HTTP"),
        (record("response", &[("WARC-Target-URI", "http://a/")], &vec![b'x'; 400_000]), "too long"),
        (b"WARC/1.0\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n".to_vec(), "WARC-Type"),
        (b"WARC/1.0\r\nWARC-Type: response\r\n\r\nabc\r\n\r\n".to_vec(), "Content-Length"),
        (b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: -3\r\n\r\nabc\r\n\r\n".to_vec(), "Content-Length"),
        (b"noise, not a record\r\n".to_vec(), "no WARC record"),
        ([b"WARC/1.0\r\n".as_slice(), &vec![b'x'; 400_000], b"\r\n\r\n"].concat(), "header is too long"),
    ];
    for (bad, reason) in bad {
        let offset = good.len() as u64;
        let file = [good.clone(), bad, good.clone()].concat();
        let (captures, rejects) = read(&file);
        assert_eq!(urls(&captures), ["http://good/", "http://good/"], "{reason}: {rejects:?}");
        let [reject] = rejects.as_slice() else { panic!("{reason}: {rejects:?}") };
        assert!(reject.reason.contains(reason), "{reject:?}");
        assert_eq!(reject.source_offset, Some(offset));
    }
}

#[test]
fn writers_differ() {
    // Line feeds only, other cases, blank lines before a record, a version of its own, no zone, interim responses.
    let file = concat!(
        "\r\n\r\nWARC/0.18\nwarc-type: Response\nwarc-target-uri: http://a.org/\nWARC-DATE: 2009-03-01T12:00:00\n",
        "content-length: 71\n\n",
        "HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\nContent-Type: text/plain\n\nhello\n\n\n\n\n",
        "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Target-URI: http://b.org/\r\nWARC-Date: 20090301120000\r\n",
        "Content-Length: 0\r\n\r\n\r\n\r\n",
    );
    let (captures, rejects) = read(file.as_bytes());
    assert_eq!((urls(&captures), rejects.len()), (vec!["http://a.org/", "http://b.org/"], 0));
    assert_eq!((captures[0].status, body(&captures[0])), (Some(200), b"hello\n".as_slice()));
    assert_eq!(captures[0].fetched_at, captures[1].fetched_at);
    assert_eq!(captures[0].fetched_at.unwrap().0.to_string(), "2009-03-01T12:00:00Z");
}

#[test]
fn a_first_record_without_length() {
    let info = b"WARC/1.0\r\nWARC-Type: warcinfo\r\n\r\nsoftware: x\r\nformat: y\r\n\r\n".to_vec();
    let (captures, rejects) = read(&[info, response("http://a/", b"a")].concat());
    assert_eq!((captures.len(), rejects.len()), (1, 0));
}

#[test]
fn bodies_known_to_be_short() {
    let capture_of = |warc: &[(&str, &str)], fields: &[(&str, &str)], body: &[u8]| {
        let warc = [&[("WARC-Target-URI", "http://a/")], warc].concat();
        only(&record("response", &warc, &http("200 OK", fields, body)))
    };
    let truncated = |fields: &[(&str, &str)], body: &[u8]| capture_of(&[], fields, body).truncated;
    assert!(truncated(&[("Content-Length", "10")], b"123456789").unwrap().contains("9 of the 10"));
    assert_eq!(truncated(&[("Content-Length", "9")], b"123456789"), None);
    assert_eq!(truncated(&[("Content-Length", "8")], b"123456789"), None);
    assert_eq!(truncated(&[("Content-Length", "x")], b"123456789"), None);
    assert_eq!(truncated(&[("Content-Length", "99"), ("Transfer-Encoding", "chunked")], b"123"), None);
    // Decoded by the archive, header left as it was.
    assert_eq!(truncated(&[("Content-Length", "25"), ("Content-Encoding", "gzip")], b"hello"), None);
    assert!(truncated(&[("Content-Length", "25"), ("Content-Encoding", "gzip")], b"\x1f\x8bhello").is_some());
    assert!(truncated(&[("Content-Length", "25"), ("Content-Encoding", "gzip")], b"").is_some());
    let capture = capture_of(&[("WARC-Truncated", "length")], &[], b"123");
    assert_eq!(capture.truncated.as_deref(), Some("WARC-Truncated: length"));
    assert!(capture_of(&[("WARC-Segment-Number", "1")], &[], b"123").truncated.unwrap().contains("segment 1"));
}

#[test]
fn lengths_that_lie() {
    let lie = |length: &str| {
        let text = String::from_utf8(response("http://lie/", b"body")).unwrap();
        let (head, rest) = text.split_once("Content-Length: ").unwrap();
        let (_, tail) = rest.split_once("\r\n").unwrap();
        format!("{head}Content-Length: {length}\r\n{tail}").into_bytes()
    };
    let good = response("http://good/", b"g");
    for length in ["1000000000000000", "18446744073709551615", "5000"] {
        let [plain, members, whole] = packings(&[good.clone(), lie(length), good.clone()]);
        for (file, offset) in [(plain, good.len()), (members, gzip(&good).len())] {
            let (captures, rejects) = read(&file);
            assert_eq!(captures.first().map(|c| c.url.as_str()), Some("http://good/"));
            assert_eq!(captures.last().map(|c| c.url.as_str()), Some("http://good/"), "{length}");
            assert!(captures[1..captures.len() - 1].iter().all(|capture| capture.truncated.is_some()));
            assert_eq!(rejects.len(), 1, "{rejects:?}");
            assert_eq!(rejects[0].source_offset, Some(offset as u64));
            assert_eq!(rejects[0].url.as_deref(), Some("http://lie/"));
        }
        // Behind a lie in one member for all, nothing can be told apart.
        let (captures, rejects) = read(&whole);
        assert_eq!((captures[0].url.as_str(), rejects.len()), ("http://good/", 1));
    }
    // Too short: the rest of the body is noise between records.
    let (captures, rejects) = read(&[lie("65"), good].concat());
    assert_eq!(urls(&captures), ["http://lie/", "http://good/"]);
    assert!(captures[0].truncated.is_some() && rejects.len() == 1, "{rejects:?}");
    assert_eq!(rejects[0].reason, "4 bytes here are no WARC record");
}

#[test]
fn huge_records_are_passed_over() {
    let records = [response("http://a/", &noise(1, 300_000)), response("http://b/", b"b")];
    for file in packings(&records) {
        let mut reader = open(&file);
        reader.max_record = 200_000;
        let reject = reader.next().unwrap().unwrap_err();
        assert!(reject.reason.contains("over the limit") && reject.url.as_deref() == Some("http://a/"), "{reject:?}");
        assert_eq!(reader.next().unwrap().unwrap().url, "http://b/");
        assert!(reader.next().is_none());
    }
}

#[test]
fn files_without_records() {
    let page = b"<html>".repeat(1000);
    for file in [b"".to_vec(), page.clone(), gzip(&page), gzip(b""), vec![0; 5000], b"WARC/".to_vec()] {
        let (captures, rejects) = read(&file);
        assert_eq!((captures.len(), rejects.len()), (0, 1), "{rejects:?}");
        assert_eq!(rejects[0].reason, "no WARC record found");
    }
}

/// Cut anywhere: what lies before the cut is read, and one reject says where the cut is.
#[test]
fn cut_files() {
    let url = |i: usize| format!("http://a.org/{i}");
    let info = record("warcinfo", &[], b"software: x\r\n");
    let pages = (0..8).map(|i| response(&url(i), &noise(i + 1, 100 + 700 * i)));
    let records: Vec<_> = std::iter::once(info).chain(pages).collect();
    for (packing, file) in packings(&records).into_iter().enumerate() {
        // Ends of the blocks, and of the records with what follows the block.
        let sizes = records.iter().map(|record| if packing == 0 { record.len() } else { gzip(record).len() });
        let ends: Vec<usize> = sizes
            .scan(0, |end, size| {
                Some({
                    *end += size;
                    *end
                })
            })
            .collect();
        for cut in (3..file.len()).step_by(101).chain(file.len() - 30..file.len()) {
            let (captures, rejects) = read(&file[..cut]);
            let whole: Vec<_> = captures.iter().filter(|capture| capture.truncated.is_none()).collect();
            for (i, capture) in whole.iter().enumerate() {
                assert_eq!((capture.url.clone(), body(capture)), (url(i), noise(i + 1, 100 + 700 * i).as_slice()));
            }
            assert!(captures.len() - whole.len() <= 1);
            if packing == 2 {
                assert_eq!((rejects.len(), rejects[0].source_offset), (1, Some(0)), "{cut}: {rejects:?}");
                continue;
            }
            let done = ends.iter().filter(|&&end| end <= cut).count();
            assert!(whole.len() + 1 >= done, "{cut}");
            let start = if done == 0 { 0 } else { ends[done - 1] };
            // Blank lines may be missing: nothing is lost with them.
            let blank = packing == 0 && cut + 4 >= ends[done];
            if cut == start || blank {
                assert!(rejects.is_empty(), "{cut}: {rejects:?}");
            } else if done == 0 && whole.is_empty() && packing == 0 && cut < 10 {
                assert_eq!(rejects[0].reason, "no WARC record found");
            } else {
                assert_eq!(rejects.len(), 1, "{cut}: {rejects:?}");
                assert_eq!(rejects[0].source_offset, Some(start as u64), "{cut}: {rejects:?}");
            }
        }
    }
}

/// One damaged byte costs the records of one member, no more.
#[test]
fn damaged_members() {
    let url = |i: usize| format!("http://a.org/{i}");
    let records: Vec<_> = (0..5).map(|i| response(&url(i), &noise(i + 1, 900))).collect();
    let members: Vec<_> = records.iter().map(|record| gzip(record)).collect();
    let file = members.concat();
    let start = members[0].len() + members[1].len();
    for at in (start..start + members[2].len()).step_by(7) {
        let mut file = file.clone();
        file[at] ^= 0x55;
        let (captures, rejects) = read(&file);
        let whole: Vec<_> = captures.iter().filter(|capture| capture.truncated.is_none()).cloned().collect();
        for i in [0, 1, 3, 4] {
            assert!(urls(&whole).contains(&url(i).as_str()), "{at}: {:?} {rejects:?}", urls(&whole));
        }
        // Bytes of a member's header that mean nothing can be damaged unseen.
        if whole.len() < 5 || body(&whole[2]) != noise(3, 900) {
            assert_eq!(rejects.len(), 1, "{at}: {rejects:?}");
            assert_eq!(rejects[0].source_offset, Some(start as u64), "{at}: {rejects:?}");
        }
    }
}

#[test]
fn a_clipped_file_continued_by_another() {
    let records: Vec<_> = (0..3).map(|i| gzip(&response("http://a/", &noise(i, 2000)))).collect();
    let file = [&records[0][..], &records[1][..900], &records[2][..]].concat();
    let (captures, rejects) = read(&file);
    let whole: Vec<_> = captures.iter().filter(|capture| capture.truncated.is_none()).map(body).collect();
    assert_eq!(whole, [noise(0, 2000), noise(2, 2000)]);
    assert_eq!((rejects.len(), rejects[0].source_offset), (1, Some(records[0].len() as u64)));
}

#[test]
fn an_unreadable_file_is_a_reject() {
    let source = Source::File("/no/such/file.warc".into());
    let mut reader = RecordFile::new(source, &Warc, "file.warc".to_owned());
    let reject = reader.next().unwrap().unwrap_err();
    assert!(reject.source_file == "file.warc" && reject.reason.contains("/no/such/file.warc"), "{reject:?}");
    assert!(reader.next().is_none());
}

/// As a frame for each record, with and without dictionary, plain and compressed, and as one frame for all.
fn zstd_packings(records: &[Vec<u8>]) -> [Vec<u8>; 4] {
    let words = records.concat();
    let raw = &words[..words.len().min(2000)];
    let whole = zstd_frame(&records.concat(), b"");
    [zstd_file(records, b"", false), zstd_file(records, raw, false), zstd_file(records, raw, true), whole]
}

#[test]
fn zstd_gives_what_gzip_gives() {
    let mut records = vec![record("warcinfo", &[], b"a: b\r\n")];
    records.extend((0..9).map(|i| response(&format!("http://a.org/{i}"), &noise(i, 20 + 30_000 * (i % 3)))));
    let [_, members, _] = packings(&records);
    let (expected, _) = read(&members);
    for (i, file) in zstd_packings(&records).into_iter().enumerate() {
        let (captures, rejects) = read(&file);
        assert_eq!(rejects, [], "{i}");
        assert_eq!(urls(&captures), urls(&expected), "{i}");
        assert!(captures.iter().zip(&expected).all(|(a, b)| body(a) == body(b)), "{i}");
        let starts: Vec<u64> = captures.iter().map(|capture| capture.source_offset).collect();
        let is_frame = |at: &u64| file[usize::try_from(*at).unwrap()..].starts_with(b"\x28\xb5\x2f\xfd");
        assert!(starts.iter().all(is_frame) && (i == 3 || starts.windows(2).all(|pair| pair[0] < pair[1])), "{i}");
    }
}

/// A dictionary that was trained, as archives have it: with tables, and an id that frames name.
#[test]
fn a_trained_dictionary() {
    let records: Vec<_> = (0..200).map(|i| response(&format!("http://a.org/{i}"), &noise(i, 300))).collect();
    let dictionary = zstd::dict::from_samples(&records, 4000).unwrap();
    for packed in [false, true] {
        let (captures, rejects) = read(&zstd_file(&records, &dictionary, packed));
        assert_eq!((captures.len(), rejects.len()), (200, 0));
        assert_eq!(body(&captures[7]), noise(7, 300));
    }
    // Without it no frame can be decoded: one reject says so, and no rubbish comes out.
    let file = zstd_file(&records, &dictionary, false);
    let (captures, rejects) = read(&file[8 + dictionary.len()..]);
    assert_eq!(captures.len(), 0);
    assert!(rejects[0].reason.contains("damaged zstd frame"), "{rejects:?}");
}

#[test]
fn cut_and_damaged_zstd() {
    let url = |i: usize| format!("http://a.org/{i}");
    let records: Vec<_> = (0..6).map(|i| response(&url(i), &noise(i + 1, 900))).collect();
    for file in zstd_packings(&records) {
        for cut in (1..file.len()).step_by(83) {
            // A file cut inside its dictionary cannot be opened.
            if Stream::new(Cursor::new(file[..cut].to_vec()), &Warc).is_err() {
                continue;
            }
            let (captures, rejects) = read(&file[..cut]);
            let whole: Vec<_> = captures.iter().filter(|capture| capture.truncated.is_none()).collect();
            for (i, capture) in whole.iter().enumerate() {
                assert_eq!((capture.url.clone(), body(capture)), (url(i), noise(i + 1, 900).as_slice()));
            }
            assert!(rejects.len() <= 1, "{cut}: {rejects:?}");
        }
    }
    let file = zstd_file(&records, b"", false);
    let start = 2 * file.len() / 6;
    for at in (start..start + 500).step_by(11) {
        let mut file = file.clone();
        file[at] ^= 0x55;
        let (captures, rejects) = read(&file);
        assert!((5..=6).contains(&captures.len()), "{at}: {} {rejects:?}", captures.len());
        assert_eq!(rejects.len(), 1, "{at}: {rejects:?}");
    }
}

#[test]
fn members_that_grow_without_measure() {
    // A record of 40 MB that is all zeros: more than a thousand times its compressed size.
    let big = response("http://big/", &vec![0; 40 << 20]);
    let good = response("http://good/", b"g");
    for file in [[gzip(&big), gzip(&good)].concat(), [zstd_frame(&big, b""), zstd_frame(&good, b"")].concat()] {
        let (captures, rejects) = read(&file);
        let whole: Vec<_> = captures.iter().filter(|capture| capture.truncated.is_none()).cloned().collect();
        // Deflate hardly reaches a thousand.
        assert!(urls(&whole).ends_with(&["http://good/"]), "{rejects:?}");
        assert!(whole.len() == 2 || rejects[0].reason.contains("times its size"), "{rejects:?}");
        let held: usize = captures.iter().map(|capture| body(capture).len()).sum();
        assert!(whole.len() == 2 || held <= 17 << 20, "{held}");
    }
}

#[test]
fn texts_of_wet_files() {
    let records =
        [record("warcinfo", &[], b"a: b\r\n"), conversion("http://a.org/", "text\n\u{e9}"), conversion("dns:a", "x")];
    let captures: Vec<_> = Records::of(records.concat(), &Wet, "f").map(Result::unwrap).collect();
    let [capture] = captures.as_slice() else { panic!("{captures:?}") };
    assert_eq!((capture.status, capture.content_type.as_deref()), (None, Some("text/plain")));
    assert_eq!(body(capture), "text\n\u{e9}".as_bytes());
    assert_eq!(capture.fetched_at.unwrap().1, TimeSource::Header);
}

/// The same file through a library: URL and body of each response.
fn oracle(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let options = ArchiveIteratorOptions { quirks_mode: true, ..Default::default() };
    let mut found = Vec::new();
    for record in ArchiveIterator::with_options(Cursor::new(file.to_vec()), options) {
        let record = record.unwrap();
        let mut record = record.borrow_mut();
        if record.record_type() == WarcRecordType::Response {
            let url = record.headers().get("WARC-Target-URI").unwrap().into_owned();
            let mut body = Vec::new();
            record.reader_mut().unwrap().read_to_end(&mut body).unwrap();
            found.push((url, body));
        }
    }
    found
}

proptest! {
    /// On sound files we read what the library reads, in all packings.
    #[test]
    fn sound_files_equal_the_library(
        bodies in proptest::collection::vec((0usize..1000, prop_oneof![0usize..300, 100_000usize..300_000]), 0..6),
        requests in any::<bool>(),
    ) {
        let mut records = vec![record("warcinfo", &[], b"a: b\r\n")];
        for (i, &(seed, length)) in bodies.iter().enumerate() {
            if requests {
                let request = record("request", &[("Content-Type", "application/http")], b"GET / HTTP/1.1\r\n\r\n");
                records.push(request);
            }
            records.push(response(&format!("http://a.org/{i}"), &noise(seed, length)));
        }
        for file in packings(&records) {
            let (captures, rejects) = read(&file);
            prop_assert!(rejects.is_empty(), "{:?}", rejects);
            let ours: Vec<_> = captures.iter().map(|c| (c.url.clone(), body(c).to_vec())).collect();
            prop_assert_eq!(ours, oracle(&file));
        }
    }

    /// Whatever bytes follow a good start, reading ends, and without a record there is a reject.
    #[test]
    fn any_bytes_come_to_an_end(
        start in prop_oneof![Just(&b"WARC/1.0\r\n"[..]), Just(&b"\x1f\x8b\x08"[..]), Just(&b""[..])],
        bytes in proptest::collection::vec(any::<u8>(), 0..3000),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        packing in 0usize..3,
    ) {
        let (captures, rejects) = read(&[start, &bytes].concat());
        prop_assert!(!rejects.is_empty() || !captures.is_empty());
        let records = [response("http://a/", &noise(1, 500)), response("http://b/", &bytes)];
        let mut file = packings(&records)[packing].clone();
        for (at, byte) in edits {
            let at = at.index(file.len());
            file[at] = byte;
        }
        let (captures, rejects) = read(&file);
        prop_assert!(captures.len() <= 100 && rejects.len() <= 100);
    }
}
