//! The runners of an extractor. Each serves one conversation at a time: about a page, or about a part of its questions where
//! others are free to take the rest.
//!
//! There are as many as there are threads. Where nobody else is free, all questions about a page go to one of them, which
//! may like to have many at once; from the moment that another is free the rest is shared. Answers are given together and
//! in the order of the questions, and of several failures the first one counts, so that it does not matter who took what.

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::extract::{Answer, Failure, Question, Reported, Runner};

pub(super) type Boxed = Box<dyn Runner + Send>;
type Make<'m> = &'m (dyn Fn() -> Option<Boxed> + Sync);

/// A runner is asked for so many windows of questions at a time: between two conversations it has nothing to do.
const WINDOWS: usize = 2;
/// Another worker is started where the first would take so many times as long for the rest as a start takes.
const WORTH_STARTING: u32 = 2;

pub(super) struct Pool {
    state: Arc<State>,
    most: usize,
    /// How long the first one took to start.
    start_takes: Duration,
}

#[derive(Default)]
struct State {
    inner: Mutex<Inner>,
    /// A runner came back, or a conversation has no questions left.
    news: Condvar,
}

#[derive(Default)]
struct Inner {
    idle: Vec<Boxed>,
    made: usize,
    /// Conversations that wait for a runner.
    waiting: usize,
    closed: bool,
}

impl State {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, runner: Boxed) {
        let mut inner = self.inner();
        if !inner.closed {
            inner.idle.push(runner);
        }
        drop(inner);
        self.news.notify_all();
    }

    fn wait<'g>(&self, inner: MutexGuard<'g, Inner>) -> MutexGuard<'g, Inner> {
        self.news.wait(inner).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// One that can be asked at once.
    fn ready(&mut self) -> Option<Boxed> {
        let at = self.idle.iter().rposition(|runner| runner.stands_by().is_ready)?;
        Some(self.idle.remove(at))
    }
}

impl Pool {
    /// With one that is there already.
    pub(super) fn new(first: Boxed) -> Self {
        let start_takes = first.stands_by().start_took;
        let inner = Inner { idle: vec![first], made: 1, ..Inner::default() };
        let state = Arc::new(State { inner: Mutex::new(inner), news: Condvar::new() });
        Self { state, most: rayon::current_num_threads().max(1), start_takes }
    }

    /// All that nobody uses; those that are still to come are let go.
    pub(super) fn close(&self) -> Vec<Boxed> {
        let mut inner = self.state.inner();
        inner.closed = true;
        std::mem::take(&mut inner.idle)
    }

    /// One for a conversation: it is waited for if as many as there may be are busy.
    fn take(&self, make: Make<'_>) -> Option<Boxed> {
        let mut inner = self.state.inner();
        loop {
            if let Some(runner) = inner.ready().or_else(|| inner.idle.pop()) {
                return Some(runner);
            }
            if inner.made < self.most || inner.closed {
                inner.made += 1;
                drop(inner);
                return make();
            }
            inner.waiting += 1;
            inner = self.state.wait(inner);
            inner.waiting -= 1;
        }
    }

    /// One that is free and can be asked at once, as soon as there is one; `None` when `is_over`.
    fn take_free(&self, is_over: impl Fn() -> bool) -> Option<Boxed> {
        let mut inner = self.state.inner();
        while !is_over() {
            if inner.waiting == 0
                && let Some(runner) = inner.ready()
            {
                return Some(runner);
            }
            inner = self.state.wait(inner);
        }
        None
    }

    /// How many are free and can be asked at once.
    fn free(&self) -> usize {
        let inner = self.state.inner();
        let ready = inner.idle.iter().filter(|runner| runner.stands_by().is_ready).count();
        ready.saturating_sub(inner.waiting)
    }

    fn is_waited_for(&self) -> bool {
        self.state.inner().waiting > 0
    }

    /// Starts one more, if there may be one; nobody waits for it.
    fn start_another(&self, make: Make<'_>) {
        let mut inner = self.state.inner();
        let sleeping = inner.idle.iter().rposition(|runner| !runner.stands_by().is_ready);
        let runner = match sleeping {
            Some(at) => Some(inner.idle.remove(at)),
            None if inner.made < self.most => {
                inner.made += 1;
                make()
            }
            None => None,
        };
        drop(inner);
        if let Some(mut runner) = runner {
            let state = Arc::clone(&self.state);
            thread::spawn(move || {
                runner.start();
                state.give(runner);
            });
        }
    }

    /// Runs `with` on a runner; `None` if nobody can be asked.
    pub(super) fn with<T>(&self, make: Make<'_>, with: impl FnOnce(&mut dyn Runner) -> T) -> Option<T> {
        let mut runner = self.take(make)?;
        let result = with(&mut *runner);
        self.state.give(runner);
        Some(result)
    }

    /// The answers to questions that do not depend on each other, by all who are free. Adds to `used` what they state.
    pub(super) fn answer(
        &self,
        make: Make<'_>,
        questions: &[Question<'_>],
        used: &mut Reported,
    ) -> Option<Result<Vec<Answer>, Failure>> {
        let mut own = self.take(make)?;
        let window = own.stands_by().in_flight.max(1);
        let shared = Shared::new(self, questions, window);
        let is_long = questions.len() > WINDOWS * window;
        if self.most > 1 && questions.len() > 1 && (is_long || self.free() > 0) {
            thread::scope(|scope| {
                for _ in 1..self.most.min(questions.len()) {
                    scope.spawn(|| shared.help());
                }
                shared.work(&mut *own, Some(make));
            });
        } else {
            shared.work(&mut *own, Some(make));
        }
        *used += own.used();
        self.state.give(own);
        let done = shared.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        *used += done.used;
        Some(done.failure.map_or_else(|| Ok(done.answers), |(_, failure)| Err(failure)))
    }
}

/// Questions that several runners share.
struct Shared<'s> {
    pool: &'s Pool,
    questions: &'s [Question<'s>],
    window: usize,
    done: Mutex<Done>,
}

struct Done {
    /// The first question that nobody has.
    next: usize,
    answers: Vec<Answer>,
    /// The first that failed, and why.
    failure: Option<(usize, Failure)>,
    /// What those who helped state.
    used: Reported,
}

impl<'s> Shared<'s> {
    fn new(pool: &'s Pool, questions: &'s [Question<'s>], window: usize) -> Self {
        let done = Done {
            next: 0,
            answers: vec![Answer::default(); questions.len()],
            failure: None,
            used: Reported::default(),
        };
        Self { pool, questions, window, done: Mutex::new(done) }
    }

    fn done(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        let done = self.done();
        done.failure.is_some() || done.next >= self.questions.len()
    }

    /// The next questions for one runner: as many as leave some for those who are free. They are taken in order, so that
    /// the first of all that fail has always been asked.
    fn next(&self) -> Option<Range<usize>> {
        let sharers = 1 + self.pool.free();
        let mut done = self.done();
        let left = self.questions.len() - done.next;
        if left == 0 || done.failure.is_some() {
            return None;
        }
        let start = done.next;
        done.next += left.div_ceil(sharers).min(WINDOWS * self.window);
        Some(start..done.next)
    }

    /// Asks until no questions are left; who only helps, until somebody else needs the runner. `make`: one more may be
    /// started.
    fn work(&self, runner: &mut dyn Runner, mut make: Option<Make<'_>>) {
        let helps = make.is_none();
        while let Some(part) = self.next() {
            let (first, many) = (part.start, part.len());
            let started = Instant::now();
            let answered = runner.answer(&self.questions[part.clone()]);
            let mut done = self.done();
            match answered {
                Ok(answers) => done.answers[part].clone_from_slice(&answers),
                Err(failure) if done.failure.as_ref().is_none_or(|(at, _)| first < *at) => {
                    done.failure = Some((first, failure));
                }
                Err(_) => {}
            }
            let left = u32::try_from(self.questions.len() - done.next).unwrap_or(u32::MAX);
            drop(done);
            let each = started.elapsed() / u32::try_from(many).unwrap_or(u32::MAX);
            if each.saturating_mul(left) > self.pool.start_takes * WORTH_STARTING
                && let Some(make) = make.take()
            {
                self.pool.start_another(make);
            }
            if helps && self.pool.is_waited_for() {
                break;
            }
        }
        if self.is_over() {
            // Those who wait for a runner to help with hear of it.
            drop(self.pool.state.inner());
            self.pool.state.news.notify_all();
        }
    }

    /// Helps with whoever becomes free.
    fn help(&self) {
        while let Some(mut runner) = self.pool.take_free(|| self.is_over()) {
            self.work(&mut *runner, None);
            self.done().used += runner.used();
            self.pool.state.give(runner);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::extract::runner::StandsBy;
    use crate::extract::{Mention, Status};
    use crate::model::Span;

    /// What was asked of whom, and how many were busy at once.
    #[derive(Default)]
    struct Book {
        made: AtomicUsize,
        busy: AtomicUsize,
        busiest: AtomicUsize,
        asked: Mutex<Vec<(usize, String)>>,
    }

    /// Answers with what it was asked, in its own time; `boom` fails.
    struct Slow {
        name: usize,
        is_ready: bool,
        book: Arc<Book>,
    }

    impl Slow {
        fn make(book: &Arc<Book>, is_ready: bool) -> Boxed {
            Box::new(Self { name: book.made.fetch_add(1, Ordering::SeqCst), is_ready, book: Arc::clone(book) })
        }
    }

    impl Runner for Slow {
        fn run(&mut self, _: &str, _: &[Span]) -> Result<Vec<Vec<Mention>>, Failure> {
            Ok(Vec::new())
        }

        fn answer(&mut self, questions: &[Question<'_>]) -> Result<Vec<Answer>, Failure> {
            self.is_ready = true;
            let busy = self.book.busy.fetch_add(1, Ordering::SeqCst) + 1;
            self.book.busiest.fetch_max(busy, Ordering::SeqCst);
            let answer = |question: &Question<'_>| {
                thread::sleep(Duration::from_millis(5));
                self.book.asked.lock().unwrap().push((self.name, question.text.to_owned()));
                match question.text.strip_prefix("boom") {
                    Some(which) => Err(Failure::Reported(which.to_owned())),
                    None => Ok(Answer { said: question.text.to_owned(), ..Answer::default() }),
                }
            };
            let answers = questions.iter().map(answer).collect();
            self.book.busy.fetch_sub(1, Ordering::SeqCst);
            answers
        }

        fn stands_by(&self) -> StandsBy {
            StandsBy { is_ready: self.is_ready, in_flight: 4, start_took: Duration::from_millis(1) }
        }

        fn start(&mut self) {
            self.is_ready = true;
        }
    }

    /// A pool for so many threads, with one runner.
    fn pool(threads: usize) -> (Pool, Arc<Book>) {
        let book = Arc::new(Book::default());
        let first = Slow::make(&book, true);
        (rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| Pool::new(first)), book)
    }

    fn ask(pool: &Pool, book: &Arc<Book>, texts: &[String]) -> Result<Vec<String>, Failure> {
        let questions: Vec<Question<'_>> = texts.iter().map(|text| Question { text, ..Question::default() }).collect();
        let answered = pool.answer(&|| Some(Slow::make(book, false)), &questions, &mut Reported::default()).unwrap();
        answered.map(|answers| answers.into_iter().map(|answer| answer.said).collect())
    }

    fn numbered(prefix: &str, count: usize) -> Vec<String> {
        (0..count).map(|i| format!("{prefix}{i}")).collect()
    }

    #[test]
    fn a_page_with_many_questions_is_shared_and_its_answers_are_in_order() {
        let (pool, book) = pool(3);
        let texts = numbered("q", 60);
        assert_eq!(ask(&pool, &book, &texts).unwrap(), texts);
        let asked = book.asked.lock().unwrap();
        assert!(asked.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>().len() > 1, "one did it all");
        assert_eq!(asked.iter().map(|(_, text)| text).collect::<BTreeSet<_>>().len(), 60, "each was asked once");
    }

    #[test]
    fn one_thread_has_one_runner() {
        let (pool, book) = pool(1);
        let texts = numbered("q", 30);
        assert_eq!(ask(&pool, &book, &texts).unwrap(), texts);
        assert_eq!(book.made.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn of_several_failures_the_first_counts() {
        let (pool, book) = pool(3);
        for _ in 0..5 {
            let mut texts = numbered("q", 50);
            texts[21] = "boom first".to_owned();
            texts[40] = "boom second".to_owned();
            texts[49] = "boom third".to_owned();
            let failure = ask(&pool, &book, &texts).unwrap_err();
            assert_eq!((failure.status(), &failure), (Status::Failed, &Failure::Reported(" first".to_owned())));
        }
        let texts = numbered("q", 9);
        assert_eq!(ask(&pool, &book, &texts).unwrap(), texts, "it goes on after a failure");
    }

    #[test]
    fn many_conversations_never_have_more_runners_than_there_are_threads() {
        let (pool, book) = pool(2);
        thread::scope(|scope| {
            for page in 0..6 {
                let (pool, book) = (&pool, &book);
                scope.spawn(move || {
                    for turn in 0..4 {
                        let texts = numbered(&format!("{page}-{turn}-"), 1 + 5 * page);
                        assert_eq!(ask(pool, book, &texts).unwrap(), texts);
                    }
                });
            }
        });
        assert!(book.made.load(Ordering::SeqCst) <= 2 && book.busiest.load(Ordering::SeqCst) <= 2);
        assert!(pool.close().len() <= 2);
    }
}
