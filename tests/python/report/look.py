"""Looks at a report, or at a page of `show --html`, in a real browser.

    python look.py BROWSER REPORT [--pictures DIR]

No request leaves, nothing is complained about, tables sort and filter by mouse and by keyboard, what the data says stands
in the tables, nothing is wider than the screen, and all text has enough contrast, in light and dark.
"""

import argparse
import json
import locale
import time
from pathlib import Path

from browser import Browser

WIDTHS = (360, 400, 768, 1280)

# Rows of a table as they are shown: what each cell is sorted by, and its words.
ROWS = """(id => [...document.getElementById(id).tBodies[0].rows].map(row => ({
  hidden: row.hidden, words: row.textContent.toLowerCase(),
  cells: [...row.cells].map(cell => cell.dataset.v === undefined ? cell.textContent.trim().toLowerCase()
    : cell.dataset.v === "" ? null : Number(cell.dataset.v)),
  heads: [...row.cells].map(cell => cell.dataset.h) })))"""

# Text whose contrast with what lies behind it is below 4.5 (3 if large).
CONTRAST = """(() => {
  const parse = text => { const n = text.match(/[\\d.]+/g).map(Number); return [n[0], n[1], n[2], n[3] ?? 1]; };
  const light = c => { const f = c.map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * f[0] + 0.7152 * f[1] + 0.0722 * f[2]; };
  const behind = element => { for (let e = element; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0.99) return c.slice(0, 3); } return [255, 255, 255]; };
  const bad = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || element.closest("svg, script, style") || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const a = light(parse(style.color).slice(0, 3)), b = light(behind(element));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5)) bad.push(`${ratio.toFixed(2)} ${element.tagName} ${element.className} ${element.textContent.slice(0, 40)}`);
  }
  return bad; })()"""

# Tables that are wider than what is shown of them, without a sign of it.
SIDEWAYS = """[...document.querySelectorAll(".scroll")]
  .filter(scroll => scroll.scrollWidth > scroll.clientWidth + 1)
  .filter(scroll => getComputedStyle(scroll).maskImage === "none"
    || !getComputedStyle(scroll.closest(".table").querySelector(".top") ?? scroll, "::after").content.includes("scrolls"))
  .map(scroll => scroll.getAttribute("aria-labelledby") ?? scroll.textContent.slice(0, 40))"""


def check(what, condition, *more):
    if not condition:
        raise SystemExit(f"{what}: {more}")


def after_a_while(browser, script):
    """What a script still finds when the page has had time to look at its new size, which it does when it is drawn next."""
    until = time.monotonic() + 20
    while (found := browser.evaluate(script)) and time.monotonic() < until:
        time.sleep(0.05)
    return found


def sorts(browser, table):
    """Every column, both ways."""
    original = browser.evaluate(f"{ROWS}({json.dumps(table)})")
    heads = browser.evaluate(f"[...document.getElementById({json.dumps(table)}).tHead.rows[0].cells].map(c => c.querySelector('button') !== null)")
    if len(original) < 2:
        return 0
    clicks = 0
    for column, sortable in enumerate(heads):
        if not sortable:
            continue
        for _ in range(2):
            order = browser.evaluate(
                f"(() => {{ const th = document.getElementById({json.dumps(table)}).tHead.rows[0].cells[{column}];"
                " th.querySelector('button').click(); return th.getAttribute('aria-sort'); })()"
            )
            clicks += 1
            rows = browser.evaluate(f"{ROWS}({json.dumps(table)})")
            check(f"{table}: rows stay the same", sorted(r["words"] for r in rows) == sorted(r["words"] for r in original))
            values = [row["cells"][column] for row in rows]
            known = [value for value in values if value is not None]
            check(f"{table}, column {column}: the unknown comes last", values[: len(known)] == known, values)
            if known and not isinstance(known[0], str):
                check(f"{table}, column {column} is {order}", known == sorted(known, reverse=order == "descending"), known[:9])
            elif known and all(value.isascii() and value.isalpha() for value in known):
                check(f"{table}, column {column} is {order}", known == sorted(known, reverse=order == "descending"), known[:9])
    return clicks


def filters(browser, table):
    """A word of the last row is typed into the filter, key by key."""
    rows = browser.evaluate(f"{ROWS}({json.dumps(table)})")
    typed = browser.evaluate(
        f"(() => {{ const input = document.querySelector('input[aria-controls=\"' + {json.dumps(table)} + '\"]');"
        " if (!input) return false; input.focus(); return true; })()"
    )
    if not typed:
        check(f"{table} has a filter", len(rows) <= 3)
        return 0
    word = max(rows[-1]["words"].split(), key=len)[:12]
    browser.call("Input.insertText", text=word)
    shown = browser.evaluate(f"{ROWS}({json.dumps(table)})")
    fits = [row for row in shown if word in row["words"]]
    check(f"{table}: '{word}' is found", len(fits) >= 1)
    check(f"{table}: only rows with '{word}' are shown", all(word in row["words"] for row in shown if not row["hidden"]))
    visible = sum(not row["hidden"] for row in shown)
    check(f"{table}: rows with '{word}' are shown", visible == len(fits) or visible >= 12, visible, len(fits))
    browser.evaluate(
        f"(() => {{ const input = document.querySelector('input[aria-controls=\"' + {json.dumps(table)} + '\"]');"
        " input.value = 'no such words anywhere'; input.dispatchEvent(new Event('input')); })()"
    )
    check(f"{table}: nothing fits", all(row["hidden"] for row in browser.evaluate(f"{ROWS}({json.dumps(table)})")))
    browser.evaluate(
        f"(() => {{ const input = document.querySelector('input[aria-controls=\"' + {json.dumps(table)} + '\"]');"
        " input.value = ''; input.dispatchEvent(new Event('input')); })()"
    )
    return 1


def keyboard(browser):
    """A column is sorted without a mouse."""
    found = browser.evaluate(
        "(() => { const button = document.querySelector('#snapshots th:nth-child(2) button'); if (!button) return false;"
        " button.focus(); return document.activeElement === button; })()"
    )
    if not found:
        return
    before = browser.evaluate("document.querySelector('#snapshots th:nth-child(2)').getAttribute('aria-sort')")
    browser.press("Enter", 13, "\r")
    after = browser.evaluate("document.querySelector('#snapshots th:nth-child(2)').getAttribute('aria-sort')")
    check("Enter sorts", after is not None and after != before, before, after)


def shows_its_data(browser):
    """What the data says stands in the tables."""
    data = json.loads(browser.evaluate("document.getElementById('data').textContent"))
    lines = {
        "snapshots": (
            data["health"]["shown"],
            {"captures": "captures", "pages": "pages", "suspects": "suspects", "mentions": "mentions", "text": "text_bytes"},
        ),
        "triage": (
            data["changes"]["triage"],
            {"pages alike": "alike", "mentions": "mentions", "links in": "links_in", "score": "score"},
        ),
        "pages": (data["changes"]["pages"], {"new text": "new_text_bytes", "moved": "moved_bytes", "text now": "new_bytes"}),
        "extractors": (data["found"]["extractors"], {"mentions": "mentions", "came": "added", "went": "deleted"}),
        "mentions": (data["found"]["texts"], {"came": "added", "went": "deleted"}),
        "plans": (data["costs"]["alternatives"], {"seconds expected": "predicted_s", "text extracted": "bytes_extracted"}),
        "extractor-costs": (data["costs"]["extractors"], {"text given": "bytes_extracted", "seconds": "seconds"}),
        "sources": (data["rhythm"]["most"], {"updates": "updates", "a day": "rate_per_day"}),
        "schedules": (
            data["polls"]["schedules"],
            {"updates": "updates", "recall": "recall", "fixed: recall": "uniform_recall", "freshness": "freshness"},
        ),
    }
    for table, (records, columns) in lines.items():
        there = browser.evaluate(f"document.getElementById({json.dumps(table)}) !== null")
        check(f"{table} is there", there == bool(records))
        if not there:
            continue
        rows = browser.evaluate(f"{ROWS}({json.dumps(table)})")
        check(f"{table} has its rows", len(rows) == len(records), len(rows), len(records))
        for row, record in zip(rows, records):
            cells = dict(zip(row["heads"], row["cells"]))
            for head, name in columns.items():
                # A column that says nothing is left out.
                shown = cells.get(head)
                check(f"{table}.{name}", shown == record[name] or abs(shown - record[name]) < 1e-9, shown, record[name])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("browser")
    parser.add_argument("report")
    parser.add_argument("--pictures", type=Path)
    args = parser.parse_args()
    locale.setlocale(locale.LC_ALL, "C")
    with Browser(args.browser) as browser:
        browser.size(1280)
        browser.media()
        browser.open(args.report)
        title = browser.evaluate("document.title")
        check("no text became markup", browser.evaluate("document.querySelectorAll('img, iframe, object, base, form, link').length") == 0)
        is_report = browser.evaluate("document.getElementById('data') !== null")
        clicks = typed = 0
        if is_report:
            shows_its_data(browser)
            tables = browser.evaluate("[...document.querySelectorAll('table.data')].map(table => table.id)")
            for table in tables:
                typed += filters(browser, table)
                clicks += sorts(browser, table)
            keyboard(browser)
            # All rows are there when they are asked for, and on paper.
            browser.evaluate("document.querySelectorAll('.more').forEach(button => button.hidden || button.click())")
            check("all rows are shown", browser.evaluate("[...document.querySelectorAll('table.data tbody tr')].every(row => !row.hidden)"))
            browser.open(args.report)
            browser.media("print")
            check("all rows are printed", browser.evaluate("[...document.querySelectorAll('table.data tbody tr')].every(row => row.checkVisibility())"))
            if args.pictures:
                args.pictures.mkdir(parents=True, exist_ok=True)
                browser.screenshot(args.pictures / "print.png", most=6_000)
        for scheme in ("light", "dark"):
            browser.media("", scheme)
            for width in WIDTHS:
                browser.size(width)
                wide = browser.evaluate("document.documentElement.scrollWidth")
                check(f"nothing is wider than {width} px", wide <= width, wide)
                silent = after_a_while(browser, SIDEWAYS)
                check(f"tables that go on to the right say so ({width} px)", not silent, silent[:5])
                weak = browser.evaluate(CONTRAST)
                check(f"text can be read ({scheme}, {width} px)", not weak, weak[:5])
                if args.pictures:
                    args.pictures.mkdir(parents=True, exist_ok=True)
                    browser.screenshot(args.pictures / f"{scheme}-{width}.png", most=8_000)
        check("the title is its own", browser.evaluate("document.title") == title)
        check("nothing is complained about, nothing leaves", not browser.complaints(), browser.complaints()[:5])
        print(f"{title}: {clicks} columns sorted, {typed} tables filtered, nothing wrong")


main()
