//! Processes of workers: what they get, how much they may write, and that none is left behind.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ratoon::inside::extract::Status;
use ratoon::inside::tables::extract::Extraction;

use crate::workspace::{Ended, Workspace, project};

/// A workspace of two pages whose worker is this shell script, with further keys.
fn workspace(script: &str, keys: &str) -> Workspace {
    let w = Workspace::new(&format!(
        "[[extractor]]\nname = 'x'\nkind = 'command'\ncommand = ['sh', 'worker.sh']\nunit = 'page'\n{keys}"
    ));
    fs::write(w.path("worker.sh"), script).unwrap();
    w.snapshot("2024-01-01", &[("a", "<p>POISON"), ("b", "<p>fine")]);
    w
}

/// A worker that introduces itself as `name` and finds nothing; `poison` is what it does with the first page instead.
fn worker(name: &str, poison: &str) -> String {
    format!(
        r#"read -r hello; echo '{{"name":"{name}"}}'
        while read -r line; do
          id=${{line#*\"id\":}}; id=${{id%%,*}}
          case $line in *POISON*) {poison} ;; *) echo "{{\"id\":$id,\"mentions\":[]}}" ;; esac
        done"#
    )
}

/// How the poisoned page ended, and the other one.
fn statuses(w: &Workspace) -> [Status; 2] {
    let rows = w.rows::<Extraction>("2024-01-01");
    let status = |url: &str| rows.iter().find(|row| *row.url == *url).unwrap().status;
    [status("http://site.test/a"), status("http://site.test/b")]
}

/// Whether a process is still at work: it is there, and no zombie.
fn is_alive(id: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(id).join("stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
}

#[track_caller]
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The ids of processes that a worker wrote to a file, one a line, as soon as there are so many.
fn noted(w: &Workspace, count: usize) -> Vec<String> {
    let read = || fs::read_to_string(w.path("ids")).unwrap_or_default();
    wait_until("the worker starts", || read().lines().count() >= count && read().ends_with('\n'));
    read().lines().map(ToOwned::to_owned).collect()
}

#[test]
fn a_worker_gets_what_it_needs_to_start_and_what_it_is_given() {
    let script = r#"read -r hello; echo '{"name":"x"}'; env > seen; cat > /dev/null"#;
    let w = workspace(script, "env = ['NAMED', 'NOT_THERE']\ntimeout = '20s'");
    let mut command = w.command(&["run", "p.toml"]);
    command.env("SECRET", "s3cret").env("NAMED", "given").env("LC_TIME", "C").env("HOME", "/home/x");
    command.output().unwrap();
    let seen = fs::read_to_string(w.path("seen")).unwrap();
    let has = |line: &str| seen.lines().any(|seen| seen == line);
    assert!(has("NAMED=given") && has("LC_TIME=C") && has("HOME=/home/x"), "{seen}");
    assert!(seen.lines().any(|line| line.starts_with("PATH=")), "{seen}");
    assert!(!seen.contains("s3cret") && !seen.contains("CARGO"), "{seen}");
}

#[test]
fn a_variable_is_named_without_a_value() {
    let w = workspace("", "env = ['KEY=1']");
    w.ratoon(&["run", "p.toml"]).expect(2).says("`env`: 'KEY=1' cannot name a variable").says("NAME=value");
}

/// The first page makes the worker start a process and wait for it for ever.
const HANGS: &str = r#"sleep 1000 & echo $$ >> ids; echo $! >> ids; wait"#;

#[test]
fn a_time_out_ends_all_that_the_worker_started() {
    let w = workspace(&worker("x", HANGS), "timeout = '500ms'");
    w.ratoon(&["run", "p.toml"]);
    assert_eq!(statuses(&w), [Status::Timeout, Status::Ok]);
    for id in noted(&w, 2) {
        wait_until("it is gone", || !is_alive(&id));
    }
}

#[test]
fn what_a_worker_leaves_behind_is_ended_when_it_is_done() {
    let script = format!("sleep 1000 > /dev/null 2>&1 < /dev/null & echo $! >> ids\n{}", worker("x", "exit 3"));
    let w = workspace(&script, "timeout = '20s'");
    w.ratoon(&["run", "p.toml"]);
    for id in noted(&w, 1) {
        wait_until("it is gone", || !is_alive(&id));
    }
}

#[test]
fn workers_end_with_us_however_we_end() {
    for signal in ["KILL", "TERM", "INT", "HUP"] {
        let w = workspace(&worker("x", HANGS), "timeout = '10m'");
        let mut run = as_from_a_terminal(&w.command(&["run", "p.toml"]));
        let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let ids = noted(&w, 2);
        assert!(ids.iter().all(|id| is_alive(id)));
        end(&mut run, signal);
        for id in ids {
            wait_until(signal, || !is_alive(&id));
        }
    }
}

/// Signals do what they do by default, also where tests run behind `nohup` or in the background.
fn as_from_a_terminal(command: &Command) -> Command {
    let mut wrapped = Command::new("env");
    wrapped.arg("--default-signal=HUP,INT,TERM").arg(command.get_program()).args(command.get_args());
    command.get_current_dir().map(|folder| wrapped.current_dir(folder));
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    wrapped
}

fn end(run: &mut Child, signal: &str) {
    let kill = Command::new("kill").args(["-s", signal, &run.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert!(!run.wait().unwrap().success());
}

/// As a terminal does it: Ctrl-C goes to the whole foreground group, and workers are not in it.
#[test]
fn a_worker_has_a_group_of_its_own() {
    let w = workspace(&worker("x", HANGS), "timeout = '10m'");
    let mut run = w.command(&["run", "p.toml"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let group = |id: &str| {
        let stat = fs::read_to_string(Path::new("/proc").join(id).join("stat")).unwrap();
        stat.rsplit(')').next().unwrap().split_whitespace().nth(2).unwrap().to_owned()
    };
    let ids = noted(&w, 2);
    assert_eq!(group(&ids[0]), group(&ids[1]));
    assert_ne!(group(&ids[0]), group(&run.id().to_string()));
    end(&mut run, "KILL");
}

#[test]
fn silence_instead_of_an_introduction_is_a_time_out_too() {
    let w = workspace("sleep 1000", "timeout = '300ms'");
    w.ratoon(&["run", "p.toml"]).expect(1).says("no introduction within 0.3 s").says("start_timeout");
    // A model may take longer to load than to answer.
    let slow = format!("sleep 1\n{}", worker("x", "exit 3"));
    let w = workspace(&slow, "timeout = '300ms'\nstart_timeout = '1m'");
    w.ratoon(&["run", "p.toml"]);
    assert_eq!(statuses(&w), [Status::Failed, Status::Ok]);
}

/// Writes more than any line may have, and never ends it.
const FLOOD: &str = "head -c 100000000 /dev/zero | tr '\\0' x; sleep 1000";

#[test]
fn an_answer_without_end_fails_its_page() {
    let w = workspace(&worker("x", FLOOD), "timeout = '5m'");
    w.ratoon(&["run", "p.toml"]).says("it wrote a line of more than 67108864 bytes");
    assert_eq!(statuses(&w), [Status::Failed, Status::Ok]);
}

#[test]
fn an_introduction_without_end_ends_the_run() {
    let w = workspace(FLOOD, "timeout = '5m'");
    w.ratoon(&["run", "p.toml"]).expect(1).says("it wrote a line of more than 1048576 bytes");
}

#[test]
fn complaints_without_end_are_cut() {
    let poison = r#"head -c 50000000 /dev/zero | tr '\0' y >&2; echo >&2; echo tired >&2; exit 3"#;
    let w = workspace(&worker("x", poison), "timeout = '5m'");
    let ended = w.ratoon(&["run", "p.toml", "-v"]);
    assert!(ended.stderr.len() < 100_000, "{} bytes", ended.stderr.len());
    assert_eq!(statuses(&w), [Status::Failed, Status::Ok]);
    ended.says("sh: yyyy").says("last words: tired");
}

/// Nothing that a worker says reaches the terminal as a command to it.
#[test]
fn workers_cannot_write_to_the_terminal() {
    let plain = |ended: Ended| {
        let raw = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
        assert!(!raw(&ended.stderr) && !raw(&ended.stdout), "{ended:?}");
        ended
    };
    let run = |script: &str| plain(workspace(script, "timeout = '20s'").ratoon(&["run", "p.toml", "-v"]));
    run(&worker("x", r#"printf '{"id":%s,"error":"\\u001b[2Jred"}\n' "$id""#)).says("[2Jred");
    run(&worker("x", r#"printf '\033]0;title\007tired\n' >&2; exit 3"#)).says("]0;title").says("tired");
    run(&worker("x", r#"printf '{"id":%s,"mentions":[{"start":0,"end":1,"text":"\\u001b[31m"}]}\n' "$id""#))
        .says("[31m");
    run(&worker("x", r#"printf '{"id":%s,"mentions":[{"start":0,"end":1,"attrs":{"\\u001b[7m":1}}]}\n' "$id""#))
        .says("[7m");
    // Long reasons are cut.
    let long = run(&worker("x", r#"printf '{"id":%s,"error":"%100000s"}\n' "$id" x"#));
    assert!(long.stderr.len() < 10_000, "{} bytes", long.stderr.len());
    run(r#"read -r hello; printf '{"name":"x","\\u001b[2Jkey":1}\n'"#).expect(1).says("[2Jkey");
    run(r#"read -r hello; printf '{"name":"x","attributes":["\\u001b[2J"]}\n'"#).expect(1).says("[2J");
}

/// The block of code of a document that begins with these words.
fn code_of(document: &str, language: &str, beginning: &str) -> String {
    let fence = format!("```{language}\n");
    let blocks = document.split(fence.as_str()).skip(1).filter_map(|rest| rest.split("```").next());
    blocks.into_iter().find(|block| block.starts_with(beginning)).unwrap().to_owned()
}

/// What pipelines/README.md shows to whoever writes a worker, as they would try it.
#[test]
fn the_worker_of_the_docs_works() {
    let docs = fs::read_to_string(project().join("pipelines/README.md")).unwrap();
    let w = Workspace::new("");
    let worker = code_of(&docs, "python", "import json, re, sys");
    assert!(worker.lines().filter(|line| !line.trim().is_empty()).count() <= 20, "it is short");
    fs::write(w.path("year.py"), worker).unwrap();
    fs::write(w.path("my.toml"), code_of(&docs, "toml", "[corpus]\nsnapshots = \"crawl\"")).unwrap();
    std::os::unix::fs::symlink(project().join("sample_data/campus"), w.path("crawl")).unwrap();
    w.ratoon(&["run", "my.toml"]).expect(0);
    let verified = w.ratoon(&["verify", "my.toml"]).expect(0).stdout;
    assert!(docs.contains(verified.lines().last().unwrap()), "the docs say something else than {verified}");
    let audited = w.ratoon(&["audit", "my.toml"]).expect(0).stdout;
    assert!(audited.contains("year: scope 10, context 1 and 1: holds in 1000 trials"), "{audited}");
}

/// A worker that goes wrong on every page is told of some; the table tells of all.
#[test]
fn many_pages_that_go_wrong_are_not_told_one_by_one() {
    let bad = r#"echo "{\"id\":$id,\"mentions\":[{\"start\":0,\"end\":99999}]}""#;
    let w = workspace(&worker("x", bad), "");
    let pages: Vec<(String, String)> = (0..40).map(|i| (format!("p{i}"), format!("<p>POISON {i}"))).collect();
    let pages: Vec<(&str, &str)> = pages.iter().map(|(path, page)| (path.as_str(), page.as_str())).collect();
    w.snapshot("2024-01-01", &pages);
    let ended = w.ratoon(&["run", "p.toml"]).expect(3).says("the table extractions tells of all");
    let told = ended.stderr.lines().filter(|line| line.contains("is no span of a text") && line.contains(" on http"));
    assert_eq!(told.count(), 10, "{}", ended.stderr);
    let rows = w.rows::<Extraction>("2024-01-01");
    assert!(rows.len() == 40 && rows.iter().all(|row| row.error.as_ref().is_some_and(|why| why.contains("99999"))));
}
