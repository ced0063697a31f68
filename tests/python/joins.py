#!/usr/bin/env python3
"""Joins with conditions of all kinds: `ratoon sql` and the Python module answer as DuckDB does on catalog.sql, or refuse.

    python joins.py RATOON STORE

The store is one of the sample site campus. Prints what differs; exit code 1 if anything does.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import polars as pl

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "pipelines/python"))
import ratoon  # noqa: E402

TIMES_AND_ROOMS = 'select m.url, m.start as a, n.start as b, n.text as c from mentions_time m join mentions_room n on m.url = n.url'
ALIKE = [
    f'{TIMES_AND_ROOMS} and n.start - m."end" < 20',
    f"{TIMES_AND_ROOMS} and abs(n.start - m.start) < 20",
    f"{TIMES_AND_ROOMS} and n.text = (select_room)",
    f"{TIMES_AND_ROOMS} and (n.start < m.start or m.start < 300) where n.start > 100 or m.start > 400",
    f"{TIMES_AND_ROOMS} and n.start > m.start and m.start between 100 and 500",
    f"{TIMES_AND_ROOMS} and n.text like 'Hall%' and not (m.start > 400)",
    f"{TIMES_AND_ROOMS} and m.text = m.text and n.text is not null",
    "select m.url, n.url as other from mentions_time m join mentions_room n on m.start < n.start and m.url < n.url",
    "select m.url, n.url as other from mentions_time m join mentions_room n on n.start = m.start",
    "select m.url, number from mentions_time m join (select url as page, start as number from mentions_room) n on m.url = page and number > 200",
    f"with near as ({TIMES_AND_ROOMS} and n.start - m.start < 60) select url, count(*) as n from near group by url",
    f"select p.url from pages p join ({TIMES_AND_ROOMS} and n.start > 200) x on p.url = x.url and x.a > 100",
    f"select url from pages where url in (select url from ({TIMES_AND_ROOMS} and n.start < 200) x)",
    f"{TIMES_AND_ROOMS} and n.start < 200 union all {TIMES_AND_ROOMS} and n.start >= 400",
    "select p.url, m.start, n.start as other from pages p join mentions_time m on p.url = m.url and m.start > 100 "
    "join mentions_room n on n.url = m.url and n.start > m.start",
    "select p.url, m.start, n.start as other from pages p join mentions_time m on p.url = m.url and m.start > 100 "
    "left join mentions_room n on n.url = p.url",
    "select m.url from mentions_time m, mentions_room n where m.url = n.url and n.start - m.start > m.start",
    "select p.url from pages p, mentions_time m join mentions_room n on m.url = n.url and n.start > 50 where p.url = m.url and n.start - m.start < length(p.url)",
    "select m.url, n.start from (select * from mentions_time where start > 50) m, mentions_room n where m.url = n.url and n.start + m.start > m.start * 2",
    # Columns of the same names on both sides, written from right to left.
    "select p.url, n.start from pages p join mentions_time m on p.url = m.url join mentions_room n on n.start = m.start and n.url = m.url",
    'select m.url, n.start from mentions_time m join mentions_room n on n."end" = m.start and n.url = m.url',
    "select p.url, n.start from pages p join mentions_time m on p.url = m.url join mentions_room n on n.url = m.url and n.start > length(p.url)",
    "select p.url, m.start from pages p left join (select * from mentions_time where start > 500) m on p.url = m.url",
]
REFUSED = [
    ("select p.url, m.start from pages p left join mentions_time m on p.url = m.url and m.start > 500", "`m.start > 500` in ON of left join"),
    ("select p.url from pages p full join mentions_time m on p.url = m.url and m.start > 500", "`m.start > 500` in ON of full join"),
    ("with x as (select p.url from pages p left join mentions_time m on p.url = m.url and m.start > length(p.url)) select * from x", "`m.start > length(p.url)`"),
]


def ask(program: str, store: pathlib.Path, query: str) -> list[tuple] | str:
    """The rows, sorted, or what is said instead."""
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        command = [program, "sql", str(store), query, "--format", "parquet", "--out", file.name]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        return sorted(pl.read_parquet(file.name).rows(), key=repr) if ended.returncode == 0 else ended.stderr.strip()


def main() -> None:
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    os.environ["PATH"] = f"{pathlib.Path(program).resolve().parent}{os.pathsep}{os.environ['PATH']}"
    store = ratoon.open(folder)
    duck = store.duckdb()
    room = duck.sql("select n.text from mentions_room n join mentions_time m using (url) group by 1 order by count(*) desc, 1 limit 1").fetchall()[0][0]
    wrong = []
    empty = 0
    for query in ALIKE:
        query = query.replace("(select_room)", f"'{room}'")
        expected = sorted(duck.sql(query).fetchall(), key=repr)
        found = ask(program, folder, query)
        empty += not expected
        if found != expected:
            wrong.append(f"{query}\n  DuckDB: {len(expected)} rows; ratoon: {found if isinstance(found, str) else len(found)}")
        from_python = sorted(store.sql(query).rows(), key=repr)
        if from_python != expected:
            wrong.append(f"{query}\n  DuckDB: {len(expected)} rows; store.sql: {len(from_python)}")
    for query, said in REFUSED:
        found = ask(program, folder, query)
        if not isinstance(found, str) or said not in found:
            wrong.append(f"{query}\n  is not refused with {said}: {found}")
    if empty > 2:
        wrong.append(f"{empty} questions have no rows and show nothing")
    print("\n".join(wrong) or f"{len(ALIKE)} joins alike")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
