#!/usr/bin/env python3
"""The six extractors of the Cyclex paper's Figure 6 as a worker in Python: `six.py NAME --bytes-per-second N`.

What they look for is what pipelines/*.toml look for by patterns, tried at every word. An extractor of the paper's time
took minutes for a few megabytes; a rate makes these as slow, by work that leaves no trace. Its word (see
pipelines/README.md, a worker of your own): a mention begins at a word and is at most SCOPE characters long, and nothing
further than that from its first character decides on it, nor more than the one before it.
"""

import argparse
import json
import re
import sys
import time

NAME = r"[A-ZÀ-ÖØ-ÞĀ-Ž][A-Za-zÀ-ÖØ-öø-ž'-]{1,20}"
FULL = rf"{NAME} (?:[A-Z]\. )?{NAME}"
# What each looks for, the longest that can be, the paper's scope and context.
SIX = {
    "researcher": (rf"(?:Dr|Prof)\. {FULL}", 60, 32, 3),
    "affiliation": (rf"(?:Dr|Prof)\. {FULL}(?: of the | joined the | \()[A-Z][A-Za-z ]{{2,40}}", 120, 93, 7),
    "talk": (rf"(?:Dr|Prof)\. {FULL}[^\n]{{0,120}}?[0-9]{{1,2}}(?::[0-9]{{2}})? ?[ap]m", 200, 400, 10),
    "actor": (rf"(?:actor|actress) {FULL}", 60, 35, 3),
    "play": (rf'{FULL} (?:starred in|appeared in|had the lead in) "[^"\n]{{1,50}}"', 130, 96, 4),
    "award": (rf"{FULL} (?:won|received) the [A-Z][A-Za-z ]{{1,40}}(?: for [^\n.]{{1,60}})?", 180, 250, 10),
}
WORD = re.compile(r"(?<!\w)\w")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=SIX)
    parser.add_argument("--bytes-per-second", type=float, default=0.0, help="no faster than this; 0: as fast as it is")
    args = parser.parse_args()
    pattern, scope, _, _ = SIX[args.name]
    rule = re.compile(pattern + r"(?!\w)")
    ready = {
        "name": args.name, "version": "1", "fingerprint": json.dumps([args.name, pattern]), "offsets": "char",
        "unit": "window", "scope": scope, "context": [1, scope + 1], "deterministic": True,
    }  # fmt: skip
    sys.stdin.reconfigure(encoding="utf-8")
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    for line in sys.stdin:
        started = time.process_time()
        request = json.loads(line)
        if "hello" in request:
            answer = ready
        else:
            text = request["text"]
            found = (rule.match(text, word.start()) for word in WORD.finditer(text))
            mentions = [{"start": m.start(), "end": m.end(), "text": m.group()} for m in found if m]
            answer = {"id": request["id"], "mentions": mentions}
            if args.bytes_per_second > 0:
                while time.process_time() - started < len(text) / args.bytes_per_second:
                    pass
        print(json.dumps(answer, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
