//! Where text stands among the elements of a page, written as one line.
//!
//! Each element is its name and, in parentheses, what is in it: other elements, and numbers, which are bytes of the
//! page's text. `<h1>Side effects</h1><p>An <b>itch</b></p>` is `h1(12)p(3b(5))`: white space that separates belongs to
//! what comes after it. The text of an XML page is its source, so that there every number says what its bytes are: `~`
//! is markup, `&` is text with references, `=` text as it stands; such a line begins with `~`. A page without elements
//! has an empty line.
//!
//! A line costs a few bytes for each element; it is written and read in one pass.

use std::fmt::Write as _;
use std::ops::Range;

use super::xml;

/// Elements inside each other that are told apart: what lies deeper belongs to the last of them.
pub(super) const DEPTH: usize = 256;

/// Bytes of an XML page.
#[derive(Clone, Copy)]
pub(super) enum Piece {
    Markup,
    /// Text with references.
    Referring,
    Verbatim,
}

/// Writes the line of a page while it is read.
#[derive(Debug, Default)]
pub(super) struct ElementsWriter {
    line: String,
    /// Bytes of the text that are in the line.
    at: usize,
    /// Where the names of open elements stand in the line.
    open: Vec<Range<usize>>,
}

impl ElementsWriter {
    /// For a page whose text is its source.
    pub(super) fn of_xml() -> Self {
        Self { line: "~0".to_owned(), ..Self::default() }
    }

    /// Begins another page; the buffers stay.
    pub(super) fn clear(&mut self) {
        self.line.clear();
        self.at = 0;
        self.open.clear();
    }

    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// The names of open elements, the innermost first, each with the depth around it.
    pub(super) fn open_names(&self) -> impl Iterator<Item = (usize, &str)> {
        self.open.iter().enumerate().rev().map(|(depth, name)| (depth, &self.line[name.clone()]))
    }

    /// Opens an element; the page's text reaches to `at`. What would be taken for something else in a name is replaced.
    pub(super) fn open(&mut self, name: &str, at: usize) {
        self.text(at);
        let start = self.line.len();
        if name.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '~' | '&' | '=')) {
            self.line.push('_');
        }
        for c in name.chars() {
            self.line.push(if matches!(c, '(' | ')' | '\0') { '\u{FFFD}' } else { c.to_ascii_lowercase() });
        }
        self.open.push(start..self.line.len());
        self.line.push('(');
    }

    /// Closes elements until so many are open; the page's text reaches to `at`.
    pub(super) fn close_to(&mut self, depth: usize, at: usize) {
        while self.open.len() > depth {
            self.text(at);
            self.open.pop();
            self.line.push(')');
        }
    }

    fn text(&mut self, at: usize) {
        if at > self.at {
            let _ = write!(self.line, "{}", at - self.at);
            self.at = at;
        }
    }

    /// Bytes of an XML page, up to `at`.
    pub(super) fn piece(&mut self, piece: Piece, at: usize) {
        if at > self.at {
            let mark = match piece {
                Piece::Markup => '~',
                Piece::Referring => '&',
                Piece::Verbatim => '=',
            };
            let _ = write!(self.line, "{mark}{}", at - self.at);
            self.at = at;
        }
    }

    /// The line of the page, whose text has so many bytes.
    pub(super) fn finish(&mut self, text_bytes: usize) -> String {
        self.close_to(0, text_bytes);
        std::mem::take(&mut self.line)
    }
}

/// Whether some element is wanted and its text is as it should be. `wanted` is shown the names of the elements that one
/// stands in, its own last.
pub(crate) fn any_element(
    elements: &str,
    text: &str,
    wanted: impl Fn(&[&str]) -> bool,
    holds: impl Fn(&str) -> bool,
) -> bool {
    let is_xml = elements.starts_with('~');
    // What an XML page says, without its markup.
    let mut said = String::new();
    let mut at = 0;
    let (mut names, mut starts): (Vec<&str>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
    let mut rest = elements;
    while let Some(first) = rest.chars().next() {
        match first {
            ')' => {
                rest = &rest[1..];
                names.pop();
                let Some(start) = starts.pop().flatten() else { continue };
                let found = match is_xml {
                    true => holds(&xml::folded(said.get(start..).unwrap_or_default())),
                    false => holds(text.get(start..at).unwrap_or_default().trim_start_matches([' ', '\t', '\n'])),
                };
                if found {
                    return true;
                }
            }
            '~' | '&' | '=' | '0'..='9' => {
                let digits = rest.trim_start_matches(['~', '&', '=']);
                let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
                let bytes = digits[..end].parse::<usize>().unwrap_or(0);
                let piece = text.get(at..at.saturating_add(bytes)).unwrap_or_default();
                match first {
                    '&' => said.push_str(&xml::decoded(piece)),
                    '=' => said.push_str(piece),
                    _ => {}
                }
                at = at.saturating_add(bytes);
                rest = &digits[end..];
            }
            _ => {
                let Some((name, inside)) = rest.split_once('(') else { return false };
                names.push(name);
                starts.push(wanted(&names).then_some(if is_xml { said.len() } else { at }));
                rest = inside;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use proptest::prelude::*;

    use super::*;
    use crate::model::Content;
    use crate::text::{TextOptions, TextReader};

    fn content(page: &str, content_type: &str) -> Content {
        let options = TextOptions { keep_elements: true, ..TextOptions::default() };
        TextReader::new(options).read(page.as_bytes(), Some(content_type), "http://a.org/").content.unwrap()
    }

    fn line(page: &str) -> String {
        content(page, "text/html").elements.unwrap()
    }

    /// The texts of the elements that stand at a path.
    fn texts(page: &Content, path: &str) -> Vec<String> {
        let found = RefCell::new(Vec::new());
        let note = |text: &str| {
            found.borrow_mut().push(text.to_owned());
            false
        };
        assert!(!any_element(page.elements.as_ref().unwrap(), &page.text, |names| names.join("/") == path, note));
        found.into_inner()
    }

    #[test]
    fn elements_of_pages_are_written_with_their_text() {
        assert_eq!(line("<h1>Side effects</h1><p>An <b>itch</b></p>"), "h1(12)p(3b(5))");
        assert_eq!(line("<HTML><head><title>t</title><script>s</script><body>a</html>"), "html(head()body(1))");
        assert_eq!(line("plain"), "");
        assert_eq!(line("<br>a<img src=x>b<hr>"), "br()1img()1hr()");
        assert_eq!(line("<template><p>x</p></template><video><p>y</p></video><p>z"), "video()p(1)");
        assert_eq!(line("<svg><g/><text>x</text></svg><x/>y"), "svg(g()text(1))x(1)");
        let page = content("<div>one <p>two</p><div> three</div></div>", "text/html");
        assert_eq!(page.text, "one\ntwo\nthree");
        assert_eq!(texts(&page, "div"), ["one\ntwo\nthree"]);
        assert_eq!(texts(&page, "div/p"), ["two"]);
        assert_eq!(texts(&page, "div/div"), ["three"]);
    }

    #[test]
    fn tags_that_may_be_left_out_are_put_in() {
        for (html, expected) in [
            ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "ul(li(1)li(2ul(li(2)))li(2))"),
            ("<dl><dt>a<dd>b<dt>c</dl>", "dl(dt(1)dd(2)dt(2))"),
            ("<p>a<p>b<div>c</div>", "p(1)p(2)div(2)"),
            ("<table><tr><td>a<td>b<tr><th>c</table>d", "table(tr(td(1)td(2))tr(th(2)))"),
            ("<table><tbody><tr><td><p>a<tbody><tr><td>b</table>", "table(tbody(tr(td(p(1))))tbody(tr(td(2))))"),
            ("<select><option>a<option>b<optgroup><option>c</select>", "select(option(1)option(2)optgroup(option(2)))"),
            ("<td><div>a</td></div><li>b", "td(div(1))li(2)"),
            ("<ul><li><table><tr><td>a</li>b</table></ul>", "ul(li(table(tr(td(3)))))"),
            ("<a>a<a>b</a>", "a(1)a(1)"),
            ("<h1>a</h2>b", "h1(1)"),
            ("<body>a</body>b</html>c", "body(5)"),
            ("<b>a<p>b</b>c</p>d", "b(1p(2))"),
            ("</p>a</x>", ""),
        ] {
            assert_eq!(line(html), expected, "{html}");
        }
    }

    #[test]
    fn elements_of_xml_have_local_names_and_say_what_is_meant() {
        let xml = "<?xml version='1.0'?><d:list xmlns:d='u'><!-- x --><d:Item>a &lt; b\n <i>c</i></d:Item><x/>\
                   <item><![CDATA[<&amp;>]]></item>tail</d:list>";
        let page = content(xml, "application/xml");
        assert_eq!(page.text, xml);
        assert_eq!(texts(&page, "list/item"), ["a < b c", "<&amp;>"]);
        assert_eq!(texts(&page, "list/item/i"), ["c"]);
        assert_eq!(texts(&page, "list/x"), [""]);
        assert_eq!(texts(&page, "list"), ["a < b c<&amp;>tail"]);
        assert_eq!(content("a < b", "text/plain").elements.as_deref(), Some(""));
    }

    #[test]
    fn what_is_nested_too_deep_belongs_to_the_last() {
        for (page, content_type) in [("text/html", "<b>"), ("application/xml", "<b>")]
            .map(|(kind, tag)| (format!("{}x{}y<i>z</i>", tag.repeat(DEPTH + 9), "</b>".repeat(DEPTH + 9)), kind))
        {
            let page = content(&page, content_type);
            assert_eq!(texts(&page, &vec!["b"; DEPTH].join("/")), ["x"], "{content_type}");
            assert_eq!(texts(&page, "i"), ["z"], "{content_type}");
        }
    }

    proptest! {
        /// Whatever tags there are: elements nest, and what stands in them is in the text.
        #[test]
        fn lines_are_sound(
            html in "(<p>|</p>|<li>|<ul>|</ul>|<td>|<tr>|<table>|</table>|<a>|</a>|<b/>|<br>|<svg>|</svg>|<x\\(|>|é| |<!--|-->|<title>){0,30}",
            kind in prop::sample::select(vec!["text/html", "application/xhtml+xml", "application/xml"]),
        ) {
            let page = content(&html, kind);
            let line = page.elements.as_ref().unwrap();
            let mut depth = 0i32;
            for c in line.chars() {
                depth += i32::from(c == '(') - i32::from(c == ')');
                prop_assert!(depth >= 0);
            }
            prop_assert_eq!(depth, 0);
            let bytes: usize = line.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<usize>().ok()).sum();
            prop_assert!(bytes <= page.text.len());
            let holds = |text: &str| !page.text.contains(text) && kind != "application/xml";
            prop_assert!(!any_element(line, &page.text, |_| true, holds));
        }

        #[test]
        fn no_line_breaks_the_reader(line in "[(~&=0-9a-c)é]{0,20}", text in "[a-cé&;]{0,12}") {
            any_element(&line, &text, |_| true, |_| false);
        }
    }
}
