#!/usr/bin/env python3
"""A slow worker, as models are: finds the topics of a list also where they are misspelt or inflected.

Every word, pair and triple of words is compared with every term by edit distance, in plain Python: thousands of
times the work of a term list. Standard library only. It is shown a block of a page at a time (`unit = "block"`) and
looks at nothing else, so whatever stood on the page the night before is not asked again.

    python3 subjects.py TERMS MOST      # a file of terms, one a line; the most letters that may differ
"""

import json
import re
import sys

WORD = re.compile(r"[^\W\d_][\w'-]*")


def distance(a, b, most):
    """Letters to insert, delete or replace to make a of b; most + 1 if they are more."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (x != y))
        if min(row) > most:
            return most + 1
    return row[-1]


def mentions(text, terms, most):
    words = [match.span() for match in WORD.finditer(text)]
    at = 0
    while at < len(words):
        best = None
        for term, spaces in terms:
            last = at + spaces
            start, end = words[at][0], words[min(last, len(words) - 1)][1]
            if last < len(words) and abs(end - start - len(term)) <= most:
                differ = distance(text[start:end].lower(), term, most)
                if differ <= most and (best is None or differ < best[0]):
                    best = differ, start, end, term, last
        if best is None:
            at += 1
            continue
        differ, start, end, term, last = best
        attrs = {"topic": term, "differ": str(differ)}
        yield {"start": start, "end": end, "text": text[start:end], "attrs": attrs}
        at = last + 1


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        listed = sorted({line.strip().lower() for line in file if line.strip()})
    terms = [(term, term.count(" ")) for term in listed]
    most = int(sys.argv[2])
    # The terms and the code are all that the answers depend on.
    with open(__file__, encoding="utf-8") as code:
        fingerprint = json.dumps([code.read(), listed, most])
    ready = {"name": "subjects", "fingerprint": fingerprint, "attributes": ["topic", "differ"], "unit": "block"}

    sys.stdin.reconfigure(encoding="utf-8")
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    for line in sys.stdin:
        request = json.loads(line)
        if "hello" in request:
            answer = ready
        else:
            answer = {"id": request["id"], "mentions": list(mentions(request["text"], terms, most))}
        print(json.dumps(answer, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
