#!/usr/bin/env python3
"""How many mentions of a night two programs disagree on: `compare.py PLACES FOUND EXPECTED`, each `STORE@ID` or a file
of script.py. Prints the mentions that only one of them has, and how many were expected. PLACES is `places` or `texts`:
without places mentions are told by page and text, since programs count in bytes or in characters.

A process of its own: what it loads would else count as memory of what is measured.
"""

import collections
import json
import pathlib
import sys


def mentions(where: str) -> list[tuple]:
    store, _, night = where.partition("@")
    if not night:
        with pathlib.Path(store).open(encoding="utf-8") as lines:
            pages = [json.loads(line) for line in lines]
        return [(page["url"], *mention) for page in pages for mention in page["mentions"]]
    import polars

    found = []
    for table in sorted((pathlib.Path(store) / "mentions").iterdir()):
        for part in sorted((table / f"snapshot={night}").glob("*.parquet")):
            rows = polars.read_parquet(part, columns=["url", "start", "text"], hive_partitioning=False)
            found += [(url, table.name, start, text) for url, start, text in rows.iter_rows()]
    return found


def main() -> None:
    places, *sides = sys.argv[1:]
    found, expected = (
        collections.Counter(row if places == "places" else (row[0], row[1], row[3]) for row in mentions(side)) for side in sides
    )
    wrong = sum((found - expected).values()) + sum((expected - found).values())
    print(json.dumps({"wrong": wrong, "expected": sum(expected.values())}))


if __name__ == "__main__":
    main()
