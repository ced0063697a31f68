use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use fs_err as fs;
use tempfile::TempDir;

use super::folder::Step;
use super::folder::watched::watch;
use super::*;
use crate::model::Rng;

/// So small that a few entries fill a block, and a few blocks are spilled.
const SMALL: Sizes = Sizes { block: 200, spill: 4000 };

type Entry = (Vec<u8>, Vec<u8>);

/// What an index is to hold.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    entries: [BTreeMap<Vec<u8>, Vec<u8>>; KINDS],
    cursors: BTreeMap<String, Cursor>,
}

impl Model {
    /// All that an index holds.
    fn of(index: &Index) -> Result<Self> {
        let mut model = Self { cursors: index.state().cursors.clone(), ..Self::default() };
        for kind in Kind::ALL {
            model.entries[kind as usize] = scanned(index, kind, b"")?.into_iter().collect();
        }
        Ok(model)
    }
}

fn scanned(index: &Index, kind: Kind, prefix: &[u8]) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    index.scan(kind, prefix, &mut |key, value| {
        entries.push((key.to_vec(), value.to_vec()));
        Ok(true)
    })?;
    Ok(entries)
}

fn open(dir: &Path) -> Index {
    Index::open_with(dir, SMALL).unwrap()
}

fn folder() -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("_meta/index");
    (temp, dir)
}

fn url(i: usize) -> Vec<u8> {
    format!("https://a.example/{i:05}").into_bytes()
}

fn cursor(text: &str) -> Cursor {
    Cursor { snapshot: SnapshotId::new(text).unwrap(), digest: Digest::of(text.as_bytes()) }
}

fn put_all(index: &Index, urls: std::ops::Range<usize>, value: &[u8]) {
    for i in urls {
        index.put(Kind::Heads, url(i), value.to_vec()).unwrap();
    }
}

/// The run files of a folder, by number, with their lengths.
fn run_files(dir: &Path) -> BTreeMap<u64, u64> {
    let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap());
    let runs = files.filter_map(|file| {
        let number = file.file_name().to_str()?.strip_suffix(".run")?.parse().ok()?;
        Some((number, file.metadata().ok()?.len()))
    });
    runs.collect()
}

/// An index of several runs, in which values were replaced and removed.
fn several_runs(dir: &Path) -> Index {
    let index = open(dir);
    put_all(&index, 0..30, b"first");
    index.put(Kind::Lines, b"lines".to_vec(), vec![7; 300]).unwrap();
    index.flush().unwrap();
    put_all(&index, 3..9, b"second");
    index.delete(Kind::Heads, url(4)).unwrap();
    index.set_cursor("ingest", cursor("2024-03-01"));
    index.flush().unwrap();
    index.put(Kind::Texts, b"a text".to_vec(), Vec::new()).unwrap();
    index.clear(Kind::Lines).unwrap();
    index.flush().unwrap();
    assert_eq!(run_files(dir).len(), 3);
    index
}

#[test]
fn nothing_is_found_where_nothing_is() {
    let (_temp, dir) = folder();
    let index = open(&dir);
    assert_eq!(index.get(Kind::Heads, b"a").unwrap(), None);
    assert_eq!(index.cursor("ingest"), None);
    index.delete(Kind::Heads, b"a".to_vec()).unwrap();
    index.flush().unwrap();
    assert_eq!(Model::of(&index).unwrap(), Model::default());
    assert!(!dir.exists(), "what changes nothing writes nothing");
}

/// One random step, on the index and on its model.
fn step(rng: &mut Rng, index: &Index, model: &mut Model) {
    let kind = *rng.choose(&[Kind::Heads, Kind::Versions, Kind::Sources]);
    let entries = &mut model.entries[kind as usize];
    // Long common beginnings, short keys, one that begins another.
    let begin = *rng.choose(&["", "https://a.example/", "https://a.example/section/", "z"]);
    let digits = 1 + rng.index(2);
    let key = format!("{begin}{:0digits$}", rng.index(40)).into_bytes();
    match rng.index(100) {
        0 => {
            index.clear(kind).unwrap();
            entries.clear();
        }
        1..=19 => {
            index.delete(kind, key.clone()).unwrap();
            entries.remove(&key);
        }
        20..=22 => {
            let name = rng.choose(&["a", "b"]).to_string();
            let at = cursor(&format!("s{}", rng.index(1000)));
            index.set_cursor(&name, at.clone());
            model.cursors.insert(name, at);
        }
        23 => {
            index.forget_cursor("a");
            model.cursors.remove("a");
        }
        _ => {
            let length = *rng.choose(&[0, 1, 30, 30, 30, 700]);
            let value: Vec<u8> = (0..length).map(|_| rng.number().to_le_bytes()[0]).collect();
            index.put(kind, key.clone(), value.clone()).unwrap();
            entries.insert(key, value);
        }
    }
}

/// Everything that can be asked gives what the model says.
fn compare(rng: &mut Rng, index: &Index, model: &Model) {
    assert_eq!(Model::of(index).unwrap(), *model);
    for kind in [Kind::Heads, Kind::Versions, Kind::Texts] {
        let entries = &model.entries[kind as usize];
        let mut keys: Vec<Vec<u8>> = entries.keys().filter(|_| rng.index(3) > 0).cloned().collect();
        keys.extend([b"".to_vec(), b"https".to_vec(), b"zz".to_vec(), url(3), url(3)]);
        for i in (1..keys.len()).rev() {
            keys.swap(i, rng.index(i + 1));
        }
        let wanted: Vec<Option<Vec<u8>>> = keys.iter().map(|key| entries.get(key).cloned()).collect();
        assert_eq!(index.get_many(kind, &keys).unwrap(), wanted);
        for prefix in ["z", "https://a.example/1", "https://a.example/section/2", "i"] {
            let prefix = prefix.as_bytes();
            let wanted = entries.iter().filter(|(key, _)| key.starts_with(prefix));
            let wanted: Vec<Entry> = wanted.map(|(key, value)| (key.clone(), value.clone())).collect();
            assert_eq!(scanned(index, kind, prefix).unwrap(), wanted);
        }
    }
}

#[test]
fn it_holds_what_a_map_would() {
    for round in 0..25 {
        let mut rng = Rng::of_round(11, round);
        let (_temp, dir) = folder();
        let sizes = Sizes { block: 50 + rng.index(400), spill: 1000 + rng.index(20_000) };
        let mut index = Index::open_with(&dir, sizes).unwrap();
        let (mut model, mut durable) = (Model::default(), Model::default());
        for _ in 0..25 {
            for _ in 0..rng.index(150) {
                step(&mut rng, &index, &mut model);
            }
            match rng.index(5) {
                0 => compare(&mut rng, &index, &model),
                1 => {
                    // Not flushed: lost, all of it.
                    index = Index::open_with(&dir, sizes).unwrap();
                    model = durable.clone();
                    compare(&mut rng, &index, &model);
                }
                _ => {
                    index.flush().unwrap();
                    durable = model.clone();
                    assert!(run_files(&dir).len() <= MOST_RUNS);
                    compare(&mut rng, &index, &model);
                    compare(&mut rng, &Index::open_with(&dir, sizes).unwrap(), &model);
                }
            }
        }
    }
}

#[test]
fn a_scan_ends_when_it_is_told_to() {
    let (_temp, dir) = folder();
    let index = several_runs(&dir);
    let mut seen = Vec::new();
    let mut visit = |key: &[u8], _: &[u8]| {
        seen.push(key.to_vec());
        Ok(seen.len() < 5)
    };
    index.scan(Kind::Heads, b"", &mut visit).unwrap();
    assert_eq!(seen, [0, 1, 2, 3, 5].map(url));
    let error = index.scan(Kind::Heads, b"", &mut |_, _| Err(io::Error::other("no more").into()));
    assert_eq!(error.unwrap_err().to_string(), "no more");
}

#[test]
fn a_scan_may_change_what_it_sees() {
    let (_temp, dir) = folder();
    let index = open(&dir);
    put_all(&index, 0..300, b"old");
    index.flush().unwrap();
    let mut seen = 0;
    let mut visit = |key: &[u8], value: &[u8]| {
        assert_eq!(value, b"old");
        seen += 1;
        index.put(Kind::Heads, key.to_vec(), vec![b'n'; 100])?;
        index.put(Kind::Heads, [key, b"+"].concat(), Vec::new())?;
        Ok(true)
    };
    index.scan(Kind::Heads, b"", &mut visit).unwrap();
    assert_eq!((seen, scanned(&index, Kind::Heads, b"").unwrap().len()), (300, 600));
}

#[test]
fn an_entry_that_is_too_large_is_refused() {
    let (_temp, dir) = folder();
    let index = open(&dir);
    let error = index.put(Kind::Heads, Vec::new(), vec![0; MOST_ENTRY_BYTES + 1]).unwrap_err();
    assert!(error.to_string().contains("more than"), "{error}");
    index.put(Kind::Heads, b"large".to_vec(), vec![1; 3 << 20]).unwrap();
    index.flush().unwrap();
    assert_eq!(open(&dir).get(Kind::Heads, b"large").unwrap().unwrap(), vec![1; 3 << 20]);
}

#[test]
fn what_is_spilled_counts_at_once_and_lasts_from_the_next_flush() {
    let (_temp, dir) = folder();
    let index = open(&dir);
    put_all(&index, 0..10, b"old");
    index.flush().unwrap();
    put_all(&index, 5..1500, &[1; 50]);
    assert!(index.state().pending.bytes() < SMALL.spill);
    assert!(run_files(&dir).len() <= MOST_SPILLED + 1);
    assert!(run_files(&dir).values().sum::<u64>() > 20_000, "most of it lies on disk");
    assert_eq!(index.get(Kind::Heads, &url(7)).unwrap(), Some(vec![1; 50]));
    assert_eq!(scanned(&index, Kind::Heads, b"").unwrap().len(), 1500);
    // A process that reads, or comes after a crash, sees the last flush and leaves the files alone.
    let files = run_files(&dir);
    let reader = open(&dir);
    assert_eq!(scanned(&reader, Kind::Heads, b"").unwrap().len(), 10);
    assert_eq!(run_files(&dir), files);
    index.flush().unwrap();
    assert_eq!(scanned(&open(&dir), Kind::Heads, b"").unwrap().len(), 1500);
    assert_eq!(scanned(&reader, Kind::Heads, b"").unwrap().len(), 10, "a reader keeps what it opened");
}

#[test]
fn runs_that_no_catalogue_names_are_removed_before_others_are_written() {
    let (_temp, dir) = folder();
    let index = several_runs(&dir);
    let (before, named) = (Model::of(&index).unwrap(), run_files(&dir));
    put_all(&index, 100..300, &[1; 50]);
    fs::write(dir.join("77.run"), "left by another").unwrap();
    assert!(run_files(&dir).len() > named.len() + 1);
    drop(index);
    let index = open(&dir);
    assert_eq!(Model::of(&index).unwrap(), before);
    index.set_cursor("ingest", cursor("2024-03-02"));
    index.flush().unwrap();
    assert_eq!(run_files(&dir), named);
}

#[test]
fn a_poll_leaves_large_runs_alone() {
    let (_temp, dir) = folder();
    let index = Index::open_with(&dir, Sizes { block: 1000, spill: 1 << 20 }).unwrap();
    put_all(&index, 0..20_000, &[1; 50]);
    index.flush().unwrap();
    let large = *run_files(&dir).keys().next().unwrap();
    let mut rng = Rng::new(3);
    let mut written = 0;
    let mut files = run_files(&dir);
    for poll in 0..900 {
        for _ in 0..20 {
            index.put(Kind::Heads, url(rng.index(20_000)), vec![2; 50]).unwrap();
        }
        index.flush().unwrap();
        let now = run_files(&dir);
        assert!(now.contains_key(&large), "rewritten by poll {poll}");
        assert!(now.len() <= MOST_RUNS);
        written += now.iter().filter(|(number, _)| !files.contains_key(number)).map(|(_, length)| length).sum::<u64>();
        files = now;
    }
    let added = 900 * 20 * 70;
    assert!(written < 10 * added, "{written} bytes written for {added}");
}

#[test]
fn a_night_leaves_alone_what_only_contents_change() {
    let (_temp, dir) = folder();
    let index = open(&dir);
    for kind in Kind::ALL {
        (0..300).for_each(|i| index.put(kind, url(i), vec![kind as u8; 20]).unwrap());
    }
    index.flush().unwrap();
    let first = run_files(&dir);
    assert_eq!(first.len(), 3);
    let by_captures = |kind: Kind| Pace::of(kind) != Pace::Contents;
    for kind in Kind::ALL.into_iter().filter(|kind| by_captures(*kind)) {
        (0..300).for_each(|i| index.put(kind, url(i), vec![1; 20]).unwrap());
    }
    index.put(Kind::Lines, url(7), b"other".to_vec()).unwrap();
    index.delete(Kind::Texts, url(8)).unwrap();
    index.flush().unwrap();
    let second = run_files(&dir);
    assert_eq!(first.keys().filter(|number| second.contains_key(number)).count(), 1);
    assert_eq!(second.len(), 4, "what captures change, what contents change, and a little of that");
    let index = open(&dir);
    for kind in Kind::ALL {
        let (entries, value) = (scanned(&index, kind, b"").unwrap(), index.get(kind, &url(9)).unwrap());
        assert_eq!(entries.len(), 300 - usize::from(kind == Kind::Texts));
        assert_eq!(value, Some(vec![if by_captures(kind) { 1 } else { kind as u8 }; 20]));
    }
    assert_eq!(index.get(Kind::Lines, &url(7)).unwrap(), Some(b"other".to_vec()));
}

#[test]
fn what_is_much_is_written_on_threads_of_its_own() {
    let (_temp, dir) = folder();
    let sizes = Sizes { spill: usize::MAX, ..Sizes::default() };
    let index = Index::open_with(&dir, sizes).unwrap();
    let mut rng = Rng::new(11);
    let mut expected = Model::default();
    for kind in [Kind::Heads, Kind::Lines, Kind::Evidence, Kind::Sources] {
        for i in 0..if kind == Kind::Sources { 10 } else { 30 } {
            let value: Vec<u8> = (0..25_000).flat_map(|_| rng.number().to_le_bytes()).collect();
            index.put(kind, url(i), value.clone()).unwrap();
            expected.entries[kind as usize].insert(url(i), value);
        }
    }
    assert!(index.state().pending.amount(Kind::Heads).bytes > LARGE_MERGE);
    index.flush_on_threads().unwrap();
    assert_eq!(run_files(&dir).len(), Pace::ALL.len());
    assert!(Model::of(&open(&dir)).unwrap() == expected);
}

#[test]
fn what_is_seen_while_a_flush_writes_is_not_lost() {
    let (_temp, dir) = folder();
    let index = Arc::new(open(&dir));
    put_all(&index, 0..20, b"before");
    let (other, mut steps) = (Arc::clone(&index), 0);
    let meanwhile = move |_: Step<'_>| {
        other.put(Kind::Heads, format!("meanwhile {steps}").into_bytes(), Vec::new()).unwrap();
        steps += 1;
        // Whoever looks at the index makes a layer of what is pending.
        assert_eq!(scanned(&other, Kind::Heads, b"meanwhile").unwrap().len(), steps);
    };
    watch(meanwhile, || index.flush()).unwrap();
    let seen = scanned(&index, Kind::Heads, b"meanwhile").unwrap();
    assert!(!seen.is_empty());
    index.flush().unwrap();
    assert_eq!(scanned(&open(&dir), Kind::Heads, b"meanwhile").unwrap(), seen);
    assert_eq!(scanned(&open(&dir), Kind::Heads, b"").unwrap().len(), 20 + seen.len());
}

#[test]
fn a_night_leaves_little_that_is_stale() {
    let (_temp, dir) = folder();
    let index = Index::open_with(&dir, Sizes { block: 1000, spill: 100_000 }).unwrap();
    let mut rng = Rng::new(5);
    let mut night = |index: &Index| {
        for i in 0..5000 {
            let noise = (0..10).flat_map(|_| rng.number().to_le_bytes()).collect();
            index.put(Kind::Heads, url(i), noise).unwrap();
        }
        index.flush().unwrap();
        run_files(&dir).values().sum::<u64>()
    };
    let once = night(&index);
    for _ in 0..5 {
        let again = night(&index);
        assert!(again < once * 21 / 10, "{again} bytes for {once}");
    }
    // Deletions hide much and take little.
    for i in 0..4000 {
        index.delete(Kind::Heads, url(i)).unwrap();
    }
    index.flush().unwrap();
    assert!(run_files(&dir).values().sum::<u64>() < once / 2);
    index.clear(Kind::Heads).unwrap();
    index.flush().unwrap();
    assert_eq!(run_files(&dir), BTreeMap::new());
}

#[test]
fn what_was_cleared_leaves_the_disk() {
    let (_temp, dir) = folder();
    let index = open(&dir);
    put_all(&index, 0..30, b"kept");
    let mut rng = Rng::new(5);
    for i in 0..200 {
        index.put(Kind::Lines, url(i), (0..10).flat_map(|_| rng.number().to_le_bytes()).collect()).unwrap();
    }
    index.flush().unwrap();
    let before = run_files(&dir).values().sum::<u64>();
    index.clear(Kind::Lines).unwrap();
    index.put(Kind::Lines, b"new".to_vec(), Vec::new()).unwrap();
    index.flush().unwrap();
    assert!(run_files(&dir).values().sum::<u64>() < before / 5);
    let index = open(&dir);
    assert_eq!(scanned(&index, Kind::Lines, b"").unwrap(), [(b"new".to_vec(), Vec::new())]);
    assert_eq!(scanned(&index, Kind::Heads, b"").unwrap().len(), 30);
}

#[test]
fn a_flush_that_failed_can_be_repeated() {
    let (_temp, dir) = folder();
    let index = several_runs(&dir);
    put_all(&index, 5..20, b"third");
    index.clear(Kind::Texts).unwrap();
    let model = Model::of(&index).unwrap();
    // A folder where the catalogue is to be written.
    fs::create_dir(dir.join("CURRENT.tmp")).unwrap();
    for _ in 0..2 {
        index.flush().unwrap_err();
        assert_eq!(Model::of(&index).unwrap(), model);
        index.put(Kind::Heads, url(6), b"third".to_vec()).unwrap();
    }
    // Also what could not be written can be cleared.
    index.put(Kind::Sources, b"a source".to_vec(), Vec::new()).unwrap();
    index.flush().unwrap_err();
    index.clear(Kind::Sources).unwrap();
    assert_eq!(Model::of(&index).unwrap(), model);
    assert_eq!(index.get(Kind::Sources, b"a source").unwrap(), None);
    fs::remove_dir(dir.join("CURRENT.tmp")).unwrap();
    index.flush().unwrap();
    assert_eq!(Model::of(&index).unwrap(), model);
    assert_eq!(Model::of(&open(&dir)).unwrap(), model);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let path = file.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// What a crash may leave after each step of `work`: files that were not synced also cut or full of zeros.
fn crashes(dir: &Path, work: impl FnOnce()) -> Vec<TempDir> {
    let copies = Arc::new(Mutex::new(Vec::new()));
    let (all, source) = (Arc::clone(&copies), dir.to_owned());
    let mut unsynced: Vec<PathBuf> = Vec::new();
    let watcher = move |step: Step<'_>| {
        match step {
            Step::Written(path) if !unsynced.iter().any(|other| other == path) => unsynced.push(path.to_owned()),
            Step::Synced(path) => unsynced.retain(|other| other != path),
            Step::Renamed(from, to) => {
                unsynced.iter_mut().filter(|path| *path == from).for_each(|path| to.clone_into(path));
            }
            _ => {}
        }
        for harm in 0..3 {
            let copied = tempfile::tempdir().unwrap();
            copy(&source, copied.path());
            for path in unsynced.iter().filter(|path| path.exists()) {
                let path = copied.path().join(path.file_name().unwrap());
                let bytes = fs::read(&path).unwrap();
                match harm {
                    0 => {}
                    1 => fs::write(&path, &bytes[..bytes.len() / 2]).unwrap(),
                    _ => fs::write(&path, vec![0; bytes.len()]).unwrap(),
                }
            }
            all.lock().unwrap().push(copied);
        }
    };
    watch(watcher, work);
    Arc::into_inner(copies).unwrap().into_inner().unwrap()
}

#[test]
fn a_crash_in_a_flush_leaves_the_index_before_or_after_it() {
    // The first flush of all, one that adds a run, one that merges all of them after spilling some.
    for (flushes, urls) in [(0, 0..20), (1, 3..6), (1, 0..400)] {
        let (_temp, dir) = folder();
        fs::create_dir_all(&dir).unwrap();
        let index = if flushes == 0 { open(&dir) } else { several_runs(&dir) };
        let before = Model::of(&index).unwrap();
        let states = crashes(&dir, || {
            put_all(&index, urls.clone(), &[3; 40]);
            index.clear(Kind::Texts).unwrap();
            index.set_cursor("ingest", cursor("later"));
            index.flush().unwrap();
        });
        let after = Model::of(&index).unwrap();
        assert_ne!(before, after);
        let mut seen = [0, 0];
        for state in &states {
            let found = Model::of(&open(state.path())).unwrap();
            assert!(found == before || found == after);
            seen[usize::from(found == after)] += 1;
            // And the next flush works.
            let index = open(state.path());
            put_all(&index, 0..3, b"afterwards");
            index.flush().unwrap();
            assert_eq!(open(state.path()).get(Kind::Heads, &url(2)).unwrap().unwrap(), b"afterwards");
        }
        assert!(seen.iter().all(|&count| count >= 3), "{seen:?}");
    }
}

/// What is asked of a damaged index: all of it, each entry by key, too.
fn answers(dir: &Path, keys: &[Vec<u8>]) -> Result<(Model, Vec<Option<Vec<u8>>>)> {
    let index = Index::open_with(dir, SMALL)?;
    let found = index.get_many(Kind::Heads, keys)?;
    Ok((Model::of(&index)?, found))
}

/// Does harm to each file of an index and looks whether it is noticed: an error, or the answers that were given before.
fn noticed(harm: impl Fn(&[u8]) -> Vec<Vec<u8>>) {
    let (_temp, dir) = folder();
    several_runs(&dir);
    let keys: Vec<Vec<u8>> = (0..40).map(url).collect();
    let whole = answers(&dir, &keys).unwrap();
    for file in fs::read_dir(&dir).unwrap() {
        let path = file.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let mut errors = 0;
        let damages = harm(&bytes);
        for damaged in &damages {
            fs::write(&path, damaged).unwrap();
            match answers(&dir, &keys) {
                Ok(found) => assert_eq!(found, whole, "{}", path.display()),
                Err(StoreError::Damaged { .. }) => errors += 1,
                Err(error) => panic!("{error}"),
            }
        }
        // Only blocks of kinds that were cleared are not read.
        assert!(errors * 10 >= damages.len() * 6, "{}: {errors} of {}", path.display(), damages.len());
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(answers(&dir, &keys).unwrap(), whole);
}

#[test]
fn every_flipped_bit_is_noticed() {
    noticed(|bytes| {
        let flipped = |at: usize| {
            let mut bytes = bytes.to_vec();
            bytes[at / 8] ^= 1 << (at % 8);
            bytes
        };
        // Every byte, each time another bit.
        (0..bytes.len()).map(|at| flipped(at * 8 + at % 8)).collect()
    });
}

#[test]
fn every_cut_and_every_hole_is_noticed() {
    noticed(|bytes| (0..bytes.len()).map(|at| bytes[..at].to_vec()).collect());
    noticed(|bytes| {
        let holes = (0..bytes.len()).step_by(5).map(|at| {
            let mut hole = bytes.to_vec();
            hole[at..(at + 40).min(bytes.len())].fill(0);
            hole
        });
        holes.filter(|hole| hole != bytes).collect()
    });
    noticed(|bytes| vec![[bytes, b"\0"].concat(), [bytes, bytes].concat(), vec![0; bytes.len()], Vec::new()]);
}

#[test]
fn another_run_in_the_place_of_one_is_noticed() {
    let (_temp, dir) = folder();
    several_runs(&dir);
    let runs: Vec<PathBuf> = run_files(&dir).keys().map(|number| dir.join(format!("{number}.run"))).collect();
    let first = fs::read(&runs[0]).unwrap();
    fs::copy(&runs[1], &runs[0]).unwrap();
    assert!(matches!(Index::open(&dir), Err(StoreError::Damaged { .. })));
    fs::remove_file(&runs[0]).unwrap();
    assert!(matches!(Index::open(&dir), Err(StoreError::Damaged { .. })));
    fs::write(&runs[0], first).unwrap();
    Index::open(&dir).unwrap();
    Index::remove(&dir).unwrap();
    assert_eq!(Model::of(&open(&dir)).unwrap(), Model::default());
    Index::remove(&dir).unwrap();
}

#[test]
fn a_run_of_another_index_is_noticed() {
    let [(_temp, one), (_other_temp, other)] = [folder(), folder()];
    let mut rng = Rng::new(5);
    for dir in [&one, &other] {
        let index = open(dir);
        put_all(&index, 0..1, &rng.number().to_le_bytes());
        index.flush().unwrap();
    }
    assert_eq!(run_files(&one), run_files(&other), "only the contents differ");
    let name = format!("{}.run", run_files(&one).keys().next().unwrap());
    fs::copy(other.join(&name), one.join(&name)).unwrap();
    assert!(matches!(Index::open(&one), Err(StoreError::Damaged { .. })));
}

#[test]
fn a_run_that_is_damaged_while_it_is_open_is_noticed() {
    let (_temp, dir) = folder();
    several_runs(&dir);
    let index = open(&dir);
    for number in run_files(&dir).keys() {
        fs::write(dir.join(format!("{number}.run")), "short").unwrap();
    }
    assert!(matches!(index.get(Kind::Heads, &url(1)), Err(StoreError::Damaged { .. })));
}

#[test]
fn threads_read_while_one_writes() {
    let (_temp, dir) = folder();
    let index = open(&dir);
    // A value names its round; a later look never sees an earlier round, nor a scan two of them out of turn.
    let round_of = |value: &[u8]| usize::from(value[0]);
    put_all(&index, 0..100, &[0; 20]);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (index, ended) = (&index, &ended);
            scope.spawn(move || {
                let keys: Vec<Vec<u8>> = (0..100).map(url).collect();
                let mut last = 0;
                while !ended.load(Ordering::Relaxed) {
                    let rounds: Vec<usize> = if thread == 0 {
                        let values = index.get_many(Kind::Heads, &keys).unwrap();
                        values.iter().map(|value| round_of(value.as_ref().unwrap())).collect()
                    } else {
                        let entries = scanned(index, Kind::Heads, b"").unwrap();
                        entries.iter().map(|(_, value)| round_of(value)).collect()
                    };
                    // Written in the order of keys: those before the one being written are a round ahead.
                    assert_eq!(rounds.len(), 100);
                    assert!(rounds.is_sorted_by(|a, b| a >= b) && rounds[0] - rounds[99] <= 1, "{rounds:?}");
                    assert!(rounds[99] >= last);
                    last = rounds[99];
                }
            });
        }
        for round in 1..200u8 {
            put_all(&index, 0..100, &[round; 20]);
            if round % 3 == 0 {
                index.flush().unwrap();
            }
        }
        ended.store(true, Ordering::Relaxed);
    });
    assert!(scanned(&index, Kind::Heads, b"").unwrap().iter().all(|(_, value)| value[0] == 199));
}

#[test]
fn a_process_can_open_it_while_another_one_writes() {
    let (_temp, dir) = folder();
    let index = open(&dir);
    put_all(&index, 0..50, &[0]);
    index.flush().unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let entries = scanned(&open(&dir), Kind::Heads, b"").unwrap();
                assert_eq!(entries.len(), 50);
                assert!(entries.iter().all(|(_, value)| *value == entries[0].1), "two flushes at once");
            }
        });
        for round in 1..100u8 {
            put_all(&index, 0..50, &[round]);
            index.flush().unwrap();
        }
        ended.store(true, Ordering::Relaxed);
    });
}
