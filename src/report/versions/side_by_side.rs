//! A page against its old version as one HTML file: both texts side by side, with what is new, deleted and moved, and
//! the mentions found on either.
//!
//! The file needs nothing else: styles are inline, there is no script, and its content security policy forbids to load
//! anything. Page text is hostile, so every character of it goes through [`escape`].
//!
//! Lines that stayed the same are the rows that both sides share; what lies between two of them is one row. Inside
//! a row each side is cut at every border of a piece or mention, so that pieces and mentions may overlap freely.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

use super::{Bytes, PieceKind};
use crate::deltas::multiset;
use crate::deltas::segments::{Comparison, SegmentKind};
use crate::model::Span;
use crate::report::html::{Document, escape};

/// One version of the page.
#[derive(Clone, Debug, Default)]
pub(super) struct Side<'a> {
    pub(super) url: &'a str,
    pub(super) snapshot: &'a str,
    pub(super) title: Option<&'a str>,
    pub(super) text: &'a str,
    /// Further facts, such as times and digests: name and value.
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) mentions: Vec<Mark<'a>>,
}

/// A mention on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark<'a> {
    pub(super) extractor: &'a str,
    pub(super) span: Span,
}

/// The styles of the file.
const STYLE: &str = include_str!("side_by_side.css");
/// Mentions listed of an extractor; beyond that only their number.
const LISTED: usize = 200;
/// Kept lines shown around what changed; the others are folded.
const CONTEXT_LINES: usize = 3;
/// Colours of extractors.
const COLOURS: usize = 6;

/// Renders the comparison of a page with its old version; without one all is new. `whole`: nothing is folded.
/// `report`: where the report is, as seen from the file.
pub(super) fn render(
    old: Option<&Side<'_>>,
    new: &Side<'_>,
    comparison: &Comparison,
    whole: bool,
    report: Option<&str>,
) -> String {
    let absent = Side::default();
    let before = old.unwrap_or(&absent);
    let mut out = String::with_capacity(4 * (before.text.len() + new.text.len()) + 8192);
    let title = new.title.filter(|title| !title.is_empty()).unwrap_or(new.url);
    if let Some(report) = report {
        let _ = writeln!(out, "<nav><a href=\"{}\">← report</a></nav>", escape(report));
    }
    header(&mut out, old, new, title, comparison);
    let extractors = extractors(before, new);
    mentions(&mut out, &extractors, before, new);
    out.push_str("<main>\n<div class=\"row heads\">");
    let head = |side: Option<&Side<'_>>| side.map_or("no earlier version".to_owned(), |side| escape(side.snapshot));
    let _ = writeln!(out, "<div>{}</div><div>{}</div></div>", head(old), escape(new.snapshot));
    let pieces = [old_pieces(before.text, comparison), new_pieces(comparison)];
    let columns = [Column::new(before, &pieces[0], &extractors), Column::new(new, &pieces[1], &extractors)];
    for row in rows(before.text, new.text, comparison) {
        row.render(&mut out, &columns, whole);
    }
    out.push_str("</main>\n");
    Document { title, style: STYLE, script: None, body: &out }.render()
}

fn header(out: &mut String, old: Option<&Side<'_>>, new: &Side<'_>, title: &str, comparison: &Comparison) {
    let _ = writeln!(out, "<header>\n<h1>{}</h1>\n<p class=\"url\">{}</p>", escape(title), escape(new.url));
    if let Some(old) = old.filter(|old| old.url != new.url) {
        let _ = writeln!(out, "<p class=\"url\">moved from {}</p>", escape(old.url));
    }
    out.push_str("<table class=\"facts\"><tr><th></th>");
    let sides: Vec<&Side<'_>> = old.into_iter().chain([new]).collect();
    for side in &sides {
        let _ = write!(out, "<th>{}</th>", escape(side.snapshot));
    }
    out.push_str("</tr>\n");
    let mut line = |name: &str, value: &dyn Fn(&Side<'_>) -> String| {
        let _ = write!(out, "<tr><th>{}</th>", escape(name));
        for side in &sides {
            let _ = write!(out, "<td>{}</td>", escape(&value(side)));
        }
        out.push_str("</tr>\n");
    };
    line("title", &|side| side.title.unwrap_or("none").to_owned());
    line("text", &|side| format!("{} bytes", side.text.len()));
    for (name, _) in &new.facts {
        let of = |side: &Side<'_>| side.facts.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
        line(name, &|side| of(side).unwrap_or_else(|| "unknown".to_owned()));
    }
    out.push_str("</table>\n");
    let Bytes { kept, moved, new, deleted } = Bytes::of(comparison);
    let _ = writeln!(
        out,
        "<p class=\"legend\"><ins>new</ins> {new} bytes <del>deleted</del> {deleted} bytes <span class=\"mv\">moved</span> {moved} bytes <span class=\"kept\">kept</span> {kept} bytes <span class=\"m m0\">mention</span></p>\n</header>"
    );
}

/// The names of all extractors with a mention, sorted. Elsewhere an extractor is its place among these.
fn extractors<'a>(old: &Side<'a>, new: &Side<'a>) -> Vec<&'a str> {
    let mut names: Vec<&str> = old.mentions.iter().chain(&new.mentions).map(|mark| mark.extractor).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The mentions of each extractor: which came, which went, which stayed.
fn mentions(out: &mut String, extractors: &[&str], old: &Side<'_>, new: &Side<'_>) {
    if extractors.is_empty() {
        return;
    }
    out.push_str("<section class=\"mentions\">\n");
    let (before, now) = (mentioned(extractors, old), mentioned(extractors, new));
    for (number, ((name, before), now)) in extractors.iter().zip(&before).zip(&now).enumerate() {
        let (added, deleted) = multiset::difference(before, now);
        let _ = write!(
            out,
            "<details{}><summary><span class=\"m m{}\">{}</span> {} mentions, {} new, {} gone</summary><ul>",
            if added.is_empty() && deleted.is_empty() { "" } else { " open" },
            number % COLOURS,
            escape(name),
            now.len(),
            added.len(),
            deleted.len()
        );
        let mut is_added = vec![false; now.len()];
        added.iter().for_each(|&i| is_added[i] = true);
        let kept = now.iter().zip(&is_added).filter(|(_, added)| !**added).map(|(text, _)| ("", *text));
        let items = added.iter().map(|&i| ("ins", now[i])).chain(deleted.iter().map(|&i| ("del", before[i])));
        for (tag, text) in items.chain(kept).take(LISTED) {
            let text = escape(text);
            let _ = match tag {
                "" => write!(out, "<li>{text}</li>"),
                tag => write!(out, "<li><{tag}>{text}</{tag}></li>"),
            };
        }
        let rest = (now.len() + deleted.len()).saturating_sub(LISTED);
        if rest > 0 {
            let _ = write!(out, "<li>and {rest} more</li>");
        }
        out.push_str("</ul></details>\n");
    }
    out.push_str("</section>\n");
}

/// The texts of the mentions on a side, for each extractor in the order of their names.
fn mentioned<'a>(extractors: &[&str], side: &Side<'a>) -> Vec<Vec<&'a str>> {
    let mut texts = vec![Vec::new(); extractors.len()];
    for mark in &side.mentions {
        if let Ok(number) = extractors.binary_search(&mark.extractor) {
            texts[number].push(side.text.get(mark.span.range()).unwrap_or_default());
        }
    }
    texts
}

/// A piece of a side: where it lies, and what became of it.
type Piece = (Range<usize>, PieceKind);

fn new_pieces(comparison: &Comparison) -> Vec<Piece> {
    comparison.segments.iter().map(|segment| (segment.span.range(), segment.kind.into())).collect()
}

/// The old text in pieces: kept where a kept piece stood, else deleted or moved.
fn old_pieces(text: &str, comparison: &Comparison) -> Vec<Piece> {
    let kept = comparison.segments.iter().filter(|segment| segment.kind == SegmentKind::Kept);
    let stood = kept.map(|segment| segment.old_start as usize..(segment.old_start + segment.span.len()) as usize);
    let mut pieces: Vec<Piece> = stood.map(|range| (range, PieceKind::Kept)).collect();
    pieces.extend(comparison.deleted.iter().map(|span| (span.range(), PieceKind::Deleted)));
    pieces.sort_by_key(|(range, _)| range.start);
    // What is neither was moved.
    let mut all: Vec<Piece> = Vec::with_capacity(2 * pieces.len());
    let mut at = 0;
    for (range, kind) in pieces {
        if at < range.start {
            all.push((at..range.start, PieceKind::Moved));
        }
        at = range.end.max(at);
        all.push((range, kind));
    }
    if at < text.len() {
        all.push((at..text.len(), PieceKind::Moved));
    }
    all
}

/// What stands beside what.
struct Row {
    old: Range<usize>,
    new: Range<usize>,
    /// The same lines on both sides.
    kept: bool,
}

/// Cuts both texts at the lines that were kept whole.
fn rows(old: &str, new: &str, comparison: &Comparison) -> Vec<Row> {
    let mut rows = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    for segment in comparison.segments.iter().filter(|segment| segment.kind == SegmentKind::Kept) {
        let (start, from) = (segment.span.start as usize, segment.old_start as usize);
        let text = &new[segment.span.range()];
        let at_line = |text: &str, at: usize| at == 0 || text.as_bytes()[at - 1] == b'\n';
        let skip =
            if at_line(new, start) && at_line(old, from) { 0 } else { text.find('\n').map_or(text.len(), |at| at + 1) };
        let ends = start + text.len() == new.len() && from + text.len() == old.len();
        let end = if ends { text.len() } else { text.rfind('\n').map_or(0, |at| at + 1) };
        if skip >= end {
            continue;
        }
        if old_at < from + skip || new_at < start + skip {
            rows.push(Row { old: old_at..from + skip, new: new_at..start + skip, kept: false });
        }
        rows.push(Row { old: from + skip..from + end, new: start + skip..start + end, kept: true });
        (old_at, new_at) = (from + end, start + end);
    }
    if old_at < old.len() || new_at < new.len() {
        rows.push(Row { old: old_at..old.len(), new: new_at..new.len(), kept: false });
    }
    rows
}

impl Row {
    fn render(&self, out: &mut String, columns: &[Column<'_>; 2], whole: bool) {
        let text = &columns[1].text[self.new.clone()];
        let starts: Vec<usize> = text
            .split_inclusive('\n')
            .scan(0, |at, line| {
                let start = *at;
                *at += line.len();
                Some(start)
            })
            .collect();
        let first = self.new.start == 0;
        let last = self.new.end == columns[1].text.len();
        let head = if first { 0 } else { CONTEXT_LINES };
        let tail = if last { 0 } else { CONTEXT_LINES };
        if !self.kept || whole || starts.len() <= head + tail + 1 {
            self.part(out, columns, 0, text.len());
            return;
        }
        let cut = |line: usize| starts.get(line).copied().unwrap_or(text.len());
        let (from, to) = (cut(head), cut(starts.len() - tail));
        if from > 0 {
            self.part(out, columns, 0, from);
        }
        let _ = write!(out, "<details class=\"fold\"><summary>{} lines kept</summary>", starts.len() - head - tail);
        self.part(out, columns, from, to);
        out.push_str("</details>\n");
        if to < text.len() {
            self.part(out, columns, to, text.len());
        }
    }

    /// A part of the row; of kept rows by offsets that hold on both sides.
    fn part(&self, out: &mut String, columns: &[Column<'_>; 2], from: usize, to: usize) {
        let _ = write!(out, "<div class=\"row{}\">", if self.kept { "" } else { " changed" });
        for (column, range) in columns.iter().zip([&self.old, &self.new]) {
            let range = if self.kept { range.start + from..range.start + to } else { range.clone() };
            out.push_str("<div dir=\"auto\">");
            column.render(out, range);
            out.push_str("</div>");
        }
        out.push_str("</div>\n");
    }
}

/// A side, cut wherever a piece or a mention begins or ends.
struct Column<'a> {
    text: &'a str,
    /// Together the whole text, in order.
    stretches: Vec<Stretch>,
}

/// A part of a side in which nothing begins or ends.
struct Stretch {
    range: Range<usize>,
    kind: PieceKind,
    /// Its colour and the names of the extractors, as HTML; `None` outside of mentions.
    mention: Option<(usize, String)>,
}

impl<'a> Column<'a> {
    /// In O((p + m) log (p + m)) for p pieces and m mentions, and what the names of overlapping extractors add: one
    /// pass over the borders, with the mentions that are open at each.
    fn new(side: &Side<'a>, pieces: &[Piece], extractors: &[&str]) -> Self {
        let marks = marks(side, extractors);
        let ranges = pieces.iter().map(|piece| &piece.0).chain(marks.iter().map(|mark| &mark.0));
        let mut borders: Vec<usize> = ranges.flat_map(|range| [range.start, range.end]).collect();
        borders.extend([0, side.text.len()]);
        borders.sort_unstable();
        borders.dedup();
        let mut pieces = pieces.iter().peekable();
        let mut kind = PieceKind::Kept;
        let mut open = OpenMarks::new(&marks);
        let mut stretches = Vec::with_capacity(borders.len());
        for border in borders.windows(2) {
            while let Some((_, next)) = pieces.next_if(|(range, _)| range.start <= border[0]) {
                kind = *next;
            }
            open.go_to(border[0]);
            stretches.push(Stretch { range: border[0]..border[1], kind, mention: open.described(extractors) });
        }
        Self { text: side.text, stretches }
    }

    fn render(&self, out: &mut String, range: Range<usize>) {
        let first = self.stretches.partition_point(|stretch| stretch.range.end <= range.start);
        for stretch in &self.stretches[first..] {
            let (start, end) = (stretch.range.start.max(range.start), stretch.range.end.min(range.end));
            if start >= end {
                break;
            }
            stretch.render(out, &self.text[start..end]);
        }
    }
}

impl Stretch {
    /// Renders a part of the stretch.
    fn render(&self, out: &mut String, text: &str) {
        let text = escape(text);
        let text = match &self.mention {
            None => text,
            Some((colour, names)) => format!("<span class=\"m m{colour}\" title=\"{names}\">{text}</span>"),
        };
        let _ = match self.kind {
            PieceKind::Kept => write!(out, "{text}"),
            PieceKind::New => write!(out, "<ins>{text}</ins>"),
            PieceKind::Deleted => write!(out, "<del>{text}</del>"),
            PieceKind::Moved => write!(out, "<span class=\"mv\">{text}</span>"),
        };
    }
}

/// The mentions of a side that fit its text, each with the number of its extractor, by start.
fn marks(side: &Side<'_>, extractors: &[&str]) -> Vec<(Range<usize>, usize)> {
    let number = |mark: &Mark<'_>| extractors.binary_search(&mark.extractor).ok();
    let placed = side.mentions.iter().filter_map(|mark| Some((mark.span.range(), number(mark)?)));
    let mut marks: Vec<_> = placed.filter(|(range, _)| side.text.get(range.clone()).is_some()).collect();
    marks.sort_by_key(|(range, number)| (range.start, range.end, *number));
    marks
}

/// The mentions that are open at a place that moves to the right.
struct OpenMarks<'a> {
    marks: &'a [(Range<usize>, usize)],
    /// The first that begins after the place.
    next: usize,
    /// The open ones, by index.
    open: BTreeSet<usize>,
    /// The same, by end.
    ends: BTreeSet<(usize, usize)>,
    /// How many are open of each extractor.
    extractors: BTreeMap<usize, usize>,
}

impl<'a> OpenMarks<'a> {
    fn new(marks: &'a [(Range<usize>, usize)]) -> Self {
        Self { marks, next: 0, open: BTreeSet::new(), ends: BTreeSet::new(), extractors: BTreeMap::new() }
    }

    fn go_to(&mut self, place: usize) {
        while let Some((range, extractor)) = self.marks.get(self.next).filter(|(range, _)| range.start <= place) {
            self.open.insert(self.next);
            self.ends.insert((range.end, self.next));
            *self.extractors.entry(*extractor).or_default() += 1;
            self.next += 1;
        }
        while let Some(&(end, mark)) = self.ends.first().filter(|(end, _)| *end <= place) {
            self.ends.remove(&(end, mark));
            self.open.remove(&mark);
            let extractor = self.marks[mark].1;
            if let Some(open) = self.extractors.get_mut(&extractor) {
                *open -= 1;
                if *open == 0 {
                    self.extractors.remove(&extractor);
                }
            }
        }
    }

    /// The colour of the mention that began first, and the names of all extractors, as HTML.
    fn described(&self, names: &[&str]) -> Option<(usize, String)> {
        let first = self.marks[*self.open.first()?].1;
        let names: Vec<&str> = self.extractors.keys().map(|&extractor| names[extractor]).collect();
        Some((first % COLOURS, escape(&names.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Region;

    fn shown(old: &str, new: &str, regions: &[(u32, u32, u32)], marks: &[(u32, u32)]) -> String {
        let regions: Vec<_> = regions.iter().map(|&(start, end, old_start)| Region { start, end, old_start }).collect();
        let len = |text: &str| u32::try_from(text.len()).unwrap();
        let comparison = Comparison::new(len(old), len(new), &regions);
        let mark = |&(start, end): &(u32, u32)| Mark { extractor: "who", span: Span::new(start, end) };
        let old = Side { url: "http://a/", snapshot: "n1", text: old, ..Side::default() };
        let mentions = marks.iter().map(mark).collect();
        let new = Side { url: "http://a/", snapshot: "n2", text: new, mentions, ..Side::default() };
        render(Some(&old), &new, &comparison, false, None)
    }

    fn body(html: &str) -> &str {
        html.split_once("<main>").unwrap().1
    }

    #[test]
    fn pieces_and_mentions_are_marked_and_may_overlap() {
        let html = shown("ab\ncd\n", "ab\nXYcd\n", &[(0, 3, 0), (5, 8, 3)], &[(4, 6), (5, 7)]);
        let expected = "<ins>X</ins><ins><span class=\"m m0\" title=\"who\">Y</span></ins><span class=\"m m0\" title=\"who\">c</span>\
                        <span class=\"m m0\" title=\"who\">d</span>\n</div>";
        assert!(body(&html).contains(expected), "{html}");
        assert!(body(&html).contains("<div class=\"row changed\"><div dir=\"auto\">cd\n</div>"), "{html}");
        assert!(html.contains("2 mentions, 2 new, 0 gone"), "{html}");
    }

    #[test]
    fn moved_and_deleted_text_shows_on_the_old_side() {
        // old: AAAA|BBB|z, new: BBB|AAAA
        let html = shown("AAAABBBz", "BBBAAAA", &[(0, 3, 4), (3, 7, 0)], &[]);
        assert!(body(&html).contains("AAAA<span class=\"mv\">BBB</span><del>z</del>"), "{html}");
        assert!(body(&html).contains("<span class=\"mv\">BBB</span>AAAA"), "{html}");
    }

    #[test]
    fn long_kept_text_is_folded() {
        let old: String = (0..30).map(|i| format!("line {i}\n")).collect();
        let new = format!("{old}more\n");
        let len = u32::try_from(old.len()).unwrap();
        let html = shown(&old, &new, &[(0, len, 0)], &[]);
        assert!(html.contains("27 lines kept"), "{html}");
        assert!(body(&html).contains("line 29"));
    }

    #[test]
    fn a_first_version_is_all_new() {
        let new = Side { url: "http://a/", snapshot: "n1", text: "hello", ..Side::default() };
        let html = render(None, &new, &Comparison::new(0, 5, &[]), false, None);
        assert!(html.contains("no earlier version") && html.contains("<ins>hello</ins>"));
    }

    #[test]
    fn hostile_text_is_escaped_everywhere() {
        let bad = "</script><img src=x onerror=\"alert('1')\">&amp;\u{0}\u{1b}[2J\u{202e}gnp.exe</style>";
        let marks = vec![Mark { extractor: bad, span: Span::new(0, 5) }];
        let facts = vec![("digest", bad.to_owned())];
        let side = |text| Side {
            url: bad,
            snapshot: bad,
            title: Some(bad),
            text,
            facts: facts.clone(),
            mentions: marks.clone(),
        };
        let (old, new) = (side(bad), side("x</textarea>\u{2066}"));
        let len = |text: &str| u32::try_from(text.len()).unwrap();
        let html = render(Some(&old), &new, &Comparison::new(len(bad), len(new.text), &[]), true, None);
        for tag in [
            "<script",
            "</script",
            "<img",
            "</textarea",
            "\u{0}",
            "\u{1b}",
            "\u{202e}",
            "\u{2066}",
            "alert('",
            "src=x onerror=\"",
        ] {
            assert!(!html.contains(tag), "{tag:?}");
        }
        assert_eq!(html.matches("</style>").count(), 1);
        assert!(html.contains("⟨U+202E⟩gnp.exe&lt;/style&gt;") && html.contains("&amp;amp;⟨U+0000⟩⟨U+001B⟩"));
    }

    #[test]
    fn a_mention_that_does_not_fit_the_text_is_left_out() {
        let html = shown("é", "é", &[(0, 2, 0)], &[(0, 1), (0, 9)]);
        assert!(!body(&html).contains("title="), "{html}");
    }

    /// A hundred thousand mentions below one that spans the page: work that grows with their square would not end.
    #[test]
    fn a_large_page_takes_time_in_proportion() {
        let line = "some name\n";
        let text: String = line.repeat(100_000);
        let len = u32::try_from(text.len()).unwrap();
        let whole = Mark { extractor: "page", span: Span::new(0, len) };
        let starts = (0..len).step_by(line.len());
        let mut mentions: Vec<_> =
            starts.map(|start| Mark { extractor: "who", span: Span::new(start + 5, start + 9) }).collect();
        mentions.push(whole);
        let old = Side { url: "http://a/", snapshot: "n1", text: &text, mentions: vec![whole], ..Side::default() };
        let new = Side { url: "http://a/", snapshot: "n2", text: &text, mentions, ..Side::default() };
        let kept = Comparison::new(len, len, &[Region { start: 0, end: len, old_start: 0 }]);
        let html = render(Some(&old), &new, &kept, true, None);
        assert!(html.contains("100000 mentions, 100000 new, 0 gone") && html.contains("<li>and 99800 more</li>"));
        assert_eq!(html.matches("title=\"page, who\">name</span>").count(), 100_000);
    }

    proptest::proptest! {
        /// All text of both sides is there, in order, whatever the regions.
        #[test]
        fn nothing_is_lost(
            old in "[ab\n]{0,40}", new in "[ab\n]{0,40}", at in 0usize..40, len in 1usize..30, marks in proptest::collection::vec((0u32..40, 1u32..9), 0..5)
        ) {
            let common: String = new.chars().skip(at).take(len).collect();
            let from = old.find(&common).filter(|_| !common.is_empty());
            let regions: Vec<(u32, u32, u32)> = from
                .map(|from| {
                    let at = at.min(new.len());
                    let number = |n: usize| u32::try_from(n).unwrap();
                    (number(at), number(at + common.len()), number(from))
                })
                .into_iter()
                .collect();
            let marks: Vec<(u32, u32)> = marks.iter().map(|&(start, len)| (start, start + len)).collect();
            let html = shown(&old, &new, &regions, &marks);
            let mut sides = [String::new(), String::new()];
            for row in body(&html).split("<div class=\"row").skip(2) {
                for (side, cell) in sides.iter_mut().zip(row.split("<div dir=\"auto\">").skip(1)) {
                    let cell = cell.split_once("</div>").unwrap().0;
                    let mut tag = false;
                    side.extend(cell.chars().filter(|c| {
                        tag |= *c == '<';
                        let keep = !tag;
                        tag &= *c != '>';
                        keep
                    }));
                }
            }
            proptest::prop_assert_eq!(&sides[0], &old);
            proptest::prop_assert_eq!(&sides[1], &new);
        }
    }
}
