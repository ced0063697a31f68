//! The catalogue: which runs make up the index, and how far it has followed the tables.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{Cursor, KINDS, VERSION};
use crate::model::Digest;

const MAGIC: &[u8; 8] = b"ratoonIX";
const DIGEST: usize = size_of::<Digest>();

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Catalogue {
    /// Oldest first, by rising number.
    pub runs: Vec<RunEntry>,
    /// For each kind the first run whose entries count; those of older ones were cleared.
    pub since: [u64; KINDS],
    /// The number of the next run.
    pub next: u64,
    pub cursors: BTreeMap<String, Cursor>,
}

/// A run, and what tells it from any other file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RunEntry {
    pub number: u64,
    /// Of its file.
    pub length: u64,
    /// Of its footer, which holds that of its block index, which holds those of all blocks.
    pub footer: Digest,
    pub amounts: [Amount; KINDS],
}

/// How much a run holds of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Amount {
    pub entries: u64,
    /// Those of the entries that say that a key is gone.
    pub deletions: u64,
    /// Of keys and values before compression.
    pub bytes: u64,
}

impl Amount {
    pub(super) fn add(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.entries += 1;
        self.deletions += u64::from(value.is_none());
        self.bytes += (key.len() + value.map_or(0, <[u8]>::len)) as u64;
    }
}

impl Catalogue {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes = postcard::to_extend(self, bytes).expect("numbers, texts and lists can be written");
        bytes.extend_from_slice(&Digest::of(&bytes).0);
        bytes
    }

    /// What is wrong with the bytes, if they are not those of a catalogue.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (content, digest) = bytes.split_at(bytes.len().saturating_sub(DIGEST));
        if digest != Digest::of(content).0 {
            return Err("the catalogue of the index is damaged: its checksum is wrong".into());
        }
        let content = content.strip_prefix(MAGIC).ok_or("no catalogue of an index")?;
        let (version, content) = content.split_first_chunk().ok_or("the catalogue of the index is cut")?;
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(format!("index format {version}, this program reads {VERSION}"));
        }
        postcard::from_bytes(content).map_err(|error| format!("the catalogue of the index is damaged: {error}"))
    }

    /// Of the runs.
    pub(super) fn numbers(&self) -> HashSet<u64> {
        self.runs.iter().map(|run| run.number).collect()
    }
}
