//! Answers that were paid for: `_meta/answers/<extractor>.log`.
//!
//! A log, not a cache: nothing but `prune --answers` ever removes an answer from it. A line is
//! `<kind> <checksum> <key> <JSON>`: the key is the digest of what was asked, the checksum that of everything else on the
//! line. What a kill cut off at the end is dropped when the log is opened for writing; a line damaged elsewhere is told
//! and passed over, and what it answered is asked again.
//!
//! Besides answers the log has what was reserved of a budget before each request and what came of it, so that whoever
//! reads it after a kill knows what may have been spent.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::{Result, Store, StoreError};
use crate::model::{Digest, SnapshotId};

/// An answer, or what asking for one came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptAnswer {
    /// For which snapshot it was asked, and for which page first.
    pub(crate) snapshot: SnapshotId,
    pub(crate) url: String,
    /// Of the unit alone.
    pub(crate) unit: Digest,
    /// Bytes of the unit.
    pub(crate) bytes: u64,
    /// As it was given; of a failure, why.
    pub(crate) said: String,
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    /// Of all attempts.
    pub(crate) price: Option<f64>,
    pub(crate) attempts: u32,
    pub(crate) seconds: f64,
}

/// Reserved before a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Reserved {
    number: u64,
    price: f64,
    snapshot: SnapshotId,
    url: String,
}

/// What a request came to for which something was reserved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Settled {
    number: u64,
    price: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Answer,
    /// Asked as often as may be, without an answer.
    Failure,
    Reserved,
    Settled,
    /// A run ended by itself.
    End,
}

impl Kind {
    const ALL: [(Self, u8); 5] =
        [(Self::Answer, b'A'), (Self::Failure, b'F'), (Self::Reserved, b'R'), (Self::Settled, b'S'), (Self::End, b'E')];

    fn letter(self) -> char {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or('?', |(_, letter)| char::from(*letter))
    }

    fn of(letter: u8) -> Option<Self> {
        Self::ALL.iter().find(|(_, other)| *other == letter).map(|(kind, _)| *kind)
    }
}

/// Kind, checksum and key with a space after each.
const HEAD: usize = 2 + 33 + 33;

/// Where the JSON of a line lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    at: u64,
    len: u32,
    /// Which of the log's snapshots it was asked for.
    night: u32,
}

pub(crate) struct AnswerLog {
    path: PathBuf,
    /// `None` if there is no log yet and it is only read.
    file: Option<fs::File>,
    answers: HashMap<Digest, Place>,
    failures: Vec<(Digest, Place)>,
    /// By number, what was reserved and is not settled.
    open: BTreeMap<u64, (Digest, Reserved)>,
    next: u64,
    /// Spent since a run last ended by itself, reservations included.
    spent: f64,
    ended: bool,
    /// The run before had ended by itself when this was opened.
    ended_before: bool,
    len: u64,
    nights: Vec<String>,
}

impl Store {
    fn answers_file(&self, extractor: &str) -> PathBuf {
        self.meta().join("answers").join(format!("{extractor}.log"))
    }

    /// The answers of an extractor, to read and to add to. Only for the holder of the lock.
    pub(crate) fn answers(&self, extractor: &str) -> Result<AnswerLog> {
        let path = self.answers_file(extractor);
        let dir = path.parent().expect("a file has a folder");
        if !dir.is_dir() {
            fs::create_dir_all(dir)?;
            super::sync_dir(&self.meta())?;
        }
        let is_new = !path.exists();
        let file = fs::OpenOptions::new().create(true).read(true).append(true).open(&path)?;
        if is_new {
            super::sync_dir(dir)?;
        }
        let mut log = AnswerLog::read(path, Some(file))?;
        if let Some(file) = &log.file
            && file.metadata()?.len() > log.len
        {
            log::info!("{}: what a kill cut off at the end is dropped", log.path.display());
            file.set_len(log.len)?;
            file.sync_all()?;
        }
        log.settle_lost()?;
        Ok(log)
    }

    /// The answers of an extractor, to read.
    pub(crate) fn answers_to_read(&self, extractor: &str) -> Result<AnswerLog> {
        let path = self.answers_file(extractor);
        let file = if path.exists() { Some(fs::File::open(&path)?) } else { None };
        AnswerLog::read(path, file)
    }

    /// Notes in all logs that a run ended by itself: the next one has a budget of its own.
    pub(crate) fn end_of_run(&self) -> Result<()> {
        let dir = self.meta().join("answers");
        if !dir.is_dir() {
            return Ok(());
        }
        for entry in fs::read_dir(&dir)? {
            let name = entry?.file_name();
            let extractor = name.to_str().and_then(|name| name.strip_suffix(".log"));
            let Some(extractor) = extractor.filter(|_| !ends_with_a_run(&dir.join(&name)).unwrap_or(false)) else {
                continue;
            };
            let mut log = self.answers(extractor)?;
            if !log.ended {
                log.append(Kind::End, Digest::of(b""), "{}")?;
                log.sync()?;
            }
        }
        Ok(())
    }
}

impl AnswerLog {
    fn read(path: PathBuf, file: Option<fs::File>) -> Result<Self> {
        let mut log = Self {
            path,
            file: None,
            answers: HashMap::new(),
            failures: Vec::new(),
            open: BTreeMap::new(),
            next: 0,
            spent: 0.0,
            ended: true,
            ended_before: true,
            len: 0,
            nights: Vec::new(),
        };
        let Some(mut file) = file else { return Ok(log) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mut damaged = 0;
        let mut at = 0;
        while let Some(length) = memchr::memchr(b'\n', &bytes[at..]) {
            let line = &bytes[at..at + length];
            let known = parse(line).is_some_and(|(kind, key)| log.take(kind, key, at, line));
            at += length + 1;
            if known {
                log.len = at as u64;
            } else if at < bytes.len() {
                damaged += 1;
            }
        }
        if damaged > 0 {
            log::warn!("{}: {damaged} damaged lines; what they answered is asked again", log.path.display());
            log.len = log.len.max(at as u64);
        }
        log.ended_before = log.ended;
        log.file = Some(file);
        Ok(log)
    }

    /// Ends what is no run and has a budget of its own: a run that was killed before it goes on with what it had.
    pub(crate) fn end_apart(&mut self) -> Result<()> {
        if self.ended_before && !self.ended {
            self.append(Kind::End, Digest::of(b""), "{}")?;
        }
        self.sync()
    }

    /// Takes in a sound line that begins `at`.
    fn take(&mut self, kind: Kind, key: Digest, at: usize, line: &[u8]) -> bool {
        let json = &line[HEAD..];
        let place = self.place((at + HEAD) as u64, json);
        self.ended = kind == Kind::End;
        match kind {
            Kind::Answer => _ = self.answers.insert(key, place),
            Kind::Failure => self.failures.push((key, place)),
            Kind::End => self.spent = 0.0,
            Kind::Reserved => {
                let Ok(reserved) = serde_json::from_slice::<Reserved>(json) else { return false };
                self.spent += reserved.price;
                self.next = self.next.max(reserved.number + 1);
                self.open.insert(reserved.number, (key, reserved));
            }
            Kind::Settled => {
                let Ok(settled) = serde_json::from_slice::<Settled>(json) else { return false };
                if let Some((_, reserved)) = self.open.remove(&settled.number) {
                    self.spent += settled.price - reserved.price;
                }
            }
        }
        true
    }

    /// What a killed run had reserved is spent: nobody can tell what became of it.
    fn settle_lost(&mut self) -> Result<()> {
        let lost = std::mem::take(&mut self.open);
        for (number, (key, reserved)) in &lost {
            let Reserved { price, snapshot, url, .. } = reserved.clone();
            let settled = Settled { number: *number, price };
            let failure = KeptAnswer {
                snapshot,
                url,
                unit: *key,
                bytes: 0,
                said: "the run was killed before the answer came".to_owned(),
                input_tokens: None,
                output_tokens: None,
                price: Some(price),
                attempts: 1,
                seconds: 0.0,
            };
            self.append(Kind::Settled, *key, &json(&settled))?;
            self.failed(*key, &failure)?;
        }
        if lost.is_empty() { Ok(()) } else { self.sync() }
    }

    fn append(&mut self, kind: Kind, key: Digest, json: &str) -> Result<Place> {
        let rest = format!("{} {key} {json}", kind.letter());
        let line = format!("{} {} {key} {json}\n", kind.letter(), Digest::of(rest.as_bytes()));
        let place = self.place(self.len + HEAD as u64, json.as_bytes());
        let file = self.file.as_mut().ok_or_else(|| StoreError::Damaged {
            path: self.path.clone(),
            problem: "it is open for reading only".to_owned(),
        })?;
        if let Err(error) = file.write_all(line.as_bytes()) {
            // What was written of the line would spoil the next one.
            let _ = file.set_len(self.len);
            return Err(error.into());
        }
        self.len += line.len() as u64;
        self.ended = kind == Kind::End;
        Ok(place)
    }

    /// The snapshot is the first thing that an entry says, so that it need not be read to be found by it.
    fn place(&mut self, at: u64, json: &[u8]) -> Place {
        let name = json.strip_prefix(br#"{"snapshot":""#).and_then(|rest| rest.split(|byte| *byte == b'"').next());
        let name = name.map(String::from_utf8_lossy).unwrap_or_default();
        // The newest are asked for most.
        let known = self.nights.iter().rposition(|night| *night == name);
        let night = known.unwrap_or_else(|| {
            self.nights.push(name.into_owned());
            self.nights.len() - 1
        });
        let len = u32::try_from(json.len()).unwrap_or(u32::MAX);
        Place { at, len, night: u32::try_from(night).unwrap_or(u32::MAX) }
    }

    pub(crate) fn has(&self, key: Digest) -> bool {
        self.answers.contains_key(&key)
    }

    /// The answer to what `key` stands for.
    pub(crate) fn get(&self, key: Digest) -> Result<Option<KeptAnswer>> {
        self.answers.get(&key).map(|place| self.entry(*place)).transpose()
    }

    fn entry(&self, place: Place) -> Result<KeptAnswer> {
        let damaged = |problem: String| StoreError::Damaged { path: self.path.clone(), problem };
        let file = self.file.as_ref().ok_or_else(|| damaged("it is gone".to_owned()))?;
        let mut bytes = vec![0; place.len as usize];
        file.file().read_exact_at(&mut bytes, place.at)?;
        serde_json::from_slice(&bytes).map_err(|error| damaged(format!("an answer cannot be read: {error}")))
    }

    /// Adds an answer. It is there once it is [published](Self::publish), which is done when the log has been synced.
    pub(crate) fn answered(&mut self, key: Digest, answer: &KeptAnswer) -> Result<Place> {
        let place = self.append(Kind::Answer, key, &json(answer))?;
        Ok(place)
    }

    pub(crate) fn publish(&mut self, key: Digest, place: Place) {
        self.answers.insert(key, place);
    }

    /// Whether nothing is reserved that may come to less.
    pub(crate) fn is_settled(&self) -> bool {
        self.open.is_empty()
    }

    /// Notes what asking without success came to.
    pub(crate) fn failed(&mut self, key: Digest, failure: &KeptAnswer) -> Result<()> {
        let place = self.append(Kind::Failure, key, &json(failure))?;
        self.failures.push((key, place));
        Ok(())
    }

    /// Whether it is noted that asking came to exactly this.
    pub(crate) fn has_failed_so(&self, key: Digest, said: &str) -> Result<bool> {
        for (_, place) in self.failures.iter().filter(|(other, _)| *other == key) {
            if self.entry(*place)?.said == said {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Spent since a run last ended by itself, reservations included.
    pub(crate) fn spent(&self) -> f64 {
        self.spent
    }

    /// Reserves before a request is sent; the number settles it.
    pub(crate) fn reserve(&mut self, key: Digest, price: f64, snapshot: &SnapshotId, url: &str) -> Result<u64> {
        let number = self.next;
        let reserved = Reserved { number, price, snapshot: snapshot.clone(), url: url.to_owned() };
        self.append(Kind::Reserved, key, &json(&reserved))?;
        self.next += 1;
        self.spent += price;
        self.open.insert(number, (key, reserved));
        Ok(number)
    }

    /// Says what a request came to for which something was reserved.
    pub(crate) fn settle(&mut self, number: u64, price: f64) -> Result<()> {
        let Some((key, reserved)) = self.open.remove(&number) else { return Ok(()) };
        self.append(Kind::Settled, key, &json(&Settled { number, price }))?;
        self.spent += price - reserved.price;
        Ok(())
    }

    /// A handle that syncs the log without holding it.
    pub(crate) fn handle(&self) -> Result<Option<fs::File>> {
        Ok(self.file.as_ref().map(fs::File::try_clone).transpose()?)
    }

    /// Makes everything that was added survive a crash.
    pub(crate) fn sync(&self) -> Result<()> {
        if let Some(file) = &self.file {
            file.sync_data()?;
        }
        Ok(())
    }

    /// All answers and failures that were asked for in a snapshot, by key; `true`: an answer.
    pub(crate) fn of_snapshot(&self, snapshot: &SnapshotId) -> Result<Vec<(Digest, bool, KeptAnswer)>> {
        let night = self.nights.iter().position(|night| *night == snapshot.as_str());
        let Some(night) = night.and_then(|night| u32::try_from(night).ok()) else { return Ok(Vec::new()) };
        self.entries(|place| place.night == night)
    }

    #[cfg(test)]
    fn all(&self) -> Result<Vec<(Digest, bool, KeptAnswer)>> {
        self.entries(|_| true)
    }

    fn entries(&self, wanted: impl Fn(&Place) -> bool) -> Result<Vec<(Digest, bool, KeptAnswer)>> {
        let answers = self.answers.iter().map(|(key, place)| (*key, true, *place));
        let failures = self.failures.iter().map(|(key, place)| (*key, false, *place));
        let mut all: Vec<(Digest, bool, Place)> =
            answers.chain(failures).filter(|(_, _, place)| wanted(place)).collect();
        all.sort_by_key(|(key, good, place)| (*key, *good, place.at));
        all.into_iter().map(|(key, good, place)| Ok((key, good, self.entry(place)?))).collect()
    }

    /// Keeps the answers whose keys are needed, and drops everything else. Returns how many answers are left, and how many
    /// went.
    pub(crate) fn prune(self, needed: impl Fn(Digest) -> bool) -> Result<(usize, usize)> {
        let mut keep: Vec<(Digest, Place)> =
            self.answers.iter().filter(|(key, _)| needed(**key)).map(|(key, place)| (*key, *place)).collect();
        keep.sort_by_key(|(_, place)| place.at);
        let went = self.answers.len() - keep.len();
        let Some(dir) = self.path.parent().filter(|_| went > 0 || !self.failures.is_empty()) else {
            return Ok((keep.len(), went));
        };
        let temporary = self.path.with_extension("tmp");
        let file = fs::OpenOptions::new().create(true).truncate(true).write(true).open(&temporary)?;
        let mut fresh = Self { path: temporary.clone(), file: Some(file), ..Self::read(PathBuf::new(), None)? };
        for (key, place) in &keep {
            let place = fresh.answered(*key, &self.entry(*place)?)?;
            fresh.publish(*key, place);
        }
        fresh.append(Kind::End, Digest::of(b""), "{}")?;
        fresh.sync()?;
        fs::rename(&temporary, &self.path)?;
        super::sync_dir(dir)?;
        Ok((keep.len(), went))
    }

    #[cfg(test)]
    fn path(&self) -> &std::path::Path {
        &self.path
    }
}

/// Whether the last line of a log says that a run ended, so that there is nothing to note.
fn ends_with_a_run(path: &std::path::Path) -> Result<bool> {
    let file = fs::File::open(path)?;
    let length = HEAD as u64 + 3;
    let Some(at) = file.metadata()?.len().checked_sub(length) else { return Ok(false) };
    let mut line = vec![0; HEAD + 3];
    file.file().read_exact_at(&mut line, at)?;
    Ok(line.ends_with(b"\n") && parse(&line[..line.len() - 1]).is_some_and(|(kind, _)| kind == Kind::End))
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("entries are plain data")
}

/// Kind and key of a sound line.
fn parse(line: &[u8]) -> Option<(Kind, Digest)> {
    let kind = Kind::of(*line.first()?)?;
    let text = |range: std::ops::Range<usize>| std::str::from_utf8(line.get(range)?).ok();
    let (checksum, key) = (Digest::from_hex(text(2..34)?)?, Digest::from_hex(text(35..67)?)?);
    let spaces = [1, 34, 67].iter().all(|&at| line.get(at) == Some(&b' '));
    let mut rest = vec![line[0], b' '];
    rest.extend_from_slice(&line[35..]);
    (spaces && Digest::of(&rest) == checksum).then_some((kind, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path()).unwrap();
        (dir, store)
    }

    fn answer(said: &str) -> KeptAnswer {
        KeptAnswer {
            snapshot: night(),
            url: "http://a/".into(),
            unit: Digest::of(said.as_bytes()),
            bytes: 3,
            said: said.into(),
            input_tokens: Some(1),
            output_tokens: None,
            price: Some(0.25),
            attempts: 1,
            seconds: 0.5,
        }
    }

    fn keep(log: &mut AnswerLog, key: Digest, answer: &KeptAnswer) {
        let place = log.answered(key, answer).unwrap();
        log.publish(key, place);
    }

    fn night() -> SnapshotId {
        SnapshotId::new("2024-01-01").unwrap()
    }

    fn key(name: &str) -> Digest {
        Digest::of(name.as_bytes())
    }

    #[test]
    fn answers_are_there_again_and_a_cut_tail_is_dropped() {
        let (_dir, store) = store();
        let mut log = store.answers("e").unwrap();
        keep(&mut log, key("a"), &answer("one\nline"));
        keep(&mut log, key("b"), &answer("two"));
        let path = log.path().to_owned();
        drop(log);
        let whole = fs::read(&path).unwrap();
        // Whatever a kill leaves of the last line, the first is there and the log can be added to.
        let first = memchr::memchr(b'\n', &whole).unwrap() + 1;
        for end in first..whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            let mut log = store.answers("e").unwrap();
            assert_eq!(log.get(key("a")).unwrap(), Some(answer("one\nline")));
            assert_eq!(log.get(key("b")).unwrap(), None);
            keep(&mut log, key("c"), &answer("three"));
            drop(log);
            let log = store.answers_to_read("e").unwrap();
            assert_eq!(log.get(key("c")).unwrap(), Some(answer("three")));
            assert_eq!(log.all().unwrap().len(), 2);
        }
    }

    #[test]
    fn a_damaged_line_costs_that_answer_alone() {
        let (_dir, store) = store();
        let mut log = store.answers("e").unwrap();
        for name in ["a", "b", "c"] {
            keep(&mut log, key(name), &answer(name));
        }
        let path = log.path().to_owned();
        let mut bytes = fs::read(&path).unwrap();
        let second = memchr::memchr(b'\n', &bytes).unwrap() + 80;
        bytes[second] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let mut log = store.answers("e").unwrap();
        assert_eq!(["a", "b", "c"].map(|name| log.has(key(name))), [true, false, true]);
        keep(&mut log, key("b"), &answer("again"));
        drop(log);
        let log = store.answers("e").unwrap();
        assert_eq!(log.get(key("b")).unwrap(), Some(answer("again")));
        assert_eq!(log.get(key("c")).unwrap(), Some(answer("c")));
    }

    #[test]
    fn what_a_killed_run_reserved_is_spent_and_counts_until_a_run_ends_by_itself() {
        let (_dir, store) = store();
        let mut log = store.answers("e").unwrap();
        let first = log.reserve(key("a"), 1.0, &night(), "http://a/").unwrap();
        log.reserve(key("b"), 0.5, &night(), "http://b/").unwrap();
        log.settle(first, 0.25).unwrap();
        assert!((log.spent() - 0.75).abs() < 1e-12);
        drop(log);
        let log = store.answers("e").unwrap();
        assert!((log.spent() - 0.75).abs() < 1e-12);
        let all = log.all().unwrap();
        assert_eq!((all.len(), all[0].1, all[0].2.price), (1, false, Some(0.5)));
        drop(log);
        store.end_of_run().unwrap();
        let log = store.answers("e").unwrap();
        assert!(log.spent().abs() < 1e-12 && log.all().unwrap().len() == 1);
    }

    #[test]
    fn pruning_keeps_what_is_needed() {
        let (_dir, store) = store();
        let mut log = store.answers("e").unwrap();
        for name in ["a", "b", "c"] {
            keep(&mut log, key(name), &answer(name));
        }
        assert_eq!(log.prune(|other| other == key("b")).unwrap(), (1, 2));
        let log = store.answers("e").unwrap();
        assert_eq!(log.all().unwrap(), [(key("b"), true, answer("b"))]);
    }
}
