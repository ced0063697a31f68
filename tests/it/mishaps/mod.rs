//! Mishaps: whatever is done to a run or to its store, the next run heals it or names the one command that does, and
//! nothing wrong is copied into the next night.
//!
//! | module | what happens |
//! | --- | --- |
//! | `kills` | `kill -9` at random moments of every command that writes |
//! | `disks` | a full disk, a store that is read-only, files without permission |
//! | `damage` | bytes flipped in every kind of file, partitions removed |
//! | `together` | two runs at once, readers during `--force` |
//! | `signals` | SIGTERM, Ctrl-C; a clock that jumps; folders that change after they were read |
//! | `week` | all of it in one week, run by cron |
//!
//! All start from the same small site, whose quiet nights say what must come out.

mod damage;
mod disks;
mod kills;
mod signals;
mod together;
mod week;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace::{Ended, Workspace, html};

/// Extractors, a watch and a query, so that every table has rows. Plans are fixed, so that none follows measured times.
const SECTIONS: &str = "
[plan]
choose = 'anchor'
[[extractor]]
name = 'word'
kind = 'regex'
pattern = '[A-Z][a-z]+'
[[watch]]
name = 'words'
on = { mentions = 'word' }
[[query]]
name = 'news'
nodes.a = { title = 'Page 1*' }
links = ['a -> b']
[verify]
nightly = 'off'
";

/// The page `i` on a night: some change every night, some never.
fn page(i: usize, night: usize) -> String {
    let news = if i % 4 == night % 4 { format!("News of night {night}") } else { "Nothing new".to_owned() };
    let rest = (0..6).map(|line| format!("</p><p>Line {line} stays on page {i}")).collect::<String>();
    html(&format!("Page {i}"), &format!("{news}{rest}"), &format!("p{}", (i + 1) % 24))
}

fn day(night: usize) -> String {
    format!("2024-01-{night:02}")
}

/// Writes the folder of a night; on each another page is missing.
fn write_night(w: &Workspace, night: usize) {
    let pages: Vec<(String, String)> =
        (0..24).filter(|i| i % 24 != night % 24).map(|i| (format!("p{i}"), page(i, night))).collect();
    let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
    w.snapshot(&day(night), &pages);
}

/// A workspace with folders of these nights, not yet run.
fn nights(sections: &str, count: usize) -> Workspace {
    let w = Workspace::new(sections);
    (1..=count).for_each(|night| write_night(&w, night));
    w
}

/// The same workspace once more, with all that is in it.
fn copy_of(w: &Workspace) -> Workspace {
    let copy = Workspace::new("");
    let copied = Command::new("cp").args(["-a", "."]).arg(copy.path("")).current_dir(w.path("")).status().unwrap();
    assert!(copied.success());
    copy
}

/// Every file below a folder of the workspace, with its bytes.
fn files(w: &Workspace, folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let root = w.path(folder);
    if root.is_file() {
        return vec![(PathBuf::new(), fs::read(root).unwrap())];
    }
    let mut files: Vec<_> = walkdir::WalkDir::new(&root)
        .into_iter()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| (entry.path().strip_prefix(&root).unwrap().to_owned(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

/// Paths of files that differ between two lists.
fn differing<'a>(a: &'a [(PathBuf, Vec<u8>)], b: &'a [(PathBuf, Vec<u8>)]) -> Vec<&'a Path> {
    let missing = |from: &'a [(PathBuf, Vec<u8>)], to: &[(PathBuf, Vec<u8>)]| {
        let other: std::collections::BTreeMap<&PathBuf, &Vec<u8>> =
            to.iter().map(|(path, bytes)| (path, bytes)).collect();
        let differs = move |(path, bytes): &&(PathBuf, Vec<u8>)| other.get(path) != Some(&bytes);
        from.iter().filter(differs).map(|(path, _)| path.as_path()).collect::<Vec<_>>()
    };
    [missing(a, b), missing(b, a)].concat()
}

#[track_caller]
fn assert_same(a: &[(PathBuf, Vec<u8>)], b: &[(PathBuf, Vec<u8>)], case: &str) {
    let differ = differing(a, b);
    assert!(differ.is_empty(), "{case}: {differ:?}");
}

/// The commands that a message names, each in backquotes, for this workspace.
fn named_commands(said: &str) -> Vec<String> {
    let quoted = said.split('`').skip(1).step_by(2).filter(|words| words.starts_with("ratoon "));
    let mut commands: Vec<String> = quoted.map(|words| words.replace("PIPELINE", "p.toml")).collect();
    commands.dedup();
    commands
}

/// Does what a message says: a command of ours, by a shell, in the workspace.
fn follow(w: &Workspace, command: &str) -> Ended {
    let words = command.strip_prefix("ratoon").expect("a command of ours");
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec '{}' {words}", env!("CARGO_BIN_EXE_ratoon"))]).current_dir(w.path(""));
    Ended::of(&shell.output().unwrap())
}

/// Starts a command of ours by way of another program, such as one that takes rights away.
fn by_way_of(way: &[&str], w: &Workspace, args: &[&str]) -> Command {
    let mut command = Command::new(way[0]);
    command.args(&way[1..]).arg(env!("CARGO_BIN_EXE_ratoon")).args(args).current_dir(w.path(""));
    command
}

/// Runs a command of ours that may write no file of more bytes than this, as if the disk were full.
pub(crate) fn with_small_files(w: &Workspace, bytes: u64, args: &[&str]) -> Ended {
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", bytes / 1024);
    Ended::of(&by_way_of(&["bash", "-c", &script, "bash"], w, args).output().unwrap())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout.trim_ascii() == b"0"
}
