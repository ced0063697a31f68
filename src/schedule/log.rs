//! Update logs as CSV: `source,updated_at` or `source,after,before`, or all of them where `updated_at` may be empty (as
//! in the table `updates`); `signal` may say true or false of the version that begins; further columns are ignored.
//!
//! A log is somebody else's file: rows may be out of order or repeated (counted, put right), and a row that cannot be
//! read is named by its line and left out, so that the caller decides whether to go on. Times are RFC 3339, or a date
//! with or without a time in the schedule's zone.

use std::collections::{BTreeMap, VecDeque};
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
    #[error("line {line}: {UNENDED}")]
    Quote { line: usize },
    #[error("line {line}: a record of more than {LONGEST_RECORD} bytes")]
    Long { line: usize },
}

/// The longest record of a log, with all its lines.
const LONGEST_RECORD: usize = 1 << 20;

const UNENDED: &str = "a quoted field does not end";

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
    let mut records = Records::new(reader);
    let Some((line, header)) = records.next(b',')? else {
        return Err(LogError::Empty);
    };
    let header = header.ok_or(LogError::Quote { line })?;
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
        let Some(fields) = fields else {
            builder.reject(line, UNENDED.to_owned());
            records.give_back();
            continue;
        };
        if fields.iter().all(|f| f.trim().is_empty()) {
            continue;
        }
        match read_row(&fields, &columns, calendar) {
            Ok((name, update)) => builder.push(name, update),
            Err(problem) => {
                builder.reject(line, problem);
                // The lines may be those between two stray quotes: each is looked at for itself.
                records.give_back();
            }
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
    let mut records = Records::new(reader);
    let mut all = Vec::new();
    while let Some((line, fields)) = records.next(b',')? {
        all.push((line, fields.ok_or(LogError::Quote { line })?));
    }
    Ok(all)
}

/// A record's first line and its fields; no fields where a quote in it does not end.
type Placed = (usize, Option<Vec<String>>);

/// Records of RFC 4180: quoted fields may hold separators, doubled quotes and line ends.
struct Records<R> {
    reader: R,
    /// Lines before the next one.
    line: usize,
    /// Lines that were read already, and are to be looked at again.
    ahead: VecDeque<Vec<u8>>,
    /// The lines of the record at hand but its first.
    further: Vec<Vec<u8>>,
}

impl<R: BufRead> Records<R> {
    fn new(reader: R) -> Self {
        Self { reader, line: 0, ahead: VecDeque::new(), further: Vec::new() }
    }

    /// The next record.
    fn next(&mut self, separator: u8) -> Result<Option<Placed>, LogError> {
        self.further.clear();
        let line = self.line + 1;
        let Some(mut bytes) = self.next_line(LONGEST_RECORD)? else { return Ok(None) };
        if bytes.len() > LONGEST_RECORD {
            return Err(LogError::Long { line });
        }
        let mut is_open = has_odd_quotes(&bytes);
        let mut is_whole = true;
        while is_open && is_whole {
            match self.next_line(LONGEST_RECORD - bytes.len())? {
                Some(further) => {
                    bytes.extend_from_slice(&further);
                    is_open ^= has_odd_quotes(&further);
                    is_whole = bytes.len() <= LONGEST_RECORD;
                    self.further.push(further);
                }
                None => is_whole = false,
            }
        }
        while matches!(bytes.last(), Some(b'\n' | b'\r')) {
            bytes.pop();
        }
        let record = String::from_utf8_lossy(&bytes);
        // What goes over several lines has to be well quoted: else a stray quote would join lines that are good alone.
        let is_good = is_whole && (self.further.is_empty() || is_well_quoted(&record, char::from(separator)));
        Ok(Some((line, is_good.then(|| fields(&record, char::from(separator))))))
    }

    /// The next line with its end; of one with more than `most` bytes perhaps only the beginning, which is longer than that.
    fn next_line(&mut self, most: usize) -> Result<Option<Vec<u8>>, LogError> {
        let mut line = self.ahead.pop_front().unwrap_or_default();
        if !line.ends_with(b"\n") {
            // A file that unpacks to gigabytes without a line end must not fill the memory.
            let left = (most + 1).saturating_sub(line.len()) as u64;
            let read = self.reader.by_ref().take(left).read_until(b'\n', &mut line);
            read.map_err(|error| LogError::Read { line: self.line + 1, error })?;
        }
        self.line += usize::from(!line.is_empty());
        Ok((!line.is_empty()).then_some(line))
    }

    /// Goes on behind the first line of the record at hand.
    fn give_back(&mut self) {
        self.line -= self.further.len();
        for line in self.further.drain(..).rev() {
            self.ahead.push_front(line);
        }
    }
}

fn has_odd_quotes(line: &[u8]) -> bool {
    line.iter().filter(|byte| **byte == b'"').count() % 2 == 1
}

/// Whether every quoted field begins and ends with its quotes, blanks around them aside.
fn is_well_quoted(record: &str, separator: char) -> bool {
    #[derive(PartialEq)]
    enum At {
        Begin,
        Bare,
        Quoted,
        Closed,
    }
    let mut at = At::Begin;
    let mut chars = record.chars().peekable();
    while let Some(c) = chars.next() {
        at = match (at, c) {
            (At::Quoted, '"') if chars.peek() == Some(&'"') => {
                chars.next();
                At::Quoted
            }
            (At::Quoted, '"') => At::Closed,
            (At::Quoted, _) | (At::Begin, '"') => At::Quoted,
            (_, '"') => return false,
            (_, c) if c == separator => At::Begin,
            (at, ' ') => at,
            (At::Closed, _) => return false,
            _ => At::Bare,
        };
    }
    at != At::Quoted
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
    use proptest::prelude::*;

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
        let quoted = std::io::Read::chain(&b"source,updated_at\n\"a\n"[..], std::io::repeat(b'x'));
        let error = read(std::io::BufReader::new(quoted), &Calendar::utc()).unwrap_err().to_string();
        assert_eq!(error, "line 3: a record of more than 1048576 bytes");
    }

    #[test]
    fn a_quote_that_does_not_end_costs_its_line_alone() {
        let good = "a,2024-03-01T00:00:00Z";
        let log = parse(&format!("source,updated_at\n{good}\na,\"2024-03-02T00:00:00Z\n{good}\nb,2024-03-03\n"));
        assert_eq!((log.rows, log.duplicates), (4, 1));
        assert_eq!(log.bad, [BadLine { line: 3, problem: UNENDED.to_owned() }]);
        assert_eq!(log.histories.len(), 2);
        // Also where the rest of the log is longer than a record may be.
        let many = "b,2024-03-03\n".repeat(LONGEST_RECORD / 10);
        let log = parse(&format!("source,updated_at\n\"a,2024-03-02T00:00:00Z\n{many}"));
        assert_eq!((log.rows, log.bad.len(), log.bad[0].line), (LONGEST_RECORD / 10 + 1, 1, 2));
    }

    #[test]
    fn lines_between_two_stray_quotes_are_read() {
        let row = "a,2024-03-01T00:00:00Z\n";
        for (first, last) in [
            ("a,\"2024-03-01\n", "b,\"2024-03-01\n"),
            ("\"a,2024-03-01\n", "b,2024-03-01\"\n"),
            ("a\",2024-03-01\n", "\"b,2024-03-01\n"),
            ("5\" pipe,2024-03-01\n", "6\" pipe,2024-03-01\n"),
        ] {
            let log = parse(&format!("source,updated_at\n{row}{first}{row}{row}{last}{row}"));
            assert_eq!(log.bad.iter().map(|bad| bad.line).collect::<Vec<_>>(), [3, 6], "{first}{last}");
            assert_eq!((log.rows, log.duplicates, log.histories.len()), (6, 3, 1));
        }
    }

    proptest! {
        /// Every line is a row of its own: a damaged one is named, and no other is lost.
        #[test]
        fn stray_quotes_cost_the_lines_they_stand_in(
            lines in prop::collection::vec(prop::option::weighted(0.2, 0..24_usize), 0..30),
            quoted in any::<bool>(),
        ) {
            let row = |i: usize| {
                let day = i + 1;
                if quoted { format!("\"s{i:02}\",2024-03-{day:02}T00:00") } else { format!("s{i:02},2024-03-{day:02}T00:00:00Z") }
            };
            let mut text = "source,updated_at\n".to_owned();
            for (i, stray) in lines.iter().enumerate() {
                let mut line = row(i);
                // Not behind the row: there two of them are what a quoted field looks like.
                if let Some(at) = stray {
                    line.insert((*at).clamp(5, line.len() - 1), '"');
                }
                text += &(line + "\n");
            }
            let log = parse(&text);
            let bad: Vec<usize> = log.bad.iter().map(|bad| bad.line).collect();
            let damaged: Vec<usize> = (0..lines.len()).filter(|i| lines[*i].is_some()).map(|i| i + 2).collect();
            prop_assert_eq!(bad, damaged);
            let kept: Vec<String> = log.histories.iter().map(|history| history.source.clone()).collect();
            let good: Vec<String> = (0..lines.len()).filter(|i| lines[*i].is_none()).map(|i| format!("s{i:02}")).collect();
            prop_assert_eq!(kept, good);
        }

        /// Whatever stands between quotes is read as it was written.
        #[test]
        fn line_ends_within_quotes_are_read(names in prop::collection::btree_set("[a-c\"\n, ]{0,6}x", 0..8)) {
            let mut text = "source,updated_at\n".to_owned();
            for name in &names {
                text += &format!("\"{}\",2024-03-01\n", name.replace('"', "\"\""));
            }
            let log = parse(&text);
            prop_assert_eq!(&log.bad, &[]);
            let read: std::collections::BTreeSet<String> = log.histories.iter().map(|history| history.source.clone()).collect();
            let written: std::collections::BTreeSet<String> = names.iter().map(|name| name.trim().to_owned()).collect();
            prop_assert_eq!(read, written);
        }
    }

    #[test]
    fn unusable_files_are_errors() {
        let error = |text: &str| read(text.as_bytes(), &Calendar::utc()).unwrap_err().to_string();
        assert!(error("").contains("empty"));
        assert!(error("a,b\n1,2\n").contains("the columns are: a, b"));
        assert!(error("source,\"updated_at\na,2024").contains("line 1: a quoted field"));
    }

    #[test]
    fn local_times_are_read_in_the_zone() {
        let berlin = Calendar::new(jiff::tz::TimeZone::get("Europe/Berlin").unwrap());
        let log = read("updated_at\n2024-07-01T12:00:00\n".as_bytes(), &berlin).unwrap();
        assert_eq!(log.histories[0].sequences[0].updates[0].central().to_string(), "2024-07-01T10:00:00Z");
    }
}
