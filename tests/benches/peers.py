#!/usr/bin/env python3
"""What other programs take to read the files of a night, for `nights.py`: one process, one thread.

    python tests/benches/peers.py hash FOLDER      # every payload read and hashed (fastwarc, xxh3): the least there is to do
    python tests/benches/peers.py scratch FOLDER   # texts and two patterns from scratch (fastwarc, resiliparse, re)

Prints what it read. Needs what `requirements.txt` beside it names.
"""

import pathlib
import re
import sys

import xxhash
from fastwarc.warc import ArchiveIterator, WarcRecordType
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str

# As `PIPELINE` in nights.py has them.
PATTERNS = [
    re.compile(r"(?:Dr|Prof)\. [A-Z][a-z]{1,20} [A-Z][a-z]{1,24}"),
    re.compile(r"\b(?:Room|Hall) [A-D]?[0-9]{1,3}\b"),
]


def payloads(folder: pathlib.Path):
    for path in sorted(folder.glob("*.warc*")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, record_types=WarcRecordType.response, parse_http=True):
                yield record.reader.read(), record.http_charset


def hash_all(folder: pathlib.Path) -> str:
    records, size, digests = 0, 0, set()
    for payload, _ in payloads(folder):
        records += 1
        size += len(payload)
        digests.add(xxhash.xxh3_128_digest(payload))
    return f"{records} records, {size} bytes, {len(digests)} distinct"


def extract_all(folder: pathlib.Path) -> str:
    records, size, mentions = 0, 0, 0
    for payload, charset in payloads(folder):
        records += 1
        text = extract_plain_text(bytes_to_str(payload, charset or "utf-8"))
        size += len(text)
        mentions += sum(1 for pattern in PATTERNS for _ in pattern.finditer(text))
    return f"{records} records, {size} characters of text, {mentions} mentions"


if __name__ == "__main__":
    print({"hash": hash_all, "scratch": extract_all}[sys.argv[1]](pathlib.Path(sys.argv[2])))
