#!/usr/bin/env python3
"""Draws the figures of the papers into one folder, with one page that shows them all.

    python3 tests/benches/figures.py [--out out/figures] [--nights 30] [--full] [--only update-capture cyclex index]

- Update capture, Figure 5: recall against polls by each method, on generated logs (`ratoon synth --log`) like the paper's
  sources: air traffic messages, new movies, headlines, and one that changes by chance; then all methods beside each other
  (`ratoon simulate --compare`), on the public logs where they are at hand.
- Cyclex, Figures 6 to 10: plans.py, here with small sites unless --full; the six extractors as patterns and as Python workers
  as slow as the paper's.
- What other targets have drawn into the same folder (web deltas as graphs) is shown too.

Everything is made anew from the program alone; nothing is fetched.
"""

import argparse
import html
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PUBLIC = ROOT.parent / "shared" / "update_logs" / "train_public.csv.gz"
# Log, period, polls of the schedule that is told, width of a slot.
LOGS = [
    ("datis", "hour", "2", "1m", "Air traffic messages: two an hour, near :05 and :15",
     "With two polls both methods catch all; uniform polls need six, and at the worst phases they miss half."),
    ("hollywood", "week", "1", "1h", "New movies: once a week, mostly on Thursday",
     "One poll a week catches nearly every version, whenever it comes: what a good time gains here is freshness (the schedule)."),
    ("cnn", "day", "12", "5m", "Headlines: one an hour, fewer at night, many while a story is breaking",
     "The hour of the day tells little. What the versions show tells more: with two timetables, see the schedule."),
    ("poisson", "day", "4", "5m", "By chance alone: nothing can be learned", "All methods are one line, as they should be."),
]
UPDATE_CAPTURE = (
    "Share of the versions that polls catch (recall) on held-out time, against the polls of a period: uniform polls, the"
    " paper's theoretical method, and the optimum. The paper has this figure for air traffic messages alone: its two methods"
    " catch about all with two polls an hour at :05 and :15, where uniform polls miss half, and the gain is largest with few"
    " polls. Here the logs are generated with the rhythm that the paper describes. The grey line without points is what a poll"
    " in every slot would catch; lines that are not seen lie under others."
)
# What is seen in each picture, and what the paper had; by how the file's name begins.
CYCLEX = [
    ("figure7-paper", "Figure 7", "Runtime of a night by each plan, for the paper's six extractors as patterns inside ratoon. In"
     " the paper extraction is dear, and Cyclex takes 50 to 90 % less than from scratch in all cases but actor, and 4 to 13 % more"
     " than the fastest plan. Patterns are so fast here that no matcher pays, and auto takes over equal pages only."),
    ("figure7-python", "Figure 7, slow extractors", "The same six as Python workers that are slow as the paper's were: here its 50 to"
     " 90 % can be checked (the table What recycling saves)."),
    ("figure7", "Figure 7, other tasks", "Runtime of a night by each plan: term lists, and workers of 100, 10 and 1 MB a second. The"
     " dearer the extractor, the more is saved."),
    ("figure8-paper", "Figure 8", "Where the time of a night goes. In the paper matching and extracting take nearly all of it, the suffix"
     " tree matches longest and pays for play and award; choosing is insignificant."),
    ("figure8-python", "Figure 8, slow extractors", "The same for the six as Python workers: extracting is what is saved."),
    ("figure8", "Figure 8, other tasks", "Where the time of a night goes, for term lists and workers."),
    ("figure9", "Figure 9", "Share of nights on which the choice was the fastest plan or within 2 % of it, against the nights k that"
     " weights are fitted to, pages of the sample, scope and context in multiples of those of affiliation, and the share of pages"
     " that change. In the paper 3 snapshots and 30 pages are enough, and accuracy falls for play once its scope is four times as"
     " large, where plans differ little. Nights of a few milliseconds, as in the quick size, are told apart by chance; lines that are not seen"
     " lie under others."),
    ("figure10", "Figure 10", "Runtime over that from scratch, against scope and context in multiples. In the paper the ratio grows only"
     " slowly, so that rough values of both are good enough."),
    ("predicted", "Expected against taken", "Each point is a night by one plan: what the cost model expected and what was taken (reading"
     " texts, matching, extracting, copying). On the line both are the same. Nights that are short by default weights are priced by"
     " these and measure nothing: the flat clouds at the left. The paper shows only which plan was chosen."),
]
WEBS = [
    ("january", "Figure 2", "The web table Drugs of 15 January 2001, one graph a web tuple."),
    ("february", "Figure 3", "The web table New Drugs of 15 February 2001."),
    ("delta/modified", "Figure 9, modified", "The delta web table of tuples with pages that were modified between the two: a thick border and a"
     " label, where the paper has the old and the new version as patterned boxes."),
    ("delta/plus", "Figure 10 (a), added", "Tuples with pages that are new, or reached by a new link: black boxes in the paper."),
    ("delta/minus", "Figure 10 (b), deleted", "Tuples with pages that are gone, or are no longer reached."),
]
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; color: #222 }
img { max-width: 100%; border: 1px solid #ddd; margin: .5em 0 } pre { background: #f5f5f5; padding: 1em; overflow-x: auto }
table { border-collapse: collapse; font-size: 13px } td, th { border: 1px solid #ddd; padding: .15em .6em; text-align: left }
h2 { margin-top: 2.5em; border-bottom: 1px solid #ccc } nav a { margin-right: 1.2em }
"""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def call(*command: object) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"figures: exit {done.returncode} of {' '.join(map(str, command))}\n{done.stderr.strip()}")
    return done.stdout


def update_capture(ratoon: pathlib.Path, out: pathlib.Path) -> None:
    folder = out / "update-capture"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for kind, period, polls, grain, *_ in LOGS:
        say(f"update capture: {kind}")
        log = folder / f"{kind}.csv"
        call(ratoon, "synth", "--log", kind, log)
        told = call(ratoon, "schedule", "--updates", log, "--period", period, "--polls", polls, "--grain", grain,
                    "--min-gap", "0s", "--figure", folder / f"{kind}.svg", *(["--signal"] if kind == "cnn" else []))  # fmt: skip
        (folder / f"{kind}.txt").write_text(re.sub(r"^wrote .*\n", "", told, flags=re.M), encoding="utf-8")
    say("update capture: all methods")
    compared = [("generated sources", call(ratoon, "simulate", "--compare", "--polls", 4))]
    if PUBLIC.is_file():
        compared.append(("26 public sources", call(ratoon, "simulate", "--compare", "--polls", 4, "--updates", PUBLIC)))
    (folder / "compared.txt").write_text("\n".join(f"{name}\n{text}" for name, text in compared), encoding="utf-8")


def cyclex(ratoon: pathlib.Path, out: pathlib.Path, nights: int, full: bool) -> None:
    folder = out / "cyclex"
    size = ["--nights", nights] if full else ["--quick", "--nights", nights]
    if not full:
        # The releases of packages are fetched by pip: only on request.
        size += ["--tasks", "campus/*", "entertainment/*"]
    say(f"Cyclex: {nights} nights")
    command = [sys.executable, pathlib.Path(__file__).with_name("plans.py"), "--ratoon", ratoon, "--out", folder, *size]
    done = subprocess.run([str(part) for part in command], stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        sys.exit(f"figures: exit {done.returncode} of plans.py")


def markdown(text: str) -> str:
    """As much of Markdown as summaries are written in: headings, tables, lists, paragraphs."""
    parts = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.splitlines()
        if lines[0].startswith("#"):
            level = len(lines[0]) - len(lines[0].lstrip("#")) + 1
            parts.append(f"<h{level}>{html.escape(lines[0].lstrip('# '))}</h{level}>")
        elif lines[0].startswith("|"):
            rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
            cells = ["".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)
                     for row, tag in [(rows[0], "th"), *((row, "td") for row in rows[2:])]]  # fmt: skip
            parts.append("<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>")
        elif lines[0].startswith("- "):
            parts.append("<ul>" + "".join(f"<li>{html.escape(line[2:])}</li>" for line in lines) + "</ul>")
        else:
            parts.append(f"<p>{html.escape(block)}</p>")
    return "\n".join(parts)


def picture(out: pathlib.Path, file: pathlib.Path) -> str:
    name = file.relative_to(out).as_posix()
    return f'<a href="{html.escape(name)}"><img src="{html.escape(name)}" alt="{html.escape(file.stem)}"></a>'


def captioned(out: pathlib.Path, files: list[pathlib.Path], captions: list[tuple[str, str, str]]) -> str:
    """Pictures under what they show, in the order of the captions; one has the first caption that its name begins with."""
    left, parts = list(files), []
    for begins, title, about in captions:
        found = [file for file in left if "/".join(file.relative_to(out).parts[1:]).startswith(begins)]
        left = [file for file in left if file not in found]
        if found:
            parts.append(f"<h3>{html.escape(title)}</h3><p>{html.escape(about)}</p>")
            parts += [picture(out, file) for file in found]
    return "\n".join([*parts, *(picture(out, file) for file in left)])


def index(out: pathlib.Path) -> None:
    sections: list[tuple[str, str]] = []
    folder = out / "update-capture"
    if folder.is_dir():
        parts = [f"<p>{html.escape(UPDATE_CAPTURE)}</p>"]
        for kind, *_, about, seen in LOGS:
            if (folder / f"{kind}.svg").is_file():
                told = (folder / f"{kind}.txt").read_text(encoding="utf-8")
                parts += [f"<h3>{html.escape(about)}</h3><p>{html.escape(seen)}</p>", picture(out, folder / f"{kind}.svg"),
                          f"<details><summary>the schedule</summary><pre>{html.escape(told)}</pre></details>"]  # fmt: skip
        compared = folder / "compared.txt"
        if compared.is_file():
            parts += ["<h3>All methods, on time that they have not seen</h3>",
                      f"<pre>{html.escape(compared.read_text(encoding='utf-8'))}</pre>"]  # fmt: skip
        sections.append(("Update capture, Figure 5", "\n".join(parts)))
    folder = out / "cyclex"
    if (folder / "summary.md").is_file():
        pictures = captioned(out, sorted(folder.glob("*.svg")), CYCLEX)
        text = (folder / "summary.md").read_text(encoding="utf-8").removeprefix("# Plans\n")
        sections.append(("Cyclex, Figures 6 to 10", pictures + markdown(text)))
    folder = out / "webs"
    if folder.is_dir():
        graphs = captioned(out, sorted(folder.rglob("*.svg")), WEBS)
        sections.append(("WHOWEDA, web tables and delta web tables", graphs))
    known = {"update-capture", "cyclex", "webs"}
    for folder in sorted(path for path in out.iterdir() if path.is_dir() and path.name not in known):
        files = sorted(folder.rglob("*.svg"))
        if files:
            shown = "\n".join(f"<h3>{html.escape(file.stem)}</h3>{picture(out, file)}" for file in files)
            sections.append((folder.name, shown))
    links = "".join(f'<a href="#s{number}">{html.escape(title)}</a>' for number, (title, _) in enumerate(sections))
    body = "\n".join(f'<h2 id="s{number}">{html.escape(title)}</h2>\n{content}'
                     for number, (title, content) in enumerate(sections))  # fmt: skip
    page = (f"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Figures</title><style>{STYLE}</style>"
            f"<h1>The papers' figures</h1><p>Drawn by <code>make figures</code>.</p><nav>{links}</nav>\n{body}</html>\n")  # fmt: skip
    (out / "index.html").write_text(page, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Draws the figures of the papers.")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out" / "figures")
    parser.add_argument("--ratoon", type=pathlib.Path, default=ROOT / "target" / "release" / "ratoon", metavar="PATH")
    parser.add_argument("--nights", type=int, choices=range(2, 31), metavar="N", help="nights of Cyclex, 2 to 30 [6; full: 30]")
    parser.add_argument("--full", action="store_true", help="large sites, package releases, repetitions: hours")
    parser.add_argument("--only", nargs="+", choices=["update-capture", "cyclex", "index"])
    args = parser.parse_args()
    started = time.perf_counter()
    out = args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    only = args.only or ["update-capture", "cyclex", "index"]
    if "update-capture" in only:
        update_capture(args.ratoon, out)
    if "cyclex" in only:
        cyclex(args.ratoon, out, args.nights or (30 if args.full else 6), args.full)
    index(out)
    say(f"{out / 'index.html'} after {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
