"""Recomputes the numbers of a report from the tables, with DuckDB, and compares.

    python recompute.py STORE REPORT

Every number that the report shows stands in its embedded data; what is compared here is that data.
"""

import json
import math
import re
import sys
from collections import Counter
from datetime import timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb

compared = 0


def same(what, shown, queried):
    global compared
    compared += 1
    if isinstance(shown, float) or isinstance(queried, float):
        ok = (shown is None and queried is None) or (
            shown is not None and queried is not None and math.isclose(shown, queried, rel_tol=1e-9, abs_tol=1e-7)
        )
    else:
        ok = shown == queried
    if not ok:
        sys.exit(f"{what}: the report says {shown!r}, the tables say {queried!r}")


def embedded(report):
    text = Path(report).read_text(encoding="utf-8")
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(block.group(1))


class Tables:
    def __init__(self, store):
        self.store = Path(store)
        self.db = duckdb.connect()
        self.db.execute("set timezone = 'UTC'")

    def has(self, table):
        return any((self.store / table).glob("snapshot=*/*.parquet"))

    def rows(self, table, select="*", where="true", rest=""):
        """Rows as dicts. No file: no rows."""
        if not self.has(table):
            return []
        files = f"read_parquet('{self.store}/{table}/snapshot=*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true)"
        found = self.db.execute(f"select {select} from {files} where {where} {rest}")
        names = [column[0] for column in found.description]
        return [dict(zip(names, row)) for row in found.fetchall()]

    def groups(self, table, by, where, count="count(*)"):
        return {tuple(row.values())[:-1]: row["n"] for row in self.rows(table, f"{by}, {count} as n", where, f"group by {by}")}

    def newest_of_sources(self, table, select):
        """The newest row of every source."""
        newest = "qualify row_number() over (partition by source order by snapshot desc) = 1"
        return self.rows(table, select + ", snapshot", "true", newest)


def health(data, tables, newest):
    shown = data["health"]["shown"]
    known = {row["snapshot"]: row for row in tables.rows("snapshots")}
    same("snapshots", data["health"]["snapshots"], len(known))
    same("snapshots shown", [night["snapshot"] for night in shown], sorted(known, reverse=True)[: data["window"]])
    for night in shown:
        for column, value in known[night["snapshot"]].items():
            if column != "time":
                same(f"snapshots.{column}", night[column], value)
    at = f"snapshot = '{newest}'"
    for name, table, column, where in [("rejects", "rejects", "reason", at), ("suspects", "captures", "suspect", f"{at} and suspect is not null")]:
        counts = {key[0]: n for key, n in tables.groups(table, column, where).items()}
        same(name, {line["reason"]: line["count"] for line in data["health"][name]}, counts)
    failures = tables.groups("extractions", "extractor, status, coalesce(error, '')", f"{at} and status <> 'ok'")
    lines = {(line["extractor"], line["status"], line["error"]): line["pages"] for line in data["health"]["failures"]}
    same("failures", lines, failures)


def links_in(tables, newest):
    """Pages that link to each page at the newest snapshot, which must be whole."""
    pages = {row["url"]: row["content_snapshot"] for row in tables.rows("pages", "url, content_snapshot", f"snapshot = '{newest}'")}
    pairs = set()
    for row in tables.rows("links", "url, target, snapshot"):
        target = row["target"].split("#")[0]
        if pages.get(row["url"]) == row["snapshot"] and target != row["url"]:
            pairs.add((row["url"], target))
    return Counter(target for _, target in pairs)


def changes(data, tables, newest):
    changes = data["changes"]
    at = f"snapshot = '{newest}'"
    counted = {}
    for what, table in [("pages", "page_deltas"), ("links", "link_deltas"), ("regions", "region_deltas")]:
        for key, n in tables.groups(table, "change", at).items():
            counted[f"{what} {key[0]}"] = n
    for key, n in tables.groups("tuple_deltas", "delta", at, "count(distinct (query, tuple))").items():
        counted[f"tuples {key[0]}"] = n
    said = {key: n for key, n in changes["counts"].items() if n and key.split()[0] in ("pages", "links", "regions", "tuples")}
    same("changes", said, counted)
    same("pages that changed", changes["pages_in_all"], len(tables.rows("page_deltas", "url", at)))
    same("alerts", changes["alerts_in_all"], len(tables.rows("alerts", "watch", at)))
    known = {row["url"]: row for row in tables.rows("page_deltas", "*", at)}
    for line in changes["pages"]:
        for column, value in line.items():
            same(f"page_deltas.{column} of {line['url']}", value, known[line["url"]][column])
    for line in changes["queries"]:
        tuples = tables.rows(f"web_tuples/{line['name']}", "count(distinct tuple) as n", at)
        same(f"query {line['name']}", line["tuples"], tuples[0]["n"] if tuples else 0)
    if changes["since"] is None:
        return
    same("pages looked at", changes["changed"], sum(row["change"] != "unchanged" for row in known.values()))
    texts = {(row["url"], row["snapshot"]): row["text"] for row in tables.rows("pages", "url, snapshot, text", "text is not null")}
    pages = {}
    for row in tables.rows("pages", "url, snapshot, title, text_snapshot", f"snapshot in ('{changes['since']}', '{newest}')"):
        text = texts.get((row["url"], row["text_snapshot"]))
        pages[row["url"], row["snapshot"]] = (text or "") + "\n" + (row["title"] or "")
    links = links_in(tables, newest)
    for line in changes["triage"]:
        if line["change"] != "moved":
            for side, snapshot in [("before", changes["since"]), ("after", newest)]:
                text = line[side].removesuffix("…")
                same(f"{side} stands on {line['url']}", text in pages.get((line["url"], snapshot), ""), True)
        same(f"links to {line['url']}", line["links_in"] >= links.get(line["url"], 0), True)
        if line["alike"] == 1:
            same(f"links to {line['url']}", line["links_in"], links.get(line["url"], 0))


def found(data, tables, newest):
    at = f"snapshot = '{newest}'"
    mentions = {key[0]: n for key, n in tables.groups("extractions", "extractor", at, "sum(mentions)::bigint").items()}
    deltas = tables.groups("mention_deltas", "extractor, change", at)
    for line in data["found"]["extractors"]:
        name = line["name"]
        same(f"mentions of {name}", line["mentions"], mentions.get(name, 0))
        for change in ("added", "deleted"):
            same(f"mentions {change} of {name}", line[change], deltas.get((name, change), 0))
    texts = tables.rows(
        "mention_deltas",
        "extractor, text, count(*) filter (change = 'added') as added, count(*) filter (change = 'deleted') as deleted,"
        " coalesce(min(url) filter (change = 'added'), min(url)) as url",
        at,
        "group by extractor, text",
    )
    same("texts of mentions", data["found"]["texts_in_all"], len(texts))
    texts = {(row["extractor"], row["text"]): row for row in texts}
    for line in data["found"]["texts"]:
        same("a mention that came or went", line, texts[line["extractor"], line["text"]])


def costs(data, tables):
    costs = data["costs"]
    if costs["snapshot"] is None:
        return
    at = f"snapshot = '{costs['snapshot']}'"
    plans = {row["alternative"]: row for row in tables.rows("plans", "*", f"{at} and extractor is null")}
    same("alternatives", len(costs["alternatives"]), len(plans))
    for line in costs["alternatives"]:
        for column, value in line.items():
            same(f"plans.{column}", value, plans[line["alternative"]][column])
    sums = ", ".join(f"coalesce(sum({column}), 0) as {column}" for column in ("match_s", "extract_s", "copy_s", "choose_s", "bytes_extracted"))
    measured = tables.rows("plan_costs", sums, at)[0]
    for column, value in measured.items():
        same(f"measured {column}", float(costs["measured"][column]), float(value))
    names = ("bytes_extracted", "mentions_copied", "mentions_extracted", "requests", "input_tokens", "output_tokens")
    sums = ", ".join(f"coalesce(sum({column}), 0)::bigint as {column}" for column in names)
    by = tables.rows("plan_costs", f"extractor, {sums}, coalesce(sum(extract_s), 0) + coalesce(sum(copy_s), 0) as seconds", f"{at} and extractor is not null", "group by extractor")
    by = {row["extractor"]: row for row in by}
    same("extractors", sorted(line["name"] for line in costs["extractors"]), sorted(by))
    for line in costs["extractors"]:
        for column in (*names, "seconds"):
            same(f"{column} of {line['name']}", line[column], by[line["name"]][column])
    for night in costs["nights"]:
        at = f"snapshot = '{night['snapshot']}'"
        predicted = tables.rows("plans", "predicted_s", f"{at} and extractor is null and chosen")
        same("expected seconds", night["predicted_s"], predicted[0]["predicted_s"] if predicted else None)
        took = " + ".join(f"coalesce(sum({column}), 0)" for column in ("match_s", "extract_s", "copy_s", "choose_s"))
        measured = tables.rows("plan_costs", f"{took} as s, count(*) as n", at)
        if measured and measured[0]["n"]:
            same("measured seconds", night["measured_s"], float(measured[0]["s"]))
        price = tables.rows("snapshots", "price", at)[0]["price"]
        same("price", night["price"], price)


def week_of(updates, zone):
    """Every update on its hours of the week, quarter of an hour by quarter of an hour."""
    week, placed = [[0.0] * 24 for _ in range(7)], 0
    quarter = timedelta(minutes=15)

    def add(time, share):
        local = time.astimezone(zone)
        week[local.weekday()][local.hour] += share

    for update in updates:
        after, before = (update[side].astimezone(timezone.utc) for side in ("after", "before"))
        if update["updated_at"] is not None:
            placed += 1
            add(update["updated_at"], 1.0)
        elif timedelta(0) < before - after <= timedelta(days=7):
            placed += 1
            at = after
            while at < before:
                start = at.replace(minute=at.minute // 15 * 15, second=0, microsecond=0)
                until = min(start + quarter, before)
                add(start, (until - at) / (before - after))
                at = until
    return week, placed


def rhythm(data, tables):
    rhythm = data["rhythm"]
    shown = ", ".join(f"'{night['snapshot']}'" for night in data["health"]["shown"])
    updates = tables.rows("updates", "after, before, updated_at", f"snapshot in ({shown})")
    same("updates", rhythm["updates"], len(updates))
    week, placed = week_of(updates, ZoneInfo(rhythm["time_zone"]))
    same("updates in the map", rhythm["placed"], placed)
    for day in range(7):
        for hour in range(24):
            same(f"updates on day {day} at {hour}", float(rhythm["week"][day][hour]), week[day][hour])
    sources = [row for row in tables.newest_of_sources("update_stats", "*") if row["gone_since"] is None]
    same("sources", rhythm["sources"], len(sources))
    same("sources that change", rhythm["changing"], sum(row["updates"] > 0 for row in sources))
    bounds = [("<1/month", 1 / 30), ("<1/week", 1 / 7), ("<1/day", 1), ("<1/hour", 24), ("more", math.inf)]

    def kind(row):
        return "never" if row["updates"] == 0 else next((name for name, below in bounds if row["rate_per_day"] < below), "more")

    classes = Counter(kind(row) for row in sources)
    same("classes", {line["name"]: line["sources"] for line in rhythm["classes"] if line["sources"]}, dict(classes))
    known = {row["source"]: row for row in sources}
    for line in rhythm["most"]:
        row = known[line["source"]]
        for column in ("captures", "updates", "rate_per_day", "rate_low", "regularity", "period", "warnings"):
            same(f"update_stats.{column}", line[column], row[column])
        same("update_stats.rate_high", line["rate_high"], row["rate_high"] if math.isfinite(row["rate_high"]) else None)


def polls(data, tables):
    polls = data["polls"]
    newest = tables.newest_of_sources("schedules", "*")
    rows = [row for row in newest if row["method"] != "gone"]
    same("scheduled sources", polls["sources"], len(rows))
    same("methods", polls["methods"], dict(Counter(row["method"] for row in rows)))
    known = {row["source"]: row for row in rows}
    for line in polls["schedules"]:
        for column, value in line.items():
            same(f"schedules.{column} of {line['source']}", value, known[line["source"]][column])
    places = {row["source"]: row["snapshot"] for row in newest}
    curves = {}
    for row in tables.rows("recall_curves", "*"):
        if places.get(row["source"]) == row["snapshot"] and row["recall"] is not None and row["freshness"] is not None:
            curves.setdefault((row["period"], row["polls"]), []).append((row["recall"], row["freshness"]))
    same("points of curves", {(point["period"], point["polls"]) for point in polls["curves"]}, set(curves))
    for point in polls["curves"]:
        values = curves[point["period"], point["polls"]]
        same("sources of a point", point["sources"], len(values))
        for i, name in enumerate(("recall", "freshness")):
            same(f"mean {name}", point[name], sum(value[i] for value in values) / len(values))


def growth(data, tables):
    files = [path for path in tables.store.rglob("*.parquet") if not any(part.startswith((".", "_")) for part in path.relative_to(tables.store).parts)]
    same("bytes of the store", data["growth"]["store_bytes"], sum(path.stat().st_size for path in files))
    for night in data["growth"]["nights"]:
        mine = [path for path in files if path.parent.name == f"snapshot={night['snapshot']}"]
        same(f"bytes of {night['snapshot']}", night["bytes"], sum(path.stat().st_size for path in mine))
        row = tables.rows("snapshots", "*", f"snapshot = '{night['snapshot']}'")[0]
        for column in ("pages", "added", "modified", "deleted", "mentions", "new_text_bytes"):
            same(f"snapshots.{column}", night[column], row[column])


def main():
    store, report = sys.argv[1:]
    data, tables = embedded(report), Tables(store)
    newest = data["health"]["shown"][0]["snapshot"]
    health(data, tables, newest)
    changes(data, tables, newest)
    found(data, tables, newest)
    costs(data, tables)
    rhythm(data, tables)
    polls(data, tables)
    growth(data, tables)
    print(f"{compared} numbers agree")


main()
