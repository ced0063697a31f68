#!/usr/bin/env python3
"""All ways to read a store say the same: `ratoon sql`, the Python module, DuckDB through catalog.sql, and rows as they lie.

    python agree.py RATOON STORE

Compared are all tables at all snapshots, as sets of whole rows; of pages and mentions also what `slim/state.py` makes of
the files, which shares nothing with the program. Prints what differs; exit code 1 if anything does.
"""

import collections
import collections.abc
import pathlib
import subprocess
import sys
import tempfile

import polars as pl

sys.dont_write_bytecode = True
from slim import state  # noqa: E402

Rows = collections.Counter

try:
    import ratoon
except ImportError:
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "pipelines/python"))
    import ratoon


def rows(frame: pl.DataFrame) -> Rows:
    """The rows of a frame, whatever the order of rows and columns."""
    frame = frame.select(sorted(frame.columns))
    return Rows(state.frozen(row) for row in frame.to_dicts())


def of_program(program: str, store: pathlib.Path, table: str, at: str) -> Rows:
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        query = f"select * from {table}"
        command = [program, "sql", str(store), "--at", at, query, "--format", "parquet", "--out", file.name]
        subprocess.run(command, check=True, capture_output=True)
        return rows(pl.read_parquet(file.name))


def of_rows(store: state.Store, table: str, at: str) -> Rows | None:
    """The same from rows as they lie; None for tables that are not told that way. The snapshot of a row is not known."""
    found: list[state.Row] = []
    if table == "pages":
        found = [page | {"text": store.text(page)} for page in store.pages[at].values()]
    elif table.startswith("mentions_"):
        extractor = table.removeprefix("mentions_")
        for (by, _), row in store.extractions[at].items():
            found += store.mentions(extractor, row) if by == extractor else []
    else:
        return None
    return Rows(state.frozen(dict(sorted(row.items()))) for row in found)


def without_snapshot(counted: Rows) -> Rows:
    return Rows(tuple(pair for pair in row if pair[0] != "snapshot") for row in counted.elements())


def differences(program: str, folder: pathlib.Path, tables: list[str] | None = None, at: list[str] | None = None) -> collections.abc.Iterator[str]:
    """What differs between the readers of a store, in words."""
    store = ratoon.open(folder)
    by_rows = state.Store(folder, store.snapshots)
    duck = store.duckdb()
    duck.execute("set TimeZone = 'UTC'")
    for snapshot in at or store.snapshots:
        for table in tables or store.tables:
            expected = rows(store.table(table, at=snapshot))
            asked = [("ratoon sql", of_program(program, folder, table, snapshot))]
            asked.append(("DuckDB", rows(duck.sql(f"select * from {table}_at('{snapshot}')").pl())))
            for reader, found in asked:
                if found != expected:
                    yield f"{table} at {snapshot}: {reader} has {told(found - expected)}, the module {told(expected - found)}"
            lying = of_rows(by_rows, table, snapshot)
            if lying is not None and lying != without_snapshot(expected):
                yield f"{table} at {snapshot}: the files have {told(lying - without_snapshot(expected))}, the module {told(without_snapshot(expected) - lying)}"


def told(found: Rows) -> str:
    return f"{found.total()} rows more" + (f", such as {str(next(iter(found)))[:300]}" if found else "")


def main() -> None:
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    found = list(differences(program, folder))
    print("\n".join(found) or "all readers agree")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
