//! The lines, sentences or blocks of a page, of which a record may have to keep to one.
//!
//! A sentence ends with its line, after a full stop, question or exclamation mark (and closing quotes and brackets) if
//! white space and no lower-case letter follows, and after their ideographic twins. It does not end inside a mention that
//! records are made of: whoever finds `Dr. Ada Fenn` knows better.

use super::Within;
use crate::extract::mention::{Mention, offset};
use crate::extract::reach::Blocks;
use crate::extract::units::blocks;
use crate::model::Span;

/// The places of a page, each from one start to the next.
pub(super) struct Places {
    /// Ascending; the first place starts at 0.
    starts: Vec<u32>,
}

impl Places {
    /// The whole page is one place if `within` says nothing.
    pub(super) fn of(text: &str, within: Option<Within>, mentions: &[&[Mention]]) -> Self {
        let starts = match within {
            None => Vec::new(),
            Some(Within::Line) => memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| offset(at + 1)).collect(),
            Some(Within::Sentence) => outside(sentences(text), mentions),
            Some(Within::Block) => {
                blocks(text, Blocks::default().bytes).iter().skip(1).map(|block| block.start).collect()
            }
        };
        Self { starts }
    }

    /// The place that has all of a span; `None` if it reaches into the next one.
    pub(super) fn home(&self, span: (u32, u32)) -> Option<Span> {
        let next = self.starts.partition_point(|&start| start <= span.0);
        let start = next.checked_sub(1).map_or(0, |at| self.starts[at]);
        let end = self.starts.get(next).copied().unwrap_or(u32::MAX);
        (span.1 <= end).then(|| Span::new(start, end))
    }
}

/// Where sentences start, but for the first.
fn sentences(text: &str) -> Vec<u32> {
    let mut starts = Vec::new();
    // The last character that is neither white space nor a closing quote or bracket, and what came since.
    let (mut last, mut blank, mut line_end) = (None, false, false);
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            blank = true;
            line_end |= c == '\n';
            continue;
        }
        if !blank && closes(c) && last.is_some() {
            continue;
        }
        let ends = match last {
            None => false,
            Some(_) if line_end => true,
            Some('.' | '!' | '?') => blank && !c.is_lowercase(),
            Some('。' | '！' | '？') => true,
            Some(_) => false,
        };
        if ends {
            starts.push(offset(at));
        }
        (last, blank, line_end) = (Some(c), false, false);
    }
    starts
}

fn closes(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '」' | '』' | '）')
}

/// Those starts that lie inside no mention.
fn outside(starts: Vec<u32>, mentions: &[&[Mention]]) -> Vec<u32> {
    let mut spans: Vec<(u32, u32)> = mentions.iter().flat_map(|list| list.iter().map(|m| (m.start, m.end))).collect();
    spans.sort_unstable();
    let mut begun = spans.iter().peekable();
    let mut furthest = 0;
    let mut kept = starts;
    kept.retain(|&start| {
        while let Some((_, end)) = begun.next_if(|(begin, _)| *begin < start) {
            furthest = furthest.max(*end);
        }
        furthest <= start
    });
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, within: Within, mentions: &[(u32, u32)]) -> Vec<String> {
        let mentions: Vec<Mention> = mentions.iter().map(|&(start, end)| Mention::plain(start, end, 0)).collect();
        let mut starts = Places::of(text, Some(within), &[&mentions]).starts;
        starts.insert(0, 0);
        starts.push(offset(text.len()));
        starts.windows(2).map(|pair| text[pair[0] as usize..pair[1] as usize].to_owned()).collect()
    }

    #[test]
    fn sentences_end_where_readers_see_it() {
        let of = |text: &str| cut(text, Within::Sentence, &[]);
        assert_eq!(
            of("At 4 p.m. in B1. Then \"we go.\" Home? Yes"),
            ["At 4 p.m. in B1. ", "Then \"we go.\" ", "Home? ", "Yes"]
        );
        assert_eq!(of("one\ntwo 1.5 three.\nfour"), ["one\n", "two 1.5 three.\n", "four"]);
        assert_eq!(of("一。「二！」三"), ["一。", "「二！」", "三"]);
        assert_eq!(of("With Dr. Fenn. Éva"), ["With Dr. ", "Fenn. ", "Éva"]);
        assert_eq!(cut("With Dr. Fenn. Éva", Within::Sentence, &[(5, 13)]), ["With Dr. Fenn. ", "Éva"]);
    }

    #[test]
    fn lines_have_their_ends() {
        assert_eq!(cut("a\n\nb c", Within::Line, &[]), ["a\n", "\n", "b c"]);
        let places = Places::of("a b\nc", Some(Within::Line), &[]);
        assert_eq!(places.home((1, 4)), Some(Span::new(0, 4)));
        assert_eq!(places.home((2, 5)), None);
    }
}
