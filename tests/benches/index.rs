//! What the index costs: a poll beside a night that touches everything.
//!
//! An index of many URLs is built, polled (200 URLs read, written, flushed) in the process that built it and in ones that
//! open it anew, rewritten whole, and read whole. `cargo bench --bench index -- --urls 100000` for a smaller one.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use ratoon::inside::model::{Digest, Rng, SnapshotId};
use ratoon::inside::store::index::{Cursor, Index, Kind};

#[global_allocator]
static ALLOCATOR: ratoon::Allocator = ratoon::Allocator;

/// URLs of a poll.
const POLL: usize = 200;
/// Polls of each sort; the median counts.
const POLLS: usize = 25;
/// A night asks for its URLs in as many batches.
const BATCHES: usize = 16;

struct Row {
    what: String,
    clock: Duration,
    processor: Duration,
    on_disk: u64,
    files: usize,
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let option = |name: &str, default: usize| {
        let at = args.iter().position(|arg| arg == name);
        at.and_then(|at| args.get(at + 1)).map_or(default, |value| value.parse().unwrap())
    };
    let (urls, worn) = (option("--urls", 1_000_000), option("--polls", 1000));
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut rows = Vec::new();
    let mut row = |what: &str, (clock, processor): (Duration, Duration)| {
        let (on_disk, files) = size(dir);
        rows.push(Row { what: what.into(), clock, processor, on_disk, files });
    };

    let index = Index::open(dir).unwrap();
    let order = shuffled(urls);
    row("building, in no order", timed(|| night(&index, &order, 0, false)));
    row("poll", median(POLLS, |i| timed(|| poll(&index, urls, i as u64))));
    row("poll after opening", median(POLLS, |i| timed(|| poll(&Index::open(dir).unwrap(), urls, (i + POLLS) as u64))));
    let index = Index::open(dir).unwrap();
    row(&format!("{worn} polls"), timed(|| (0..worn).for_each(|i| poll(&index, urls, (i + 2 * POLLS) as u64))));
    let at = |i: usize| (i + 2 * POLLS + worn) as u64;
    row("poll after these", median(POLLS, |i| timed(|| poll(&index, urls, at(i)))));
    row("the same after opening", median(POLLS, |i| timed(|| poll(&Index::open(dir).unwrap(), urls, at(i + POLLS)))));
    let index = Index::open(dir).unwrap();
    let in_order: Vec<usize> = (0..urls).collect();
    row("all read, a range of keys at a time", timed(|| read(&index, &in_order)));
    row("all read and rewritten, likewise", timed(|| night(&index, &in_order, 1, true)));
    row("the same, keys from everywhere at a time", timed(|| night(&index, &order, 2, true)));
    row("all scanned", timed(|| scan(&index, urls)));

    let all = rows.iter().find(|row| row.what.contains("rewritten")).unwrap().clock.as_secs_f64();
    println!("index: {urls} URLs, values of 300 bytes, {POLL} URLs a poll, medians of {POLLS} polls\n");
    println!("| what | seconds | processor | of all rewritten | MB on disk | files |\n|---|---|---|---|---|---|");
    for row in rows {
        #[allow(clippy::cast_precision_loss, reason = "megabytes for people")]
        let megabytes = row.on_disk as f64 / 1e6;
        println!(
            "| {} | {:.4} | {:.4} | {:.5} | {megabytes:.1} | {} |",
            row.what,
            row.clock.as_secs_f64(),
            row.processor.as_secs_f64(),
            row.clock.as_secs_f64() / all,
            row.files
        );
    }
}

/// In order of `i`.
fn url(i: usize) -> Vec<u8> {
    format!("https://site-{:04}.example/section-{:02}/article/{i:07}.html", i / 1500, i / 50 % 30).into_bytes()
}

/// Half of it digests, half of it much like others.
fn value(i: usize, round: u64) -> Vec<u8> {
    let mut rng = Rng::keyed(&[i as u64, round]);
    let mut value: Vec<u8> = (0..20).flat_map(|_| rng.number().to_le_bytes()).collect();
    let known = format!(
        "text/html; charset=utf-8 en 2024-03-{:02}T{:02}:00:00Z status 200 etag \"{:x}\" title: Article {i} of the site",
        rng.index(30),
        rng.index(24),
        rng.index(1 << 30)
    );
    value.extend_from_slice(known.as_bytes());
    value.resize(300, b' ');
    value
}

fn shuffled(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut rng = Rng::new(1);
    for i in (1..count).rev() {
        order.swap(i, rng.index(i + 1));
    }
    order
}

fn cursor(round: u64) -> Cursor {
    Cursor { snapshot: SnapshotId::new(format!("night-{round}")).unwrap(), digest: Digest::of(&round.to_le_bytes()) }
}

/// Touches all URLs in an order.
fn night(index: &Index, order: &[usize], round: u64, reads: bool) {
    for batch in order.chunks(order.len().div_ceil(BATCHES)) {
        let keys: Vec<Vec<u8>> = batch.iter().map(|&i| url(i)).collect();
        if reads {
            assert!(index.get_many(Kind::Heads, &keys).unwrap().iter().all(Option::is_some));
        }
        for (&i, key) in batch.iter().zip(keys) {
            index.put(Kind::Heads, key, value(i, round)).unwrap();
        }
    }
    index.set_cursor("ingest", cursor(round));
    index.flush().unwrap();
}

fn read(index: &Index, order: &[usize]) {
    for batch in order.chunks(order.len().div_ceil(BATCHES)) {
        let keys: Vec<Vec<u8>> = batch.iter().map(|&i| url(i)).collect();
        assert!(index.get_many(Kind::Heads, &keys).unwrap().iter().all(Option::is_some));
    }
}

fn poll(index: &Index, urls: usize, number: u64) {
    let mut rng = Rng::keyed(&[number, 77]);
    let wanted: Vec<usize> = (0..POLL).map(|_| rng.index(urls)).collect();
    let keys: Vec<Vec<u8>> = wanted.iter().map(|&i| url(i)).collect();
    assert!(index.get_many(Kind::Heads, &keys).unwrap().iter().all(Option::is_some));
    for (i, key) in wanted.into_iter().zip(keys) {
        index.put(Kind::Heads, key, value(i, number)).unwrap();
    }
    index.set_cursor("ingest", cursor(number));
    index.flush().unwrap();
}

fn scan(index: &Index, urls: usize) {
    let (mut seen, mut bytes) = (0, 0);
    let mut visit = |key: &[u8], value: &[u8]| {
        seen += 1;
        bytes += key.len() + value.len();
        Ok(true)
    };
    index.scan(Kind::Heads, b"", &mut visit).unwrap();
    assert_eq!(seen, urls);
    std::hint::black_box(bytes);
}

fn size(dir: &Path) -> (u64, usize) {
    let lengths: Vec<u64> = fs::read_dir(dir).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).collect();
    (lengths.iter().sum(), lengths.len())
}

/// By the clock, and of the processor.
fn timed(work: impl FnOnce()) -> (Duration, Duration) {
    let processor = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
    };
    let (started, before) = (Instant::now(), processor());
    work();
    (started.elapsed(), processor() - before)
}

fn median(count: usize, mut work: impl FnMut(usize) -> (Duration, Duration)) -> (Duration, Duration) {
    let (mut clock, mut processor): (Vec<_>, Vec<_>) = (0..count).map(&mut work).unzip();
    clock.sort_unstable();
    processor.sort_unstable();
    (clock[count / 2], processor[count / 2])
}
