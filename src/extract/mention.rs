//! What an extractor finds.
//!
//! Every position inside a mention is kept relative to the mention's start. Moving a mention to another place in the
//! page is then one assignment, and "the same mention elsewhere" is plain equality of everything but `start` and
//! `end`: the comparison on which copying rests cannot forget an attribute.

use crate::model::Span;
use crate::model::closed_set::closed_set;

/// A span of a page with attributes. The derived order is the canonical order of every table: by start, end, label,
/// attributes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mention {
    /// Whole match, in bytes of the page. Never empty.
    pub start: u32,
    pub end: u32,
    /// Index of the pattern or of the term; 0 where an extractor has neither.
    pub label: u32,
    /// One value per attribute of the extractor's schema, in its order.
    pub attributes: Box<[Value]>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    Absent,
    One(Piece),
    /// In page order; only for attributes declared as lists.
    Many(Vec<Piece>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Piece {
    /// Relative to the mention's start.
    Span(Span),
    /// Text that stands nowhere in the page, such as the label a model gives.
    Text(String),
}

closed_set! {
    /// Where a mention of a page comes from.
    pub enum Origin: "origin" {
        /// Taken over from the old page.
        Copied = "copied",
        /// Found in this page.
        Extracted = "extracted",
    }
}

/// A mention of a page and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub mention: Mention,
    /// Index of the old mention that it was copied from, which knows since when it is there.
    pub source: Option<u32>,
}

impl Found {
    #[must_use]
    pub fn extracted(mention: Mention) -> Self {
        Self { mention, source: None }
    }
}

impl Mention {
    #[must_use]
    pub fn plain(start: u32, end: u32, label: u32) -> Self {
        Self { start, end, label, attributes: Box::default() }
    }

    #[must_use]
    pub fn span(&self) -> Span {
        Span::new(self.start, self.end)
    }

    /// The same mention `shift` bytes further on.
    #[must_use]
    pub fn shifted(&self, shift: i64) -> Self {
        Self {
            start: moved(self.start, shift),
            end: moved(self.end, shift),
            label: self.label,
            attributes: self.attributes.clone(),
        }
    }

    /// Where a piece stands in the page; `None` for free text.
    #[must_use]
    pub fn locate(&self, piece: &Piece) -> Option<Span> {
        match piece {
            Piece::Span(span) => Some(Span::new(self.start + span.start, self.start + span.end)),
            Piece::Text(_) => None,
        }
    }

    /// The text of a piece, given the page.
    #[must_use]
    pub fn piece_text<'a>(&self, piece: &'a Piece, page: &'a str) -> &'a str {
        match piece {
            Piece::Text(text) => text,
            Piece::Span(span) => {
                let base = self.start as usize;
                &page[base + span.start as usize..base + span.end as usize]
            }
        }
    }

    /// Label and attributes: all that must agree between two mentions besides their place.
    #[must_use]
    pub fn payload(&self) -> (u32, u32, &[Value]) {
        (self.end - self.start, self.label, &self.attributes)
    }
}

impl Value {
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        match self {
            Self::Absent => &[],
            Self::One(piece) => std::slice::from_ref(piece),
            Self::Many(pieces) => pieces,
        }
    }
}

/// # Panics
/// If the result is no offset of a page, which means that a region was used without being certified.
#[must_use]
pub(crate) fn moved(at: u32, shift: i64) -> u32 {
    u32::try_from(i64::from(at) + shift).expect("a certified region maps into the page")
}

/// A position in bytes as the type offsets are stored in. Texts are capped far below 4 GiB when they are read.
#[must_use]
pub(crate) fn offset(at: usize) -> u32 {
    u32::try_from(at).expect("texts are shorter than 4 GiB")
}
