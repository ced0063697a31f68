//! What ingest costs beside the least that it must do, as ratios within one run.
//!
//! A synthetic gzip WARC is written to a temporary folder. Rounds are interleaved and the median of each is taken, so
//! that a noisy machine disturbs all alike. `cargo bench --bench ingest -- --pages 20000` for a larger one.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::fs::{self, File};
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastwarc::warc::iter::{ArchiveIterator, ArchiveIteratorOptions};
use fastwarc::warc::record::AutoDecode;
use ratoon::inside::config::Pipeline;
use ratoon::inside::lab::synth::{self, Params, Root, Sink};
use ratoon::inside::model::Digest;
use ratoon::inside::model::StageId;
use ratoon::inside::run::progress::Progress;
use ratoon::inside::run::{self, Wanted};
use ratoon::inside::stages::graph;
use ratoon::inside::text::encoding::decode_body;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 5;

struct Folder(PathBuf);

impl Sink for Folder {
    fn create(&mut self, root: Root, path: &str) -> std::io::Result<Box<dyn std::io::Write>> {
        let path = self.0.join(if root == Root::Truth { "truth" } else { "snapshots" }).join(path);
        fs::create_dir_all(path.parent().unwrap())?;
        Ok(Box::new(std::io::BufWriter::new(File::create(path)?)))
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let option = |name: &str, default: u32| {
        let at = args.iter().position(|arg| arg == name);
        at.and_then(|at| args.get(at + 1)).map_or(default, |value| value.parse().unwrap())
    };
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let params = Params {
        pages: option("--pages", 10_000),
        page_bytes: option("--page-bytes", 10_000),
        snapshots: 1,
        mention_truth: false,
        ..Params::default()
    };
    let written = synth::write_site(&params, &mut Folder(root.to_owned())).unwrap();
    let snapshots = root.join("snapshots");
    let first = fs::read_dir(&snapshots).unwrap().next().unwrap().unwrap().path();
    // The same folder again as the next night: an unchanged snapshot.
    std::os::unix::fs::symlink(&first, snapshots.join("2030-01-01")).unwrap();
    fs::write(root.join("p.toml"), "[corpus]\nsnapshots = 'snapshots'\nstore = 'store'\n").unwrap();
    let pipeline = Pipeline::load(&root.join("p.toml")).unwrap();
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let (one, two) = (pool(1), pool(2));

    let mut times: [Vec<Duration>; 6] = Default::default();
    let mut cpu: [Vec<Duration>; 6] = Default::default();
    for _ in 0..ROUNDS {
        cpu[0].push(timed(|| bare(&first, false)).1);
        cpu[1].push(timed(|| bare(&first, true)).1);
        for (threads, slot) in [(&one, 2), (&two, 4)] {
            let _ = fs::remove_dir_all(root.join("store"));
            let night = |id: &str| {
                let id = Some(ratoon::inside::model::SnapshotId::new(id).unwrap());
                let wanted = Wanted { stage: Some(StageId::Ingest), snapshot: id, ..Wanted::default() };
                timed(|| threads.install(|| run::run(graph(), &pipeline, &wanted, Progress::new(false)).unwrap()))
            };
            for (slot, id) in [(slot, first.file_name().unwrap().to_str().unwrap()), (slot + 1, "2030-01-01")] {
                let (wall, processor) = night(id);
                times[slot].push(wall);
                cpu[slot].push(processor);
            }
        }
    }
    let median = |times: &[Duration]| {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        sorted[ROUNDS / 2].as_secs_f64()
    };
    #[allow(clippy::cast_precision_loss, reason = "megabytes for people")]
    let megabytes = written.body_bytes as f64 / 1e6;
    println!(
        "ingest: {} captures, {megabytes:.0} MB of bodies in one gzip WARC, medians of {ROUNDS} rounds\n",
        written.captures
    );
    println!("| what | MB/s | ratio |\n|---|---|---|");
    // One thread: processor time, which other work on the machine does not disturb. Two: the clock.
    let one = |what: &str, slot: usize, against: usize, name: &str| {
        let (time, base) = (median(&cpu[slot]), median(&cpu[against]));
        println!("| {what} | {:.0} | {:.2} x {name} |", megabytes / time, time / base);
    };
    one("fastwarc iteration, bodies decoded (bare)", 0, 0, "bare");
    one("the same, payloads hashed (read and hash)", 1, 0, "bare");
    one("first ingest, one thread", 2, 0, "bare");
    one("ingest of an unchanged snapshot, one thread", 3, 1, "read and hash");
    for (what, slot) in [("first ingest, two threads", 4), ("ingest of an unchanged snapshot, two threads", 5)] {
        let (two, one) = (median(&times[slot]), median(&times[slot - 2]));
        println!("| {what} | {:.0} | {:.2} times as fast as one |", megabytes / two, one / two);
    }
}

/// How long it took by the clock, and how much processor time.
fn timed<T>(work: impl FnOnce() -> T) -> (Duration, Duration) {
    let processor = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
    };
    let (started, before) = (Instant::now(), processor());
    std::hint::black_box(work());
    (started.elapsed(), processor() - before)
}

/// The least that reading an archive takes: every record, its body decoded; hashed if asked for.
fn bare(folder: &Path, hash: bool) -> u64 {
    let mut total = 0;
    for file in fs::read_dir(folder).unwrap() {
        let options = ArchiveIteratorOptions {
            quirks_mode: true,
            parse_http: true,
            decode_http_payload: AutoDecode::None,
            ..ArchiveIteratorOptions::default()
        };
        let reader = BufReader::new(File::open(file.unwrap().path()).unwrap());
        for record in ArchiveIterator::with_options(reader, options) {
            let record = record.unwrap();
            let mut record = record.borrow_mut();
            let header = |name: &str| record.http_headers().and_then(|h| h.get(name).map(std::borrow::Cow::into_owned));
            let (transfer, content) = (header("Transfer-Encoding"), header("Content-Encoding"));
            let mut body = Vec::new();
            record.reader_mut().unwrap().read_to_end(&mut body).unwrap();
            if let Ok(decoded) = decode_body(body, transfer.as_deref(), content.as_deref(), 1 << 30) {
                total += decoded.bytes.len() as u64;
                if hash {
                    total ^= Digest::of(&decoded.bytes).low64();
                }
            }
        }
    }
    total
}
