#!/usr/bin/env python3
"""Two real evolving corpora for the evaluation of plans: releases of packages that carry data or documentation.

    python3 tests/benches/releases.py [FOLDER] [--steps N] [--bytes N]

writes FOLDER/{little,substantial}/<date>/ (default: .bench/releases under the project root): snapshots in manifest
layout, one a release step. In `little` a step is the next patch release of every package, in `substantial` a release
far later. A page is a text file of 2 KB to 500 KB in UTF-8 at http://releases.example/<package>/<path>. Of each package
so many pages are taken, evenly over its paths and the same in every release, that the newest has about --bytes of them.
Packages are fetched by `pip download`, as for the page pairs; an archive already there is not fetched again. A corpus
already written with the same releases and size is left alone.
"""

import argparse
import concurrent.futures
import datetime
import hashlib
import json
import pathlib
import shutil
import sys
import urllib.parse

import pairs

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAIRS = ROOT / ".bench" / "pairs" / "archives"
FOLDER = ROOT / ".bench" / "releases"
# What `pairs.pages` keeps of an archive: smaller pages than the pairs, and no huge ones.
pairs.LEAST, pairs.MOST = 2_000, 500_000
STEPS = 12
BYTES = 4_000_000
FIRST = datetime.date(2024, 1, 1)
TYPES = {".html": "text/html", ".json": "application/json", ".xml": "application/xml"}

Releases = dict[str, list[str]]
CORPORA: dict[str, Releases] = {
    "little": {
        "Django": ["5.2", *(f"5.2.{patch}" for patch in range(1, 12))],
        "SQLAlchemy": [f"2.0.{patch}" for patch in range(30, 42)],
        "Sphinx": [*(f"7.4.{patch}" for patch in range(8)), "8.0.0", "8.0.1", "8.0.2", "8.1.0"],
        "botocore": [f"1.40.{patch}" for patch in range(12)],
    },
    "substantial": {
        "Django": ["2.0", "2.1", "2.2", "3.0", "3.1", "3.2", "4.0", "4.1", "4.2", "5.0", "5.1", "5.2"],
        "SQLAlchemy": ["1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0", "1.4.20", "1.4.40", "2.0.0", "2.0.10", "2.0.20",
                       "2.0.30", "2.0.41"],
        "Sphinx": ["2.0.0", "2.4.0", "3.0.0", "3.5.0", "4.0.0", "4.5.0", "5.0.0", "5.3.0", "6.2.0", "7.2.0", "8.0.0",
                   "8.2.0"],
        "botocore": [*(f"1.{minor}.0" for minor in range(20, 42, 2)), "1.43.0"],
    },
}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def fetch(package: str, version: str) -> pathlib.Path | None:
    """The archive of a release, from those of the page pairs if it is there."""
    known = PAIRS / f"{package}-{version}"
    there = known.is_dir() and any(known.iterdir())
    return pairs.fetch(package, version, PAIRS if there else FOLDER / "archives")


def rank(path: str) -> bytes:
    """An order of paths that has nothing to do with folders or sizes."""
    return hashlib.blake2b(path.encode(), digest_size=8).digest()


def last_rank(pages: dict[str, bytes], size: int) -> bytes:
    """The rank up to which pages have `size` bytes in all."""
    total, last = 0, b""
    for last, length in sorted((rank(path), len(data)) for path, data in pages.items()):
        total += length
        if total >= size:
            break
    return last


def chosen(archives: list[pathlib.Path], size: int) -> list[dict[str, bytes]]:
    """The chosen pages of each release."""
    last = last_rank(pairs.pages(archives[-1]), size)
    return [
        {path: data for path, data in pairs.pages(archive).items() if rank(path) <= last and pairs.is_text(data)}
        for archive in archives
    ]


def write_snapshot(folder: pathlib.Path, pages: dict[tuple[str, str], bytes]) -> None:
    folder.mkdir(parents=True)
    with open(folder / "manifest.jsonl", "w", encoding="utf-8") as manifest:
        for number, ((package, path), data) in enumerate(sorted(pages.items())):
            suffix = pathlib.PurePosixPath(path).suffix
            file = f"{number:04}{suffix}"
            (folder / file).write_bytes(data)
            row = {
                "url": f"http://releases.example/{package}/{urllib.parse.quote(path)}",
                "file": file,
                "status": 200,
                "content_type": TYPES.get(suffix, "text/plain"),
            }
            manifest.write(json.dumps(row) + "\n")


def write(name: str, root: pathlib.Path, steps: int, size: int) -> pathlib.Path:
    """The corpus of this name: its folder of snapshots."""
    folder = root / name
    stamp = root / f"{name}.json"
    releases = {package: versions[:steps] for package, versions in CORPORA[name].items()}
    what = json.dumps({"releases": releases, "bytes": size})
    if stamp.is_file() and stamp.read_text() == what and folder.is_dir():
        return folder
    say(f"releases {name}: reading {sum(map(len, releases.values()))} archives, after fetching those not there yet")
    # pip mostly waits.
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        archives = {
            package: [archive for archive in pool.map(lambda v, p=package: fetch(p, v), versions) if archive]
            for package, versions in releases.items()
        }
    stamp.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    snapshots: list[dict[tuple[str, str], bytes]] = [{} for _ in range(steps)]
    for package, found in archives.items():
        if not found:
            say(f"note: no release of {package} can be had: {name} is without it")
            continue
        of_releases = chosen(found, size)
        for step, snapshot in enumerate(snapshots):
            # A release that cannot be had is a step in which the package stays as it is.
            pages = of_releases[min(step, len(of_releases) - 1)]
            snapshot.update({(package, path): data for path, data in pages.items()})
    if not any(snapshots):
        sys.exit("releases: no archive could be fetched; is there a network, and `pip` in this Python?")
    before: dict[tuple[str, str], bytes] = {}
    for step, pages in enumerate(snapshots):
        write_snapshot(folder / (FIRST + datetime.timedelta(days=step)).isoformat(), pages)
        same = sum(before.get(key) == data for key, data in pages.items())
        megabytes = sum(map(len, pages.values())) / 1e6
        say(f"releases {name}: step {step + 1}: {len(pages)} pages, {megabytes:.1f} MB, {same} as in the step before")
        before = pages
    stamp.write_text(what)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes two corpora of package releases.")
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=FOLDER)
    parser.add_argument("--steps", type=int, default=STEPS, help=f"snapshots, at most {STEPS} [%(default)s]")
    parser.add_argument("--bytes", type=int, default=BYTES, help="of each package in a snapshot, about [%(default)s]")
    args = parser.parse_args()
    for name in CORPORA:
        print(write(name, args.folder, args.steps, args.bytes))


if __name__ == "__main__":
    main()
