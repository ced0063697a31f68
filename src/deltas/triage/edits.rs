//! A changed page, cut into edits.

use std::ops::Range;

use crate::deltas::segments::{Comparison, SegmentKind};

/// Kept text of up to so many bytes on one line does not part two edits: a reader sees one.
const JOINED: usize = 60;

/// A stretch of words that became others. One of the two sides may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub old: Range<usize>,
    pub new: Range<usize>,
}

/// The edits of a page, in order, but for those that do not count. Text that only moved is no edit.
#[must_use]
pub(crate) fn edits(old: &str, new: &str, comparison: &Comparison, counts: impl Fn(&Edit) -> bool) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    let mut take = |edit: Edit, news: bool| {
        let first = comparison.deleted.partition_point(|span| span.range().end <= edit.old.start);
        let gone = comparison.deleted.get(first).is_some_and(|span| span.range().start < edit.old.end);
        let edit = Edit { old: trimmed(old, edit.old), new: trimmed(new, edit.new) };
        if (news || gone) && !(edit.old.is_empty() && edit.new.is_empty()) && counts(&edit) {
            add(old, new, edit, &mut edits);
        }
    };
    let mut at = Edit { old: 0..0, new: 0..0 };
    let mut news = false;
    for segment in &comparison.segments {
        let range = segment.span.range();
        match segment.kind {
            SegmentKind::New => news = true,
            SegmentKind::Moved => {}
            SegmentKind::Kept => {
                let from = segment.old_start as usize;
                take(Edit { old: at.old.end..from, new: at.new.end..range.start }, news);
                at = Edit { old: from..from + range.len(), new: range };
                news = false;
            }
        }
    }
    take(Edit { old: at.old.end..old.len(), new: at.new.end..new.len() }, news);
    edits
}

/// Adds an edit, to the one before it if only a few words of one line lie between them.
fn add(old: &str, new: &str, edit: Edit, edits: &mut Vec<Edit>) {
    let near = |text: &str, from: usize, to: usize| {
        text.get(from..to).is_some_and(|between| between.len() <= JOINED && !between.contains('\n'))
    };
    match edits.last_mut() {
        Some(last) if near(new, last.new.end, edit.new.start) && near(old, last.old.end, edit.old.start) => {
            *last = Edit { old: last.old.start..edit.old.end, new: last.new.start..edit.new.end };
        }
        _ => edits.push(edit),
    }
}

/// Without the white space around it.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let whole = &text[range.clone()];
    let start = range.start + (whole.len() - whole.trim_start().len());
    start..(start + whole.trim().len())
}
