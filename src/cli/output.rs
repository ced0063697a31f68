//! Data on stdout.

use std::io::Write as _;

use serde::Serialize;

use super::outcome::Outcome;

pub(super) fn bytes(bytes: &[u8]) -> anyhow::Result<Outcome> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()?;
    Ok(Outcome::Done)
}

pub(super) fn text(text: &str) -> anyhow::Result<Outcome> {
    bytes(text.as_bytes())
}

pub(super) fn json<T: Serialize>(value: &T) -> anyhow::Result<Outcome> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    bytes(&line)
}

/// Rows as columns of text: the first column to the left, numbers to the right.
pub(super) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
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

/// Bytes for people.
pub(super) fn size(bytes: u64) -> String {
    indicatif::DecimalBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_line_up() {
        let rows = vec![vec!["a".to_owned(), "12".to_owned()], vec!["bcd".to_owned(), "3".to_owned()]];
        assert_eq!(super::table(&["x", "n"], &rows), "x     n\na    12\nbcd   3\n");
    }
}
