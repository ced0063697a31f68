#!/usr/bin/env python3
"""A spaCy pipeline as a worker for `kind = "command"`. Needs `pip install spacy`, no model.

A blank English pipeline with an entity ruler; put a trained model in its place
(`spacy.load("en_core_web_sm")`) and nothing else changes. What a model finds in a sentence may depend on all
of it, so no scope and context are declared: with `unit = "paragraph"` ratoon cuts the page into paragraphs,
the model only ever sees one of them, and a paragraph that was there last night is not sent again. See
entity.py for the protocol.
"""

import hashlib
import json
import sys

import spacy

PATTERNS = [
    {"label": "ORG", "pattern": [{"IS_TITLE": True}, {"LOWER": {"IN": ["university", "institute", "college"]}}]},
    {"label": "ORG", "pattern": [{"LOWER": "university"}, {"LOWER": "of"}, {"IS_TITLE": True}]},
    {"label": "EVENT", "pattern": [{"LOWER": {"IN": ["seminar", "workshop", "lecture", "talk"]}}]},
    {"label": "TIME", "pattern": [{"TEXT": {"REGEX": "^[0-9]{1,2}(:[0-9]{2})?$"}}, {"LOWER": {"IN": ["am", "pm"]}}]},
    {"label": "EMAIL", "pattern": [{"LIKE_EMAIL": True}]},
    {"label": "URL", "pattern": [{"LIKE_URL": True}]},
]


def build():
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns(PATTERNS)
    return nlp


def main():
    sys.stdin.reconfigure(encoding="utf-8")
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    nlp = build()
    what = json.dumps([spacy.__version__, nlp.meta["lang"], nlp.pipe_names, PATTERNS])
    ready = {
        "name": "spacy_entity",
        "version": spacy.__version__,
        "fingerprint": hashlib.sha256(what.encode()).hexdigest(),
        "attributes": ["label"],
        "offsets": "char",
        "unit": "paragraph",
        "deterministic": True,
    }

    def say(message):
        print(json.dumps(message, ensure_ascii=False), flush=True)

    for line in sys.stdin:
        request = json.loads(line)
        if "hello" in request:
            say(ready)
            continue
        try:
            found = [
                {"start": e.start_char, "end": e.end_char, "text": e.text, "attrs": {"label": e.label_}}
                for e in nlp(request["text"]).ents
            ]
            say({"id": request["id"], "mentions": found})
        except Exception as error:  # the page fails, the worker lives
            say({"id": request["id"], "error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
