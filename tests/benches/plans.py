#!/usr/bin/env python3
"""Evaluates how ratoon chooses its plan: Figures 6 to 10 of the Cyclex paper, on synthetic and on real corpora.

    python3 tests/benches/plans.py [--quick] [--figures 6 7 8 9 10] [--nights N] [--tasks 'campus/*' …] [--out FOLDER] …

For every task and night each fixed plan (none, edges, diff, suffix-tree, anchor) and auto do the same night, each in a
store of its own that has gone through all earlier nights by the same plan; ingest is done once before and not counted.
The repetitions and plans of a night are interleaved in rotated order, each on one thread. What is compared are sums
over the nights of the median over the repetitions of: user instructions where `perf stat` can count them and the
extractor runs inside ratoon, else processor seconds (user and system, of ratoon and its workers).

The six of the paper also run as Python workers (six.py) that are slow as theirs were, since patterns inside ratoon are so
fast that hardly anything is to be saved.

Corpora: `campus` (synthetic, little change), `entertainment` (synthetic, substantial change), `little` and
`substantial` (package releases, see releases.py). Tasks: the six extractors of the paper's Figure 6 as pipelines/*.toml
define them; on every corpus a dictionary of 5,000 of its own words and workers that take 1, 10 and 100 MB a second (all
of these on a smaller version of the corpus); on the releases three patterns. Only the six go through all nights, the
others through five.

Written to --out (.bench/plans): runs.csv (every single run), figure6.csv to figure10.csv, predicted.csv (what the cost model
expected of each plan, beside what it took), verdict.csv, SVG pictures of each figure, and summary.md, which is also printed. The mentions of all plans must be equal but for origin and since: if
they are not, the exit code is 1 (that needs polars, and is left out with a note without it). Needs Python 3.11.
"""

import argparse
import collections
import collections.abc
import concurrent.futures
import csv
import dataclasses
import fnmatch
import html
import itertools
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

import releases
from six import SIX

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXED = ["none", "edges", "diff", "suffix-tree", "anchor"]
PLANS = [*FIXED, "auto"]
PARTS = ["match", "extract", "copy", "choose", "other"]
# A plan this close to the fastest one is as good as it.
CLOSE = 1.02
# So close auto is to be, where plans differ by more than repetitions of one do.
ENOUGH = 1.05
# The paper's reach of "affiliation", which Figures 9 and 10 enlarge.
SCOPE, CONTEXT = 93, 7
SCOPES, CONTEXTS = [1, 2, 4, 8], [1, 10, 100]
KS, SAMPLES = [1, 3, 5], [0, 3, 10, 30, 100]
# Share of pages that change in a night, for the accuracy of the choice.
CHANGES = [0.02, 0.1, 0.3, 0.6]
# Bytes a second of the six as workers: finding a name is cheap, a relation dear.
PYTHON_RATES = {"researcher": 3e6, "actor": 3e6, "affiliation": 6e5, "talk": 6e5, "play": 6e5, "award": 6e5}
DEFAULTS = {"k": 3, "sample": 30}
# As in extract.rs.
PATTERNS = {
    "capitalised": r"[A-Z][a-z]{1,15} [A-Z][a-z]{1,20}",
    "address": r"https?://[a-z0-9.-]{3,40}/[A-Za-z0-9/_.-]{0,48}",
    "quoted": r'"[A-Z][^"\n]+"',
}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- What is measured ---


@dataclasses.dataclass
class Run:
    """One night by one plan."""

    cpu: float
    wall: float
    instructions: int | None
    parts: dict[str, float]
    # What of `parts` the program reported; the rest is in "other".
    reported: set[str]
    matcher: str
    # Pages were given other matchers than the plan's, so no fixed plan is the same.
    refined: bool
    bytes_extracted: int
    text_bytes: int
    # Reading texts, which is in "other".
    read: float = 0.0

    def value(self, measure: str) -> float:
        return self.instructions / 1e9 if measure == "instructions" else self.cpu


def read_run(steps: list[dict], wanted: str, joined: set[str], cpu: float, wall: float, count: int | None) -> Run:
    """A run from the summaries of its stages.

    `joined` are the records: they are made of other mentions and given no text.
    """
    run = Run(cpu, wall, count, dict.fromkeys(PARTS, 0.0), set(), "", False, 0, 0)
    copied = 0
    for step in steps:
        if step["snapshot"] != wanted:
            raise ValueError(f"stage {step['stage']} of {step['snapshot']} was done again")
        summary, costs = step["summary"], step["summary"].get("costs", {})
        run.read += summary.get("read_s", 0.0)
        known = [("choose", summary.get("choose_s")), ("match", summary.get("match_s"))]
        for name, cost in costs.items():
            # Without seconds of their own, extracting and copying are one.
            known += [("extract", cost.get("extract_s", cost.get("seconds"))), ("copy", cost.get("copy_s"))]
            copied += cost.get("copied", 0)
            if name not in joined:
                run.bytes_extracted += cost.get("bytes_extracted", 0)
                run.text_bytes += cost.get("text_bytes", 0)
        known = [(part, seconds) for part, seconds in known if seconds is not None]
        for part, seconds in known:
            run.parts[part] += seconds
            run.reported.add(part)
        run.parts["other"] += max(0.0, step["seconds"] - sum(seconds for _, seconds in known))
        run.matcher = run.matcher or summary.get("matcher", "")
        run.refined |= bool(summary.get("refined"))
    # A plan under which no extractor recycles is `none`, whatever matcher it names.
    if copied == 0 and run.bytes_extracted >= run.text_bytes > 0:
        run.matcher, run.refined = "none", False
    return run


class Meter:
    """Runs commands and says what they cost."""

    def __init__(self) -> None:
        self.perf = self.counts(["true"]) is not None if shutil.which("perf") else False

    def counts(self, command: list[str]) -> int | None:
        with tempfile.NamedTemporaryFile() as report:
            wrapped = self.wrap(command, report.name)
            done = subprocess.run(wrapped, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            return self.read(report.name) if done.returncode == 0 else None

    @staticmethod
    def wrap(command: list[str], report: str) -> list[str]:
        return ["perf", "stat", "-x,", "-o", report, "-e", "instructions:u", "--", *command]

    @staticmethod
    def read(report: str) -> int | None:
        for line in pathlib.Path(report).read_text().splitlines():
            field = line.split(",")[0]
            if field.isdigit():
                return int(field)
        return None

    def run(self, command: list[str], count: bool) -> tuple[str, float, float, int | None]:
        """Output, processor seconds of it and all it started, seconds, instructions."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.NamedTemporaryFile() as report:
            counted = count and self.perf
            wrapped = self.wrap(command, report.name) if counted else command
            started = time.perf_counter()
            process = subprocess.Popen(wrapped, stdout=out, stderr=err)
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - started
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            if process.returncode != 0:
                said = err.read().decode(errors="replace").strip()
                sys.exit(f"plans: exit {process.returncode} of {' '.join(command)}\n{said}")
            instructions = self.read(report.name) if counted else None
            return out.read().decode(), usage.ru_utime + usage.ru_stime, wall, instructions


# --- Corpora and tasks ---


@dataclasses.dataclass
class Corpus:
    name: str
    snapshots: pathlib.Path
    ignore: list[str] = dataclasses.field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return sorted(path.name for path in self.snapshots.iterdir())

    @property
    def megabytes(self) -> float:
        return sum(path.stat().st_size for path in (self.snapshots / self.ids[-1]).rglob("*")) / 1e6

    def terms(self, count: int) -> list[str]:
        """The most frequent words of five letters or more of the first snapshot."""
        words: collections.Counter[str] = collections.Counter()
        folder = self.snapshots / self.ids[0]
        for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
            file = folder / json.loads(line).get("file", "manifest.jsonl")
            text = re.sub(r"<[^>]*>", " ", file.read_bytes().decode(errors="replace"))
            words.update(re.findall(r"[^\W_]{5,}", text))
        return [word for word, _ in sorted(words.items(), key=lambda item: (-item[1], item[0]))[:count]]


@dataclasses.dataclass
class Task:
    name: str
    corpus: Corpus
    extractors: list[dict]
    nights: int
    repeat: int
    paper: bool = False
    # Bytes a second of its worker, if it has one.
    rate: float | None = None
    # The picture it is drawn in.
    group: str = ""
    plan: dict[str, int] = dataclasses.field(default_factory=dict)

    @property
    def settings(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.plan.items())

    @property
    def joined(self) -> set[str]:
        return {extractor["name"] for extractor in self.extractors if extractor["kind"] == "record"}

    def seconds(self) -> float:
        """About what it takes by all plans, for the expected time."""
        size = self.corpus.megabytes
        # From scratch all of it goes to the worker; by the other plans a fifth, say.
        worker = (1 + 0.2 * (len(PLANS) - 1)) * size * 1e6 / self.rate if self.rate else 0.0
        return self.nights * self.repeat * (len(PLANS) * (0.05 + 0.014 * size) + worker)


def toml(value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return str(value)


def pipeline(corpus: Corpus, store: pathlib.Path, extractors: list[dict], plan: dict[str, int]) -> str:
    table = {"snapshots": str(corpus.snapshots), "store": str(store), "ignore": corpus.ignore}
    sections = [("[corpus]", table), *((("[plan]", plan),) if plan else ())]
    sections += [("[[extractor]]", extractor) for extractor in extractors]
    return "\n".join(
        "\n".join([head, *(f"{key} = {toml(value)}" for key, value in body.items()), ""]) for head, body in sections
    )


def declared(part: str) -> tuple[list[dict], list[str]]:
    """The extractors and ignore patterns of a pipeline of the project."""
    path = ROOT / "pipelines" / f"{part}.toml"
    file = tomllib.loads(path.read_text(encoding="utf-8"))
    for extractor in file["extractor"]:
        if "terms" in extractor:
            extractor["terms"] = str(path.parent / extractor["terms"])
    return file["extractor"], file["corpus"].get("ignore", [])


def with_parts(name: str, extractors: list[dict]) -> list[dict]:
    """An extractor, after those that its attributes are taken from."""
    one = next(extractor for extractor in extractors if extractor["name"] == name)
    wanted = {name, one.get("key", name)}
    for attribute in one.get("attributes", {}).values():
        wanted.add(attribute["extractor"] if isinstance(attribute, dict) else attribute)
    return [extractor for extractor in extractors if extractor["name"] in wanted]


def worker(ratoon: pathlib.Path, rate: int, scope: int, context: int) -> dict:
    command = [str(ratoon), "bench-worker", "--bytes-per-second", str(rate)]
    command += ["--scope", str(scope), "--context", str(context)]
    return {"name": "worker", "kind": "command", "command": command, "scope": scope, "context": context}


class Bench:
    """The corpora, their tasks, and all runs so far."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.ratoon: pathlib.Path = args.ratoon.resolve()
        self.out: pathlib.Path = args.out.resolve()
        self.work = self.out / "work"
        self.jobs: int = args.jobs
        self.repeat: int = args.repeat
        self.pages: int = args.pages
        self.steps = args.nights + 1 if args.nights else 5 if args.quick else releases.STEPS
        # The other tasks than the paper's go through fewer nights.
        self.nights = min(3 if args.quick else 5, self.steps - 1)
        self.release_bytes = releases.BYTES // 8 if args.quick else releases.BYTES
        self.meter = Meter()
        self.rows: list[list] = []
        # What the cost model of `auto` expected: by task, night and plan.
        self.predicted: dict[str, list[dict[str, float]]] = {}
        self.known: dict[tuple[str, str], dict[str, list[list[Run]]]] = {}
        self.unequal: list[str] = []
        self.corpora: dict[str, Corpus] = {}
        self.has_settings = False

    def call(self, *arguments: object) -> str:
        return self.meter.run([str(self.ratoon), *map(str, arguments)], False)[0]

    # Corpora.

    def corpus(self, name: str) -> Corpus:
        """The corpus, made and ingested when it is first asked for. `<name>-small` has fewer pages."""
        if name not in self.corpora:
            kind, _, change = name.partition("+")
            kind, small = kind.removesuffix("-small"), kind.endswith("-small")
            say(f"corpus {name}")
            if kind in releases.CORPORA:
                size = self.release_bytes // 4 if small else self.release_bytes
                steps = min(self.steps, releases.STEPS)
                full = size == releases.BYTES and steps == releases.STEPS
                root = releases.FOLDER if full else self.out / "corpora" / f"{steps}x{size}"
                corpus = Corpus(name, releases.write(kind, root, steps, size))
            else:
                pages = self.pages // 3 if small else self.pages
                folder = self.out / "corpora" / f"{kind}-{self.steps}x{pages}{change}" / "snapshots"
                if not folder.is_dir():
                    making = folder.with_name("making")
                    shutil.rmtree(making, ignore_errors=True)
                    self.call("synth", making, "--part", kind, "--pages", pages, "--page-bytes", 8000, "--snapshots",
                              self.steps, "--layout", "manifest", "--no-mentions", "-q",
                              *(["--change", change] if change else []))  # fmt: skip
                    making.rename(folder)
                corpus = Corpus(name, folder, declared(kind)[1])
            self.call("ingest", self.write_pipeline(corpus, self.base(corpus), [], {}), "-q")
            self.corpora[name] = corpus
        return self.corpora[name]

    def base(self, corpus: Corpus) -> pathlib.Path:
        return self.work / corpus.name / "base"

    def write_pipeline(self, corpus: Corpus, store: pathlib.Path, extractors: list[dict], plan: dict) -> pathlib.Path:
        path = store.with_suffix(".toml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pipeline(corpus, store, extractors, plan), encoding="utf-8")
        return path

    def understands_settings(self) -> bool:
        """Whether this build knows `k` and `sample`."""
        store = self.work / "probe"
        path = self.write_pipeline(next(iter(self.corpora.values())), store, [], DEFAULTS)
        command = [str(self.ratoon), "ingest", str(path), "--dry-run", "-q"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    # Tasks.

    def tasks(self, patterns: list[str]) -> list[Task]:
        """Those whose name is asked for; only the corpora they need are made."""
        found = []
        for name, make in self.makers():
            if any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
                found.append(make(name))
        return found

    def makers(self):
        paper = {"campus": ["researcher", "affiliation", "talk"], "entertainment": ["actor", "play", "award"]}
        for part, names in paper.items():
            for name in names:
                yield f"{part}/{name}", lambda task, part=part, name=name: self.paper_task(task, part, name)
        for part, names in paper.items():
            for name in names:
                yield f"{part}/{name}-python", lambda task, part=part, name=name: self.python_task(task, part, name)
        for part in [*paper, *releases.CORPORA]:
            yield f"{part}/dictionary", lambda task, part=part: self.dictionary_task(task, part)
            if part in releases.CORPORA:
                for name, pattern in PATTERNS.items():
                    yield f"{part}/{name}", lambda task, part=part, pattern=pattern: Task(
                        task, self.corpus(part), [{"name": "found", "kind": "regex", "pattern": pattern}],
                        self.nights, self.repeat)  # fmt: skip
            for rate in (100, 10, 1):
                yield f"{part}/worker-{rate}", lambda task, part=part, rate=rate: self.worker_task(task, part, rate)

    def paper_task(self, task: str, part: str, name: str) -> Task:
        extractors = with_parts(name, declared(part)[0])
        return Task(task, self.corpus(part), extractors, self.steps - 1, self.repeat, paper=True)

    def python_task(self, task: str, part: str, name: str) -> Task:
        rate = PYTHON_RATES[name]
        command = [sys.executable, "-B", str(pathlib.Path(__file__).with_name("six.py")), name]
        extractor = {"name": name, "kind": "command", "command": [*command, "--bytes-per-second", str(rate)]}
        corpus = self.corpus(f"{part}-small")
        return Task(task, corpus, [extractor], self.steps - 1, 1, rate=rate, group="python")

    def dictionary_task(self, task: str, part: str) -> Task:
        corpus = self.corpus(f"{part}-small")
        terms = self.work / corpus.name / "terms.txt"
        terms.write_text("\n".join(corpus.terms(5000)), encoding="utf-8")
        extractor = {"name": "term", "kind": "dictionary", "terms": str(terms), "whole_word": True}
        return Task(task, corpus, [extractor], self.nights, self.repeat)

    def worker_task(self, task: str, part: str, rate: int, scope: int = SCOPE, context: int = CONTEXT) -> Task:
        extractor = worker(self.ratoon, rate * 1_000_000, scope, context)
        # A slow worker takes long and, spinning, varies little.
        repeat = 1 if rate == 1 else self.repeat
        return Task(task, self.corpus(f"{part}-small"), [extractor], self.nights, repeat, rate=rate * 1e6)

    # Runs.

    def copy_store(self, source: pathlib.Path, target: pathlib.Path) -> None:
        """Tables by hard links (they are never changed in place), all else by copies (the lock is)."""

        def copy(file: str, to: str) -> None:
            if file.endswith(".parquet"):
                os.link(file, to)
            else:
                shutil.copyfile(file, to)

        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, copy_function=copy)

    def night(self, task: Task, store: pathlib.Path, plan: str, snapshot: str) -> Run:
        command = [str(self.ratoon), "extract", str(store.with_suffix(".toml")), "--plan", plan, "--snapshot", snapshot]
        command += ["--threads", "1", "--json", "-q"]
        output, cpu, wall, instructions = self.meter.run(command, task.rate is None)
        try:
            return read_run(json.loads(output)["done"], snapshot, task.joined, cpu, wall, instructions)
        except (ValueError, KeyError) as error:
            sys.exit(f"plans: {' '.join(command)}: {error}")

    def measure(self, task: Task, plans: list[str]) -> dict[str, list[list[Run]]]:
        """For each plan, for each night after the first, the repetitions."""
        known = self.known.setdefault((task.name, task.settings), {})
        missing = [plan for plan in plans if plan not in known]
        if not missing:
            return known
        started = time.perf_counter()
        ids = task.corpus.ids[: task.nights + 1]
        folder = self.work / task.name.replace("/", "--")
        first = folder / "first"
        self.copy_store(self.base(task.corpus), first)
        self.write_pipeline(task.corpus, first, task.extractors, task.plan)
        self.night(task, first, "auto", ids[0])
        stores = {}
        for plan, repetition in itertools.product(missing, range(task.repeat)):
            store = folder / f"{plan}-{repetition}"
            self.copy_store(first, store)
            self.write_pipeline(task.corpus, store, task.extractors, task.plan)
            stores[plan, repetition] = store
            known.setdefault(plan, [[] for _ in ids[1:]])
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for night, snapshot in enumerate(ids[1:]):
                order = []
                for repetition in range(task.repeat):
                    turn = (night + repetition) % len(missing)
                    order += [(plan, repetition) for plan in missing[turn:] + missing[:turn]]
                runs = pool.map(lambda which: self.night(task, stores[which], which[0], snapshot), order)
                for (plan, repetition), run in zip(order, runs):
                    known[plan][night].append(run)
                    self.rows.append([
                        task.name, task.settings, snapshot, plan, repetition, f"{run.cpu:.6f}", f"{run.wall:.6f}",
                        run.instructions or "", *(f"{run.parts[part]:.6f}" for part in PARTS), run.matcher,
                        int(run.refined), run.bytes_extracted, run.text_bytes])  # fmt: skip
        self.compare(task, {plan: stores[plan, 0] for plan in missing}, ids[-1])
        if "auto" in missing and not task.plan:
            self.predicted[task.name] = self.expectations(stores["auto", 0], ids[1:])
        shutil.rmtree(folder)
        took = time.perf_counter() - started
        what = f"{task.nights} nights, {task.repeat} times {len(missing)} plans"
        say(f"  {task.name}{task.settings and ' with ' + task.settings}: {what} in {took:.1f} s")
        return known

    def expectations(self, store: pathlib.Path, ids: list[str]) -> list[dict[str, float]]:
        """What the cost model expected of each plan, by night: seconds of matching, extracting and copying."""
        try:
            import polars
        except ImportError:
            return []
        nights = []
        for snapshot in ids:
            files = store / "plans" / f"snapshot={snapshot}"
            frame = polars.read_parquet(files / "*.parquet", hive_partitioning=False)
            whole = frame.filter(polars.col("extractor").is_null())
            nights.append(dict(zip(whole["alternative"], whole["predicted_s"])))
            chosen = whole.filter(polars.col("chosen"))["predicted_s"]
            nights[-1]["auto"] = chosen[0] if len(chosen) else math.nan
        return nights

    def compare(self, task: Task, stores: dict[str, pathlib.Path], snapshot: str) -> None:
        """Mentions of the last night must be equal but for origin and since."""
        try:
            import polars
        except ImportError:
            return
        for extractor in task.extractors:
            frames = {}
            for plan, store in stores.items():
                folder = store / "mentions" / extractor["name"] / f"snapshot={snapshot}"
                frame = polars.read_parquet(folder / "*.parquet", hive_partitioning=False)
                frames[plan] = frame.drop("origin", "since").sort("url", "start", "end", "text", maintain_order=True)
            (one, expected), *others = frames.items()
            for plan, frame in others:
                if not frame.equals(expected):
                    self.unequal.append(f"{task.name}, {extractor['name']}, {snapshot}: {plan} differs from {one}")

    def measure_of(self, task: Task) -> str:
        return "instructions" if self.meter.perf and task.rate is None else "cpu"

    def nights_of(self, task: Task, plan: str) -> list[float]:
        """Medians over the repetitions, by night."""
        measure = self.measure_of(task)
        return [statistics.median(run.value(measure) for run in runs) for runs in self.measure(task, [plan])[plan]]

    def picks(self, task: Task) -> list[str]:
        """What auto took each night, in most repetitions."""
        return [statistics.mode(run.matcher for run in runs) for runs in self.measure(task, ["auto"])["auto"]]


# --- Figures ---


def accuracy(bench: Bench, fixed: Task, auto: Task) -> float:
    """Share of nights where auto took the fastest plan or one within 2 % of it.

    Where it took several matchers, no fixed plan stands for it: then its own time is compared.
    """
    times = {plan: bench.nights_of(fixed, plan) for plan in FIXED}
    own, picks = bench.nights_of(auto, "auto"), bench.picks(auto)
    hits = 0
    for night, pick in enumerate(picks):
        limit = CLOSE * min(times[plan][night] for plan in FIXED)
        refined = any(run.refined for run in bench.measure(auto, ["auto"])["auto"][night])
        hits += (own if refined or pick not in times else times[pick])[night] <= limit
    return hits / len(picks)


@dataclasses.dataclass
class Verdict:
    task: Task
    best: str
    to_best: float
    low: float
    high: float
    to_none: float
    # Against the best of those that keep since when a mention stands, as auto always does and `none` never.
    to_recycling: float
    # How much the repetitions of the best plan differ, and all fixed plans.
    noise: float
    apart: float
    # Seconds of a night of auto.
    night: float
    # Against the best plan of each night by itself.
    to_nightly: float
    # None: this build does not say what choosing took.
    choosing: float | None
    accuracy: float
    picks: str

    @property
    def spread(self) -> str:
        return f"{self.low:.3f} to {self.high:.3f}" if self.task.repeat > 1 else "once only"


def verdict(bench: Bench, task: Task) -> Verdict:
    measure = bench.measure_of(task)
    runs = bench.measure(task, PLANS)
    nights = {plan: bench.nights_of(task, plan) for plan in PLANS}
    totals = {plan: sum(values) for plan, values in nights.items()}
    best = min(FIXED, key=totals.__getitem__)

    def total(plan: str, repetition: int) -> float:
        return sum(night[repetition].value(measure) for night in runs[plan])

    ratios = [total("auto", r) / total(best, r) for r in range(task.repeat)]
    own = [total(best, r) for r in range(task.repeat)]
    spent: collections.Counter[str] = collections.Counter()
    reported = False
    for run in itertools.chain(*runs["auto"]):
        spent.update(run.parts)
        reported |= "choose" in run.reported
    picks = collections.Counter(bench.picks(task))
    return Verdict(
        task,
        best,
        totals["auto"] / totals[best],
        min(ratios),
        max(ratios),
        totals["auto"] / totals["none"],
        totals["auto"] / min(totals[plan] for plan in FIXED[1:]),
        max(own) / min(own) - 1,
        max(totals[plan] for plan in FIXED) / totals[best] - 1,
        spent.total() / sum(map(len, runs["auto"])),
        totals["auto"] / sum(min(nights[plan][n] for plan in FIXED) for n in range(task.nights)),
        spent["choose"] / spent.total() if reported else None,
        accuracy(bench, task, task),
        ", ".join(f"{name} {count}" for name, count in picks.most_common()),
    )


def table(head: list[str], rows: list[list]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def write_csv(path: pathlib.Path, head: list[str], rows: list[list]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def verdicts(bench: Bench, tasks: list[Task]) -> str:
    found = [verdict(bench, task) for task in tasks]
    rows = [
        [v.task.name, bench.measure_of(v.task), v.best, f"{v.to_best:.3f}", v.spread, f"{v.to_recycling:.3f}",
         f"{v.to_none:.3f}", percent(v.noise, 0) if v.task.repeat > 1 else "", f"{v.night:.2f}",
         "unknown" if v.choosing is None else percent(v.choosing, 2), percent(v.accuracy, 0), v.picks]
        for v in found
    ]  # fmt: skip
    head = ["task", "measure", "best fixed", "auto / best", "over repetitions", "auto / best that recycles",
            "auto / none", "noise", "s a night", "choosing", "accuracy", "picks"]  # fmt: skip
    write_csv(
        bench.out / "verdict.csv",
        ["task", "measure", "best_fixed", "auto_to_best", "low", "high", "auto_to_recycling", "auto_to_none", "noise",
         "apart", "night_s", "auto_to_nightly_best", "choosing_share", "accuracy", "picks"],
        [[v.task.name, bench.measure_of(v.task), v.best, v.to_best, v.low, v.high, v.to_recycling, v.to_none, v.noise,
          v.apart, v.night, v.to_nightly, v.choosing, v.accuracy, v.picks] for v in found],
    )  # fmt: skip
    six = [v for v in found if v.task.paper]

    def target(text: str, bad: list[Verdict], score: collections.abc.Callable[[Verdict], float]) -> str:
        worst = max(bad, key=score, default=None)
        return f"- {'NOT met' if bad else 'met'}: {text}" + (
            f" ({len(found) - len(bad)} of {len(found)}; worst {worst.task.name}: {score(worst):.3f})" if worst else ""
        )

    targets = [
        target("auto within 5 % of the best fixed plan on every task where plans differ by more than the noise",
               [v for v in found if v.apart > v.noise and v.to_best > ENOUGH], lambda v: v.to_best),
        target("the same of the plans that keep since when a mention stands (all but `none`)",
               [v for v in found if v.apart > v.noise and v.to_recycling > ENOUGH], lambda v: v.to_recycling),
        "- NOT measured: what choosing takes (this build does not report `choose_s`)"
        if any(v.choosing is None for v in found)
        else target("choosing takes at most 1 % from nights of one second on",
                    [v for v in found if v.night >= 1 and v.choosing > 0.01], lambda v: v.choosing),
        target("never more than 3 % slower than from scratch", [v for v in found if v.to_none > 1.03],
               lambda v: v.to_none),
    ]  # fmt: skip
    if len(six) == 6:
        better = [v for v in six if v.to_best < 1]
        sure = sum(v.high < 1 for v in better) if min(v.task.repeat for v in six) > 1 else "done once only"
        met = "met" if len(better) >= 3 else "NOT met"
        targets.append(f"- {met}: better than the best fixed plan on at least three of the paper's six"
                       f" ({len(better)}; in every repetition: {sure})")  # fmt: skip
    return "## Verdict\n\n" + table(head, rows) + "\n" + "\n".join(targets) + "\n"


def groups(tasks: list[Task]) -> dict[str, list[Task]]:
    """Tasks by the picture they are drawn in: the paper's six, then by corpus."""
    found: dict[str, list[Task]] = {}
    for task in tasks:
        found.setdefault(task.group or ("paper" if task.paper else task.name.split("/")[0]), []).append(task)
    return found


def figure6(bench: Bench, tasks: list[Task]) -> str:
    """The data sets and the six extractors, as patterns and as slow workers."""
    by_name = {task.name: task for task in tasks}
    rows = []
    for name, (_, scope, alpha, beta) in SIX.items():
        part = "campus" if name in ("researcher", "affiliation", "talk") else "entertainment"
        row = [name, part, alpha, beta, scope, scope + 1]
        for task in (by_name.get(f"{part}/{name}"), by_name.get(f"{part}/{name}-python")):
            if task is None:
                row += ["", ""]
                continue
            runs = list(itertools.chain(*bench.measure(task, ["none"])["none"]))
            seconds, text_bytes = sum(run.cpu for run in runs), sum(run.text_bytes for run in runs)
            row += [f"{seconds / len(runs):.3f}", f"{text_bytes / 1e6 / seconds:.2f}"]
        rows.append(row)
    head = ["extractor", "data set", "paper's scope", "paper's context", "worker's scope", "worker's context",
            "pattern: s a night", "pattern: MB/s", "Python: s a night", "Python: MB/s"]  # fmt: skip
    write_csv(bench.out / "figure6.csv", head, rows)
    sets = []
    for corpus in bench.corpora.values():
        pages = (corpus.snapshots / corpus.ids[-1] / "manifest.jsonl").read_text(encoding="utf-8").count("\n")
        sets.append([corpus.name, len(corpus.ids), pages, f"{corpus.megabytes:.1f} MB"])
    text = "## Figure 6, data sets and extractors\n\n" + table(["data set", "snapshots", "pages", "size"], sets)
    return text + "\nFrom scratch, processor seconds:\n\n" + table(head, rows)


def savings(bench: Bench, tasks: list[Task]) -> str:
    """What recycling saves of the time from scratch: the paper says 50 to 90 %, but for actor."""
    rows = []
    for task in (task for task in tasks if task.paper or task.group == "python"):
        scratch = sum(bench.nights_of(task, "none"))
        rows.append([task.name, *(percent(1 - sum(bench.nights_of(task, plan)) / scratch, 0) for plan in PLANS[1:])])
    if not rows:
        return ""
    return "## What recycling saves\n\nOf the time from scratch (`none`), over all nights.\n\n" + table(
        ["task", *PLANS[1:]], rows
    )


def predicted(bench: Bench, tasks: list[Task]) -> str:
    """What the cost model expected of a night by each plan, beside what the same night by that plan took."""
    rows, clouds, errors = [], {}, {}
    for task in tasks:
        for night, expected in enumerate(bench.predicted.get(task.name, [])):
            for plan, seconds in expected.items():
                if plan not in PLANS or not seconds > 0:
                    continue
                runs = bench.measure(task, [plan])[plan][night]
                took = statistics.median(run.read + sum(run.parts[p] for p in ("match", "extract", "copy")) for run in runs)
                if took <= 0:
                    continue
                rows.append([task.name, task.corpus.ids[night + 1], plan, f"{seconds:.6f}", f"{took:.6f}"])
                clouds.setdefault(groups([task]).popitem()[0], {}).setdefault(plan, []).append((took, seconds))
                errors.setdefault((task.name, plan), []).append(seconds / took)
    write_csv(bench.out / "predicted.csv", ["task", "snapshot", "plan", "predicted_s", "measured_s"], rows)
    scatter(bench.out / "predicted.svg", "Seconds of a night: expected by the cost model, and taken", clouds)
    lines = []
    for task in tasks:
        if any(name == task.name for name, _ in errors):
            medians = [statistics.median(errors.get((task.name, plan), [math.nan])) for plan in PLANS]
            lines.append([task.name, *(f"{value:.2f}" for value in medians)])
    note = ("Median over the nights of the seconds expected over the seconds taken (reading texts, matching, extracting,"
            " copying).\n\n")  # fmt: skip
    return "## Expected against taken\n\n" + note + table(["task", *PLANS], lines)


def figure7(bench: Bench, tasks: list[Task]) -> str:
    rows = []
    for task in tasks:
        for plan in PLANS:
            for night, value in enumerate(bench.nights_of(task, plan)):
                runs = bench.measure(task, [plan])[plan][night]
                rows.append([
                    task.name, task.corpus.ids[night + 1], plan, bench.measure_of(task), f"{value:.6f}",
                    f"{statistics.median(run.cpu for run in runs):.6f}",
                    f"{statistics.median(run.wall for run in runs):.6f}"])  # fmt: skip
    write_csv(bench.out / "figure7.csv", ["task", "snapshot", "plan", "measure", "value", "cpu_s", "wall_s"], rows)
    units = {"instructions": "billion instructions", "cpu": "processor seconds"}
    for name, group in groups(tasks).items():
        panels = [
            Panel(task.name, units[bench.measure_of(task)], [str(night + 2) for night in range(task.nights)],
                  {plan: bench.nights_of(task, plan) for plan in PLANS}, x_label="snapshot")
            for task in group
        ]  # fmt: skip
        draw(bench.out / f"figure7-{name}.svg", "Runtime of a night by each plan", panels)
    lines = [
        [task.name, bench.measure_of(task), *(f"{statistics.fmean(bench.nights_of(task, plan)):.3f}" for plan in PLANS)]
        for task in tasks
    ]
    note = "Mean of a night: processor seconds, or billion instructions.\n\n"
    return "## Figure 7, runtime\n\n" + note + table(["task", "measure", *PLANS], lines)


def figure8(bench: Bench, tasks: list[Task]) -> str:
    rows, lines, panels = [], [], {}
    for task in tasks:
        means = {}
        for plan in PLANS:
            runs = list(itertools.chain(*bench.measure(task, [plan])[plan]))
            means[plan] = {part: statistics.fmean(run.parts[part] for run in runs) for part in PARTS}
            given = sum(run.bytes_extracted for run in runs) / max(1, sum(run.text_bytes for run in runs))
            rows.append([task.name, plan, *(f"{means[plan][part]:.6f}" for part in PARTS), f"{given:.6f}"])
            if task.paper:
                lines.append([task.name, plan, *(f"{1e3 * means[plan][part]:.1f}" for part in PARTS), percent(given)])
        series = {part: [means[plan][part] for plan in PLANS] for part in PARTS}
        panels[task.name] = Panel(task.name, "seconds in the stages", PLANS, series, stacked=True)
    write_csv(bench.out / "figure8.csv", ["task", "plan", *(f"{part}_s" for part in PARTS), "share_extracted"], rows)
    for name, group in groups(tasks).items():
        drawn = [panels[task.name] for task in group]
        draw(bench.out / f"figure8-{name}.svg", "Where the time of a night goes", drawn)
    head = ["task", "plan", *PARTS, "text extracted"]
    note = "Milliseconds of a night, by the clock.\n"
    reported = {part for task in tasks for run in itertools.chain(*bench.measure(task, ["auto"])["auto"])
                for part in run.reported}  # fmt: skip
    if missing := [part for part in PARTS[:-1] if part not in reported]:
        note += f"This build does not report {', '.join(missing)} by itself: 0 here, and counted under another part.\n"
    return f"## Figure 8, decomposition of the paper's six\n\n{note}\n" + table(head, lines)


def figure9(
    bench: Bench, tasks: list[Task], reach: dict[tuple[str, int, int], Task], changes: dict[tuple[str, float], Task]
) -> str:
    """Accuracy against k, sample size, scope, context and how much changes."""
    names = ("k", "sample", "scope", "context", "change")
    results: dict[str, dict[str, list[tuple[float, float]]]] = {name: {} for name in names}
    for (part, change), task in changes.items():
        results["change"].setdefault(f"{part}/worker-10", []).append((change, accuracy(bench, task, task)))
    if bench.has_settings:
        for task in tasks:
            for setting, values in (("k", KS), ("sample", SAMPLES)):
                for value in values:
                    plan = {**DEFAULTS, setting: value}
                    # The default is what Figure 7 has measured.
                    auto = task if plan == DEFAULTS else dataclasses.replace(task, plan=plan, repeat=1)
                    results[setting].setdefault(task.name, []).append((value, accuracy(bench, task, auto)))
    for (part, scope, context), task in reach.items():
        share = accuracy(bench, task, task)
        if context == 1:
            results["scope"].setdefault(f"{part}/worker-10", []).append((scope, share))
        if scope == 1:
            results["context"].setdefault(f"{part}/worker-10", []).append((context, share))
    rows = [
        [setting, name, value, f"{share:.4f}"]
        for setting, lines in results.items()
        for name, points in lines.items()
        for value, share in points
    ]
    write_csv(bench.out / "figure9.csv", ["setting", "task", "value", "accuracy"], rows)
    titles = {"k": "snapshots k", "sample": "sample size", "scope": "scope, times", "context": "context, times",
              "change": "share of pages that change"}  # fmt: skip
    panels = [
        Panel(titles[setting], "accuracy", [str(value) for value, _ in next(iter(lines.values()))],
              {name: [share for _, share in points] for name, points in lines.items()}, top=1.0)
        for setting, lines in results.items() if lines
    ]  # fmt: skip
    draw(bench.out / "figure9.svg", "Accuracy of the choice", panels, columns=2)
    text = "## Figure 9, accuracy\n\n"
    if not bench.has_settings:
        text += "This build knows no `[plan] k` and `sample`: those parts are left out.\n\n"
    return text + table(
        ["against", "task", "value: share of nights"],
        [[titles[setting], name, ", ".join(f"{value}: {percent(share, 0)}" for value, share in points)]
         for setting, lines in results.items() for name, points in lines.items()],
    )  # fmt: skip


def figure10(bench: Bench, reach: dict[tuple[str, int, int], Task]) -> str:
    """Runtimes over that of `none`, against scope and context."""
    plans = [plan for plan in PLANS if plan != "none"]
    rows, lines, panels = [], [], []
    for part in dict.fromkeys(part for part, _, _ in reach):
        for setting, values in (("scope", SCOPES), ("context", CONTEXTS)):
            ratios: dict[str, list[float]] = {plan: [] for plan in plans}
            for value in values:
                task = reach[(part, value, 1) if setting == "scope" else (part, 1, value)]
                scratch = sum(bench.nights_of(task, "none"))
                for plan in plans:
                    ratios[plan].append(sum(bench.nights_of(task, plan)) / scratch)
                    rows.append([part, setting, value, plan, f"{ratios[plan][-1]:.6f}"])
                lines.append([part, f"{setting} x{value}", *(f"{ratios[plan][-1]:.3f}" for plan in plans)])
            panels.append(Panel(f"{part}, {setting}", "runtime over none", [f"x{value}" for value in values], ratios))
    write_csv(bench.out / "figure10.csv", ["corpus", "setting", "times", "plan", "over_none"], rows)
    draw(bench.out / "figure10.svg", "Runtime over that from scratch", panels, columns=2)
    return "## Figure 10, runtime over none\n\n" + table(["corpus", "reach", *plans], lines)


# --- Drawing ---

COLOURS = {
    "none": "#8c8c8c", "edges": "#3b8fd6", "diff": "#d98a00", "suffix-tree": "#b565c0", "anchor": "#1f9e77",
    "auto": "#e0442e", "match": "#3b8fd6", "extract": "#d98a00", "copy": "#1f9e77", "choose": "#e0442e",
    "other": "#8c8c8c",
}  # fmt: skip
SPARE = ["#3b8fd6", "#d98a00", "#1f9e77", "#b565c0", "#e0442e", "#8c8c8c"]
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #222 } .small { font-size: 11px } .title { font-weight: 600 }
.paper { fill: #fff } .axis { stroke: #666 } .grid { stroke: #ddd }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .paper { fill: #181818 } .axis { stroke: #999 } .grid { stroke: #3a3a3a }
}
"""
WIDE, HIGH = 340, 240
LEFT, RIGHT, ABOVE, BELOW = 58, 14, 28, 40


@dataclasses.dataclass
class Panel:
    """Series over categories, as lines or as stacked bars."""

    title: str
    y_label: str
    categories: list[str]
    series: dict[str, list[float]]
    x_label: str = ""
    stacked: bool = False
    top: float | None = None

    def ticks(self) -> tuple[list[float], bool]:
        """Round values that enclose all, and whether they are logarithmic."""
        values = [value for line in self.series.values() for value in line]
        if self.stacked:
            values = [sum(column) for column in zip(*self.series.values())]
        low, high = min(values), self.top or max(values, default=1.0) or 1.0
        if not self.stacked and low > 0 and high / low > 12:
            all_ticks = [digit * 10.0**power for power in range(-7, 7) for digit in (1, 2, 5)]
            inner = [tick for tick in all_ticks if low < tick < high]
            below = max(tick for tick in all_ticks if tick <= low)
            return [below, *inner, min(tick for tick in all_ticks if tick >= high)], True
        step = 10.0 ** math.floor(math.log10(high / 4))
        step *= next(factor for factor in (1, 2, 2.5, 5, 10) if high / (step * factor) <= 5)
        return [number * step for number in range(math.ceil(high / step - 1e-9) + 1)], False

    def draw(self, x0: float, y0: float, colours: dict[str, str]) -> list[str]:
        ticks, logarithmic = self.ticks()
        left, right, top, bottom = x0 + LEFT, x0 + WIDE - RIGHT, y0 + ABOVE, y0 + HIGH - BELOW

        def scale(value: float) -> float:
            return math.log(value) if logarithmic else value

        def y(value: float) -> float:
            low, high = scale(ticks[0]), scale(ticks[-1])
            return bottom - (scale(value) - low) / (high - low) * (bottom - top)

        slot = (right - left) / len(self.categories)
        parts = [text(x0 + WIDE / 2, y0 + 16, self.title, "title")]
        for tick in ticks:
            parts.append(f'<line class="grid" x1="{left:.1f}" x2="{right:.1f}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
            parts.append(text(left - 6, y(tick) + 4, f"{tick:.4g}", "small", "end"))
        parts.append(f'<line class="axis" x1="{left}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
        turned = f'transform="rotate(-90 {x0 + 12:.1f} {(top + bottom) / 2:.1f})"'
        parts.append(text(x0 + 12, (top + bottom) / 2, self.y_label, "small", more=turned))
        # Labels that would touch go on two lines.
        crowded = max(map(len, self.categories)) * 6.5 > slot
        for number, category in enumerate(self.categories):
            lower = 12 if crowded and number % 2 else 0
            parts.append(text(left + (number + 0.5) * slot, bottom + 14 + lower, category, "small"))
        if self.x_label:
            parts.append(text((left + right) / 2, bottom + 31, self.x_label, "small"))
        below = [0.0] * len(self.categories)
        for name, values in self.series.items():
            points = [(left + (number + 0.5) * slot, value) for number, value in enumerate(values)]
            if self.stacked:
                for number, (x, value) in enumerate(points):
                    foot, head = y(below[number]), y(below[number] + value)
                    below[number] += value
                    parts.append(
                        f'<rect x="{x - slot * 0.35:.1f}" y="{head:.1f}" width="{slot * 0.7:.1f}" '
                        f'height="{foot - head:.1f}" fill="{colours[name]}">{hint(name, value)}</rect>'
                    )
                continue
            width = 2.6 if name == "auto" else 1.6
            path = " ".join(f"{x:.1f},{y(value):.1f}" for x, value in points)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colours[name]}" stroke-width="{width}"/>')
            for x, value in points:
                parts.append(f'<circle cx="{x:.1f}" cy="{y(value):.1f}" r="{width:.1f}" fill="{colours[name]}">'
                             f"{hint(name, value)}</circle>")  # fmt: skip
        return parts


def text(x: float, y: float, content: str, kind: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{html.escape(content)}</text>'


def hint(name: str, value: float) -> str:
    return f"<title>{html.escape(name)}: {value:.4g}</title>"


def sheet(width: float, height: float, title: str, legend: dict[str, str]) -> list[str]:
    """The beginning of a picture: its size, title and what its colours mean."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{height}"/>',
        text(14, 20, title, "title", "start"),
    ]
    x = 14.0
    for name, colour in legend.items():
        parts.append(f'<rect x="{x:.1f}" y="32" width="12" height="12" fill="{colour}"/>')
        parts.append(text(x + 17, 42, name, "small", "start"))
        x += 34 + 6.5 * len(name)
    return parts


def draw(path: pathlib.Path, title: str, panels: list[Panel], columns: int = 3) -> None:
    """A grid of panels under one legend."""
    if not panels:
        return
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    spare = iter(itertools.cycle(SPARE))
    colours = {name: COLOURS.get(name) or next(spare) for name in names}
    columns = min(columns, len(panels))
    width, head = max(columns * WIDE, 560), 56
    height = head + math.ceil(len(panels) / columns) * HIGH
    parts = sheet(width, height, title, {name: colours[name] for name in names})
    for number, panel in enumerate(panels):
        parts += panel.draw(number % columns * WIDE, head + number // columns * HIGH, colours)
    path.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")


def scatter(path: pathlib.Path, title: str, clouds: dict[str, dict[str, list[tuple[float, float]]]]) -> None:
    """Points by plan, a panel for each group, both axes logarithmic, with the line on which both are equal."""
    if not clouds:
        return
    columns, head, side = min(3, len(clouds)), 56, 300
    width, height = max(columns * WIDE, 560), head + math.ceil(len(clouds) / columns) * (side + 20)
    parts = sheet(width, height, title, {plan: COLOURS[plan] for plan in PLANS})
    for number, (name, cloud) in enumerate(clouds.items()):
        x0, y0 = number % columns * WIDE, head + number // columns * (side + 20)
        values = [value for points in cloud.values() for point in points for value in point]
        low = math.floor(math.log10(min(values)))
        high = max(low + 1, math.ceil(math.log10(max(values))))
        left, right, top, bottom = x0 + LEFT, x0 + WIDE - RIGHT, y0 + ABOVE, y0 + side - BELOW

        def across(value: float) -> float:
            return left + (math.log10(value) - low) / (high - low) * (right - left)

        def up(value: float) -> float:
            return bottom - (math.log10(value) - low) / (high - low) * (bottom - top)

        parts.append(text(x0 + WIDE / 2, y0 + 16, name, "title"))
        for power in range(low, high + 1):
            tick = 10.0**power
            for x1, x2, y1, y2 in ((left, right, up(tick), up(tick)), (across(tick), across(tick), top, bottom)):
                parts.append(f'<line class="grid" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>')
            parts.append(text(left - 6, up(tick) + 4, f"{tick:g}", "small", "end"))
            parts.append(text(across(tick), bottom + 14, f"{tick:g}", "small"))
        parts.append(f'<line class="axis" x1="{left}" x2="{right}" y1="{bottom}" y2="{top}" stroke-dasharray="4 3"/>')
        parts.append(text((left + right) / 2, bottom + 31, "seconds taken", "small"))
        turned = f'transform="rotate(-90 {x0 + 12:.1f} {(top + bottom) / 2:.1f})"'
        parts.append(text(x0 + 12, (top + bottom) / 2, "seconds expected", "small", more=turned))
        for plan, points in cloud.items():
            for took, expected in points:
                parts.append(f'<circle cx="{across(took):.1f}" cy="{up(expected):.1f}" r="2.4" fill="{COLOURS[plan]}" '
                             f'fill-opacity="0.7">{hint(plan, expected / took)}</circle>')  # fmt: skip
    path.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")


# --- The whole ---


def change_tasks(bench: Bench, patterns: list[str]) -> dict[tuple[str, float], Task]:
    """The worker of 10 MB/s on sites that change by so much a night."""
    found = {}
    for part in ("campus", "entertainment"):
        if any(fnmatch.fnmatch(f"{part}/worker-10", pattern) for pattern in patterns):
            for change in CHANGES:
                extractor = worker(bench.ratoon, 10_000_000, SCOPE, CONTEXT)
                corpus = bench.corpus(f"{part}-small+{change}")
                name = f"{part}/worker-10 change {change}"
                found[part, change] = Task(name, corpus, [extractor], bench.nights, 1, rate=1e7)
    return found


def reach_tasks(bench: Bench, patterns: list[str]) -> dict[tuple[str, int, int], Task]:
    """The worker of 10 MB/s with its scope and context so many times those of the paper's affiliation."""
    found = {}
    for part in ("campus", "entertainment"):
        if not any(fnmatch.fnmatch(f"{part}/worker-10", pattern) for pattern in patterns):
            continue
        for scope, context in [(1, 1), *((s, 1) for s in SCOPES[1:]), *((1, c) for c in CONTEXTS[1:])]:
            enlarged = "" if scope == context == 1 else f" scope x{scope} context x{context}"
            name = f"{part}/worker-10{enlarged}"
            task = bench.worker_task(name, part, 10, SCOPE * scope, CONTEXT * context)
            # One repetition fewer, for there are many; but what Figure 7 measures stays as it is there.
            repeat = max(1, task.repeat - 1) if enlarged else task.repeat
            found[part, scope, context] = dataclasses.replace(task, repeat=repeat)
    return found


def expected(bench: Bench, tasks: list[Task], swept: list[Task], reach: list[Task]) -> float:
    """About so many seconds of runs."""
    total = {task.name: task.seconds() for task in [*tasks, *reach]}
    variants = len(KS) + len(SAMPLES) - 2
    sweeps = [task.seconds() / task.repeat / len(PLANS) * variants for task in swept if bench.has_settings]
    return (sum(total.values()) + sum(sweeps)) / bench.jobs


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Evaluates how ratoon chooses its plan.")
    parser.add_argument("--quick", action="store_true", help="small corpora, few nights, once each: about 2 minutes")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / ".bench" / "plans", help="folder [.bench/plans]")
    parser.add_argument("--tasks", nargs="+", default=["*"], metavar="GLOB", help="such as 'campus/*' '*/worker-1'")
    parser.add_argument("--figures", nargs="+", type=int, choices=[6, 7, 8, 9, 10], default=[6, 7, 8, 9, 10])
    parser.add_argument("--nights", type=int, choices=range(2, 31), metavar="N", help="nights of the six, 2 to 30 [11; quick: 4]")
    parser.add_argument("--repeat", type=int, help="repetitions of each night [3; quick: 1]")
    parser.add_argument("--pages", type=int, help="pages of the synthetic corpora [1500; quick: 240]")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="runs at a time [%(default)s]")
    parser.add_argument("--ratoon", type=pathlib.Path, default=ROOT / "target" / "release" / "ratoon", metavar="PATH")
    args = parser.parse_args()
    args.repeat = args.repeat or (1 if args.quick else 3)
    args.pages = args.pages or (240 if args.quick else 1500)
    if not args.ratoon.is_file():
        parser.error(f"{args.ratoon} is not there: `make build` makes it")
    return args


def main() -> None:
    args = arguments()
    started = time.perf_counter()
    bench = Bench(args)
    shutil.rmtree(bench.work, ignore_errors=True)
    bench.work.mkdir(parents=True)
    figures = set(args.figures)
    every = bench.tasks(args.tasks)
    if not every:
        there = "\n".join(name for name, _ in bench.makers())
        sys.exit(f"plans: no task is named {' or '.join(args.tasks)}; there are:\n{there}")
    tasks = every if figures & {6, 7, 8} else []
    reach = reach_tasks(bench, args.tasks) if figures & {9, 10} else {}
    changes = change_tasks(bench, args.tasks) if 9 in figures else {}
    bench.has_settings = 9 in figures and bench.understands_settings()
    sensitive = {"campus/affiliation", "entertainment/play", "campus/worker-10", "entertainment/worker-10"}
    swept = [task for task in every if task.name in sensitive] if 9 in figures else []
    # Figure 9 stands on the runtimes of Figure 7; those it needs are measured there or now.
    needed = [*tasks, *(task for task in swept if task not in tasks)]
    minutes = expected(bench, needed, swept, list(reach.values())) / 60
    say(f"corpora ready after {time.perf_counter() - started:.0f} s; {len(needed)} tasks and {len(reach)} for reach;"
        f" on a quiet machine the runs take about {minutes:.1f} minutes")  # fmt: skip

    sections = ["# Plans\n"]
    done = []
    try:
        for task in [*needed, *reach.values(), *changes.values()]:
            bench.measure(task, PLANS)
            done.append(task)
    except KeyboardInterrupt:
        say("interrupted: what was measured so far is reported")
        tasks = [task for task in tasks if task in done]
        swept, figures = [], figures & {6, 7, 8}
    if tasks:
        sections += [verdicts(bench, tasks), savings(bench, tasks), predicted(bench, tasks)]
    if 6 in figures and tasks:
        sections.append(figure6(bench, tasks))
    if 7 in figures:
        sections.append(figure7(bench, tasks))
    if 8 in figures:
        sections.append(figure8(bench, tasks))
    if 9 in figures:
        sections.append(figure9(bench, swept, reach, changes))
    if 10 in figures:
        sections.append(figure10(bench, reach))
    write_csv(
        bench.out / "runs.csv",
        ["task", "settings", "snapshot", "plan", "repetition", "cpu_s", "wall_s", "instructions",
         *(f"{part}_s" for part in PARTS), "matcher", "refined", "bytes_extracted", "text_bytes"],
        bench.rows,
    )  # fmt: skip

    sections.append(closing(bench, time.perf_counter() - started))
    summary = "\n".join(sections)
    (bench.out / "summary.md").write_text(summary, encoding="utf-8")
    print(summary)
    shutil.rmtree(bench.work)
    if bench.unequal:
        sys.exit(1)


def closing(bench: Bench, seconds: float) -> str:
    """How it was measured, and whether all plans gave the same."""
    lines = ["## How\n"]
    if bench.meter.perf:
        lines.append(
            "- Measure: user instructions where the extractor runs inside ratoon, processor seconds of ratoon and its"
            " workers where one runs."
        )
    else:
        lines.append("- Measure: processor seconds of ratoon and its workers (`perf` counts no instructions here).")
    how = f"{len(bench.rows)} runs on one thread each, {bench.jobs} at a time"
    lines.append(f"- {how}, in {seconds / 60:.1f} minutes with the corpora.")
    for corpus in bench.corpora.values():
        pages = (corpus.snapshots / corpus.ids[-1] / "manifest.jsonl").read_text(encoding="utf-8").count("\n")
        size = f"{len(corpus.ids)} snapshots, the last of {pages} pages and {corpus.megabytes:.1f} MB"
        lines.append(f"- Corpus {corpus.name}: {size}.")
    try:
        import polars as _
    except ImportError:
        lines.append("- Mentions were not compared: polars is not there (use the Python of .venv).")
    else:
        lines += [f"- UNEQUAL mentions: {what}" for what in bench.unequal]
        if not bench.unequal:
            lines.append("- Mentions of the last night are equal under all plans, but for origin and since.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
