#!/usr/bin/env python3
"""Slim snapshots must say exactly what whole ones say, whatever happens to a store.

    python slim_equals_whole.py RATOON WORKDIR --seed S --cases N

Every case is a random history of a small web (`slim/world.py`) under partial or full coverage, with random extractors,
a query and watches, runs with forced plans, kills, edits of the pipeline with and without --backfill, --force,
prune and the loss of `_meta/index`. It is played to two stores: one as it comes, and one with `--whole` in every run,
so that every snapshot holds all pages. Compared are, for every snapshot X that is kept:

- the state at X (`slim/state.py`): of pages the title, text, digests, times and links; of mentions all columns but
  `origin`; of sources the newest rows of `update_stats` and `schedules`;
- what happened in X: captures, rejects, updates, alerts and all tables of deltas, row by row.

Besides, of the store as it comes:

- mentions of patterns are what Python's `re` finds in the text, in every state, for one definition of the extractor;
- under partial coverage pages with plain captures (no revisits) have the text that was served last, in every state;
- `ratoon sql`, the Python module and DuckDB through `catalog.sql` tell the same of all tables (`agree.py`), at some
  snapshots;
- no partition of a snapshot that is not kept is left, and none has a file without rows (but the first, for its schema);
- where nothing was forced, edited or pruned, a third store made by a single run has the same table files, byte for
  byte, but for `plans` and `plan_costs`, which follow the clock.

A case that fails prints its seed and keeps its folder in WORKDIR. Exit code 1 if any did.
"""

import argparse
import collections
import collections.abc
import dataclasses
import datetime
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import agree  # noqa: E402
from slim.state import EVENTS, SOURCES, Broken, Row, Store, frozen  # noqa: E402
from slim.world import TOPICS, Version, World, write_manifest, write_warc  # noqa: E402

FIRST = datetime.datetime(2024, 3, 1, 2, tzinfo=datetime.UTC)
PLANS = ["none", "edges", "diff", "suffix-tree", "anchor", "auto"]
# Differences that are told of a case.
TOLD = 12
PAGE_COLUMNS = ["title", "text_digest", "content_digest", "change_digest", "fetched_at", "last_modified"]
# Snapshots of a case that all readers are asked about.
READ = 2
# Tables that follow the clock.
MEASURED = {"plans", "plan_costs"}
WORKER = r"""
import json, re, sys

YEAR = re.compile(r"Since (?P<year>[12][0-9]{3})")
READY = {"name": "year", "version": "1", "fingerprint": YEAR.pattern, "attributes": ["year"], "offsets": "char",
         "unit": "line"}
sys.stdin.reconfigure(encoding="utf-8")
for line in sys.stdin:
    request = json.loads(line)
    found = [{"start": m.start(), "end": m.end(), "attrs": {"year": m.span("year")}}
             for m in YEAR.finditer(request.get("text", ""))]
    print(json.dumps(READY if "hello" in request else {"id": request["id"], "mentions": found}), flush=True)
"""
QUERY = """
[[query]]
name    = "halls"
nodes.a = { text = 'Hall [A-D]' }
links   = ["a -> b"]
"""
WATCHES = """
[[watch]]
name = "rooms"
on   = { new_text = 'Room [0-9]+' }

[[watch]]
name = "people"
on   = { mentions = "person" }

[[watch]]
name = "often"
on   = { pages = "http://a.test/*", changes = 4 }
"""


# --- Extractors ---


@dataclasses.dataclass(frozen=True)
class Definition:
    """What a pipeline file says of an extractor; `patterns` are those of a regex."""

    name: str
    lines: str
    patterns: tuple[str, ...] = ()

    def toml(self) -> str:
        return f'\n[[extractor]]\nname = "{self.name}"\n{self.lines}\n'

    def finds(self, text: str) -> collections.Counter:
        """The places where its patterns match, in bytes, by Python's `re`."""
        spans = [match.span() for pattern in self.patterns for match in re.finditer(pattern, text)]
        return collections.Counter((len(text[:start].encode()), len(text[:end].encode())) for start, end in spans)


def regex(name: str, *patterns: str) -> Definition:
    return Definition(name, f"kind = 'regex'\npatterns = {json.dumps(patterns)}", patterns)


def dictionary(name: str, terms: list[str]) -> Definition:
    return Definition(name, f"kind = 'dictionary'\nterms = '{terms_file(terms)}'\nwhole_word = true")


def terms_file(terms: list[str]) -> str:
    return f"terms-{len(terms)}.txt"


TERMS = [TOPICS[:3], [*TOPICS, "the survey", "river"]]
# What an extractor may be, one definition after the other.
DEFINITIONS = {
    "person": [regex("person", r"Dr\. (?P<last>[A-Z][a-z]{1,12})"), regex("person", r"Dr\. (?P<last>\w{1,12})\b")],
    "place": [
        regex("place", r"\bRoom [0-9]{1,3}\b", r"\bHall [A-D]\b"),
        regex("place", r"\b(?:Room|Hall) [A-D0-9]{1,2}"),
        regex("place", r"Room [^\n.]+"),
    ],
    "topic": [dictionary("topic", terms) for terms in TERMS],
    "visit": [
        Definition("visit", f"kind = 'record'\nscope = {scope}\nkey = 'who'\n"
                            f"attributes = {{ who = 'person', where = 'place' }}")  # fmt: skip
        for scope in (60, 100)
    ],
    "year": [Definition("year", f"kind = 'command'\ncommand = [{json.dumps(sys.executable)}, 'worker.py']")],
}


@dataclasses.dataclass
class Pipeline:
    coverage: str
    sections: str
    # The number of the definition of each extractor that is used.
    chosen: dict[str, int]

    def definitions(self) -> list[Definition]:
        return [DEFINITIONS[name][number] for name, number in self.chosen.items()]

    def toml(self, store: str) -> str:
        corpus = f"[corpus]\nsnapshots = 'snapshots'\nstore = '{store}'\ncoverage = '{self.coverage}'\n"
        extractors = "".join(definition.toml() for definition in self.definitions())
        return corpus + "max_reject_share = 1.0\n" + self.sections + extractors

    def edit(self, chance: random.Random) -> bool:
        """Adds an extractor or changes one; says whether it could."""
        edits = [name for name in DEFINITIONS if name not in self.chosen and name not in ("visit", "year")]
        edits += [name for name, number in self.chosen.items() if number + 1 < len(DEFINITIONS[name])]
        if not edits:
            return False
        name = chance.choice(edits)
        self.chosen[name] = self.chosen.get(name, -1) + 1
        return True


def random_pipeline(chance: random.Random, coverage: str) -> Pipeline:
    """Records and watches need both patterns from the start."""
    chosen = {"person": 0, "place": 0}
    for name, likely in [("topic", 0.6), ("visit", 0.5), ("year", 0.2)]:
        if chance.random() < likely:
            chosen[name] = 0
    sections = "ignore = ['Visitors: [0-9]+']\n" if chance.random() < 0.3 else ""
    sections += QUERY if chance.random() < 0.4 else ""
    sections += WATCHES if chance.random() < 0.5 else ""
    sections += "\n[schedule]\nby = 'host'\n" if chance.random() < 0.3 else ""
    return Pipeline(coverage, sections, chosen)


# --- Playing a history ---


class Failed(Exception):
    """The program did not do what it was asked."""


@dataclasses.dataclass
class Player:
    """One of the stores of a case, and the program that fills it."""

    ratoon: pathlib.Path
    folder: pathlib.Path
    name: str
    # Options of every run.
    options: list[str]
    chance: random.Random
    kills: bool = False
    # What a run takes, about.
    seconds: float = 0.1

    @property
    def store(self) -> pathlib.Path:
        return self.folder / self.name

    def call(self, command: str, *options: str) -> int:
        """Runs a command, sometimes after it was killed on the way; the exit code is that of the run that was not."""
        words = [str(self.ratoon), command, f"{self.name}.toml", *options, "-q"]
        if command == "run":
            words += [*self.options, "--threads", self.chance.choice(["1", "2"])]
        while self.kills and self.chance.random() < 0.3:
            self.kill(words)
        started = time.perf_counter()
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False)
        self.seconds = time.perf_counter() - started
        with (self.folder / "log.txt").open("a", encoding="utf-8") as log:
            log.write(f"{' '.join(words)}\nexit {done.returncode}\n{done.stderr}")
        # 3: done, with something that a person should look at.
        if done.returncode not in (0, 3):
            raise Failed(f"exit {done.returncode} of {' '.join(words)}: {done.stderr.strip()[-400:]}")
        return done.returncode

    def kill(self, words: list[str]) -> None:
        process = subprocess.Popen(words, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(self.chance.random() * self.seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def lose_index(self) -> None:
        shutil.rmtree(self.store / "_meta" / "index", ignore_errors=True)


class Case:
    """A history, played to two stores, and to a third one where that must come out the same."""

    def __init__(self, ratoon: pathlib.Path, whole: list[str], folder: pathlib.Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        chance = self.chance
        coverage = "partial" if chance.random() < 0.8 else "full"
        urls = chance.choice([chance.randint(5, 20), chance.randint(20, 60), chance.randint(20, 60)])
        self.world = World(chance, urls, coverage == "full")
        self.pipeline = random_pipeline(chance, coverage)
        # Nothing but runs, kills and a lost index: then a single run must give the same bytes.
        self.calm = chance.random() < 0.4
        self.nights = chance.randint(4, 15)
        self.snapshots: list[str] = []
        # Those of them that the stores hold.
        self.kept: list[str] = []
        # What plain captures make of the web, by snapshot.
        self.expected: dict[str, dict[str, Version]] = {}
        self.differences: list[str] = []
        # How much was compared.
        self.tally = collections.Counter()
        kills = chance.random() < 0.5
        self.slim, self.whole, self.once = (
            Player(ratoon, folder, name, options, random.Random(f"{seed} {name}"), kills and name != "once")
            for name, options in [("slim", []), ("whole", whole), ("once", [])]
        )
        self.both = [self.slim, self.whole]

    def play(self) -> list[str]:
        """Plays the history and gives the differences."""
        (self.folder / "snapshots").mkdir(parents=True)
        (self.folder / "worker.py").write_text(WORKER, encoding="utf-8")
        for terms in TERMS:
            (self.folder / terms_file(terms)).write_text("\n".join(terms), encoding="utf-8")
        self.write_pipeline()
        now = FIRST
        try:
            for number in range(self.nights):
                now = self.night(now)
                # Sometimes the next run finds several snapshots.
                if number + 1 == self.nights or self.chance.random() < 0.85:
                    self.run()
                    self.afterwards()
            self.compare(newest=True)
            if self.calm:
                self.once.call("run")
                self.differences += unequal_files(self.slim.store, self.once.store)
        except (Failed, Broken) as error:
            self.differences.append(str(error))
        return self.differences

    def write_pipeline(self) -> None:
        for player in (*self.both, self.once):
            toml = self.pipeline.toml(player.name)
            (self.folder / f"{player.name}.toml").write_text(toml, encoding="utf-8")

    def night(self, before: datetime.datetime) -> datetime.datetime:
        """Writes the next snapshot; gives its time."""
        now = before + datetime.timedelta(hours=self.chance.choice([1, 6, 24, 24]))
        warc = self.chance.random() < 0.6
        folder = self.folder / "snapshots" / f"{now:%Y-%m-%dT%H-%M}"
        folder.mkdir()
        captures = self.world.night(before, now, warc)
        (write_warc if warc else write_manifest)(folder, captures, self.chance)
        self.snapshots.append(folder.name)
        self.expected[folder.name] = dict(self.world.expected)
        return now

    def each(self, command: str, *options: str) -> None:
        """The same for both stores, with the same end."""
        codes = [player.call(command, *options) for player in self.both]
        if len(set(codes)) > 1:
            raise Failed(f"exit {codes[0]} and with whole snapshots {codes[1]} of {command} {' '.join(options)}")

    def run(self) -> None:
        options = []
        if not self.calm and self.chance.random() < 0.3:
            options += ["--plan", self.chance.choice(PLANS)]
        if not self.calm and self.kept and self.chance.random() < 0.2 and self.pipeline.edit(self.chance):
            self.write_pipeline()
            if self.chance.random() < 0.5:
                options += ["--backfill", self.chance.choice(self.kept)]
        self.each("run", *options)
        done = self.kept[-1] if self.kept else ""
        self.kept += [snapshot for snapshot in self.snapshots if snapshot > done]

    def afterwards(self) -> None:
        """What may happen to stores between two runs."""
        chance = self.chance
        for player in self.both:
            if chance.random() < 0.1:
                player.lose_index()
        if self.calm or len(self.kept) < 3:
            return
        if chance.random() < 0.12:
            self.compare()
            # The oldest one may be the first after a prune, which cannot be read again.
            self.each("run", "--force", "--snapshot", chance.choice(self.kept[1:]))
        if chance.random() < 0.12:
            self.compare()
            first = chance.choice(self.kept[1:])
            self.each("prune", "--before", first)
            self.kept = [snapshot for snapshot in self.kept if snapshot >= first]
            self.world.forget_the_dead()

    def compare(self, newest: bool = False) -> None:
        """`newest`: the last definitions have been run and hold in the newest snapshot."""
        slim, whole = (Store(player.store, self.kept) for player in self.both)
        self.differences += [*unequal_pages(slim, whole), *unequal_mentions(slim, whole), *unequal_sources(slim, whole)]
        self.differences += [*unequal_events(slim, whole), *unwanted_files(slim)]
        if self.whole.options and tally(whole)["slim ones"]:
            self.differences.append("a snapshot that was to be whole is slim")
        self.differences += wrong_patterns(slim, self.pipeline.definitions() if newest else [])
        if self.pipeline.coverage == "partial":
            self.differences += wrong_pages(slim, self.expected, self.world.unsure)
        if newest:
            self.tally += tally(slim)
            some = self.chance.sample(self.kept, min(READ, len(self.kept)))
            self.differences += agree.differences(str(self.both[0].ratoon), slim.folder, at=some)


# --- Comparing ---

Differences = collections.abc.Iterator[str]


def unequal_rows(what: str, slim: collections.Counter, whole: collections.Counter) -> Differences:
    """Rows that only one side has."""
    for side, rows in [("only with slim snapshots", slim - whole), ("only with whole snapshots", whole - slim)]:
        yield from (f"{what}: {side}: {row}" for row in rows)


def counted(rows: collections.abc.Iterable[Row], without: collections.abc.Container[str] = ()) -> collections.Counter:
    return collections.Counter(
        tuple((column, frozen(value)) for column, value in sorted(row.items()) if column not in without) for row in rows
    )


def unequal_pages(slim: Store, whole: Store) -> Differences:
    def facts(store: Store, snapshot: str) -> collections.Counter:
        return collections.Counter(
            (url, store.text(page), *(page[column] for column in PAGE_COLUMNS), *store.links(page))
            for url, page in store.pages[snapshot].items()
        )

    for snapshot in slim.kept:
        yield from unequal_rows(f"pages at {snapshot}", facts(slim, snapshot), facts(whole, snapshot))


def unequal_mentions(slim: Store, whole: Store) -> Differences:
    def facts(store: Store, snapshot: str) -> collections.Counter:
        found = collections.Counter()
        for (extractor, url), row in store.extractions[snapshot].items():
            found[extractor, url, row["status"], row["text_digest"], row["fingerprint"]] += 1
            for mention, times in counted(store.mentions(extractor, row), {"origin", "whole"}).items():
                found[extractor, *mention] += times
        return found

    for snapshot in slim.kept:
        yield from unequal_rows(f"mentions at {snapshot}", facts(slim, snapshot), facts(whole, snapshot))


def unequal_sources(slim: Store, whole: Store) -> Differences:
    for table in SOURCES:
        for snapshot in slim.kept:
            sides = (counted(store.sources[table, snapshot].values()) for store in (slim, whole))
            yield from unequal_rows(f"{table} at {snapshot}", *sides)


def unequal_events(slim: Store, whole: Store) -> Differences:
    for table in EVENTS:
        for snapshot in slim.kept:
            sides = (counted(store.rows(table, snapshot)) for store in (slim, whole))
            yield from unequal_rows(f"{table} of {snapshot}", *sides)


def unwanted_files(store: Store) -> Differences:
    """Partitions that should have been pruned, and such as hold nothing; a table's first one carries its schema."""
    slim = "whole" in store.rows("pages", store.kept[0])[0]
    tables: dict[pathlib.Path, list[pathlib.Path]] = {}
    for partition in store.partitions():
        tables.setdefault(partition.parent, []).append(partition)
    for table, partitions in tables.items():
        for number, partition in enumerate(sorted(partitions)):
            snapshot = partition.name.partition("=")[2]
            name = f"{table.relative_to(store.folder)} at {snapshot}"
            if snapshot not in store.kept:
                yield f"{name} should be pruned"
            elif slim and number > 0 and not store.rows(str(table.relative_to(store.folder)), snapshot):
                yield f"{name} is there and has no rows"


def wrong_patterns(store: Store, current: list[Definition]) -> Differences:
    """Mentions of regexes that Python does not find, or finds elsewhere.

    All rows with one fingerprint must fit one definition; `current` are those that must hold in the newest snapshot.
    """
    fitting: dict[tuple[str, object], list[Definition]] = {}
    for snapshot in store.kept:
        for (extractor, url), row in store.extractions[snapshot].items():
            patterns = [definition for definition in DEFINITIONS[extractor] if definition.patterns]
            if not patterns or row["status"] != "ok":
                continue
            text = store.text(store.pages[snapshot][url])
            mentions = store.mentions(extractor, row)
            found = collections.Counter((mention["start"], mention["end"]) for mention in mentions)
            known = fitting.get((extractor, row["fingerprint"]), patterns)
            fitting[extractor, row["fingerprint"]] = [fits for fits in known if fits.finds(text) == found]
            if not fitting[extractor, row["fingerprint"]]:
                yield f"{extractor} of {url} at {snapshot}: Python finds other places than {sorted(found)}"
                return
    newest = store.extractions[store.kept[-1]]
    for definition in current:
        prints = {row["fingerprint"] for (extractor, _), row in newest.items() if extractor == definition.name}
        if len(prints) != 1:
            yield f"{definition.name} at {store.kept[-1]} has {len(prints)} fingerprints"
        elif definition.patterns and definition not in fitting[definition.name, *prints]:
            yield f"{definition.name} at {store.kept[-1]} is not as the pipeline file defines it"


def wrong_pages(store: Store, expected: dict[str, dict[str, Version]], unsure: set[str]) -> Differences:
    """Pages that are not what was served last, as far as plain captures tell."""
    for snapshot in store.kept:
        pages, served = store.pages[snapshot], expected[snapshot]
        for url in sorted((pages.keys() | served.keys()) - unsure):
            if url not in served or url not in pages:
                yield f"{url} {'is missing' if url in served else 'should be gone'} at {snapshot}"
            elif store.text(pages[url]).split() != served[url].words() or pages[url]["title"] != served[url].title:
                yield f"{url} at {snapshot} is not what was served last"


def unequal_files(nightly: pathlib.Path, once: pathlib.Path) -> Differences:
    """Table files that a single run makes otherwise."""

    def files(store: pathlib.Path) -> dict[str, bytes]:
        found = {path.relative_to(store): path for path in store.glob("**/*.parquet")}
        return {
            str(name): path.read_bytes()
            for name, path in found.items()
            if name.parts[0] not in MEASURED and not name.parts[0].startswith(("_", "."))
        }

    here, there = files(nightly), files(once)
    for name in sorted(here.keys() | there.keys()):
        if here.get(name) != there.get(name):
            only = {(True, False): " (night by night only)", (False, True): " (in one run only)"}
            yield f"{name} differs from that of a single run{only.get((name in here, name in there), '')}"


def tally(store: Store) -> collections.Counter:
    """How much there was to compare."""
    counts = collections.Counter(snapshots=len(store.kept))
    for snapshot in store.kept:
        slim = any(not row.get("whole", True) for row in store.rows("pages", snapshot))
        counts["slim ones"] += slim or not store.rows("pages", snapshot)
        counts["pages"] += len(store.pages[snapshot])
        counts["mentions"] += sum(row["mentions"] for row in store.extractions[snapshot].values())
        counts["events"] += sum(len(store.rows(table, snapshot)) for table in EVENTS)
    return counts


# --- The whole ---


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compares slim snapshots with whole ones on random histories.")
    parser.add_argument("ratoon", type=pathlib.Path)
    parser.add_argument("workdir", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30), help="of the first case [random]")
    parser.add_argument("--cases", type=int, default=10, help="each with the seed after the last one's [%(default)s]")
    parser.add_argument("--keep", action="store_true", help="leave the folders of cases that hold, too")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    ratoon = args.ratoon.resolve()
    asked = subprocess.run([ratoon, "run", "--whole", "--help"], capture_output=True, check=False)
    whole = ["--whole"] if asked.returncode == 0 else []
    if not whole:
        print("this program knows no --whole: both stores are made alike")
    failed, counts = [], collections.Counter()
    for seed in range(args.seed, args.seed + args.cases):
        folder = args.workdir.resolve() / f"case-{seed}"
        shutil.rmtree(folder, ignore_errors=True)
        case = Case(ratoon, whole, folder, seed)
        differences = case.play()
        counts += case.tally
        if differences:
            failed.append(seed)
            headline = f"seed {seed}: {len(differences)} differences in {folder}"
            print(headline, *differences[:TOLD], sep="\n  ", flush=True)
        elif not args.keep:
            shutil.rmtree(folder)
    if failed:
        sys.exit(f"{len(failed)} of {args.cases} cases differ; seeds: {' '.join(map(str, failed))}")
    compared = ", ".join(f"{count} {what}" for what, count in counts.items())
    print(f"equal: {args.cases} cases from seed {args.seed}: {compared}")


if __name__ == "__main__":
    main()
