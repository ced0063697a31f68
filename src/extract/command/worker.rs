//! The conversation with a worker.
//!
//! Never more than `in_flight` requests are out. If nothing is answered for `timeout`, or the process ends, the page fails
//! and the process is ended with all that it started; the next page gets a new one, which must introduce itself as the
//! first did.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::process::{Process, opening};
use super::protocol::{Answer, Ready, Request, read};
use super::{Command, CommandSpec, Offsets, Ruler};
use crate::extract::mention::{Mention, offset};
use crate::extract::runner::{Answer as Given, Failure, Question, Reported, Runner, StandsBy};
use crate::extract::schema::Schema;
use crate::extract::traits::Extracts as _;
use crate::model::Span;
use crate::model::said::json_problem;

pub(crate) struct Worker {
    spec: CommandSpec,
    folder: PathBuf,
    ready: Ready,
    offsets: Offsets,
    schema: Schema,
    process: Option<Process>,
    next_id: u64,
    restarts: u64,
    /// How long its first process took to start, if that was seen.
    start_took: Duration,
    /// What it stated of its answers since somebody asked.
    used: Reported,
}

impl Worker {
    /// Starts a process for the next one who calls [`Worker::introduce`] for it, who then need not wait as long.
    pub(crate) fn start_early(spec: &CommandSpec, folder: &Path) {
        let mut early = EARLY.lock().unwrap_or_else(PoisonError::into_inner);
        if early.iter().any(|early| early.is_for(spec, folder)) {
            return;
        }
        let (spec, folder) = (spec.clone(), folder.to_owned());
        let (its_spec, its_folder) = (spec.clone(), folder.clone());
        let started = thread::spawn(move || Self::start(&its_spec, &its_folder));
        early.push(Early { spec, folder, started });
    }

    /// Starts a process in `folder` (that of the pipeline file) just to hear what it says about itself. The process is
    /// kept, see [`Worker::new`].
    pub(crate) fn introduce(spec: &CommandSpec, folder: &Path) -> Result<Introduced, Failure> {
        let mut early = EARLY.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = early.iter().position(|early| early.is_for(spec, folder)).map(|at| early.swap_remove(at));
        drop(early);
        // Of one that panicked nothing is known.
        let started = mine.and_then(|early| early.started.join().ok());
        started.unwrap_or_else(|| Self::start(spec, folder))
    }

    fn start(spec: &CommandSpec, folder: &Path) -> Result<Introduced, Failure> {
        let started = Instant::now();
        let (process, ready) = Process::start(spec, folder).map_err(Failure::tamed)?;
        Ok(Introduced { process, ready, start_took: started.elapsed() })
    }

    /// A worker for a command that was agreed on; `introduced` saves the first start, if it is still at hand. Any
    /// number of workers can serve the same command, one per thread.
    #[must_use]
    pub(crate) fn new(command: &Command, folder: &Path, introduced: Option<Introduced>) -> Self {
        Self {
            spec: command.spec().clone(),
            folder: folder.to_owned(),
            ready: command.ready().clone(),
            offsets: command.offsets(),
            schema: command.schema().clone(),
            start_took: introduced.as_ref().map_or(Duration::ZERO, |introduced| introduced.start_took),
            process: introduced.map(|introduced| introduced.process),
            next_id: 0,
            restarts: 0,
            used: Reported::default(),
        }
    }

    /// How often a process had to be replaced.
    #[cfg(test)]
    pub(crate) fn restarts(&self) -> u64 {
        self.restarts
    }

    fn process(&mut self) -> Result<&mut Process, Failure> {
        if self.process.is_none() {
            let (process, ready) = Process::start(&self.spec, &self.folder)?;
            if ready != self.ready {
                return Err(Failure::Crashed("it came back as another: its introduction changed".to_owned()));
            }
            self.process = Some(process);
        }
        Ok(self.process.as_mut().expect("just started"))
    }

    /// Adds to `used` what answers state, also those that come to nothing.
    fn converse(&mut self, asked: &[Asked<'_>], used: &mut Reported) -> Result<Vec<Given>, Failure> {
        let (timeout, window) = (self.spec.timeout, self.spec.in_flight);
        let (offsets, schema) = (self.offsets, self.schema.clone());
        let first_id = self.next_id;
        self.next_id += asked.len() as u64;
        let process = self.process()?;
        let mut waiting: HashMap<u64, usize> = HashMap::new();
        let mut results: Vec<Given> = vec![Given::default(); asked.len()];
        let mut failure = None;
        let mut sent = 0;
        let mut since = Instant::now();
        loop {
            // After a failure nothing more is asked, but answers that are still to come are waited for.
            while failure.is_none() && sent < asked.len() && waiting.len() < window {
                let id = first_id + sent as u64;
                process.send(&asked[sent].request(id))?;
                if waiting.is_empty() {
                    since = Instant::now();
                }
                waiting.insert(id, sent);
                sent += 1;
            }
            if waiting.is_empty() {
                break;
            }
            let line = process.receive(since + timeout, Failure::Timeout(timeout))?;
            since = Instant::now();
            let answer: Answer =
                serde_json::from_str(&line).map_err(|error| Failure::Crashed(no_answer(&line, &error)))?;
            let Some(which) = waiting.remove(&answer.id) else {
                return Err(Failure::Crashed(format!("it answered {}, which nobody asked", answer.id)));
            };
            let stated = answer.usage.unwrap_or_default();
            if stated.price.is_some_and(|price| price < 0.0) {
                return Err(Failure::Crashed("it states a price below 0".to_owned()));
            }
            *used += stated;
            let said = if asked[which].is_unit { answer.said() } else { String::new() };
            match read(answer, asked[which].page, asked[which].slice, offsets, &schema) {
                Ok(mentions) => results[which] = Given { said, used: stated, ..Given::now(mentions) },
                Err(why) => _ = failure.get_or_insert(why),
            }
        }
        failure.map_or(Ok(results), Err)
    }
}

/// A part of a page that a worker is asked about.
struct Asked<'a> {
    page: &'a str,
    slice: Span,
    /// In the worker's offsets.
    span: [u32; 2],
    question: Question<'a>,
    is_unit: bool,
}

/// That a line is no answer, and what it says.
fn no_answer(line: &str, error: &serde_json::Error) -> String {
    format!("it wrote what is no answer: {}; it said: {}", json_problem(error), opening(line))
}

impl Asked<'_> {
    fn request(&self, id: u64) -> Request<'_> {
        let Question { text, before, after, title, .. } = self.question;
        let edges = [self.slice.start == 0, self.slice.end == offset(self.page.len())];
        Request { id, text, span: self.span, edges, before, after, title }
    }
}

impl Worker {
    /// A conversation, after which the process may be no more.
    fn ask(&mut self, asked: &[Asked<'_>]) -> Result<Vec<Given>, Failure> {
        let mut used = Reported::default();
        let result = self.converse(asked, &mut used);
        self.used += used;
        if let Err(Failure::Timeout(_) | Failure::Silent(_) | Failure::Crashed(_)) = result {
            // It may still answer what was asked, and nobody wants these answers any more.
            if self.process.take().is_some() {
                self.restarts += 1;
            }
        }
        result.map_err(Failure::tamed)
    }
}

impl Runner for Worker {
    fn run(&mut self, page: &str, slices: &[Span]) -> Result<Vec<Vec<Mention>>, Failure> {
        let ruler = Ruler::new(page, self.offsets);
        let asked = |slice: &Span| Asked {
            page,
            slice: *slice,
            span: [ruler.units(slice.start), ruler.units(slice.end)],
            question: Question { text: &page[slice.range()], ..Question::default() },
            is_unit: false,
        };
        let given = self.ask(&slices.iter().map(asked).collect::<Vec<_>>())?;
        Ok(given.into_iter().map(|given| given.mentions).collect())
    }

    /// A unit is shown as if it were a page: a worker that is not told where it stands cannot depend on it.
    fn answer(&mut self, questions: &[Question<'_>]) -> Result<Vec<Given>, Failure> {
        let asked = questions.iter().map(|question| Asked {
            page: question.text,
            slice: Span::new(0, offset(question.text.len())),
            span: [0, Ruler::new(question.text, self.offsets).len()],
            question: *question,
            is_unit: true,
        });
        let asked: Vec<Asked<'_>> = asked.collect();
        self.ask(&asked)
    }

    fn used(&mut self) -> Reported {
        std::mem::take(&mut self.used)
    }

    fn stands_by(&self) -> StandsBy {
        let (is_ready, in_flight) = (self.process.is_some(), self.spec.in_flight);
        StandsBy { is_ready, in_flight, start_took: self.start_took }
    }

    fn start(&mut self) {
        if let Err(failure) = self.process() {
            log::debug!("{failure}");
        }
    }
}

/// A process that was started before anybody needs it.
struct Early {
    spec: CommandSpec,
    folder: PathBuf,
    started: JoinHandle<Result<Introduced, Failure>>,
}

impl Early {
    fn is_for(&self, spec: &CommandSpec, folder: &Path) -> bool {
        (&self.spec, self.folder.as_path()) == (spec, folder)
    }
}

static EARLY: Mutex<Vec<Early>> = Mutex::new(Vec::new());

/// A process that said hello.
pub(crate) struct Introduced {
    process: Process,
    ready: Ready,
    start_took: Duration,
}

impl Introduced {
    #[must_use]
    pub(crate) fn ready(&self) -> &Ready {
        &self.ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::runner::Status;

    /// A worker in the shell: says hello, then runs `body` for each request with its id in `$id` and its line in
    /// `$line`.
    fn shell(body: &str, timeout_ms: u64, in_flight: usize) -> CommandSpec {
        let script = format!(
            r#"read -r hello; echo '{{"name":"sh","offsets":"char","unit":"page"}}'
            while read -r line; do id=${{line#*\"id\":}}; id=${{id%%,*}}; {body}; done"#
        );
        CommandSpec {
            argv: vec!["sh".into(), "-c".into(), script],
            timeout: Duration::from_millis(timeout_ms),
            start_timeout: Duration::from_mins(1),
            in_flight,
            ..CommandSpec::default()
        }
    }

    fn worker(spec: &CommandSpec) -> Worker {
        let folder = Path::new(".");
        let introduced = Worker::introduce(spec, folder).unwrap();
        let command = Command::agree(spec.clone(), introduced.ready().clone()).unwrap();
        Worker::new(&command, folder, Some(introduced))
    }

    fn whole(page: &str) -> Vec<Span> {
        vec![Span::new(0, offset(page.len()))]
    }

    const ONE: &str = r#"echo "{\"id\":$id,\"mentions\":[{\"start\":1,\"end\":2}]}""#;

    #[test]
    fn answers_are_mentions_of_the_page() {
        let mut worker = worker(&shell(ONE, 5_000, 4));
        let found = worker.run("xéy", &whole("xéy")).unwrap();
        assert_eq!(found, [[Mention::plain(1, 3, 0)]]);
        let slices = [Span::new(0, 3), Span::new(3, 6), Span::new(6, 9)];
        let found = worker.run("abcdefghi", &slices).unwrap();
        assert_eq!(found.iter().map(|of| of[0].start).collect::<Vec<_>>(), [1, 4, 7]);
    }

    #[test]
    fn answers_may_come_in_any_order() {
        let body = r#"if [ -n "$held" ]; then
            echo "{\"id\":$id,\"mentions\":[]}"; echo "{\"id\":$held,\"mentions\":[{\"start\":0,\"end\":1}]}"; held=
            else held=$id; fi"#;
        let found = worker(&shell(body, 5_000, 2)).run("abcd", &[Span::new(0, 2), Span::new(2, 4)]).unwrap();
        assert_eq!((found[0].len(), found[1].len()), (1, 0));
    }

    #[test]
    fn a_crash_fails_the_page_and_the_next_one_is_served() {
        let body = format!(r#"case $line in *boom*) echo tired >&2; exit 3;; esac; {ONE}"#);
        let mut worker = worker(&shell(&body, 5_000, 4));
        let failure = worker.run("boom", &whole("boom")).unwrap_err();
        assert_eq!(failure.status(), Status::Failed);
        assert!(failure.to_string().contains("exit status: 3"), "{failure}");
        assert_eq!(worker.run("fine", &whole("fine")).unwrap()[0].len(), 1);
        assert_eq!(worker.restarts(), 1);
    }

    #[test]
    fn silence_is_a_time_out_and_the_next_page_is_served() {
        let body = format!(r#"case $line in *sleep*) exec sleep 60;; esac; {ONE}"#);
        let mut worker = worker(&shell(&body, 150, 4));
        let failure = worker.run("sleep", &whole("sleep")).unwrap_err();
        assert_eq!(failure.status(), Status::Timeout);
        assert_eq!(worker.run("fine", &whole("fine")).unwrap()[0].len(), 1);
    }

    #[test]
    fn errors_and_nonsense_fail_the_page() {
        let mut complaining = worker(&shell(r#"echo "{\"id\":$id,\"error\":\"no model\"}""#, 5_000, 4));
        assert_eq!(complaining.run("a", &whole("a")), Err(Failure::Reported("no model".into())));
        assert_eq!(complaining.restarts(), 0);
        let mut babbling = worker(&shell("echo hello", 5_000, 4));
        assert_eq!(babbling.run("a", &whole("a")).unwrap_err().status(), Status::Failed);
        let mut beyond = worker(&shell(r#"echo "{\"id\":$id,\"mentions\":[{\"start\":0,\"end\":9}]}""#, 5_000, 4));
        assert!(matches!(beyond.run("a", &whole("a")), Err(Failure::BadAnswer(_))));
    }

    /// Requests and answers far larger than a pipe holds, both ways at once.
    #[test]
    fn full_pipes_do_not_lock_up() {
        let text = "x".repeat(300_000);
        // White space before an object is still JSON.
        let body = r#"printf '%200000s' ''; echo "{\"id\":$id,\"mentions\":[]}"; printf '%100000s\n' '' >&2"#;
        let mut worker = worker(&shell(body, 20_000, 8));
        let slices: Vec<Span> = (0..6).map(|i| Span::new(i * 50_000, (i + 1) * 50_000)).collect();
        assert_eq!(worker.run(&text, &slices).unwrap().len(), 6);
    }

    #[test]
    fn a_worker_that_was_started_early_is_the_one_that_is_introduced() {
        let folder = tempfile::tempdir().unwrap();
        let starts = folder.path().join("starts");
        let mut spec = shell(ONE, 5_000, 4);
        spec.argv[2] = format!("echo started >> '{}'; {}", starts.display(), spec.argv[2]);
        #[expect(clippy::disallowed_methods, reason = "what the worker wrote")]
        let count = || std::fs::read_to_string(&starts).map_or(0, |lines| lines.lines().count());
        Worker::start_early(&spec, folder.path());
        Worker::start_early(&spec, folder.path());
        let first = Worker::introduce(&spec, folder.path()).unwrap();
        assert_eq!((first.ready().name.as_str(), count()), ("sh", 1));
        // It serves one; the next starts its own.
        Worker::introduce(&spec, folder.path()).unwrap();
        assert_eq!(count(), 2);
        spec.argv = vec!["no-such-program-here".into()];
        Worker::start_early(&spec, folder.path());
        let failure = Worker::introduce(&spec, folder.path()).err().unwrap();
        assert!(failure.to_string().contains("no-such-program-here"));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let mut spec = shell("", 100, 1);
        spec.argv = vec!["no-such-program-here".into()];
        let failure = Worker::introduce(&spec, Path::new(".")).err().unwrap();
        assert!(failure.to_string().contains("no-such-program-here"));
    }
}
