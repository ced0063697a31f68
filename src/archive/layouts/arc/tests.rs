use super::*;
use crate::lab::archives::samples::{arc_record, arc_start, gzip, http, noise};
use crate::model::Reject;

fn read(file: &[u8]) -> (Vec<RawCapture>, Vec<Reject>) {
    let (mut captures, mut rejects) = (Vec::new(), Vec::new());
    for item in Records::of(file.to_vec(), &Arc, "f.arc") {
        match item {
            Ok(capture) => captures.push(capture),
            Err(reject) => rejects.push(reject),
        }
    }
    (captures, rejects)
}

fn body(capture: &RawCapture) -> &[u8] {
    match &capture.body {
        Body::Bytes(bytes) => bytes,
        Body::File(_) | Body::None => b"",
    }
}

/// As they are, a gzip member for each, one for all.
fn packings(records: &[Vec<u8>]) -> [Vec<u8>; 3] {
    let members: Vec<_> = records.iter().map(|record| gzip(record)).collect();
    [records.concat(), members.concat(), gzip(&records.concat())]
}

fn page(text: &[u8]) -> Vec<u8> {
    let fields = [("Content-Type", "text/html; charset=latin1"), ("Last-Modified", "Thu, 29 Feb 2001 10:00:00 GMT")];
    http("200 OK", &fields, text)
}

#[test]
fn records_arrive_whole() {
    let block = http("200 OK", &[("Content-Type", "text/html; charset=latin1"), ("ETag", "x")], b"<p>hello\n\n");
    let records = [
        arc_start(),
        arc_record("http://a.org/with space", &block),
        arc_record("dns:a.org", b"20010301120000\na.org. 1 IN A 1.2.3.4\n"),
        arc_record("http://a.org/old", b"<p>no header at all"),
        arc_record("http://a.org/empty", b""),
        arc_record("http://a.org/304", &http("304 Not Modified", &[], b"")),
    ];
    for file in packings(&records) {
        let (captures, rejects) = read(&file);
        assert_eq!(rejects, []);
        let [spaced, old, empty, unmodified] = captures.as_slice() else { panic!("{captures:?}") };
        assert_eq!(
            (spaced.url.as_str(), spaced.status, body(spaced)),
            ("http://a.org/with space", Some(200), b"<p>hello\n\n".as_slice())
        );
        assert_eq!(spaced.content_type.as_deref(), Some("text/html; charset=latin1"));
        assert_eq!((spaced.etag.as_deref(), spaced.truncated.as_deref()), (Some("x"), None));
        let (time, source) = spaced.fetched_at.unwrap();
        assert_eq!((time.to_string().as_str(), source), ("2001-03-01T12:00:00Z", TimeSource::Header));
        assert_eq!(
            (old.status, old.content_type.as_deref(), body(old)),
            (None, Some("text/html"), b"<p>no header at all".as_slice())
        );
        assert_eq!((empty.status, body(empty)), (None, b"".as_slice()));
        assert!(unmodified.status == Some(304) && matches!(unmodified.body, Body::None));
    }
}

#[test]
fn offsets_are_those_of_records_or_members() {
    let records = [arc_start(), arc_record("http://a/1", &page(b"one")), arc_record("http://a/2", &page(b"two"))];
    let offsets = |file: &[u8]| read(file).0.iter().map(|c| c.source_offset).collect::<Vec<_>>();
    let [plain, members, whole] = packings(&records);
    let after = |first: usize, second: usize| vec![first as u64, (first + second) as u64];
    assert_eq!(offsets(&plain), after(records[0].len(), records[1].len()));
    assert_eq!(offsets(&members), after(gzip(&records[0]).len(), gzip(&records[1]).len()));
    assert_eq!(offsets(&whole), [0, 0]);
}

/// A file without the record that describes it: the second half of a split one.
#[test]
fn files_without_a_start() {
    let (captures, rejects) = read(&arc_record("http://a/", &page(b"x")));
    assert_eq!((captures.len(), rejects.len()), (1, 0));
    let (captures, rejects) = read(b"nothing of the kind");
    assert_eq!((captures.len(), rejects[0].reason.as_str()), (0, "no ARC record found"));
}

#[test]
fn wrong_lengths_cost_one_record() {
    let good = arc_record("http://good/", &page(b"g"));
    let lie = |length: usize| {
        let block = page(b"body of the liar");
        [format!("http://lie/ 1.2.3.4 20010301120000 text/html {length}\n").as_bytes(), &block, b"\n"].concat()
    };
    for length in [1_000_000, 5_000_000_000] {
        let records = [arc_start(), good.clone(), lie(length), good.clone()];
        let [plain, members, _] = packings(&records);
        for file in [plain, members] {
            let (captures, rejects) = read(&file);
            let whole: Vec<_> = captures.iter().filter(|c| c.truncated.is_none()).map(|c| c.url.as_str()).collect();
            assert_eq!(whole, ["http://good/", "http://good/"], "{length}");
            assert_eq!((rejects.len(), rejects[0].url.as_deref()), (1, Some("http://lie/")), "{rejects:?}");
        }
    }
    let (captures, rejects) = read(&[arc_start(), lie(20), good].concat());
    assert_eq!(captures.last().unwrap().url, "http://good/");
    assert!(rejects.iter().any(|reject| reject.reason.contains("no ARC record")), "{rejects:?}");
}

#[test]
fn cut_files_keep_what_came_before() {
    let url = |i: usize| format!("http://a/{i}");
    let mut records = vec![arc_start()];
    records.extend((0..5).map(|i| arc_record(&url(i), &page(&noise(i + 1, 900)))));
    for file in packings(&records) {
        for cut in (1..file.len()).step_by(97) {
            let (captures, rejects) = read(&file[..cut]);
            for (i, capture) in captures.iter().filter(|c| c.truncated.is_none()).enumerate() {
                assert_eq!((capture.url.clone(), body(capture)), (url(i), noise(i + 1, 900).as_slice()), "{cut}");
            }
            assert!(rejects.len() <= 1, "{cut}: {rejects:?}");
        }
    }
}
