#!/usr/bin/env python3
"""The same night by CocoIndex, which remembers calls of functions in a database of its own (LMDB).

    python coco.py WORK WAY NIGHT STATE OUT …      # as script.py; WAY is not used

Patterns and terms are remembered by page: remembering smaller pieces costs more than it saves. For the slow worker and the
model pages are cut by its own splitter, at lines where it can, and every piece is remembered.
"""

import asyncio
import json
import os
import pathlib

os.environ["COCOINDEX_DISABLE_USAGE_TRACKING"] = "1"

import cocoindex as coco
import script
import work
from cocoindex.ops.text import RecursiveSplitter

ARGS = script.arguments()
EXTRACT = script.Counted(ARGS)
SPLITTER = RecursiveSplitter()


@coco.fn(memo=True)
async def extracted(text: str) -> list:
    found = EXTRACT(text)
    mentions = found if isinstance(found, list) else await asyncio.wrap_future(found)
    return [list(mention) for mention in mentions]


@coco.fn(memo=True)
async def page(kind: str, body: bytes) -> list:
    text = script.text_of(kind, body)
    if ARGS.work in ("patterns", "terms"):
        found = EXTRACT(text)
        return [list(mention) for mention in found]
    pieces = SPLITTER.split(text, chunk_size=work.UNIT)
    answers = await asyncio.gather(*(extracted(piece.text) for piece in pieces))
    return [
        [name, piece.start.char_offset + start, quote]
        for piece, mentions in zip(pieces, answers, strict=True)
        for name, start, quote in mentions
    ]


@coco.fn
async def site(night: pathlib.Path, out: pathlib.Path) -> None:
    pages = list(script.pages(night))
    found = await asyncio.gather(*(page(kind, body) for _, kind, body in pages))
    with out.open("w", encoding="utf-8") as file:
        for (url, _, _), mentions in zip(pages, found, strict=True):
            file.write(json.dumps({"url": url, "mentions": mentions}) + "\n")


@coco.lifespan
def lifespan(builder: coco.EnvironmentBuilder):
    builder.settings.db_path = ARGS.state
    yield


if __name__ == "__main__":
    coco.App("night", site, ARGS.night, ARGS.out).update_blocking()
    EXTRACT.tell()
