"""Runs programs on the same nights, in turn, and notes what each took.

A program begins every round with what it had kept after the first night; what counts is the sum of the nights after it.
"""

import collections.abc
import dataclasses
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import nights
import work
from corpora import Corpus, Night, apart, say

HERE = pathlib.Path(__file__).parent
SCRIPTS = {"script": "scratch", "page digests": "pages", "2 KB chunks": "chunks"}
COCO = "CocoIndex"
EXACT = "ratoon"
SCRATCH = "ratoon from scratch"
PROGRAMS = [EXACT, SCRATCH, *SCRIPTS, COCO]
# Those that keep something from night to night.
KEEPING = [EXACT, "page digests", "2 KB chunks", COCO]
COMPARERS = [EXACT, "diff -r", "git diff"]


@dataclasses.dataclass
class Taken:
    """What a program took for some nights."""

    wall: float = 0.0
    cpu: float = 0.0
    peak_mb: float = 0.0
    given: int = 0
    requests: int = 0
    # What of that had to be asked, since it was never asked before: bytes, requests.
    fresh_bytes: int = 0
    fresh_requests: int = 0

    def add(self, other: "Taken") -> None:
        for field in dataclasses.fields(self):
            mine, its = getattr(self, field.name), getattr(other, field.name)
            setattr(self, field.name, max(mine, its) if field.name == "peak_mb" else mine + its)


@dataclasses.dataclass
class Result:
    """A program on a corpus: every round, and how many mentions were wrong of how many."""

    corpus: str
    work: str
    program: str
    rounds: list[Taken] = dataclasses.field(default_factory=list)
    wrong: int | None = None
    expected: int | None = None

    def median(self, what: str) -> float:
        return statistics.median(getattr(taken, what) for taken in self.rounds)


class Tally:
    """What workers and the model noted: each request with its digest and size."""

    def __init__(self, file: pathlib.Path) -> None:
        self.file = file

    def take(self, seen: set[str]) -> Taken:
        """What came since the last time; `seen` learns of it."""
        taken = Taken()
        for line in self.file.read_text().splitlines() if self.file.is_file() else []:
            digest, size = line.split()
            taken.given += int(size)
            taken.requests += 1
            if digest not in seen:
                seen.add(digest)
                taken.fresh_bytes += int(size)
                taken.fresh_requests += 1
        self.file.write_text("")
        return taken


class Model:
    """The model server, for as long as the block lasts."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.tally = folder / "model.tally"

    def __enter__(self) -> "Model":
        command = [sys.executable, HERE / "model.py", self.tally]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.endpoint = self.process.stdout.readline().strip()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()


class Contest:
    """One kind of work on one corpus."""

    def __init__(self, ratoon: pathlib.Path, folder: pathlib.Path, corpus: Corpus, all_nights: list[Night], kind: str) -> None:
        self.ratoon, self.corpus, self.nights, self.kind = ratoon, corpus, all_nights, kind
        self.folder = folder / f"{corpus.name}-{kind}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.terms = self.folder / "terms.txt"
        self.endpoint = ""
        self.tally = Tally(self.folder / "tally")
        if kind == "terms":
            apart(work.write_terms, all_nights[0].folder, self.terms)
        self.prompt = self.folder / "prompt.md"
        self.prompt.write_text("Find names.\n")

    def ask(self, model: Model) -> None:
        self.endpoint, self.tally = model.endpoint, Tally(model.tally)

    # --- Commands ---

    def state(self, program: str) -> pathlib.Path:
        return self.folder / program.replace(" ", "-")

    def out(self, program: str, night: Night) -> pathlib.Path:
        return self.folder / f"{program.replace(' ', '-')}.{night.id}.jsonl"

    def pipeline(self, folder: pathlib.Path, snapshots: pathlib.Path) -> pathlib.Path:
        folder.mkdir(parents=True, exist_ok=True)
        values = {"python": sys.executable, "slow": HERE / "slow.py", "tally": self.tally.file, "terms": self.terms,
                  "endpoint": self.endpoint, "prompt": self.prompt}  # fmt: skip
        file = folder / "p.toml"
        # Patterns have braces of their own.
        extractors = work.EXTRACTORS[self.kind]
        for name, value in values.items():
            extractors = extractors.replace(f"{{{name}}}", str(value))
        file.write_text(work.PIPELINE.format(snapshots=snapshots) + extractors)
        return file

    def by_ratoon(self, state: pathlib.Path, snapshots: pathlib.Path, night: Night) -> list[object]:
        stage = "delta" if self.kind == "changes" else "extract"
        threads = work.WORKERS if self.kind in ("command", "model") else 1
        return [self.ratoon, stage, self.pipeline(state, snapshots), "--snapshot", night.id, "--threads", threads, "--json", "-q"]

    def command(self, program: str, at: int) -> list[object]:
        night, state = self.nights[at], self.state(program)
        if program == EXACT:
            return self.by_ratoon(state, night.folder.parent, night)
        if program == SCRATCH:
            # A store and a folder with nothing but this night.
            shutil.rmtree(state, ignore_errors=True)
            link(night.folder, state / "snapshots" / night.id)
            return self.by_ratoon(state, state / "snapshots", night)
        if self.kind == "changes":
            folders = [self.nights[at - 1].folder / "pages", night.folder / "pages"]
            compare = ["diff", "-r", "-u"] if program == "diff -r" else ["git", "diff", "--no-index", "--histogram"]
            # That there are differences is no failure.
            return ["sh", "-c", '"$@"; test $? -le 1', "sh", *compare, *folders]
        name, way = ("coco.py", "-") if program == COCO else ("script.py", SCRIPTS[program])
        words = [sys.executable, HERE / name, self.kind, way, night.folder, state, self.out(program, night)]
        return [*words, "--terms", self.terms, "--tally", self.tally.file, "--endpoint", self.endpoint]

    # --- Measuring ---

    def night(self, program: str, at: int, seen: set[str]) -> Taken:
        command = self.command(program, at)
        cost = nights.run(command)
        asked = self.tally.take(seen)
        taken = Taken(cost.wall, cost.cpu, cost.peak_mb)
        if self.kind in ("command", "model"):
            taken.add(asked)
        elif program in (EXACT, SCRATCH):
            taken.given = given_by(json.loads(cost.output))
        elif self.kind != "changes":
            told = json.loads(cost.output.splitlines()[-1])
            # Every pattern is given the text.
            taken.given = told["given"] * (len(work.PATTERNS) if self.kind == "patterns" else 1)
            taken.requests = told["requests"]
        return taken

    def run(self, programs: list[str], rounds: int) -> list[Result]:
        results = {program: Result(self.corpus.name, self.kind, program) for program in programs}
        kept: dict[str, set[str]] = {}
        for program in programs:
            if program in KEEPING:
                self.night(program, 0, kept.setdefault(program, set()))
                store(self.state(program), self.state(program).with_suffix(".first"))
        for number in range(rounds):
            for program in programs[number % len(programs) :] + programs[: number % len(programs)]:
                store(self.state(program).with_suffix(".first"), self.state(program))
                seen = set(kept.get(program, ()))
                total = Taken()
                for at in range(1, len(self.nights)):
                    total.add(self.night(program, at, seen))
                    if number == 0 and program == SCRATCH:
                        shutil.copytree(self.state(program) / "store", self.folder / f"alone-{at}")
                results[program].rounds.append(total)
                say(f"  round {number + 1}, {program}: {total.wall:.2f} s, processor {total.cpu:.2f} s")
        if self.kind != "changes":
            self.check(results)
        return list(results.values())

    # --- Exact or not ---

    def check(self, results: dict[str, Result]) -> None:
        """Every program against extraction from scratch on the same texts; ours and Python's where the text is the same."""
        same_text = not any(self.nights[0].folder.glob("pages/**/*.html"))
        for program, result in results.items():
            for at in range(1, len(self.nights)):
                night = self.nights[at]
                alone = f"{self.folder / f'alone-{at}'}@{night.id}"
                script = str(self.out("script", night))
                match program:
                    case "ratoon":
                        sides = ("places", f"{self.state(EXACT) / 'store'}@{night.id}", alone)
                    case "ratoon from scratch" if same_text and "script" in results and self.kind != "command":
                        sides = ("texts", alone, script)
                    case "ratoon from scratch" | "script":
                        continue
                    case _:
                        sides = ("places", str(self.out(program, night)), script)
                self.compare(result, *sides)

    def compare(self, result: Result, *sides: str) -> None:
        words = [sys.executable, str(HERE / "compare.py"), *sides]
        told = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        result.wrong = (result.wrong or 0) + told["wrong"]
        result.expected = (result.expected or 0) + told["expected"]


def given_by(summary: dict) -> int:
    """Bytes that the extractors of a run were given."""
    steps = [step["summary"] for step in summary["done"] if step["stage"] == "extract"]
    return sum(costs["bytes_extracted"] for step in steps for costs in step["costs"].values())


def store(source: pathlib.Path, target: pathlib.Path) -> None:
    """What a program keeps, as a copy."""
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
    elif source.is_file():
        shutil.copyfile(source, target)


def link(source: pathlib.Path, target: pathlib.Path) -> None:
    """The same files in another folder."""
    shutil.copytree(source, target, copy_function=os.link)


def schedules(ratoon: pathlib.Path, log: pathlib.Path, options: collections.abc.Sequence[object]) -> dict:
    """All methods on one log, judged on the time that they have not seen."""
    return json.loads(nights.run([ratoon, "simulate", "--compare", "--updates", log, *options, "--json", "-q"]).output)
