//! Questions in SQL about the tables of a store.
//!
//! polars plans and answers them. A table is registered under its name as a scan that reads what the plan asks for, so
//! that a question costs the columns that it uses. Nothing can be written: a statement that is no question is refused.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use polars::lazy::dsl::udf::UserDefinedFunction;
use polars::prelude::{
    AnonymousScan, AnonymousScanArgs, AnyValue, BaseColumnUdf, Column, DataFrame, DataType, Field, IntoColumn as _,
    LazyFrame, PlSmallStr, PolarsError, PolarsResult, ScanArgsAnonymous, Schema, SchemaRef, StringChunked, TimeUnit,
    df, polars_bail,
};
use polars::sql::{FunctionRegistry, SQLContext, extract_table_identifiers};
use serde_json::Value;

use super::frames::Tables;
use super::rewrite::{Frames, Parts, Question, first_word};
use crate::model::{SnapshotId, Timestamp};
use crate::store::Store;
use crate::store::frames::write_parquet;

/// A question that cannot be answered as it stands.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadQuery(String);

/// What came of a question.
pub(crate) struct Answer(DataFrame);

/// Answers a question about the tables at a snapshot, or at the newest one.
pub(crate) fn ask(store: &Store, at: Option<&SnapshotId>, query: &str) -> Result<Answer> {
    if let Some(name) = described(query) {
        return describe(&Tables::at(store, at)?, name);
    }
    only_asks(query)?;
    let tables = Arc::new(Tables::at(store, at)?);
    asked(&tables, query).map_err(|error| match error.downcast::<BadQuery>() {
        Ok(BadQuery(said)) => BadQuery(said + &spelled_in_sql(query, &tables)).into(),
        Err(error) => error,
    })
}

fn asked(tables: &Arc<Tables>, query: &str) -> Result<Answer> {
    let question = Question::new(query).map_err(BadQuery)?;
    let named = extract_table_identifiers(question.text(), false, true).map_err(|error| bad(&error, tables, &[]))?;
    let mut columns = Vec::new();
    let mut frames = Frames::new();
    let unread = Unread::default();
    // With no table named, as in `show tables`, all are there.
    let all: Vec<String> = if named.is_empty() { tables.names().map(str::to_owned).collect() } else { named };
    for name in all.into_iter().filter(|name| tables.names().any(|known| known == name)) {
        let schema = tables.columns(&name)?;
        columns.extend(schema.iter_names().map(ToString::to_string));
        let (tables, schema_of) = (Arc::clone(tables), Arc::clone(&schema));
        let scan = Scan { tables, name: name.clone(), schema: schema_of, unread: Arc::clone(&unread) };
        let args = ScanArgsAnonymous { schema: Some(schema), name: "table", ..ScanArgsAnonymous::default() };
        frames.insert(name, LazyFrame::anonymous_scan(Arc::new(scan), args)?);
    }
    let answer = question.answer(&frames, &Parts { function: SLICE_BYTES, ask: &execute });
    let answer = answer.and_then(LazyFrame::collect);
    let unread = unread.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (answer, unread) {
        (Ok(answer), _) => Ok(Answer(answer)),
        // That a table cannot be read is no fault of the question.
        (Err(_), Some(why)) => Err(why),
        (Err(error), None) => Err(bad(&error, tables, &columns).into()),
    }
}

/// How tables are called in SQL that a question calls as their folders or extractors are.
fn spelled_in_sql(query: &str, tables: &Tables) -> String {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/');
    let words = query.split(|c| !is_part(c)).filter(|word| word.contains(['-', '/']));
    let known = |word: &str| tables.names().find(|known| *known == word.replace(['-', '/'], "_"));
    let named = words.filter_map(|word| Some(format!("; {word} is called {} in SQL", known(word)?)));
    named.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

/// All that polars is asked for a question, in order; for the fuzzer.
#[cfg(any(test, feature = "lab"))]
pub(crate) fn rewritten(query: &str) -> Result<Vec<String>, String> {
    super::rewrite::asked(query, SLICE_BYTES)
}

/// Whether a statement is sound SQL.
#[cfg(any(test, feature = "lab"))]
pub(crate) fn is_sound(query: &str) -> bool {
    super::rewrite::is_sound(query)
}

/// The table that is to be described, if that is all that is asked.
fn described(query: &str) -> Option<&str> {
    let mut words = query.trim().trim_end_matches(';').split_whitespace();
    let asked = words.next().is_some_and(|word| word.eq_ignore_ascii_case("describe"));
    let name = words.next()?.trim_matches('"');
    (asked && words.next().is_none()).then_some(name)
}

/// The columns of a table.
fn describe(tables: &Tables, name: &str) -> Result<Answer> {
    if !tables.names().any(|known| known == name) {
        return Err(no_table(name, tables).into());
    }
    let columns = tables.columns(name)?;
    let names: Vec<&str> = columns.iter_names().map(PlSmallStr::as_str).collect();
    let types: Vec<String> = columns.iter_values().map(ToString::to_string).collect();
    Ok(Answer(df!("column" => names, "type" => types)?))
}

/// Answers a question about frames. Functions beside those of polars are known at its outermost level.
fn execute(frames: &Frames, query: &str) -> PolarsResult<LazyFrame> {
    let mut context = SQLContext::new().with_function_registry(Arc::new(Functions));
    frames.iter().for_each(|(name, frame)| context.register(name, frame.clone()));
    context.execute(query)
}

impl Answer {
    /// The names of its columns.
    pub(crate) fn header(&self) -> Vec<String> {
        self.0.get_column_names().into_iter().map(ToString::to_string).collect()
    }

    /// Its rows, one after the other.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Vec<Value>> + '_ {
        let cell = |column: &Column, row| column.get(row).map_or(Value::Null, |value| json(&value));
        (0..self.0.height()).map(move |row| self.0.columns().iter().map(|column| cell(column, row)).collect())
    }

    /// As the bytes of a Parquet file.
    pub(crate) fn parquet(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        write_parquet(&mut self.0, &mut bytes)?;
        Ok(bytes)
    }
}

/// Why a table could not be read.
type Unread = Arc<Mutex<Option<anyhow::Error>>>;

/// A table that is read when a plan is carried out.
struct Scan {
    tables: Arc<Tables>,
    name: String,
    schema: SchemaRef,
    unread: Unread,
}

impl AnonymousScan for Scan {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn scan(&self, asked: AnonymousScanArgs) -> PolarsResult<DataFrame> {
        let wanted: Option<Vec<&str>> =
            asked.with_columns.as_deref().map(|names| names.iter().map(PlSmallStr::as_str).collect());
        let frame = self.tables.frame(&self.name, wanted.as_deref());
        let frame = frame.map_err(|error| {
            let told = PolarsError::ComputeError(format!("{error:#}").into());
            self.unread.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            told
        })?;
        Ok(asked.n_rows.map_or_else(|| frame.clone(), |rows| frame.head(Some(rows))))
    }

    fn schema(&self, _: Option<usize>) -> PolarsResult<SchemaRef> {
        Ok(Arc::clone(&self.schema))
    }

    fn allows_projection_pushdown(&self) -> bool {
        true
    }
}

/// Functions beside those that polars has: offsets of mentions count bytes, `substr` counts characters.
struct Functions;

const SLICE_BYTES: &str = "slice_bytes";

impl FunctionRegistry for Functions {
    fn register(&mut self, name: &str, _: UserDefinedFunction) -> PolarsResult<()> {
        polars_bail!(SQLInterface: "{name} cannot be registered")
    }

    fn get_udf(&self, name: &str) -> PolarsResult<Option<UserDefinedFunction>> {
        let is_text = |_: &Schema, _: &[Field]| Ok(Field::new(SLICE_BYTES.into(), DataType::String));
        let function = || UserDefinedFunction::new(SLICE_BYTES.into(), BaseColumnUdf::new(slice_bytes, is_text));
        Ok(self.contains(name).then(function))
    }

    fn contains(&self, name: &str) -> bool {
        name == SLICE_BYTES
    }
}

/// `slice_bytes(text, start, end)`: the bytes of a text from `start` up to `end`. Offsets beyond its end are its end, and
/// ones inside a character those of its start, so that a window around a mention can be cut anywhere.
fn slice_bytes(columns: &mut [Column]) -> PolarsResult<Column> {
    let [text, start, end] = columns else {
        polars_bail!(SQLInterface: "slice_bytes takes a text, its first byte and the byte after the last: slice_bytes(p.text, m.start, m.end)")
    };
    let rows = text.len().max(start.len()).max(end.len());
    let (start, end) = (start.cast(&DataType::Int64)?, end.cast(&DataType::Int64)?);
    let (text, start, end) = (text.str()?, start.i64()?, end.i64()?);
    // A constant has one row.
    let row = |len: usize, i: usize| if len == 1 { 0 } else { i };
    let slice = |i: usize| {
        let text = text.get(row(text.len(), i))?;
        let place = |offset: i64| text.floor_char_boundary(usize::try_from(offset).unwrap_or(0));
        let (start, end) = (place(start.get(row(start.len(), i))?), place(end.get(row(end.len(), i))?));
        text.get(start..end.max(start))
    };
    let sliced: StringChunked = (0..rows).map(slice).collect();
    Ok(sliced.with_name(SLICE_BYTES.into()).into_column())
}

/// Fails unless the statement is a question.
fn only_asks(query: &str) -> Result<(), BadQuery> {
    const ASK: [&str; 7] = ["select", "with", "from", "values", "table", "show", "explain"];
    match first_word(query).unwrap_or_default() {
        word if ASK.contains(&word.as_str()) => Ok(()),
        word if word.is_empty() => {
            Err(BadQuery("no query; such as: select change, count(*) from pages group by change".into()))
        }
        word => Err(BadQuery(format!(
            "`{word}`: only questions can be asked (select, with, show tables, describe TABLE, explain): nothing in a store is ever changed by SQL"
        ))),
    }
}

/// What to write instead of what polars does not take, by what it says.
const HINTS: [(&str, &str); 3] = [
    (
        "unexpected subquery",
        "a subquery cannot stand for a value; cross join it, as in select … from pages p cross join (select count(*) as n from links) c",
    ),
    (
        "subquery comparisons",
        "or cross join the subquery, as in … cross join (select max(start) as most from mentions_talk) x where start = most",
    ),
    (
        "sort expressions must have same length",
        "select what rows are ordered by, as in select host, count(*) as n … order by n",
    ),
];

fn no_table(name: &str, tables: &Tables) -> BadQuery {
    let near = nearest(name, tables.names());
    BadQuery(format!("no table {name}{near} `show tables` lists all"))
}

/// What is wrong with a question, with the name that was probably meant.
fn bad(error: &PolarsError, tables: &Tables, columns: &[String]) -> BadQuery {
    let said = error.to_string();
    let names: Vec<&str> = said.split(['\'', '"', '`']).skip(1).step_by(2).collect();
    let first = said.lines().next().unwrap_or_default();
    if let Some((_, hint)) = HINTS.iter().find(|(part, _)| said.contains(part)) {
        return BadQuery(format!("{first}: {hint}"));
    }
    let Some(name) = names.first() else { return BadQuery(first.to_owned()) };
    if said.contains("relation") || said.contains("no table") {
        return no_table(name, tables);
    }
    let is_column = matches!(error, PolarsError::ColumnNotFound(_)) || said.contains("column");
    if is_column && !columns.iter().any(|column| column == name) {
        let near = nearest(name, columns.iter().map(String::as_str));
        let mut columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        columns.sort_unstable();
        columns.dedup();
        return BadQuery(format!("no column {name}{near} There are {}", columns.join(", ")));
    }
    if said.contains(SLICE_BYTES) {
        return BadQuery(format!(
            "{first}; slice_bytes(text, start, end) cannot stand in a subquery that refers to the query around it: join the two instead"
        ));
    }
    BadQuery(first.to_owned())
}

/// Asks whether the name was meant that is most like another, if any is.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let scored = known.map(|known| (strsim::jaro_winkler(&name.to_lowercase(), known), known));
    match scored.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((score, near)) if score > 0.7 => format!("; did you mean {near}?"),
        _ => ".".to_owned(),
    }
}

/// A cell for people and other programs.
fn json(value: &AnyValue<'_>) -> Value {
    let micros = |time: i64, unit: TimeUnit| match unit {
        TimeUnit::Nanoseconds => time / 1_000,
        TimeUnit::Microseconds => time,
        TimeUnit::Milliseconds => time * 1_000,
    };
    match value {
        AnyValue::Null => Value::Null,
        AnyValue::Boolean(value) => (*value).into(),
        AnyValue::String(value) => (*value).into(),
        AnyValue::StringOwned(value) => value.as_str().into(),
        AnyValue::Datetime(time, unit, zone) => moment(micros(*time, *unit), zone.is_some()),
        AnyValue::DatetimeOwned(time, unit, zone) => moment(micros(*time, *unit), zone.is_some()),
        AnyValue::List(items) => items.iter().map(|item| json(&item)).collect(),
        AnyValue::Struct(..) | AnyValue::StructOwned(_) => structure(value),
        AnyValue::Float64(value) => (*value).into(),
        AnyValue::Float32(value) => f64::from(*value).into(),
        other => match other.extract::<i64>() {
            Some(number) if other.is_primitive_numeric() => number.into(),
            _ => other.to_string().trim_matches('"').into(),
        },
    }
}

fn structure(value: &AnyValue<'_>) -> Value {
    let AnyValue::StructOwned(parts) = value.clone().into_static() else { return Value::Null };
    let (values, fields) = *parts;
    fields.iter().zip(&values).map(|(field, value)| (field.name().to_string(), json(value))).collect()
}

/// A moment, with `Z` if it is one of UTC.
fn moment(micros: i64, utc: bool) -> Value {
    let text = Timestamp(micros).to_string();
    if utc { text.into() } else { text.trim_end_matches('Z').into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_questions_are_asked() {
        for query in ["select 1", " -- why\n/* so */ WITH t as (select 1) select * from t", "(select 1)", "Show tables"]
        {
            assert!(only_asks(query).is_ok(), "{query}");
        }
        for query in
            ["", "drop table pages", "-- select\ndelete from pages", "create table t as select 1", "truncate pages"]
        {
            assert!(only_asks(query).is_err(), "{query}");
        }
    }

    #[test]
    fn bytes_are_cut_where_characters_begin() {
        let column = |values: Vec<AnyValue<'static>>| Column::new("c".into(), values);
        let texts = ["aéb", "aéb", "aéb", "aéb"].map(AnyValue::String).to_vec();
        let starts = [0, 1, 2, -5].map(AnyValue::Int64).to_vec();
        let ends = [1, 3, 99, 2].map(AnyValue::Int64).to_vec();
        let cut = slice_bytes(&mut [column(texts), column(starts), column(ends)]).unwrap();
        let cut: Vec<Option<&str>> = cut.str().unwrap().iter().collect();
        assert_eq!(cut, [Some("a"), Some("é"), Some("éb"), Some("a")]);
    }
}
