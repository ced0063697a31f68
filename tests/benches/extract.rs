//! What recycling saves, as shares of extraction from scratch within one run.
//!
//! Part 1, real page pairs (`make bench` fetches them, generated ones otherwise): bytes given to each extractor, beside
//! the lower bound (windows that no maximal old region covers) and beside what people do today: all changed pages
//! again, or 2 KB chunks whose digest is new (which is not exact: the share of wrong mentions is shown).
//! Part 2, two nights of a synthetic site through the whole program, with a worker of 1 MB/s.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark"
)]

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use ratoon::inside::extract::config::ExtractorConfig;
use ratoon::inside::extract::reach::{Blocks, Cut};
use ratoon::inside::extract::units::units;
use ratoon::inside::extract::{Definition, Extractor, Mention};
use ratoon::inside::matching::{MatcherKind, Scratch};
use ratoon::inside::model::Digest;
use ratoon::inside::recycle::{NoWorker, Old, recycle, scratch};

struct Config {
    name: &'static str,
    toml: &'static str,
}

const EXTRACTORS: [Config; 4] = [
    Config {
        name: "two capitalised words",
        toml: r#"name = "a"
kind = "regex"
pattern = '[A-Z][a-z]{1,15} [A-Z][a-z]{1,20}'"#,
    },
    Config {
        name: "address, scope 96",
        toml: r#"name = "b"
kind = "regex"
pattern = 'https?://[a-z0-9.-]{3,40}/[A-Za-z0-9/_.-]{0,48}'"#,
    },
    Config {
        name: "quoted line, no bound",
        toml: r#"name = "c"
kind = "regex"
pattern = '"[A-Z][^"\n]+"'"#,
    },
    Config {
        name: "5,000 terms",
        toml: r#"name = "d"
kind = "dictionary"
terms = "t"
whole_word = true"#,
    },
];

fn main() {
    let pairs = Path::new(env!("CARGO_MANIFEST_DIR")).join(".bench/pairs");
    println!(
        "| pages | extractor | of scratch | lower bound | to bound | chunks of 2 KB | chunks wrong | recycle time |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for set in ["light", "heavy"] {
        let pages = load(&pairs.join(set));
        if pages.is_empty() {
            println!("| {set} | no page pairs in .bench/pairs: run `make bench` | | | | | | |");
            continue;
        }
        real(set, &pages);
    }
    println!("\nUnits of the new pages that the old page does not have, each once:\n");
    println!(
        "| pages | unit | text sent | requests | of the requests by line | bytes a request |\n|---|---|---|---|---|---|"
    );
    for set in ["light", "heavy"] {
        by_unit(set, &load(&pairs.join(set)));
    }
    pipeline();
}

/// What a worker or a model is sent of changed pages, by what it is shown at a time.
fn by_unit(set: &str, pages: &[(String, String)]) {
    let block = |bytes, context| Cut::Blocks(Blocks { bytes, context });
    let cuts = [
        ("line", Cut::Lines),
        ("block of 400", block(400, 0)),
        ("block of 800", block(800, 0)),
        ("block", block(1200, 0)),
        ("block of 2400", block(2400, 0)),
        ("block, one of context", block(1200, 1)),
        ("paragraph", Cut::Paragraphs),
        ("page", Cut::Page),
    ];
    let mut lines = None;
    for (name, cut) in cuts {
        let (mut total, mut sent, mut requests) = (0, 0, 0u64);
        for (old, new) in pages.iter().filter(|(old, new)| old != new) {
            let mut known: HashSet<[&str; 3]> = units(old, cut).iter().map(|unit| unit.texts(old)).collect();
            let all = units(new, cut);
            let fresh: Vec<_> = all.iter().filter(|unit| known.insert(unit.texts(new))).collect();
            total += new.len();
            sent += fresh.iter().map(|unit| unit.texts(new).map(str::len).iter().sum::<usize>()).sum::<usize>();
            requests += fresh.len() as u64;
        }
        let by_line = *lines.get_or_insert(requests);
        println!(
            "| {set} | {name} | {:.3} | {requests} | {:.2} | {:.0} |",
            sent as f64 / total.max(1) as f64,
            requests as f64 / by_line.max(1) as f64,
            sent as f64 / requests.max(1) as f64
        );
    }
}

fn load(dir: &Path) -> Vec<(String, String)> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut old: Vec<_> =
        entries.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "old")).collect();
    old.sort();
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    old.iter().map(|path| (read(path), read(&path.with_extension("new")))).collect()
}

/// The most frequent words of five letters or more.
fn terms(pages: &[(String, String)]) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for word in pages.iter().flat_map(|(old, _)| old.split(|c: char| !c.is_alphanumeric())).filter(|w| w.len() >= 5) {
        *counts.entry(word).or_insert(0u32) += 1;
    }
    let mut words: Vec<_> = counts.into_iter().collect();
    words.sort_by_key(|&(word, count)| (std::cmp::Reverse(count), word));
    words.into_iter().take(5000).map(|(word, _)| word).collect::<Vec<_>>().join("\n")
}

fn real(set: &str, pages: &[(String, String)]) {
    let terms = terms(pages);
    for Config { name, toml } in EXTRACTORS {
        let config: ExtractorConfig = toml::from_str(toml).unwrap();
        let Definition::Extracts(extractor) = config.build(Some(&terms)).unwrap().definition(None) else {
            unreachable!("records are not among them")
        };
        let useful_region = extractor.traits().useful_region;
        let least = useful_region.unwrap_or(1);
        let mut memory = Scratch::new();
        let (mut total, mut given, mut bound, mut chunked) = (0u64, 0u64, 0u64, 0u64);
        let (mut wrong, mut mentions) = (0usize, 0usize);
        let (mut fresh_time, mut recycle_time) = (0.0, 0.0);
        for (old, new) in pages {
            let before: Vec<Mention> = found(&extractor, old);
            let started = Instant::now();
            let expected = found(&extractor, new);
            fresh_time += started.elapsed().as_secs_f64();
            let source = Old { text: old, mentions: &before };
            let mut regions = Vec::new();
            let started = Instant::now();
            let matcher = if useful_region.is_some() { MatcherKind::Anchor } else { MatcherKind::Edges };
            matcher.regions(old, new, least, &mut memory, &mut regions);
            let recycled = recycle(&extractor, &mut NoWorker, Some(source), new, &regions).unwrap();
            recycle_time += started.elapsed().as_secs_f64();
            assert!(recycled.found.iter().map(|f| &f.mention).eq(&expected), "recycled differs from scratch");
            total += new.len() as u64;
            given += recycled.bytes_extracted;
            // The bound is by the complete regions of the suffix tree.
            MatcherKind::SuffixTree.regions_at_least(old, new, 1, &mut memory, &mut regions);
            let complete = recycle(&extractor, &mut NoWorker, Some(source), new, &regions).unwrap();
            bound += complete.lower_bound.unwrap_or(complete.bytes_extracted);
            let (bytes, chunk_mentions) = chunks(&extractor, old, new);
            chunked += bytes;
            mentions += expected.len();
            let expected: HashSet<_> = expected.iter().map(|m| (m.start, m.end)).collect();
            wrong += expected.symmetric_difference(&chunk_mentions).count();
        }
        let share = |part: u64| 100.0 * part as f64 / total as f64;
        println!(
            "| {set} | {name} | {:.2} % | {:.2} % | {:.3} | {:.1} % | {:.2} % | {:.2} x scratch |",
            share(given),
            share(bound),
            given as f64 / bound.max(1) as f64,
            share(chunked),
            100.0 * wrong as f64 / mentions.max(1) as f64,
            recycle_time / fresh_time
        );
    }
}

fn found(extractor: &Extractor, text: &str) -> Vec<Mention> {
    scratch(extractor, &mut NoWorker, text).unwrap().found.into_iter().map(|found| found.mention).collect()
}

/// What a cache of 2 KB chunks would do: chunks seen in the old page keep their mentions, others are extracted alone.
fn chunks(extractor: &Extractor, old: &str, new: &str) -> (u64, HashSet<(u32, u32)>) {
    let cut = |text: &str| {
        let mut cuts = vec![0];
        while *cuts.last().unwrap() < text.len() {
            let mut next = (cuts.last().unwrap() + 2048).min(text.len());
            while !text.is_char_boundary(next) {
                next += 1;
            }
            cuts.push(next);
        }
        cuts
    };
    let known: HashSet<Digest> =
        cut(old).windows(2).map(|pair| Digest::of(&old.as_bytes()[pair[0]..pair[1]])).collect();
    let mut bytes = 0;
    let mut all = HashSet::new();
    for pair in cut(new).windows(2) {
        let chunk = &new[pair[0]..pair[1]];
        if !known.contains(&Digest::of(chunk.as_bytes())) {
            bytes += chunk.len() as u64;
        }
        let at = u32::try_from(pair[0]).unwrap();
        all.extend(found(extractor, chunk).into_iter().map(|m| (m.start + at, m.end + at)));
    }
    (bytes, all)
}

/// Two nights through the program with a slow worker: from scratch and recycled.
fn pipeline() {
    let dir = tempfile::tempdir().unwrap();
    let ratoon = env!("CARGO_BIN_EXE_ratoon");
    let run = |args: &[&str]| {
        let output = Command::new(ratoon).args(args).current_dir(dir.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    run(&[
        "synth",
        "snapshots",
        "--part",
        "campus",
        "--pages",
        "4000",
        "--snapshots",
        "2",
        "--change",
        "0.05",
        "--boilerplate",
        "0",
        "--no-mentions",
    ]);
    println!(
        "\n4,000 pages, second night, 5 % changed (and counters on some others), worker of 1 MB/s on each of two threads:\n"
    );
    println!("| plan | seconds | of scratch | bytes given to the worker | mentions copied |\n|---|---|---|---|---|");
    let mut first = None;
    for plan in ["none", "edges", "diff", "anchor"] {
        let text = format!(
            "[corpus]\nsnapshots = 'snapshots'\nstore = '{plan}'\nignore = []\n[[extractor]]\nname = 'w'\nkind = 'command'\n\
             command = ['{ratoon}', 'bench-worker', '--bytes-per-second', '1000000']\nscope = 30\ncontext = 1\n"
        );
        fs::write(dir.path().join("p.toml"), text).unwrap();
        let ids: Vec<_> = fs::read_dir(dir.path().join("snapshots"))
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        let earliest = ids.iter().min().unwrap();
        run(&["extract", "p.toml", "--plan", plan, "--snapshot", earliest, "--threads", "2"]);
        let started = Instant::now();
        let out = run(&["extract", "p.toml", "--plan", plan, "--json", "--threads", "2"]);
        let seconds = started.elapsed().as_secs_f64();
        let summary: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let step = summary["done"].as_array().unwrap().iter().find(|step| step["stage"] == "extract").unwrap();
        let costs = &step["summary"]["costs"]["w"];
        let scratch = *first.get_or_insert(seconds);
        println!(
            "| {plan} | {seconds:.2} | {:.3} | {} | {} |",
            seconds / scratch,
            costs["bytes_extracted"],
            costs["copied"]
        );
    }
}
