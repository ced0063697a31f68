#!/usr/bin/env python3
"""Measures ratoon against what people would use instead, on releases of packages that are fetched by pip and npm.

    python tests/benches/against [--quick] [--only patterns … [--keep]] [--corpora services …] [--rounds N] [--publish]

Work: `patterns`, `terms`, `command`, `model`, `changes`, `schedules`. Programs take turns in every round, and medians over
the rounds count. Written to --out (.bench/peers): results.json with every round, summary.md, which is also printed, and
costs.svg; --publish also puts them into the README beside this folder. Needs what requirements.txt names, npm, git and
diff; without CocoIndex the rest is measured.
"""

import argparse
import dataclasses
import importlib.util
import json
import pathlib
import sys
import tempfile

import corpora
import measure
import write

ROOT = pathlib.Path(__file__).resolve().parents[3]
WORK = ["patterns", "terms", "command", "model", "changes"]


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the work is: bytes a night (of text, where it is waited for), bytes a page at most, nights, rounds."""

    size: int
    most: int
    nights: int
    rounds: int


FULL = {
    "patterns": Size(12_000_000, 8_000_000, 5, 3),
    "terms": Size(12_000_000, 8_000_000, 4, 3),
    "command": Size(600_000, 300_000, 3, 2),
    "model": Size(300_000, 150_000, 3, 2),
    "changes": Size(12_000_000, 8_000_000, 4, 3),
}
QUICK = {
    "patterns": Size(3_000_000, 8_000_000, 3, 2),
    "terms": Size(3_000_000, 8_000_000, 2, 1),
    "command": Size(200_000, 100_000, 2, 1),
    "model": Size(80_000, 60_000, 2, 1),
    "changes": Size(3_000_000, 8_000_000, 3, 2),
}
SCHEDULES = {"day": ["--period", "day", "--polls", 2], "week": ["--period", "week", "--polls", 4]}


def contest(args: argparse.Namespace, folder: pathlib.Path, corpus: corpora.Corpus, kind: str) -> list[measure.Result]:
    size = (QUICK if args.quick else FULL)[kind]
    share = corpus.text if kind in write.WAITED else 1.0
    nights = corpora.lay_out(corpus, args.out, round(size.size / share), round(size.most / share), size.nights)
    rounds = args.rounds or size.rounds
    corpora.say(f"{kind} on {corpus.name}: {len(nights) - 1} nights after the first, {rounds} rounds")
    one = measure.Contest(args.ratoon, folder, corpus, nights, kind)
    if kind == "changes":
        return one.run(measure.COMPARERS, rounds)
    if kind == "model":
        with measure.Model(folder) as model:
            one.ask(model)
            return one.run(programs(), rounds)
    return one.run(programs(), rounds)


def programs() -> list[str]:
    there = importlib.util.find_spec("cocoindex") is not None
    return [program for program in measure.PROGRAMS if there or program != measure.COCO]


def schedules(args: argparse.Namespace) -> dict[str, dict]:
    log = args.out / "updates.csv"
    sources = corpora.update_log(args.out, log)
    corpora.say(f"schedules for the releases of {sources} packages")
    return {period: measure.schedules(args.ratoon, log, options) for period, options in SCHEDULES.items()}


def main() -> None:
    names = [corpus.name for corpus in corpora.CORPORA]
    parser = argparse.ArgumentParser(description="Measures ratoon against what people would use instead.")
    parser.add_argument("--quick", action="store_true", help="small corpora, few rounds: a few minutes")
    parser.add_argument("--only", nargs="+", choices=[*WORK, "schedules"], default=[*WORK, "schedules"])
    parser.add_argument("--keep", action="store_true", help="of other work than --only keep what was measured before")
    parser.add_argument("--corpora", nargs="+", choices=names, default=names)
    parser.add_argument("--rounds", type=int, help="instead of what the size says")
    parser.add_argument("--ratoon", type=lambda text: pathlib.Path(text).resolve(), default=ROOT / "target/release/ratoon")
    parser.add_argument("--out", type=lambda text: pathlib.Path(text).resolve(), default=ROOT / ".bench" / "peers")
    parser.add_argument("--publish", action="store_true", help="put table and figure into tests/benches")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    results, compared = kept(args.out, args.only) if args.keep else ([], {})
    with tempfile.TemporaryDirectory(dir=args.out) as folder:
        for kind in [kind for kind in WORK if kind in args.only]:
            for corpus in corpora.CORPORA:
                if corpus.name in args.corpora:
                    results += contest(args, pathlib.Path(folder), corpus, kind)
                    keep(args.out, results, compared)
    if "schedules" in args.only:
        compared = schedules(args)
    keep(args.out, results, compared)
    text = write.summary(results, compared, "quick" if args.quick else "full")
    (args.out / "summary.md").write_text(text)
    write.figure(results, args.out / "costs.svg")
    if args.publish:
        write.publish(text, args.out / "costs.svg", ROOT / "tests" / "benches")
    print(text)


def keep(out: pathlib.Path, results: list[measure.Result], compared: dict[str, dict]) -> None:
    """What is measured so far: a run that is broken off loses nothing."""
    told = {"results": [dataclasses.asdict(result) for result in results], "schedules": compared}
    (out / "results.json").write_text(json.dumps(told, indent=1))


def kept(out: pathlib.Path, only: list[str]) -> tuple[list[measure.Result], dict[str, dict]]:
    """What an earlier run measured of other work."""
    told = json.loads((out / "results.json").read_text())
    results = [measure.Result(**row) for row in told["results"] if row["work"] not in only]
    for result in results:
        result.rounds = [measure.Taken(**taken) for taken in result.rounds]
    return results, told["schedules"]


if __name__ == "__main__":
    sys.exit(main())
