//! A page against its old version, for a terminal: new, moved and deleted text told apart.

use std::fmt::Write as _;

use super::PieceKind;
use crate::deltas::segments::{Comparison, SegmentKind};
use crate::report::terminal::fit;

/// How pieces are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marks {
    Colours,
    /// `{+new+}`, `{~moved~}`, `[-deleted-]`.
    Brackets,
}

/// Lines of kept text shown around what changed.
const CONTEXT_LINES: usize = 2;

/// Renders a comparison. `whole`: kept text is not shortened.
pub(super) fn render(old: &str, new: &str, comparison: &Comparison, marks: Marks, whole: bool) -> String {
    let mut out = String::new();
    let mut deleted = comparison.deleted.iter().peekable();
    let last = comparison.segments.len().saturating_sub(1);
    for (i, segment) in comparison.segments.iter().enumerate() {
        let text = &new[segment.span.range()];
        match segment.kind {
            SegmentKind::Kept => {
                // What stood before this piece in the old page and is gone belongs here.
                while let Some(span) = deleted.next_if(|span| span.start < segment.old_start) {
                    mark(&mut out, &old[span.range()], PieceKind::Deleted, marks);
                }
                kept(&mut out, text, i == 0, i == last && deleted.peek().is_none(), whole);
            }
            kind @ (SegmentKind::Moved | SegmentKind::New) => mark(&mut out, text, kind.into(), marks),
        }
    }
    for span in deleted {
        mark(&mut out, &old[span.range()], PieceKind::Deleted, marks);
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

fn mark(out: &mut String, text: &str, kind: PieceKind, marks: Marks) {
    let (before, after) = match (marks, kind) {
        (_, PieceKind::Kept) => ("", ""),
        (Marks::Brackets, PieceKind::New) => ("{+", "+}"),
        (Marks::Brackets, PieceKind::Moved) => ("{~", "~}"),
        (Marks::Brackets, PieceKind::Deleted) => ("[-", "-]"),
        (Marks::Colours, PieceKind::New) => ("\x1b[32m", "\x1b[0m"),
        (Marks::Colours, PieceKind::Moved) => ("\x1b[33m", "\x1b[0m"),
        (Marks::Colours, PieceKind::Deleted) => ("\x1b[9;31m", "\x1b[0m"),
    };
    out.push_str(before);
    clean(out, text);
    out.push_str(after);
}

/// Kept text, its middle left out if it is long.
fn kept(out: &mut String, text: &str, first: bool, last: bool, whole: bool) {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (head, tail) = (if first { 0 } else { CONTEXT_LINES }, if last { 0 } else { CONTEXT_LINES });
    if whole || lines.len() <= head + tail + 1 {
        clean(out, text);
        return;
    }
    lines[..head].iter().for_each(|line| clean(out, line));
    let _ = writeln!(out, "… {} lines kept …", lines.len() - head - tail);
    lines[lines.len() - tail..].iter().for_each(|line| clean(out, line));
}

/// Page text is hostile: control characters must not reach the terminal.
fn clean(out: &mut String, text: &str) {
    out.push_str(&fit(text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Region;

    fn shown(old: &str, new: &str, regions: &[(u32, u32, u32)]) -> String {
        let regions: Vec<_> = regions.iter().map(|&(start, end, old_start)| Region { start, end, old_start }).collect();
        let len = |text: &str| u32::try_from(text.len()).unwrap();
        render(old, new, &Comparison::new(len(old), len(new), &regions), Marks::Brackets, false)
    }

    #[test]
    fn pieces_are_marked_where_they_stand() {
        // "ab" moved behind, "cdefg" kept, "X" new, "h" deleted.
        assert_eq!(shown("abcdefgh", "Xcdefgab", &[(1, 6, 2), (6, 8, 0)]), "{+X+}cdefg{~ab~}[-h-]\n");
        assert_eq!(shown("one two", "two", &[(0, 3, 4)]), "[-one -]two\n");
    }

    #[test]
    fn long_kept_text_is_shortened() {
        let old: String = (0..20).map(|i| format!("line {i}\n")).collect();
        let new = format!("{old}more\n");
        let len = u32::try_from(old.len()).unwrap();
        assert_eq!(shown(&old, &new, &[(0, len, 0)]), "… 18 lines kept …\nline 18\nline 19\n{+more\n+}\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(shown("", "a\x1b[2Jb", &[]), "{+a\u{fffd}[2Jb+}\n");
    }
}
