#!/usr/bin/env python3
"""Fetches what `ratoon due` says is due, politely, and leaves it as a snapshot that `ratoon run` takes in.

    python3 poll.py my.toml --contact you@example.org && ratoon run -q my.toml

Requests are conditional where the server gave an entity tag or a date. Hosts are fetched from side by side, each host one
URL at a time with a delay in between; robots.txt is kept to. The snapshot is a folder in manifest layout, written under a
name that is no snapshot and renamed when it is whole, so that a run never sees half of it. The standard library is enough.
"""

import argparse
import datetime
import email.utils
import json
import pathlib
import shutil
import subprocess
import sys
import threading
import time
import tomllib
import urllib.error
import urllib.parse
import urllib.request
import urllib.robotparser
from concurrent.futures import ThreadPoolExecutor

UTC = datetime.timezone.utc
NAME = "ratoon-poll"
MAX_BYTES = 64 << 20
WORTH_ANOTHER_TRY = {408, 425, 429, 500, 502, 503, 504}
LONGEST_WAIT = 60.0


class Clock:
    """The time, and waiting. A test gives one of its own, in which weeks pass in minutes."""

    def now(self):
        return datetime.datetime.now(UTC)

    def sleep(self, seconds):
        time.sleep(seconds)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer: what stands at another address is another page."""

    def redirect_request(self, *_):
        return None


def opener():
    return urllib.request.build_opener(NoRedirect)


def stamp(moment):
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def http_date(text):
    """An RFC 3339 time as HTTP writes it."""
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return email.utils.format_datetime(moment.astimezone(UTC), usegmt=True)


class Poller:
    def __init__(self, options, clock, folder):
        self.options, self.clock, self.folder = options, clock, folder
        contact = f" (+{options.contact})" if options.contact else ""
        self.agent = f"{NAME}/1{contact}"
        self.opener = opener()
        self.lock = threading.Lock()
        self.lines, self.files = [], 0

    def request(self, url, headers=()):
        request = urllib.request.Request(url, headers={"User-Agent": self.agent, "Accept-Encoding": "identity"})
        for key, value in headers:
            request.add_header(key, value)
        return self.opener.open(request, timeout=self.options.timeout)

    def robots(self, url):
        """What the host's robots.txt allows; everything if it has none."""
        rules = urllib.robotparser.RobotFileParser()
        try:
            with self.request(urllib.parse.urljoin(url, "/robots.txt")) as answer:
                rules.parse(answer.read(1 << 20).decode("utf-8", "replace").splitlines())
        except urllib.error.HTTPError as error:
            error.close()
            # A host that keeps even its rules to itself is left alone.
            rules.disallow_all = error.code in (401, 403)
            rules.allow_all = not rules.disallow_all
        except (OSError, ValueError):
            rules.allow_all = True
        return rules

    def host(self, polls):
        """Fetches from one host, one URL after the other."""
        rules = self.robots(polls[0]["url"]) if self.options.robots else None
        delay = self.options.delay
        if rules is not None:
            delay = max(delay, float(rules.crawl_delay(NAME) or 0))
        for poll in polls:
            if rules is not None and not rules.can_fetch(NAME, poll["url"]):
                continue
            if delay:
                self.clock.sleep(delay)
            self.poll(poll)

    def poll(self, poll):
        """Fetches a URL, again if the answer asks for that; notes what came."""
        headers = []
        if poll.get("etag"):
            headers.append(("If-None-Match", poll["etag"]))
        if poll.get("last_modified"):
            headers.append(("If-Modified-Since", http_date(poll["last_modified"])))
        for attempt in range(self.options.retries + 1):
            line, body, wait = self.fetch(poll["url"], headers)
            last = attempt == self.options.retries
            if last or (line is not None and line["status"] not in WORTH_ANOTHER_TRY):
                break
            self.clock.sleep(min(wait or 2.0**attempt, LONGEST_WAIT))
        if line is None:
            print(f"{poll['url']}: {body}", file=sys.stderr)
        else:
            self.keep(line, body)

    def fetch(self, url, headers):
        """One request: the line of the manifest, the body, and how long to wait; without an answer no line, but why."""
        line = {"url": url, "fetched_at": stamp(self.clock.now())}
        try:
            answer = self.request(url, headers)
        except urllib.error.HTTPError as error:
            answer = error
        except (OSError, ValueError) as error:
            return None, error, None
        try:
            with answer:
                body = answer.read(MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            return None, error, None
        line["status"] = answer.status if hasattr(answer, "status") else answer.code
        for key, header in [("content_type", "Content-Type"), ("etag", "ETag"), ("last_modified", "Last-Modified")]:
            if answer.headers.get(header):
                line[key] = answer.headers[header]
        if len(body) > MAX_BYTES:
            return None, f"more than {MAX_BYTES} bytes", None
        if "last_modified" in line and email.utils.parsedate_tz(line["last_modified"]) is None:
            del line["last_modified"]
        return line, body, retry_after(answer.headers.get("Retry-After"))

    def keep(self, line, body):
        with self.lock:
            if line["status"] == 200:
                line["file"] = f"pages/{self.files}"
                self.files += 1
                (self.folder / line["file"]).write_bytes(body)
            self.lines.append(line)


def retry_after(text):
    try:
        return max(0.0, float(text))
    except (TypeError, ValueError):
        return None


def due(options, now):
    """What `ratoon due` says, most gain first."""
    command = [options.ratoon, "due", options.pipeline, "--format", "jsonl", "--at", stamp(now)]
    if options.since:
        command += ["--since", options.since]
    if options.limit:
        command += ["--limit", str(options.limit)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return [json.loads(line) for line in answer.decode().splitlines()]


def snapshots_folder(pipeline):
    with open(pipeline, "rb") as file:
        return pathlib.Path(pipeline).parent / tomllib.load(file)["corpus"]["snapshots"]


def poll(options, clock):
    """Fetches what is due and gives the snapshot's folder; none if nothing is due."""
    begin = clock.now()
    polls = due(options, begin)
    if not polls:
        return None
    root = snapshots_folder(options.pipeline)
    # By the clock of UTC, whatever the pipeline's time zone. No snapshot has a name that begins with a dot.
    name = begin.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    final, work = root / name, root / f".{name}.part"
    if final.exists():
        sys.exit(f"{final} is there already")
    shutil.rmtree(work, ignore_errors=True)
    (work / "pages").mkdir(parents=True)
    poller = Poller(options, clock, work)
    hosts = {}
    for one in polls:
        hosts.setdefault(one["host"], []).append(one)
    with ThreadPoolExecutor(max_workers=options.hosts) as pool:
        for done in [pool.submit(poller.host, urls) for urls in hosts.values()]:
            done.result()
    if not poller.lines:
        # Nothing was reached: no snapshot, so that the same polls are due the next time.
        shutil.rmtree(work)
        sys.exit(f"{len(polls)} URLs were due, none was fetched: the lines above or robots.txt say why")
    lines = sorted(poller.lines, key=lambda line: (line["fetched_at"], line["url"]))
    with open(work / "manifest.jsonl", "w", encoding="utf-8") as manifest:
        manifest.writelines(json.dumps(line) + "\n" for line in lines)
    work.rename(final)
    return final


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pipeline", help="the pipeline file")
    parser.add_argument("--contact", default="", help="where the owners of sites reach you: a URL or mail address")
    parser.add_argument("--delay", type=float, default=1.0, help="seconds between two requests to a host [1]")
    parser.add_argument("--retries", type=int, default=2, help="further tries after a failure that may pass [2]")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds to wait for a server [30]")
    parser.add_argument("--hosts", type=int, default=8, help="hosts fetched from side by side [8]")
    parser.add_argument("--limit", type=int, help="most URLs to fetch")
    parser.add_argument("--since", help="polls after this moment [the newest snapshot's time]")
    parser.add_argument("--no-robots", dest="robots", action="store_false", help="do not read robots.txt: your own sites")
    parser.add_argument("--ratoon", default="ratoon", help="the program [ratoon]")
    return parser.parse_args(arguments)


def main(arguments=None, clock=None):
    options = parse(arguments)
    try:
        folder = poll(options, clock or Clock())
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
    except FileNotFoundError as error:
        sys.exit(f"{error.filename}: not there; --ratoon FILE says where the program is" if error.filename == options.ratoon else str(error))
    print(folder if folder else "nothing is due")


if __name__ == "__main__":
    main()
