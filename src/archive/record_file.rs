//! A file of records as a reader of captures: opened at the first `next`, whole or in part.

use crate::model::Reject;

use super::CaptureReader;
use super::records::{Format, Item, Records};
use super::source::{Bytes, Section, Source};
use super::stream::{Stop, Stream};

/// A part of a file that starts and ends at members that start with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) from: u64,
    /// `None`: up to the end of the file.
    pub(super) to: Option<u64>,
}

pub(super) struct RecordFile {
    source: Source,
    format: Format,
    name: String,
    piece: Piece,
    /// Bytes of the file besides those it reads, shown as read at the end.
    extra_bytes: u64,
    misread: bool,
    state: State,
}

enum State {
    Closed,
    Open(Box<Records<Box<dyn Bytes>>>),
    Ended { bytes_read: u64 },
}

impl RecordFile {
    pub(super) fn new(source: Source, format: Format, name: String) -> Self {
        let piece = Piece { from: 0, to: None };
        Self { source, format, name, piece, extra_bytes: 0, misread: false, state: State::Closed }
    }

    pub(super) fn piece(self, piece: Piece) -> Self {
        Self { piece, ..self }
    }

    pub(super) fn extra_bytes(self, extra_bytes: u64) -> Self {
        Self { extra_bytes, ..self }
    }

    fn open(&self) -> std::io::Result<Stream<Box<dyn Bytes>>> {
        let mut bytes = self.source.open()?;
        if let Some(to) = self.piece.to {
            bytes = Box::new(Section::new(bytes, 0, to)?);
        }
        let mut stream = Stream::new(bytes, self.format.starts())?;
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
                    }));
                }
            }
        }
        let State::Open(records) = &mut self.state else {
            return None;
        };
        let item = records.next();
        // Damage is searched through beyond the end of a part, which is not to be had here.
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
            // How much of a deflated entry is read is known at its end.
            State::Open(_) if !self.source.is_seekable() => 0,
            State::Open(records) => records.stream.raw_position().saturating_sub(self.piece.from),
            State::Ended { bytes_read } => *bytes_read,
        }
    }

    fn misread(&self) -> bool {
        self.misread
    }
}
