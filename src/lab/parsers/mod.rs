//! Damaged input without end for everything that reads what others wrote, apart from archives.
//!
//! | module | what is read |
//! | --- | --- |
//! | `crawled` | pages, bodies, addresses, dates |
//! | `written` | pipeline files and what they name, arguments of commands, SQL |
//! | `answered` | lines of workers, replies of model servers |
//! | `stored` | tables, index and small files of a store, and what machines that share a night send each other |
//! | `night` | any file below `_meta`, by a whole night on the store |
//!
//! As with `archives`, sound samples are made and then broken, and everything follows from a seed. A round fails if
//! reading panics, takes long, gives far more than it was given, or breaks what the parser promises. Half of the damage
//! keeps the form of what it changes (`shapes`), so that it comes to more than the first check; how many inputs were taken,
//! that is gave something, is told at the end.

mod answered;
mod crawled;
mod night;
mod stored;
mod written;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::lab::archives::damage::change;
use crate::lab::processor_time;
use crate::lab::shapes::{reshape, shuffle};
use crate::model::{Digest, Rng};

/// Input of some kilobytes that needs more work than this is a way to stop a run, and so is what waits as long as that.
const MAX_WORK: Duration = Duration::from_secs(10);
const MAX_TIME: Duration = Duration::from_secs(100);
/// What comes out may be so many times as large as what went in, and some more.
const MAX_GROWTH: u64 = 64;
const FREE: u64 = 32 << 20;

/// Something that reads foreign bytes.
pub(crate) struct Parser {
    pub name: &'static str,
    samples: fn(&Path) -> Vec<Vec<u8>>,
    /// What has a meaning in the language.
    words: &'static [&'static str],
    /// Reads input, in a folder that it may use; gives the bytes that came out (0: it was not taken), or what promise is
    /// broken.
    read: fn(&[u8], &Path) -> Result<u64, String>,
}

/// All of them.
pub(crate) fn parsers() -> impl Iterator<Item = &'static Parser> {
    let stores = stored::PARSERS.iter().chain(&night::PARSERS);
    crawled::PARSERS.iter().chain(&written::PARSERS).chain(&answered::PARSERS).chain(stores)
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub inputs: u64,
    pub bytes: u64,
    /// Of what was read.
    pub out: u64,
    /// Inputs that gave something.
    pub taken: u64,
    pub slowest: Duration,
    /// Round and what went wrong; the run stops there.
    pub broken: Option<(u64, String)>,
}

const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "null",
    "-1",
    "1e999",
    "\\ud800",
    "\\u0000",
    "\"start\"",
    "\"id\"",
    "4294967296",
];

/// Runs rounds 0, 1, … as long as `go_on(round)` says so, in the folder `scratch`, which is made and removed.
pub(crate) fn fuzz(parser: &Parser, seed: u64, scratch: &Path, mut go_on: impl FnMut(u64) -> bool) -> Report {
    let mut report = Report::default();
    let prepared = fs_err::create_dir_all(scratch);
    let samples = (parser.samples)(scratch);
    let mut round = 0;
    while prepared.is_ok() && go_on(round) {
        let mut rng = Rng::of_round(seed ^ Digest::of(parser.name.as_bytes()).low64(), round);
        let input = damaged(&samples, parser.words, &mut rng);
        report.inputs += 1;
        report.bytes += input.len() as u64;
        let (started, worked) = (Instant::now(), processor_time());
        let reading = catch_unwind(AssertUnwindSafe(|| (parser.read)(&input, scratch)));
        let (took, work) = (started.elapsed(), processor_time().saturating_sub(worked));
        report.slowest = report.slowest.max(took);
        let outcome = match reading {
            _ if took > MAX_TIME || work > MAX_WORK => Err(format!("it took {took:?}, {work:?} of them at work")),
            Err(_) => Err("a panic".to_owned()),
            Ok(Ok(out)) if out > FREE + MAX_GROWTH * input.len() as u64 => {
                Err(format!("{out} bytes of {}", input.len()))
            }
            Ok(outcome) => outcome,
        };
        match outcome {
            Ok(out) => {
                report.out += out;
                report.taken += u64::from(out > 0);
            }
            Err(why) => {
                report.broken = Some((round, format!("{why}; input {:?}", String::from_utf8_lossy(&input))));
                break;
            }
        }
        round += 1;
    }
    let _ = fs_err::remove_dir_all(scratch);
    report
}

/// Mostly little damage: much of it is found by whatever looks first.
const CHANGES: [usize; 8] = [0, 1, 1, 1, 2, 2, 3, 7];

fn damaged(samples: &[Vec<u8>], words: &[&str], rng: &mut Rng) -> Vec<u8> {
    let mut input = rng.choose(samples).clone();
    for _ in 0..*rng.choose(&CHANGES) {
        let donor = rng.choose(samples);
        match rng.index(8) {
            0..=1 => {
                let at = rng.index(input.len() + 1);
                let times = if rng.index(8) == 0 { rng.index(300) } else { 1 };
                input.splice(at..at, rng.choose(words).repeat(times).into_bytes());
            }
            2..=3 => change(&mut input, donor, rng),
            4 => shuffle(&mut input, donor, rng),
            _ => {
                if !reshape(&mut input, words, rng) {
                    shuffle(&mut input, donor, rng);
                }
            }
        }
    }
    input
}

fn lines(lines: &[&str]) -> Vec<Vec<u8>> {
    lines.iter().map(|line| line.as_bytes().to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_parser_is_broken_by_damage() {
        let dir = tempfile::tempdir().unwrap();
        for parser in parsers() {
            let rounds = if parser.name == "night" { 5 } else { 150 };
            let report = fuzz(parser, 1, &dir.path().join("x"), |round| round < rounds);
            assert!(report.broken.is_none(), "{} {:?}", parser.name, report.broken);
            assert_eq!(report.inputs, rounds, "{}", parser.name);
        }
    }

    /// The fuzzer must be able to find something.
    #[test]
    fn a_parser_that_breaks_is_named() {
        let weak = Parser {
            name: "weak",
            samples: |_| lines(&["abc"]),
            words: &["x"],
            read: |bytes, _| match bytes {
                [b'x', ..] => panic!("a test"),
                [.., b'x'] => Err("it ends in x".to_owned()),
                _ => Ok(0),
            },
        };
        let dir = tempfile::tempdir().unwrap();
        let (round, why) = fuzz(&weak, 1, &dir.path().join("x"), |round| round < 1000).broken.unwrap();
        assert!(why.contains("panic") || why.contains("ends in x"), "{why}");
        let again = fuzz(&weak, 1, &dir.path().join("x"), |round| round < 1000).broken.unwrap();
        assert_eq!(again, (round, why), "its round shows it again");
    }
}
