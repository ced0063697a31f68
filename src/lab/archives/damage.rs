//! Changes to archives that are sound.
//!
//! They know a little of what they break: they flip bits, cut, repeat and move pieces, splice archives into each other,
//! and write other numbers where lengths stand, in digits and in bytes. Half of the archives are packed of records that
//! were harmed before, for a checksum keeps most damage to what is packed from whoever reads the records.

use std::path::{Path, PathBuf};

use crate::model::Rng;

use super::Files;
use super::sound::{SUBJECTS, Subject};
use crate::lab::shapes::{reshape, shuffle};

/// Repeating pieces must not make a file grow beyond this.
const MAX_BYTES: usize = 1 << 18;

/// An archive with some changes, now and then with none.
pub(super) fn damaged(subject: &Subject, rng: &mut Rng) -> Files {
    let inside = rng.index(2) == 0;
    let mut files = if inside { subject.harmed(rng, harm) } else { subject.sound(rng) };
    for (name, bytes) in &mut files {
        if name.ends_with("manifest.jsonl") && rng.index(2) == 0 {
            reshape(bytes, &["http://a.org/", "a.html", "2024-03-01T12:00:00Z", "text/html"], rng);
        }
    }
    let most = if inside { 2 } else { 6 };
    for _ in 0..rng.index(most) {
        let other = if rng.index(4) == 0 { rng.choose(&SUBJECTS).sound(rng) } else { Vec::new() };
        let at = rng.index(files.len());
        let donor = other.first().map_or_else(|| files[rng.index(files.len())].1.clone(), |(_, bytes)| bytes.clone());
        change(&mut files[at].1, &donor, rng);
    }
    if rng.index(10) == 0 {
        let at = rng.index(files.len());
        let name = files[at].0.clone();
        files[at].0 = odd_name(&name, rng);
    }
    files
}

/// One in four records is changed before it is packed.
fn harm(record: &mut Vec<u8>, rng: &mut Rng) {
    match rng.index(8) {
        0 => change(record, b"Content-Length: 5\r\n\r\nWARC/1.0\r\n", rng),
        1 => shuffle(record, b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", rng),
        _ => {}
    }
}

/// One change of a file. `donor`: a file that pieces are taken from.
pub(in crate::lab) fn change(bytes: &mut Vec<u8>, donor: &[u8], rng: &mut Rng) {
    if bytes.is_empty() {
        bytes.extend_from_slice(donor);
        return;
    }
    let (at, to) = (rng.index(bytes.len()), rng.index(bytes.len()));
    let (from, to) = (at.min(to), at.max(to));
    match rng.index(9) {
        0 => bytes[at] ^= 1 << rng.index(8),
        1 => bytes[at] = *rng.choose(&[0, 1, 0x7f, 0x80, 0xff, b'\n', b' ', b':']),
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(from..to.min(from + 200))),
        4 => {
            let piece = bytes[from..to].to_vec();
            bytes.splice(at..at, piece);
        }
        5 if !donor.is_empty() => {
            let start = rng.index(donor.len());
            let end = donor.len().min(start + rng.index(2000) + 1);
            bytes.splice(at..at, donor[start..end].iter().copied());
        }
        6 => change_digits(bytes, rng),
        7 => {
            // Another number of two, four or eight bytes.
            let number = *rng.choose(&[0u64, 1, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX >> 1, u64::MAX]);
            let width = (2 << rng.index(3)).min(bytes.len() - at);
            bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
        }
        _ => {
            let other = bytes[from..to.min(from + 64)].to_vec();
            let end = (at + other.len()).min(bytes.len());
            bytes[at..end].copy_from_slice(&other[..end - at]);
        }
    }
    bytes.truncate(MAX_BYTES);
}

/// Another number where digits stand.
fn change_digits(bytes: &mut Vec<u8>, rng: &mut Rng) {
    const NUMBERS: [&str; 10] = [
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
    let starts = |&at: &usize| bytes[at].is_ascii_digit() && !bytes[at - 1].is_ascii_digit();
    let runs: Vec<usize> = (1..bytes.len()).filter(starts).collect();
    if let Some(&start) = runs.get(rng.index(runs.len())) {
        let end = start + bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        bytes.splice(start..end, rng.choose(&NUMBERS).bytes());
    }
}

/// A name with something in it that has a meaning to wget, to HTTrack, to a file system or in a URL.
fn odd_name(name: &Path, rng: &mut Rng) -> PathBuf {
    let name = name.to_string_lossy().into_owned();
    let odd = ["%", "%3F", "?", ".orig", ".html", ":80", "+1", "\u{e9}", " ", "#", "\\", "%zz", ".open", "_8080"];
    let at = name.char_indices().nth(rng.index(name.chars().count())).map_or(0, |(at, _)| at);
    PathBuf::from(format!("{}{}{}", &name[..at], rng.choose(&odd), &name[at..]))
}
