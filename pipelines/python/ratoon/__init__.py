"""The tables of a ratoon store as polars frames: what holds at a snapshot, in one line.

    import ratoon
    store = ratoon.open("out/campus")           # the folder of a store, or a pipeline file
    store.pages()                               # the pages after the newest snapshot, with their texts
    store.mentions("talk", at="2024-03-02")     # what an extractor had found by then
    store.table("links")                        # any table; events are those of all snapshots so far
    store.table("pages_all")                    # all rows of all snapshots, as they lie
    store.sql("select change, count(*) as n from pages group by change")
    store.slice(store.mentions("talk"), before=40, after=40)

Snapshots are strings everywhere. Nothing is ever written.
"""

from __future__ import annotations

import difflib
import json
import pathlib
import re
import shutil
import subprocess
import sysconfig
import tempfile
import tomllib
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    import duckdb

__all__ = ["RatoonError", "Store", "open"]

# The store format that this module reads.
FORMAT = 5
PART = "part-00000.parquet"
# Tables of sources: the column that says that a source is gone, and what it says then (None: anything).
SOURCES = {"update_stats": ("gone_since", None), "schedules": ("method", "gone")}
# Cuts a text by bytes, as the offsets of mentions count: a function of `ratoon sql` and of catalog.sql.
SLICE_BYTES = "slice_bytes"
# Tables that are written in full where they are written.
IN_FULL = ("web_joins/", "states/")


class RatoonError(Exception):
    """What was asked for is not there; the message says what is."""


def open(path: str | pathlib.Path) -> Store:  # noqa: A001 (ratoon.open reads well)
    """The store in a folder, or that of a pipeline file."""
    path = pathlib.Path(path)
    if path.is_file():
        corpus = tomllib.loads(path.read_text(encoding="utf-8")).get("corpus", {})
        if "store" not in corpus:
            raise RatoonError(f"{path} names no store under [corpus]")
        path = path.parent / corpus["store"]
    return Store(path)


class Store:
    """A store, as its manifests stood when it was opened: open it again to see a later run."""

    def __init__(self, folder: str | pathlib.Path) -> None:
        self.folder = pathlib.Path(folder)
        meta = self.folder / "_meta"
        if not (meta / "store.json").is_file():
            raise RatoonError(f"{self.folder} is no store of ratoon: it has no _meta/store.json")
        found = json.loads((meta / "store.json").read_text(encoding="utf-8"))["format"]
        if found != FORMAT:
            raise RatoonError(f"{self.folder} has format {found}, this module reads {FORMAT}")
        manifests = [json.loads(file.read_text(encoding="utf-8")) for file in (meta / "snapshots").glob("*.json")]
        manifests.sort(key=lambda manifest: (manifest["time"], manifest["snapshot"]))
        if not manifests:
            raise RatoonError(f"{self.folder} holds no snapshot yet")
        self.snapshots: list[str] = [manifest["snapshot"] for manifest in manifests]
        """All snapshots, oldest first."""
        closed = [manifest["snapshot"] for manifest in manifests if "close" in manifest["stages"]]
        self.newest: str = closed[-1] if closed else self.snapshots[-1]
        """The newest snapshot that all stages are done for."""
        # By table and snapshot: what a manifest says of a partition.
        self._written: dict[str, dict[str, dict]] = {}
        for manifest in manifests:
            for stage in manifest["stages"].values():
                for table, written in stage["tables"].items():
                    self._written.setdefault(table, {})[manifest["snapshot"]] = written
        self._names = {re.sub(r"\W", "_", table, flags=re.ASCII): table for table in self._written} | {"texts": "texts"}

    def __repr__(self) -> str:
        return f"ratoon.open({str(self.folder)!r}): {len(self.snapshots)} snapshots up to {self.newest}"

    @property
    def tables(self) -> list[str]:
        """The names of all tables; with `_all` behind it each has the rows of all snapshots."""
        return sorted(self._names)

    @property
    def extractors(self) -> list[str]:
        return sorted(table.removeprefix("mentions/") for table in self._written if table.startswith("mentions/"))

    def pages(self, at: str | None = None, text: bool = True) -> pl.DataFrame:
        """The pages at a snapshot, each with its text, wherever that lies."""
        return (self._with_text(self._pages(at)) if text else self._pages(at)).collect()

    def mentions(self, extractor: str, at: str | None = None) -> pl.DataFrame:
        """The mentions that an extractor has on the pages at a snapshot."""
        table = f"mentions/{extractor}"
        if table not in self._written:
            raise RatoonError(f"no extractor {extractor}{_nearest(extractor, self.extractors)}")
        return self._state(table, at).collect()

    def table(self, name: str, at: str | None = None) -> pl.DataFrame:
        """A table at a snapshot, as `ratoon sql` has it; with `_all` behind its name, all rows of all snapshots."""
        return self._lazy(name, at).collect()

    def sql(self, query: str, at: str | None = None) -> pl.DataFrame:
        """Asks the tables in the SQL of polars. A column named `end` is written "end".

        `slice_bytes(text, start, "end")` is a function of the program, which then answers instead; so it does for queries
        of several tables: of their conditions polars passes over some and misreads others.
        """
        words = set(re.findall(r"\w+", query))
        if SLICE_BYTES in words or _joins(query):
            return self._ask_program(query, at)
        named = {name for table in self._names for name in (table, f"{table}_all") if name in words}
        context = pl.SQLContext({name: self._lazy(name, at) for name in named})
        return context.execute(query, eager=True)

    def _ask_program(self, query: str, at: str | None) -> pl.DataFrame:
        """The answer of `ratoon sql`, which knows functions that polars lacks."""
        at = self._upto(at)[-1]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "answer.parquet"
            command = [_program(), "sql", str(self.folder), "--at", at, "--format", "parquet", "--out", str(file), "-"]
            ended = subprocess.run(command, input=query, capture_output=True, text=True, encoding="utf-8", check=False)
            if ended.returncode != 0:
                raise RatoonError(ended.stderr.strip() or f"ratoon sql ended with {ended.returncode}")
            return pl.read_parquet(file)

    def slice(self, mentions: pl.DataFrame, before: int = 0, after: int = 0) -> pl.DataFrame:
        """Mentions with a column `slice`: their bytes of the page's text, and so many more before and after them."""
        frame = mentions.with_row_index("_row")
        parts = []
        for (snapshot,), rows in frame.group_by("snapshot", maintain_order=True):
            pages = self._pages(str(snapshot)).join(rows.lazy().select("url").unique(), on="url", how="semi")
            texts = dict(self._with_text(pages).select("url", "text").collect().rows())
            encoded = {url: text.encode() for url, text in texts.items() if text is not None}
            cut = [
                encoded[url][max(start - before, 0) : end + after].decode(errors="ignore") if url in encoded else None
                for url, start, end in rows.select("url", "start", "end").rows()
            ]
            parts.append(rows.with_columns(pl.Series("slice", cut, dtype=pl.String)))
        if not parts:
            return mentions.with_columns(pl.lit(None, dtype=pl.String).alias("slice"))
        return pl.concat(parts).sort("_row").drop("_row")

    def duckdb(self) -> duckdb.DuckDBPyConnection:
        """A DuckDB connection with all tables as views (`pages`) and macros (`pages_at('2024-03-02')`)."""
        import duckdb

        folder = str(self.folder.resolve())
        connection = duckdb.connect()
        connection.execute(f"set file_search_path = '{folder.replace(chr(39), chr(39) * 2)}'")
        connection.execute((self.folder / "catalog.sql").read_text(encoding="utf-8"))
        return connection

    # Which rows hold at a snapshot.

    def _upto(self, at: str | None) -> list[str]:
        at = self.newest if at is None else str(at)
        if at not in self.snapshots:
            raise RatoonError(f"no snapshot {at}; there are {', '.join(self.snapshots)}")
        return self.snapshots[: self.snapshots.index(at) + 1]

    def _layers(self, table: str, at: str | None) -> list[str]:
        """The partitions that make up the state of a table, newest first: the last one is whole."""
        layers = []
        for snapshot in reversed(self._upto(at)):
            written = self._written.get(table, {}).get(snapshot)
            if written is not None:
                layers.append(snapshot)
                if written["whole"]:
                    break
        return layers

    def _scan(self, table: str, snapshots: list[str]) -> pl.LazyFrame:
        """All rows of some partitions, those of the first one first."""
        written = self._written.get(table, {})
        scan = [self._partition(table, snapshot) for snapshot in snapshots if written[snapshot]["bytes"]]
        if scan:
            return pl.concat(scan, how="diagonal_relaxed")
        # Some partition has a file for its schema.
        for snapshot, partition in written.items():
            if partition["bytes"]:
                return self._partition(table, snapshot).clear()
        return pl.LazyFrame(schema={"snapshot": pl.String})

    def _partition(self, table: str, snapshot: str) -> pl.LazyFrame:
        file = self.folder / table / f"snapshot={snapshot}" / PART
        frame = pl.scan_parquet(file, hive_partitioning=False, glob=False)
        return frame.select(pl.lit(snapshot).alias("snapshot"), pl.all())

    def _pages(self, at: str | None) -> pl.LazyFrame:
        newest = self._scan("pages", self._layers("pages", at)).unique("url", keep="first", maintain_order=True)
        return newest.filter(pl.col("change") != "deleted")

    def _with_text(self, pages: pl.LazyFrame) -> pl.LazyFrame:
        """Rows of `pages` with their texts."""
        wanted = pages.select("text_snapshot").unique().collect()["text_snapshot"].drop_nulls().to_list()
        texts = self._scan("pages", wanted).filter(pl.col("text").is_not_null())
        texts = texts.select("url", "text", text_snapshot="snapshot")
        columns = pages.collect_schema().names()
        joined = pages.drop("text").join(texts, on=["url", "text_snapshot"], how="left", maintain_order="left")
        return joined.select(columns)

    def _extractions(self, extractor: str, at: str | None) -> pl.LazyFrame:
        layers = self._layers(f"mentions/{extractor}", at)
        if layers[:1] != self._upto(at)[-1:]:
            return self._scan("extractions", [])
        rows = self._scan("extractions", [layer for layer in layers if layer in self._written["extractions"]])
        newest = rows.filter(extractor=extractor).unique("url", keep="first", maintain_order=True)
        return newest.join(self._pages(at).select("url"), on="url", how="semi", maintain_order="left")

    def _newest_of_sources(self, table: str, at: str | None) -> pl.LazyFrame:
        column, value = SOURCES[table]
        newest = self._scan(table, self._layers(table, at)).unique("source", keep="first", maintain_order=True)
        return newest.filter(pl.col(column).is_null() if value is None else pl.col(column) != value)

    def _tuples(self, table: str, at: str | None) -> pl.LazyFrame:
        """The tuples of a query: those of the newest whole partition, and what changed since."""
        rows = self._scan(table, self._layers(table, at))
        if "change" not in rows.collect_schema():
            return rows
        newest = pl.col("snapshot") == pl.col("snapshot").first().over("tuple")
        return rows.filter(newest).filter(pl.col("change") != "deleted")

    def _pointed(self, table: str, rows: pl.LazyFrame, pointer: str, key: str = "url") -> pl.LazyFrame:
        """The rows of a table that others point to."""
        places = rows.select(key, snapshot=pointer).drop_nulls().unique()
        there = self._written.get(table, {})
        wanted = [snapshot for snapshot in places.collect()["snapshot"].unique().sort() if snapshot in there]
        return self._scan(table, wanted).join(places, on=[key, "snapshot"], how="semi", maintain_order="left")

    def _state(self, table: str, at: str | None) -> pl.LazyFrame:
        kind, _, rest = table.partition("/")
        written = self._written.get(table, {})
        if kind == "pages":
            return self._with_text(self._pages(at))
        if kind == "texts":
            return self._with_text(self._pages(at)).select("snapshot", "url", "text_digest", "text")
        if kind == "links":
            return self._pointed(table, self._pages(at), "content_snapshot")
        if kind == "extractions":
            return pl.concat([self._scan(table, []), *(self._extractions(name, at) for name in self.extractors)])
        if kind == "mentions":
            return self._pointed(table, self._extractions(rest, at), "mentions_snapshot")
        if kind == "web_tuples":
            return self._tuples(table, at)
        if kind == "web_links":
            return self._pointed(table, self._tuples(f"web_tuples/{rest}", at), "snapshot", key="tuple")
        if kind in SOURCES:
            return self._newest_of_sources(table, at)
        if kind == "recall_curves":
            return self._pointed(table, self._newest_of_sources("schedules", at), "snapshot", key="source")
        there = [snapshot for snapshot in self._upto(at) if written.get(snapshot, {}).get("bytes")]
        return self._scan(table, there[-1:] if table.startswith(IN_FULL) else there)

    def _lazy(self, name: str, at: str | None) -> pl.LazyFrame:
        name = re.sub(r"\W", "_", name, flags=re.ASCII)
        if name in self._names:
            return self._state(self._names[name], at)
        table = self._names.get(name.removesuffix("_all"))
        if not name.endswith("_all") or table is None:
            raise RatoonError(f"no table {name}{_nearest(name, self.tables)}")
        if table in ("pages", "texts"):
            rows = self._with_text(self._scan("pages", list(self._written["pages"])))
            return rows if table == "pages" else rows.select("snapshot", "url", "text_digest", "text")
        return self._scan(table, list(self._written[table]))


def _program() -> str:
    """The program: that of this environment, where the wheel has put it, or the one on the path."""
    beside = pathlib.Path(sysconfig.get_path("scripts")) / "ratoon"
    program = shutil.which(str(beside)) or shutil.which("ratoon")
    if program is None:
        raise RatoonError(
            f"{SLICE_BYTES} and queries of several tables need the program ratoon, which is not on the path; install the wheel, "
            "or use store.slice(mentions) or store.duckdb()"
        )
    return program


def _joins(query: str) -> bool:
    """Whether a query may join tables: by JOIN, or by a comma between FROM and the next clause."""
    clause = r"\b(?:select|where|group|having|order|limit|union|intersect|except|window|qualify)\b"
    return re.search(rf"\bjoin\b|\bfrom\b(?:(?!{clause})[^;])*,", query, re.IGNORECASE | re.DOTALL) is not None


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
