//! Mentions in short: what they say and where they stand, which is all that comparing them takes.

use std::ops::Range;

use arrow_array::{Array as _, Int64Array, RecordBatch, StringArray};

use super::{MentionSchema, all_numbers, all_texts};
use crate::extract::LabelColumn;
use crate::tables::record::ColumnError;

/// Mentions without the rest of their rows, in the columns that they were read from. They have no attributes.
#[derive(Debug, Default)]
pub(crate) struct ShortMentions {
    batches: Vec<ShortBatch>,
    len: usize,
}

#[derive(Debug)]
struct ShortBatch {
    /// Mentions before it.
    first: usize,
    start: Int64Array,
    text: StringArray,
    label: Option<StringArray>,
}

/// One of [`ShortMentions`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortMention<'a> {
    pub(crate) text: &'a str,
    /// `None` also if labels were not read.
    pub(crate) label: Option<&'a str>,
    pub(crate) start: i64,
}

impl ShortMention<'_> {
    /// A mention's text is what stands on the page.
    #[must_use]
    pub(crate) fn end(&self) -> i64 {
        self.start + i64::try_from(self.text.len()).unwrap_or(i64::MAX)
    }
}

impl ShortMentions {
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Some of them, in order.
    pub(crate) fn range(&self, range: Range<usize>) -> impl Iterator<Item = ShortMention<'_>> {
        let from = self.batches.partition_point(|batch| batch.first + batch.text.len() <= range.start);
        self.batches[from..].iter().take_while(move |batch| batch.first < range.end).flat_map(move |batch| {
            let rows = range.start.max(batch.first)..range.end.min(batch.first + batch.text.len());
            rows.map(move |row| batch.get(row - batch.first))
        })
    }
}

impl ShortBatch {
    fn get(&self, i: usize) -> ShortMention<'_> {
        let label = self.label.as_ref().filter(|label| !label.is_null(i)).map(|label| label.value(i));
        ShortMention { text: self.text.value(i), label, start: self.start.value(i) }
    }
}

impl MentionSchema {
    /// The columns that mentions in short are read from; `None` where their attributes belong to what they say.
    #[must_use]
    pub(crate) fn short_columns(&self, labels: bool) -> Option<Vec<&'static str>> {
        let label = self.label.filter(|_| labels).map(LabelColumn::as_str);
        self.attributes.is_empty().then(|| ["start", "text"].into_iter().chain(label).collect())
    }

    /// Adds the mentions of a batch with these columns.
    pub(crate) fn add_short(&self, batch: &RecordBatch, into: &mut ShortMentions) -> Result<(), ColumnError> {
        let (start, text) = (all_numbers(batch, "start")?, all_texts(batch, "text")?);
        let label = self.labels(batch);
        let first = into.len;
        into.len += batch.num_rows();
        into.batches.push(ShortBatch { first, start, text, label });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::MentionRow;
    use super::super::tests::row;
    use super::*;

    #[test]
    fn mentions_in_short_are_those_of_the_rows() {
        let schema = MentionSchema { label: Some(LabelColumn::Pattern), attributes: Vec::new() };
        let rows: Vec<MentionRow> = (0..10).map(|i| row(i, Vec::new())).collect();
        for labels in [true, false] {
            let mut short = ShortMentions::default();
            for rows in rows.chunks(3) {
                let batch = schema.encode(rows);
                let columns = schema.short_columns(labels).unwrap();
                let indices: Vec<usize> = columns.iter().map(|name| batch.schema().index_of(name).unwrap()).collect();
                schema.add_short(&batch.project(&indices).unwrap(), &mut short).unwrap();
            }
            assert_eq!(short.len(), 10);
            for range in [0..10, 2..3, 2..9, 6..6, 9..10] {
                let expected = rows[range.clone()].iter();
                let expected: Vec<_> = expected
                    .map(|row| (row.text.as_str(), row.label.as_deref().filter(|_| labels), row.start, row.end))
                    .collect();
                let found: Vec<_> = short.range(range).map(|one| (one.text, one.label, one.start, one.end())).collect();
                assert_eq!(found, expected);
            }
        }
    }
}
