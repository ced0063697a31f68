//! A week of nights, run by cron, on which everything goes wrong that can: it ends with the tables of a quiet week, and of
//! every problem people are told once, wherever they look.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{assert_same, day, follow, named_commands, page, write_night};
use crate::word_worker::{PIPELINE, SCRIPT, down, up};
use crate::workspace::{Ended, Workspace};

const NOTIFY: &str = "[[query]]\nname = 'news'\nnodes.a = { title = 'Page 1*' }\nlinks = ['a -> b']\n[verify]\nnightly = 'off'\n\
                      [notify]\ncommand = ['sh', '-c', 'cat >> events']\nmetrics = 'ratoon.prom'\n";

/// Waits while the file `hold` is there, and writes without end where the file `flood` is.
const MOODS: &str = r#"
    while os.path.exists("hold"):
        open("held", "w").close()
        time.sleep(0.01)
    if os.path.exists("flood"):
        sys.stdout.write("x" * 70_000_000)
"#;

fn workspace() -> Workspace {
    let w = Workspace::new(&format!("{PIPELINE}{NOTIFY}"));
    let after = "    text = request[\"text\"]\n";
    let script = SCRIPT.replace(after, &format!("{after}{MOODS}")).replace("import json,", "import time, json,");
    fs::write(w.path("worker.py"), script).unwrap();
    let ratoon = env!("CARGO_BIN_EXE_ratoon");
    let path = std::env::var("PATH").unwrap();
    let crontab = format!(
        "# every night\nPATH={path}\n17 4 * * *  cd '{}' && exec '{ratoon}' run -q p.toml\n",
        w.path("").display()
    );
    fs::write(w.path("crontab"), crontab).unwrap();
    w
}

/// What cron does with the one job of a crontab: a bare environment, a shell, and mail of all that is printed. `daemon` is
/// what cron itself was started by, such as a shell with limits.
fn cron(w: &Workspace, daemon: &[&str]) -> Command {
    let (mut settings, mut job) = (Vec::new(), None);
    for line in fs::read_to_string(w.path("crontab")).unwrap().lines() {
        match line.split_once('=') {
            _ if line.starts_with('#') => {}
            Some((name, value)) if name.chars().all(char::is_alphabetic) => {
                settings.push((name.to_owned(), value.to_owned()));
            }
            _ => job = Some(line.splitn(6, ' ').nth(5).unwrap().trim_start().to_owned()),
        }
    }
    let job = job.unwrap();
    assert!(!job.contains('%'), "cron would cut it");
    let (program, arguments) = daemon.split_first().unwrap_or((&"env", &[]));
    let mut command = Command::new(program);
    command.args(arguments).args(["/bin/sh", "-c", &job]).current_dir("/");
    command.env_clear().env("HOME", "/").env("LOGNAME", "root").env("SHELL", "/bin/sh").envs(settings);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The week as somebody sees it who reads mail, `status`, metrics and notifications.
struct Watcher<'a> {
    w: &'a Workspace,
    events: usize,
}

impl Watcher<'_> {
    fn tonight(&self, daemon: &[&str]) -> Ended {
        Ended::of(&cron(self.w, daemon).output().unwrap())
    }

    fn new_events(&mut self) -> Vec<Value> {
        let text = fs::read_to_string(self.w.path("events")).unwrap_or_default();
        let events: Vec<Value> =
            text.lines().skip(self.events).map(|line| serde_json::from_str(line).unwrap()).collect();
        self.events += events.len();
        events
    }

    fn exit_code_in_metrics(&self) -> String {
        let metrics = fs::read_to_string(self.w.path("ratoon.prom")).unwrap();
        let line =
            metrics.lines().find_map(|line| line.strip_prefix("ratoon_last_run_exit_code{pipeline=\"p.toml\"} "));
        line.unwrap_or_else(|| panic!("{metrics}")).to_owned()
    }

    /// All is well, and nobody is bothered.
    #[track_caller]
    fn all_is_well(&mut self) {
        let ended = self.tonight(&[]).expect(0);
        assert_eq!(ended.stdout + &ended.stderr, "", "no mail");
        assert_eq!(self.new_events(), Vec::<Value>::new());
        assert_eq!(self.exit_code_in_metrics(), "0");
        assert_eq!(self.w.ratoon(&["status", "p.toml", "--check"]).expect(0).stderr, "");
    }

    /// A night that fails, or is done with a problem: one line of mail, one event, and the same in status and metrics.
    #[track_caller]
    fn told(&mut self, ended: &Ended, code: i32, words: &str) {
        assert_eq!(ended.code, code, "{}{}", ended.stdout, ended.stderr);
        assert_eq!((ended.stdout.as_str(), ended.stderr.lines().count()), ("", 1), "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
        let events = self.new_events();
        assert_eq!(events.len(), 1, "{events:?}");
        let (event, told) = match code {
            3 => ("problem", &events[0]["summary"]["problems"][0]["message"]),
            _ => ("failure", &events[0]["summary"]["error"]),
        };
        assert_eq!(events[0]["event"], event);
        assert!(told.as_str().unwrap().contains(words), "{words}: {}", events[0]);
        assert_eq!(self.exit_code_in_metrics(), code.to_string());
        let status = self.w.ratoon(&["status", "p.toml"]).expect(0).stdout;
        let seen = if code == 3 { words.to_owned() } else { format!("failed (exit {code})") };
        assert!(status.contains(&seen), "{seen}: {status}");
        let check = self.w.ratoon(&["status", "p.toml", "--check"]).expect(1);
        assert_eq!(check.stderr.lines().count() + check.stdout.lines().count(), 1, "{check:?}");
    }

    /// Something to say that is neither a failure nor a problem of a night: one line of mail with what to do about it.
    #[track_caller]
    fn advised(&mut self, words: &str) -> String {
        let ended = self.tonight(&[]).expect(0);
        assert_eq!((ended.stdout.as_str(), ended.stderr.lines().count()), ("", 1), "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
        named_commands(&ended.stderr).remove(0)
    }
}

/// A night that cron has started and that waits for its worker.
fn held(w: &Workspace) -> Child {
    let _ = fs::remove_file(w.path("held"));
    fs::write(w.path("hold"), "").unwrap();
    // Signals do what they do by default, however tests were started.
    let run = cron(w, &["env", "--default-signal=HUP,INT,TERM"]).spawn().unwrap();
    let until = Instant::now() + Duration::from_mins(2);
    while !w.path("held").exists() {
        assert!(Instant::now() < until, "the worker is not asked");
        std::thread::sleep(Duration::from_millis(5));
    }
    run
}

/// Ends a night that waits.
#[track_caller]
fn end(w: &Workspace, run: Child, signal: &str) {
    // The shell has become the program, so that its process is ours.
    assert!(Command::new("kill").args(["-s", signal, &run.id().to_string()]).status().unwrap().success());
    let ended = run.wait_with_output().unwrap();
    use std::os::unix::process::ExitStatusExt as _;
    let number = ended.status.signal().expect(signal);
    assert_eq!(
        number,
        match signal {
            "KILL" => 9,
            "TERM" => 15,
            _ => 2,
        }
    );
    fs::remove_file(w.path("hold")).unwrap();
    let check = w.ratoon(&["status", "p.toml", "--check"]).expect(1);
    assert!(check.stderr.contains("not done"), "{check:?}");
}

fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 16;
    fs::write(path, bytes).unwrap();
}

#[test]
#[ignore = "needs faketime: make test provides it"]
fn a_week_in_which_everything_goes_wrong_ends_as_a_quiet_one() {
    let quiet = workspace();
    for night in 1..=7 {
        write_night(&quiet, night);
        assert_eq!(Ended::of(&cron(&quiet, &[]).output().unwrap()).expect(0).stderr, "");
    }
    let w = workspace();
    let mut watcher = Watcher { w: &w, events: 0 };
    let table = |name: &str, night: usize| w.path(&format!("store/{name}/snapshot={}/part-00000.parquet", day(night)));

    write_night(&w, 1);
    watcher.all_is_well();

    // The second night is killed, and then a bit of the first one flips on the disk.
    write_night(&w, 2);
    end(&w, held(&w), "KILL");
    watcher.all_is_well();
    flip(&table("pages", 2));
    fs::remove_dir_all(w.path("store/_meta/index")).unwrap();
    write_night(&w, 3);
    let ended = watcher.tonight(&[]);
    watcher.told(&ended, 1, "not what was written");
    let check = follow(&w, &named_commands(&ended.stderr)[0]);
    follow(&w, &named_commands(&check.stdout)[0]).expect(0);
    watcher.all_is_well();

    // The disk is full, then the worker is away, then it raves.
    write_night(&w, 4);
    let ended = watcher.tonight(&["bash", "-c", "trap '' XFSZ; ulimit -f 4; exec \"$@\"", "bash"]);
    watcher.told(&ended, 1, "too large");
    down(&w, "");
    let ended = watcher.tonight(&[]);
    watcher.told(&ended, 3, "429 rate limited");
    up(&w);
    fs::write(w.path("flood"), "").unwrap();
    let ended = watcher.tonight(&[]);
    watcher.told(&ended, 3, "a line of more than 67108864 bytes");
    fs::remove_file(w.path("flood")).unwrap();
    watcher.all_is_well();

    // Two runs at once; the one that works is asked to end.
    write_night(&w, 5);
    let first = held(&w);
    let second = watcher.tonight(&[]).expect(75);
    assert!(second.stderr.contains("in use by another run") && second.stderr.lines().count() == 1, "{}", second.stderr);
    end(&w, first, "TERM");
    watcher.all_is_well();
    assert_eq!(watcher.new_events(), Vec::<Value>::new());

    // A table may not be read; a partition is gone; Ctrl-C.
    write_night(&w, 6);
    let place = w.path("store/pages");
    fs::set_permissions(&place, fs::Permissions::from_mode(0o0)).unwrap();
    let power: &[&str] = &["setpriv", "--bounding-set=-dac_override,-dac_read_search"];
    let ended = watcher.tonight(if super::is_root() { power } else { &[] });
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    watcher.told(&ended, 1, "ermission denied");
    end(&w, held(&w), "INT");
    watcher.all_is_well();
    fs::remove_dir_all(table("link_deltas", 3).parent().unwrap()).unwrap();
    let command = watcher.advised("files of the store are missing");
    follow(&w, &command).expect(0);
    watcher.all_is_well();

    // The clock jumps back by years; a folder is edited, put back as it was, and done again as advised.
    write_night(&w, 7);
    let ended = watcher.tonight(&["faketime", "-f", "@1999-12-31 23:59:58"]).expect(0);
    assert_eq!(ended.stdout + &ended.stderr, "");
    let file = w.snapshot_dir(&day(6)).join("4.html");
    let sound = fs::read(&file).unwrap();
    fs::write(&file, page(4, 99)).unwrap();
    let command = watcher.advised("changed since it was ingested");
    fs::write(&file, sound).unwrap();
    follow(&w, &command).expect(0);
    watcher.all_is_well();

    assert_same(&w.table_bytes(), &quiet.table_bytes(), "the tables of a quiet week");
    let told = |w: &Workspace| {
        let mut told: Vec<String> =
            fs::read_to_string(w.path("told")).unwrap().lines().map(ToOwned::to_owned).collect();
        told.sort();
        told
    };
    assert_eq!(told(&w), told(&quiet), "watches told what they tell in a quiet week, once");
    w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
    w.ratoon(&["check", "p.toml"]).expect(0);
    assert!(!w.path("store/_meta/intent.json").exists());
}
