//! Throughput, coverage and memory of the matchers, as one Markdown table.
//!
//!     python3 tests/benches/pairs.py            once: real page pairs into .bench/pairs
//!     cargo bench --bench matching [-- FILTER]  a part of the table: rows whose set contains FILTER
//!     cargo bench --bench matching -- --tune    the other half of the pages: those to tune by
//!
//! A hash of a page's name decides whether it is tuned by or reported by, all its versions alike; `--all` takes both.
//! Without the pairs, generated ones take their place, and a line says so. All matchers of a set are measured in
//! turn, pass by pass, and the median pass counts: trust the ratios, not the absolute figures. Memory is the peak
//! of the heap above what was there before, with a fresh scratch, per byte of p and q, for the page of the set
//! where it is largest in total.

#![allow(
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    unsafe_code,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an allocator that counts is unsafe by its signature, and a bench prints"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use imara_diff::{Algorithm, Diff, InternedInput, sources::byte_lines};
use ratoon::inside::matching::{MatcherKind, Scratch, automaton_regions};
use ratoon::inside::model::Region;
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

/// Counts the bytes of the heap, to report peaks.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grow(by: usize) {
    PEAK.fetch_max(LIVE.fetch_add(by, Relaxed) + by, Relaxed);
}

// SAFETY: every call is passed on to the system's allocator unchanged; the counters are atomic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > layout.size() {
            grow(size - layout.size());
        } else {
            LIVE.fetch_sub(layout.size() - size, Relaxed);
        }
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

struct Pair {
    old: String,
    new: String,
}

impl Pair {
    fn bytes(&self) -> usize {
        self.old.len() + self.new.len()
    }
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rival {
    Matcher(MatcherKind, u32),
    Automaton,
    /// imara-diff's histogram on lines, as its own documentation calls it: nothing of ours around it.
    Imara,
    Xxh3,
    Memcmp,
}

/// The least length that counts as useful, where a row does not say otherwise.
const USEFUL: u32 = 89;

impl Rival {
    const ALL: [Self; 10] = [
        Self::Matcher(MatcherKind::SuffixTree, USEFUL),
        Self::Automaton,
        Self::Imara,
        Self::Matcher(MatcherKind::Diff, USEFUL),
        Self::Matcher(MatcherKind::Edges, USEFUL),
        Self::Matcher(MatcherKind::Anchor, USEFUL),
        Self::Matcher(MatcherKind::Anchor, 200),
        Self::Matcher(MatcherKind::Anchor, 840),
        Self::Xxh3,
        Self::Memcmp,
    ];

    fn name(self) -> String {
        match self {
            Self::Matcher(MatcherKind::Anchor, least) => format!("anchor({least})"),
            Self::Matcher(kind, _) => kind.to_string(),
            Self::Automaton => "automaton".to_owned(),
            Self::Imara => "imara histogram".to_owned(),
            Self::Xxh3 => "xxh3 of p and q".to_owned(),
            Self::Memcmp => "memcmp of p and its copy".to_owned(),
        }
    }

    /// Slow ones get fewer passes.
    fn is_slow(self) -> bool {
        matches!(self, Self::Matcher(MatcherKind::SuffixTree, _) | Self::Automaton)
    }

    fn run(self, pair: &Pair, copy: &str, scratch: &mut Scratch, out: &mut Vec<Region>) {
        let (old, new) = (pair.old.as_str(), pair.new.as_str());
        match self {
            Self::Matcher(kind, least) => kind.regions(old, new, least, scratch, out),
            Self::Automaton => automaton_regions(old, new, USEFUL, scratch, out),
            Self::Imara => {
                let input = InternedInput::new(byte_lines(old.as_bytes()), byte_lines(new.as_bytes()));
                black_box(Diff::compute(Algorithm::Histogram, &input));
            }
            Self::Xxh3 => {
                black_box(xxh3_64(old.as_bytes()) ^ xxh3_64(new.as_bytes()));
            }
            Self::Memcmp => {
                black_box(black_box(new) == black_box(copy));
            }
        }
    }
}

/// Share of p inside regions of at least `least` bytes.
fn covered(pairs: &[Pair], rival: Rival) -> Option<f64> {
    let Rival::Matcher(_, least) = rival else { return None };
    let mut scratch = Scratch::new();
    let mut out = Vec::new();
    let (mut inside, mut total) = (0_u64, 0_u64);
    for pair in pairs {
        rival.run(pair, "", &mut scratch, &mut out);
        let mut end = 0;
        for region in out.iter().filter(|region| region.len() >= least) {
            inside += u64::from(region.end - region.start.max(end));
            end = region.end;
        }
        total += pair.new.len() as u64;
    }
    Some(inside as f64 / total.max(1) as f64)
}

/// Largest peak of the heap per byte, over the larger pages of the set.
fn heap(pairs: &[Pair], rival: Rival) -> f64 {
    let largest = pairs.iter().map(Pair::bytes).max().unwrap_or(0);
    let mut most = 0.0_f64;
    for pair in pairs.iter().filter(|pair| pair.bytes() * 4 >= largest) {
        let before = LIVE.load(Relaxed);
        PEAK.store(before, Relaxed);
        let mut scratch = Scratch::new();
        let mut out = Vec::new();
        rival.run(pair, "", &mut scratch, &mut out);
        most = most.max((PEAK.load(Relaxed) - before) as f64 / pair.bytes() as f64);
    }
    most
}

/// Time that this thread has had a core, so that other load on the machine does not count.
fn clock() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Median pass of each rival, measured in turn.
fn times(pairs: &[Pair], rivals: &[Rival], allowed: Duration) -> BTreeMap<Rival, Duration> {
    let copies: Vec<String> = pairs.iter().map(|pair| pair.new.clone()).collect();
    let mut scratch = Scratch::new();
    let mut out = Vec::new();
    let mut passes: BTreeMap<Rival, Vec<Duration>> = BTreeMap::new();
    let started = Instant::now();
    for round in 0.. {
        for &rival in rivals {
            // Slow ones every other time: they would eat the time of the others, and vary less.
            if rival.is_slow() && round % 4 != 1 {
                continue;
            }
            let from = clock();
            for (pair, copy) in pairs.iter().zip(&copies) {
                rival.run(pair, copy, &mut scratch, &mut out);
            }
            // The first round warms caches and scratch.
            if round > 0 {
                passes.entry(rival).or_default().push(clock() - from);
            }
        }
        if round >= 9 && started.elapsed() > allowed || round >= 400 {
            break;
        }
    }
    passes
        .into_iter()
        .map(|(rival, mut times)| {
            times.sort_unstable();
            (rival, times[times.len() / 2])
        })
        .collect()
}

/// Prints the rows of a set and returns the times.
fn report(set: &str, pairs: &[Pair], rivals: &[Rival], allowed: Duration) -> BTreeMap<Rival, Duration> {
    let bytes: usize = pairs.iter().map(Pair::bytes).sum();
    // On a pool of one thread: the clock would not see what the tree leaves to others on large pages.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started");
    let times = pool.install(|| times(pairs, rivals, allowed));
    let tree = times.get(&Rival::ALL[0]).map_or(f64::NAN, Duration::as_secs_f64);
    for &rival in rivals {
        let seconds = times[&rival].as_secs_f64();
        let coverage = covered(pairs, rival).map_or(String::new(), |share| format!("{:.2} %", 100.0 * share));
        println!(
            "| {set} | {} | {:.0} | {:.1} | {coverage} | {:.2} |",
            rival.name(),
            bytes as f64 / seconds / 1e6,
            tree / seconds,
            heap(pairs, rival),
        );
    }
    times
}

/// Says on stderr how often a rival fits into the time of another, and what was aimed at.
fn compare(set: &str, times: &BTreeMap<Rival, Duration>, fast: Rival, slow: Rival, aim: f64) {
    let ratio = times[&slow].as_secs_f64() / times[&fast].as_secs_f64();
    let verdict = if ratio >= aim { "met" } else { "missed" };
    eprintln!("{set}: {} is {ratio:.2} times {}, aim {aim}: {verdict}", fast.name(), slow.name());
}

/// A small generator: the bench must give the same pages everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }
}

fn words(random: &mut Random, bytes: usize) -> String {
    let vocabulary: Vec<String> = (0..3000)
        .map(|_| (0..2 + random.below(9)).map(|_| char::from(b'a' + random.below(26) as u8)).collect())
        .collect();
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        // Common words are common.
        let bound = 1 + random.below(vocabulary.len());
        text.push_str(&vocabulary[random.below(bound)]);
        text.push(if random.below(11) == 0 { '\n' } else { ' ' });
    }
    text
}

/// One edit of up to 80 bytes per `gap` bytes.
fn edited(random: &mut Random, old: &str, gap: usize) -> String {
    let mut new = old.to_owned();
    for _ in 0..(old.len() / gap).max(1) {
        let at = random.below(new.len());
        let end = (at + random.below(80)).min(new.len());
        let length = random.below(80);
        let text = words(random, length.max(1));
        new.replace_range(at..end, &text[..length]);
    }
    new
}

fn generated(gap: usize) -> Vec<Pair> {
    let mut random = Random(88_172_645_463_325_252);
    (0..40)
        .map(|page| {
            let old = words(&mut random, 10_000 + page * 5_000);
            let new = edited(&mut random, &old, gap);
            Pair { old, new }
        })
        .collect()
}

/// Which pages are measured. What was tuned by says nothing about other pages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Tune,
    Report,
    All,
}

impl Half {
    fn asked_for() -> Self {
        let asked = |option: &str| std::env::args().any(|argument| argument == option);
        match () {
            () if asked("--tune") => Self::Tune,
            () if asked("--all") => Self::All,
            () => Self::Report,
        }
    }

    fn has(self, page: &str) -> bool {
        self == Self::All || (xxh3_64(page.as_bytes()) & 1 == 0) == (self == Self::Tune)
    }
}

fn read(folder: &Path, half: Half) -> Vec<Pair> {
    let names = std::fs::read_to_string(folder.join("names")).unwrap_or_default();
    let pages = names.lines().enumerate().filter(|(_, page)| half.has(page));
    let pair = |(number, _)| {
        let text = |side: &str| std::fs::read_to_string(folder.join(format!("{number:04}.{side}"))).ok();
        Some(Pair { old: text("old")?, new: text("new")? })
    };
    pages.filter_map(pair).collect()
}

/// One pair of about `bytes` each, put together from pages of a set.
fn joined(pairs: &[Pair], bytes: usize) -> Vec<Pair> {
    let (mut old, mut new) = (String::new(), String::new());
    let mut next = pairs.iter().cycle();
    while old.len() < bytes {
        let Some(pair) = next.next() else { break };
        old.push_str(&pair.old);
        new.push_str(&pair.new);
    }
    let cut = |mut text: String| {
        text.truncate(text.floor_char_boundary(bytes));
        text
    };
    vec![Pair { old: cut(old), new: cut(new) }]
}

/// Pages about as large as asked for, as they are.
fn of_size(pairs: &[Pair], bytes: usize) -> Vec<Pair> {
    let near = |pair: &&Pair| (bytes / 2..bytes * 2).contains(&pair.new.len());
    pairs.iter().filter(near).take(60).map(|pair| Pair { old: pair.old.clone(), new: pair.new.clone() }).collect()
}

/// Text made to be hard, about 1 MB of q each.
fn hostile() -> Vec<(&'static str, Pair)> {
    const SIZE: usize = 1_000_000;
    let mut random = Random(1_234_567);
    let edit = |random: &mut Random, text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..20 {
            let at = random.below(bytes.len());
            bytes[at] = b'#';
        }
        String::from_utf8(bytes).expect("ASCII stays ASCII")
    };
    let row = "<tr><td>0</td><td>n/a</td><td>none</td></tr>\n";
    let rows = row.repeat(SIZE / row.len());
    let numbered =
        |from: usize| (from..from + SIZE / 40).map(|row| format!("<tr><td>{row:010}</td><td>n/a</td></tr>\n"));
    let kinds =
        ["<tr><td>up</td><td>100 %</td></tr>\n", "<tr><td>down</td><td>0 %</td></tr>\n", "<tr><td>unknown</td></tr>\n"];
    let choices: Vec<usize> = (0..SIZE / 33).map(|_| random.below(3)).collect();
    let flipped: Vec<usize> =
        choices.iter().map(|&kind| if random.below(5) == 0 { random.below(3) } else { kind }).collect();
    let of_kinds = |choices: &[usize]| choices.iter().map(|&kind| kinds[kind]).collect::<String>();
    let (mut fibonacci, mut before) = ("ab".to_owned(), "a".to_owned());
    while fibonacci.len() < SIZE {
        let next = format!("{fibonacci}{before}");
        before = std::mem::replace(&mut fibonacci, next);
    }
    fibonacci.truncate(SIZE);
    let a = "a".repeat(SIZE);
    let every_other = |night: usize| {
        (0..SIZE / 60)
            .map(|row| format!("<li>item number {row} of the list</li>\n<b>{}</b>\n", row * 31 + night))
            .collect::<String>()
    };
    let dna = |random: &mut Random| (0..SIZE).map(|_| ['a', 'c', 'g', 't'][random.below(4)]).collect::<String>();
    vec![
        ("a^n -> a^1.2n", Pair { old: a.clone(), new: "a".repeat(SIZE * 6 / 5) }),
        ("a^n, 20 edits", Pair { old: a.clone(), new: edit(&mut random, &a) }),
        ("equal rows + 20 %", Pair { old: rows.clone(), new: row.repeat(SIZE / row.len() * 6 / 5) }),
        ("equal rows, 20 edits", Pair { old: rows.clone(), new: edit(&mut random, &rows) }),
        ("numbered rows, shifted", Pair { old: numbered(0).collect(), new: numbered(SIZE / 80).collect() }),
        ("3 kinds of rows, 20 % flipped", Pair { old: of_kinds(&choices), new: of_kinds(&flipped) }),
        ("every other line changed", Pair { old: every_other(1), new: every_other(2) }),
        ("Fibonacci word, 20 edits", Pair { new: edit(&mut random, &fibonacci), old: fibonacci }),
        ("unrelated ACGT", Pair { old: dna(&mut random), new: dna(&mut random) }),
        ("unrelated words", Pair { old: words(&mut random, SIZE), new: words(&mut random, SIZE) }),
    ]
}

/// Pages over threads, as the match stage runs them.
fn scaling(pairs: &[Pair], rival: Rival) {
    let bytes: usize = pairs.iter().map(Pair::bytes).sum();
    let pool =
        |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started");
    let pools = [pool(1), pool(2)];
    let mut passes = [Vec::new(), Vec::new()];
    let rounds = if rival.is_slow() { 3 } else { 41 };
    // A scratch per thread, as the match stage keeps them.
    let scratches: Vec<Mutex<(Scratch, Vec<Region>)>> = (0..2).map(|_| Mutex::default()).collect();
    for _ in 0..rounds {
        for (pool, passes) in pools.iter().zip(&mut passes) {
            let from = Instant::now();
            pool.install(|| {
                pairs.par_iter().for_each(|pair| {
                    let thread = rayon::current_thread_index().unwrap_or(0);
                    let mut scratch = scratches[thread].lock().expect("no thread panics");
                    let (scratch, out) = &mut *scratch;
                    rival.run(pair, "", scratch, out);
                });
            });
            passes.push(from.elapsed());
        }
    }
    let [one, two] = passes.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64()
    });
    for (threads, seconds) in [(1, one), (2, two)] {
        println!(
            "| light, {threads} thread{} | {} | {:.0} | {:.2} of one thread | | |",
            if threads == 1 { "" } else { "s" },
            rival.name(),
            bytes as f64 / seconds / 1e6,
            one / seconds
        );
    }
}

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let wanted = |set: &str| set.contains(&filter);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(".bench/pairs");
    let load = |set: &str, gap: usize| {
        let pairs = read(&root.join(set), Half::asked_for());
        if !pairs.is_empty() {
            return pairs;
        }
        eprintln!(
            "no pages in {}: generated ones instead (tests/benches/pairs.py fetches real ones)",
            root.join(set).display()
        );
        generated(gap)
    };
    let (light, heavy) = (load("light", 20_000), load("heavy", 1_000));
    for (set, pairs) in [("light", &light), ("heavy", &heavy)] {
        let bytes: usize = pairs.iter().map(Pair::bytes).sum();
        eprintln!("{set}: {} pairs, {:.1} MB", pairs.len(), bytes as f64 / 1e6);
    }
    println!("| set | matcher | MB/s of p+q | times suffix-tree | p in regions >= L | heap bytes per byte |");
    println!("|---|---|---|---|---|---|");
    for (set, pairs) in [("light", &light), ("heavy", &heavy)] {
        if wanted(set) {
            let times = report(set, pairs, &Rival::ALL, Duration::from_secs(20));
            let aims = if set == "light" { (200.0, 2.5, 4.0) } else { (40.0, 1.5, 3.0) };
            let anchor = |least| Rival::Matcher(MatcherKind::Anchor, least);
            compare(set, &times, anchor(USEFUL), Rival::ALL[0], aims.0);
            compare(set, &times, anchor(USEFUL), Rival::Imara, aims.1);
            compare(set, &times, anchor(200), Rival::Imara, aims.2);
            // A pass over both pages is the measure where most of them is equal.
            if set == "light" {
                compare(set, &times, anchor(USEFUL), Rival::Xxh3, 0.7);
                compare(set, &times, anchor(840), Rival::Xxh3, 0.7);
            }
        }
    }
    if wanted("threads") {
        scaling(&light, Rival::Matcher(MatcherKind::Anchor, USEFUL));
        scaling(&light[..light.len().min(100)], Rival::Matcher(MatcherKind::SuffixTree, USEFUL));
    }
    for (set, bytes) in [("10 KB", 10_000), ("100 KB", 100_000), ("1 MB", 1_000_000), ("10 MB", 10_000_000)] {
        if wanted(set) {
            let natural = of_size(&light, bytes);
            let pairs = if natural.is_empty() || bytes > 2_000_000 { joined(&light, bytes) } else { natural };
            report(set, &pairs, &Rival::ALL[..8], Duration::from_secs(3));
        }
    }
    for (set, pair) in hostile() {
        if wanted("hostile") || wanted(set) {
            let times = report(set, &[pair], &Rival::ALL[..6], Duration::from_secs(2));
            compare(set, &times, Rival::Matcher(MatcherKind::Anchor, USEFUL), Rival::Automaton, 0.4);
        }
    }
}
