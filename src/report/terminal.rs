//! Pieces of what a terminal shows: columns, sizes, shares, durations, foreign text.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Rows as columns of text: the first column to the left, the others to the right, as numbers are read.
#[must_use]
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |i: usize| {
        let cells = rows.iter().map(|row| row[i].chars().count());
        cells.chain([header[i].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let mut line = String::new();
        for (i, (cell, width)) in cells.into_iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width - cell.chars().count());
            match i {
                0 => line.extend([cell, &pad]),
                _ => line.extend(["  ", &pad, cell]),
            }
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    };
    let mut out = line(header.to_vec());
    for row in rows {
        out.push_str(&line(row.iter().map(String::as_str).collect()));
    }
    out
}

/// So many of something, such as `1 page` or `3 pages`.
#[must_use]
pub(crate) fn count(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A number of bytes, such as `1.50 MB`.
#[must_use]
pub(crate) fn size(bytes: u64) -> String {
    indicatif::DecimalBytes(bytes).to_string()
}

/// A share, such as `0.973`; `-` if it is not known.
#[must_use]
pub(crate) fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |v| format!("{v:.3}"))
}

/// A duration, such as `1.5 h`; `-` if it is not known.
#[must_use]
pub(crate) fn duration(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".to_owned(),
        Some(s) if s < 120.0 => format!("{s:.0} s"),
        Some(s) if s < 7_200.0 => format!("{:.1} min", s / 60.0),
        Some(s) if s < 172_800.0 => format!("{:.1} h", s / 3_600.0),
        Some(s) => format!("{:.1} d", s / 86_400.0),
    }
}

/// Whether some reader of text takes a character for the end of a line: all control characters (some end lines, none
/// belongs on a terminal), and Unicode's separators of lines and paragraphs.
#[must_use]
pub(crate) fn ends_line(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Whether a character changes the direction in which what follows is shown: one text can look like another by them.
#[must_use]
pub(crate) fn is_directional(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Whether a character has no place on a terminal: it commands it, or makes what is shown look like something else.
#[must_use]
pub(crate) fn is_unfit(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t')) || is_directional(c)
}

/// Text for a terminal, whoever wrote it.
#[must_use]
pub(crate) fn fit(text: &str) -> Cow<'_, str> {
    match text.contains(is_unfit) {
        true => text.replace(is_unfit, "\u{fffd}").into(),
        false => text.into(),
    }
}

/// JSON for a terminal: the same value, with characters that have no place there written as escapes. Outside of strings
/// JSON has none of them.
#[must_use]
pub(crate) fn fit_json(json: String) -> String {
    if !json.contains(is_unfit) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        match c {
            c if is_unfit(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// Foreign text on one line: tabs and line ends are a space, whatever else has no place there a question mark.
#[must_use]
pub(crate) fn one_line(text: &str) -> String {
    let is_space = |c: char| matches!(c, '\t' | '\n' | '\r');
    let mut line = String::with_capacity(text.len());
    let mut spaced = false;
    for c in text.chars() {
        match c {
            c if is_space(c) && spaced => {}
            c if is_space(c) => line.push(' '),
            c if ends_line(c) || is_directional(c) => line.push('?'),
            c => line.push(c),
        }
        spaced = is_space(c);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = vec![vec!["a".to_owned(), "12".to_owned()], vec!["bcd".to_owned(), "3".to_owned()]];
        assert_eq!(table(&["x", "n"], &rows), "x     n\na    12\nbcd   3\n");
    }

    #[test]
    fn foreign_text_stays_on_its_line() {
        assert_eq!(one_line("a\nb\u{1b}[2J\u{2028}c\u{85}d\u{202e}e"), "a b?[2J?c?d?e");
    }

    #[test]
    fn tabs_and_line_ends_of_pages_are_a_space() {
        assert_eq!(one_line("Home\tDepartments\r\n\tResearch \u{8}x"), "Home Departments Research ?x");
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!([count(0, "page"), count(1, "page"), count(2, "page")], ["0 pages", "1 page", "2 pages"]);
    }

    #[test]
    fn nothing_commands_the_terminal() {
        let hostile = "a\u{1b}[2J\u{9b}31m\r\nb\tc é\u{202e}\u{2066}z";
        assert_eq!(fit(hostile), "a\u{fffd}[2J\u{fffd}31m\u{fffd}\nb\tc é\u{fffd}\u{fffd}z");
        assert!(matches!(fit("plain é\n"), Cow::Borrowed(_)));
        let json = serde_json::to_string(&[hostile]).unwrap();
        let shown = fit_json(json.clone());
        assert!(!shown.contains(is_unfit), "{shown}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), [hostile]);
    }
}
