#!/usr/bin/env python3
"""Counts suspects among ordinary pages: releases of public packages that carry documentation, each a snapshot.

    python3 tests/benches/suspects.py RATOON [FOLDER]

Every text file of a release, however short, is a page. Packages are fetched by `pip download`, as for the page pairs
(default FOLDER: .bench/suspects under the project root). Prints, for each package, snapshots, captures and suspects;
exit code 1 if there is a suspect.
"""

import collections
import json
import pathlib
import shutil
import subprocess
import sys
import urllib.parse

import pairs

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASES = {
    "SQLAlchemy": ["1.3.24", "1.4.50", "2.0.30", "2.0.41"],
    "Sphinx": ["5.3.0", "7.4.0", "8.1.3", "8.2.0"],
    "docutils": ["0.17", "0.20.1", "0.21.2"],
    "Django": ["4.2", "5.1", "5.2"],
}
TYPES = {".html": "text/html", ".json": "application/json", ".xml": "application/xml"}


def write(folder: pathlib.Path, package: str, number: int, pages: dict[str, bytes]) -> None:
    snapshot = folder / "snapshots" / f"2024-01-{number + 1:02}"
    snapshot.mkdir(parents=True)
    with (snapshot / "manifest.jsonl").open("w", encoding="utf-8") as manifest:
        for i, (path, body) in enumerate(sorted(pages.items())):
            (snapshot / f"{i}").write_bytes(body)
            url = f"http://releases.example/{package}/{urllib.parse.quote(path)}"
            kind = TYPES.get(pathlib.PurePath(path).suffix, "text/plain")
            line = {"url": url, "file": f"{i}", "status": 200, "content_type": kind}
            manifest.write(json.dumps(line) + "\n")


def suspects(ratoon: str, folder: pathlib.Path) -> tuple[int, collections.Counter]:
    pipeline = "[corpus]\nsnapshots = 'snapshots'\nstore = 'store'\n[guard]\nmax_deleted_share = 1.0\n"
    (folder / "p.toml").write_text(pipeline, encoding="utf-8")
    subprocess.run([ratoon, "ingest", "p.toml", "-q"], cwd=folder, check=False)
    import polars

    captures = polars.read_parquet(folder / "store" / "captures" / "*" / "*.parquet", hive_partitioning=False)
    found = captures.filter(polars.col("suspect").is_not_null())
    for row in found.iter_rows(named=True):
        print(f"  {row['suspect']} {row['url']}", file=sys.stderr)
    return len(captures), collections.Counter(found["suspect"].to_list())


def main() -> int:
    ratoon = str(pathlib.Path(sys.argv[1]).resolve())
    folder = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else ROOT / ".bench" / "suspects"
    pairs.LEAST, pairs.MOST = 1, 500_000
    total = 0
    for package, versions in RELEASES.items():
        place = folder / package
        shutil.rmtree(place, ignore_errors=True)
        written = 0
        for version in versions:
            archive = pairs.fetch(package, version, folder / "archives")
            if archive:
                write(place, package, written, pairs.pages(archive))
                written += 1
        captures, found = suspects(ratoon, place)
        total += found.total()
        print(f"{package}: {written} snapshots, {captures} captures, {found.total()} suspects {dict(found)}")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
