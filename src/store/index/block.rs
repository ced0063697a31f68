//! A block: entries by key, each holding of its key only what tells it from the one before.
//!
//! ```text
//! entry   shared with the key before, rest of the key, value + 1 (0: deleted): lengths as varints; rest; value
//! ```

use std::ops::Range;

use super::bytes::{put_varint, take_varint};

/// Builds a block.
#[derive(Default)]
pub(super) struct BlockBuilder {
    bytes: Vec<u8>,
    last: Vec<u8>,
}

impl BlockBuilder {
    /// Keys come in order; no value: deleted.
    pub(super) fn add(&mut self, key: &[u8], value: Option<&[u8]>) {
        let shared = if self.bytes.is_empty() { 0 } else { common_prefix(&self.last, key) };
        put_varint(&mut self.bytes, shared);
        put_varint(&mut self.bytes, key.len() - shared);
        put_varint(&mut self.bytes, value.map_or(0, |value| value.len() + 1));
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.last.truncate(shared);
        self.last.extend_from_slice(&key[shared..]);
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The last key added, also of the block before as long as this one is empty.
    pub(super) fn last_key(&self) -> &[u8] {
        &self.last
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }
}

pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Walks through a block. Begins before its first entry.
#[derive(Default)]
pub(super) struct Entries {
    bytes: Vec<u8>,
    at: usize,
    key: Vec<u8>,
    value: Option<Range<usize>>,
}

/// The bytes are not those of a block.
#[derive(Debug)]
pub(super) struct Malformed;

impl Entries {
    /// Begins another block, whose bytes `fill` writes.
    pub(super) fn load<E>(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        self.bytes.clear();
        self.key.clear();
        self.value = None;
        self.at = 0;
        fill(&mut self.bytes)
    }

    /// Goes to the next entry; false at the end.
    pub(super) fn advance(&mut self) -> Result<bool, Malformed> {
        if self.at == self.bytes.len() {
            return Ok(false);
        }
        let mut rest = &self.bytes[self.at..];
        let mut length = || take_varint(&mut rest).ok_or(Malformed);
        let (shared, own, value) = (length()?, length()?, length()?);
        let value_len = value.saturating_sub(1);
        if shared > self.key.len() || own > rest.len() || value_len > rest.len() - own {
            return Err(Malformed);
        }
        let own_at = self.bytes.len() - rest.len();
        self.key.truncate(shared);
        self.key.extend_from_slice(&rest[..own]);
        self.at = own_at + own + value_len;
        self.value = (value > 0).then_some(own_at + own..self.at);
        Ok(true)
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// No value: deleted.
    pub(super) fn value(&self) -> Option<&[u8]> {
        self.value.clone().map(|range| &self.bytes[range])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn all(entries: &mut Entries) -> Result<BTreeMap<Vec<u8>, Option<Vec<u8>>>, Malformed> {
        let mut all = BTreeMap::new();
        while entries.advance()? {
            all.insert(entries.key().to_vec(), entries.value().map(<[u8]>::to_vec));
        }
        Ok(all)
    }

    fn block(bytes: &[u8]) -> Entries {
        let mut entries = Entries::default();
        let Ok(()) = entries.load::<std::convert::Infallible>(|into| {
            into.extend_from_slice(bytes);
            Ok(())
        });
        entries
    }

    proptest! {
        #[test]
        fn entries_come_back(entries: BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
            let mut builder = BlockBuilder::default();
            for (key, value) in &entries {
                builder.add(key, value.as_deref());
            }
            prop_assert_eq!(all(&mut block(builder.bytes())).unwrap(), entries);
        }

        #[test]
        fn any_bytes_are_entries_or_an_error(bytes: Vec<u8>) {
            let _ = all(&mut block(&bytes));
        }
    }
}
