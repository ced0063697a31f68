//! What reading each layout costs beside WARC, per byte of payload, as ratios within one run.
//!
//! One synthetic site is written in every layout, and each is ingested on one thread; processor time counts, which other
//! work on the machine does not disturb. A second part reads one large gzip WARC on one thread and on two, by the clock;
//! `--large-file-only` does nothing else.
//! Rounds are interleaved and the median of each is taken. `cargo bench --bench archives -- --pages 20000` for a larger
//! one.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ratoon::inside::archive::{Layout, SnapshotFolder};
use ratoon::inside::config::Pipeline;
use ratoon::inside::lab::synth::{self, Params, Root, Sink};
use ratoon::inside::model::StageId;
use ratoon::inside::model::{Body, RawCapture, Timestamp};
use ratoon::inside::run::progress::Progress;
use ratoon::inside::run::{self, Wanted};
use ratoon::inside::stages::graph;

use ratoon::inside::lab::archives::samples::{
    Packed, arc_record, arc_start, cached, conversion, gzip, http, record, zip, zstd_file,
};

#[global_allocator]
static ALLOCATOR: ratoon::Allocator = ratoon::Allocator;

const ROUNDS: usize = 5;
const NIGHT: &str = "2024-03-01";

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
    let pages = site(dir.path(), option("--pages", 5000), option("--page-bytes", 10_000));
    let bytes: usize = pages.iter().map(|(_, body)| body.len()).sum();
    let mut layouts = write_layouts(dir.path(), &pages);
    if args.iter().any(|arg| arg == "--large-file-only") {
        layouts.truncate(1);
    }

    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let (one, two) = (pool(1), pool(2));
    let mut cpu = vec![Vec::new(); layouts.len()];
    let mut reading = vec![Vec::new(); layouts.len()];
    let mut clock = [Vec::new(), Vec::new()];
    let mut reading_clock = [Vec::new(), Vec::new()];
    let (mut busy, mut reading_busy) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for _ in 0..ROUNDS {
        for (i, (_, root)) in layouts.iter().enumerate() {
            cpu[i].push(timed(|| ingest(root, &one)).1);
            reading[i].push(timed(|| read(&root.join("snapshots").join(NIGHT), 1, &one)).1);
        }
        let large = &layouts[0].1;
        for (slot, threads) in [(0, &one), (1, &two)] {
            let night = large.join("snapshots").join(NIGHT);
            let (ingested, read) = (
                busiest(threads, || timed(|| ingest(large, threads)).0),
                busiest(threads, || timed(|| read(&night, slot + 1, threads)).0),
            );
            clock[slot].push(ingested.0);
            busy[slot].push(ingested.1);
            reading_clock[slot].push(read.0);
            reading_busy[slot].push(read.1);
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "megabytes for people")]
    let megabytes = bytes as f64 / 1e6;
    println!("archives: {} pages, {megabytes:.0} MB of payload, medians of {ROUNDS} rounds\n", pages.len());
    println!(
        "| layout | ingest MB/s | ingest / gzip WARC | reading alone MB/s | reading / gzip WARC |\n|---|---|---|---|---|"
    );
    for (i, (name, _)) in layouts.iter().enumerate() {
        let (time, read) = (median(&cpu[i]), median(&reading[i]));
        println!(
            "| {name} | {:.0} | {:.2} | {:.0} | {:.2} |",
            megabytes / time,
            time / median(&cpu[0]),
            megabytes / read,
            read / median(&reading[0])
        );
    }
    let ratio = |times: &[Vec<Duration>; 2]| median(&times[0]) / median(&times[1]);
    println!("\none gzip WARC on two threads, times as fast as on one: by the clock, and by the busier thread");
    println!(
        "ingest {:.2} {:.2}, reading alone {:.2} {:.2}",
        ratio(&clock),
        ratio(&busy),
        ratio(&reading_clock),
        ratio(&reading_busy)
    );
}

/// What a run gives, and the processor time of the thread that had most of it: on a machine with nothing else to do it
/// takes as long, but for waiting.
fn busiest<T>(threads: &rayon::ThreadPool, run: impl FnOnce() -> T) -> (T, Duration) {
    let of_each = || {
        threads.broadcast(|_| {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
        })
    };
    let before = of_each();
    let result = run();
    let most = of_each().into_iter().zip(before).map(|(after, before)| after - before).max();
    (result, most.unwrap())
}

fn median(times: &[Duration]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2].as_secs_f64()
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

/// URL and body of each page of a synthetic site.
fn site(root: &Path, pages: u32, page_bytes: u32) -> Vec<(String, Vec<u8>)> {
    let params = Params { pages, page_bytes, snapshots: 1, mention_truth: false, ..Params::default() };
    synth::write_site(&params, &mut Folder(root.join("site"))).unwrap();
    let night = fs::read_dir(root.join("site/snapshots")).unwrap().next().unwrap().unwrap().path();
    let captures = SnapshotFolder::open(&night, Layout::Auto).unwrap().readers(None, None).into_iter().flatten();
    let mut pages = std::collections::BTreeMap::new();
    for capture in captures.map(Result::unwrap).filter(|capture| capture.status == Some(200)) {
        let RawCapture { url, body, transfer_encoding, content_encoding, .. } = capture;
        let (transfer, content) = (transfer_encoding.as_deref(), content_encoding.as_deref());
        if let Body::Bytes(bytes) = body {
            pages.insert(
                url,
                ratoon::inside::text::encoding::decode_body(bytes, transfer, content, 1 << 30).unwrap().bytes,
            );
        }
    }
    pages.into_iter().collect()
}

/// The site in every layout, each as the only snapshot of a pipeline. The first is what the others are compared with.
fn write_layouts(root: &Path, pages: &[(String, Vec<u8>)]) -> Vec<(&'static str, PathBuf)> {
    let html = ("Content-Type", "text/html; charset=utf-8");
    let response = |(url, body): &(String, Vec<u8>)| {
        let fields = [("WARC-Target-URI", url.as_str()), ("WARC-Date", "2024-03-01T00:00:00Z")];
        record("response", &fields, &http("200 OK", &[html], body))
    };
    let records: Vec<Vec<u8>> = pages.iter().map(response).collect();
    let members: Vec<u8> = records.iter().flat_map(|record| gzip(record)).collect();
    let arc = |(url, body): &(String, Vec<u8>)| arc_record(url, &http("200 OK", &[html], body));
    let arc: Vec<Vec<u8>> = [arc_start()].into_iter().chain(pages.iter().map(arc)).collect();
    let packed = |name: &str, body: &[u8], deflated| Packed {
        name: name.into(),
        body: body.into(),
        deflated,
        ..Packed::default()
    };
    let cache = |(url, body): &(String, Vec<u8>)| cached(url, "200 OK", "text/html", "", Some(body));
    let cache: Vec<Packed> = pages.iter().map(cache).collect();
    let wet = |(url, body): &(String, Vec<u8>)| conversion(url, &String::from_utf8_lossy(body));
    let dictionary = zstd::dict::from_samples(&records[..records.len().min(500)], 100_000).unwrap();
    let mut manifest = String::new();
    let (mut bodies, mut tree, mut headed) = (Vec::new(), Vec::new(), Vec::new());
    for (i, (url, body)) in pages.iter().enumerate() {
        manifest += &format!(
            "{{\"url\":\"{url}\",\"file\":\"{i}\",\"status\":200,\"content_type\":\"text/html; charset=utf-8\"}}\n"
        );
        bodies.push((i.to_string(), body.clone()));
        let path = url.split_once("://").unwrap().1;
        let path = if path.ends_with('/') { format!("{path}index.html") } else { path.to_owned() };
        tree.push((path.clone(), body.clone()));
        headed.push((path, http("200 OK", &[html], body)));
    }
    bodies.push(("manifest.jsonl".into(), manifest.into_bytes()));
    let one = |name: &str, bytes: Vec<u8>| vec![(name.to_owned(), bytes)];
    let layouts = [
        ("WARC, gzip, a member for each record", one("x.warc.gz", members.clone())),
        ("WARC, plain", one("x.warc", records.concat())),
        ("WARC, one gzip member", one("x.warc.gz", gzip(&records.concat()))),
        ("WARC, zstd", one("x.warc.zst", zstd_file(&records, b"", false))),
        ("WARC, zstd with dictionary", one("x.warc.zst", zstd_file(&records, &dictionary, true))),
        ("WACZ, stored", one("x.wacz", zip(&[packed("archive/x.warc.gz", &members, false)]))),
        ("WACZ, deflated plain WARC", one("x.wacz", zip(&[packed("archive/x.warc", &records.concat(), true)]))),
        ("ARC, gzip", one("x.arc.gz", arc.iter().flat_map(|record| gzip(record)).collect())),
        ("WET, gzip", one("x.wet.gz", pages.iter().flat_map(|page| gzip(&wet(page))).collect())),
        ("HTTrack", one("hts-cache/new.zip", zip(&cache))),
        ("mirror", tree),
        ("mirror with headers", headed),
        ("manifest", bodies),
    ];
    let mut written = Vec::new();
    for (i, (name, files)) in layouts.into_iter().enumerate() {
        let pipeline = root.join(format!("layout-{i}"));
        for (file, bytes) in files {
            let path = pipeline.join("snapshots").join(NIGHT).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        fs::write(pipeline.join("p.toml"), "[corpus]\nsnapshots = 'snapshots'\nstore = 'store'\n").unwrap();
        written.push((name, pipeline));
    }
    written
}

fn ingest(root: &Path, threads: &rayon::ThreadPool) {
    let _ = fs::remove_dir_all(root.join("store"));
    let pipeline = Pipeline::load(&root.join("p.toml")).unwrap();
    let wanted = Wanted { stage: Some(StageId::Ingest), ..Wanted::default() };
    threads.install(|| run::run(graph(), &pipeline, &wanted, Progress::new(false)).unwrap());
}

/// Every capture with its body, and nothing else.
fn read(folder: &Path, count: usize, threads: &rayon::ThreadPool) -> usize {
    use rayon::prelude::*;
    let folder = SnapshotFolder::open(folder, Layout::Auto).unwrap();
    let readers = folder.split_readers(None, Some(Timestamp(0)), count);
    let bytes = |capture: RawCapture| match capture.body {
        Body::Bytes(bytes) => bytes.len(),
        Body::File(path) => fs::read(path).unwrap().len(),
        Body::None => 0,
    };
    threads
        .install(|| readers.into_par_iter().map(|reader| reader.map(|item| bytes(item.unwrap())).sum::<usize>()).sum())
}
