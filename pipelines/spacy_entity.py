#!/usr/bin/env python3
"""A spaCy pipeline as a worker for `kind = "command"`. Needs `pip install spacy`.

    command = ["python3", "spacy_entity.py", "model"]     # a trained pipeline: a folder, or the name of a package
    command = ["python3", "spacy_entity.py"]              # a blank English one with a few rules, no model needed

spacy_train.py makes a small one of pages of yours. What a model finds in a sentence may depend on all of it, so
no scope and context are declared: with `unit = "block"` ratoon cuts the page into blocks, the model only ever
sees one of them, and a block that was seen before, on any page and any night, is not sent again. See entity.py
for the protocol.
"""

import hashlib
import json
import sys
from pathlib import Path

import spacy

PATTERNS = [
    {"label": "ORG", "pattern": [{"IS_TITLE": True}, {"LOWER": {"IN": ["university", "institute", "college"]}}]},
    {"label": "ORG", "pattern": [{"LOWER": "university"}, {"LOWER": "of"}, {"IS_TITLE": True}]},
    {"label": "EVENT", "pattern": [{"LOWER": {"IN": ["seminar", "workshop", "lecture", "talk"]}}]},
    {"label": "TIME", "pattern": [{"TEXT": {"REGEX": "^[0-9]{1,2}(:[0-9]{2})?$"}}, {"LOWER": {"IN": ["am", "pm"]}}]},
    {"label": "EMAIL", "pattern": [{"LIKE_EMAIL": True}]},
    {"label": "URL", "pattern": [{"LIKE_URL": True}]},
]


def build(model):
    """The pipeline, and what identifies it: another model is another worker."""
    what = hashlib.sha256(json.dumps([spacy.__version__, PATTERNS]).encode())
    if model is None:
        nlp = spacy.blank("en")
        nlp.add_pipe("entity_ruler").add_patterns(PATTERNS)
        return nlp, what.hexdigest()
    nlp = spacy.load(model)
    what.update(json.dumps(nlp.meta, sort_keys=True, default=str).encode())
    for file in sorted(path for path in Path(nlp.path).rglob("*") if path.is_file()):
        what.update(file.relative_to(nlp.path).as_posix().encode() + b"\0" + file.read_bytes())
    return nlp, what.hexdigest()


def main():
    sys.stdin.reconfigure(encoding="utf-8")
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    nlp, fingerprint = build(sys.argv[1] if len(sys.argv) > 1 else None)
    ready = {
        "name": "spacy_entity",
        "version": spacy.__version__,
        "fingerprint": fingerprint,
        "attributes": ["label"],
        "offsets": "char",
        "unit": "block",
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
            # One at a time: of several together, the last bits of numbers would depend on the others.
            found = [
                {"start": e.start_char, "end": e.end_char, "text": e.text, "attrs": {"label": e.label_}}
                for e in nlp(request["text"]).ents
            ]
            say({"id": request["id"], "mentions": found})
        except Exception as error:  # the page fails, the worker lives
            say({"id": request["id"], "error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
