//! Pieces of what a terminal shows: columns, sizes, shares, durations, foreign text.

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

/// Foreign text on one line.
#[must_use]
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if ends_line(c) { '?' } else { c }).collect()
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
        assert_eq!(one_line("a\nb\u{1b}[2J\u{2028}c\u{85}d"), "a?b?[2J?c?d");
    }
}
