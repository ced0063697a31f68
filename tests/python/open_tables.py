"""Opens every table of a store as a directory in polars, DuckDB, pandas and pyarrow, checks columns and types, and
joins texts through text_snapshot.   usage: open_tables.py STORE TABLES.json"""
import hashlib, json, sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow.dataset as ds

store, reference = sys.argv[1], json.load(open(sys.argv[2]))

POLARS = {"string": pl.String, "int64": pl.Int64, "double": pl.Float64, "bool": pl.Boolean,
          "timestamp[us, UTC]": pl.Datetime("us", "UTC"),
          "list<int64>": pl.List(pl.Int64), "list<double>": pl.List(pl.Float64), "list<string>": pl.List(pl.String)}
DUCK = {"string": "VARCHAR", "int64": "BIGINT", "double": "DOUBLE", "bool": "BOOLEAN",
        "timestamp[us, UTC]": "TIMESTAMP WITH TIME ZONE", "list<int64>": "BIGINT[]", "list<double>": "DOUBLE[]",
        "list<string>": "VARCHAR[]"}
ARROW = {"string": "string", "int64": "int64", "double": "double", "bool": "bool",
         "timestamp[us, UTC]": "timestamp[us, tz=UTC]",
         "list<int64>": "list<item: int64>", "list<double>": "list<item: double>", "list<string>": "list<item: string>"}
# Nothing need be rejected, no page need be away, and no source need have a version to judge polls by.
MAY_BE_EMPTY = {"rejects", "states/extractions", "recall_curves"}

for table in reference:
    if "<" in table["name"]:
        continue
    path = f"{store}/{table['name']}"
    names = [column["name"] for column in table["columns"]] + ["snapshot"]

    frame = pl.read_parquet(path)
    assert frame.columns == names, (table["name"], frame.columns)
    for column in table["columns"]:
        assert frame.schema[column["name"]] == POLARS[column["type"]], column

    duck = duckdb.sql(f"select * from read_parquet('{path}/*/*.parquet', hive_partitioning = true)")
    assert duck.columns == names, duck.columns
    for column, kind in zip(table["columns"], duck.types):
        assert str(kind) == DUCK[column["type"]], (column, kind)
    rows = duckdb.sql(f"select count(*) from read_parquet('{path}/*/*.parquet', hive_partitioning = true)").fetchall()[0][0]

    pandas = pd.read_parquet(path)
    assert sorted(pandas.columns) == sorted(names), pandas.columns

    arrow = ds.dataset(path, partitioning="hive")
    assert arrow.schema.names == names, arrow.schema.names
    for column in table["columns"]:
        field = arrow.schema.field(column["name"])
        assert str(field.type) == ARROW[column["type"]], field
        assert field.metadata[b"description"].decode() == column["description"], field
    assert frame.height == rows == len(pandas) == arrow.count_rows() > 0 or table["name"] in MAY_BE_EMPTY, table["name"]

# Every page finds its text through text_snapshot, and the text has its digest's length. Snapshot ids that are dates
# are read as dates, so they are cast for the join.
pages = pl.read_parquet(f"{store}/pages").with_columns(pl.col("snapshot").cast(pl.String))
texts = pages.filter(pl.col("text").is_not_null()).select("url", "text", text_snapshot="snapshot")
joined = pages.drop("text").join(texts, on=["url", "text_snapshot"], how="left")
assert joined.height == pages.height and joined["text"].null_count() == 0
assert (joined["text"].str.len_bytes() == joined["text_bytes"]).all()
assert pages["text"].null_count() > 0, "the sample has unchanged pages"

sql = f"""
with pages as (select * from read_parquet('{store}/pages/*/*.parquet', hive_partitioning = true))
select count(*), count(t.text), sum(strlen(t.text)), sum(p.text_bytes)
from pages p left join pages t on t.url = p.url and t.snapshot::varchar = p.text_snapshot
"""
every, found, bytes_found, bytes_said = duckdb.sql(sql).fetchall()[0]
assert every == found == pages.height and bytes_found == bytes_said, (every, found, bytes_found, bytes_said)

# Mentions: one table per extractor, attributes as structs and lists of them.
talk = pl.read_parquet(f"{store}/mentions/talk")
piece = pl.Struct({"text": pl.String, "start": pl.Int64, "end": pl.Int64})
assert talk.schema["speaker"] == piece and talk.schema["topics"] == pl.List(piece), talk.schema
assert talk.height > 0 and "snapshot" in talk.columns
sql = f"select count(*), count(distinct speaker.text) from read_parquet('{store}/mentions/talk/*/*.parquet', hive_partitioning = true)"
assert duckdb.sql(sql).fetchall()[0][0] == talk.height
assert len(pd.read_parquet(f"{store}/mentions/talk")) == talk.height
assert ds.dataset(f"{store}/mentions/talk", partitioning="hive").count_rows() == talk.height
# A mention is where it says: its text is that part of the page's text, in bytes.
mentions = pl.read_parquet(f"{store}/mentions/researcher").with_columns(pl.col("snapshot").cast(pl.String))
with_text = mentions.join(joined.select("url", "snapshot", page="text"), on=["url", "snapshot"])
assert with_text.height == mentions.height > 0
for text, start, end, page in with_text.select("text", "start", "end", "page").iter_rows():
    assert page.encode()[start:end].decode() == text

# Poll times are as many as polls; the shares of a phase histogram add up to one.
schedules = pl.read_parquet(f"{store}/schedules")
assert (schedules["poll_times"].list.len() == schedules["polls"]).all()
known = pl.read_parquet(f"{store}/update_stats").filter(pl.col("updates") > 0)
assert known.height > 0 and ((known["phase_day"].list.sum() - 1).abs() < 1e-9).all()
assert duckdb.sql(f"""select count(*) from read_parquet('{store}/schedules/*/*.parquet', hive_partitioning = true)
                      where len(poll_times) <> polls""").fetchall()[0][0] == 0

# Deltas: every added page is a page, every page of a tuple too; alerts name their watch.
deltas = pl.read_parquet(f"{store}/page_deltas").with_columns(pl.col("snapshot").cast(pl.String))
added = deltas.filter(pl.col("change") == "added").join(pages, on=["url", "snapshot"])
assert added.height == deltas.filter(pl.col("change") == "added").height > 0
assert (added["new_digest"] == added["content_digest"]).all()
for table in ("web_tuples", "web_links"):
    path = f"{store}/{table}/speakers"
    rows = pl.read_parquet(path).height
    assert rows == len(pd.read_parquet(path)) == ds.dataset(path, partitioning="hive").count_rows() > 0
    assert duckdb.sql(f"select count(*) from read_parquet('{path}/*/*.parquet', hive_partitioning = true)").fetchall()[0][0] == rows
tuples = pl.read_parquet(f"{store}/web_tuples/speakers").with_columns(pl.col("snapshot").cast(pl.String))
assert tuples.join(pages, on=["url", "snapshot"]).height == tuples.height
assert set(pl.read_parquet(f"{store}/alerts")["watch"]) == {"new-talks", "rooms"}

# Links through content_snapshot.
links = pl.read_parquet(f"{store}/links").with_columns(pl.col("snapshot").cast(pl.String).alias("content_snapshot"))
last = pages.filter(pl.col("snapshot") == pages["snapshot"].max())
with_links = last.join(links.drop("snapshot"), on=["url", "content_snapshot"])
assert with_links.height > 0

print(f"all tables open: {len(reference)} tables, {pages.height} pages, {with_links.height} links in the last snapshot")
