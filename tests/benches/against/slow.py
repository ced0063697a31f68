#!/usr/bin/env python3
"""A worker as slow as a large model on a card of its own: it waits for its bytes. `slow.py TALLY` notes every request."""

import hashlib
import json
import os
import re
import sys
import time

import work

READY = {"name": "slow", "version": "1", "fingerprint": work.RULE, "offsets": "char", "unit": "block"}


def mentions(text: str) -> list[dict]:
    return [{"start": m.start(), "end": m.end(), "text": m[0]} for m in re.finditer(work.RULE, text)]


def note(tally: int, text: bytes) -> None:
    """One line a request, written at once: two workers share the file."""
    os.write(tally, f"{hashlib.blake2b(text, digest_size=8).hexdigest()} {len(text)}\n".encode())


def main() -> None:
    tally = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    sys.stdin.reconfigure(encoding="utf-8")
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    ready_at = 0.0
    for line in sys.stdin:
        request = json.loads(line)
        if "hello" in request:
            answer = READY
        else:
            text = request["text"].encode()
            # When it is done with this one, if it began as soon as it was done with the one before and had this one.
            ready_at = max(ready_at, time.monotonic()) + len(text) / work.RATE
            answer = {"id": request["id"], "mentions": mentions(request["text"])}
            note(tally, text)
            time.sleep(max(0.0, ready_at - time.monotonic()))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
