//! A run: entries by kind and key in one immutable file.
//!
//! ```text
//! blocks        each of one kind; compressed, if that makes it smaller
//! block index   a record for each block, then their separators: its kind and the least that tells its keys from those
//!               of the block before
//! footer        magic, version, blocks, place and checksum of the block index, length of the file
//! ```
//! The catalogue holds the footer's checksum, the footer that of the block index, the block index that of each block: no
//! part can change, or be taken from another file, without being noticed when it is read.

use std::cell::RefCell;
use std::sync::OnceLock;

use fs_err as fs;
use fs_err::os::unix::fs::FileExt as _;
use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::{Compressor, Decompressor};

use super::block::{BlockBuilder, Entries, Malformed, common_prefix};
use super::bytes::take;
use super::catalogue::{Amount, RunEntry};
use super::folder::{self, Folder, RunFile};
use super::{KINDS, Kind, Pace, Packing, VERSION};
use crate::model::Digest;
use crate::store::{Result, StoreError};

const MAGIC: &[u8; 8] = b"ratoonRN";
/// Less than the usual effort: what is packed here lies on disk for a night or two.
const LEVEL: i32 = -3;
/// Bytes of a record: offset, length, length before compression, end of the separator, checksum.
const RECORD: usize = 8 + 4 + 4 + 4 + 8;

pub(super) struct Run {
    pub entry: RunEntry,
    file: fs::File,
    footer: Footer,
    packing: Packing,
    /// Read when first needed.
    index: OnceLock<BlockIndex>,
}

struct Footer {
    blocks: usize,
    index_at: u64,
    index_len: usize,
    index_digest: Digest,
}

impl Footer {
    const LEN: usize = 8 + 4 + 8 + 8 + 8 + 16 + 8;

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(self.blocks as u64).to_le_bytes());
        bytes.extend_from_slice(&self.index_at.to_le_bytes());
        bytes.extend_from_slice(&(self.index_len as u64).to_le_bytes());
        bytes.extend_from_slice(&self.index_digest.0);
        let length = self.index_at + (self.index_len + Self::LEN) as u64;
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes
    }

    /// `None` if these are not the last bytes of a run of that length.
    fn from_bytes(mut bytes: &[u8], length: u64) -> Option<Self> {
        let from = &mut bytes;
        if take(from)? != *MAGIC || u32::from_le_bytes(take(from)?) != VERSION {
            return None;
        }
        let blocks = usize::try_from(u64::from_le_bytes(take(from)?)).ok()?;
        let index_at = u64::from_le_bytes(take(from)?);
        let index_len = usize::try_from(u64::from_le_bytes(take(from)?)).ok()?;
        let index_digest = Digest(take(from)?);
        let stated = u64::from_le_bytes(take(from)?);
        let end = index_at.checked_add(index_len as u64)?.checked_add(Self::LEN as u64)?;
        let fits = end == length && stated == length && blocks.checked_mul(RECORD)? <= index_len;
        fits.then_some(Self { blocks, index_at, index_len, index_digest })
    }
}

impl Run {
    /// Opens a run that the catalogue names, and compares its frame with what is said of it there.
    pub(super) fn open(folder: &Folder, entry: RunEntry) -> Result<Self> {
        let path = folder.run(entry.number);
        let file = fs::File::open(&path)?;
        let damaged = |problem: &str| StoreError::Damaged { path: path.clone(), problem: problem.into() };
        if file.metadata()?.len() != entry.length {
            return Err(damaged("the run has another length than the catalogue says"));
        }
        let at = entry.length.checked_sub(Footer::LEN as u64).ok_or_else(|| damaged("the run is cut"))?;
        let mut footer = [0; Footer::LEN];
        file.read_exact_at(&mut footer, at)?;
        if Digest::of(&footer) != entry.footer {
            return Err(damaged("the footer of the run is damaged"));
        }
        let footer = Footer::from_bytes(&footer, entry.length).ok_or_else(|| damaged("no footer of a run"))?;
        Ok(Self { entry, file, footer, packing: Packing::Zstd, index: OnceLock::new() })
    }

    /// Of its entries.
    pub(super) fn pace(&self) -> Pace {
        let held = Kind::ALL.into_iter().find(|&kind| self.entry.amounts[kind as usize].entries > 0);
        Pace::of(held.unwrap_or(Kind::ALL[0]))
    }

    pub(super) fn is_packed(&self) -> bool {
        self.packing == Packing::Zstd
    }

    /// Whether it holds entries of a kind that count.
    pub(super) fn holds(&self, kind: Kind, since: &[u64; KINDS]) -> bool {
        self.entry.number >= since[kind as usize] && self.entry.amounts[kind as usize].entries > 0
    }

    pub(super) fn sync(&self) -> Result<()> {
        folder::sync(&self.file)
    }

    fn damaged(&self, problem: &str) -> StoreError {
        StoreError::Damaged { path: self.file.path().to_owned(), problem: problem.into() }
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(into, at).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => self.damaged("the run was cut"),
            _ => error.into(),
        })
    }

    fn index(&self) -> Result<&BlockIndex> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        // No more than the file, whose length was compared.
        let mut bytes = vec![0; self.footer.index_len];
        self.read(self.footer.index_at, &mut bytes)?;
        if Digest::of(&bytes) != self.footer.index_digest {
            return Err(self.damaged("the block index is damaged"));
        }
        let index = BlockIndex { bytes, blocks: self.footer.blocks };
        if !index.is_sound(self.footer.index_at) {
            return Err(self.damaged("the block index contradicts itself"));
        }
        Ok(self.index.get_or_init(|| index))
    }

    fn read_block(&self, index: &BlockIndex, block: usize, unpacker: &mut Unpacker, into: &mut Entries) -> Result<()> {
        let record = index.record(block);
        let read = |bytes: &mut Vec<u8>| {
            bytes.resize(record.stored, 0);
            self.read(record.offset, bytes)?;
            if checksum(bytes) == record.checksum { Ok(()) } else { Err(self.damaged("a block is damaged")) }
        };
        into.load(|bytes| {
            if record.stored == record.raw {
                return read(bytes);
            }
            read(&mut unpacker.packed)?;
            bytes.reserve(record.raw);
            if unpacker.unpack(bytes)? == Some(record.raw) {
                Ok(())
            } else {
                Err(self.damaged("a block cannot be unpacked"))
            }
        })
    }

    /// Looks for the keys at the places `left`, which are in order of keys. Places of keys that are there leave the list;
    /// their values go to `found`.
    pub(super) fn find<K: AsRef<[u8]>>(
        &self,
        kind: Kind,
        keys: &[K],
        left: &mut Vec<usize>,
        found: &mut [Option<Vec<u8>>],
        unpacker: &mut Unpacker,
    ) -> Result<()> {
        let index = self.index()?;
        let mut entries = Entries::default();
        let mut loaded = None;
        let mut ended = false;
        let mut wanted = vec![kind as u8];
        let mut missing = Vec::with_capacity(left.len());
        for &place in &*left {
            let key = keys[place].as_ref();
            wanted.truncate(1);
            wanted.extend_from_slice(key);
            let block = match loaded {
                Some(block) if index.ends_after(block, &wanted) => block,
                _ => match index.block_of(&wanted) {
                    Some(block) => block,
                    None => {
                        missing.push(place);
                        continue;
                    }
                },
            };
            if loaded != Some(block) {
                self.read_block(index, block, unpacker, &mut entries)?;
                loaded = Some(block);
                ended = !self.advance(&mut entries)?;
            }
            while !ended && entries.key() < key {
                ended = !self.advance(&mut entries)?;
            }
            if !ended && entries.key() == key {
                found[place] = entries.value().map(<[u8]>::to_vec);
            } else {
                missing.push(place);
            }
        }
        *left = missing;
        Ok(())
    }

    fn advance(&self, entries: &mut Entries) -> Result<bool> {
        entries.advance().map_err(|Malformed| self.damaged("a block is no list of entries"))
    }
}

/// Walks through the entries of a run whose keys start with a prefix, one block in memory.
pub(super) struct RunScan<'a> {
    run: &'a Run,
    index: &'a BlockIndex,
    /// Kind and prefix.
    wanted: Vec<u8>,
    next_block: usize,
    entries: Entries,
}

impl<'a> RunScan<'a> {
    pub(super) fn new(run: &'a Run, kind: Kind, prefix: &[u8]) -> Result<Self> {
        let index = run.index()?;
        let mut wanted = vec![kind as u8];
        wanted.extend_from_slice(prefix);
        let next_block = index.block_of(&wanted).unwrap_or(index.blocks);
        Ok(Self { run, index, wanted, next_block, entries: Entries::default() })
    }

    /// Goes to the next entry; false at the end.
    pub(super) fn advance(&mut self, unpacker: &mut Unpacker) -> Result<bool> {
        loop {
            while self.run.advance(&mut self.entries)? {
                let (key, prefix) = (self.entries.key(), &self.wanted[1..]);
                if key.starts_with(prefix) {
                    return Ok(true);
                }
                if key > prefix {
                    return Ok(false);
                }
            }
            if self.next_block == self.index.blocks || self.index.is_beyond(self.next_block, &self.wanted) {
                return Ok(false);
            }
            self.run.read_block(self.index, self.next_block, unpacker, &mut self.entries)?;
            self.next_block += 1;
        }
    }

    pub(super) fn key(&self) -> &[u8] {
        self.entries.key()
    }

    pub(super) fn value(&self) -> Option<&[u8]> {
        self.entries.value()
    }
}

/// What unpacking blocks needs, used for many. It takes long to make, and is made when the first block is read: most keys
/// that are looked for in a small index are in memory, or nowhere. Who is done with one leaves it to the next of its thread.
#[derive(Default)]
pub(super) struct Unpacker {
    zstd: Option<Decompressor<'static>>,
    packed: Vec<u8>,
}

thread_local! {
    static SPARE: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

impl Unpacker {
    /// Unpacks what was read, behind what `bytes` holds; gives its length, or `None` if it cannot be unpacked.
    fn unpack(&mut self, bytes: &mut Vec<u8>) -> Result<Option<usize>> {
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            none => none.insert(match SPARE.take() {
                Some(spare) => spare,
                None => Decompressor::new()?,
            }),
        };
        Ok(zstd.decompress_to_buffer(&self.packed[..], bytes).ok())
    }
}

impl Drop for Unpacker {
    fn drop(&mut self) {
        if let Some(zstd) = self.zstd.take() {
            // At the end of a thread there is nobody to leave it to.
            let _ = SPARE.try_with(|spare| spare.replace(Some(zstd)));
        }
    }
}

/// The block index, in memory as on disk.
struct BlockIndex {
    bytes: Vec<u8>,
    blocks: usize,
}

struct Record {
    offset: u64,
    stored: usize,
    /// Before compression; as much as is stored where there was none.
    raw: usize,
    key_end: usize,
    checksum: [u8; 8],
}

impl BlockIndex {
    fn record(&self, block: usize) -> Record {
        let mut bytes = &self.bytes[block * RECORD..][..RECORD];
        let u32 = |from: &mut &[u8]| u32::from_le_bytes(take(from).expect("a record is whole")) as usize;
        let from = &mut bytes;
        let offset = u64::from_le_bytes(take(from).expect("a record is whole"));
        let (stored, raw, key_end) = (u32(from), u32(from), u32(from));
        Record { offset, stored, raw, key_end, checksum: take(from).expect("a record is whole") }
    }

    /// Kind, and what the keys of the block are not below.
    fn separator(&self, block: usize) -> &[u8] {
        let start = if block == 0 { 0 } else { self.record(block - 1).key_end };
        &self.bytes[self.blocks * RECORD..][start..self.record(block).key_end]
    }

    /// The only block that can hold a key, given with its kind. The first separator of a kind is the kind alone, so that
    /// there is one if the run holds the kind at all.
    fn block_of(&self, wanted: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.blocks);
        while low < high {
            let middle = low.midpoint(high);
            if self.separator(middle) <= wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1).filter(|&block| self.separator(block)[0] == wanted[0])
    }

    /// Whether a key that is not below the block's is not beyond it either.
    fn ends_after(&self, block: usize, wanted: &[u8]) -> bool {
        block + 1 == self.blocks || wanted < self.separator(block + 1)
    }

    /// Whether all keys of a block are greater than those that start with `prefix`.
    fn is_beyond(&self, block: usize, prefix: &[u8]) -> bool {
        let separator = self.separator(block);
        separator > prefix && !separator.starts_with(prefix)
    }

    /// Whether blocks and separators lie one after the other and fill their space, and separators rise.
    fn is_sound(&self, blocks_end: u64) -> bool {
        let (mut offset, mut key_at) = (0, 0);
        let keys = &self.bytes[self.blocks * RECORD..];
        let mut last: &[u8] = &[];
        for block in 0..self.blocks {
            let record = self.record(block);
            let Some(key) = keys.get(key_at..record.key_end).filter(|key| *key > last) else { return false };
            if record.offset != offset {
                return false;
            }
            offset += record.stored as u64;
            key_at = record.key_end;
            last = key;
        }
        offset == blocks_end && key_at == keys.len()
    }
}

/// Writes a run. Entries come by kind and key.
pub(super) struct RunWriter {
    number: u64,
    block_bytes: usize,
    file: RunFile,
    kind: Kind,
    block: BlockBuilder,
    separator: Vec<u8>,
    records: Vec<u8>,
    separators: Vec<u8>,
    amounts: [Amount; KINDS],
    packing: Packing,
    zstd: Option<Compressor<'static>>,
}

impl RunWriter {
    pub(super) fn new(folder: &Folder, number: u64, block_bytes: usize, packing: Packing) -> Result<Self> {
        let zstd = match packing {
            Packing::Zstd => Some(Compressor::new(LEVEL)?),
            Packing::None => None,
        };
        Ok(Self {
            number,
            block_bytes,
            file: folder.create_run(number)?,
            kind: Kind::ALL[0],
            block: BlockBuilder::default(),
            separator: Vec::new(),
            records: Vec::new(),
            separators: Vec::new(),
            amounts: Default::default(),
            packing,
            zstd,
        })
    }

    pub(super) fn add(&mut self, kind: Kind, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        if kind != self.kind || self.block.bytes().len() >= self.block_bytes {
            self.end_block()?;
        }
        if self.block.bytes().is_empty() {
            self.separator.clear();
            self.separator.push(kind as u8);
            if kind == self.kind && !self.records.is_empty() {
                let shared = common_prefix(self.block.last_key(), key);
                self.separator.extend_from_slice(&key[..key.len().min(shared + 1)]);
            }
            self.kind = kind;
        }
        self.block.add(key, value);
        self.amounts[kind as usize].add(key, value);
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        if self.block.bytes().is_empty() {
            return Ok(());
        }
        let raw = self.block.bytes();
        let packed = self.zstd.as_mut().map(|zstd| zstd.compress(raw)).transpose()?;
        let stored = packed.as_deref().filter(|packed| packed.len() < raw.len()).unwrap_or(raw);
        self.separators.extend_from_slice(&self.separator);
        self.records.extend_from_slice(&self.file.length().to_le_bytes());
        for length in [stored.len(), raw.len(), self.separators.len()] {
            let length = u32::try_from(length).map_err(|_| std::io::Error::other("the index has grown too large"))?;
            self.records.extend_from_slice(&length.to_le_bytes());
        }
        self.records.extend_from_slice(&checksum(stored));
        self.file.append(stored)?;
        self.block.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Run> {
        self.end_block()?;
        let blocks = self.records.len() / RECORD;
        let mut index = self.records;
        index.append(&mut self.separators);
        let footer =
            Footer { blocks, index_at: self.file.length(), index_len: index.len(), index_digest: Digest::of(&index) };
        let footer_bytes = footer.to_bytes();
        self.file.append(&index)?;
        self.file.append(&footer_bytes)?;
        let length = self.file.length();
        let entry = RunEntry { number: self.number, length, footer: Digest::of(&footer_bytes), amounts: self.amounts };
        let index = OnceLock::from(BlockIndex { bytes: index, blocks });
        Ok(Run { entry, file: self.file.finish()?, footer, packing: self.packing, index })
    }
}

fn checksum(bytes: &[u8]) -> [u8; 8] {
    xxh3_64(bytes).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_block_index_or_none(lengths in prop::collection::vec(0..4u32, 0..4), keys: Vec<u8>) {
            let mut bytes = Vec::new();
            let (mut offset, mut key_end) = (0, 0);
            for length in &lengths {
                bytes.extend_from_slice(&u64::from(offset).to_le_bytes());
                key_end += length;
                for number in [*length, 9, key_end] {
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
                bytes.extend_from_slice(&[0; 8]);
                offset += length;
            }
            bytes.extend_from_slice(&keys);
            let index = BlockIndex { bytes, blocks: lengths.len() };
            if index.is_sound(u64::from(offset)) {
                prop_assert!((0..index.blocks).all(|block| index.block_of(index.separator(block)) == Some(block)));
            }
        }

        #[test]
        fn any_bytes_are_a_footer_or_none(bytes in prop::collection::vec(any::<u8>(), 0..80), length: u64) {
            prop_assert!(Footer::from_bytes(&bytes, length).is_none());
        }
    }
}
