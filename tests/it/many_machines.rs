//! Nights that workers share: all tables are, to the last byte, those of a local run. Here the test plays the part of
//! Spark: it asks workers for parts and buckets, sorts what they give out and has it kept. `spark` does it with Spark.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use serde_json::Value;

use crate::word_worker::{self, PIPELINE, SCRIPT};
use crate::workspace::{Ended, Workspace, html, project};

/// What a worker gave out, by bucket.
type Buckets = BTreeMap<i32, Vec<RecordBatch>>;

/// A driver that is no Spark.
struct Driver<'a> {
    workspace: &'a Workspace,
    parts: &'static str,
    buckets: &'static str,
    /// So many numbers each worker process is asked for.
    together: usize,
    passes: Vec<String>,
}

fn numbers(from: usize, to: usize) -> Vec<u8> {
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
    let ids = Int64Array::from_iter_values((from..to).map(|n| i64::try_from(n).unwrap()));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(ids)]).unwrap();
    stream(&[batch])
}

fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn through(mut command: Command, input: Vec<u8>) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        // A worker that fails reads no further.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    output
}

impl<'a> Driver<'a> {
    fn new(workspace: &'a Workspace) -> Self {
        Self { workspace, parts: "3", buckets: "16", together: 5, passes: Vec::new() }
    }

    fn commit(&self) -> (i32, Value) {
        let numbers = ["--parts", self.parts, "--buckets", self.buckets];
        let ended =
            self.workspace.ratoon(&[&["commit", "p.toml", "--work", "work", "--json", "-q"], &numbers[..]].concat());
        assert!([0, 3].contains(&ended.code), "{ended:?}");
        (ended.code, serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}")))
    }

    fn worker(&self, name: &str, folder: &str, input: Vec<u8>) -> Output {
        through(self.workspace.command(&["worker", name, "p.toml", "--pass", folder, "-q", "--threads", "1"]), input)
    }

    /// Has a pass worked out and kept.
    fn pass(&mut self, needed: &Value) {
        let (pass, folder) = (needed["pass"].as_str().unwrap(), needed["folder"].as_str().unwrap());
        let count = usize::try_from(needed["count"].as_u64().unwrap()).unwrap();
        self.passes.push(pass.to_owned());
        let mut buckets = Buckets::new();
        for from in (0..count).step_by(self.together) {
            let name = if pass == "read" { "read" } else { "night" };
            let output = self.worker(name, folder, numbers(from, count.min(from + self.together)));
            assert!(output.status.success(), "{pass}: {}", String::from_utf8_lossy(&output.stderr));
            for batch in StreamReader::try_new(&output.stdout[..], None).unwrap() {
                for row in rows_of(&batch.unwrap()) {
                    buckets.entry(row.0).or_default().push(row.1);
                }
            }
        }
        // Two that keep, each with some of the buckets, one of them twice: Spark does a task again that was lost.
        for turn in [0, 1, 1] {
            let mine: Vec<RecordBatch> =
                buckets.iter().filter(|(bucket, _)| *bucket % 2 == turn).flat_map(|(_, rows)| rows.clone()).collect();
            if !mine.is_empty() {
                let output = self.worker("keep", folder, stream(&mine));
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            }
        }
        fs::write(Path::new(folder).join("_SUCCESS"), "").unwrap();
    }

    /// All that is to do; gives the exit codes of the nights.
    fn nights(&mut self) -> Vec<i32> {
        let mut codes = Vec::new();
        for _ in 0..200 {
            let (code, said) = self.commit();
            if said.get("pass").is_some() {
                self.pass(&said);
            } else if said["done"].as_array().unwrap().is_empty() {
                return codes;
            } else {
                codes.push(code);
            }
        }
        panic!("it never ends: {:?}", self.passes);
    }
}

/// The rows of a batch, each as a batch of its own, by bucket.
fn rows_of(batch: &RecordBatch) -> Vec<(i32, RecordBatch)> {
    let buckets = batch.column(0).as_any().downcast_ref::<arrow_array::Int32Array>().unwrap();
    (0..batch.num_rows()).map(|i| (buckets.value(i), batch.slice(i, 1))).collect()
}

/// Fails unless two stores have the same tables, to the last byte.
fn same_tables(one: &Workspace, other: &Workspace) {
    let files = |workspace: &Workspace| workspace.table_bytes().into_iter().collect::<BTreeMap<PathBuf, Vec<u8>>>();
    let (one, other) = (files(one), files(other));
    let differs = |path: &&PathBuf| one.get(*path) != other.get(*path);
    let differ: BTreeSet<&PathBuf> = one.keys().chain(other.keys()).filter(differs).collect();
    assert!(differ.is_empty() && !one.is_empty(), "these differ: {differ:?}");
}

fn sound(workspace: &Workspace) {
    workspace.ratoon(&["check", "p.toml"]).expect(0);
    workspace.ratoon(&["verify", "p.toml", "--all"]).expect(0);
    assert!(fs::read_dir(workspace.path("work")).unwrap().next().is_none(), "passes that are committed are removed");
}

#[test]
fn the_sample_site_comes_out_as_from_one_machine() {
    // The plan follows measured times; which one is taken decides how mentions come about.
    let sample = || {
        let workspace = Workspace::sample("campus");
        let text = fs::read_to_string(workspace.path("p.toml")).unwrap();
        let archive = project().join("sample_data/campus");
        let text = text.replace(archive.to_str().unwrap(), "snapshots");
        for night in ["2024-03-01", "2024-03-02", "2024-03-03"] {
            let dir = workspace.snapshot_dir(night);
            fs::copy(archive.join(night).join("crawl-00000.warc.gz"), dir.join("crawl-00000.warc.gz")).unwrap();
        }
        fs::write(workspace.path("p.toml"), text + "\n[plan]\nchoose = \"anchor\"\n").unwrap();
        workspace
    };
    let (local, shared) = (sample(), sample());
    local.run();
    let mut driver = Driver { together: 8, ..Driver::new(&shared) };
    let codes = driver.nights();
    assert!(codes.iter().all(|code| *code == 0), "{codes:?}");
    for pass in ["read", "ingest", "match", "extract", "delta"] {
        assert!(driver.passes.iter().any(|done| done == pass), "{pass} was not shared: {:?}", driver.passes);
    }
    same_tables(&local, &shared);
    sound(&shared);
}

/// A site of pages that change, move, come and go, with revisits by 304; `partial` says how the crawl is meant.
fn small_site(coverage: &str) -> Workspace {
    let workspace = Workspace::new(&format!(
        "coverage = '{coverage}'\n[[extractor]]\nname = 'price'\nkind = 'regex'\npattern = '[0-9]+ crowns'\n\
         [[watch]]\nname = 'news'\non = {{ new_text = 'crowns' }}\n[plan]\nchoose = 'anchor'\n\
         [[query]]\nname = 'priced'\nnodes.a = {{ tag = 'p', text = '10[12] crowns' }}\nlinks = ['a -> b']"
    ));
    let page = |i: usize, night: usize| {
        let price = if i.is_multiple_of(3) { 100 + night } else { 100 };
        let text = format!("Page {i} of a small shop. It sells {price} crowns worth of goods, every day of the week.");
        html(&format!("Page {i}"), &text, &format!("/{}", (i + night) % 30))
    };
    for night in 0..3 {
        let wanted = (0..30).filter(|i| night == 0 || coverage == "full" || i % 4 == night % 4);
        let pages: Vec<(String, String)> = wanted
            .filter(|i| night < 2 || *i != 7)
            .map(|i| (if night == 2 && i == 9 { "moved".to_owned() } else { i.to_string() }, page(i, night)))
            .collect();
        let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
        workspace.snapshot(&format!("2024-03-0{}", night + 1), &pages);
    }
    workspace
}

#[test]
fn full_and_partial_nights_go_on_locally_and_shared() {
    for coverage in ["full", "partial"] {
        let (local, shared) = (small_site(coverage), small_site(coverage));
        local.run();
        // The first night here, the second elsewhere, the third here.
        shared.ratoon(&["run", "p.toml", "--snapshot", "2024-03-01"]).expect(0);
        let third = shared.path("snapshots/2024-03-03");
        let aside = shared.path("third");
        fs::rename(&third, &aside).unwrap();
        assert_eq!(Driver::new(&shared).nights(), [0]);
        fs::rename(&aside, &third).unwrap();
        shared.run();
        same_tables(&local, &shared);
        sound(&shared);
        let all = small_site(coverage);
        assert_eq!(Driver { parts: "1", together: 100, ..Driver::new(&all) }.nights(), [0, 0, 0]);
        same_tables(&local, &all);
        sound(&all);
    }
}

#[test]
fn a_run_that_others_work_for_can_be_left_and_taken_up() {
    let (local, shared) = (small_site("full"), small_site("full"));
    local.run();
    let mut driver = Driver::new(&shared);
    let (_, needed) = driver.commit();
    assert_eq!(needed["pass"], "read");
    assert_eq!(driver.commit().1, needed, "nothing was done, so the same is needed");
    driver.pass(&needed);
    let (_, needed) = driver.commit();
    assert_eq!(needed["pass"], "ingest");
    // Somebody runs it locally in the meantime; what workers left is of no use then, and does no harm.
    shared.ratoon(&["run", "p.toml", "--snapshot", "2024-03-01"]).expect(0);
    driver.pass(&needed);
    assert_eq!(driver.nights(), [0, 0]);
    same_tables(&local, &shared);
}

#[test]
fn a_store_may_have_many_buckets() {
    let (local, shared) = (small_site("partial"), small_site("partial"));
    // It is made with so many, and the local program goes on with them.
    let many = |workspace| Driver { buckets: "300", together: 100, ..Driver::new(workspace) };
    assert_eq!(many(&local).commit().1["pass"], "read");
    local.run();
    assert_eq!(many(&shared).nights(), [0, 0, 0]);
    assert_eq!(shared.store().shards(), 300);
    same_tables(&local, &shared);
    sound(&shared);
}

#[test]
fn workers_say_in_one_line_what_is_wrong() {
    let shared = small_site("full");
    let driver = Driver::new(&shared);
    let fails = |output: &Output, words: &str| {
        let ended = Ended::of(output).expect(1);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        ended.says(words);
    };
    fails(&driver.worker("read", "nowhere", numbers(0, 1)), "nowhere");
    let (_, needed) = driver.commit();
    let folder = needed["folder"].as_str().unwrap();
    fails(&driver.worker("night", folder, numbers(0, 1)), "no pass for this command");
    fails(&driver.worker("read", folder, b"rubbish".to_vec()), "Arrow stream");
    let whole = numbers(0, 1);
    fails(&driver.worker("read", folder, whole[..whole.len() / 2].to_vec()), "Arrow stream");
    assert!(driver.worker("read", folder, Vec::new()).status.success(), "nothing is asked for");
    let read = driver.worker("read", folder, numbers(0, 3)).stdout;
    fails(&driver.worker("keep", folder, read[..read.len() / 2].to_vec()), "Arrow stream");
}

/// What failed is tried again at the start of the next run, once, and whoever wants to know is told of each start.
#[test]
fn what_failed_is_tried_again_and_starts_are_told() {
    let notify = "[notify]\ncommand = ['sh', '-c', 'cat >> starts; echo >> starts']\non = ['start']\n";
    // Workers ask it, and not whoever commits, which keeps answers.
    let pipeline = format!("{PIPELINE}{notify}").replace("unit = \"line\"", "unit = \"line\"\nreuse = false");
    let (local, shared) = (Workspace::new(&pipeline), Workspace::new(&pipeline));
    for w in [&local, &shared] {
        fs::write(w.path("worker.py"), SCRIPT).unwrap();
    }
    let mut driver = Driver::new(&shared);
    let mut nights = |code: i32, is_tried: bool| {
        local.ratoon(&["run", "p.toml", "-q"]).expect(code);
        driver.passes.clear();
        assert_eq!(driver.nights(), if is_tried { vec![code] } else { vec![] });
        assert_eq!(driver.passes.iter().filter(|pass| *pass == "extract").count(), usize::from(is_tried));
        same_tables(&local, &shared);
        let starts = |w: &Workspace| fs::read_to_string(w.path("starts")).unwrap().matches("\"start\"").count();
        assert_eq!(starts(&local), starts(&shared));
    };
    for w in [&local, &shared] {
        w.snapshot("2024-03-01", &[("a", &html("A", "Alpha here", "b")), ("b", &html("B", "Beta there", "a"))]);
        word_worker::down(w, "Beta there");
    }
    nights(3, true);
    // It fails again, and heals.
    nights(3, true);
    [&local, &shared].into_iter().for_each(word_worker::up);
    nights(0, true);
    nights(0, false);
    sound(&shared);
}
