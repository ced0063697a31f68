//! Damaged archives without end: small sound ones of every layout, changed at random, read as ingest reads them.
//!
//! Sound archives are made and then broken, for random bytes would not get past the first look. Changes know a little of
//! what they break: they flip bits, cut, repeat and move pieces, splice archives into each other, and write other numbers
//! where lengths stand, in digits and in bytes. Everything follows from a seed: a failure names the round that shows it
//! again.
//!
//! A round fails if reading panics, takes long, hands out more bytes than the archive can hold, or if reading a file in
//! pieces gives something else than reading it whole without saying so.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::model::{Body, RawCapture, Reject, Timestamp};

use super::codec::{FREE, RATIO};
use super::detect::Part;
use super::record_file::RecordFile;
use super::samples::{
    Packed, arc_record, arc_start, cached, conversion, gzip, http, noise, record, response, zip, zstd_file, zstd_frame,
};
use super::split::split;
use super::{CaptureReader as _, Layout, SnapshotFolder};

/// A small archive that takes longer than this to read is a way to stop a run.
const MAX_TIME: Duration = Duration::from_secs(20);
/// Files are cut into pieces of this size, far below what is worth it.
const PIECE: u64 = 3000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Warc,
    WarcZst,
    Wacz,
    Httrack,
    Arc,
    Wet,
    Mirror,
    Manifest,
}

impl Subject {
    pub const ALL: [Self; 8] =
        [Self::Warc, Self::WarcZst, Self::Wacz, Self::Httrack, Self::Arc, Self::Wet, Self::Mirror, Self::Manifest];

    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subject| subject.as_str() == name)
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warc => "archive-warc",
            Self::WarcZst => "archive-warc-zst",
            Self::Wacz => "archive-wacz",
            Self::Httrack => "archive-httrack",
            Self::Arc => "archive-arc",
            Self::Wet => "archive-wet",
            Self::Mirror => "archive-mirror",
            Self::Manifest => "archive-manifest",
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub inputs: u64,
    pub bytes: u64,
    pub captures: u64,
    pub rejects: u64,
    /// Folders in which nothing could be read.
    pub unopened: u64,
    /// Most bytes of bodies that one input gave.
    pub most_bytes: u64,
    pub slowest: Duration,
    /// Round and what went wrong; the run stops there.
    pub broken: Option<(u64, String)>,
}

/// Runs rounds `from`, `from + 1`, … as long as `go_on(round)` says so, in a folder that is made and removed. `take` is
/// handed every capture.
pub fn fuzz(
    subject: Subject,
    seed: u64,
    from: u64,
    scratch: &Path,
    mut go_on: impl FnMut(u64) -> bool,
    mut take: impl FnMut(RawCapture),
) -> Report {
    let mut report = Report::default();
    let mut round = from;
    while go_on(round) {
        let mut rng = Rng::new(seed ^ ((subject as u64) << 56), round);
        let files = damaged(subject, &mut rng);
        let folder = scratch.join("snapshot");
        report.inputs += 1;
        let started = Instant::now();
        let outcome = write(&folder, &files).map_err(|error| error.to_string()).and_then(|bytes| {
            report.bytes += bytes;
            let reading = catch_unwind(AssertUnwindSafe(|| read(&folder, bytes, &mut report, &mut take)));
            reading.unwrap_or_else(|panic| {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                Err(format!("panic: {}", text.or(panic.downcast_ref::<String>().cloned()).unwrap_or_default()))
            })
        });
        let took = started.elapsed();
        report.slowest = report.slowest.max(took);
        let _ = fs_err::remove_dir_all(scratch);
        let slow = (took > MAX_TIME).then(|| Err(format!("it took {took:?}")));
        if let Err(why) = slow.unwrap_or(outcome) {
            report.broken = Some((round, why));
            break;
        }
        round += 1;
    }
    report
}

type Files = Vec<(PathBuf, Vec<u8>)>;

fn write(folder: &Path, files: &Files) -> std::io::Result<u64> {
    fs_err::create_dir_all(folder)?;
    let mut bytes = 0;
    for (name, content) in files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        // Names are random too: two may be in each other's way.
        if fs_err::create_dir_all(parent).is_ok() && fs_err::write(&path, content).is_ok() {
            bytes += content.len() as u64;
        }
    }
    Ok(bytes)
}

fn read(folder: &Path, bytes: u64, report: &mut Report, take: &mut impl FnMut(RawCapture)) -> Result<(), String> {
    let Ok(opened) = SnapshotFolder::open(folder, Layout::Auto) else {
        report.unopened += 1;
        return Ok(());
    };
    let fingerprint = opened.fingerprint().map_err(|error| error.to_string())?;
    if opened.fingerprint().ok() != Some(fingerprint) {
        return Err("two fingerprints".to_owned());
    }
    let (mut handed, mut items) = (0, opened.rejects().len() as u64);
    report.rejects += items;
    let time = |day: i64| Some(Timestamp(1_709_251_200_000_000 + day * 86_400 * Timestamp::SECOND));
    for reader in opened.split_readers(time(-1), time(0), 2) {
        for item in reader {
            items += 1;
            match item {
                Ok(capture) => {
                    report.captures += 1;
                    if let Body::Bytes(body) = &capture.body {
                        handed += body.len() as u64;
                    }
                    take(capture);
                }
                Err(reject) if reject.source_file.is_empty() || reject.reason.is_empty() => {
                    return Err(format!("a reject that says nothing: {reject:?}"));
                }
                Err(_) => report.rejects += 1,
            }
        }
    }
    report.most_bytes = report.most_bytes.max(handed);
    if handed > (bytes + 1) * RATIO + FREE {
        return Err(format!("{handed} bytes of bodies from {bytes}"));
    }
    if items > bytes + 1000 {
        return Err(format!("{items} captures and rejects from {bytes} bytes"));
    }
    opened.parts().iter().try_for_each(pieces_equal_whole)
}

/// Reads a file of records in pieces and whole.
fn pieces_equal_whole(part: &Part) -> Result<(), String> {
    let Part::Records { source, format, name, .. } = part else { return Ok(()) };
    let Ok(pieces) = split(source, *format, PIECE) else { return Ok(()) };
    if pieces.len() < 2 {
        return Ok(());
    }
    let reader = || RecordFile::new(source.clone(), *format, name.clone());
    let told = |item: Result<RawCapture, Reject>| match item {
        Ok(capture) => format!("{capture:?}"),
        Err(reject) => format!("{reject:?}"),
    };
    let whole: Vec<String> = reader().map(told).collect();
    let (mut parts, mut misread) = (Vec::new(), false);
    for piece in pieces {
        let mut reader = reader().piece(piece);
        parts.extend(reader.by_ref().map(told));
        misread |= reader.misread();
    }
    if misread || whole == parts { Ok(()) } else { Err(format!("pieces of {name} are not the whole")) }
}

/// An archive with some changes, now and then with none.
fn damaged(subject: Subject, rng: &mut Rng) -> Files {
    let mut files = sound(subject, rng);
    for _ in 0..rng.below(6) {
        let other = if rng.below(4) == 0 { sound(*rng.choose(&Subject::ALL), rng) } else { Vec::new() };
        let at = rng.below(files.len());
        let donor = other.first().map_or_else(|| files[rng.below(files.len())].1.clone(), |(_, bytes)| bytes.clone());
        change(&mut files[at].1, &donor, rng);
    }
    if rng.below(10) == 0 {
        let at = rng.below(files.len());
        let name = files[at].0.clone();
        files[at].0 = odd_name(&name, rng);
    }
    files
}

fn change(bytes: &mut Vec<u8>, donor: &[u8], rng: &mut Rng) {
    if bytes.is_empty() {
        bytes.extend_from_slice(donor);
        return;
    }
    let (at, to) = (rng.below(bytes.len()), rng.below(bytes.len()));
    let (from, to) = (at.min(to), at.max(to));
    match rng.below(9) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes[at] = *rng.choose(&[0, 1, 0x7f, 0x80, 0xff, b'\n', b' ', b':']),
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(from..to.min(from + 200))),
        4 => {
            let piece = bytes[from..to].to_vec();
            bytes.splice(at..at, piece);
        }
        5 if !donor.is_empty() => {
            let start = rng.below(donor.len());
            let end = donor.len().min(start + rng.below(2000) + 1);
            bytes.splice(at..at, donor[start..end].iter().copied());
        }
        6 => {
            // Another number where digits stand.
            let runs: Vec<usize> =
                (1..bytes.len()).filter(|&i| bytes[i].is_ascii_digit() && !bytes[i - 1].is_ascii_digit()).collect();
            if let Some(&start) = runs.get(rng.below(runs.len().max(1))) {
                let end = start + bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let numbers = [
                    "0",
                    "1",
                    "-1",
                    "7",
                    "4096",
                    "65536",
                    "2147483648",
                    "4294967295",
                    "18446744073709551615",
                    "999999999999999999999999999999",
                ];
                bytes.splice(start..end, rng.choose(&numbers).bytes());
            }
        }
        7 => {
            // Another number of two, four or eight bytes.
            let number = *rng.choose(&[0u64, 1, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX >> 1, u64::MAX]);
            let width = (2 << rng.below(3)).min(bytes.len() - at);
            bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
        }
        _ => {
            let other = bytes[from..to.min(from + 64)].to_vec();
            let end = (at + other.len()).min(bytes.len());
            bytes[at..end].copy_from_slice(&other[..end - at]);
        }
    }
    // Repeating pieces must not make it grow without end.
    bytes.truncate(1 << 18);
}

fn odd_name(name: &Path, rng: &mut Rng) -> PathBuf {
    let name = name.to_string_lossy().into_owned();
    let odd = ["%", "%3F", "?", ".orig", ".html", ":80", "+1", "\u{e9}", " ", "#", "\\", "%zz", ".open", "_8080"];
    let at = name.char_indices().nth(rng.below(name.chars().count())).map_or(0, |(at, _)| at);
    PathBuf::from(format!("{}{}{}", &name[..at], rng.choose(&odd), &name[at..]))
}

fn body(rng: &mut Rng) -> Vec<u8> {
    let most = if rng.below(8) == 0 { 20_000 } else { 300 };
    let length = rng.below(most);
    noise(rng.below(1000), length)
}

fn url(rng: &mut Rng) -> String {
    let path = *rng.choose(&["", "a", "a b", "x?y=1", "%41", "\u{e9}", "../b", "index.html"]);
    format!("{}a.org/{path}", rng.choose(&["http://", "https://", "http://u:p@", "ftp://", "HTTP://"]))
}

fn warc_records(rng: &mut Rng) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    for _ in 0..=rng.below(6) {
        let (url, body) = (url(rng), body(rng));
        let fields = [("WARC-Target-URI", url.as_str()), ("WARC-Date", "2024-03-01T12:00:00Z")];
        records.push(match rng.below(8) {
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
    records
}

fn pack(records: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    match rng.below(4) {
        0 => records.concat(),
        1 => gzip(&records.concat()),
        _ => records.iter().flat_map(|record| gzip(record)).collect(),
    }
}

fn pack_zstd(records: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    match rng.below(4) {
        0 => zstd_frame(&records.concat(), b""),
        1 => zstd_file(records, b"", false),
        _ => zstd_file(records, b"WARC/1.0 200 OK Content-Length", rng.below(2) == 0),
    }
}

/// A small archive as its writer leaves it.
fn sound(subject: Subject, rng: &mut Rng) -> Files {
    let file = |name: &str, bytes: Vec<u8>| (PathBuf::from(name), bytes);
    match subject {
        Subject::Warc => vec![file("x.warc.gz", pack(&warc_records(rng), rng))],
        Subject::WarcZst => vec![file("x.warc.zst", pack_zstd(&warc_records(rng), rng))],
        Subject::Wacz => {
            let mut entries = Vec::new();
            for name in ["archive/a.warc.gz", "archive/b.warc", "pages/pages.jsonl", "indexes/index.cdx.gz"] {
                if rng.below(4) > 0 {
                    let body = pack(&warc_records(rng), rng);
                    let (deflated, streamed) = (rng.below(2) == 0, rng.below(2) == 0);
                    entries.push(Packed { name: name.to_owned(), extra: Vec::new(), body, deflated, streamed });
                }
            }
            vec![file("x.wacz", zip(&entries))]
        }
        Subject::Httrack => {
            let mut entries = Vec::new();
            for _ in 0..=rng.below(5) {
                let (url, body) = (url(rng), body(rng));
                let inside = rng.below(3) > 0;
                let save = *rng.choose(&["a.org/a.html", "a.org/b.html", "../x", ""]);
                let status = *rng.choose(&["200 OK", "404 Not Found", "301 Moved", "-1 Error"]);
                entries.push(cached(&url, status, "text/html", save, inside.then_some(body.as_slice())));
            }
            vec![
                file("hts-cache/new.zip", zip(&entries)),
                file("a.org/a.html", body(rng)),
                file("a.org/b.html", b"<p><!-- Mirrored from a by HTTrack Website Copier/3 -->x".to_vec()),
            ]
        }
        Subject::Arc => {
            let mut records = vec![arc_start()];
            for _ in 0..=rng.below(5) {
                let (url, body) = (url(rng), body(rng));
                let block = if rng.below(3) == 0 { body } else { http("200 OK", &[("ETag", "x")], &body) };
                records.push(arc_record(&url, &block));
            }
            vec![file("x.arc.gz", pack(&records, rng))]
        }
        Subject::Wet => {
            let mut records = vec![record("warcinfo", &[], b"software: x\r\n")];
            for _ in 0..=rng.below(5) {
                let (url, body) = (url(rng), body(rng));
                records.push(conversion(&url, &String::from_utf8_lossy(&body)));
            }
            vec![file("x.warc.wet.gz", pack(&records, rng))]
        }
        Subject::Mirror => {
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
                if rng.below(2) == 0 {
                    let page = body(rng);
                    let headed = rng.below(3) == 0;
                    let fields = [("Date", "Fri, 01 Mar 2024 12:00:00 GMT"), ("Content-Type", "text/html")];
                    files.push(file(name, if headed { http("200 OK", &fields, &page) } else { page }));
                }
            }
            files
        }
        Subject::Manifest => {
            let mut lines = String::new();
            let mut files = Vec::new();
            for i in 0..=rng.below(6) {
                let name = *rng.choose(&["a.html", "sub/b.html", "./c", "../d", "/etc/hostname", "x.warc"]);
                let url = url(rng);
                lines += &format!(
                    "{{\"url\":\"{url}\",\"file\":\"{name}\",\"status\":200,\"fetched_at\":\"2024-03-01T12:00:0{i}Z\"}}\n"
                );
            }
            files.push(file("manifest.jsonl", lines.into_bytes()));
            files.extend(["a.html", "sub/b.html", "c"].map(|name| file(name, body(rng))));
            files.push(file("x.warc", pack(&warc_records(rng), rng)));
            files
        }
    }
}

/// Numbers that follow from a seed alone.
struct Rng(u64);

impl Rng {
    fn new(seed: u64, round: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round.wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to below `n`; 0 if `n` is 0.
    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % (n.max(1) as u64)).expect("below a usize")
    }

    fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_archives_are_read_without_a_reject_of_theirs() {
        for subject in [Subject::Warc, Subject::WarcZst, Subject::Wacz, Subject::Arc, Subject::Wet, Subject::Mirror] {
            for round in 0..30 {
                let dir = tempfile::tempdir().unwrap();
                let files = sound(subject, &mut Rng::new(3, round));
                write(dir.path(), &files).unwrap();
                let Ok(opened) = SnapshotFolder::open(dir.path(), Layout::Auto) else {
                    assert!(matches!(subject, Subject::Wacz), "{subject:?} {round}: nothing in it");
                    continue;
                };
                assert_eq!(opened.rejects(), [], "{subject:?} {round}");
                for item in opened.readers(None, None).into_iter().flatten() {
                    item.unwrap_or_else(|reject| panic!("{subject:?} {round}: {reject:?}"));
                }
            }
        }
    }

    #[test]
    fn damaged_archives_of_every_layout() {
        let dir = tempfile::tempdir().unwrap();
        for subject in Subject::ALL {
            let report = fuzz(subject, 1, 0, &dir.path().join("x"), |round| round < 300, drop);
            assert!(report.broken.is_none(), "{subject:?} {:?}", report.broken);
            // There is hardly a file that cannot be a page.
            let rejected = report.rejects > 30 || subject == Subject::Mirror;
            assert!(report.inputs == 300 && report.captures > 100 && rejected, "{subject:?} {report:?}");
        }
        assert_eq!(Subject::ALL.map(|subject| Subject::parse(subject.as_str())), Subject::ALL.map(Some));
    }
}
