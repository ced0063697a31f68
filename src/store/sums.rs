//! Small files that carry a checksum: one JSON object, whose last field is the checksum of all before it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Result, Store, StoreError, read_if_there, write_bytes};
use crate::model::Digest;

pub(super) const SUM: &[u8] = b",\"sum\":\"";
/// Of a digest as text, and what closes it.
pub(super) const SUM_END: usize = 32 + 2;

/// The object with its checksum.
pub(super) fn summed(mut object: Vec<u8>) -> Vec<u8> {
    let sum = Digest::of(&object).to_string();
    object.pop();
    object.extend_from_slice(SUM);
    object.extend_from_slice(sum.as_bytes());
    object.extend_from_slice(b"\"}");
    object
}

/// Whether the file is what was written.
pub(super) fn is_as_written(bytes: &[u8]) -> bool {
    let (rest, sum) = bytes.split_at(bytes.len().saturating_sub(SUM_END));
    rest.strip_suffix(SUM).is_some_and(|object| summed([object, b"}"].concat()).ends_with(sum))
}

/// The file with a checksum that fits, whatever became of the rest: so that the fuzzer gets past it.
#[cfg(any(test, feature = "lab"))]
pub(crate) fn with_right_sum(bytes: &[u8]) -> Vec<u8> {
    match memchr::memmem::rfind(bytes, SUM) {
        Some(at) => summed([&bytes[..at], b"}"].concat()),
        None => bytes.to_vec(),
    }
}

#[derive(Serialize, Deserialize)]
struct Said<T> {
    said: T,
}

impl Store {
    /// What a person once said of the store, from a file below `_meta`; `None` if it does not exist. `again` is how to say
    /// it again, should the file be damaged.
    pub(super) fn said<T: for<'a> Deserialize<'a>>(&self, name: &str, again: &str) -> Result<Option<T>> {
        let path = self.meta().join(name);
        let Some(bytes) = read_if_there(&path)? else { return Ok(None) };
        let said = if is_as_written(&bytes) {
            serde_json::from_slice(&bytes).ok().map(|Said { said }| said)
        } else {
            without_sum(&bytes)
        };
        said.map(Some).ok_or_else(|| damaged(&path, again))
    }

    pub(super) fn say<T: Serialize>(&self, name: &str, said: &T) -> Result<()> {
        let path = self.meta().join(name);
        let json = serde_json::to_vec(&Said { said });
        write_bytes(&path, &summed(json.map_err(|source| StoreError::Json { path: path.clone(), source })?))
    }
}

/// As such files were before they had a checksum; those end with a line.
fn without_sum<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Option<T> {
    let is_old = bytes.ends_with(b"\n");
    is_old.then(|| serde_json::from_slice(bytes).ok()).flatten()
}

fn damaged(path: &Path, again: &str) -> StoreError {
    let problem = format!("damaged: it is not what was written; remove it, and {again}");
    StoreError::Damaged { path: path.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fs_err as fs;

    use super::*;

    #[test]
    fn what_was_said_comes_back_or_is_found_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path()).unwrap();
        let read = || store.said::<BTreeSet<String>>("list", "say it again");
        assert!(read().unwrap().is_none());
        let list = BTreeSet::from(["2024-01-01".to_owned(), "2024-01-02".to_owned()]);
        store.say("list", &list).unwrap();
        assert_eq!(read().unwrap(), Some(list.clone()));
        let path = store.meta().join("list");
        let bytes = fs::read(&path).unwrap();
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut harmed = bytes.clone();
                harmed[place] ^= 1 << bit;
                fs::write(&path, &harmed).unwrap();
                let error = read().unwrap_err().to_string();
                assert!(error.contains("damaged") && error.contains("say it again"), "{place}: {error}");
            }
        }
        for length in 0..bytes.len() {
            fs::write(&path, &bytes[..length]).unwrap();
            read().unwrap_err();
        }
        fs::write(&path, "[\n  \"2024-01-01\",\n  \"2024-01-02\"\n]\n").unwrap();
        assert_eq!(read().unwrap(), Some(list), "as it was written before");
    }
}
