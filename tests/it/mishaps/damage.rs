//! Bytes flipped in every kind of file of a store, and partitions removed: nothing wrong is copied into the next night, and
//! what is wrong is told with the command that mends it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{SECTIONS, copy_of, differing, files, follow, named_commands, nights, write_night};
use crate::workspace::Workspace;

/// Three nights to be harmed, and the tables that a fourth one leaves where nothing was.
fn three_nights() -> (Workspace, Vec<(PathBuf, Vec<u8>)>) {
    let base = nights(SECTIONS, 3);
    base.run();
    let quiet = copy_of(&base);
    write_night(&quiet, 4);
    quiet.run();
    let expected = quiet.table_bytes();
    (base, expected)
}

/// What kind of file it is: its table, or its name or folder below `_meta`.
fn kind(path: &Path) -> String {
    let names: Vec<String> = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    match names.iter().position(|name| name.starts_with("snapshot=")) {
        Some(at) => names[..at].join("/"),
        None if names.len() > 2 => names[..2].join("/"),
        None => names.join("/"),
    }
}

/// Files whose content follows the clock, or that nothing is read from.
fn is_of_no_consequence(path: &Path) -> bool {
    ["_meta/lock", "_meta/runs.jsonl", "plans", "plan_costs"].iter().any(|other| path.starts_with(other))
}

/// The files of a store, oldest first, by their kind.
fn kinds(base: &Workspace) -> BTreeMap<String, Vec<(PathBuf, Vec<u8>)>> {
    let mut kinds: BTreeMap<String, Vec<(PathBuf, Vec<u8>)>> = BTreeMap::new();
    for (path, bytes) in
        files(base, "store").into_iter().filter(|(path, bytes)| !is_of_no_consequence(path) && !bytes.is_empty())
    {
        kinds.entry(kind(&path)).or_default().push((path, bytes));
    }
    assert!(
        kinds.len() > 20 && kinds.contains_key("_meta/snapshots") && kinds.contains_key("_meta/index"),
        "{:?}",
        kinds.keys()
    );
    kinds
}

/// Writes a file of the store with some bits of a byte flipped.
fn flip(w: &Workspace, path: &Path, bytes: &[u8], at: usize, bits: u8) {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= bits;
    fs::write(w.path("store").join(path), bytes).unwrap();
}

/// The index holds much of what tables say: without it they are read. Where it was harmed itself it stays.
fn remove_index(w: &Workspace, harmed: &Path) {
    if !harmed.starts_with("_meta/index") {
        fs::remove_dir_all(w.path("store/_meta/index")).unwrap();
    }
}

/// Adds a night to a store that was harmed, does what the messages say, and compares with what a sound store holds.
fn heal(w: &Workspace, expected: &[(PathBuf, Vec<u8>)], harmed: &Path, case: &str) -> &'static str {
    write_night(w, 4);
    let mut ended = w.ratoon(&["run", "p.toml", "-q"]);
    // What was not read may lie there as it is; whatever was made of it is not wrong.
    let wrong = |w: &Workspace| {
        let now = w.table_bytes();
        differing(&now, expected).into_iter().filter(|path| *path != harmed).map(Path::to_owned).collect::<Vec<_>>()
    };
    if ended.code == 0 {
        assert!(wrong(w).is_empty(), "{case}: {:?} {}", wrong(w), ended.stderr);
    }
    let quiet = ended.code == 0;
    for _ in 0..3 {
        if ended.code == 0 {
            break;
        }
        let commands = named_commands(&ended.stderr);
        match commands.first() {
            Some(command) => {
                let followed = follow(w, command);
                // `check` says which command repairs what it found.
                if let Some(next) = named_commands(&followed.stdout).first() {
                    follow(w, next).expect(0);
                } else {
                    assert_eq!(followed.code, 0, "{case}: {command}: {}", followed.stderr);
                }
            }
            None => {
                assert!(ended.stderr.contains("remove this file"), "{case}: no command is named: {}", ended.stderr);
                fs::remove_file(w.path("store").join(harmed)).unwrap();
            }
        }
        ended = w.ratoon(&["run", "p.toml", "-q"]);
    }
    assert_eq!(ended.code, 0, "{case}: {}", ended.stderr);
    assert!(wrong(w).is_empty(), "{case}: {:?}", wrong(w));
    let repaired = w.ratoon(&["check", "p.toml", "--repair"]).expect(0);
    w.run();
    let differ = w.table_bytes();
    let differ = differing(&differ, expected);
    assert!(differ.is_empty(), "{case}: {differ:?} {}", repaired.stdout);
    if quiet { "not read" } else { "named and mended" }
}

#[test]
#[expect(clippy::print_stderr, reason = "what was tried here is told to whoever asks for it")]
fn a_flipped_byte_in_any_kind_of_file_goes_no_further() {
    let (base, expected) = three_nights();
    let kinds = kinds(&base);
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for (i, (kind, files)) in kinds.iter().enumerate() {
        let (path, bytes) = if i % 2 == 0 { files.first() } else { files.last() }.unwrap();
        let w = copy_of(&base);
        let at = (i * 7919 + 13) % bytes.len();
        flip(&w, path, bytes, at, 1 << (i % 7));
        if i % 3 == 0 {
            remove_index(&w, path);
        }
        *outcomes.entry(heal(&w, &expected, path, &format!("{kind}: byte {at} of {}", path.display()))).or_default() +=
            1;
    }
    eprintln!("{outcomes:?}");
}

/// Some of the index is read by no stage of a night, only when its files are merged: also then it is made again, and the
/// night is done as if nothing had been.
#[test]
fn damage_anywhere_in_the_index_is_mended_on_the_way() {
    let (base, expected) = three_nights();
    let runs = kinds(&base).remove("_meta/index").unwrap();
    let runs = runs.iter().filter(|(path, _)| path.extension().is_some_and(|ending| ending == "run"));
    for (path, bytes) in runs {
        for at in (0..bytes.len()).step_by(bytes.len() / 12 + 1) {
            let w = copy_of(&base);
            write_night(&w, 4);
            flip(&w, path, bytes, at, 4);
            let ended = w.ratoon(&["run", "p.toml", "-q"]).expect(0);
            let differ = w.table_bytes();
            let differ = differing(&differ, &expected);
            assert!(differ.is_empty(), "{}: byte {at}: {differ:?} {}", path.display(), ended.stderr);
        }
    }
}

/// As after a restore that went wrong: the file is sound, but it is of another night.
#[test]
fn a_file_of_another_night_goes_no_further() {
    let (base, expected) = three_nights();
    let mut tried = 0;
    for (i, (kind, files)) in kinds(&base).iter().enumerate() {
        let [(_, old), .., (path, new)] = files.as_slice() else { continue };
        if old == new {
            continue;
        }
        let w = copy_of(&base);
        fs::write(w.path("store").join(path), old).unwrap();
        if i % 3 == 0 {
            remove_index(&w, path);
        }
        let outcome = heal(&w, &expected, path, &format!("{kind}: {} is an older one", path.display()));
        assert!(outcome == "named and mended" || kind != "_meta/snapshots", "{outcome}");
        tried += 1;
    }
    assert!(tried > 10, "{tried}");
}

#[test]
fn a_partition_that_is_gone_is_told_and_made_again() {
    let (base, expected) = three_nights();
    let partitions: Vec<PathBuf> = base
        .table_bytes()
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.to_string_lossy().contains("2024-01-02"))
        .collect();
    assert!(partitions.len() > 8, "{partitions:?}");
    for (i, path) in partitions.iter().enumerate() {
        let w = copy_of(&base);
        fs::remove_dir_all(w.path("store").join(path).parent().unwrap()).unwrap();
        let said = w.ratoon(&["run", "p.toml", "-q"]);
        assert!(
            said.stderr.contains("is missing")
                || said.stderr.contains("are missing")
                || said.stderr.contains("not there"),
            "{path:?}: {}",
            said.stderr
        );
        let commands = named_commands(&said.stderr);
        assert_eq!(commands.len(), 1, "{path:?}: {}", said.stderr);
        if i % 2 == 0 {
            follow(&w, &commands[0]).expect(0);
            assert_eq!(w.ratoon(&["run", "p.toml", "-q"]).expect(0).stderr, "", "{path:?}: it is told no more");
        }
        heal(&w, &expected, path, &path.display().to_string());
    }
}
