//! A full disk, a store that is read-only, files without permission. Tests may run as root, whom modes of files do not
//! stop: then mounts are used, and a process without that power.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{SECTIONS, assert_same, by_way_of, copy_of, files, is_root, nights, with_small_files, write_night};
use crate::workspace::{Ended, Workspace};

/// A small file system in memory, for as long as it lives.
struct Mount {
    place: PathBuf,
}

impl Mount {
    /// `None` if mounting is not allowed here.
    fn at(place: &Path, bytes: u64) -> Option<Self> {
        fs::create_dir_all(place).unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(place)
            .output()
            .ok()?;
        mount.status.success().then(|| Self { place: place.to_owned() })
    }

    fn resize(&self, bytes: u64) {
        let options = format!("remount,size={bytes}");
        let resized = Command::new("mount").args(["-o", &options]).arg(&self.place).status().unwrap();
        assert!(resized.success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.place).status();
    }
}

/// A run whose disk is full at some point: of a file system of so many bytes, or where mounting is refused, by a limit of
/// the size of its files.
fn run_on_full_disk(w: &Workspace, mount: Option<&Mount>, bytes: u64) -> Ended {
    let args = ["run", "p.toml", "-q"];
    let Some(mount) = mount else { return with_small_files(w, bytes, &args) };
    mount.resize(bytes);
    let ended = w.ratoon(&args);
    mount.resize(256 << 20);
    ended
}

#[test]
#[expect(clippy::print_stderr, reason = "what was tried here is told to whoever asks for it")]
fn a_full_disk_at_any_point_is_told_and_healed_by_the_next_run() {
    let quiet = nights(SECTIONS, 3);
    quiet.run();
    let expected = quiet.table_bytes();
    // A file takes whole pages of such a file system, a folder none.
    let pages = |(_, bytes): &(PathBuf, Vec<u8>)| bytes.len().div_ceil(4096) as u64 * 4096;
    let bytes = |w: &Workspace| files(w, "store").iter().map(pages).sum::<u64>();
    let whole = bytes(&quiet);
    let (mut failed, mut mounted) = (0, false);
    for part in [2, 5, 10, 20, 30, 45, 60, 75, 90, 100] {
        let w = nights(SECTIONS, 2);
        let mount = Mount::at(&w.path("store"), 256 << 20);
        mounted |= mount.is_some();
        w.run();
        let before = w.table_bytes();
        let used = bytes(&w);
        write_night(&w, 3);
        // A limit of the size of files bites early or not at all.
        let room = if mount.is_some() { used + (whole - used) * part / 100 } else { 1024 * part };
        let ended = run_on_full_disk(&w, mount.as_ref(), room);
        if ended.code != 0 {
            failed += 1;
            assert_eq!(ended.code, 1, "{}", ended.stderr);
            assert!(ended.stderr.contains("No space left") || ended.stderr.contains("too large"), "{}", ended.stderr);
            assert!(ended.stderr.contains("store"), "it names the file: {}", ended.stderr);
            let now = w.table_bytes();
            let lost: Vec<_> = before.iter().filter(|old| !now.contains(old)).map(|(path, _)| path).collect();
            assert!(lost.is_empty(), "{part} %: {lost:?}");
        }
        w.run();
        assert_same(&w.table_bytes(), &expected, &format!("{part} %"));
        w.ratoon(&["check", "p.toml"]).expect(0);
    }
    assert!(failed > 3, "{failed}");
    eprintln!(
        "{failed} full disks, {}",
        if mounted { "of small file systems" } else { "by limits: mounting is refused here" }
    );
}

#[test]
#[expect(clippy::print_stderr, reason = "what was tried here is told to whoever asks for it")]
fn a_read_only_store_is_read_and_not_written() {
    let w = nights(SECTIONS, 2);
    w.run();
    let (before, store) = (w.table_bytes(), w.path("store").display().to_string());
    write_night(&w, 3);
    let script = format!("mount --bind '{store}' '{store}' && mount -o remount,ro,bind '{store}' && exec \"$@\"");
    let mounts = Command::new("unshare").args(["-m", "sh", "-c", &script, "sh", "true"]).output();
    let way: Vec<&str> = match mounts {
        Ok(output) if output.status.success() => vec!["unshare", "-m", "sh", "-c", &script, "sh"],
        _ => {
            eprintln!("mounting is refused here: the store has no permission to be written instead");
            set_modes(&w, 0o555, 0o444);
            if is_root() { WITHOUT_POWER.to_vec() } else { vec!["env"] }
        }
    };
    let run = |args: &[&str]| Ended::of(&by_way_of(&way, &w, args).output().unwrap());
    let ended = run(&["run", "p.toml", "-q"]).expect(1);
    assert!(ended.stderr.contains("store") && ended.stderr.lines().count() == 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("Read-only") || ended.stderr.contains("denied"), "{}", ended.stderr);
    for args in [
        &["status", "p.toml"][..],
        &["urls", "p.toml"],
        &["show", "p.toml", "http://site.test/p3"],
        &["delta", "p.toml", "--from", "2024-01-01", "--to", "2024-01-02"],
        &["check", "p.toml"],
        &["verify", "p.toml"],
        &["due", "p.toml"],
    ] {
        let ended = run(args);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.stderr);
    }
    set_modes(&w, 0o755, 0o644);
    assert_same(&w.table_bytes(), &before, "nothing was written");
    w.run();
    let quiet = nights(SECTIONS, 3);
    quiet.run();
    assert_same(&w.table_bytes(), &quiet.table_bytes(), "the next run does it");
}

fn set_modes(w: &Workspace, folders: u32, files: u32) {
    let all: Vec<_> = walkdir::WalkDir::new(w.path("store")).contents_first(true).into_iter().collect();
    for entry in all.into_iter().map(Result::unwrap) {
        let mode = if entry.file_type().is_dir() { folders } else { files };
        fs::set_permissions(entry.path(), fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// Root without the power to pass over the modes of files.
const WITHOUT_POWER: &[&str] = &["setpriv", "--bounding-set=-dac_override,-dac_read_search"];

#[test]
fn what_may_not_be_read_or_written_is_named_and_healed_when_it_may() {
    let quiet = nights(SECTIONS, 3);
    quiet.run();
    let expected = quiet.table_bytes();
    let base = nights(SECTIONS, 2);
    base.run();
    write_night(&base, 3);
    let way: &[&str] = if is_root() { WITHOUT_POWER } else { &["env"] };
    for name in [
        "store",
        "store/_meta",
        "store/_meta/store.json",
        "store/_meta/snapshots",
        "store/_meta/snapshots/2024-01-02.json",
        "store/_meta/lock",
        "store/pages",
        "store/pages/snapshot=2024-01-02/part-00000.parquet",
        "store/mentions/word",
        "snapshots",
    ] {
        let w = copy_of(&base);
        let before = w.table_bytes();
        let place = w.path(name);
        let mode = fs::metadata(&place).unwrap().permissions();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o0)).unwrap();
        let ended = Ended::of(&by_way_of(way, &w, &["run", "p.toml", "-q"]).output().unwrap());
        fs::set_permissions(&place, mode).unwrap();
        if ended.code == 0 {
            // It was not needed.
            assert_same(&w.table_bytes(), &expected, name);
            continue;
        }
        assert_eq!(ended.code, 1, "{name}: {}", ended.stderr);
        assert!(ended.stderr.contains("ermission denied") && ended.stderr.contains(name), "{name}: {}", ended.stderr);
        let now = w.table_bytes();
        assert!(before.iter().all(|old| now.contains(old)), "{name}: nothing is lost");
        w.run();
        assert_same(&w.table_bytes(), &expected, name);
    }
}
