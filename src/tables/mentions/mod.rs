//! Mentions as rows. They have one table per extractor, with a column per attribute, so their schema is made at run time.
//!
//! Most mentions of a night are only copied or compared, for which nobody needs their rows: `carried` and `short` leave
//! them in the columns that they were read from.

mod carried;
mod short;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

pub(crate) use self::carried::{Mentions, ReadMentions};
pub(crate) use self::short::{ShortMention, ShortMentions};
use crate::extract::{LabelColumn, Origin};
use crate::model::SnapshotId;
use crate::tables::record::{Cell, Column, ColumnError, cell, column, text_column};

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

    /// The labels of a batch, if it has a column of them.
    fn labels(&self, batch: &RecordBatch) -> Option<StringArray> {
        self.label.and_then(|label| text_column(batch, label.as_str()).ok()).cloned()
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

/// A column of texts of which every row has one.
fn all_texts(batch: &RecordBatch, name: &str) -> Result<StringArray, ColumnError> {
    Ok(without_gaps(name, text_column(batch, name)?)?.clone())
}

/// A column of numbers of which every row has one.
fn all_numbers(batch: &RecordBatch, name: &str) -> Result<Int64Array, ColumnError> {
    Ok(without_gaps(name, &**column::<i64>(batch, name)?)?.as_primitive::<Int64Type>().clone())
}

/// A column of which every row has a value.
fn without_gaps<'a, A: Array + ?Sized>(name: &str, column: &'a A) -> Result<&'a A, ColumnError> {
    if column.null_count() > 0 {
        return Err(ColumnError { column: name.to_owned(), problem: "has rows without a value".to_owned() });
    }
    Ok(column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::schema::REQUIRED_COLUMNS;

    pub(super) fn row(i: i64, attributes: Vec<Option<Vec<PieceRow>>>) -> MentionRow {
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
