//! Rows of any question, for a terminal and for other programs.

use serde_json::Value;

use super::terminal::one_line;
use crate::model::closed_set::closed_set;

closed_set! {
    /// How rows are written.
    pub(crate) enum RowFormat: "format of rows" {
        /// Columns, long cells cut.
        Table = "table",
        Csv = "csv",
        /// An array of objects, one a line.
        Json = "json",
        Parquet = "parquet",
    }
}

/// How long a cell of a table is at most, in characters.
const CELL: usize = 80;

/// Rows as columns of text: numbers to the right, all else to the left, long cells cut.
#[must_use]
pub(crate) fn table(header: &[String], rows: impl Iterator<Item = Vec<Value>>) -> String {
    let rows: Vec<Vec<Value>> = rows.collect();
    let shown: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| cut(&one_line(&text(cell)))).collect()).collect();
    let width = |i: usize| shown.iter().map(|row| row[i].chars().count()).chain([header[i].chars().count()]).max();
    let widths: Vec<usize> = (0..header.len()).map(|i| width(i).unwrap_or(0)).collect();
    let right: Vec<bool> = (0..header.len())
        .map(|i| {
            rows.iter().all(|row| row[i].is_number() || row[i].is_null()) && rows.iter().any(|row| row[i].is_number())
        })
        .collect();
    let line = |cells: &[String]| {
        let mut line = String::new();
        for (i, cell) in cells.iter().enumerate() {
            let pad = " ".repeat(widths[i] - cell.chars().count());
            line.push_str(if i > 0 { "  " } else { "" });
            let (first, second) = if right[i] { (&pad, cell) } else { (cell, &pad) };
            line.push_str(first);
            line.push_str(second);
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    };
    let header: Vec<String> = header.iter().map(|name| one_line(name)).collect();
    let mut out = line(&header);
    out.extend(shown.iter().map(|row| line(row)));
    out
}

/// Rows as CSV. NULL is an empty cell, an empty text `""`; structs and lists are JSON.
#[must_use]
pub(crate) fn csv(header: &[String], rows: impl Iterator<Item = Vec<Value>>) -> String {
    let mut out = header.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",") + "\n";
    for row in rows {
        let cell = |value: &Value| match value {
            Value::Null => String::new(),
            value => quoted(&text(value)),
        };
        out.push_str(&row.iter().map(cell).collect::<Vec<_>>().join(","));
        out.push('\n');
    }
    out
}

/// Rows as one JSON array of objects, one a line.
#[must_use]
pub(crate) fn json(header: &[String], rows: impl Iterator<Item = Vec<Value>>) -> String {
    let member = |(name, cell): (&String, Value)| format!("{}:{cell}", Value::from(name.as_str()));
    let object = |row: Vec<Value>| format!("{{{}}}", header.iter().zip(row).map(member).collect::<Vec<_>>().join(","));
    let rows: Vec<String> = rows.map(object).collect();
    if rows.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", rows.join(",\n")) }
}

fn text(cell: &Value) -> String {
    match cell {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(CELL) {
        Some((end, _)) => text[..end].to_owned() + "…",
        None => text.to_owned(),
    }
}

fn quoted(text: &str) -> String {
    let plain = !text.is_empty() && !text.contains([',', '"', '\n', '\r']);
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample() -> (Vec<String>, Vec<Vec<Value>>) {
        let header = ["url", "n", "what"].map(str::to_owned).to_vec();
        (
            header,
            vec![vec![json!("a,\"b\"\u{1b}"), json!(12), json!({"text": "x"})], vec![json!(""), json!(3), Value::Null]],
        )
    }

    #[test]
    fn a_table_has_numbers_to_the_right_and_no_escapes() {
        let (header, rows) = sample();
        assert_eq!(
            table(&header, rows.into_iter()),
            "url      n  what\na,\"b\"?  12  {\"text\":\"x\"}\n         3  -\n"
        );
        let long = vec![vec![json!("é".repeat(CELL + 1))]];
        assert!(table(&["t".to_owned()], long.into_iter()).ends_with("é…\n"));
    }

    #[test]
    fn csv_and_json_hold_all_there_is() {
        let (header, rows) = sample();
        let csv = csv(&header, rows.clone().into_iter());
        assert_eq!(csv, "url,n,what\n\"a,\"\"b\"\"\u{1b}\",12,\"{\"\"text\"\":\"\"x\"\"}\"\n\"\",3,\n");
        let parsed: Vec<Value> = serde_json::from_str(&super::json(&header, rows.into_iter())).unwrap();
        assert_eq!(parsed[1], json!({"url": "", "n": 3, "what": null}));
        assert_eq!(super::json(&header, std::iter::empty()), "[]\n");
    }
}
