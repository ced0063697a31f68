//! Tables of the report. They stand in the file as HTML; its script makes them sortable and filterable, and shows the first
//! rows only until all are asked for.

use std::fmt::Write as _;

use crate::report::html::escape;
use crate::report::terminal::size;

/// Characters of a text that stays on one line.
const SHORT: usize = 24;

/// A cell: what is shown, and what it is sorted by.
pub(super) enum Cell {
    Text(String),
    /// A URL or other name that may break anywhere.
    Name(String),
    Number(f64, String),
    /// A remark, which may be long.
    Note(String),
    /// Made by us.
    Html(String),
    Unknown,
}

/// A whole number, in groups of three digits.
pub(super) fn grouped(n: i64) -> String {
    let sign = if n < 0 { "−" } else { "" };
    format!("{sign}{}", in_groups(&n.unsigned_abs().to_string()))
}

/// The same of a number that is none of a table, but near a whole one and not below 0.
pub(super) fn whole(n: f64) -> String {
    in_groups(&format!("{n:.0}"))
}

fn in_groups(digits: &str) -> String {
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

pub(super) fn count(n: u64) -> String {
    grouped(i64::try_from(n).unwrap_or(i64::MAX))
}

impl Cell {
    pub(super) fn count(n: impl TryInto<i64>) -> Self {
        let n = n.try_into().unwrap_or(i64::MAX);
        Self::Number(n as f64, grouped(n))
    }

    pub(super) fn bytes(n: impl TryInto<u64>) -> Self {
        let n = n.try_into().unwrap_or(0);
        Self::Number(n as f64, size(n))
    }

    pub(super) fn number(n: f64, digits: usize) -> Self {
        if n.is_finite() { Self::Number(n, format!("{n:.digits$}")) } else { Self::Number(f64::MAX, "∞".to_owned()) }
    }

    pub(super) fn optional(n: Option<f64>, digits: usize) -> Self {
        n.map_or(Self::Unknown, |n| Self::number(n, digits))
    }

    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(super) fn name(text: &str) -> Self {
        Self::Name(text.to_owned())
    }

    fn is_silent(&self) -> bool {
        match self {
            Self::Text(text) | Self::Note(text) => text.is_empty(),
            Self::Unknown => true,
            Self::Name(_) | Self::Number(..) | Self::Html(_) => false,
        }
    }

    fn render(&self, out: &mut String, head: &str) {
        let head = escape(head);
        let _ = match self {
            // A short word stays on its line.
            Self::Text(text) if text.chars().count() <= SHORT => {
                write!(out, "<td class=\"s\" data-h=\"{head}\"><bdi>{}</bdi></td>", escape(text))
            }
            Self::Text(text) => write!(out, "<td data-h=\"{head}\"><bdi>{}</bdi></td>", escape(text)),
            Self::Name(text) => write!(out, "<td class=\"name\" data-h=\"{head}\"><bdi>{}</bdi></td>", escape(text)),
            Self::Note(text) => write!(out, "<td class=\"note\" data-h=\"{head}\"><bdi>{}</bdi></td>", escape(text)),
            Self::Number(value, shown) => {
                // What is nothing steps back, so that what is something is seen.
                let class = if *value == 0.0 { "n zero" } else { "n" };
                write!(out, "<td class=\"{class}\" data-h=\"{head}\" data-v=\"{value}\">{}</td>", escape(shown))
            }
            Self::Html(html) => write!(out, "<td class=\"wide\" data-h=\"{head}\">{html}</td>"),
            Self::Unknown => write!(out, "<td class=\"n\" data-h=\"{head}\" data-v=\"\">–</td>"),
        };
    }
}

/// A table, and what its columns are.
pub(super) struct Table<'a> {
    /// Its name in the file.
    pub id: &'a str,
    pub caption: &'a str,
    pub head: &'a [&'a str],
    pub rows: Vec<Vec<Cell>>,
    /// Rows that there are, if these are only the first.
    pub of: usize,
    /// A card for each row where the screen is narrow.
    pub cards: bool,
}

impl Table<'_> {
    /// Nothing, where there are no rows.
    pub(super) fn render(&self, out: &mut String) {
        let Some(first) = self.rows.first() else { return };
        let class = if self.cards { "data cards" } else { "data" };
        let is_wide = |cell: &Cell| matches!(cell, Cell::Name(_) | Cell::Note(_) | Cell::Html(_));
        let narrow = if first.iter().any(is_wide) || first.len() > 10 { "" } else { " narrow" };
        let note = match self.of > self.rows.len() {
            true => format!(" <small>the first {} of {}</small>", count(self.rows.len() as u64), count(self.of as u64)),
            false => String::new(),
        };
        let _ = write!(
            out,
            "<div class=\"table{narrow}\"><h3 id=\"{0}-title\">{1}{note}</h3><div class=\"scroll\" tabindex=\"0\" role=\"region\" \
             aria-labelledby=\"{0}-title\"><table id=\"{0}\" class=\"{class}\" aria-labelledby=\"{0}-title\"><thead><tr>",
            self.id,
            escape(self.caption)
        );
        // A column in which nobody says anything is left out.
        let says = |column: usize| self.rows.iter().any(|row| !row[column].is_silent());
        let shown: Vec<usize> = (0..self.head.len().min(first.len())).filter(|column| says(*column)).collect();
        for (head, cell) in shown.iter().map(|&column| (self.head[column], &first[column])) {
            let class = match cell {
                Cell::Number(..) | Cell::Unknown => " class=\"n\"",
                Cell::Text(_) | Cell::Name(_) | Cell::Note(_) | Cell::Html(_) => "",
            };
            let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(head));
        }
        out.push_str("</tr></thead><tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            shown.iter().for_each(|&column| row[column].render(out, self.head[column]));
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div></div>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_groups() {
        assert_eq!([0, 12, 1234, -9_876_543].map(grouped), ["0", "12", "1\u{202f}234", "−9\u{202f}876\u{202f}543"]);
    }

    #[test]
    fn hostile_cells_stay_in_their_cells() {
        let row = vec![Cell::text("</td><script>"), Cell::name("\"><img src=x>"), Cell::count(3_u64)];
        let table = Table { id: "t", caption: "<b>", head: &["a", "b", "\"c"], rows: vec![row], of: 9, cards: false };
        let mut out = String::new();
        table.render(&mut out);
        assert!(!out.contains("<script") && !out.contains("<img") && !out.contains("<b>"), "{out}");
        assert!(out.contains("the first 1 of 9") && out.contains("data-v=\"3\""), "{out}");
        let rows = vec![
            vec![Cell::text(""), Cell::text("x"), Cell::Unknown],
            vec![Cell::text(""), Cell::Unknown, Cell::Unknown],
        ];
        let mut silent = String::new();
        Table { id: "t", caption: "c", head: &["empty", "full", "unknown"], rows, of: 0, cards: false }
            .render(&mut silent);
        assert!(
            !silent.contains("empty")
                && !silent.contains("unknown")
                && silent.contains("full")
                && silent.matches("<td").count() == 2,
            "{silent}"
        );
        let mut none = String::new();
        Table { rows: Vec::new(), ..table }.render(&mut none);
        assert_eq!(none, "");
    }
}
