//! Captures on their way from archive order to URL order, on disk: one file per shard, so that memory does not grow
//! with the snapshot.

use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};

use crate::captures::{CaptureNote, SpilledAt, SpilledCapture};
use crate::model::Content;
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
    files: Vec<(ScratchFile, PathBuf)>,
}

/// Lengths of note and content, before each entry.
const HEADER: usize = 12;
/// Bytes that a buffer keeps from entry to entry.
const LARGE: usize = 1 << 20;
/// Bytes that a note and the links of a page seldom exceed.
const SMALL: usize = 64 << 10;

impl Spill {
    pub(super) fn create(dir: &Path, shards: u32) -> Result<Self> {
        let create = |shard| -> Result<_> {
            let path = dir.join(format!("captures-{shard}.spill"));
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
        // Room for the text and about as much as stands beside it: a buffer that grows is copied.
        buffer.reserve(content.map_or(0, |content| content.text.len()) + SMALL);
        buffer.resize(HEADER, 0);
        postcard::to_io(note, &mut *buffer).context("a note cannot be spilled")?;
        let note_len = u32::try_from(buffer.len() - HEADER).context("a note of more than 4 GiB")?;
        if let Some(content) = content {
            postcard::to_io(content, &mut *buffer).context("a content cannot be spilled")?;
        }
        let content_len = (buffer.len() - HEADER) as u64 - u64::from(note_len);
        buffer[..4].copy_from_slice(&note_len.to_le_bytes());
        buffer[4..HEADER].copy_from_slice(&content_len.to_le_bytes());
        let mut file = self.files[shard as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let at = SpilledAt { shard, offset: file.len };
        file.writer.write_all(buffer).with_context(|| format!("cannot write {}", file.path.display()))?;
        file.len += buffer.len() as u64;
        // The buffer of a very large text is not kept.
        buffer.clear();
        buffer.shrink_to(LARGE);
        Ok(at)
    }

    pub(super) fn finish(self) -> Result<Spilled> {
        let finish = |file: Mutex<ShardFile>| -> Result<_> {
            let ShardFile { writer, path, .. } = file.into_inner().unwrap_or_else(PoisonError::into_inner);
            let file = writer.into_inner().map_err(io::IntoInnerError::into_error);
            Ok((file.with_context(|| format!("cannot write {}", path.display()))?, path))
        };
        Ok(Spilled { files: self.files.into_iter().map(finish).collect::<Result<_>>()? })
    }
}

impl Spilled {
    /// The captures of a shard, in the order written.
    pub(super) fn captures(&self, shard: u32) -> Result<Vec<SpilledCapture>> {
        let (_, path) = &self.files[shard as usize];
        let mut reader = BufReader::with_capacity(1 << 18, scratch::open(path)?);
        let mut captures = Vec::new();
        let mut offset = 0;
        let mut buffer = Vec::new();
        loop {
            let mut header = [0; HEADER];
            match reader.read_exact(&mut header) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(captures),
                other => other.with_context(|| format!("cannot read {}", path.display()))?,
            }
            let (note_len, content_len) = lengths(header);
            buffer.resize(note_len, 0);
            reader.read_exact(&mut buffer)?;
            let note = postcard::from_bytes(&buffer).context("a spilled note is damaged")?;
            captures.push(SpilledCapture { note, at: SpilledAt { shard, offset } });
            reader.seek_relative(i64::try_from(content_len)?)?;
            offset += (HEADER + note_len) as u64 + content_len;
        }
    }

    /// The note of one capture.
    pub(super) fn note(&self, at: SpilledAt) -> Result<CaptureNote> {
        self.read_at(at, |file, note_len, _| {
            let mut note = vec![0; note_len];
            file.read_exact_at(&mut note, at.offset + HEADER as u64)?;
            Ok(postcard::from_bytes(&note)?)
        })
    }

    /// The content of one capture that was spilled with it.
    pub(super) fn content(&self, at: SpilledAt) -> Result<Content> {
        self.read_at(at, |file, note_len, content_len| {
            anyhow::ensure!(content_len > 0, "no content was spilled there");
            let mut content = vec![0; usize::try_from(content_len)?];
            file.read_exact_at(&mut content, at.offset + (HEADER + note_len) as u64)?;
            Ok(postcard::from_bytes(&content)?)
        })
    }

    /// Calls `read` with the file and the lengths of note and content.
    fn read_at<T>(&self, at: SpilledAt, read: impl FnOnce(&ScratchFile, usize, u64) -> Result<T>) -> Result<T> {
        let (file, path) = &self.files[at.shard as usize];
        let entry = || -> Result<T> {
            let mut header = [0; HEADER];
            file.read_exact_at(&mut header, at.offset)?;
            let (note_len, content_len) = lengths(header);
            read(file, note_len, content_len)
        };
        entry().with_context(|| format!("cannot read {} at {}", path.display(), at.offset))
    }
}

fn lengths(header: [u8; HEADER]) -> (usize, u64) {
    let note = u32::from_le_bytes(header[..4].try_into().expect("four bytes"));
    let content = u64::from_le_bytes(header[4..].try_into().expect("eight bytes"));
    (note as usize, content)
}
