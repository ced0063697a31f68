//! A file of records as a reader of captures: opened at the first `next`, whole or in part.

use crate::archive::CaptureReader;
use crate::archive::part::{Opening, SnapshotPart};
use crate::model::{Loss, Reject};

use super::format::Format;
use super::source::{Bytes, Section, Source};
use super::split::pieces;
#[cfg(any(test, feature = "lab"))]
use super::split::split;
use super::stream::{Stop, Stream};
use super::{Item, Records};

/// A file of records as a part of a snapshot.
#[derive(Clone, Debug)]
pub(crate) struct RecordsPart {
    pub(crate) source: Source,
    pub(crate) format: &'static dyn Format,
    /// Path in the snapshot, through the zip file if it lies in one.
    pub(crate) name: String,
    /// Bytes of the zip file that this part stands for besides its own.
    pub(crate) extra_bytes: u64,
}

impl RecordsPart {
    fn reader(&self) -> RecordFile {
        RecordFile::new(self.source.clone(), self.format, self.name.clone())
    }

    /// Reads the file whole and in pieces of about `size` bytes. An error if what comes out differs though no reader
    /// says that it misread.
    #[cfg(any(test, feature = "lab"))]
    pub(crate) fn pieces_equal_whole(&self, size: u64) -> Result<(), String> {
        let Ok(pieces) = split(&self.source, self.format, size) else { return Ok(()) };
        if pieces.len() < 2 {
            return Ok(());
        }
        let told = |item: Item| match item {
            Ok(capture) => format!("{capture:?}"),
            Err(reject) => format!("{reject:?}"),
        };
        let whole: Vec<String> = self.reader().map(told).collect();
        let (mut in_pieces, mut misread) = (Vec::new(), false);
        for piece in pieces {
            let mut reader = self.reader().piece(piece);
            in_pieces.extend(reader.by_ref().map(told));
            misread |= reader.misread();
        }
        if misread || whole == in_pieces {
            return Ok(());
        }
        let same = whole.iter().zip(&in_pieces).take_while(|(a, b)| a == b).count();
        let item = |items: &[String]| items.get(same).map(|item| item.chars().take(500).collect::<String>());
        Err(format!(
            "pieces of {} are not the whole: item {same} is {:?}, whole {:?}",
            self.name,
            item(&in_pieces),
            item(&whole)
        ))
    }
}

impl SnapshotPart for RecordsPart {
    fn readers(&self, opening: &Opening<'_>) -> Vec<Box<dyn CaptureReader>> {
        let mut extra = self.extra_bytes;
        let pieces = pieces(&self.source, self.format, opening.bytes, opening.threads);
        let reader = |piece| -> Box<dyn CaptureReader> {
            Box::new(self.reader().piece(piece).extra_bytes(std::mem::take(&mut extra)))
        };
        pieces.into_iter().map(reader).collect()
    }

    #[cfg(any(test, feature = "lab"))]
    fn as_records(&self) -> Option<&RecordsPart> {
        Some(self)
    }
}

/// A piece of a file. It starts and ends where members start that begin with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) from: u64,
    /// `None`: up to the end of the file.
    pub(crate) to: Option<u64>,
}

pub(crate) struct RecordFile {
    source: Source,
    format: &'static dyn Format,
    name: String,
    piece: Piece,
    /// Bytes of the file besides those it reads. They count as read at the end.
    extra_bytes: u64,
    misread: bool,
    state: State,
}

enum State {
    Closed,
    Open(Box<Records>),
    Ended { bytes_read: u64 },
}

impl RecordFile {
    pub(crate) fn new(source: Source, format: &'static dyn Format, name: String) -> Self {
        let piece = Piece { from: 0, to: None };
        Self { source, format, name, piece, extra_bytes: 0, misread: false, state: State::Closed }
    }

    pub(crate) fn piece(self, piece: Piece) -> Self {
        Self { piece, ..self }
    }

    pub(crate) fn extra_bytes(self, extra_bytes: u64) -> Self {
        Self { extra_bytes, ..self }
    }

    fn open(&self) -> std::io::Result<Stream<Box<dyn Bytes>>> {
        let mut bytes = self.source.open()?;
        if let Some(to) = self.piece.to {
            bytes = Box::new(Section::new(bytes, 0, to)?);
        }
        let mut stream = Stream::new(bytes, self.format)?;
        if self.piece != (Piece { from: 0, to: None }) {
            stream.start_at(self.piece.from, self.piece.to.is_some())?;
        }
        Ok(stream)
    }
}

impl Iterator for RecordFile {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if matches!(self.state, State::Closed) {
            match self.open() {
                Ok(stream) => {
                    self.state = State::Open(Box::new(Records::new(stream, self.format, self.name.clone())));
                }
                Err(error) => {
                    self.state = State::Ended { bytes_read: 0 };
                    return Some(Err(Reject {
                        source_file: self.name.clone(),
                        source_offset: None,
                        url: None,
                        reason: error.to_string(),
                        lost: Loss::Rest,
                    }));
                }
            }
        }
        let State::Open(records) = &mut self.state else {
            return None;
        };
        let item = records.next();
        // Behind damage one reader of the whole file would search on beyond the end of this piece.
        let clean = matches!(records.stream.stop(), None | Some(Stop::End | Stop::NextRecord));
        self.misread |= self.piece.to.is_some() && (!clean || records.stream.resumed());
        if item.is_none() {
            let packed = self.source.packed_bytes().filter(|_| !self.source.is_seekable());
            let to = packed.or(self.piece.to).unwrap_or(records.stream.raw_length());
            let bytes_read = to.saturating_sub(self.piece.from);
            self.state = State::Ended { bytes_read: bytes_read + self.extra_bytes };
        }
        item
    }
}

impl CaptureReader for RecordFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes_read(&self) -> u64 {
        match &self.state {
            State::Closed => 0,
            // How much of a deflated entry was read is known only at its end.
            State::Open(_) if !self.source.is_seekable() => 0,
            State::Open(records) => records.stream.raw_position().saturating_sub(self.piece.from),
            State::Ended { bytes_read } => *bytes_read,
        }
    }

    fn misread(&self) -> bool {
        self.misread
    }
}
