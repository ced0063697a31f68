//! The process of a worker: how it is started, what it gets, how much it may write, how it ends.
//!
//! One thread writes requests, one reads answers, one reads the worker's stderr (it goes to our log): with fewer, two
//! full pipes can wait for each other for ever. Whatever the worker writes is read up to a bound: a line that does not
//! end costs the page that was asked for, never the run.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read as _, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::CommandSpec;
use super::minder::Minder;
use super::protocol::{PROTOCOL, Ready};
use crate::extract::runner::Failure;
use crate::model::said::json_problem;

/// Of a line that is not understood, what is told.
const TOLD: usize = 80;

/// How long a worker may take to end after its input did, where it is known to be ending.
const GRACE: Duration = Duration::from_secs(2);
/// The same for one that has answered everything and is no longer needed.
const FAREWELL: Duration = Duration::from_millis(200);

/// The longest line that may introduce a worker. A list of a thousand attributes has a twentieth of it.
const LONGEST_INTRODUCTION: usize = 1 << 20;
/// The longest answer. Half a million mentions are shorter.
const LONGEST_ANSWER: usize = 64 << 20;
/// Lines of stderr are cut here.
const LONGEST_WORDS: usize = 4 << 10;
/// Answers that were read and that nobody has taken yet.
const WAITING_ANSWERS: usize = 1;

/// What a program may need to start at all. A worker gets these variables, those whose names begin with [`KEPT_PREFIX`],
/// and what `env` names: the environment of a nightly job holds secrets that are none of its business.
const KEPT: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "VIRTUAL_ENV",
];
/// Of the variables that say more about the language.
const KEPT_PREFIX: &str = "LC_";

pub(super) struct Process {
    child: Child,
    /// `None` where there is no shell: then only the worker itself is ended.
    minder: Option<Minder>,
    requests: Option<Sender<String>>,
    lines: Receiver<Result<String, String>>,
    /// The last thing it said on stderr, for the message when it dies, and who listens.
    last_words: Arc<Mutex<String>>,
    listener: JoinHandle<()>,
}

impl Process {
    /// Starts a worker in `folder` and hears what it says of itself.
    pub(super) fn start(spec: &CommandSpec, folder: &Path) -> Result<(Self, Ready), Failure> {
        let (program, arguments) =
            spec.argv.split_first().ok_or_else(|| Failure::Crashed("the command is empty".to_owned()))?;
        let minder = Minder::start().inspect_err(|error| log::debug!("workers have no minder: {error}")).ok();
        let mut child = std::process::Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| is_kept(name, &spec.env)))
            .current_dir(folder)
            .process_group(minder.as_ref().map_or(0, Minder::group))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| Failure::Crashed(format!("cannot start '{program}': {error}")))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(Failure::Crashed(format!("'{program}' has no pipes")));
        };
        let (requests, to_write) = channel();
        let (from_worker, lines) = sync_channel(WAITING_ANSWERS);
        let last_words = Arc::new(Mutex::new(String::new()));
        thread::spawn(move || write_requests(stdin, &to_write));
        thread::spawn(move || read_lines(stdout, &from_worker));
        let heard = Arc::clone(&last_words);
        let name = program.clone();
        let listener = thread::spawn(move || log_stderr(stderr, &name, &heard));
        let mut process = Self { child, minder, requests: Some(requests), lines, last_words, listener };
        process.send(&serde_json::json!({ "hello": PROTOCOL }))?;
        let line = process.receive(Instant::now() + spec.start_timeout, Failure::Silent(spec.start_timeout))?;
        let ready = serde_json::from_str(&line).map_err(|error| {
            let (said, problem) = (opening(&line), json_problem(&error));
            Failure::Crashed(format!(
                "'{program}' does not introduce itself as agreed, with a line such as {{\"name\": \"dates\"}}: {problem}; it \
                 said: {said}"
            ))
        })?;
        Ok((process, ready))
    }

    pub(super) fn send(&mut self, message: &impl serde::Serialize) -> Result<(), Failure> {
        let mut line = serde_json::to_string(message).expect("requests are plain data");
        line.push('\n');
        let gone = self.requests.as_ref().is_none_or(|requests| requests.send(line).is_err());
        if gone { Err(self.epitaph()) } else { Ok(()) }
    }

    /// The next line; `silence` if none comes in time.
    pub(super) fn receive(&mut self, until: Instant, silence: Failure) -> Result<String, Failure> {
        match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => line.map_err(Failure::Crashed),
            Err(RecvTimeoutError::Timeout) => Err(silence),
            Err(RecvTimeoutError::Disconnected) => Err(self.epitaph()),
        }
    }

    /// Tells why the process is gone, as far as can be seen.
    fn epitaph(&mut self) -> Failure {
        let status = self.wait(GRACE).map_or_else(|| "it closed its output".to_owned(), |status| status.to_string());
        // What it said before it died may still be on its way.
        soon(GRACE, || self.listener.is_finished().then_some(()));
        let words = self.last_words.lock().map(|words| words.clone()).unwrap_or_default();
        Failure::Crashed(if words.is_empty() { status } else { format!("{status}; last words: {words}") })
    }

    fn wait(&mut self, most: Duration) -> Option<ExitStatus> {
        soon(most, || self.child.try_wait().ok().flatten())
    }
}

/// What `look` sees as soon as it sees something, at `most` so much later.
fn soon<T>(most: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let until = Instant::now() + most;
    loop {
        let seen = look();
        if seen.is_some() || Instant::now() >= until {
            return seen;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

impl Drop for Process {
    /// Lets it end by itself if it has answered everything, and ends it otherwise; in both cases also what it started.
    fn drop(&mut self) {
        self.requests = None;
        self.wait(FAREWELL);
        drop(self.minder.take());
        // With a minder it is dead by now. An error means that it is gone already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Whether a worker gets a variable.
fn is_kept(name: &OsStr, env: &[String]) -> bool {
    let is = |kept: &str| name == OsStr::new(kept);
    KEPT.iter().any(|kept| is(kept))
        || env.iter().any(|named| is(named))
        || name.as_encoded_bytes().starts_with(KEPT_PREFIX.as_bytes())
}

/// The beginning of what a worker said.
pub(super) fn opening(line: &str) -> String {
    match line.trim_end().char_indices().nth(TOLD) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.trim_end().to_owned(),
    }
}

fn write_requests(mut stdin: ChildStdin, requests: &Receiver<String>) {
    for line in requests {
        // A broken pipe shows on the reading side, as the end of the answers.
        if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

/// Hands on lines without their ends, or what is wrong with the output, which ends the conversation.
fn read_lines(stdout: ChildStdout, lines: &SyncSender<Result<String, String>>) {
    let mut stdout = BufReader::new(stdout);
    let mut longest = LONGEST_INTRODUCTION;
    loop {
        let mut line = Vec::new();
        // One more than the longest, for the line's end.
        let read = stdout.by_ref().take(longest as u64 + 1).read_until(b'\n', &mut line);
        if read.is_err() || line.is_empty() {
            return;
        }
        let ends = line.pop_if(|&mut byte| byte == b'\n').is_some();
        let line = match ends || line.len() <= longest {
            false => Err(format!("it wrote a line of more than {longest} bytes")),
            true => String::from_utf8(line).map_err(|_| "it wrote what is not UTF-8".to_owned()),
        };
        let over = line.is_err();
        if lines.send(line).is_err() || over {
            return;
        }
        longest = LONGEST_ANSWER;
    }
}

fn log_stderr(stderr: ChildStderr, name: &str, last_words: &Mutex<String>) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    let mut goes_on = false;
    loop {
        line.clear();
        let read = stderr.by_ref().take(LONGEST_WORDS as u64).read_until(b'\n', &mut line);
        if read.is_err() || line.is_empty() {
            return;
        }
        let is_rest = std::mem::replace(&mut goes_on, line.last() != Some(&b'\n'));
        let words = String::from_utf8_lossy(&line);
        let words = words.trim();
        if is_rest || words.is_empty() {
            continue;
        }
        log::info!("{name}: {words}");
        if let Ok(mut last) = last_words.lock() {
            words.clone_into(&mut last);
        }
    }
}
