//! Rows as Rust structs, columns as Arrow arrays, declared once.
//!
//! A [`Record`] is a struct whose fields are columns; the `record!` macro writes the struct, its columns and both
//! conversions from one list, so that a column's name, type and description exist in one place only. A table is a
//! record with a name; a record without one serves to read some columns of a table. A record may take in the columns of
//! another one (`..page: PageFacts`), so that what several tables hold is one struct. Where only text is looked at and
//! little of it kept, a [`View`] (`view!`) shows the cells of some columns without copying them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, new_null_array};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::model::closed_set::ClosedSet;
use crate::model::{Digest, SnapshotId, Timestamp};

/// A column as the schema reference shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub data_type: DataType,
    pub nullable: bool,
    pub description: &'static str,
}

impl Column {
    /// The type as `ratoon tables` names it.
    #[must_use]
    pub fn type_name(&self) -> String {
        Self::name_of(&self.data_type)
    }

    fn name_of(data_type: &DataType) -> String {
        match data_type {
            DataType::Utf8 => "string".into(),
            DataType::Int64 => "int64".into(),
            DataType::Float64 => "double".into(),
            DataType::Boolean => "bool".into(),
            DataType::Timestamp(_, _) => "timestamp[us, UTC]".into(),
            DataType::List(item) => format!("list<{}>", Self::name_of(item.data_type())),
            other => other.to_string(),
        }
    }
}

pub trait Record: Sized + Send {
    fn columns() -> Vec<Column>;
    /// One array per column.
    fn arrays<'a>(rows: impl Iterator<Item = &'a Self> + Clone) -> Vec<ArrayRef>
    where
        Self: 'a;
    /// The rows at these ranges of a batch that has (at least) this record's columns.
    fn decode_at(batch: &RecordBatch, ranges: &[Range<usize>]) -> Result<Vec<Self>, ColumnError>;

    /// All rows of such a batch.
    fn decode(batch: &RecordBatch) -> Result<Vec<Self>, ColumnError> {
        Self::decode_at(batch, std::slice::from_ref(&(0..batch.num_rows())))
    }

    fn encode(rows: &[Self]) -> RecordBatch {
        RecordBatch::try_new(Self::schema(), Self::arrays(rows.iter())).expect("arrays follow the schema")
    }

    fn schema() -> SchemaRef {
        let field = |column: Column| {
            let metadata = HashMap::from([("description".to_owned(), column.description.to_owned())]);
            Field::new(column.name, column.data_type, column.nullable).with_metadata(metadata)
        };
        Arc::new(Schema::new(Self::columns().into_iter().map(field).collect::<Vec<_>>()))
    }
}

/// A record with a place of its own in the store.
pub trait Table: Record {
    const NAME: &'static str;
    const ABOUT: &'static str;
}

#[derive(Debug, thiserror::Error)]
#[error("column '{column}' {problem}")]
pub struct ColumnError {
    pub column: String,
    pub problem: String,
}

/// A type that can be a column.
pub(crate) trait Cell: Sized {
    type Builder;
    const NULLABLE: bool;
    fn data_type() -> DataType;
    /// Bytes that it takes beside what every row takes: of text its length, of a list its number of items.
    fn size(&self) -> usize {
        0
    }
    /// A builder with room for so many rows of so much size in all.
    fn builder(rows: usize, size: usize) -> Self::Builder;
    fn push(&self, builder: &mut Self::Builder);
    fn finish(builder: Self::Builder) -> ArrayRef;
    /// The value in row `i` of an array of `data_type`; `None` if it is NULL but must not be, or malformed.
    fn get(array: &dyn Array, i: usize) -> Option<Self>;
}

/// The column `name` of a batch, checked to be of `T`'s type. One that may be NULL may also be missing: it is younger
/// than the file.
pub(crate) fn column<'a, T: Cell>(batch: &'a RecordBatch, name: &str) -> Result<Cow<'a, ArrayRef>, ColumnError> {
    let error = |problem: String| ColumnError { column: name.to_owned(), problem };
    let array = match batch.column_by_name(name) {
        Some(array) => array,
        None if T::NULLABLE => return Ok(Cow::Owned(new_null_array(&T::data_type(), batch.num_rows()))),
        None => return Err(error("is missing".into())),
    };
    if *array.data_type() != T::data_type() {
        return Err(error(format!("is {}, not {}", array.data_type(), T::data_type())));
    }
    Ok(Cow::Borrowed(array))
}

/// The value in row `i`, or an error that names the column.
pub(crate) fn cell<T: Cell>(array: &ArrayRef, name: &str, i: usize) -> Result<T, ColumnError> {
    T::get(array, i)
        .ok_or_else(|| ColumnError { column: name.to_owned(), problem: format!("has no usable value in row {i}") })
}

/// A non-null cell type and its optional twin.
macro_rules! cells {
    ($($type:ty, $builder:ty, $data_type:expr, $make:expr, $size:expr, $finish:expr,
       |$value:ident, $b:ident| $push:expr, |$array:ident, $i:ident| $get:expr;)*) => {$(
        impl Cell for $type {
            type Builder = $builder;
            const NULLABLE: bool = false;
            fn data_type() -> DataType { $data_type }
            fn size(&self) -> usize { $size(self) }
            fn builder(rows: usize, size: usize) -> Self::Builder { $make(rows, size) }
            fn push(&self, $b: &mut Self::Builder) { let $value = self; $push }
            fn finish(builder: Self::Builder) -> ArrayRef { $finish(builder) }
            fn get($array: &dyn Array, $i: usize) -> Option<Self> {
                if $array.is_null($i) { return None; }
                $get
            }
        }

        impl Cell for Option<$type> {
            type Builder = $builder;
            const NULLABLE: bool = true;
            fn data_type() -> DataType { $data_type }
            fn size(&self) -> usize { self.as_ref().map_or(0, Cell::size) }
            fn builder(rows: usize, size: usize) -> Self::Builder { $make(rows, size) }
            fn push(&self, builder: &mut Self::Builder) {
                match self {
                    Some(value) => value.push(builder),
                    None => builder.append_null(),
                }
            }
            fn finish(builder: Self::Builder) -> ArrayRef { $finish(builder) }
            fn get(array: &dyn Array, i: usize) -> Option<Self> {
                if array.is_null(i) { return Some(None); }
                <$type as Cell>::get(array, i).map(Some)
            }
        }
    )*};
}

fn utc() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// A list of values, none of them NULL.
fn list(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, true)))
}

/// Builders and sizes of cells.
fn texts(rows: usize, bytes: usize) -> StringBuilder {
    StringBuilder::with_capacity(rows, bytes)
}

fn lists<B: ArrayBuilder>(values: B, rows: usize) -> ListBuilder<B> {
    ListBuilder::with_capacity(values, rows)
}

fn none<T>(_: &T) -> usize {
    0
}

cells! {
    String, StringBuilder, DataType::Utf8, texts, String::len, |mut b: StringBuilder| Arc::new(b.finish()),
        |value, b| b.append_value(value), |array, i| Some(array.as_string::<i32>().value(i).to_owned());
    i64, Int64Builder, DataType::Int64, |rows, _| Int64Builder::with_capacity(rows), none,
        |mut b: Int64Builder| Arc::new(b.finish()),
        |value, b| b.append_value(*value), |array, i| Some(array.as_primitive::<Int64Type>().value(i));
    f64, Float64Builder, DataType::Float64, |rows, _| Float64Builder::with_capacity(rows), none,
        |mut b: Float64Builder| Arc::new(b.finish()),
        |value, b| b.append_value(*value), |array, i| Some(array.as_primitive::<Float64Type>().value(i));
    bool, BooleanBuilder, DataType::Boolean, |rows, _| BooleanBuilder::with_capacity(rows), none,
        |mut b: BooleanBuilder| Arc::new(b.finish()),
        |value, b| b.append_value(*value), |array, i| Some(array.as_boolean().value(i));
    Timestamp, TimestampMicrosecondBuilder, utc(), |rows, _| TimestampMicrosecondBuilder::with_capacity(rows), none,
        |b: TimestampMicrosecondBuilder| Arc::new(b.with_timezone("UTC").finish()),
        |value, b| b.append_value(value.0), |array, i| Some(Timestamp(array.as_primitive::<TimestampMicrosecondType>().value(i)));
    Digest, StringBuilder, DataType::Utf8, texts, |_: &Digest| Digest::HEX, |mut b: StringBuilder| Arc::new(b.finish()),
        |value, b| b.append_value(value.hex().as_str()), |array, i| Digest::from_hex(array.as_string::<i32>().value(i));
    Arc<str>, StringBuilder, DataType::Utf8, texts, |value: &Arc<str>| value.len(), |mut b: StringBuilder| Arc::new(b.finish()),
        |value, b| b.append_value(value), |array, i| Some(array.as_string::<i32>().value(i).into());
    SnapshotId, StringBuilder, DataType::Utf8, texts, |value: &SnapshotId| value.as_str().len(), |mut b: StringBuilder| Arc::new(b.finish()),
        |value, b| b.append_value(value.as_str()), |array, i| SnapshotId::new(array.as_string::<i32>().value(i)).ok();
    Vec<i64>, ListBuilder<Int64Builder>, list(DataType::Int64),
        |rows, items| lists(Int64Builder::with_capacity(items), rows), Vec::len, |mut b: ListBuilder<Int64Builder>| Arc::new(b.finish()),
        |value, b| { b.values().append_slice(value); b.append(true); },
        |array, i| Some(array.as_list::<i32>().value(i).as_primitive::<Int64Type>().values().to_vec());
    Vec<f64>, ListBuilder<Float64Builder>, list(DataType::Float64),
        |rows, items| lists(Float64Builder::with_capacity(items), rows), Vec::len, |mut b: ListBuilder<Float64Builder>| Arc::new(b.finish()),
        |value, b| { b.values().append_slice(value); b.append(true); },
        |array, i| Some(array.as_list::<i32>().value(i).as_primitive::<Float64Type>().values().to_vec());
    Vec<SnapshotId>, ListBuilder<StringBuilder>, list(DataType::Utf8),
        |rows, items| lists(StringBuilder::with_capacity(items, 10 * items), rows), Vec::len, |mut b: ListBuilder<StringBuilder>| Arc::new(b.finish()),
        |value, b| b.append_value(value.iter().map(|v| Some(v.as_str()))),
        |array, i| array.as_list::<i32>().value(i).as_string::<i32>().iter().map(|v| SnapshotId::new(v?).ok()).collect();
}

/// A member of a closed set is written as its name.
impl<S: ClosedSet> Cell for S {
    type Builder = StringBuilder;
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn size(&self) -> usize {
        self.name().len()
    }

    fn builder(rows: usize, size: usize) -> StringBuilder {
        texts(rows, size)
    }

    fn push(&self, builder: &mut StringBuilder) {
        builder.append_value(self.name());
    }

    fn finish(mut builder: StringBuilder) -> ArrayRef {
        Arc::new(builder.finish())
    }

    fn get(array: &dyn Array, i: usize) -> Option<Self> {
        if array.is_null(i) { None } else { Self::named(array.as_string::<i32>().value(i)) }
    }
}

impl<S: ClosedSet> Cell for Option<S> {
    type Builder = StringBuilder;
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn size(&self) -> usize {
        self.map_or(0, |member| member.name().len())
    }

    fn builder(rows: usize, size: usize) -> StringBuilder {
        texts(rows, size)
    }

    fn push(&self, builder: &mut StringBuilder) {
        builder.append_option(self.map(ClosedSet::name));
    }

    fn finish(mut builder: StringBuilder) -> ArrayRef {
        Arc::new(builder.finish())
    }

    fn get(array: &dyn Array, i: usize) -> Option<Self> {
        if array.is_null(i) { Some(None) } else { S::named(array.as_string::<i32>().value(i)).map(Some) }
    }
}

/// A row that is of a URL.
pub(crate) trait OfUrl {
    fn url(&self) -> &str;
}

/// Some text columns of a table, looked at row by row where they lie.
pub trait View {
    type Row<'a>;
    const COLUMNS: &'static [&'static str];

    /// Shows all rows of a batch that has (at least) this view's columns.
    fn visit(batch: &RecordBatch, visit: impl FnMut(Self::Row<'_>)) -> Result<(), ColumnError>;
}

/// What the text of a cell can be looked at as.
pub(crate) trait TextCell<'a>: Sized {
    /// `None` if the text is none of these.
    fn read(text: &'a str) -> Option<Self>;
}

impl<'a> TextCell<'a> for &'a str {
    fn read(text: &'a str) -> Option<Self> {
        Some(text)
    }
}

impl<S: ClosedSet> TextCell<'_> for S {
    fn read(text: &str) -> Option<Self> {
        Self::named(text)
    }
}

/// The column `name` of a batch, checked to be text.
pub(crate) fn text_column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a StringArray, ColumnError> {
    match column::<String>(batch, name)? {
        Cow::Borrowed(array) => Ok(array.as_string()),
        Cow::Owned(_) => unreachable!("only a column that may be NULL is made up"),
    }
}

/// The cell in row `i`, or an error that names the column.
pub(crate) fn text_cell<'a, T: TextCell<'a>>(array: &'a StringArray, name: &str, i: usize) -> Result<T, ColumnError> {
    let text = (!array.is_null(i)).then(|| array.value(i));
    text.and_then(T::read)
        .ok_or_else(|| ColumnError { column: name.to_owned(), problem: format!("has no usable value in row {i}") })
}

/// Declares a record: a struct, its columns with their descriptions, and both conversions. Columns of records that it
/// takes in come first. A `[nullable]` column always has a value in rows of this record, but not in all rows of its table.
macro_rules! record {
    (
        $(#[$attr:meta])*
        pub struct $row:ident {
            $( ..$part:ident : $Part:ty, )*
            $( $([$gone:ident])? $field:ident : $type:ty = $about:literal, )*
        }
    ) => {
        $(#[$attr])*
        #[allow(clippy::empty_docs, reason = "a projection's columns are described by its table")]
        #[allow(unreachable_pub, reason = "rows of tables are public where tests read them")]
        #[derive(Clone, Debug, PartialEq)]
        pub struct $row { $( pub $part: $Part, )* $( pub $field: $type, )* }

        impl $crate::tables::record::Record for $row {
            fn columns() -> Vec<$crate::tables::record::Column> {
                use $crate::tables::record::{Cell, Column};
                let own = [$( Column {
                    name: stringify!($field).trim_start_matches("r#"),
                    data_type: <$type as Cell>::data_type(),
                    nullable: <$type as Cell>::NULLABLE $( || stringify!($gone) == "nullable" )?,
                    description: $about,
                }, )*];
                let parts: Vec<Vec<Column>> = vec![$( <$Part>::columns(), )*];
                parts.into_iter().flatten().chain(own).collect()
            }

            fn arrays<'a>(rows: impl Iterator<Item = &'a Self> + Clone) -> Vec<arrow_array::ArrayRef> {
                use $crate::tables::record::Cell;
                let parts: Vec<Vec<arrow_array::ArrayRef>> =
                    vec![$( <$Part>::arrays(rows.clone().map(|row| &row.$part)), )*];
                // Room for all is taken at once: an array that grows is copied again and again.
                let mut count = 0;
                $( let mut $field = 0; )*
                for row in rows.clone() {
                    count += 1;
                    $( $field += row.$field.size(); )*
                }
                $( let mut $field = <$type as Cell>::builder(count, $field); )*
                for row in rows {
                    $( row.$field.push(&mut $field); )*
                }
                let own = [$( <$type as Cell>::finish($field), )*];
                parts.into_iter().flatten().chain(own).collect()
            }

            fn decode_at(
                batch: &arrow_array::RecordBatch,
                ranges: &[std::ops::Range<usize>],
            ) -> Result<Vec<Self>, $crate::tables::record::ColumnError> {
                use $crate::tables::record::{cell, column};
                $( let mut $part = <$Part>::decode_at(batch, ranges)?.into_iter(); )*
                $( let $field = column::<$type>(batch, stringify!($field).trim_start_matches("r#"))?; )*
                ranges
                    .iter()
                    .cloned()
                    .flatten()
                    .map(|i| Ok(Self {
                        $( $part: $part.next().expect("a part has as many rows"), )*
                        $( $field: cell(&$field, stringify!($field), i)?, )*
                    }))
                    .collect()
            }
        }
    };
}

/// Declares a view: a struct that borrows its texts, and how it is read.
macro_rules! view {
    (
        $(#[$attr:meta])*
        pub struct $view:ident<$text:lifetime> { $( $field:ident : $type:ty, )* }
    ) => {
        $(#[$attr])*
        #[allow(unreachable_pub, reason = "as the rows that it views")]
        #[derive(Clone, Copy, Debug)]
        pub struct $view<$text> { $( pub $field: $type, )* }

        impl $crate::tables::record::View for $view<'_> {
            type Row<$text> = $view<$text>;
            const COLUMNS: &'static [&'static str] = &[$( stringify!($field), )*];

            fn visit(
                batch: &arrow_array::RecordBatch,
                mut visit: impl FnMut(Self::Row<'_>),
            ) -> Result<(), $crate::tables::record::ColumnError> {
                use $crate::tables::record::{text_cell, text_column};
                $( let $field = text_column(batch, stringify!($field))?; )*
                for i in 0..batch.num_rows() {
                    visit($view { $( $field: text_cell($field, stringify!($field), i)?, )* });
                }
                Ok(())
            }
        }
    };
}

pub(crate) use record;
pub(crate) use view;
