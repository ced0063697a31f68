//! Update logs as CSV: `source,updated_at` or `source,after,before`, or all of them where `updated_at` may be empty (as
//! in the table `updates`); `signal` may say true or false of the version that begins; further columns are ignored.
//!
//! A log is somebody else's file: rows may be out of order or repeated (counted, put right), and a row that cannot be
//! read is named by its line and left out, so that the caller decides whether to go on. Times are RFC 3339, or a date
//! with or without a time in the schedule's zone.

use std::collections::BTreeMap;
use std::io::{BufRead, Read as _};

use jiff::civil::DateTime;

use super::history::{History, Sequence};
use crate::model::{Timestamp, UpdatedAtSource};
use crate::stats::{Calendar, Update};

/// A log as read.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Ordered by source.
    pub histories: Vec<History>,
    pub rows: usize,
    /// Rows that say what an earlier one said.
    pub duplicates: usize,
    /// Rows earlier than the one before them of the same source.
    pub out_of_order: usize,
    pub bad: Vec<BadLine>,
}

/// A row that was left out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct BadLine {
    pub line: usize,
    pub problem: String,
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("line {line}: cannot read: {error}")]
    Read { line: usize, error: std::io::Error },
    #[error("line 1: no column 'updated_at', nor 'after' and 'before'; the columns are: {columns}")]
    Columns { columns: String },
    #[error("the log is empty: expected a header 'source,updated_at' or 'source,after,before'")]
    Empty,
    #[error("line {line}: a quoted field does not end")]
    Quote { line: usize },
    #[error("line {line}: a record of more than {LONGEST_RECORD} bytes")]
    Long { line: usize },
}

/// The longest record of a log, with all its lines.
const LONGEST_RECORD: usize = 1 << 20;

/// Where the columns are.
struct Columns {
    source: Option<usize>,
    updated_at: Option<usize>,
    interval: Option<(usize, usize)>,
    signal: Option<usize>,
}

impl Columns {
    fn of(header: &[String]) -> Result<Self, LogError> {
        let column = |names: &[&str]| header.iter().position(|h| names.contains(&h.as_str()));
        let columns = Self {
            // A table of updates has both columns. There the URL counts, since a version belongs to a URL.
            source: column(&["url"]).filter(|_| column(&["after"]).is_some()).or_else(|| column(&["source", "url"])),
            updated_at: column(&["updated_at"]),
            interval: column(&["after"]).zip(column(&["before"])),
            signal: column(&["signal"]),
        };
        if columns.updated_at.is_none() && columns.interval.is_none() {
            return Err(LogError::Columns { columns: header.join(", ") });
        }
        Ok(columns)
    }
}

/// Collects rows from any kind of log, as they come.
#[derive(Debug, Default)]
pub(crate) struct LogBuilder {
    log: Log,
    sources: BTreeMap<String, Vec<Update>>,
}

impl LogBuilder {
    /// One row of a source.
    pub(crate) fn push(&mut self, source: &str, update: Update) {
        self.log.rows += 1;
        if !self.sources.contains_key(source) {
            self.sources.insert(source.to_owned(), Vec::new());
        }
        let updates = self.sources.get_mut(source).expect("just made sure of");
        if updates.last().is_some_and(|last| update.central() < last.central()) {
            self.log.out_of_order += 1;
        }
        updates.push(update);
    }

    /// A row that cannot be used.
    pub(crate) fn reject(&mut self, line: usize, problem: String) {
        self.log.rows += 1;
        self.log.bad.push(BadLine { line, problem });
    }

    #[must_use]
    pub(crate) fn finish(mut self) -> Log {
        for (source, updates) in self.sources {
            let (sequence, duplicates) = Sequence::new(updates);
            self.log.duplicates += duplicates;
            self.log.histories.push(History::new(source, vec![sequence]));
        }
        self.log
    }
}

/// Reads a log; decompressing it is the caller's work. Times without an offset are read in the calendar's zone.
pub fn read(reader: impl BufRead, calendar: &Calendar) -> Result<Log, LogError> {
    let mut records = Records { reader, line: 0 };
    let Some((_, header)) = records.next(b',')? else {
        return Err(LogError::Empty);
    };
    let separator = match header.as_slice() {
        [only] if only.contains('\t') => b'\t',
        [only] if only.contains(';') => b';',
        _ => b',',
    };
    let header: Vec<String> = match header.as_slice() {
        [only] => only.split(char::from(separator)).map(clean).collect(),
        fields => fields.iter().map(clean).collect(),
    };
    let columns = Columns::of(&header)?;
    let mut builder = LogBuilder::default();
    while let Some((line, fields)) = records.next(separator)? {
        if fields.iter().all(|f| f.trim().is_empty()) {
            continue;
        }
        match read_row(&fields, &columns, calendar) {
            Ok((name, update)) => builder.push(name, update),
            Err(problem) => builder.reject(line, problem),
        }
    }
    Ok(builder.finish())
}

/// The same for rows that were read already, from a table; they are counted from 1.
pub(crate) fn read_rows(header: &[String], rows: &[Vec<String>], calendar: &Calendar) -> Result<Log, LogError> {
    let header: Vec<String> = header.iter().map(clean).collect();
    let columns = Columns::of(&header)?;
    let mut builder = LogBuilder::default();
    for (i, fields) in rows.iter().enumerate() {
        match read_row(fields, &columns, calendar) {
            Ok((name, update)) => builder.push(name, update),
            Err(problem) => builder.reject(i + 1, problem),
        }
    }
    Ok(builder.finish())
}

fn clean(field: impl AsRef<str>) -> String {
    field.as_ref().trim().trim_start_matches('\u{feff}').trim_matches('"').to_ascii_lowercase()
}

fn read_row<'a>(fields: &'a [String], columns: &Columns, calendar: &Calendar) -> Result<(&'a str, Update), String> {
    let field = |i: usize, name: &str| fields.get(i).map(|f| f.trim()).ok_or_else(|| format!("no field '{name}'"));
    let time = |i: usize, name: &str| {
        let text = field(i, name)?;
        parse_time(text, calendar)
            .ok_or_else(|| format!("'{text}' in '{name}' is no time: use RFC 3339, as 2024-03-01T12:00:00Z"))
    };
    let name = match columns.source {
        Some(i) => field(i, "source")?,
        None => "source",
    };
    if name.is_empty() {
        return Err("the source is empty".to_owned());
    }
    let filled = |i: &usize| fields.get(*i).is_some_and(|f| !f.trim().is_empty());
    let interval = columns.interval.filter(|(after, before)| filled(after) && filled(before));
    let moment = match (columns.updated_at, interval) {
        (Some(i), Some(_)) if !filled(&i) => None,
        (Some(i), _) => Some(time(i, "updated_at")?),
        (None, _) => None,
    };
    let (after, before) = match (columns.interval, moment) {
        (Some((after, before)), _) if interval.is_some() || moment.is_none() => {
            (time(after, "after")?, time(before, "before")?)
        }
        (_, Some(moment)) => (moment, moment),
        (_, None) => return Err("no time".to_owned()),
    };
    if after > before {
        return Err(format!("'after' ({after}) is later than 'before' ({before})"));
    }
    if moment.is_some_and(|m| m < after || m > before) {
        return Err("'updated_at' lies outside 'after' and 'before'".to_owned());
    }
    let signal = match columns.signal.and_then(|i| fields.get(i)).map(|f| f.trim().to_ascii_lowercase()).as_deref() {
        None | Some("") => None,
        Some("true" | "1" | "yes") => Some(true),
        Some("false" | "0" | "no") => Some(false),
        Some(other) => return Err(format!("'{other}' in 'signal' is neither true nor false")),
    };
    let update = Update {
        updated_at: moment,
        updated_at_source: moment.map(|_| UpdatedAtSource::Log),
        signal,
        ..Update::within(after, before)
    };
    Ok((name, update))
}

fn parse_time(text: &str, calendar: &Calendar) -> Option<Timestamp> {
    Timestamp::parse_rfc3339(text).or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        Timestamp::from_civil(civil, calendar.zone())
    })
}

/// All records of a small list, each with its line.
pub(super) fn records(reader: impl BufRead) -> Result<Vec<(usize, Vec<String>)>, LogError> {
    let mut records = Records { reader, line: 0 };
    std::iter::from_fn(|| records.next(b',').transpose()).collect()
}

/// Records of RFC 4180: quoted fields may hold separators, doubled quotes and line ends.
struct Records<R> {
    reader: R,
    line: usize,
}

impl<R: BufRead> Records<R> {
    /// The next record and the line it begins on.
    fn next(&mut self, separator: u8) -> Result<Option<(usize, Vec<String>)>, LogError> {
        let mut bytes = Vec::new();
        let first = self.line + 1;
        let mut quotes = 0;
        loop {
            let begin = bytes.len();
            // A file that unpacks to gigabytes without a line end must not fill the memory.
            let left = (LONGEST_RECORD + 1).saturating_sub(begin) as u64;
            let read = self.reader.by_ref().take(left).read_until(b'\n', &mut bytes);
            let read = read.map_err(|error| LogError::Read { line: self.line + 1, error })?;
            if bytes.len() > LONGEST_RECORD {
                return Err(LogError::Long { line: first });
            }
            if read == 0 {
                return if bytes.is_empty() { Ok(None) } else { Err(LogError::Quote { line: first }) };
            }
            self.line += 1;
            quotes += bytes[begin..].iter().filter(|byte| **byte == b'"').count();
            if quotes % 2 == 0 {
                break;
            }
        }
        while matches!(bytes.last(), Some(b'\n' | b'\r')) {
            bytes.pop();
        }
        Ok(Some((first, fields(&String::from_utf8_lossy(&bytes), char::from(separator)))))
    }
}

fn fields(record: &str, separator: char) -> Vec<String> {
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut chars = record.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            c if c == separator && !quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Log {
        read(text.as_bytes(), &Calendar::utc()).unwrap()
    }

    #[test]
    fn bad_rows_are_named_by_line_and_left_out() {
        let log = parse(
            "source,updated_at\na,2024-03-01T00:00:00Z\na,yesterday\n\na,2024-03-01T02:00:00+02:00\nb\n,2024-03-01T00:00:00Z\n\
             a,2024-02-29T00:00:00Z\na,2024-03-02 12:30:00\n",
        );
        assert_eq!(log.rows, 7);
        let lines: Vec<usize> = log.bad.iter().map(|b| b.line).collect();
        assert_eq!(lines, [3, 6, 7]);
        assert!(log.bad[0].to_string().starts_with("line 3: 'yesterday' in 'updated_at' is no time"));
        // 02:00+02:00 is midnight in UTC: a repeat.
        assert_eq!((log.duplicates, log.out_of_order), (1, 1));
        assert_eq!(log.histories.len(), 1);
        let times: Vec<String> =
            log.histories[0].sequences[0].updates.iter().map(|u| u.central().to_string()).collect();
        assert_eq!(times, ["2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z", "2024-03-02T12:30:00Z"]);
    }

    #[test]
    fn intervals_quotes_and_other_separators() {
        let log = parse(
            "\u{feff}\"source\",after,before,note\n\"x,\"\"y\"\"\nz\",2024-03-01T00:00:00Z,2024-03-02T00:00:00Z,n\n\
             q,2024-03-03T00:00:00Z,2024-03-02T00:00:00Z,n\n",
        );
        assert_eq!(log.histories[0].source, "x,\"y\"\nz");
        assert_eq!(log.histories[0].sequences[0].updates[0].width_s(), 86_400.0);
        assert_eq!(log.bad.len(), 1);
        assert_eq!(log.bad[0].line, 4);
        let log = parse("Updated_At;URL\n2024-03-01T00:00:00Z;http://a/\n");
        assert_eq!(log.histories[0].source, "http://a/");
        let log = parse("updated_at\n2024-03-01\n");
        assert_eq!(log.histories[0].source, "source");
    }

    #[test]
    fn rows_of_the_updates_table_are_read() {
        let log = parse(
            "url,after,before,updated_at,signal\na,2024-03-01T00:00:00Z,2024-03-02T00:00:00Z,,1\n\
             a,2024-03-02T00:00:00Z,2024-03-03T00:00:00Z,2024-03-02T07:00:00Z,false\n\
             a,2024-03-03T00:00:00Z,2024-03-04T00:00:00Z,2024-03-09T07:00:00Z,\na,,,,\na,,,2024-03-05T00:00:00Z,maybe\n",
        );
        let updates = &log.histories[0].sequences[0].updates;
        assert_eq!(updates.len(), 2);
        assert_eq!((updates[0].width_s(), updates[0].signal), (86_400.0, Some(true)));
        assert_eq!((updates[1].width_s(), updates[1].signal), (0.0, Some(false)));
        assert_eq!(updates[1].central().to_string(), "2024-03-02T07:00:00Z");
        assert_eq!(log.bad.iter().map(|b| b.line).collect::<Vec<_>>(), [4, 5, 6]);
    }

    #[test]
    fn a_record_without_end_is_an_error_before_it_is_read() {
        let endless = std::io::Read::chain(&b"source,updated_at\n"[..], std::io::repeat(b'x'));
        let error = read(std::io::BufReader::new(endless), &Calendar::utc()).unwrap_err().to_string();
        assert_eq!(error, "line 2: a record of more than 1048576 bytes");
        let quoted = "source,updated_at\n\"".to_owned() + &"\n".repeat(LONGEST_RECORD + 1);
        let error = read(quoted.as_bytes(), &Calendar::utc()).unwrap_err().to_string();
        assert!(error.starts_with("line 2: a record of more"), "{error}");
    }

    #[test]
    fn unusable_files_are_errors() {
        let error = |text: &str| read(text.as_bytes(), &Calendar::utc()).unwrap_err().to_string();
        assert!(error("").contains("empty"));
        assert!(error("a,b\n1,2\n").contains("the columns are: a, b"));
        assert!(error("source,updated_at\n\"a,2024").contains("line 2"));
    }

    #[test]
    fn local_times_are_read_in_the_zone() {
        let berlin = Calendar::new(jiff::tz::TimeZone::get("Europe/Berlin").unwrap());
        let log = read("updated_at\n2024-07-01T12:00:00\n".as_bytes(), &berlin).unwrap();
        assert_eq!(log.histories[0].sequences[0].updates[0].central().to_string(), "2024-07-01T10:00:00Z");
    }
}
