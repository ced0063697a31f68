//! `catalog.sql`: the tables of a store for DuckDB, as plain SQL.
//!
//! What holds at a snapshot is told by macros from what the tables say of themselves, so that the file stays right while
//! snapshots are added; only which tables there are, and when an extractor took part, stands in it. All paths are
//! relative to the store, so that it can be moved.

use std::fmt::Write as _;

use crate::model::SnapshotId;
use crate::tables::mentions::MENTIONS;
use crate::tables::nature::{Gone, Nature, sql_name, tuples_of};

/// What a store has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    /// Tables that have files.
    pub(crate) tables: Vec<String>,
    /// Extractors, and from which snapshot to which one each took part; without a last one, it still does.
    pub(crate) extractors: Vec<Span>,
    /// The same of tables of web tuples: in which snapshots they are whole.
    pub(crate) whole: Vec<Span>,
}

/// A name, and the first and last of snapshots that follow each other; without a last one, up to the newest.
pub(crate) type Span = (String, SnapshotId, Option<SnapshotId>);

const HEAD: &str = "\
-- The tables of this store for DuckDB. ratoon writes this file after each run.
--   cd STORE && duckdb -init catalog.sql
--   in Python: db.execute(\"set file_search_path = 'STORE'\"); db.execute(open('STORE/catalog.sql').read())
-- TABLE: what holds after the newest snapshot (of events, all so far); TABLE_at('ID'): after that snapshot;
-- TABLE_all: the rows of all snapshots, as they lie. Snapshots are strings, and pages have their texts.

create or replace macro slice_bytes(text, first_byte, end_byte) as decode(encode(text)[(first_byte + 1):end_byte]);
";

/// The order of snapshots, and the number of one of them.
const ORDER: &str = "
create or replace view snapshot_order as
  select s.snapshot, s.whole or coalesce(p.whole, false) as whole, row_number() over (order by s.\"time\", s.snapshot) as n
  from snapshots_all s left join (select snapshot, bool_or(whole) as whole from pages_all group by snapshot) p using (snapshot);
create or replace view newest_snapshot as select max_by(snapshot, n) as snapshot from snapshot_order;
create or replace macro number_of(id) as (select n from snapshot_order where snapshot = cast(id as varchar));
";

const PAGES: &str = "
  with upto as (select * from snapshot_order where n <= number_of(id)),
    layers as (select snapshot, n from upto where n >= coalesce((select max(n) from upto where whole), 1)),
    newest as (select p.*, l.n from pages_all p join layers l using (snapshot)
      qualify row_number() over (partition by p.url order by l.n desc) = 1)
  select newest.* exclude (n) replace (t.text as text)
  from newest left join pages_all t on t.url = newest.url and t.snapshot = newest.text_snapshot
  where newest.change <> 'deleted'";

const EXTRACTIONS: &str = "
  with newest as (select e.*, o.n from extractions_all e join snapshot_order o using (snapshot) where o.n <= number_of(id)
      qualify row_number() over (partition by e.extractor, e.url order by o.n desc) = 1)
  select newest.* exclude (n) from newest
  where url in (select url from pages_at(id)) and extractor in (select extractor from extractor_spans
    where number_of(first) <= number_of(id) and (last is null or number_of(last) >= number_of(id)))";

/// The whole file.
#[must_use]
pub(crate) fn sql(catalog: &Catalog) -> String {
    let mut out = HEAD.to_owned();
    for table in &catalog.tables {
        let files = format!(
            "read_parquet('{table}/*/*.parquet', hive_partitioning = true, hive_types = {{'snapshot': varchar}}, union_by_name = true)"
        );
        let _ = writeln!(out, "create or replace view {}_all as select * from {files};", sql_name(table));
    }
    out.push_str(ORDER);
    let _ = writeln!(
        out,
        "create or replace view extractor_spans(extractor, first, last) as {};",
        values(&catalog.extractors)
    );
    let _ = writeln!(out, "create or replace view whole_spans(table_name, first, last) as {};", values(&catalog.whole));
    // A macro is written before those that use it.
    let mut tables: Vec<&String> = catalog.tables.iter().collect();
    tables.sort_by_key(|table| match Nature::of(table) {
        Nature::Pages => 0,
        Nature::Extractions | Nature::Sources(_) | Nature::Tuples => 1,
        _ => 2,
    });
    for table in tables {
        let name = sql_name(table);
        let _ = writeln!(out, "\ncreate or replace macro {name}_at(id) as table{};", state(table));
        let _ = writeln!(
            out,
            "create or replace view {name} as select * from {name}_at((select snapshot from newest_snapshot));"
        );
    }
    if catalog.tables.iter().any(|table| Nature::of(table) == Nature::Pages) {
        out.push_str("\ncreate or replace macro texts_at(id) as table select snapshot, url, text_digest, text from pages_at(id);\n");
        out.push_str("create or replace view texts as select snapshot, url, text_digest, text from pages;\n");
    }
    out
}

/// Spans as rows.
fn values(spans: &[Span]) -> String {
    let row = |(name, first, last): &Span| {
        let last = last.as_ref().map_or_else(|| "null".to_owned(), |last| format!("'{last}'"));
        format!("('{name}', '{first}', {last})")
    };
    match spans.iter().map(row).collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "select null::varchar, null::varchar, null::varchar where false".to_owned(),
        rows => format!("values {rows}"),
    }
}

/// The rows of a table that hold at snapshot `id`.
fn state(table: &str) -> String {
    let name = sql_name(table);
    match Nature::of(table) {
        Nature::Pages => PAGES.to_owned(),
        Nature::Extractions => EXTRACTIONS.to_owned(),
        Nature::Links => pointed(&name, "pages_at(id) o", "o.content_snapshot"),
        Nature::Mentions => {
            let extractor = table.strip_prefix(MENTIONS).unwrap_or(table).trim_start_matches('/');
            let rows = format!("(select * from extractions_at(id) where extractor = '{extractor}') o");
            pointed(&name, &rows, "o.mentions_snapshot")
        }
        Nature::Sources(gone) => {
            let gone = match gone {
                Gone::Where(column, value) => format!("{column} <> '{value}'"),
                Gone::Since(column) => format!("{column} is null"),
            };
            format!(
                "
  with newest as (select t.*, o.n from {name}_all t join snapshot_order o using (snapshot) where o.n <= number_of(id)
      qualify row_number() over (partition by t.source order by o.n desc) = 1)
  select newest.* exclude (n) from newest where {gone}"
            )
        }
        Nature::Curves => {
            "\n  select t.* from recall_curves_all t join schedules_at(id) o on t.source = o.source and t.snapshot = o.snapshot".to_owned()
        }
        Nature::Tuples => format!(
            "
  with layers as (select snapshot, n from snapshot_order where n <= number_of(id) and n >= coalesce((select
      max(least(coalesce(number_of(last), number_of(id)), number_of(id))) from whole_spans
      where table_name = '{table}' and number_of(first) <= number_of(id)), 1)),
    newest as (select t.*, l.n from {name}_all t join layers l using (snapshot)
      qualify rank() over (partition by t.tuple order by l.n desc) = 1)
  select newest.* exclude (n) from newest where change <> 'deleted'"
        ),
        Nature::TupleLinks => format!(
            "
  select t.* from {name}_all t join (select distinct snapshot, tuple from {}_at(id)) o
    on t.tuple = o.tuple and t.snapshot = o.snapshot",
            sql_name(&tuples_of(table))
        ),
        Nature::Newest => format!(
            "
  select t.* from {name}_all t where t.snapshot = (select max_by(snapshot, o.n) from {name}_all join snapshot_order o
    using (snapshot) where o.n <= number_of(id))"
        ),
        Nature::Events | Nature::Texts => format!(
            "\n  select t.* from {name}_all t join snapshot_order o using (snapshot) where o.n <= number_of(id)"
        ),
    }
}

/// The rows that other rows point to.
fn pointed(name: &str, rows: &str, pointer: &str) -> String {
    format!("\n  select t.* from {name}_all t join {rows} on t.url = o.url and t.snapshot = {pointer}")
}
