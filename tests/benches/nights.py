#!/usr/bin/env python3
"""Measures what a night costs: polls of a few pages in small and large corpora, schedules of sources of which nothing
is known, many small nights, and whole nights beside other programs that read the same files.

    python tests/benches/nights.py [--quick] [--only polls schedule nights whole …] [--ratoon PATH] …

- `polls`: 200 captures of known URLs (60 with other text, 10 answered 304, the rest as before), `coverage = "partial"`,
  two patterns, in sites of 10,000, 100,000 and 1,000,000 pages of about 1.5 KB of text. What counts are whole runs from
  the third poll on; the sites take turns, so that a noisy machine disturbs all alike.
- `schedule`: seconds of the stage on the first night of 100,000 sources.
- `nights`: 400 nights of 40 pages (60 KB a night), 3 of them changed each night, full coverage.
- `sources`: stages and `due` at 1,000,000 sources of which little is known: pages of a few words in manifest layout, then
  polls of 20,000 of them, 5,000 with other text.
- `whole`: three full nights of 100,000 pages with 4 KB of text, 3 % of them changed, all stages, beside two Python scripts
  (`peers.py`): one that only reads and hashes the same files, and one that extracts the same patterns from scratch.
  Then the same nights on two threads. Runs take turns; the least of each counts.
- `counters`: the same nights where 15 % of the pages show a counter besides, new on every fetch: one text in six differs.
- `revisits`: the second night of 100,000 and of 1,000,000 pages, every other one a copy of the page before it, which the
  second night tells by a revisit of that other URL's payload.
- `huge`: the first night of one page of 500 MB.
- `terms`: what it takes to load a list of 1,000,000 terms that differ in their last digits, over one of 100,000.

Sites are the first snapshots of `ratoon synth`; they are kept in --out and serve again. Polls and nights are made from
them here, the same ones every time. Stores are made anew. Runs have one thread unless told otherwise. Written to --out (.bench/nights):
results.json with every single measurement, and summary.md, which is also printed. Needs Python 3.11.
"""

import argparse
import base64
import collections.abc
import dataclasses
import datetime
import hashlib
import json
import os
import pathlib
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SITES, QUICK_SITES = [10_000, 100_000, 1_000_000], [10_000, 100_000]
NIGHTS, QUICK_NIGHTS = 400, 60
# A poll: captures, of these with other text, of these answered 304. They are taken from so many pages.
POLL, CHANGED, UNMODIFIED, POLLED = 200, 60, 10, 1_000
# The first polls fill caches and indexes.
WARM_UP = 2
# A small night: pages, of these with other text.
SMALL, SMALL_CHANGED = 40, 3
# Sources of which little is known, and polls of a fiftieth of them.
SOURCES, QUICK_SOURCES, SOURCE_POLLS = 1_000_000, 100_000, 3
# Whole nights: pages, bytes of text a page, share that changes, rounds.
WHOLE, QUICK_WHOLE, WHOLE_BYTES, WHOLE_CHANGE, ROUNDS = 100_000, 20_000, 4_000, 0.03, 3
# Of these pages, those that show a counter.
COUNTERS = 0.15
# Nights with revisits: pages.
REVISITS, QUICK_REVISITS = [100_000, 1_000_000], [20_000, 100_000]
HUGE_BYTES, QUICK_HUGE_BYTES = 500_000_000, 100_000_000
TERMS = [100_000, 1_000_000]
PEERS = pathlib.Path(__file__).with_name("peers.py")
REVISIT_PROFILE = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
FIRST = datetime.datetime(2024, 3, 1, 2, tzinfo=datetime.UTC)
PIPELINE = """
[corpus]
snapshots = "snapshots"
store     = "store"
coverage  = "{coverage}"

[[extractor]]
name    = "person"
kind    = "regex"
pattern = '(?:Dr|Prof)\\. [A-Z][a-z]{{1,20}} [A-Z][a-z]{{1,24}}'

[[extractor]]
name    = "place"
kind    = "regex"
pattern = '\\b(?:Room|Hall) [A-D]?[0-9]{{1,3}}\\b'
"""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- What is measured ---


@dataclasses.dataclass
class Cost:
    """What a command took."""

    wall: float
    cpu: float
    peak_mb: float
    output: str = dataclasses.field(repr=False)

    def seconds_by_stage(self) -> dict[str, float]:
        """Of a run with --json."""
        return {step["stage"]: step["seconds"] for step in json.loads(self.output)["done"]}


def run(command: list[object]) -> Cost:
    """Runs a command to its end."""
    words = [str(word) for word in command]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        process = subprocess.Popen(words, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode != 0:
            sys.exit(f"nights: exit {process.returncode} of {' '.join(words)}\n{err.read().decode(errors='replace')}")
        return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000, out.read().decode())


def weigh(folder: pathlib.Path) -> tuple[int, int]:
    """Bytes and number of all files below."""
    sizes = [(pathlib.Path(root) / file).lstat().st_size for root, _, files in os.walk(folder) for file in files]
    return sum(sizes), len(sizes)


@dataclasses.dataclass
class Row:
    """A line of the summary."""

    work: str
    value: float
    unit: str = ""
    # At most this (or at least this); None: it is only told.
    target: float | None = None
    at_least: bool = False

    def cells(self) -> list[str]:
        if self.target is None:
            return [self.work, shown(self.value, self.unit), "", ""]
        met = self.value >= self.target if self.at_least else self.value <= self.target
        sign = ">=" if self.at_least else "<="
        return [self.work, shown(self.value, self.unit), f"{sign} {shown(self.target, self.unit)}", "yes" if met else "no"]


def shown(value: float, unit: str) -> str:
    if unit == "files":
        return f"{value:,.0f}"
    digits = f"{value:,.2f}" if value >= 0.1 else f"{value:.3f}"
    return f"{digits} {unit}".strip()


# --- Sites ---


@dataclasses.dataclass
class Page:
    url: str
    original: bytes
    # Where a sentence may be put in.
    places: list[int]
    body: bytes = b""

    def edit(self, number: int, chance: random.Random) -> None:
        """Another text of about the same length: the original with one sentence of its own."""
        at, room = chance.choice(self.places), chance.randrange(1, 999)
        sentence = f" Revised for the {number}th time: Dr. Ada Fenn is in Room {room} now, ask for number {number}."
        self.body = self.original[:at] + sentence.encode() + self.original[at:]


class Nights:
    """Whole nights of a synthetic site in gzip WARC files, made when they are first needed."""

    def __init__(self, ratoon: pathlib.Path, folder: pathlib.Path, pages: int, counters: float) -> None:
        self.folder = folder / f"{pages}x{WHOLE_BYTES}-three-nights-{counters:.0%}"
        if not self.folder.is_dir():
            say(f"three nights of {pages:,} pages")
            making = folder / "making"
            shutil.rmtree(making, ignore_errors=True)
            run([ratoon, "synth", making / "snapshots", "--part", "campus", "--pages", pages, "--page-bytes",
                 WHOLE_BYTES, "--snapshots", 3, "--change", WHOLE_CHANGE, "--boilerplate", 0, "--counters", counters,
                 "--no-mentions", "--threads", 1, "-q"])  # fmt: skip
            (making / "snapshots").rename(self.folder)
            shutil.rmtree(making)
        self.nights = sorted(path for path in self.folder.iterdir() if path.is_dir())


class Site:
    """The first snapshot of a synthetic site, made when it is first needed."""

    def __init__(self, ratoon: pathlib.Path, folder: pathlib.Path, pages: int, page_bytes: int) -> None:
        self.pages = pages
        self.night = folder / f"{pages}x{page_bytes}" / FIRST.date().isoformat()
        if not self.night.is_dir():
            say(f"site of {pages:,} pages")
            making = folder / "making"
            shutil.rmtree(making, ignore_errors=True)
            run([ratoon, "synth", making / "snapshots", "--part", "campus", "--pages", pages, "--page-bytes",
                 page_bytes, "--snapshots", 1, "--boilerplate", 0, "--no-mentions", "--layout", "warc-plain",
                 "--threads", 1, "-q"])  # fmt: skip
            self.night.parent.mkdir(parents=True, exist_ok=True)
            (making / "snapshots" / self.night.name).rename(self.night)
            shutil.rmtree(making)

    def sample(self, count: int) -> list[Page]:
        """So many of its pages, each as likely as the others, always the same ones."""
        chance = random.Random(self.pages)
        kept: list[Page] = []
        for seen, page in enumerate(pages_of(self.night)):
            at = seen if seen < count else chance.randrange(seen + 1)
            if at < count:
                kept[at : at + 1] = [page()]
        if len(kept) < count:
            sys.exit(f"nights: only {len(kept)} pages of {self.night} can be edited")
        return kept


def pages_of(folder: pathlib.Path) -> collections.abc.Iterator[collections.abc.Callable[[], Page]]:
    """Every page of a folder of plain WARC files that can be edited as it stands; a page is made only if it is taken.

    These are responses 200 in UTF-8 without content or transfer encodings, with a paragraph.
    """
    wanted = b"Content-Type: text/html; charset=utf-8"
    for path in sorted(folder.glob("*.warc")):
        with path.open("rb") as file:
            while record := head_of(file):
                start = file.tell()
                length = int(record[b"content-length"])
                if record.get(b"warc-type") == b"response":
                    block = file.read(length)
                    head, _, body = block.partition(b"\r\n\r\n")
                    plain = b"-Encoding:" not in head and head.startswith(b"HTTP/1.1 200")
                    if plain and wanted in head and b"</p>" in body:
                        url = record[b"warc-target-uri"].strip(b"<>").decode()
                        yield lambda url=url, body=body: Page(url, body, occurrences(body, b"</p>"), body)
                file.seek(start + length)


def head_of(file) -> dict[bytes, bytes]:
    """The header of the next record of a WARC file by lower-case names; empty at its end."""
    line = file.readline()
    while line in (b"\r\n", b"\n"):
        line = file.readline()
    fields = {}
    while line := file.readline().strip():
        name, _, value = line.partition(b":")
        fields[name.lower()] = value.strip()
    return fields


def occurrences(text: bytes, what: bytes) -> list[int]:
    found, at = [], text.find(what)
    while at >= 0:
        found.append(at)
        at = text.find(what, at + 1)
    return found


# --- Snapshots made here ---


def record(url: str, at: datetime.datetime, body: bytes | None) -> bytes:
    """A response record; without a body a 304."""
    if body is None:
        block, digest = b"HTTP/1.1 304 Not Modified\r\n\r\n", ""
    else:
        block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
        block += b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        digest = f"WARC-Payload-Digest: sha1:{base64.b32encode(hashlib.sha1(body).digest()).decode()}\r\n"
    head = (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Date: {at:%Y-%m-%dT%H:%M:%SZ}\r\nWARC-Target-URI: {url}\r\n{digest}"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def write_snapshot(folder: pathlib.Path, captures: collections.abc.Iterable[bytes]) -> None:
    """All at once: a run never finds half a snapshot."""
    making = folder.with_name(f".{folder.name}")
    making.mkdir(parents=True)
    with (making / "crawl.warc").open("wb") as file:
        file.writelines(captures)
    making.rename(folder)


class Corpus:
    """A pipeline with a store of its own."""

    def __init__(self, bench: "Bench", name: str, coverage: str) -> None:
        self.bench = bench
        self.folder = bench.work / name
        self.store = self.folder / "store"
        self.snapshots = self.folder / "snapshots"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.snapshots.mkdir(parents=True)
        self.pipeline = self.folder / "p.toml"
        self.pipeline.write_text(PIPELINE.format(coverage=coverage), encoding="utf-8")

    def call(self, command: str, *options: object) -> Cost:
        return run([self.bench.ratoon, command, self.pipeline, *options])

    def run(self, threads: int = 1) -> Cost:
        return self.call("run", "--threads", threads, "--json", "-q")

    def add(self, night: pathlib.Path) -> None:
        """Takes in a snapshot that lies elsewhere."""
        folder = self.snapshots / night.name
        folder.mkdir()
        for file in night.iterdir():
            os.link(file, folder / file.name)


class PolledCorpus(Corpus):
    """A site whose first snapshot is done, and polls of some of its pages."""

    def __init__(self, bench: "Bench", site: Site) -> None:
        super().__init__(bench, f"polls-{site.pages}", "partial")
        self.add(site.night)
        say(f"first night of {site.pages:,} pages")
        self.site = site
        self.first = self.run()
        self.pages: list[Page] = []
        self.polls = 0
        self.chance = random.Random(1)

    def poll(self) -> dict[str, float]:
        """Makes the next poll, runs it and says what it cost."""
        self.pages = self.pages or self.site.sample(POLLED)
        self.polls += 1
        time_of_poll = FIRST + datetime.timedelta(days=1, hours=self.polls)
        write_snapshot(self.snapshots / f"{time_of_poll:%Y-%m-%dT%H-%M}", self.captures(time_of_poll))
        before = weigh(self.store)
        cost = self.run()
        after = weigh(self.store)
        grown = {"mb": (after[0] - before[0]) / 1e6, "files": after[1] - before[1]}
        return {"wall": cost.wall, "cpu": cost.cpu, "peak_mb": cost.peak_mb, **grown, **cost.seconds_by_stage()}

    def captures(self, time_of_poll: datetime.datetime) -> collections.abc.Iterator[bytes]:
        for number, page in enumerate(self.chance.sample(self.pages, POLL)):
            if number < CHANGED:
                page.edit(self.polls, self.chance)
            at = time_of_poll - datetime.timedelta(seconds=POLL - number)
            yield record(page.url, at, None if CHANGED <= number < CHANGED + UNMODIFIED else page.body)


# --- Benches ---


class Bench:
    """What all benches share: the program, the sites, the corpora that have been begun, all measurements."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.ratoon: pathlib.Path = args.ratoon.resolve()
        self.out: pathlib.Path = args.out.resolve()
        self.work = self.out / "work"
        self.sizes: list[int] = args.sizes
        self.polls: int = args.polls
        self.nights: int = args.nights
        self.quick: bool = args.quick
        self.rounds: int = args.rounds
        self.polled: dict[int, PolledCorpus] = {}
        self.raw: dict[str, object] = {}

    def site(self, pages: int, page_bytes: int) -> Site:
        return Site(self.ratoon, self.out / "sites", pages, page_bytes)

    def corpus(self, pages: int) -> PolledCorpus:
        """The site of so many pages with its first night done; begun once, for all benches."""
        if pages not in self.polled:
            self.polled[pages] = PolledCorpus(self, self.site(pages, 1_500))
            first = self.polled[pages].first
            bytes_, files = weigh(self.polled[pages].store)
            self.raw[f"first night of {pages}"] = {
                "wall": first.wall, "cpu": first.cpu, "peak_mb": first.peak_mb, "mb": bytes_ / 1e6, "files": files,
                **first.seconds_by_stage(),
            }  # fmt: skip
        return self.polled[pages]


def polls(bench: Bench) -> list[Row]:
    corpora = {pages: bench.corpus(pages) for pages in bench.sizes}
    costs: dict[int, list[dict[str, float]]] = {pages: [] for pages in corpora}
    for number in range(WARM_UP + bench.polls):
        for pages, corpus in corpora.items():
            costs[pages].append(corpus.poll())
            say(f"poll {number + 1} in {pages:,}: {costs[pages][-1]['wall']:.2f} s")
    bench.raw["polls"] = costs
    rows = []
    for pages in corpora:
        rows += poll_rows(f"poll in {pages:,} pages", costs[pages][WARM_UP:])
    small, large = min(corpora), max(corpora)
    for key, name in [("cpu", "processor time"), ("wall", "elapsed")] if small < large else []:
        ratio = middle(costs[large][WARM_UP:], key) / middle(costs[small][WARM_UP:], key)
        rows.append(Row(f"poll in {large:,} pages over one in {small:,}: {name}", ratio, "", 1.5))
    return rows


def poll_rows(work: str, costs: list[dict[str, float]]) -> list[Row]:
    return [
        Row(f"{work}: elapsed", middle(costs, "wall"), "s", 0.5),
        Row(f"{work}: processor time", middle(costs, "cpu"), "s"),
        Row(f"{work}: store grows by", middle(costs, "mb"), "MB", 1.0),
        Row(f"{work}: store grows at most by", max(cost["mb"] for cost in costs), "MB"),
        Row(f"{work}: new files", middle(costs, "files"), "files", 20),
        Row(f"{work}: new files at most", max(cost["files"] for cost in costs), "files"),
    ]


def middle(costs: list[dict[str, float]], key: str) -> float:
    return statistics.median(cost[key] for cost in costs)


def schedule(bench: Bench) -> list[Row]:
    pages = 100_000
    seconds = bench.corpus(pages).first.seconds_by_stage()
    return [
        Row(f"`schedule`, first night of {pages:,} sources", seconds["schedule"], "s", 1.0),
        Row("the same over `ingest` of that night", seconds["schedule"] / seconds["ingest"]),
    ]


def sources(bench: Bench) -> list[Row]:
    """Stages that go by source, and what is due."""
    count = QUICK_SOURCES if bench.quick else SOURCES
    corpus = Corpus(bench, "sources", "partial")
    chance = random.Random(4)
    costs = []
    for number in range(1 + SOURCE_POLLS):
        night = FIRST + datetime.timedelta(days=number)
        captured = range(count) if number == 0 else sorted(chance.sample(range(count), count // 50))
        changed = set(chance.sample(captured, len(captured) // 4)) if number else set()
        write_manifest(corpus.snapshots / night.date().isoformat(), night, captured, changed)
        cost = corpus.run()
        costs.append({"wall": cost.wall, "cpu": cost.cpu, "peak_mb": cost.peak_mb, **cost.seconds_by_stage()})
        say(f"night {number + 1} of {count:,} sources: {costs[-1]}")
    at = FIRST + datetime.timedelta(days=2 + SOURCE_POLLS)
    due = {
        name: statistics.median(corpus.call("due", "--at", f"{at:%Y-%m-%dT%H:%M:%SZ}", *options).wall for _ in range(5))
        for name, options in {"all": [], "1,000": ["--limit", 1000], "all as jsonl": ["--format", "jsonl"]}.items()
    }
    bench.raw["sources"] = {"costs": costs, "due": due}
    last = costs[-1]
    work = f"{count:,} sources"
    return [
        Row(f"{work}, first night: `stats`", costs[0]["stats"], "s"),
        Row(f"{work}, first night: `schedule`", costs[0]["schedule"], "s"),
        Row(f"{work}, poll of {count // 50:,}: `stats`", last["stats"], "s"),
        Row(f"{work}, poll of {count // 50:,}: `schedule`", last["schedule"], "s"),
        Row(f"{work}: `due`, all of them", due["all"], "s", 1.0),
        Row(f"{work}: `due --limit 1000`", due["1,000"], "s", 1.0),
        Row(f"{work}: `due --format jsonl`, all of them", due["all as jsonl"], "s"),
    ]


def write_manifest(folder: pathlib.Path, at: datetime.datetime, pages: collections.abc.Iterable[int], changed: set[int]) -> None:
    """A snapshot of pages by number; those that did not change share a few files. Texts are too short to tell a move from."""
    making = folder.with_name(f".{folder.name}")
    making.mkdir(parents=True)
    for i in range(1000):
        (making / f"{i}.html").write_text(f"<p>page {i}</p>", encoding="utf-8")
    with (making / "manifest.jsonl").open("w", encoding="utf-8") as lines:
        for i in pages:
            file = f"{i % 1000}.html"
            if i in changed:
                file = f"changed-{i}.html"
                (making / file).write_text(f"<p>{i} of {at:%d}</p>", encoding="utf-8")
            lines.write(f'{{"url":"http://h{i % 5000}.example/{i}","file":"{file}","status":200,'
                        f'"fetched_at":"{at:%Y-%m-%dT%H:%M:%SZ}"}}\n')  # fmt: skip
    making.rename(folder)


def nights(bench: Bench) -> list[Row]:
    corpus = Corpus(bench, "nights", "full")
    pages = bench.site(SMALL * 10, 700).sample(SMALL)
    chance = random.Random(2)
    costs = []
    for number in range(1, bench.nights + 1):
        for page in chance.sample(pages, SMALL_CHANGED):
            page.edit(number, chance)
        night = FIRST + datetime.timedelta(days=number)
        times = (night + datetime.timedelta(seconds=at) for at in range(SMALL))
        captures = [record(page.url, at, page.body) for page, at in zip(pages, times)]
        write_snapshot(corpus.snapshots / night.date().isoformat(), captures)
        cost = corpus.run()
        costs.append({"wall": cost.wall, "cpu": cost.cpu, "peak_mb": cost.peak_mb, **cost.seconds_by_stage()})
        if number % 20 == 0:
            say(f"night {number}: {cost.wall:.2f} s")
    bytes_, files = weigh(corpus.store)
    status = statistics.median(corpus.call("status", "-q").wall for _ in range(5))
    bench.raw["nights"] = {"costs": costs, "mb": bytes_ / 1e6, "files": files, "status": status}
    # What a store may weigh is stated for all nights.
    whole = bench.nights == NIGHTS
    work = f"{bench.nights} nights of {SMALL} pages"
    growth = {key: middle(costs[-10:], key) / middle(costs[5:15], key) for key in ("wall", "cpu")}
    return [
        Row(f"{work}: store", bytes_ / 1e6, "MB", 40.0 if whole else None),
        Row(f"{work}: files", files, "files", 8_000 if whole else None),
        Row(f"{work}: elapsed of the last ten over nights 6 to 15", growth["wall"], "", 1.2),
        Row(f"{work}: processor time of the last ten over nights 6 to 15", growth["cpu"], ""),
        Row(f"{work}: elapsed of one of the last ten", middle(costs[-10:], "wall"), "s"),
        Row(f"{work}: `status`", status, "s", 0.1),
    ]


def whole(bench: Bench) -> list[Row]:
    """Whole nights beside what other programs take on the same files."""
    return whole_nights(bench, "whole", 0.0, "3 % changed")


def counters(bench: Bench) -> list[Row]:
    """The same where many pages show a counter."""
    return whole_nights(bench, "counters", COUNTERS, "one text in six changed")


def whole_nights(bench: Bench, name: str, counters: float, changed: str) -> list[Row]:
    pages = QUICK_WHOLE if bench.quick else WHOLE
    nights = Nights(bench.ratoon, bench.out / "sites", pages, counters).nights
    costs: dict[str, list[Cost]] = {}
    for number in range(bench.rounds):
        for threads in (1, 2):
            corpus = Corpus(bench, name, "full")
            for i, night in enumerate(nights):
                corpus.add(night)
                cost = corpus.run(threads)
                costs.setdefault(f"night {i + 1}, {threads} threads", []).append(cost)
                say(f"round {number + 1}, night {i + 1}, {threads} threads: {cost.cpu:.2f} s, {cost.seconds_by_stage()}")
        for i, night in enumerate(nights):
            for peer in ["hash"] + (["scratch"] if i == 0 else []):
                cost = run([sys.executable, PEERS, peer, night])
                costs.setdefault(f"night {i + 1}, {peer}", []).append(cost)
                say(f"round {number + 1}, night {i + 1}, {peer}: {cost.cpu:.2f} s, {cost.output.strip()}")
    bench.raw[name] = {
        run_name: [{"wall": cost.wall, "cpu": cost.cpu, "peak_mb": cost.peak_mb} for cost in found]
        for run_name, found in costs.items()
    }
    cpu = {name: min(cost.cpu for cost in found) for name, found in costs.items()}
    wall = {name: min(cost.wall for cost in found) for name, found in costs.items()}
    peak = {name: max(cost.peak_mb for cost in found) for name, found in costs.items()}
    first, second, third = "night 1, 1 threads", "night 2, 1 threads", "night 3, 1 threads"
    work = f"of {pages:,} pages"
    return [
        Row(f"night {work}, {changed}: processor time", cpu[second], "s"),
        Row("the same over reading and hashing (fastwarc, xxh3)", cpu[second] / cpu["night 2, hash"], "", 5.0),
        # By then what is old lies in two snapshots.
        Row("the night after it: processor time", cpu[third], "s"),
        Row("the same over reading and hashing", cpu[third] / cpu["night 3, hash"], "", 5.0),
        Row(f"first night {work}: processor time", cpu[first], "s"),
        Row("the same over a script from scratch (fastwarc, resiliparse, re)",
            cpu[first] / cpu["night 1, scratch"], "", 0.4),
        Row("the same over reading and hashing", cpu[first] / cpu["night 1, hash"]),
        Row("two threads over one, first night: elapsed", wall[first] / wall["night 1, 2 threads"], "", 1.7, True),
        Row("two threads over one, second night: elapsed", wall[second] / wall["night 2, 2 threads"], "", 1.7, True),
        Row(f"first night {work}: peak memory", peak[first], "MB"),
        Row(f"second night {work}: peak memory", peak[second], "MB"),
    ]  # fmt: skip


def revisits(bench: Bench) -> list[Row]:
    """Second nights of pages that come in pairs with one payload, the second of each pair a revisit of the first."""
    sizes = QUICK_REVISITS if bench.quick else REVISITS
    seconds: dict[int, Cost] = {}
    for pages in sizes:
        site = bench.site(pages, 1_500)
        corpus = Corpus(bench, f"revisits-{pages}", "full")
        write_snapshot(corpus.snapshots / FIRST.date().isoformat(), pairs(site.night, FIRST, False))
        first = corpus.run()
        say(f"first night of {pages:,} pages: {first.cpu:.1f} s, {first.peak_mb:.0f} MB")
        night = FIRST + datetime.timedelta(days=1)
        write_snapshot(corpus.snapshots / night.date().isoformat(), pairs(site.night, night, True))
        seconds[pages] = corpus.run()
        say(f"the second: {seconds[pages].cpu:.1f} s, {seconds[pages].peak_mb:.0f} MB, "
            f"{seconds[pages].seconds_by_stage()}")  # fmt: skip
        bench.raw[f"revisits of {pages}"] = {
            "first": {"cpu": first.cpu, "peak_mb": first.peak_mb, **first.seconds_by_stage()},
            "second": {"cpu": seconds[pages].cpu, "peak_mb": seconds[pages].peak_mb,
                       **seconds[pages].seconds_by_stage()},
        }  # fmt: skip
        shutil.rmtree(corpus.folder)
    small, large = min(sizes), max(sizes)
    ratio = (seconds[large].cpu / large) / (seconds[small].cpu / small)
    return [
        Row(f"second night of {large:,} pages, half of them revisits: processor time", seconds[large].cpu, "s"),
        Row(f"the same, time per page over that at {small:,}", ratio, "", 1.2),
        Row("the same, peak memory", seconds[large].peak_mb, "MB", 1_500.0),
    ]


def pairs(folder: pathlib.Path, at: datetime.datetime, revisits: bool) -> collections.abc.Iterator[bytes]:
    """The good pages of a site in pairs that share the payload of the first; the second of a pair may be a revisit."""
    first: tuple[str, str, bytes] | None = None
    for path in sorted(folder.glob("*.warc")):
        with path.open("rb") as file:
            while fields := head_of(file):
                start, length = file.tell(), int(fields[b"content-length"])
                digest = fields.get(b"warc-payload-digest", b"").decode()
                if fields.get(b"warc-type") == b"response" and digest:
                    url = fields[b"warc-target-uri"].strip(b"<>").decode()
                    block = file.read(length)
                    if first is None and block.startswith(b"HTTP/1.1 200"):
                        first = (url, digest, block)
                        yield record_of("response", url, at, digest, "", block)
                    elif first is not None and not revisits:
                        yield record_of("response", url, at, first[1], "", first[2])
                        first = None
                    elif first is not None:
                        refers = f"WARC-Refers-To-Target-URI: {first[0]}\r\nWARC-Profile: {REVISIT_PROFILE}\r\n"
                        head = first[2].partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
                        yield record_of("revisit", url, at, first[1], refers, head)
                        first = None
                file.seek(start + length)


def record_of(kind: str, url: str, at: datetime.datetime, digest: str, more: str, block: bytes) -> bytes:
    head = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Date: {at:%Y-%m-%dT%H:%M:%SZ}\r\nWARC-Target-URI: {url}\r\n"
        f"WARC-Payload-Digest: {digest}\r\n{more}"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def huge(bench: Bench) -> list[Row]:
    """One very large page."""
    size = QUICK_HUGE_BYTES if bench.quick else HUGE_BYTES
    corpus = Corpus(bench, "huge", "full")
    chance = random.Random(3)
    words = [f"{''.join(chance.choices('abcdefghijklmnopqrstuvwxyz', k=chance.randrange(2, 10)))}" for _ in range(5_000)]
    lines = [f"<p>{number}: {' '.join(chance.choices(words, k=60))}</p>\n" for number in range(2_000)]
    # In pieces: what this process takes counts as memory of the programs that it starts.
    piece = "".join(lines).encode()
    pieces = [b"<html><title>All</title><body>", *[piece] * (size // len(piece)), b"</body></html>"]
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    length = len(block) + sum(map(len, pieces))
    head = (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Date: {FIRST:%Y-%m-%dT%H:%M:%SZ}\r\n"
        "WARC-Target-URI: http://huge.example/\r\nContent-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {length}\r\n\r\n"
    )
    write_snapshot(corpus.snapshots / FIRST.date().isoformat(), [head.encode(), block, *pieces, b"\r\n\r\n"])
    first = corpus.run()
    bench.raw["huge"] = {"cpu": first.cpu, "peak_mb": first.peak_mb, **first.seconds_by_stage()}
    shutil.rmtree(corpus.folder)
    limit = 2_000.0 if size == HUGE_BYTES else None
    return [
        Row(f"first night of one page of {size // 1_000_000} MB: peak memory", first.peak_mb, "MB", limit),
        Row("the same, processor time", first.cpu, "s"),
    ]


def terms(bench: Bench) -> list[Row]:
    """Loading lists of similar terms, with whole words and without, on a night of a few pages."""
    rows = []
    for whole_word in (False, True):
        cpu: dict[int, float] = {}
        peak = 0.0
        for count in TERMS:
            corpus = Corpus(bench, "terms", "full")
            (corpus.folder / "terms.txt").write_text("".join(f"term {i}\n" for i in range(count)), encoding="utf-8")
            with corpus.pipeline.open("a", encoding="utf-8") as file:
                file.write('\n[[extractor]]\nname = "term"\nkind = "dictionary"\nterms = "terms.txt"\n')
                file.write(f"whole_word = {str(whole_word).lower()}\n")
            write_snapshot(corpus.snapshots / FIRST.date().isoformat(), [record("http://a.example/", FIRST, b"<p>x")])
            cost = corpus.run()
            cpu[count], peak = cost.cpu, cost.peak_mb
            shutil.rmtree(corpus.folder)
        small, large = min(cpu), max(cpu)
        kind = "whole words" if whole_word else "anywhere"
        bench.raw[f"terms, {kind}"] = cpu
        rows += [
            Row(f"night of one page, {large:,} terms ({kind}): processor time", cpu[large], "s"),
            Row(f"the same over {small:,} terms, by their number", cpu[large] / cpu[small] / (large / small), "", 1.5),
            Row("the same, peak memory", peak, "MB"),
        ]
    return rows


# By the names that --only takes; in this order.
BENCHES: dict[str, collections.abc.Callable[[Bench], list[Row]]] = {
    "polls": polls,
    "schedule": schedule,
    "sources": sources,
    "nights": nights,
    "whole": whole,
    "counters": counters,
    "revisits": revisits,
    "huge": huge,
    "terms": terms,
}


# --- The whole ---


def environment(ratoon: pathlib.Path) -> dict[str, object]:
    models = [line.partition(":")[2].strip() for line in lines_of("/proc/cpuinfo") if line.startswith("model name")]
    return {
        "ratoon": run([ratoon, "--version"]).output.strip(),
        "cores": os.cpu_count(),
        "processor": models[0] if models else platform.machine(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "niceness": os.nice(0),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def lines_of(path: str) -> list[str]:
    try:
        return pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def summary(rows: list[Row], facts: dict[str, object], load_after: float, seconds: float) -> str:
    lines = ["# Nights", "", "| work | measured | target | met |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(row.cells())} |" for row in rows]
    machine = f"{facts['ratoon']}; {facts['cores']} cores ({facts['processor']}), niceness {facts['niceness']}"
    load = f"load {facts['load'][0]} before and {load_after:.2f} after"
    lines += ["", f"{machine}; {load}; one thread; {seconds / 60:.1f} minutes.", ""]
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures what a night costs.")
    parser.add_argument("--quick", action="store_true", help="10,000 and 100,000 pages and 60 nights only")
    parser.add_argument("--only", nargs="+", choices=list(BENCHES), default=list(BENCHES), metavar="NAME",
                        help=f"some of them: {', '.join(BENCHES)}")  # fmt: skip
    parser.add_argument("--ratoon", type=pathlib.Path, default=ROOT / "target" / "release" / "ratoon", metavar="PATH")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / ".bench" / "nights", help="folder [.bench/nights]")
    parser.add_argument("--sizes", nargs="+", type=int, metavar="PAGES", help="of the sites that are polled")
    parser.add_argument("--polls", type=int, default=9, help="polls that count, of each site [%(default)s]")
    parser.add_argument("--nights", type=int, help="small nights, 15 or more [400; quick: 60]")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of whole nights [%(default)s]")
    parser.add_argument("--keep", action="store_true", help="leave the stores, to look at")
    args = parser.parse_args()
    args.sizes = args.sizes or (QUICK_SITES if args.quick else SITES)
    args.nights = max(15, args.nights or (QUICK_NIGHTS if args.quick else NIGHTS))
    if not args.ratoon.is_file():
        parser.error(f"{args.ratoon} is not there: `make build` makes it")
    return args


def main() -> None:
    args = arguments()
    started = time.perf_counter()
    bench = Bench(args)
    shutil.rmtree(bench.work, ignore_errors=True)
    bench.work.mkdir(parents=True)
    facts = environment(bench.ratoon)
    rows: list[Row] = []
    for name, measure in BENCHES.items():
        if name in args.only:
            rows += measure(bench)
    text = summary(rows, facts, os.getloadavg()[0], time.perf_counter() - started)
    results = {"environment": facts, "rows": [dataclasses.asdict(row) for row in rows], "raw": bench.raw}
    (bench.out / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (bench.out / "summary.md").write_text(text, encoding="utf-8")
    print(text)
    if not args.keep:
        shutil.rmtree(bench.work)


if __name__ == "__main__":
    main()
