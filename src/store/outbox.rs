//! Requests that are not sent one by one but as a batch: `_meta/batches/<extractor>`.
//!
//! ```text
//! waiting.jsonl   what pages lack, a request a line; grows while a run goes on
//! <n>.jsonl       a batch as it is submitted
//! <n>.json        how far it is: sealed, then creating with the server's file, then submitted with the server's batch
//! ```
//! A step is written down before the next one is taken, so that whoever comes after a kill knows what the server may have.
//! A request is in one of these files until its answer is kept (`answers`), and is not asked for as long as it is.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::path::PathBuf;

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::{Result, Store, read_if_there, sync_dir};
use crate::model::Digest;

/// A request that is asked in a batch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BatchRequest {
    pub(crate) key: Digest,
    /// The page that lacks the answer.
    pub(crate) url: String,
    /// The unit.
    pub(crate) text: String,
    /// What is asked, as JSON.
    pub(crate) body: String,
}

/// How far a batch is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum BatchState {
    /// Nobody knows of it yet.
    Sealed,
    /// The server has its file, and may have been told to begin.
    Creating { file: String },
    /// The server works on it.
    Submitted { batch: String },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Batch {
    pub(crate) number: u64,
    pub(crate) state: BatchState,
    pub(crate) requests: Vec<BatchRequest>,
}

/// The batches of one extractor.
pub(crate) struct Outbox {
    dir: PathBuf,
    name: String,
    waiting: Vec<BatchRequest>,
    open: Vec<Batch>,
    keys: HashSet<Digest>,
    /// A kill cut off the last line of those that wait.
    cut: bool,
}

/// What servers take as one batch, at most.
const MOST_REQUESTS: usize = 20_000;
const MOST_BYTES: usize = 64 << 20;
const WAITING: &str = "waiting.jsonl";

impl Store {
    /// The batches of an extractor. Only the holder of the lock may change them.
    pub(crate) fn outbox(&self, extractor: &str) -> Result<Outbox> {
        let dir = self.meta().join("batches").join(extractor);
        let mut outbox = Outbox {
            dir,
            name: extractor.to_owned(),
            waiting: Vec::new(),
            open: Vec::new(),
            keys: HashSet::new(),
            cut: false,
        };
        if !outbox.dir.is_dir() {
            return Ok(outbox);
        }
        for entry in fs::read_dir(&outbox.dir)? {
            let name = entry?.file_name();
            if name.to_str().and_then(|name| name.strip_suffix(".json")).is_some_and(|n| n.parse::<u64>().is_ok()) {
                let name = format!("batches/{extractor}/{}", name.to_string_lossy());
                outbox.open.extend(self.meta_file::<Batch>(&name)?);
            }
        }
        outbox.open.sort_by_key(|batch| batch.number);
        outbox.keys = outbox.open.iter().flat_map(|batch| batch.requests.iter().map(|request| request.key)).collect();
        let lines = read_if_there(&outbox.dir.join(WAITING))?.unwrap_or_default();
        outbox.cut = !lines.is_empty() && !lines.ends_with(b"\n");
        for line in lines.split(|byte| *byte == b'\n') {
            // What a kill cut off, be it within a character, is asked for again; what is in a batch waits no longer.
            let Ok(request) = serde_json::from_slice::<BatchRequest>(line) else { continue };
            if outbox.keys.insert(request.key) {
                outbox.waiting.push(request);
            }
        }
        Ok(outbox)
    }
}

impl Outbox {
    /// Whether an answer is on its way, or will be.
    pub(crate) fn has(&self, key: Digest) -> bool {
        self.keys.contains(&key)
    }

    pub(crate) fn open(&self) -> &[Batch] {
        &self.open
    }

    /// Lets requests wait for the end of the run. They survive a crash.
    pub(crate) fn wait(&mut self, requests: Vec<BatchRequest>) -> Result<()> {
        let fresh: Vec<BatchRequest> = requests.into_iter().filter(|request| self.keys.insert(request.key)).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        fs::create_dir_all(&self.dir)?;
        let mut lines = String::from(if std::mem::take(&mut self.cut) { "\n" } else { "" });
        for request in &fresh {
            lines.push_str(&json(request));
            lines.push('\n');
        }
        let mut file = fs::OpenOptions::new().create(true).append(true).open(self.dir.join(WAITING))?;
        file.write_all(lines.as_bytes())?;
        file.sync_data()?;
        sync_dir(&self.dir)?;
        self.waiting.extend(fresh);
        Ok(())
    }

    /// Makes batches of what waits. `line`: a request as a line of a batch file.
    pub(crate) fn seal(&mut self, store: &Store, line: impl Fn(&BatchRequest) -> String) -> Result<()> {
        let mut waiting = std::mem::take(&mut self.waiting).into_iter().peekable();
        while waiting.peek().is_some() {
            let number = self.open.last().map_or(1, |last| last.number + 1);
            let (mut requests, mut lines) = (Vec::new(), String::new());
            while let Some(request) = waiting.next_if(|_| requests.len() < MOST_REQUESTS && lines.len() < MOST_BYTES) {
                lines.push_str(&line(&request));
                lines.push('\n');
                requests.push(request);
            }
            let mut file = fs::File::create(self.lines_file(number))?;
            file.write_all(lines.as_bytes())?;
            file.sync_all()?;
            self.open.push(Batch { number, state: BatchState::Sealed, requests });
            self.save(store, number)?;
        }
        self.forget_waiting()
    }

    fn forget_waiting(&mut self) -> Result<()> {
        let file = self.dir.join(WAITING);
        if file.exists() {
            fs::remove_file(file)?;
            sync_dir(&self.dir)?;
        }
        Ok(())
    }

    /// Forgets what no server knows of: it is asked for in another way.
    pub(crate) fn drop_unsent(&mut self) -> Result<()> {
        let unsent: Vec<u64> =
            self.open.iter().filter(|batch| batch.state == BatchState::Sealed).map(|batch| batch.number).collect();
        for number in unsent {
            self.close(number)?;
        }
        for request in std::mem::take(&mut self.waiting) {
            self.keys.remove(&request.key);
        }
        self.forget_waiting()
    }

    /// The file of a batch, as it is submitted.
    pub(crate) fn lines(&self, number: u64) -> Result<Vec<u8>> {
        Ok(fs::read(self.lines_file(number))?)
    }

    fn lines_file(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{number}.jsonl"))
    }

    /// Writes down how far a batch is.
    pub(crate) fn advance(&mut self, store: &Store, number: u64, state: BatchState) -> Result<()> {
        if let Some(batch) = self.open.iter_mut().find(|batch| batch.number == number) {
            batch.state = state;
        }
        self.save(store, number)
    }

    fn save(&self, store: &Store, number: u64) -> Result<()> {
        let Some(batch) = self.open.iter().find(|batch| batch.number == number) else { return Ok(()) };
        store.write_meta_file(&format!("batches/{}/{number}.json", self.name), batch)?;
        sync_dir(&self.dir)
    }

    /// All answers of a batch are kept, or will not come.
    pub(crate) fn close(&mut self, number: u64) -> Result<()> {
        let Some(at) = self.open.iter().position(|batch| batch.number == number) else { return Ok(()) };
        // What says that there is a batch goes first.
        for file in [self.dir.join(format!("{number}.json")), self.lines_file(number)] {
            if file.exists() {
                fs::remove_file(file)?;
            }
        }
        sync_dir(&self.dir)?;
        for request in self.open.remove(at).requests {
            self.keys.remove(&request.key);
        }
        Ok(())
    }
}

impl Batch {
    /// Its requests by key.
    pub(crate) fn by_key(&self) -> HashMap<Digest, &BatchRequest> {
        self.requests.iter().map(|request| (request.key, request)).collect()
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("requests are plain data")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: &str) -> BatchRequest {
        BatchRequest { key: Digest::of(name.as_bytes()), url: "http://a/".into(), text: name.into(), body: "{}".into() }
    }

    fn names(outbox: &Outbox) -> Vec<String> {
        let open = outbox.open.iter().flat_map(|batch| &batch.requests);
        open.chain(&outbox.waiting).map(|request| request.text.clone()).collect()
    }

    #[test]
    fn a_request_is_there_once_whatever_a_kill_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path()).unwrap();
        let mut outbox = store.outbox("e").unwrap();
        outbox.wait(vec![request("a"), request("é"), request("a")]).unwrap();
        let file = dir.path().join("_meta/batches/e/waiting.jsonl");
        let before = fs::read(&file).unwrap();
        // Cut anywhere in its last line, the first is there, and more can be added.
        let first = memchr::memchr(b'\n', &before).unwrap() + 1;
        for end in first..before.len() - 1 {
            fs::write(&file, &before[..end]).unwrap();
            let mut outbox = store.outbox("e").unwrap();
            assert_eq!(names(&outbox), ["a"]);
            outbox.wait(vec![request("é")]).unwrap();
            assert_eq!(names(&store.outbox("e").unwrap()), ["a", "é"]);
        }
        let mut outbox = store.outbox("e").unwrap();
        outbox.seal(&store, |request| request.text.clone()).unwrap();
        assert_eq!(outbox.lines(1).unwrap(), "a\né\n".as_bytes());
        // Killed before the file of those that wait is gone: they are in the batch and nowhere else.
        fs::write(&file, &before).unwrap();
        let mut outbox = store.outbox("e").unwrap();
        assert_eq!((names(&outbox), outbox.open().len()), (vec!["a".to_owned(), "é".to_owned()], 1));
        outbox.seal(&store, |request| request.text.clone()).unwrap();
        assert_eq!(outbox.open().len(), 1);
        outbox.advance(&store, 1, BatchState::Submitted { batch: "x".into() }).unwrap();
        outbox.drop_unsent().unwrap();
        let mut outbox = store.outbox("e").unwrap();
        assert_eq!(outbox.open()[0].state, BatchState::Submitted { batch: "x".into() });
        assert!(outbox.has(request("a").key));
        outbox.close(1).unwrap();
        assert!(!outbox.has(request("a").key) && names(&store.outbox("e").unwrap()).is_empty());
    }
}
