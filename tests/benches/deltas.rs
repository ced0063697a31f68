//! What deltas cost beside a plain scan of the tables they come from, as ratios within one run.
//!
//! Two snapshots of `--pages` pages (100,000) with ten links each and 2 % of the pages changed are written as tables.
//! Then: the stage `delta` on the second one, a three-link query on top of it, and the deltas of two web tables with
//! 100,000 tuples a side that all share an unchanged hub; last, how these grow with tuples and links. The yardstick is polars reading `pages` and `links` of both
//! snapshots, all columns. Rounds are interleaved and medians taken.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use polars::prelude::SerReader as _;
use polars_io::prelude::ParquetReader;
use ratoon::inside::config::Pipeline;
use ratoon::inside::deltas::web::{Pair, TupleLinkRow, TupleNodeRow, WebTable};
use ratoon::inside::manifests::{Changes, Ingested};
use ratoon::inside::model::{Digest, LinkKind, Snapshot, SnapshotId, StageId, Standing, Timestamp};
use ratoon::inside::run::stage::{Context, Ran, Stage as _, Task};
use ratoon::inside::stages::delta::Delta;
use ratoon::inside::store::Store;
use ratoon::inside::store::index::Index;
use ratoon::inside::store::manifest::Manifest;
use ratoon::inside::store::parquet::GROUP_BYTES;
use ratoon::inside::tables::ingest::{Capture, LinkRow, Page};
use ratoon::inside::tables::record::Table as _;

#[global_allocator]
static ALLOCATOR: ratoon::Allocator = ratoon::Allocator;

const ROUNDS: usize = 5;
const LINKS: usize = 10;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let at = args.iter().position(|arg| arg == "--pages");
    let pages: usize = at.and_then(|at| args.get(at + 1)).map_or(100_000, |value| value.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let store = Store::open_or_create(&root.join("store")).unwrap();
    let (old, new) = (SnapshotId::new("2024-01-01").unwrap(), SnapshotId::new("2024-01-02").unwrap());
    let old_manifest = write(&store, &old, &old, pages, |_| Some(0));
    let new_manifest = write(&store, &new, &old, pages, |i| Some(u32::from(i % 50 == 7)));
    let plain = pipeline(root, "");
    let query = "[[query]]\nname = 'q'\nnodes.a = { url = '*/p*1' }\nnodes.d = { title = 'Page 9*' }\n\
                 links = [\"a -> b [label = 'link 1*']\", \"b -> c [label = 'link 2*']\", \"c -> d [label = 'link 3*']\"]\n";
    let asking = pipeline(root, query);
    run(&plain, &store, &old, &[]);

    let mut times: [Vec<f64>; 3] = Default::default();
    for _ in 0..ROUNDS {
        times[0].push(timed(|| scan(&store, &[&old, &new])));
        times[1].push(timed(|| run(&plain, &store, &new, std::slice::from_ref(&old_manifest))));
        times[2].push(timed(|| run(&asking, &store, &new, std::slice::from_ref(&old_manifest))));
    }
    let ran = run(&asking, &store, &new, std::slice::from_ref(&old_manifest));
    let tuples = ran.summary["queries"]["q"]["tuples"].as_u64().unwrap();
    let [scan, delta, asked] = [0, 1, 2].map(|i| median(&times[i]));
    println!(
        "deltas: {pages} pages and {} links, 2 % of the pages changed, medians of {ROUNDS} rounds\n",
        pages * LINKS
    );
    println!("| what | s | times the scan |\n|---|---|---|");
    println!("| polars reads pages and links of both snapshots | {scan:.2} | 1 |");
    println!("| page, link and region deltas, first sights | {delta:.2} | {:.2} |", delta / scan);
    println!("| the same with a three-link query ({tuples} tuples) | {asked:.2} | {:.2} |", asked / scan);
    println!("| the query alone (difference) | {:.2} | {:.2} |\n", asked - delta, (asked - delta) / scan);
    println!("of both snapshots: {}\n", ran.summary["changes"]);
    poll(&store, [&plain, &asking], pages, &[old_manifest, new_manifest]);
    hub(pages);
    growth(pages);
}

/// A poll that touched 100 pages, with the query asked around them, and without it.
fn poll(store: &Store, pipelines: [&Pipeline; 2], pages: usize, done: &[Manifest<Ingested>; 2]) {
    let third = SnapshotId::new("2024-01-03").unwrap();
    let every = (pages / 100).max(1);
    write(store, &third, &done[0].snapshot, pages, |i| (i % every == 3).then_some(2));
    let dir = tempfile::tempdir().unwrap();
    let index = Index::open(dir.path()).unwrap();
    let first = timed(|| run_with(&index, pipelines[1], store, &third, done));
    let mut times: [Vec<f64>; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (times, pipeline) in times.iter_mut().zip(pipelines) {
            times.push(timed(|| run_with(&index, pipeline, store, &third, done)));
        }
    }
    let tuples = run_with(&index, pipelines[1], store, &third, done).summary["queries"]["q"]["tuples"].clone();
    let [plain, asked] = times.map(|times| median(&times));
    println!(
        "a poll of 100 of {pages} pages: deltas {plain:.3} s, with the query ({tuples} tuples) {asked:.3} s; the first time, \
         when the index learns who links to whom, {first:.2} s\n"
    );
}

/// How deltas of web tables grow with their tuples: paths of one and four links, with and without one page that is in
/// all of them. Of the tuples a tenth came, a tenth went, a tenth has a page that changed.
fn growth(most: usize) {
    println!("\n| tuples a side | links of a tuple | hub | links a side | deltas with nodes and links | per tuple |");
    println!("|---|---|---|---|---|---|");
    for hub in [false, true] {
        for (length, labels) in [(1, 1), (4, 1), (4, 3)] {
            for n in [most / 100, most / 10, most] {
                let (old, new) = (paths(n, 0, 1, (length, labels, hub)), paths(n, n / 10, 2, (length, labels, hub)));
                let times: Vec<f64> = (0..ROUNDS)
                    .map(|_| {
                        timed(|| {
                            let pair = Pair::new(&old, &new);
                            let deltas = pair.deltas();
                            deltas.rows().count() + deltas.link_rows().count()
                        })
                    })
                    .collect();
                let seconds = median(&times);
                let links = n * length * labels;
                let of = format!("{length} x {labels}");
                let micros = 1e6 * seconds / n as f64;
                println!(
                    "| {n} | {of} | {} | {links} | {seconds:.3} s | {micros:.1} µs |",
                    if hub { "yes" } else { "no" }
                );
            }
        }
    }
}

/// A web table of `n` tuples, each a path of `length` links with `labels` labels each, from page `from` on. Every tenth has
/// a page in this version.
fn paths(n: usize, from: usize, version: u8, (length, labels, hub): (usize, usize, bool)) -> WebTable {
    let url = |tuple: usize, at: usize| match at {
        0 if hub => "http://site.test/".to_owned(),
        _ => format!("http://site.test/p{:07}/{at}", tuple + from),
    };
    let urls: Vec<Vec<String>> = (0..n).map(|tuple| (0..=length).map(|at| url(tuple, at)).collect()).collect();
    let names: Vec<String> = (0..=length).map(|at| format!("n{at}")).collect();
    let texts: Vec<String> = (0..labels).map(|label| format!("label {label}")).collect();
    let ids: Vec<Digest> = urls.iter().map(|urls| Digest::of(urls.concat().as_bytes())).collect();
    let nodes = (0..n).flat_map(|tuple| {
        let changed = (tuple + from).is_multiple_of(10);
        let (urls, names, ids) = (&urls, &names, &ids);
        (0..=length).map(move |at| TupleNodeRow {
            tuple: ids[tuple],
            node: &names[at],
            url: &urls[tuple][at],
            version: Digest::of(&[if changed && at == length { version } else { 0 }]),
            schema: "",
        })
    });
    let links = (0..n).flat_map(|tuple| {
        let (names, ids, texts) = (&names, &ids, &texts);
        (0..length * labels).map(move |link| TupleLinkRow {
            tuple: ids[tuple],
            from_node: &names[link / labels],
            to_node: &names[link / labels + 1],
            label: &texts[link % labels],
            kind: LinkKind::Local,
        })
    });
    WebTable::from_rows("q", nodes, links).unwrap()
}

/// Two web tables of `n` tuples (hub, page): a tenth of the pages came, went, changed.
fn hub(n: usize) {
    let name = |i: usize| format!("http://site.test/p{i:07}");
    let table = |version: u8, from: usize| {
        let urls: Vec<String> = (from..from + n).map(name).collect();
        let ids: Vec<Digest> = urls.iter().map(|url| Digest::of(url.as_bytes())).collect();
        let changed = |i: usize| if (i + from).is_multiple_of(10) { version } else { 0 };
        let nodes: Vec<TupleNodeRow<'_>> = (0..n)
            .flat_map(|i| {
                let row = |node, url, version: u8| TupleNodeRow {
                    tuple: ids[i],
                    node,
                    url,
                    version: Digest::of(&[version]),
                    schema: "",
                };
                [row("a", "http://site.test/", 0), row("b", urls[i].as_str(), changed(i))]
            })
            .collect();
        let links = (0..n).map(|i| TupleLinkRow {
            tuple: ids[i],
            from_node: "a",
            to_node: "b",
            label: "x",
            kind: LinkKind::Local,
        });
        WebTable::from_rows("q", nodes, links).unwrap()
    };
    let (old, new) = (table(1, 0), table(2, n / 10));
    let mut times = Vec::new();
    let mut counts = None;
    for _ in 0..ROUNDS {
        times.push(timed(|| {
            let pair = Pair::new(&old, &new);
            let deltas = pair.deltas();
            counts = Some(deltas.counts());
            deltas.rows().count()
        }));
    }
    let counts = counts.unwrap();
    println!(
        "{n} tuples a side with an unchanged hub: {:.2} s for {} plus, {} minus, {} modified",
        median(&times),
        counts.plus,
        counts.minus,
        counts.modified
    );
}

fn pipeline(root: &Path, more: &str) -> Pipeline {
    let text = format!("[corpus]\nsnapshots = 'snapshots'\nstore = 'store'\n{more}");
    Pipeline::parse(&root.join("p.toml"), &text).unwrap()
}

/// The stage on one snapshot.
fn run(pipeline: &Pipeline, store: &Store, snapshot: &SnapshotId, done: &[Manifest<Ingested>]) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    run_with(&Index::open(dir.path()).unwrap(), pipeline, store, snapshot, done)
}

fn run_with(
    index: &Index,
    pipeline: &Pipeline,
    store: &Store,
    snapshot: &SnapshotId,
    done: &[Manifest<Ingested>],
) -> Ran {
    let context = Context::plain(pipeline, store, index);
    let time = store.manifest::<Ingested>(snapshot).unwrap().unwrap().time;
    Delta
        .run(&context, &Task { snapshot: Snapshot { id: snapshot.clone(), time }, folder: None, window: None }, done)
        .unwrap()
}

/// All columns of pages and links.
fn scan(store: &Store, snapshots: &[&SnapshotId]) -> usize {
    let read = |table: &str, id: &SnapshotId| {
        let file = std::fs::File::open(store.partition_file(table, id)).unwrap();
        ParquetReader::new(file).finish().unwrap().height()
    };
    snapshots.iter().map(|id| read(Page::NAME, id) + read(LinkRow::NAME, id)).sum()
}

fn url(i: usize) -> String {
    format!("http://site.test/p{i}")
}

fn links_of(page: usize, version: u32, pages: usize) -> impl Iterator<Item = LinkRow> {
    let address: std::sync::Arc<str> = url(page).into();
    (0..LINKS).map(move |k| LinkRow {
        url: address.clone(),
        target: url(target(page, k, version, pages)),
        label: format!("link {k} of {page}"),
        kind: LinkKind::Local,
        ordinal: i64::try_from(k).unwrap(),
        element: None,
        dated: None,
    })
}

/// A snapshot as `ingest` stores it: texts and links only of pages that changed. Pages without a version were not touched.
fn write(
    store: &Store,
    snapshot: &SnapshotId,
    base: &SnapshotId,
    pages: usize,
    version: impl Fn(usize) -> Option<u32>,
) -> Manifest<Ingested> {
    let time = snapshot.stated_time(&jiff::tz::TimeZone::UTC).unwrap();
    let night = Snapshot { id: snapshot.clone(), time };
    let mut staging = store.stage(StageId::Ingest, &night).unwrap();
    let mut page_writer = staging.writer::<Page>().unwrap();
    let mut link_writer = staging.writer::<LinkRow>().unwrap();
    let mut shards: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for i in (0..pages).filter(|i| version(*i).is_some()) {
        shards.entry(store.shard_of(&url(i))).or_default().push(i);
    }
    let whole = version(0).is_some();
    for (shard, mut ids) in shards {
        ids.sort_by_key(|i| url(*i));
        let (mut rows, mut links, mut bytes) = (Vec::new(), Vec::new(), 0);
        for i in ids {
            let version = version(i).unwrap();
            let lies_in = if version > 0 { snapshot } else { base };
            let text = text(i, version);
            let title = format!("Page {i}");
            let digest = |part: &str| Digest::of(format!("{part} {i} {version}").as_bytes());
            if lies_in == snapshot {
                links.extend(links_of(i, version, pages));
            }
            let held = lies_in == snapshot;
            bytes += if held { text.len() } else { 0 };
            rows.push(Page {
                url: url(i),
                host: "site.test".into(),
                title: Some(title),
                content_type: Some("text/html".into()),
                fetched_at: Some(Timestamp(0)),
                last_modified: None,
                etag: None,
                text_digest: Digest::of(text.as_bytes()),
                text_bytes: i64::try_from(text.len()).unwrap(),
                text: held.then_some(text),
                text_snapshot: lies_in.clone(),
                content_digest: digest("content"),
                content_snapshot: lies_in.clone(),
                change_digest: digest("change"),
                masked_text_digest: digest("masked"),
                ignore_digest: Digest::of(b""),
                returned: false,
                whole,
                change: if version > 0 { Standing::Modified } else { Standing::Unchanged },
                moved_from: None,
                old_snapshot: (snapshot != base).then(|| base.clone()),
                old_text_digest: None,
                old_text_snapshot: None,
                charset: Some("utf-8".into()),
                payload_digest: Some(digest("payload")),
                archive_digest: None,
                reading_digest: Some(digest("reading")),
                elements: None,
                elements_digest: None,
                canonical: None,
                structure_digest: None,
                structure_changed: None,
            });
            if bytes > GROUP_BYTES {
                bytes = 0;
                page_writer.write(shard, &std::mem::take(&mut rows)).unwrap();
            }
        }
        page_writer.write(shard, &rows).unwrap();
        link_writer.write(shard, &links).unwrap();
    }
    let captures = staging.writer::<Capture>().unwrap().finish().unwrap();
    let tables = [
        (Page::NAME, page_writer.finish().unwrap().whole_if(whole)),
        (LinkRow::NAME, link_writer.finish().unwrap()),
        (Capture::NAME, captures),
    ];
    let nothing = Digest::of(b"");
    let summary = Ingested { whole, ..ingested(pages, snapshot == base) };
    let mut manifest = Manifest::new(&night, nothing, nothing, summary);
    manifest.tables = tables.map(|(name, written)| (name.to_owned(), written)).into();
    staging.commit(&mut manifest).unwrap();
    manifest
}

/// What ingest says of a snapshot.
fn ingested(pages: usize, base: bool) -> Ingested {
    Ingested {
        layout: "manifest".into(),
        bytes: 0,
        payload_bytes: 0,
        parsed: 0,
        changes: Changes::default(),
        read_seconds: 0.0,
        base,
        whole: true,
        alive: pages as u64,
        known: pages as u64,
        text_bytes: 0,
        ignore: Digest::of(b""),
        window: None,
        incomplete: false,
        missing: 0,
        cut_files: 0,
        unusable: false,
        accepted: false,
    }
}

/// Where link `k` of a page leads: a few to hubs, most anywhere; a changed page has one other target.
fn target(page: usize, k: usize, version: u32, pages: usize) -> usize {
    let other = if k == LINKS - 1 { version as usize } else { 0 };
    if k < 2 { (page * 7 + k) % 100 } else { (page * 31 + k * 7919 + other * 104_729) % pages }
}

/// About 2.5 KB of lines; a changed page has one other line.
fn text(page: usize, version: u32) -> String {
    let mut text = String::new();
    for line in 0..40 {
        let version = if line == 20 { version } else { 0 };
        let _ = writeln!(
            text,
            "Line {line} of page {page} says {} and {}, version {version}.",
            page * 7919 + line,
            line * 31 + page % 97
        );
    }
    text
}

fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let started = Instant::now();
    std::hint::black_box(work());
    started.elapsed().as_secs_f64()
}

fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
