"""The summary and the figure of what was measured."""

import pathlib
import re
import shutil

import work
from corpora import CORPORA
from measure import EXACT, SCRATCH, Result

TITLES = {
    "patterns": "three patterns",
    "terms": "100,000 terms",
    "command": "slow command",
    "model": "model, 200 ms",
    "changes": "what changed",
}
KINDS = list(TITLES)
# Corpora in which most pages change a little every night.
SMALL_CHANGES = {"documentation", "features"}
# Work that is waited for is judged by the clock, the rest by processor time: it has one thread, and others use the machine.
WAITED = {"command", "model"}


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


# --- Costs ---


def costs(results: list[Result]) -> str:
    names = [corpus.name for corpus in CORPORA if any(result.corpus == corpus.name for result in results)]
    found = {(result.work, result.program, result.corpus): result for result in results}
    rows = []
    for kind, program in sorted(dict.fromkeys((result.work, result.program) for result in results), key=lambda row: KINDS.index(row[0])):
        mine = [found[kind, program, name] for name in names if (kind, program, name) in found]
        cells = [
            f"{number(one.median('wall'))} / {number(one.median('cpu'))}" if (one := found.get((kind, program, name))) else ""
            for name in names
        ]
        rows.append([TITLES[kind], program, *cells, *totals(kind, mine)])
    return table(["work", "program", *names, "MB given", "requests", "wrong", "MB of memory"], rows)


def totals(kind: str, results: list[Result]) -> list[str]:
    """Of all corpora together."""
    peak = number(max(result.median("peak_mb") for result in results))
    if kind == "changes":
        return ["", "", "", peak]
    given = number(sum(result.median("given") for result in results) / 1e6)
    asked = kind in WAITED
    requests = f"{sum(result.median('requests') for result in results):,.0f}" if asked else ""
    return [given, requests, wrong(results), peak]


def wrong(results: list[Result]) -> str:
    checked = [result for result in results if result.wrong is not None]
    if not checked:
        return ""
    count, expected = sum(result.wrong for result in checked), sum(result.expected for result in checked)
    return "0" if count == 0 else f"{count:,} ({100 * count / max(1, expected):.2g} %)"


# --- Targets ---


def bound(result: Result) -> float:
    """Seconds that nobody can save: what was never asked before, on all workers at once."""
    if result.work == "command":
        return result.median("fresh_bytes") / work.RATE / work.WORKERS
    return result.median("fresh_requests") * work.DELAY / work.IN_FLIGHT


def targets(results: list[Result]) -> str:
    found = {(result.work, result.program, result.corpus): result for result in results}
    rows: list[tuple[str, str, float, float, bool]] = []
    for (kind, program, corpus), ours in sorted(found.items(), key=lambda item: KINDS.index(item[0][0])):
        if program != EXACT:
            continue
        where = f"{TITLES[kind]}, {corpus}"
        if kind == "patterns":
            ratio = found[kind, SCRATCH, corpus].median("cpu") / found[kind, "script", corpus].median("cpu")
            rows.append((where, "from scratch over the script, processor time", ratio, 0.33, False))
        if kind in WAITED:
            # Nights with next to nothing to ask are as long as the program itself.
            if bound(ours) >= 1:
                rows.append((where, "over the lower bound", ours.median("wall") / bound(ours), 1.2, False))
            if corpus in SMALL_CHANGES:
                ratio = found[kind, "page digests", corpus].median("wall") / ours.median("wall")
                rows.append((where, "times as fast as page digests", ratio, 3.0, True))
        time = "wall" if kind in WAITED else "cpu"
        others = {name: one.median(time) for (k, name, c), one in found.items() if (k, c) == (kind, corpus) and name != EXACT}
        best = min(others, key=others.__getitem__)
        rows.append((where, f"over the fastest other ({best})", ours.median(time) / others[best], 1.03, False))
    checked = sum(result.wrong for result in results if result.program == EXACT and result.wrong is not None)
    rows.append(("all", "mentions that are wrong", checked, 0, False))
    cells = [
        [where, what, number(value), f"{'>=' if least else '<='} {target}", "yes" if (value >= target if least else value <= target) else "**no**"]
        for where, what, value, target, least in rows
    ]
    met = sum(row[-1] == "yes" for row in cells)
    return f"{met} of {len(cells)} targets are met.\n\n" + table(["work", "what", "measured", "target", "met"], cells)


# --- Schedules ---


def schedules(compared: dict[str, dict]) -> str:
    rows = []
    for period, told in compared.items():
        for way in told["ways"]:
            polls = f"{way['polls']:,.0f} a {period}"
            figures = [f"{way[name]:.3f}" for name in ("recall", "freshness", "staleness")]
            rows.append([polls, f"{way['way']}, {way['sharing']}", *figures, f"{way['age_s'] / 3600:.1f} h"])
    return table(["polls in all", "method", "recall", "freshness", "staleness", "age"], rows)


def summary(results: list[Result], compared: dict[str, dict], size: str) -> str:
    parts = []
    if results:
        parts.append("Elapsed / processor seconds, all nights after the first; what is given, asked and wrong is of all corpora:\n")
        parts += [costs(results), targets(results)]
    if compared:
        parts.append(f"Release times of {next(iter(compared.values()))['sources']} npm packages, two years, as update log:\n")
        parts.append(schedules(compared))
    parts.append(f"(size: {size})\n")
    return "\n".join(parts)


# --- Figure ---


def figure(results: list[Result], file: pathlib.Path) -> None:
    """The time of every program over that of ratoon, a panel for each kind of work."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "ratoon", "font.size": 8, "font.family": "sans-serif"})
    from matplotlib import pyplot, ticker

    kinds = [kind for kind in KINDS if any(result.work == kind for result in results)]
    if not kinds:
        return
    grid, panels = pyplot.subplots(1, len(kinds), figsize=(2.6 * len(kinds), 2.6), squeeze=False)
    for panel, kind in zip(panels[0], kinds, strict=True):
        mine = [result for result in results if result.work == kind]
        time = "wall" if kind in WAITED else "cpu"
        ours = {result.corpus: result.median(time) for result in mine if result.program == EXACT}
        programs = [program for program in dict.fromkeys(result.program for result in mine) if program != EXACT]
        for at, program in enumerate(programs):
            values = [one.median(time) / ours[name] for name in ours for one in mine if (one.program, one.corpus) == (program, name)]
            places = [place + (at - (len(programs) - 1) / 2) * 0.8 / len(programs) for place in range(len(values))]
            panel.bar(places, [value - 1 for value in values], 0.8 / len(programs), bottom=1, label=program)
        panel.axhline(1, color="black", linewidth=0.8)
        panel.set_yscale("log")
        panel.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter("{x:g}")
        panel.minorticks_off()
        panel.set_xticks(range(len(ours)), list(ours), rotation=30, ha="right")
        panel.set_title(f"{TITLES[kind]}\n({'elapsed' if kind in WAITED else 'processor'} time)")
    panels[0][0].set_ylabel("times ratoon's")
    handles, labels = panels[0][0].get_legend_handles_labels()
    if "changes" in kinds:
        more = panels[0][kinds.index("changes")].get_legend_handles_labels()
        handles, labels = handles + more[0], labels + more[1]
    grid.legend(handles, labels, loc="lower center", ncols=7, frameon=False)
    grid.tight_layout(rect=(0, 0.08, 1, 1))
    grid.savefig(file, metadata={"Date": None})
    pyplot.close(grid)


# --- The README beside this folder ---


def publish(text: str, svg: pathlib.Path, folder: pathlib.Path) -> None:
    shutil.copyfile(svg, folder / "against" / "costs.svg")
    readme = folder / "README.md"
    marked = re.compile(r"(<!-- bench-peers -->\n).*?(<!-- end -->\n)", re.DOTALL)
    readme.write_text(marked.sub(lambda m: m[1] + text + m[2], readme.read_text(encoding="utf-8")), encoding="utf-8")
