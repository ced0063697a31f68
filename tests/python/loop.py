"""The loop, closed: a site on loopback that changes by known rhythms, `ratoon due`, `pipelines/poll.py`, `ratoon run`.

The clock is simulated: days pass in a minute. First the site is watched hourly for two weeks, then only what is due is
fetched. What comes out is compared with what the schedules promised before, by the truth that only the site knows.

    python3 tests/python/loop.py target/release/ratoon /tmp/loop --days 7
"""

import argparse
import bisect
import datetime
import importlib.util
import json
import pathlib
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import polars

UTC = datetime.timezone.utc
START = datetime.datetime(2024, 3, 4, tzinfo=UTC)
WATCHED = 14
HOUR = 3600
DAY = 24 * HOUR
DELAY = 2.0
STEP = 15 * 60


class Clock:
    """Seconds since START, moved on by whoever waits."""

    def __init__(self):
        self.seconds = 0.0

    def now(self):
        return START + datetime.timedelta(seconds=self.seconds)

    def sleep(self, seconds):
        self.seconds += seconds


def daily(*hours):
    return [day * DAY + hour * HOUR for day in range(60) for hour in hours]


# When each page changes. `late` appears when the loop has run for a day; `dead` is gone after two.
RHYTHMS = {
    "/": [],
    "/news": daily(6.2, 12.2, 18.2),
    "/menu": daily(9.1),
    "/weekly": [week * 7 * DAY + 2 * DAY + 15.3 * HOUR for week in range(9)],
    "/still": [],
    "/dead": daily(10.4),
    "/late": [],
}
APPEARS = {"/late": (WATCHED + 1) * DAY}
DIES = {"/dead": (WATCHED + 2) * DAY}


class Site:
    def __init__(self, clock):
        self.clock, self.requests = clock, []

    def version(self, path, at):
        """The version at a moment; none if there is no such page."""
        if path not in RHYTHMS or at < APPEARS.get(path, 0) or at >= DIES.get(path, float("inf")):
            return None
        late = path == "/" and at >= APPEARS["/late"]
        return bisect.bisect_right(RHYTHMS[path], at) + (1000 if late else 0)

    def body(self, path, version):
        links = [other for other in RHYTHMS if other not in (path, "/late")] if path == "/" else []
        links += ["/late"] if path == "/" and version >= 1000 else []
        anchors = "".join(f"<p><a href='{link}'>{link}</a></p>" for link in links)
        return f"<html><title>{path}</title><body><p>{path} has version {version}</p>{anchors}</body></html>".encode()

    def serve(self):
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                at = site.clock.seconds
                version = site.version(self.path, at)
                tag = f'"{self.path}-{version}"'
                status = 404 if version is None else 304 if self.headers.get("If-None-Match") == tag else 200
                site.requests.append((at, self.path, status, self.headers.get("User-Agent", "")))
                body = site.body(self.path, version) if status == 200 else b""
                self.send_response(status)
                if version is not None:
                    self.send_header("ETag", tag)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


def watch(site, root, base):
    """Two weeks, hour by hour, as one snapshot."""
    folder = root / (START + datetime.timedelta(days=WATCHED)).strftime("%Y%m%dT%H%M%SZ")
    folder.mkdir(parents=True)
    known = {}
    with open(folder / "manifest.jsonl", "w") as manifest:
        for hour in range(WATCHED * 24 + 1):
            at = hour * HOUR
            for number, path in enumerate(RHYTHMS):
                version = site.version(path, at)
                if version is None:
                    continue
                time = (START + datetime.timedelta(seconds=at)).strftime("%Y-%m-%dT%H:%M:%SZ")
                line = {"url": base + path, "fetched_at": time, "status": 304, "etag": f'"{path}-{version}"'}
                if known.get(path) != version:
                    known[path] = version
                    line.update(status=200, file=f"{number}-{version}.html")
                    (folder / line["file"]).write_bytes(site.body(path, version))
                manifest.write(json.dumps(line) + "\n")


def forecasts(store, base):
    """What the schedules promise: the newest row of each source, by path."""
    rows = polars.read_parquet(store / "schedules").with_columns(polars.col("snapshot").cast(polars.String))
    rows = rows.sort("snapshot").unique("source", keep="last")
    return {row["source"].removeprefix(base): row for row in rows.iter_rows(named=True)}


def outcome(path, polls, begin, end):
    """Versions begun in the time watched, those that a poll fell into, and the share of time the copy was current."""
    updates = [at for at in RHYTHMS[path] if begin < at <= end]
    seen, fresh = 0, 0.0
    for i, at in enumerate(updates):
        until = updates[i + 1] if i + 1 < len(updates) else end
        poll = next((poll for poll in polls if at <= poll < until), None)
        seen += poll is not None
        fresh += until - poll if poll is not None else 0
    fresh += (updates[0] if updates else end) - begin
    return len(updates), seen, fresh / (end - begin)


def texts(store):
    """Texts that polls stored; a base stores all that there are, which is no growth."""
    pages = polars.read_parquet(store / "pages").filter(~polars.col("whole"))
    return pages["text"].is_not_null().sum()


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ratoon")
    parser.add_argument("folder")
    parser.add_argument("--days", type=int, default=4)
    options = parser.parse_args()
    root = pathlib.Path(options.folder)
    ratoon = str(pathlib.Path(options.ratoon).resolve())
    spec = importlib.util.spec_from_file_location("poll", pathlib.Path(__file__).parents[2] / "pipelines" / "poll.py")
    poll = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(poll)

    clock = Clock()
    site = Site(clock)
    server = site.serve()
    base = f"http://127.0.0.1:{server.server_port}"
    pipeline = root / "p.toml"
    root.mkdir(parents=True, exist_ok=True)
    pipeline.write_text(
        "[corpus]\nsnapshots = 'snapshots'\nstore = 'store'\ncoverage = 'partial'\n"
        "[schedule]\npolls = 4\nperiod = 'day'\ndiscover = { scope = 'host', polls = 10 }\n"
    )
    watch(site, root / "snapshots", base)
    run = lambda *words: subprocess.run([ratoon, *words], check=True, capture_output=True, text=True).stdout
    run("run", "-q", str(pipeline))
    promised = forecasts(root / "store", base)
    begin, end = WATCHED * DAY, (WATCHED + options.days) * DAY
    polls, runs, changed = {}, 0, 0
    at = begin
    while at <= end:
        clock.seconds = float(at)
        before = len(site.requests)
        arguments = [str(pipeline), "--ratoon", ratoon, "--delay", str(DELAY), "--contact", "loop@example.org"]
        folder = poll.poll(poll.parse(arguments), clock)
        for time, path, status, agent in site.requests[before:]:
            check("loop@example.org" in agent, f"who asks is said: {agent}")
            if path != "/robots.txt":
                polls.setdefault(path, []).append((time, status))
                changed += status == 200
        if folder is not None:
            run("run", "-q", str(pipeline))
            runs += 1
        at += STEP
    server.shutdown()
    report(site, polls, promised, (begin, end), runs, changed, root / "store")


def report(site, polls, promised, time, runs, changed, store):
    begin, end = time
    times = [at for at, path, _, _ in site.requests if path != "/robots.txt"]
    gaps = [b - a for a, b in zip(times, times[1:])]
    check(min(gaps) >= DELAY, f"politeness: two requests {min(gaps)} s apart")
    late = polls.get("/late", [])
    check(late and late[0][1] == 200, "the new page is found")
    check(late[0][0] - APPEARS["/late"] <= DAY, f"and soon: {late[0][0] - APPEARS['/late']} s")
    dead = [at for at, status in polls["/dead"] if status == 404]
    check(len(dead) == 1, f"what is gone is polled once more and then left alone: {len(dead)}")
    stored = texts(store)
    check(stored <= changed, f"the store grows with the change: {stored} texts stored, {changed} bodies fetched")
    print(f"{runs} runs, {len(times)} requests, {changed} with a body, {stored} texts stored")
    for path in RHYTHMS:
        until = min(end, DIES.get(path, end))
        versions, seen, fresh = outcome(path, [at for at, _ in polls.get(path, [])], begin, until)
        row = promised.get(path)
        if row is None or row["recall"] is None:
            continue
        recall = seen / versions
        for what, value in [("recall", recall), ("freshness", fresh)]:
            low, high = row[f"{what}_low"], row[f"{what}_high"]
            check(low <= value <= high, f"{path}: {what} {value:.3f} is not in [{low:.3f}, {high:.3f}]")
        bounds = f"[{row['freshness_low']:.3f}, {row['freshness_high']:.3f}]"
        print(f"{path}: recall {recall:.3f} as promised, freshness {fresh:.3f} in {bounds}")
    print("the loop holds what it promises")


if __name__ == "__main__":
    main()
