//! Mentions that a night takes over without a look at them: they go from table to table column by column.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::{Array as _, ArrayRef, Int64Array, RecordBatch, StringArray};

use super::{MentionRow, MentionSchema, all_numbers, all_texts, cells};
use crate::extract::{LabelColumn, Origin};
use crate::tables::record::ColumnError;

/// The mentions of an extractor in a shard, in the order of its table: rows, and between them some that are taken over column
/// by column from where they were read.
#[derive(Debug, Default)]
pub(crate) struct Mentions {
    pub(crate) rows: Vec<MentionRow>,
    carried: Vec<Carried>,
}

#[derive(Debug)]
struct Carried {
    /// How many of the rows come before it.
    before: usize,
    from: Arc<ReadMentions>,
    rows: Range<usize>,
}

/// Mentions as they were read. They have no attributes.
#[derive(Debug)]
pub(crate) struct ReadMentions {
    url: StringArray,
    start: Int64Array,
    end: Int64Array,
    text: StringArray,
    label: Option<StringArray>,
    since: StringArray,
}

impl Mentions {
    #[must_use]
    pub(crate) fn of(rows: Vec<MentionRow>) -> Self {
        Self { rows, carried: Vec::new() }
    }

    /// Adds mentions of another snapshot, as copied ones.
    pub(crate) fn carry(&mut self, from: &Arc<ReadMentions>, rows: Range<usize>) {
        let before = self.rows.len();
        match self.carried.last_mut() {
            Some(last) if last.before == before && last.rows.end == rows.start && Arc::ptr_eq(&last.from, from) => {
                last.rows.end = rows.end;
            }
            _ => self.carried.push(Carried { before, from: Arc::clone(from), rows }),
        }
    }

    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.rows.len() + self.carried.iter().map(|carried| carried.rows.len()).sum::<usize>()
    }

    /// Rows and carried mentions in their order.
    fn pieces(&self) -> impl Iterator<Item = MentionPiece<'_>> + Clone {
        let mut next = 0;
        let pieces = self.carried.iter().flat_map(move |carried| {
            let rows = &self.rows[next..carried.before];
            next = carried.before;
            [MentionPiece::Rows(rows), MentionPiece::Carried(&carried.from, carried.rows.clone())]
        });
        let rest = self.carried.last().map_or(0, |last| last.before);
        pieces.chain([MentionPiece::Rows(&self.rows[rest..])])
    }
}

#[derive(Clone)]
enum MentionPiece<'m> {
    Rows(&'m [MentionRow]),
    Carried(&'m ReadMentions, Range<usize>),
}

impl MentionSchema {
    /// The columns that mentions are carried by; `None` where they have attributes.
    #[must_use]
    pub(crate) fn carried_columns(&self) -> Option<Vec<&'static str>> {
        let label = self.label.map(LabelColumn::as_str);
        self.attributes.is_empty().then(|| ["url", "start", "end", "text", "since"].into_iter().chain(label).collect())
    }

    /// The mentions of a batch with these columns.
    pub(crate) fn read(&self, batch: &RecordBatch) -> Result<ReadMentions, ColumnError> {
        Ok(ReadMentions {
            url: all_texts(batch, "url")?,
            start: all_numbers(batch, "start")?,
            end: all_numbers(batch, "end")?,
            text: all_texts(batch, "text")?,
            label: self.labels(batch),
            since: all_texts(batch, "since")?,
        })
    }

    /// All mentions of a shard, in batches of so many rows at most. `whole`: of all that are carried.
    #[must_use]
    pub(crate) fn encode_all(&self, mentions: &Mentions, whole: bool, most: usize) -> Vec<RecordBatch> {
        if mentions.carried.is_empty() {
            return mentions.rows.chunks(most).map(|rows| self.encode(rows)).collect();
        }
        let all = self.encode_pieces(mentions, whole);
        let starts = (0..all.num_rows()).step_by(most);
        starts.map(|start| all.slice(start, most.min(all.num_rows() - start))).collect()
    }

    fn encode_pieces(&self, mentions: &Mentions, whole: bool) -> RecordBatch {
        let texts = |of_row: fn(&MentionRow) -> Option<&str>, of_read: fn(&ReadMentions) -> Option<&StringArray>| {
            joined_texts(mentions, of_row, of_read)
        };
        let numbers = |of_row: fn(&MentionRow) -> i64, of_read: fn(&ReadMentions) -> &Int64Array| -> ArrayRef {
            let mut builder = Int64Builder::with_capacity(mentions.len());
            mentions.pieces().for_each(|piece| match piece {
                MentionPiece::Rows(rows) => rows.iter().for_each(|row| builder.append_value(of_row(row))),
                MentionPiece::Carried(read, rows) => builder.append_slice(&of_read(read).values()[rows]),
            });
            Arc::new(builder.finish())
        };
        let mut arrays = vec![
            texts(|row| Some(&row.url), |read| Some(&read.url)),
            numbers(|row| row.start, |read| &read.start),
            numbers(|row| row.end, |read| &read.end),
            texts(|row| Some(&row.text), |read| Some(&read.text)),
        ];
        if self.label.is_some() {
            arrays.push(texts(|row| row.label.as_deref(), |read| read.label.as_ref()));
        }
        let flags = |of_row: fn(&MentionRow) -> bool, of_carried: bool| {
            let mut flags = Vec::with_capacity(mentions.len());
            mentions.pieces().for_each(|piece| match piece {
                MentionPiece::Rows(rows) => flags.extend(rows.iter().map(of_row)),
                MentionPiece::Carried(_, rows) => flags.extend(rows.map(|_| of_carried)),
            });
            flags
        };
        let origin = |copied| if copied { Origin::Copied } else { Origin::Extracted };
        let origins: Vec<Origin> = flags(|row| row.copied, true).into_iter().map(origin).collect();
        arrays.push(cells(origins.iter()));
        arrays.push(texts(|row| Some(row.since.as_str()), |read| Some(&read.since)));
        arrays.push(cells(flags(|row| row.whole, whole).iter()));
        RecordBatch::try_new(self.arrow(), arrays).expect("arrays follow the schema")
    }
}

/// A column of texts, which may be absent.
fn joined_texts(
    mentions: &Mentions,
    of_row: fn(&MentionRow) -> Option<&str>,
    of_read: fn(&ReadMentions) -> Option<&StringArray>,
) -> ArrayRef {
    let length = |text: Option<&str>| text.map_or(0, str::len);
    let bytes = |piece: MentionPiece<'_>| match piece {
        MentionPiece::Rows(rows) => rows.iter().map(|row| length(of_row(row))).sum(),
        MentionPiece::Carried(read, rows) => of_read(read).map_or(0, |texts| {
            let offsets = texts.value_offsets();
            usize::try_from(offsets[rows.end] - offsets[rows.start]).unwrap_or(0)
        }),
    };
    let mut builder = StringBuilder::with_capacity(mentions.len(), mentions.pieces().map(bytes).sum());
    mentions.pieces().for_each(|piece| match piece {
        MentionPiece::Rows(rows) => rows.iter().for_each(|row| builder.append_option(of_row(row))),
        MentionPiece::Carried(read, rows) => match of_read(read) {
            Some(texts) => rows.for_each(|row| builder.append_option((!texts.is_null(row)).then(|| texts.value(row)))),
            None => rows.for_each(|_| builder.append_null()),
        },
    });
    Arc::new(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;

    #[test]
    fn carried_mentions_are_as_copied_rows() {
        let schema = MentionSchema { label: Some(LabelColumn::Pattern), attributes: Vec::new() };
        let rows: Vec<MentionRow> = (0..9).map(|i| row(i, Vec::new())).collect();
        let rows: Vec<MentionRow> = rows
            .into_iter()
            .map(|row| MentionRow {
                label: row.label.filter(|_| row.start % 4 != 1),
                text: row.start.to_string(),
                ..row
            })
            .collect();
        let read = Arc::new(schema.read(&schema.encode(&rows)).unwrap());
        let copied = |i: usize| MentionRow { copied: true, whole: true, ..rows[i].clone() };
        // Nothing but rows, rows at both ends, rows in between, nothing but what is carried.
        for pieces in [vec![], vec![(1, 2..4), (2, 4..5)], vec![(0, 0..3), (0, 3..5), (2, 8..9)], vec![(0, 1..9)]] {
            let own = if pieces == [(0, 1..9)] { 0 } else { 3 };
            let (mut mentions, mut expected) = (Mentions::default(), Vec::new());
            let mut left = pieces.into_iter().peekable();
            for i in 0..=own {
                while let Some((_, range)) = left.next_if(|(before, _)| *before == i) {
                    expected.extend(range.clone().map(copied));
                    mentions.carry(&read, range);
                }
                if i < own {
                    mentions.rows.push(row(100 + i64::from(i), Vec::new()));
                    expected.extend(mentions.rows.last().cloned());
                }
            }
            assert_eq!(mentions.len(), expected.len());
            for most in [2, 100] {
                let batches = schema.encode_all(&mentions, true, most);
                assert!(batches.iter().all(|batch| batch.num_rows() <= most));
                let decoded: Vec<MentionRow> = batches.iter().flat_map(|batch| schema.decode(batch).unwrap()).collect();
                assert_eq!(decoded, expected);
            }
        }
    }
}
