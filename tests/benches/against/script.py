#!/usr/bin/env python3
"""What a Python programmer would write instead: one night of a corpus, in one process.

    python script.py WORK WAY NIGHT STATE OUT [--terms FILE] [--endpoint URL] [--tally FILE]

WAY is `scratch`, `pages` (pages whose bytes or whose text are as the night before keep what was found there) or `chunks`
(pieces of 2 KB that were seen the night before, anywhere, keep what was found in them: mentions across their ends are
lost, so this is not exact). STATE is what a night leaves for the next one. OUT gets a line of JSON a page. Prints how much
text the extractor was given, in characters, and in how many pieces.
"""

import argparse
import collections.abc
import concurrent.futures
import http.client
import json
import pathlib
import pickle
import re
import subprocess
import sys
import threading
import urllib.parse

import work
import xxhash

# A mention: what found it, where it starts in the text, and its text.
Mention = tuple[str, int, str]
Piece = tuple[int, str]


def pages(night: pathlib.Path) -> collections.abc.Iterator[tuple[str, str, bytes]]:
    """URL, type and body of every page."""
    with (night / "manifest.jsonl").open(encoding="utf-8") as manifest:
        for line in manifest:
            row = json.loads(line)
            yield row["url"], row["content_type"], (night / row["file"]).read_bytes()


def text_of(content_type: str, body: bytes) -> str:
    if not content_type.startswith("text/html"):
        return body.decode()
    # Only a corpus of HTML pays for loading it.
    from resiliparse.extract.html2text import extract_plain_text

    return extract_plain_text(body.decode())


# --- Extractors: from a text to its mentions, at once or as something to wait for ---


def by_patterns(_: argparse.Namespace) -> collections.abc.Callable[[str], list[Mention]]:
    patterns = [(name, re.compile(pattern)) for name, pattern in work.PATTERNS.items()]
    return lambda text: [(name, m.start(), m[0]) for name, pattern in patterns for m in pattern.finditer(text)]


def by_terms(args: argparse.Namespace) -> collections.abc.Callable[[str], list[Mention]]:
    import ahocorasick

    automaton = ahocorasick.Automaton()
    for term in args.terms.read_text(encoding="utf-8").splitlines():
        automaton.add_word(term, term)
    automaton.make_automaton()
    return lambda text: [("term", end + 1 - len(term), term) for end, term in automaton.iter_long(text)]


class Asked:
    """Extractors that are waited for: each thread has a worker, or a connection, of its own."""

    def __init__(self, threads: int) -> None:
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)
        self.own = threading.local()

    def __call__(self, text: str) -> concurrent.futures.Future[list[Mention]]:
        return self.pool.submit(self.ask, text)

    def ask(self, text: str) -> list[Mention]:
        raise NotImplementedError


class ByCommand(Asked):
    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__(work.WORKERS)
        self.command = [sys.executable, str(pathlib.Path(__file__).with_name("slow.py")), str(args.tally)]

    def ask(self, text: str) -> list[Mention]:
        if not hasattr(self.own, "worker"):
            self.own.worker = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        worker = self.own.worker
        worker.stdin.write(json.dumps({"id": 1, "text": text}).encode() + b"\n")
        worker.stdin.flush()
        found = json.loads(worker.stdout.readline())["mentions"]
        return [("slow", mention["start"], mention["text"]) for mention in found]


class ByModel(Asked):
    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__(work.IN_FLIGHT)
        self.address = urllib.parse.urlsplit(args.endpoint)

    def ask(self, text: str) -> list[Mention]:
        if not hasattr(self.own, "server"):
            self.own.server = http.client.HTTPConnection(self.address.netloc)
        messages = [{"role": "system", "content": "Find names."}, {"role": "user", "content": text}]
        body = json.dumps({"model": "rule", "messages": messages})
        self.own.server.request("POST", f"{self.address.path}/chat/completions", body)
        answer = json.loads(self.own.server.getresponse().read())
        return placed(text, json.loads(answer["choices"][0]["message"]["content"])["mentions"])


def placed(text: str, found: list[dict]) -> list[Mention]:
    """A model quotes: each quote stands at its first place after the one before it."""
    mentions, at = [], 0
    for mention in found:
        start = text.index(mention["quote"], at)
        at = start + len(mention["quote"])
        mentions.append(("model", start, mention["quote"]))
    return mentions


EXTRACTORS = {"patterns": by_patterns, "terms": by_terms, "command": ByCommand, "model": ByModel}


class Counted:
    """An extractor that counts what it is given."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.extract = EXTRACTORS[args.work](args)
        self.given = self.requests = 0

    def __call__(self, text: str):
        self.given += len(text)
        self.requests += 1
        return self.extract(text)

    def tell(self) -> None:
        print(json.dumps({"given": self.given, "requests": self.requests}))


# --- Pieces ---


def whole(text: str) -> list[Piece]:
    return [(0, text)]


def units(text: str) -> list[Piece]:
    """Whole lines, so many that they have about the size of a unit."""
    pieces, start, size = [], 0, 0
    at = 0
    for line in text.splitlines(keepends=True):
        if size and size + len(line) > work.UNIT:
            pieces.append((start, text[start:at]))
            start, size = at, 0
        at += len(line)
        size += len(line)
    return [*pieces, (start, text[start:])] if start < len(text) else pieces


def chunks(text: str) -> list[Piece]:
    return [(at, text[at : at + work.CHUNK]) for at in range(0, len(text), work.CHUNK)]


def joined(answers: list[tuple[int, object]]) -> list[Mention]:
    found = []
    for offset, answer in answers:
        mentions = answer.result() if isinstance(answer, concurrent.futures.Future) else answer
        found += [(name, offset + start, text) for name, start, text in mentions] if offset else mentions
    return found


# --- Ways ---


def from_scratch(night: pathlib.Path, extract, cut, _: dict) -> tuple[list, dict]:
    found = [(url, [(at, extract(piece)) for at, piece in cut(text_of(kind, body))]) for url, kind, body in pages(night)]
    return [(url, joined(answers)) for url, answers in found], {}


def by_page(night: pathlib.Path, extract, cut, known: dict) -> tuple[list, dict]:
    found = []
    for url, kind, body in pages(night):
        key, text_key, answers = known.get(url, (None, None, None))
        digest = xxhash.xxh3_128_digest(body)
        if key != digest:
            key = digest
            text = text_of(kind, body)
            digest = xxhash.xxh3_128_digest(text.encode())
            if text_key != digest:
                text_key = digest
                answers = [(at, extract(piece)) for at, piece in cut(text)]
        found.append((url, key, text_key, answers))
    done = [(url, key, text_key, joined(answers)) for url, key, text_key, answers in found]
    # What is kept has one answer, for the whole text.
    return [(url, m) for url, _, _, m in done], {url: (key, text_key, [(0, m)]) for url, key, text_key, m in done}


def by_chunk(night: pathlib.Path, extract, _, known: dict) -> tuple[list, dict]:
    seen, found = {}, []
    for url, kind, body in pages(night):
        answers = []
        for at, piece in chunks(text_of(kind, body)):
            digest = xxhash.xxh3_128_digest(piece.encode())
            if digest not in seen:
                seen[digest] = known[digest] if digest in known else extract(piece)
            answers.append((at, seen[digest]))
        found.append((url, answers))
    done = [(url, joined(answers)) for url, answers in found]
    return done, {digest: joined([(0, answer)]) for digest, answer in seen.items()}


WAYS = {"scratch": from_scratch, "pages": by_page, "chunks": by_chunk}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="One night of a corpus.")
    parser.add_argument("work", choices=EXTRACTORS)
    parser.add_argument("way")
    for name in ("night", "state", "out"):
        parser.add_argument(name, type=pathlib.Path)
    for name in ("--terms", "--tally"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--endpoint")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    known = pickle.loads(args.state.read_bytes()) if args.state.is_file() else {}
    cut = units if args.work == "model" else whole
    extract = Counted(args)
    found, kept = WAYS[args.way](args.night, extract, cut, known)
    with args.out.open("w", encoding="utf-8") as out:
        for url, mentions in found:
            out.write(json.dumps({"url": url, "mentions": mentions}) + "\n")
    if kept:
        args.state.write_bytes(pickle.dumps(kept, pickle.HIGHEST_PROTOCOL))
    extract.tell()


if __name__ == "__main__":
    main()
