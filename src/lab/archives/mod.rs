//! Damaged archives without end: small sound ones of every layout, changed at random, read as ingest reads them.
//!
//! Sound archives are made (`sound`, from the pieces in `samples`) and then broken (`damage`), for random bytes would
//! not get past the first look. Everything follows from a seed: a failure names the round that shows it again.
//!
//! A round fails if reading panics, takes long, hands out more bytes than the archive can hold, or if reading a file in
//! pieces gives something else than reading it whole without saying so.

pub(super) mod damage;
pub(crate) mod samples;
mod sound;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::archive::{Layout, SnapshotFolder};
use crate::bounds::most_unpacked;
use crate::captures::judge;
use crate::lab::processor_time;
use crate::model::{Body, RawCapture, Timestamp};
use crate::stages::ingest::read_body;
use crate::text::{TextOptions, TextReader};

use damage::damaged;
pub(crate) use sound::{SUBJECTS, Subject};

/// A small archive that needs more work than this is a way to stop a run, and so is one that waits as long as that.
const MAX_WORK: Duration = Duration::from_secs(20);
const MAX_TIME: Duration = Duration::from_secs(200);
/// Files are cut into pieces of this size, far below what is worth it.
const PIECE: u64 = 3000;

/// Paths and contents of the files of a snapshot.
type Files = Vec<(PathBuf, Vec<u8>)>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub inputs: u64,
    pub bytes: u64,
    pub captures: u64,
    pub rejects: u64,
    /// Folders in which nothing could be read.
    pub unopened: u64,
    /// The most bytes of bodies that one input gave.
    pub most_bytes: u64,
    pub slowest: Duration,
    /// Round and what went wrong; the run stops there.
    pub broken: Option<(u64, String)>,
}

/// Runs rounds 0, 1, … as long as `go_on(round)` says so, in the folder `scratch`, which is made and removed. Captures
/// are read as ingest reads them, up to the text of pages.
pub(crate) fn fuzz(subject: &Subject, seed: u64, scratch: &Path, mut go_on: impl FnMut(u64) -> bool) -> Report {
    let mut report = Report::default();
    let mut text = TextReader::new(TextOptions::default());
    let mut round = 0;
    while go_on(round) {
        let files = damaged(subject, &mut subject.rng(seed, round));
        let folder = scratch.join("snapshot");
        report.inputs += 1;
        let (started, worked) = (Instant::now(), processor_time());
        let outcome = write(&folder, &files).map_err(|error| error.to_string()).and_then(|bytes| {
            report.bytes += bytes;
            let reading = catch_unwind(AssertUnwindSafe(|| read(&folder, bytes, &mut report, &mut text)));
            reading.unwrap_or_else(|panic| {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                Err(format!("panic: {}", text.or(panic.downcast_ref::<String>().cloned()).unwrap_or_default()))
            })
        });
        let (took, work) = (started.elapsed(), processor_time().saturating_sub(worked));
        report.slowest = report.slowest.max(took);
        let _ = fs_err::remove_dir_all(scratch);
        let is_slow = took > MAX_TIME || work > MAX_WORK;
        let slow = is_slow.then(|| Err(format!("it took {took:?}, {work:?} of them at work")));
        if let Err(why) = slow.unwrap_or(outcome) {
            report.broken = Some((round, why));
            break;
        }
        round += 1;
    }
    report
}

/// Writes files and says how many bytes they have.
fn write(folder: &Path, files: &Files) -> std::io::Result<u64> {
    fs_err::create_dir_all(folder)?;
    let mut bytes = 0;
    for (name, content) in files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        // Names are random too, so one may be a folder that another needs as a file.
        if fs_err::create_dir_all(parent).is_ok() && fs_err::write(&path, content).is_ok() {
            bytes += content.len() as u64;
        }
    }
    Ok(bytes)
}

/// Reads a folder whose files have so many bytes.
fn read(folder: &Path, bytes: u64, report: &mut Report, text: &mut TextReader) -> Result<(), String> {
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
                    take(capture, text);
                }
                Err(reject) if reject.source_file.is_empty() || reject.reason.is_empty() => {
                    return Err(format!("a reject that says nothing: {reject:?}"));
                }
                Err(_) => report.rejects += 1,
            }
        }
    }
    report.most_bytes = report.most_bytes.max(handed);
    // An archive may hold several compressed files, each of which may unpack to what any small one may.
    if handed > 2 * most_unpacked(bytes + 1) {
        return Err(format!("{handed} bytes of bodies from {bytes}"));
    }
    if items > bytes + 1000 {
        return Err(format!("{items} captures and rejects from {bytes} bytes"));
    }
    opened.pieces_equal_whole(PIECE)
}

/// What ingest does to a capture.
fn take(mut capture: RawCapture, text: &mut TextReader) {
    if let Some(judged) = judge(&mut capture, false, read_body, |_| {})
        && let Some(payload) = judged.payload
    {
        text.read(&payload, capture.content_type.as_deref(), &judged.url);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Rng;

    #[test]
    fn sound_archives_are_read_without_a_reject_of_theirs() {
        // The others hold broken things on purpose: files that are missing, lines that lead elsewhere.
        for subject in SUBJECTS.iter().filter(|subject| !["httrack", "manifest"].contains(&subject.name)) {
            let name = subject.name;
            for round in 0..30 {
                let dir = tempfile::tempdir().unwrap();
                let files = subject.sound(&mut Rng::of_round(3, round));
                write(dir.path(), &files).unwrap();
                let Ok(opened) = SnapshotFolder::open(dir.path(), Layout::Auto) else {
                    assert!(name == "wacz", "{name} {round}: nothing in it");
                    continue;
                };
                assert_eq!(opened.rejects(), [], "{name} {round}");
                for item in opened.readers(None, None).into_iter().flatten() {
                    item.unwrap_or_else(|reject| panic!("{name} {round}: {reject:?}"));
                }
            }
        }
    }

    #[test]
    fn damaged_archives_of_every_layout() {
        let dir = tempfile::tempdir().unwrap();
        for subject in &SUBJECTS {
            let name = subject.name;
            let report = fuzz(subject, 1, &dir.path().join("x"), |round| round < 300);
            assert!(report.broken.is_none(), "{name} {:?}", report.broken);
            // There is hardly a file that cannot be a page.
            let rejected = report.rejects > 30 || name == "mirror";
            assert!(report.inputs == 300 && report.captures > 100 && rejected, "{name} {report:?}");
        }
    }
}
