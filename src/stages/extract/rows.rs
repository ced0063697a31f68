//! Mentions as rows of tables, and back.

use std::sync::Arc;

use super::live::LiveExtractor;
use crate::extract::{Mention, Piece, Value};
use crate::model::{SnapshotId, Span};
use crate::tables::mentions::{MentionRow, PieceRow};

/// The row of a mention found on a page.
pub(super) fn row(
    live: &LiveExtractor,
    mention: &Mention,
    url: &Arc<str>,
    page: &str,
    copied: bool,
    since: SnapshotId,
) -> MentionRow {
    let label = live.label_text(mention.label).map(Into::into);
    labelled_row(mention, label, url, page, copied, since)
}

/// The same with a label that is at hand.
pub(super) fn labelled_row(
    mention: &Mention,
    label: Option<Arc<str>>,
    url: &Arc<str>,
    page: &str,
    copied: bool,
    since: SnapshotId,
) -> MentionRow {
    let piece = |piece: &Piece| PieceRow {
        text: mention.piece_text(piece, page).to_owned(),
        span: mention.locate(piece).map(|span| (span.start.into(), span.end.into())),
    };
    let value = |value: &Value| match value {
        Value::Absent => None,
        Value::One(one) => Some(vec![piece(one)]),
        Value::Many(many) => Some(many.iter().map(piece).collect()),
    };
    MentionRow {
        url: Arc::clone(url),
        start: mention.start.into(),
        end: mention.end.into(),
        text: page[mention.span().range()].to_owned(),
        label,
        attributes: mention.attributes.iter().map(value).collect(),
        copied,
        since,
        whole: false,
    }
}

/// The mention that a row stands for; `None` if it does not fit the extractor.
pub(super) fn mention(live: &LiveExtractor, row: &MentionRow) -> Option<Mention> {
    mention_with(live, row, live.label(row.label.as_deref().unwrap_or_default())?)
}

/// As [`mention`], with a label that another extractor gave it.
pub(super) fn mention_with(live: &LiveExtractor, row: &MentionRow, label: u32) -> Option<Mention> {
    let start = u32::try_from(row.start).ok()?;
    let end = u32::try_from(row.end).ok().filter(|&end| end > start)?;
    let piece = |piece: &PieceRow| match piece.span {
        None => Some(Piece::Text(piece.text.clone())),
        Some((from, to)) => {
            let relative = |at: i64| u32::try_from(at - i64::from(start)).ok();
            let (from, to) = (relative(from)?, relative(to)?);
            (from <= to).then(|| Piece::Span(Span::new(from, to)))
        }
    };
    let mut attributes = Vec::with_capacity(row.attributes.len());
    for (value, (_, many)) in row.attributes.iter().zip(&live.schema.attributes) {
        attributes.push(match value {
            None => Value::Absent,
            Some(pieces) if *many => Value::Many(pieces.iter().map(piece).collect::<Option<_>>()?),
            Some(pieces) => Value::One(piece(pieces.first()?)?),
        });
    }
    Some(Mention { start, end, label, attributes: attributes.into() })
}
