"""The tables of a store as plain rows, and the state at a snapshot: what holds then, told from rows at or before it.

A partition of `pages` is whole (all that lives) or slim (what the snapshot touched; what went has a row `deleted`).
So are the rows of an extractor in `extractions`, and each of them names the partition of `mentions/<extractor>` that
holds its mentions. This is written anew from what the tables say of themselves, and shares nothing with the program.
Stores from before there were slim snapshots are read too: there every partition is whole.
"""

import collections.abc
import functools
import pathlib

import polars as pl

Row = dict[str, object]
# Tables whose rows tell what happened in a snapshot. They have no state.
EVENTS = ["captures", "rejects", "updates", "page_deltas", "link_deltas", "region_deltas", "mention_deltas", "alerts",
          "tuple_deltas", "tuple_links"]  # fmt: skip
# Tables of sources: a row holds until there is a newer one.
SOURCES = ["update_stats", "schedules"]


class Broken(Exception):
    """The tables contradict themselves."""


def frozen(value: object) -> object:
    """A cell that can be compared and counted."""
    if isinstance(value, dict):
        return tuple((key, frozen(item)) for key, item in value.items())
    return tuple(map(frozen, value)) if isinstance(value, list) else value


class Store:
    """The tables of a store. `kept` are its snapshots in the order of their times."""

    def __init__(self, folder: pathlib.Path, kept: list[str]) -> None:
        self.folder = folder
        self.kept = kept
        self.known: dict[tuple[str, str], dict[str, list[Row]]] = {}

    def rows(self, table: str, snapshot: str) -> list[Row]:
        """A partition without a file has no rows."""
        files = sorted((self.folder / table / f"snapshot={snapshot}").glob("*.parquet"))
        return [row for file in files for row in pl.read_parquet(file, hive_partitioning=False).to_dicts()]

    def rows_by_url(self, table: str, snapshot: str) -> dict[str, list[Row]]:
        if (table, snapshot) not in self.known:
            found = self.known[table, snapshot] = {}
            for row in self.rows(table, snapshot):
                found.setdefault(str(row["url"]), []).append(row)
        return self.known[table, snapshot]

    def partitions(self) -> collections.abc.Iterator[pathlib.Path]:
        """Folders of all partitions of all tables."""
        return (path for path in self.folder.glob("**/snapshot=*") if "_meta" not in path.parts)

    def extractors(self) -> list[str]:
        folder = self.folder / "mentions"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def whole(self, table: str, snapshot: str, rows: list[Row]) -> bool:
        """Whether rows of one partition replace all that was before them."""
        said = {row.get("whole", True) for row in rows}
        if len(said) > 1:
            raise Broken(f"{table} at {snapshot} is whole and slim at once")
        return said == {True}

    # States.

    @functools.cached_property
    def pages(self) -> dict[str, dict[str, Row]]:
        """By snapshot and URL: the rows of the pages that live then."""
        states, state = {}, {}
        for snapshot in self.kept:
            rows = self.rows("pages", snapshot)
            whole = self.whole("pages", snapshot, rows)
            if snapshot == self.kept[0] and not whole:
                raise Broken(f"pages at {snapshot}, the first that is kept, is not whole")
            if len({row["url"] for row in rows}) < len(rows):
                raise Broken(f"pages at {snapshot} has two rows of a URL")
            state = {} if whole else dict(state)
            for row in rows:
                if row["change"] != "deleted":
                    state[row["url"]] = row
                elif whole:
                    raise Broken(f"pages at {snapshot} is whole and holds the deleted {row['url']}")
                else:
                    state.pop(row["url"], None)
            states[snapshot] = state
        return states

    @functools.cached_property
    def extractions(self) -> dict[str, dict[tuple[str, str], Row]]:
        """By snapshot, and by extractor and URL: the rows that hold then, of pages that live then."""
        states, newest = {}, {}
        for snapshot in self.kept:
            by_extractor: dict[str, list[Row]] = {}
            for row in self.rows("extractions", snapshot):
                by_extractor.setdefault(str(row["extractor"]), []).append(row)
            for extractor, rows in by_extractor.items():
                whole = self.whole(f"extractions of {extractor}", snapshot, rows)
                before = {} if whole else newest.get(extractor, {})
                default = {"mentions_snapshot": snapshot}
                newest[extractor] = before | {str(row["url"]): default | row for row in rows}
            living = self.pages[snapshot]
            states[snapshot] = {
                (extractor, url): row
                for extractor, rows in newest.items()
                for url, row in rows.items()
                if url in living
            }
        return states

    @functools.cached_property
    def sources(self) -> dict[tuple[str, str], dict[str, Row]]:
        """By table and snapshot: the newest row of each source."""
        states = {}
        for table in SOURCES:
            state: dict[str, Row] = {}
            for snapshot in self.kept:
                state = state | {str(row["source"]): row for row in self.rows(table, snapshot)}
                states[table, snapshot] = state
        return states

    def mentions(self, extractor: str, row: Row) -> list[Row]:
        """The mentions that a row of `extractions` names."""
        url, at = str(row["url"]), row["mentions_snapshot"]
        found = self.rows_by_url(f"mentions/{extractor}", str(at)).get(url, []) if at is not None else []
        if len(found) != row["mentions"]:
            raise Broken(f"{extractor} of {url} has {len(found)} mentions at {at}, not {row['mentions']}")
        return found

    def text(self, page: Row) -> str:
        at = str(page["text_snapshot"])
        texts = [row["text"] for row in self.rows_by_url("pages", at).get(str(page["url"]), [])]
        if len(texts) != 1 or texts[0] is None or len(texts[0].encode()) != page["text_bytes"]:
            raise Broken(f"the text of {page['url']} is not at {at}")
        return texts[0]

    def links(self, page: Row) -> list[tuple]:
        rows = self.rows_by_url("links", str(page["content_snapshot"])).get(str(page["url"]), [])
        columns = ["ordinal", "target", "label", "kind"]
        return sorted(tuple(row[column] for column in columns) for row in rows)
