#!/usr/bin/env python3
"""A worker for `kind = "command"`: finds people, e-mail addresses, dates and prices by rules. Standard library
only.

The protocol is one JSON object a line. ratoon says hello, the worker introduces itself; then every request
carries a piece of a page's text, and the answer lists the mentions in it, with offsets from the start of that
piece.

Recycling is exact only if the worker keeps its word: a mention is at most SCOPE characters long, and whether
it is there depends on nothing but itself and the CONTEXT, so many characters on its left and right. Three
habits keep it:

- every rule is tried at every position (the lookahead in `rule`). `re.finditer` alone would skip what
  overlaps an earlier match, so a mention could depend on text far to its left;
- every repetition has an upper limit, and every rule ends where a word ends;
- the context on the right covers what could have made the mention longer: `Dr. Ann` is one only if no second
  name follows, which takes a space, 20 letters and the character after them to tell.

`ratoon audit` tests such a promise by changing the text around mentions.
"""

import json
import re
import sys

SCOPE = 80
CONTEXT = [1, 22]


def rule(label, pattern):
    """Matches of `pattern` at every position, not after a word character and not before one."""
    return label, re.compile(r"(?<![\w@.+-])(?=(" + pattern + r")(?!\w))")


NAME = r"[A-Z][a-z]{1,19}"
MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"

RULES = [
    rule("PERSON", rf"(?:Dr|Prof|Mr|Mrs|Ms)\.? {NAME}(?: {NAME})?"),
    rule("EMAIL", r"[A-Za-z0-9_+-]{1,30}@[A-Za-z0-9-]{1,30}\.[a-z]{2,10}"),
    rule("DATE", rf"(?:[0-9]{{1,2}} {MONTH}(?: [0-9]{{4}})?|{MONTH} [0-9]{{1,2}}(?:, [0-9]{{4}})?)"),
    rule("DATE", r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    rule("PRICE", r"[$€£][0-9]{1,7}(?:\.[0-9]{2})?"),
]

READY = {
    "name": "entity",
    "version": "1",
    # Everything the answers depend on: another rule makes another worker.
    "fingerprint": json.dumps([[label, pattern.pattern] for label, pattern in RULES]),
    "attributes": ["label"],
    "offsets": "char",
    "unit": "window",
    "scope": SCOPE,
    "context": CONTEXT,
    "deterministic": True,
}


def mentions(text):
    for label, pattern in RULES:
        for match in pattern.finditer(text):
            start, end = match.span(1)
            yield {"start": start, "end": end, "text": text[start:end], "attrs": {"label": label}}


def main():
    # JSON lines are UTF-8 whatever the locale says.
    sys.stdin.reconfigure(encoding="utf-8")
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")

    def say(message):
        print(json.dumps(message, ensure_ascii=False), flush=True)

    for line in sys.stdin:
        request = json.loads(line)
        if "hello" in request:
            say(READY)
            continue
        try:
            say({"id": request["id"], "mentions": list(mentions(request["text"]))})
        except Exception as error:  # the page fails, the worker lives
            say({"id": request["id"], "error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
