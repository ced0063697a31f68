//! Any file below `_meta` of a real store, damaged: then the store is looked at, a night is run and its files are checked,
//! as a user would. Whatever files stages come to write there, they are among the samples.
//!
//! A night must fail with words or have the tables of one on a sound store. Where it has others, they are named, and so is
//! what another night on a sound store has: if that differs as well, it is not the damage that made them differ.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Parser;
use crate::config::Pipeline;
use crate::look;
use crate::look::overview::overview;
use crate::model::Digest;
use crate::run::problems::Seen;
use crate::run::progress::Progress;
use crate::run::{self, Wanted};
use crate::stages;
use crate::store::Store;
use crate::store::integrity::Subset;
use crate::store::sums::with_right_sum;

pub(super) const PARSERS: [Parser; 1] = [Parser {
    name: "night",
    samples,
    words: &["\"sum\"", "null", "{}", "[]", "-1", "1e400", "18446744073709551615", "\"2024-01-02\"", "../", "\n"],
    read,
}];

const PIPELINE: &str = "[corpus]
snapshots = 'snapshots'
store = 'store'
ignore = ['Visitors: [0-9]+']
[[extractor]]
name = 'room'
kind = 'regex'
pattern = 'Room (?P<n>[0-9]+)'
[[extractor]]
name = 'drug'
kind = 'dictionary'
terms = 'terms.txt'
[[query]]
name = 'next'
nodes.a = { url = '*/0' }
links = ['a -> b']
[[watch]]
name = 'rooms'
on = { mentions = 'room' }
[schedule]
polls = 3
discover = { scope = 'host', polls = 10 }
";

/// Nights before the one that is run on a damaged store.
const BEFORE: u32 = 3;

/// Tables of measured times, which are never twice the same.
const MEASURED: [&str; 2] = ["plans", "plan_costs"];

/// A snapshot in which some pages are as the day before and others are not.
fn write_snapshot(folder: &Path, day: u32) -> std::io::Result<()> {
    let dir = folder.join(format!("snapshots/2024-01-0{day}"));
    fs_err::create_dir_all(&dir)?;
    let mut manifest = String::new();
    for page in 0..6 {
        let changed = if page % 2 == 0 { day } else { 0 };
        let html = format!(
            "<title>Page {page}</title><p>Room {page}{changed} and aspirin.</p><p>Visitors: {day}</p><a href='/{}'>next</a>",
            (page + 1) % 8
        );
        fs_err::write(dir.join(format!("{page}.html")), html)?;
        manifest += &format!(
            "{{\"url\": \"http://a.test/{page}\", \"file\": \"{page}.html\", \"status\": 200, \"content_type\": \"text/html\"}}\n"
        );
    }
    fs_err::write(dir.join("manifest.jsonl"), manifest)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs_err::create_dir_all(to)?;
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs_err::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Files below a folder, by their paths from there.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(&folder).into_iter().flatten().filter_map(Result::ok) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let (Ok(inside), Ok(bytes)) = (path.strip_prefix(dir), fs_err::read(&path)) {
                found.insert(inside.to_owned(), bytes);
            }
        }
    }
    found
}

/// The tables of a store, each partition by its digest.
fn tables(store: &Path) -> BTreeMap<PathBuf, Digest> {
    let is_table = |path: &Path| {
        let first = path.components().next().map(|first| first.as_os_str().to_string_lossy().into_owned());
        path.extension().is_some_and(|ending| ending == "parquet")
            && first.is_some_and(|first| !first.starts_with(['_', '.']) && !MEASURED.contains(&first.as_str()))
    };
    files(store).into_iter().filter(|(path, _)| is_table(path)).map(|(path, of)| (path, Digest::of(&of))).collect()
}

fn pipeline(folder: &Path) -> Result<Pipeline, String> {
    fs_err::write(folder.join("terms.txt"), "aspirin\nibuprofen\n").map_err(|error| error.to_string())?;
    Pipeline::parse(&folder.join("p.toml"), PIPELINE).map_err(|error| error.to_string())
}

/// Runs all that is left to do in a folder; gives what the run found wrong with it.
fn run_all(folder: &Path) -> Result<Vec<String>, String> {
    let pipeline = pipeline(folder)?;
    let ran = run::run(stages::graph(), &pipeline, &Wanted::default(), Progress::new(false));
    let line = |seen: &Seen| seen.line(&pipeline.path);
    ran.map(|summary| summary.problems.iter().map(line).collect()).map_err(|error| format!("{error:#}"))
}

/// Makes a sound store, and another that has the night which the damaged ones are to have: `NAME\n` and what each file
/// below `_meta` holds.
fn samples(folder: &Path) -> Vec<Vec<u8>> {
    let (sound, later) = (folder.join("sound"), folder.join("later"));
    let made = || -> Result<(), String> {
        for day in 1..=BEFORE {
            write_snapshot(&sound, day).map_err(|error| error.to_string())?;
        }
        // Few shards, for a night of few pages costs what its shards cost.
        Store::open_or_create_with(&sound.join("store"), 2).map_err(|error| error.to_string())?;
        run_all(&sound)?;
        copy(&sound, &later).map_err(|error| error.to_string())?;
        write_snapshot(&later, BEFORE + 1).map_err(|error| error.to_string())?;
        run_all(&later).map(drop)
    };
    if let Err(error) = made() {
        return vec![format!("no store could be made: {error}").into_bytes()];
    }
    let sample = |(name, bytes): (PathBuf, Vec<u8>)| [format!("{}\n", name.display()).as_bytes(), &bytes].concat();
    files(&sound.join("store/_meta")).into_iter().map(sample).collect()
}

/// A copy of the sound store, with the snapshot of the night that is to come.
fn before_the_night(folder: &Path, name: &str) -> std::io::Result<PathBuf> {
    let dir = folder.join(name);
    if dir.exists() {
        fs_err::remove_dir_all(&dir)?;
    }
    copy(&folder.join("sound"), &dir)?;
    write_snapshot(&dir, BEFORE + 1)?;
    Ok(dir)
}

/// Where the tables of a store are not those that are expected; empty if they are.
fn differences(expected: &Path, store: &Path) -> String {
    let (expected, found) = (tables(expected), tables(store));
    let paths: BTreeSet<&PathBuf> = expected.keys().chain(found.keys()).collect();
    let told = |path: &PathBuf| match (expected.get(path), found.get(path)) {
        (Some(a), Some(b)) if a == b => None,
        (Some(_), Some(_)) => Some(format!("{} differs", path.display())),
        (Some(_), None) => Some(format!("{} is missing", path.display())),
        _ => Some(format!("{} is new", path.display())),
    };
    paths.into_iter().filter_map(told).collect::<Vec<_>>().join(", ")
}

/// What another night on a sound store has.
fn another_sound_night(folder: &Path) -> String {
    let again = before_the_night(folder, "again").map_err(|error| error.to_string());
    match again.and_then(|again| run_all(&again).map(|problems| (again, problems))) {
        Err(error) => format!("no end: {error}"),
        Ok((again, problems)) => match differences(&folder.join("later/store"), &again.join("store")) {
            same if same.is_empty() => "the expected tables".to_owned(),
            differences => format!("{differences}, problems {problems:?}"),
        },
    }
}

/// Another file of the same folder, should one be asked for: a file may be sound and lie in the wrong place.
fn neighbour(file: &Path, number: usize) -> Option<Vec<u8>> {
    let folder = fs_err::read_dir(file.parent()?).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    let mut others: Vec<PathBuf> = folder.filter(|other| other.is_file() && other != file).collect();
    others.sort();
    fs_err::read(others.get(number % others.len().max(1))?).ok()
}

fn read(bytes: &[u8], folder: &Path) -> Result<u64, String> {
    let sound = folder.join("sound");
    let Some(line) = bytes.iter().position(|byte| *byte == b'\n') else {
        return if sound.join("store").is_dir() { Ok(0) } else { Err(String::from_utf8_lossy(bytes).into_owned()) };
    };
    let name = String::from_utf8_lossy(&bytes[..line]).into_owned();
    // Damage to the name itself is no file of a store.
    let original = sound.join("store/_meta").join(&name);
    if !original.is_file() || name.contains("..") {
        return Ok(0);
    }
    let number = usize::from(Digest::of(bytes).0[0]);
    let swapped = neighbour(&original, number / 32).filter(|_| number.is_multiple_of(32));
    let content = swapped.unwrap_or_else(|| bytes[line + 1..].to_vec());
    // A checksum keeps all damage from what reads the rest, unless it fits.
    let fitting = with_right_sum(&content);
    let forged = bytes.len().is_multiple_of(2) && fitting != content;
    let content = if forged { fitting } else { content };
    let damaged = before_the_night(folder, "damaged").map_err(|error| error.to_string())?;
    fs_err::write(damaged.join("store/_meta").join(&name), &content).map_err(|error| error.to_string())?;
    let pipeline = pipeline(&damaged)?;
    let _ = look::status::status(&pipeline).map(|status| status.text().len());
    let ran = run_all(&damaged);
    if let Ok(Some(store)) = Store::open(&pipeline.corpus.store) {
        let _ = overview(&pipeline, &store, &damaged.join("report.html"), true).map(|report| report.html().len());
    }
    let _ = look::open_store(&pipeline).and_then(|store| look::integrity::check(&pipeline, &store, Subset::ALL));
    match ran {
        Err(error) if error.trim().is_empty() => Err("an error that says nothing".to_owned()),
        Err(_) => Ok(0),
        Ok(_) if forged => Ok(1),
        Ok(problems) => match differences(&folder.join("later/store"), &damaged.join("store")) {
            same if same.is_empty() => Ok(1),
            differences => Err(format!(
                "{name} is damaged, and the night has other tables without a word: {differences}; problems {problems:?}; \
                 another night on a sound store has {}; the file is {:?}",
                another_sound_night(folder),
                String::from_utf8_lossy(&content)
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `store.json` may be removed, as its own damage says: the number of shards is found again, also if it is not the one
    /// that stores are made with.
    #[test]
    fn a_store_whose_number_of_shards_was_lost_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        assert!(samples(dir.path()).len() > 5);
        let night = before_the_night(dir.path(), "damaged").unwrap();
        fs_err::remove_file(night.join("store/_meta/store.json")).unwrap();
        run_all(&night).unwrap();
        assert_eq!(differences(&dir.path().join("later/store"), &night.join("store")), "");
        assert_eq!(Store::open(&night.join("store")).unwrap().unwrap().shards(), 2);
    }

    #[test]
    fn tables_that_differ_are_named() {
        let dir = tempfile::tempdir().unwrap();
        for (store, table, content) in
            [("a", "pages", "1"), ("b", "pages", "2"), ("a", "links", "1"), ("b", "links", "1"), ("b", "plans", "1")]
        {
            let folder = dir.path().join(store).join(table);
            fs_err::create_dir_all(&folder).unwrap();
            fs_err::write(folder.join("x.parquet"), content).unwrap();
        }
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        assert_eq!(differences(&a, &b), "pages/x.parquet differs");
        fs_err::create_dir_all(b.join("captures")).unwrap();
        fs_err::rename(b.join("links/x.parquet"), b.join("captures/x.parquet")).unwrap();
        assert_eq!(
            differences(&a, &b),
            "captures/x.parquet is new, links/x.parquet is missing, pages/x.parquet differs"
        );
        assert_eq!(differences(&a, &a), "");
    }
}
