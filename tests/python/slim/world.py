"""A small random web and what a crawler writes down of it, night by night.

Pages come, change, share texts, die, return, move and lose their links; captures repeat, fail or only say "as before".
Snapshots are written in manifest layout or as WARC files. What the plain captures make of a page is remembered too
(`World.expected`), as a truth that owes nothing to the program.
"""

import base64
import dataclasses
import datetime
import gzip
import hashlib
import json
import pathlib
import random

HOSTS = ["http://a.test", "http://b.test", "https://c.test"]
NAMES = ["Fenn", "Okafor", "Nunez", "Tremblay", "Ekstrom", "Zoë", "Łukasz"]
TOPICS = ["graph colouring", "drug interactions", "bird migration", "deep sea vents", "game theory"]
FILLER = "the survey began late and members found many results near a river while the garage stayed open".split()
# A page that never dies, so that every whole table has a row.
ROOT = f"{HOSTS[0]}/"


@dataclasses.dataclass(frozen=True)
class Version:
    """What a server sends for a URL."""

    title: str
    lines: tuple[str, ...]
    links: tuple[tuple[str, str], ...]

    def html(self) -> bytes:
        links = "".join(f'<li><a href="{target}">{label}</a></li>' for target, label in self.links)
        body = "".join(f"<p>{line}</p>\n" for line in self.lines) + (f"<ul>{links}</ul>" if links else "")
        head = f'<meta charset="utf-8"><title>{self.title}</title>'
        return f"<!DOCTYPE html>\n<html><head>{head}</head>\n<body>\n{body}</body></html>\n".encode()

    def words(self) -> list[str]:
        """Of its text; how white space is kept is the program's affair."""
        return " ".join([*self.lines, *(label for _, label in self.links)]).split()

    def digest(self) -> str:
        return f"sha1:{base64.b32encode(hashlib.sha1(self.html()).digest()).decode()}"


@dataclasses.dataclass(frozen=True)
class Revisit:
    """A record that says "as that one" instead of repeating a content; a digest of None is left out."""

    digest: str | None
    url: str | None = None
    at: datetime.datetime | None = None


@dataclasses.dataclass(frozen=True)
class Capture:
    url: str
    at: datetime.datetime
    status: int
    version: Version | None = None
    revisit: Revisit | None = None
    last_modified: datetime.datetime | None = None
    # Whether the record states the digest of its payload.
    stated: bool = True

    def body(self) -> bytes:
        if self.version is not None:
            return self.version.html()
        return b"" if self.status == 304 or self.revisit else f"<title>{self.status}</title><p>no page".encode()


@dataclasses.dataclass
class Page:
    """A URL as its server knows it."""

    now: Version
    alive: bool = True
    # Every version that was captured, with the moment.
    served: list[tuple[Version, datetime.datetime]] = dataclasses.field(default_factory=list)


class World:
    """All URLs. `night` lets a night pass and gives its captures."""

    def __init__(self, chance: random.Random, urls: int, full: bool) -> None:
        self.chance = chance
        self.full = full
        self.pages: dict[str, Page] = {}
        self.names = [ROOT, *(f"{chance.choice(HOSTS)}/{'p' if i % 3 else 'dir'}{i}.html" for i in range(1, urls))]
        self.count = urls
        # The version of every URL that has a page, by plain captures alone; those of which more must be known to tell.
        self.expected: dict[str, Version] = {}
        self.dead: dict[str, Version] = {}
        self.ever_dead: set[str] = set()
        self.unsure: set[str] = set()

    # Texts.

    def line(self) -> str:
        chance = self.chance
        filler = " ".join(chance.choices(FILLER, k=chance.randint(3, 14)))
        topic, name = chance.choice(TOPICS), chance.choice(NAMES)
        return chance.choice([
            f"Dr. {name} is in Room {chance.randint(1, 400)} now.",
            f"{topic} with Dr. {name}, Hall {chance.choice('ABCD')}, Room {chance.randint(1, 40)}",
            f"Since {chance.randint(1950, 2024)} {filler} — {topic}.",
            f"Visitors: {chance.randint(1, 9999)}",
            filler.capitalize() + ".",
            filler.capitalize() + ".",
        ])  # fmt: skip

    def link(self) -> tuple[str, str]:
        """Links with one label and many targets: pages whose links change and whose text does not."""
        return self.chance.choice(self.names), self.chance.choice(["more", "more", "see also", "list of rooms"])

    def new_version(self) -> Version:
        chance = self.chance
        if chance.random() < 0.05:
            return Version("empty", (), ())
        lines = tuple(self.line() for _ in range(chance.randint(1, 12)))
        return Version(self.title(), lines, tuple(self.link() for _ in range(chance.choice([0, 0, 1, 1, 2, 4]))))

    def title(self) -> str:
        return f"{self.chance.choice(TOPICS)} {self.chance.randint(1, 99)}"

    def edited(self, old: Version) -> Version:
        chance = self.chance
        lines = list(old.lines)
        for _ in range(chance.choice([1, 1, 2, 5])):
            at = chance.randint(0, len(lines))
            lines[at : at + chance.randint(0, 1)] = [self.line()] if chance.random() < 0.7 else []
        if chance.random() < 0.2:
            chance.shuffle(lines)
        return dataclasses.replace(old, lines=tuple(lines))

    def relinked(self, old: Version) -> Version:
        links = list(old.links)
        if links and self.chance.random() < 0.5:
            links.pop(self.chance.randrange(len(links)))
        else:
            links.append(self.link())
        return dataclasses.replace(old, links=tuple(links))

    # Nights.

    def night(self, before: datetime.datetime, until: datetime.datetime, warc: bool) -> list[Capture]:
        """The captures of a night; those of plain archives (not `warc`) hold no revisits."""
        captures: list[Capture] = []
        for url in self.touched():
            for at in sorted(self.moment(before, until) for _ in range(self.chance.choice([1, 1, 1, 1, 1, 2, 3]))):
                captures.append(self.capture(url, at, warc))
        if self.full:
            captures.append(self.plain(ROOT, until))
        self.believe(captures)
        self.chance.shuffle(captures)
        return captures

    def moment(self, before: datetime.datetime, until: datetime.datetime) -> datetime.datetime:
        seconds = int((until - before).total_seconds())
        return before + datetime.timedelta(seconds=self.chance.randint(1, seconds))

    def touched(self) -> list[str]:
        """Which URLs are captured; new ones come to the web here."""
        chance = self.chance
        if not self.pages:
            first = [ROOT, *chance.sample(self.names[1:], chance.randint(len(self.names) // 2, len(self.names) - 1))]
            self.pages = {url: Page(self.new_version()) for url in first}
            return first
        known = [*self.pages]
        if self.full:
            # Most of them each night: a crawl that misses much may be taken for one that was cut short.
            chosen = [url for url in known if chance.random() < (0.9 if self.pages[url].alive else 0.3)]
        else:
            # Mostly few: a night that captures a quarter of the pages may well be stored whole.
            share = chance.choice([0.02, 0.05, 0.1, 0.1, 0.2, 0.2, 0.2, 0.8])
            chosen = chance.sample(known, max(1, round(share * len(known))))
        unborn = [url for url in self.names if url not in self.pages]
        for url in chance.sample(unborn, min(len(unborn), chance.choice([0, 0, 1, 2]))):
            self.pages[url] = Page(self.new_version())
            chosen.append(url)
        return chosen

    def capture(self, url: str, at: datetime.datetime, warc: bool) -> Capture:
        """One retrieval of a URL, after whatever happened to it since the last one."""
        page, chance = self.pages[url], self.chance
        if not page.served:
            return self.plain(url, at)
        if not page.alive:
            if chance.random() < 0.5:
                return Capture(url, at, chance.choice([404, 410, 503, 304]))
            page.alive = True
            page.now = chance.choice([page.now, self.new_version()])
            return self.plain(url, at)
        kinds = {"same": 4, "edit": 6, "title": 1, "link": 2, "304": 2, "fail": 1, "empty": 0.4, "share": 1, "old": 0.5}
        if url != ROOT:
            kinds |= {"gone": 1.2, "move": 1.2} if self.full else {"gone": 3, "move": 1.5}
        if warc:
            kinds |= {"revisit": 2, "revisit old": 1, "revisit other": 1}
        return self.happening(chance.choices([*kinds], [*kinds.values()])[0], url, at)

    def happening(self, kind: str, url: str, at: datetime.datetime) -> Capture:
        page, chance = self.pages[url], self.chance
        match kind:
            case "304":
                return Capture(url, at, 304)
            case "fail":
                return Capture(url, at, chance.choice([503, 503, 301]))
            case "gone":
                page.alive = False
                return Capture(url, at, chance.choice([404, 404, 410]))
            case "move":
                return self.move(url, at)
            case "edit":
                page.now = self.edited(page.now)
            case "title":
                page.now = dataclasses.replace(page.now, title=self.title())
            case "link":
                page.now = self.relinked(page.now)
            case "empty":
                page.now = Version(page.now.title, (), ())
            case "share":
                page.now = self.pages[chance.choice([*self.pages])].now
            case "old":
                page.now = chance.choice(page.served)[0]
            case "revisit" | "revisit old" | "revisit other":
                return self.revisit(kind, url, at)
        return self.plain(url, at)

    def plain(self, url: str, at: datetime.datetime) -> Capture:
        page, chance = self.pages[url], self.chance
        page.served.append((page.now, at))
        modified = at - datetime.timedelta(minutes=chance.randint(1, 600)) if chance.random() < 0.2 else None
        return Capture(url, at, 200, page.now, None, modified, chance.random() < 0.8)

    def move(self, url: str, at: datetime.datetime) -> Capture:
        """The page is gone; what it held is found under a new URL, tonight or later."""
        page = self.pages[url]
        page.alive = False
        self.count += 1
        there = f"{self.chance.choice(HOSTS)}/moved{self.count}.html"
        self.names.append(there)
        self.pages[there] = Page(page.now)
        if self.chance.random() < 0.7:
            return self.plain(there, at)
        return Capture(url, at, self.chance.choice([404, 410]))

    def revisit(self, kind: str, url: str, at: datetime.datetime) -> Capture:
        """A record that names what this URL holds, held before, or what another URL holds."""
        chance, named = self.chance, url
        if kind == "revisit other":
            named = chance.choice([other for other, page in self.pages.items() if page.served])
        served = self.pages[named].served
        version, when = chance.choice(served) if kind == "revisit old" else served[-1]
        self.pages[url].now = version
        self.pages[url].served.append((version, at))
        refers = (named, when) if chance.random() < 0.5 else (None, None)
        # Without a digest it names something by URL, or nothing at all.
        return Capture(url, at, 200, None, Revisit(version.digest() if chance.random() < 0.9 else None, *refers))

    # What must come of it.

    def believe(self, captures: list[Capture]) -> None:
        """Brings `expected` up to date with a night under partial coverage."""
        by_url: dict[str, list[Capture]] = {}
        for capture in sorted(captures, key=lambda capture: capture.at):
            by_url.setdefault(capture.url, []).append(capture)
        for url, here in by_url.items():
            times = {capture.at for capture in here}
            if len(times) < len(here) or any(capture.revisit for capture in here):
                self.unsure.add(url)
            last = self.expected.get(url) or self.dead.get(url)
            good = None
            for capture in here:
                if capture.status == 200 or (capture.status == 304 and (good or last)):
                    good = capture.version or good or last
            if good is not None:
                self.dead.pop(url, None)
                self.expected[url] = good
            elif here[-1].status in (404, 410) and url in self.expected:
                self.dead[url] = self.expected.pop(url)
                self.ever_dead.add(url)

    def forget_the_dead(self) -> None:
        """What is known of dead pages may be pruned with them: what a later 304 makes of them cannot be told."""
        self.unsure |= self.ever_dead


# --- Archives ---


def write_manifest(folder: pathlib.Path, captures: list[Capture], chance: random.Random) -> None:
    lines = []
    for number, capture in enumerate(captures):
        (folder / f"{number}.html").write_bytes(capture.body())
        line = {"url": capture.url, "file": f"{number}.html", "status": capture.status}
        line["fetched_at"] = rfc3339(capture.at)
        line["content_type"] = "text/html; charset=utf-8"
        if capture.last_modified:
            line["last_modified"] = rfc3339(capture.last_modified)
        if capture.status == 200 and chance.random() < 0.1:
            del line["status"]
        lines.append(json.dumps(line) + "\n")
    (folder / "manifest.jsonl").write_text("".join(lines), encoding="utf-8")


def write_warc(folder: pathlib.Path, captures: list[Capture], chance: random.Random) -> None:
    """One file or two, plain or with a gzip member for each record."""
    files = chance.choice([1, 1, 2])
    for number in range(files):
        records = [record(capture) for capture in captures[number::files]]
        if chance.random() < 0.5:
            (folder / f"crawl-{number}.warc").write_bytes(b"".join(records))
        else:
            (folder / f"crawl-{number}.warc.gz").write_bytes(b"".join(map(gzip.compress, records)))


def record(capture: Capture) -> bytes:
    block = f"HTTP/1.1 {capture.status} Status\r\nContent-Type: text/html; charset=utf-8\r\n"
    if capture.last_modified:
        block += f"Last-Modified: {capture.last_modified:%a, %d %b %Y %H:%M:%S GMT}\r\n"
    body = capture.body()
    if capture.revisit is None and capture.status != 304:
        block += f"Content-Length: {len(body)}\r\n"
    fields = {
        "WARC-Type": "revisit" if capture.revisit else "response",
        "WARC-Date": rfc3339(capture.at),
        "WARC-Target-URI": capture.url,
        "Content-Type": "application/http; msgtype=response",
    }
    if capture.revisit:
        fields["WARC-Profile"] = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
        refers = {
            "WARC-Payload-Digest": capture.revisit.digest,
            "WARC-Refers-To-Target-URI": capture.revisit.url,
            "WARC-Refers-To-Date": capture.revisit.at and rfc3339(capture.revisit.at),
        }
        fields |= {name: value for name, value in refers.items() if value}
    elif capture.version and capture.stated:
        fields["WARC-Payload-Digest"] = capture.version.digest()
    whole = block.encode() + b"\r\n" + body
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"WARC/1.1\r\n{head}Content-Length: {len(whole)}\r\n\r\n".encode() + whole + b"\r\n\r\n"


def rfc3339(time: datetime.datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
