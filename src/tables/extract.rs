//! Tables that `extract` writes. Mentions have one table per extractor, with a column per attribute, so their schema
//! is made at run time.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

use crate::extract::{LabelColumn, Origin, Status};
use crate::model::{Digest, MentionChange, SnapshotId};
use crate::plan::Served;
use crate::tables::record::{Cell, Column, ColumnError, Table, cell, column, record, text_column};

record! {
    /// What became of a page under an extractor.
    pub struct Extraction {
        url: Arc<str> = "page",
        extractor: Arc<str> = "extractor",
        status: Status = "ok, deferred, failed or timeout; a page that is not ok is never a source of mentions",
        error: Option<String> = "why it is not ok; the next run tries pages of the newest snapshot again",
        matcher: Served = "what its old regions were found by; equal: the text is the old one; units: equal lines, blocks or paragraphs were copied; none: from scratch",
        text_digest: Digest = "digest of the text that the mentions belong to",
        shown_digest: Option<Digest> = "digest of the title and URL that were shown along with the text; NULL: none were",
        fingerprint: Digest = "digest of the definition that found the mentions, with engines and text conversion; adopt = 'new-text' leaves earlier ones",
        bytes_extracted: i64 = "bytes of the page that the extractor was given; what several pages share counts for the first of them",
        mentions: i64 = "number of mentions; 0: none was found",
        copied: i64 = "how many of them were copied from the old page, or come from an answer that was there already",
        units_deferred: i64 = "units that were not asked about, because a budget was used up; the next run goes on with them",
        refused: i64 = "what answers told of that does not stand in the text; it was dropped",
        mentions_snapshot: Option<SnapshotId> = "snapshot whose partition of mentions/<extractor> has the rows; NULL: there are none",
        good_snapshot: Option<SnapshotId> = "newest snapshot in which this page was extracted well; NULL: none",
        whole: bool = "the extractor has a row for every page of the snapshot; else only for those of URLs that the snapshot touched",
    }
}

impl Table for Extraction {
    const NAME: &'static str = "extractions";
    const ABOUT: &'static str = "one row per page and extractor, so that none found and failed differ";
}

record! {
    /// How an extraction ended.
    pub struct ExtractionOutcome {
        extractor: Arc<str> = "",
        status: Status = "",
        error: Option<String> = "",
    }
}

record! {
    /// A request about a unit, and what came of it.
    pub struct AnswerRow {
        request: Digest = "digest of all that was sent",
        url: Arc<str> = "page that it was asked for first",
        unit_digest: Digest = "digest of the unit's text",
        unit_bytes: i64 = "length of the unit's text",
        answer: String = "as it was given; of a failure, why",
        input_tokens: Option<i64> = "tokens of the request, over all attempts; NULL: not counted",
        output_tokens: Option<i64> = "tokens of the answer, over all attempts; NULL: not counted",
        price: Option<f64> = "of all attempts; NULL: it has none",
        attempts: i64 = "how often it was sent",
        seconds: f64 = "from the first attempt to the answer",
        status: Status = "ok, or failed: there is no answer",
    }
}

/// The folder of the tables of answers.
pub(crate) const ANSWERS: &str = "answers";

/// Where the answers of an extractor lie, as a table's name.
#[must_use]
pub(crate) fn answers_of(extractor: &str) -> String {
    format!("{ANSWERS}/{extractor}")
}

record! {
    /// The newest good extraction of a page that is away, or failed since.
    pub struct AwayRow {
        url: String = "page",
        extractor: i64 = "the first 8 bytes of BLAKE3 of the extractor's name, as a number",
        alive: bool = "the page is there, but its extraction failed",
        good_snapshot: SnapshotId = "snapshot in which it was extracted well",
        mentions_snapshot: Option<SnapshotId> = "snapshot whose partition of mentions has the rows; NULL: there are none",
        mentions: i64 = "number of mentions",
        text_digest: Digest = "digest of the text that they belong to",
        shown_digest: Option<Digest> = "digest of the title and URL that were shown along with it; NULL: none were",
        fingerprint: Digest = "digest of the extractor's definition",
        deferred_snapshots: Option<String> = "snapshots since then, joined by commas, in which it lacked units; NULL: none",
    }
}

impl Table for AwayRow {
    const NAME: &'static str = "states/extractions";
    const ABOUT: &'static str =
        "written with every base: good extractions of pages that are away, or whose extraction failed since";
}

record! {
    /// A mention that came or went.
    pub struct MentionDelta {
        url: Arc<str> = "page",
        extractor: Arc<str> = "extractor",
        change: MentionChange = "added or deleted, against the snapshot before; compared by text and attributes, not by position",
        text: String = "text of the mention",
        start: i64 = "first byte in the new page's text, or in the old one's if deleted",
        end: i64 = "byte after the last",
        attributes: Option<String> = "its attributes as a JSON object, the text of each by its name, of a list an array of texts; NULL: it has none",
    }
}

impl Table for MentionDelta {
    const NAME: &'static str = "mention_deltas";
    const ABOUT: &'static str = "mentions added and deleted between this snapshot and the one before";
}

record! {
    /// Whether a mention came or went, and where.
    pub struct MentionChangedOn {
        url: String = "",
        extractor: String = "",
        change: MentionChange = "",
    }
}

record! {
    /// Whether a mention came or went.
    pub struct MentionChanged {
        change: MentionChange = "",
    }
}

/// The folder of the mentions tables.
pub(crate) const MENTIONS: &str = "mentions";

/// Where the mentions of an extractor lie, as a table's name.
#[must_use]
pub(crate) fn mentions_of(extractor: &str) -> String {
    format!("{MENTIONS}/{extractor}")
}

/// A row of a mentions table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MentionRow {
    pub url: Arc<str>,
    pub start: i64,
    pub end: i64,
    pub text: String,
    /// The pattern or term; `None` where an extractor has neither.
    pub label: Option<Arc<str>>,
    /// One per attribute: its pieces (just one unless it is a list), or `None` if it is absent.
    pub attributes: Vec<Option<Vec<PieceRow>>>,
    pub copied: bool,
    pub since: SnapshotId,
    pub whole: bool,
}

/// A part of a mention, with its place in the page if it stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PieceRow {
    pub text: String,
    pub span: Option<(i64, i64)>,
}

impl MentionRow {
    /// The texts of its attributes by their names, as a JSON object; `None` if its extractor has no attributes.
    #[must_use]
    pub(crate) fn attributes_json(&self, schema: &MentionSchema) -> Option<String> {
        let text = |piece: &PieceRow| serde_json::Value::from(piece.text.as_str());
        let value = |((name, many), pieces): (&(String, bool), &Option<Vec<PieceRow>>)| {
            let pieces = pieces.as_deref()?;
            let value = if *many { pieces.iter().map(text).collect() } else { text(pieces.first()?) };
            Some(format!("{}:{value}", serde_json::Value::from(name.as_str())))
        };
        let all: Vec<String> = schema.attributes.iter().zip(&self.attributes).filter_map(value).collect();
        (!schema.attributes.is_empty()).then(|| format!("{{{}}}", all.join(",")))
    }
}

/// The columns of an extractor's mentions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MentionSchema {
    /// The column that says what matched, if its mentions have labels.
    pub label: Option<LabelColumn>,
    /// Name, and whether it is a list.
    pub attributes: Vec<(String, bool)>,
}

/// Columns that every mentions table has, for the schema reference.
#[must_use]
pub(crate) fn mention_columns() -> Vec<Column> {
    let text = |name, nullable, description| Column { name, data_type: DataType::Utf8, nullable, description };
    let int = |name, description| Column { name, data_type: DataType::Int64, nullable: false, description };
    vec![
        text("url", false, "page"),
        int("start", "first byte of the whole match in the page's text"),
        int("end", "byte after the last"),
        text("text", false, "the whole match"),
        text("pattern", true, "the pattern that matched (regex only; a dictionary has `term` instead)"),
        text(
            "origin",
            false,
            "extracted: found in this snapshot; copied: taken over from the old page, or from an answer kept about the same text",
        ),
        text(
            "since",
            false,
            "snapshot where an extractor last looked at this text; for since when it stands there see mention_deltas",
        ),
        Column {
            name: "whole",
            data_type: DataType::Boolean,
            nullable: false,
            description: "the partition has the mentions of all pages of the snapshot; else of those that it touched",
        },
    ]
}

fn piece_fields() -> Fields {
    Fields::from(vec![
        Field::new("text", DataType::Utf8, false),
        Field::new("start", DataType::Int64, true),
        Field::new("end", DataType::Int64, true),
    ])
}

impl MentionSchema {
    /// The columns that a mentions table was written with.
    #[must_use]
    pub fn of(schema: &Schema) -> Self {
        let label = LabelColumn::ALL.into_iter().find(|label| schema.field_with_name(label.as_str()).is_ok());
        let attribute = |field: &Arc<Field>| match field.data_type() {
            DataType::Struct(_) => Some((field.name().clone(), false)),
            DataType::List(_) => Some((field.name().clone(), true)),
            _ => None,
        };
        Self { label, attributes: schema.fields().iter().filter_map(attribute).collect() }
    }

    #[must_use]
    pub fn arrow(&self) -> SchemaRef {
        let described = |field: Field, text: &str| {
            field.with_metadata(HashMap::from([("description".to_owned(), text.to_owned())]))
        };
        let mut fields: Vec<Field> = Vec::new();
        for column in mention_columns() {
            let name = match (column.name, self.label) {
                ("pattern", None) => continue,
                ("pattern", Some(label)) => label.as_str(),
                (name, _) => name,
            };
            if name == "origin" {
                for (name, many) in &self.attributes {
                    let piece = DataType::Struct(piece_fields());
                    let data_type =
                        if *many { DataType::List(Arc::new(Field::new("item", piece, false))) } else { piece };
                    fields.push(described(
                        Field::new(name, data_type, true),
                        "attribute: its text and place in the page",
                    ));
                }
            }
            fields.push(described(Field::new(name, column.data_type, column.nullable), column.description));
        }
        Arc::new(Schema::new(fields))
    }

    #[must_use]
    pub fn encode(&self, rows: &[MentionRow]) -> RecordBatch {
        let mut arrays: Vec<ArrayRef> = vec![
            cells(rows.iter().map(|row| &row.url)),
            cells(rows.iter().map(|row| &row.start)),
            cells(rows.iter().map(|row| &row.end)),
            cells(rows.iter().map(|row| &row.text)),
        ];
        if self.label.is_some() {
            arrays.push(cells(rows.iter().map(|row| &row.label)));
        }
        for (i, (_, many)) in self.attributes.iter().enumerate() {
            arrays.push(attribute(rows, i, *many));
        }
        let origin = rows.iter().map(|row| if row.copied { Origin::Copied } else { Origin::Extracted });
        arrays.push(cells(origin.collect::<Vec<_>>().iter()));
        arrays.push(cells(rows.iter().map(|row| &row.since)));
        arrays.push(cells(rows.iter().map(|row| &row.whole)));
        RecordBatch::try_new(self.arrow(), arrays).expect("arrays follow the schema")
    }

    /// Rows of a batch; attributes and the label column that it does not have are absent.
    pub fn decode(&self, batch: &RecordBatch) -> Result<Vec<MentionRow>, ColumnError> {
        let url = column::<Arc<str>>(batch, "url")?;
        let (start, end) = (column::<i64>(batch, "start")?, column::<i64>(batch, "end")?);
        let text = column::<String>(batch, "text")?;
        let origin = column::<Origin>(batch, "origin")?;
        let since = column::<SnapshotId>(batch, "since")?;
        let whole = column::<bool>(batch, "whole")?;
        let label = self.label.and_then(|label| column::<Option<Arc<str>>>(batch, label.as_str()).ok());
        let attributes: Vec<Option<&ArrayRef>> =
            self.attributes.iter().map(|(name, _)| batch.column_by_name(name)).collect();
        (0..batch.num_rows())
            .map(|i| {
                Ok(MentionRow {
                    url: cell(&url, "url", i)?,
                    start: cell(&start, "start", i)?,
                    end: cell(&end, "end", i)?,
                    text: cell(&text, "text", i)?,
                    label: match &label {
                        Some(array) => cell(array, "label", i)?,
                        None => None,
                    },
                    attributes: attributes.iter().map(|array| array.and_then(|a| pieces(a, i))).collect(),
                    copied: cell::<Origin>(&origin, "origin", i)? == Origin::Copied,
                    since: cell(&since, "since", i)?,
                    whole: cell(&whole, "whole", i)?,
                })
            })
            .collect()
    }
}

/// The mentions of an extractor in a shard, in the order of its table: rows, and between them some that are taken over column
/// by column from where they were read.
#[derive(Debug, Default)]
pub struct Mentions {
    pub rows: Vec<MentionRow>,
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
pub struct ReadMentions {
    url: StringArray,
    start: Int64Array,
    end: Int64Array,
    text: StringArray,
    label: Option<StringArray>,
    since: StringArray,
}

impl Mentions {
    #[must_use]
    pub fn of(rows: Vec<MentionRow>) -> Self {
        Self { rows, carried: Vec::new() }
    }

    /// Adds mentions of another snapshot, as copied ones.
    pub fn carry(&mut self, from: &Arc<ReadMentions>, rows: Range<usize>) {
        let before = self.rows.len();
        match self.carried.last_mut() {
            Some(last) if last.before == before && last.rows.end == rows.start && Arc::ptr_eq(&last.from, from) => {
                last.rows.end = rows.end;
            }
            _ => self.carried.push(Carried { before, from: Arc::clone(from), rows }),
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
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
    pub fn carried_columns(&self) -> Option<Vec<&'static str>> {
        let label = self.label.map(LabelColumn::as_str);
        self.attributes.is_empty().then(|| ["url", "start", "end", "text", "since"].into_iter().chain(label).collect())
    }

    /// The mentions of a batch with these columns.
    pub fn read(&self, batch: &RecordBatch) -> Result<ReadMentions, ColumnError> {
        let text = |name| Ok(without_gaps(name, text_column(batch, name)?)?.clone());
        let number = |name| Ok(without_gaps(name, &**column::<i64>(batch, name)?)?.as_primitive::<Int64Type>().clone());
        let label = self.label.and_then(|label| text_column(batch, label.as_str()).ok()).cloned();
        Ok(ReadMentions {
            url: text("url")?,
            start: number("start")?,
            end: number("end")?,
            text: text("text")?,
            label,
            since: text("since")?,
        })
    }

    /// All mentions of a shard, in batches of so many rows at most. `whole`: of all that are carried.
    #[must_use]
    pub fn encode_all(&self, mentions: &Mentions, whole: bool, most: usize) -> Vec<RecordBatch> {
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

/// A column of which every row has a value.
fn without_gaps<'a, A: Array + ?Sized>(name: &str, column: &'a A) -> Result<&'a A, ColumnError> {
    if column.null_count() > 0 {
        return Err(ColumnError { column: name.to_owned(), problem: "has rows without a value".to_owned() });
    }
    Ok(column)
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

/// Mentions in short: what they say and where they stand, without the rest of their rows. They have no attributes. They
/// stay in the columns that they were read from.
#[derive(Debug, Default)]
pub struct ShortMentions {
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
pub struct ShortMention<'a> {
    pub text: &'a str,
    /// `None` also if labels were not read.
    pub label: Option<&'a str>,
    pub start: i64,
}

impl ShortMention<'_> {
    /// A mention's text is what stands on the page.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.start + i64::try_from(self.text.len()).unwrap_or(i64::MAX)
    }
}

impl ShortMentions {
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Some of them, in order.
    pub fn range(&self, range: Range<usize>) -> impl Iterator<Item = ShortMention<'_>> {
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
    pub fn short_columns(&self, labels: bool) -> Option<Vec<&'static str>> {
        let label = self.label.filter(|_| labels).map(LabelColumn::as_str);
        self.attributes.is_empty().then(|| ["start", "text"].into_iter().chain(label).collect())
    }

    /// Adds the mentions of a batch with these columns.
    pub fn add_short(&self, batch: &RecordBatch, into: &mut ShortMentions) -> Result<(), ColumnError> {
        let start = without_gaps("start", &**column::<i64>(batch, "start")?)?.as_primitive::<Int64Type>().clone();
        let text = without_gaps("text", text_column(batch, "text")?)?.clone();
        let label = self.label.and_then(|label| text_column(batch, label.as_str()).ok()).cloned();
        let first = into.len;
        into.len += batch.num_rows();
        into.batches.push(ShortBatch { first, start, text, label });
        Ok(())
    }
}

fn cells<'a, T: Cell + 'a>(values: impl Iterator<Item = &'a T> + Clone) -> ArrayRef {
    let (rows, size) = values.clone().fold((0, 0), |(rows, size), value| (rows + 1, size + value.size()));
    let mut builder = T::builder(rows, size);
    values.for_each(|value| value.push(&mut builder));
    T::finish(builder)
}

/// The column of attribute `i`: a struct, or a list of them.
fn attribute(rows: &[MentionRow], i: usize, many: bool) -> ArrayRef {
    let (mut text, mut start, mut end) = (StringBuilder::new(), Int64Builder::new(), Int64Builder::new());
    let mut push = |piece: Option<&PieceRow>| {
        text.append_value(piece.map_or("", |piece| &piece.text));
        let span = piece.and_then(|piece| piece.span);
        start.append_option(span.map(|(start, _)| start));
        end.append_option(span.map(|(_, end)| end));
    };
    let mut present: Vec<bool> = Vec::with_capacity(rows.len());
    let mut lengths: Vec<usize> = Vec::with_capacity(rows.len());
    for row in rows {
        let pieces = row.attributes[i].as_deref();
        present.push(pieces.is_some());
        let pieces = pieces.unwrap_or_default();
        lengths.push(pieces.len());
        if many {
            pieces.iter().for_each(|piece| push(Some(piece)));
        } else {
            push(pieces.first());
        }
    }
    let arrays: Vec<ArrayRef> = vec![Arc::new(text.finish()), Arc::new(start.finish()), Arc::new(end.finish())];
    if many {
        let values = StructArray::new(piece_fields(), arrays, None);
        let item = Arc::new(Field::new("item", DataType::Struct(piece_fields()), false));
        let nulls = Some(NullBuffer::from(present));
        Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(lengths), Arc::new(values), nulls))
    } else {
        Arc::new(StructArray::new(piece_fields(), arrays, Some(NullBuffer::from(present))))
    }
}

fn pieces(array: &ArrayRef, i: usize) -> Option<Vec<PieceRow>> {
    if array.is_null(i) {
        return None;
    }
    let piece = |values: &StructArray, i: usize| {
        let number = |column: usize| {
            let array = values.column(column).as_primitive::<Int64Type>();
            (!array.is_null(i)).then(|| array.value(i))
        };
        PieceRow { text: values.column(0).as_string::<i32>().value(i).to_owned(), span: number(1).zip(number(2)) }
    };
    match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let values = list.value(i);
            Some((0..values.len()).map(|k| piece(values.as_struct(), k)).collect())
        }
        DataType::Struct(_) => Some(vec![piece(array.as_struct(), i)]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::schema::REQUIRED_COLUMNS;

    fn row(i: i64, attributes: Vec<Option<Vec<PieceRow>>>) -> MentionRow {
        MentionRow {
            url: "http://a/".into(),
            start: i,
            end: i + 3,
            text: "abc".into(),
            label: Some("p".into()),
            attributes,
            copied: i % 2 == 0,
            since: SnapshotId::new("2024-01-01").unwrap(),
            whole: i % 3 == 0,
        }
    }

    fn piece(text: &str, span: Option<(i64, i64)>) -> PieceRow {
        PieceRow { text: text.into(), span }
    }

    #[test]
    fn rows_survive_encoding() {
        let schema = MentionSchema {
            label: Some(LabelColumn::Pattern),
            attributes: vec![("one".into(), false), ("all".into(), true)],
        };
        let rows = vec![
            row(0, vec![Some(vec![piece("a", Some((0, 1)))]), Some(vec![piece("b", Some((1, 2))), piece("c", None)])]),
            row(1, vec![None, None]),
            row(2, vec![Some(vec![piece("", Some((5, 5)))]), Some(vec![])]),
        ];
        let batch = schema.encode(&rows);
        assert_eq!(schema.decode(&batch).unwrap(), rows);
        assert_eq!(MentionSchema::of(&batch.schema()), schema);
        let json: Vec<_> = rows.iter().map(|row| row.attributes_json(&schema).unwrap()).collect();
        assert_eq!(json, [r#"{"one":"a","all":["b","c"]}"#, "{}", r#"{"one":"","all":[]}"#]);
        let names: Vec<_> = batch.schema().fields().iter().map(|f| f.name().clone()).collect();
        assert_eq!(names, ["url", "start", "end", "text", "pattern", "one", "all", "origin", "since", "whole"]);
        for column in mention_columns() {
            assert!(REQUIRED_COLUMNS.contains(&column.name), "no attribute may be named {}", column.name);
        }
    }

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

    #[test]
    fn a_missing_attribute_is_absent() {
        let old = MentionSchema { label: Some(LabelColumn::Pattern), attributes: vec![("one".into(), false)] };
        let new = MentionSchema {
            label: Some(LabelColumn::Pattern),
            attributes: vec![("two".into(), false), ("one".into(), false)],
        };
        let batch = old.encode(&[row(0, vec![Some(vec![piece("a", None)])])]);
        assert_eq!(new.decode(&batch).unwrap(), [row(0, vec![None, Some(vec![piece("a", None)])])]);
    }
}
