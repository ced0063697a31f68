//! Captures on their way from archive order to URL order, on disk: one file per shard, so that memory does not grow
//! with the snapshot.

use std::borrow::Cow;
use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::{Context as _, Result};

use crate::captures::{CaptureNote, SpilledAt, SpilledCapture};
use crate::model::{Content, Link};
use crate::store::scratch::{self, ScratchFile};

/// Files that many threads write to. What is still buffered is written when it is dropped.
pub(super) struct Spill {
    files: Vec<Mutex<ShardFile>>,
}

struct ShardFile {
    writer: BufWriter<ScratchFile>,
    path: PathBuf,
    len: u64,
}

/// The files, complete.
pub(super) struct Spilled {
    /// Opened when they are first read from: of very many, a worker reads few.
    files: Vec<(OnceLock<ScratchFile>, PathBuf)>,
}

/// Lengths of note, of what stands beside the text, and of the text, before each entry. The text comes last, so that it
/// is written from where it lies and read into what it becomes: a very large one is never held twice.
const HEADER: usize = 20;
/// Bytes that a buffer keeps from entry to entry.
const LARGE: usize = 1 << 20;
/// Bytes of an entry that are read at once: few are longer, and each further read is a call of the system.
const AT_ONCE: usize = 16 << 10;

/// A content without its text.
type Beside = (Option<String>, Vec<Link>, Option<String>);

fn path_of(dir: &Path, shard: u32) -> PathBuf {
    dir.join(format!("captures-{shard}.spill"))
}

impl Spill {
    pub(super) fn create(dir: &Path, shards: u32) -> Result<Self> {
        let create = |shard| -> Result<_> {
            let path = path_of(dir, shard);
            let writer = BufWriter::with_capacity(1 << 18, scratch::create(&path)?);
            Ok(Mutex::new(ShardFile { writer, path, len: 0 }))
        };
        Ok(Self { files: (0..shards).map(create).collect::<Result<_>>()? })
    }

    /// Adds a capture. `buffer` is reused between calls.
    pub(super) fn push(
        &self,
        shard: u32,
        note: &CaptureNote,
        content: Option<&Content>,
        buffer: &mut Vec<u8>,
    ) -> Result<SpilledAt> {
        buffer.clear();
        buffer.resize(HEADER, 0);
        postcard::to_io(note, &mut *buffer).context("a note cannot be spilled")?;
        let note = buffer.len() - HEADER;
        let mut text = "";
        if let Some(content) = content {
            let beside = (&content.title, &content.links, &content.elements);
            postcard::to_io(&beside, &mut *buffer).context("a content cannot be spilled")?;
            text = &content.text;
        }
        let lengths = Lengths { note, beside: buffer.len() - HEADER - note, text: text.len() };
        buffer[..HEADER].copy_from_slice(&lengths.to_bytes().context("a note of more than 4 GiB")?);
        let mut file = self.files[shard as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let at = SpilledAt { shard, offset: file.len };
        let mut write = |bytes: &[u8]| file.writer.write_all(bytes);
        write(buffer)
            .and_then(|()| write(text.as_bytes()))
            .with_context(|| format!("cannot write {}", file.path.display()))?;
        file.len += (buffer.len() + text.len()) as u64;
        // The buffer of a page with very many links is not kept.
        buffer.clear();
        buffer.shrink_to(LARGE);
        Ok(at)
    }

    pub(super) fn finish(self) -> Result<Spilled> {
        let finish = |file: Mutex<ShardFile>| -> Result<_> {
            let ShardFile { writer, path, .. } = file.into_inner().unwrap_or_else(PoisonError::into_inner);
            let file = writer.into_inner().map_err(io::IntoInnerError::into_error);
            Ok((OnceLock::from(file.with_context(|| format!("cannot write {}", path.display()))?), path))
        };
        Ok(Spilled { files: self.files.into_iter().map(finish).collect::<Result<_>>()? })
    }
}

impl Spilled {
    /// What others spilled to a folder; a shard without captures may have no file.
    pub(super) fn kept(dir: &Path, shards: u32) -> Self {
        Self { files: (0..shards).map(|shard| (OnceLock::new(), path_of(dir, shard))).collect() }
    }

    /// The folder of the files.
    pub(super) fn dir(&self) -> &Path {
        self.files.first().and_then(|(_, path)| path.parent()).unwrap_or_else(|| Path::new(""))
    }

    /// Calls `visit` with each capture of a shard, and with its whole entry.
    pub(super) fn entries(&self, shard: u32, mut visit: impl FnMut(&CaptureNote, &[u8]) -> Result<()>) -> Result<()> {
        let (_, path) = &self.files[shard as usize];
        let mut reader = BufReader::with_capacity(1 << 18, scratch::open(path)?);
        let mut entry = vec![0; HEADER];
        loop {
            match reader.read_exact(&mut entry) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                other => other.with_context(|| format!("cannot read {}", path.display()))?,
            }
            let mut header = [0; HEADER];
            header.copy_from_slice(&entry);
            let lengths = Lengths::of(header);
            entry.resize(HEADER + lengths.note + lengths.beside + lengths.text, 0);
            reader.read_exact(&mut entry[HEADER..])?;
            let note = postcard::from_bytes(&entry[HEADER..HEADER + lengths.note]);
            visit(&note.context("a spilled note is damaged")?, &entry)?;
            entry.truncate(HEADER);
            entry.shrink_to(LARGE);
        }
    }

    /// The captures of a shard, in the order written.
    pub(super) fn captures(&self, shard: u32) -> Result<Vec<SpilledCapture>> {
        let (_, path) = &self.files[shard as usize];
        let Some(file) = scratch::open_if_there(path)? else { return Ok(Vec::new()) };
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut captures = Vec::new();
        let mut offset = 0;
        let mut buffer = Vec::new();
        loop {
            let mut header = [0; HEADER];
            match reader.read_exact(&mut header) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(captures),
                other => other.with_context(|| format!("cannot read {}", path.display()))?,
            }
            let lengths = Lengths::of(header);
            buffer.resize(lengths.note, 0);
            reader.read_exact(&mut buffer)?;
            let note = postcard::from_bytes(&buffer).context("a spilled note is damaged")?;
            captures.push(SpilledCapture { note, at: SpilledAt { shard, offset } });
            let content = lengths.beside + lengths.text;
            reader.seek_relative(i64::try_from(content)?)?;
            offset += (HEADER + lengths.note + content) as u64;
        }
    }

    /// The note of one capture.
    pub(super) fn note(&self, at: SpilledAt) -> Result<CaptureNote> {
        self.read_at(at, |entry| Ok(postcard::from_bytes(&entry.part(HEADER, entry.lengths.note)?)?))
    }

    /// The content of one capture that was spilled with it.
    pub(super) fn content(&self, at: SpilledAt) -> Result<Content> {
        self.read_at(at, |entry| {
            let Lengths { note, beside, text } = entry.lengths;
            anyhow::ensure!(beside > 0, "no content was spilled there");
            let (title, links, elements): Beside = postcard::from_bytes(&entry.part(HEADER + note, beside)?)?;
            let text = entry.part(HEADER + note + beside, text)?.into_owned();
            Ok(Content { title, text: String::from_utf8(text)?, links, elements, ..Content::default() })
        })
    }

    /// Calls `read` with an entry.
    fn read_at<T>(&self, at: SpilledAt, read: impl FnOnce(Entry<'_>) -> Result<T>) -> Result<T> {
        let (file, path) = &self.files[at.shard as usize];
        let entry = || -> Result<T> {
            let file = match file.get() {
                Some(file) => file,
                None => file.get_or_init({
                    let opened = scratch::open(path)?;
                    || opened
                }),
            };
            let mut start = [0; AT_ONCE];
            let mut len = 0;
            while len < HEADER {
                match file.read_at(&mut start[len..], at.offset + len as u64)? {
                    0 => anyhow::bail!("the file ends there"),
                    more => len += more,
                }
            }
            let mut header = [0; HEADER];
            header.copy_from_slice(&start[..HEADER]);
            read(Entry { file, offset: at.offset, start: &start[..len], lengths: Lengths::of(header) })
        };
        entry().with_context(|| format!("cannot read {} at {}", path.display(), at.offset))
    }
}

/// An entry of a file, of which the start is in memory.
struct Entry<'a> {
    file: &'a ScratchFile,
    offset: u64,
    start: &'a [u8],
    lengths: Lengths,
}

impl Entry<'_> {
    /// `len` bytes of it from `from` on; what is not in memory is read into its place.
    fn part(&self, from: usize, len: usize) -> Result<Cow<'_, [u8]>> {
        if let Some(part) = from.checked_add(len).and_then(|end| self.start.get(from..end)) {
            return Ok(Cow::Borrowed(part));
        }
        let at_hand = self.start.get(from..).unwrap_or_default();
        let mut part = vec![0; len];
        part[..at_hand.len()].copy_from_slice(at_hand);
        self.file.read_exact_at(&mut part[at_hand.len()..], self.offset + (from + at_hand.len()) as u64)?;
        Ok(Cow::Owned(part))
    }
}

/// Of the parts of an entry, in bytes.
#[derive(Clone, Copy)]
struct Lengths {
    note: usize,
    /// Title, links and elements.
    beside: usize,
    text: usize,
}

impl Lengths {
    /// `None` if a length is beyond all bounds.
    fn to_bytes(self) -> Option<[u8; HEADER]> {
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&u32::try_from(self.note).ok()?.to_le_bytes());
        header[4..12].copy_from_slice(&(self.beside as u64).to_le_bytes());
        header[12..].copy_from_slice(&(self.text as u64).to_le_bytes());
        Some(header)
    }

    fn of(header: [u8; HEADER]) -> Self {
        let number = |bytes: &[u8]| {
            let mut all = [0; 8];
            all[..bytes.len()].copy_from_slice(bytes);
            usize::try_from(u64::from_le_bytes(all)).unwrap_or(usize::MAX)
        };
        Self { note: number(&header[..4]), beside: number(&header[4..12]), text: number(&header[12..]) }
    }
}
