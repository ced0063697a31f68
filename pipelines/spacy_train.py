#!/usr/bin/env python3
"""Trains a small spaCy model for spacy_entity.py. Needs `pip install spacy`, no model, no network.

    ratoon synth site --seed 7                                 # or pages of yours, and what is true of them
    ratoon export my.toml --snapshot 2024-03-01 texts
    python3 spacy_train.py texts truth/mentions.jsonl model --extractor researcher

`texts` is what `ratoon export` writes. A line of the truth has `url`, `text` and, where the file is about more
than that, `extractor` and `snapshot`: lines of other extractors and snapshots are passed over. Every place of a
text on its page is one. The same input gives the same model.
"""

import argparse
import json
import random
from collections import defaultdict
from pathlib import Path

import spacy
from spacy.training import Example
from spacy.util import compounding, filter_spans, fix_random_seed, minibatch

# Of the lines without a mention, this share is learned from too.
OTHERS = 0.2
MODEL = {
    "tok2vec": {
        "@architectures": "spacy.HashEmbedCNN.v2",
        "pretrained_vectors": None,
        "width": 64,
        "depth": 2,
        "embed_size": 1000,
        "window_size": 1,
        "maxout_pieces": 3,
        "subword_features": True,
    }
}


def places(doc, texts, label):
    """Spans of a document that are one of the texts; of those that overlap the longest."""
    spans = []
    for text in texts:
        at = doc.text.find(text)
        while at >= 0:
            span = doc.char_span(at, at + len(text), label=label, alignment_mode="expand")
            spans.append(span)
            at = doc.text.find(text, at + 1)
    return filter_spans(spans)


def examples(nlp, folder, truth, label, order):
    """Distinct lines of the texts: those with mentions, and some others."""
    seen = set()
    for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        page = json.loads(line)
        for piece in (folder / page["file"]).read_text(encoding="utf-8").splitlines():
            marked = nlp.make_doc(piece)
            spans = places(marked, truth[page["url"]], label)
            if piece and piece not in seen and (spans or order.random() < OTHERS):
                seen.add(piece)
                marked.set_ents(spans)
                yield Example(nlp.make_doc(piece), marked)


def read_truth(path, extractor, snapshot):
    truth = defaultdict(set)
    for line in path.read_text(encoding="utf-8").splitlines():
        mention = json.loads(line)
        if mention.get("extractor", extractor) != extractor:
            continue
        snapshot = snapshot or mention.get("snapshot")
        if mention.get("snapshot", snapshot) == snapshot:
            truth[mention["url"]].add(mention["text"])
    return truth


def main():
    parser = argparse.ArgumentParser(description="Trains a small spaCy model for spacy_entity.py.")
    parser.add_argument("texts", type=Path, help="a folder that `ratoon export` wrote")
    parser.add_argument("truth", type=Path, help="lines of JSON with url and text")
    parser.add_argument("model", type=Path, help="the folder to write")
    parser.add_argument("--extractor", required=True, help="whose mentions; also the label")
    parser.add_argument("--snapshot", help="whose truth [default: the first in the file]")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()

    fix_random_seed(1)
    nlp = spacy.blank("en")
    ner = nlp.add_pipe("ner", config={"model": {"@architectures": "spacy.TransitionBasedParser.v2",
                                                "state_type": "ner", "extra_state_tokens": False, "hidden_width": 64,
                                                "maxout_pieces": 2, "use_upper": True, **MODEL}})
    ner.add_label(args.extractor)
    truth = read_truth(args.truth, args.extractor, args.snapshot)
    order = random.Random(1)
    data = list(examples(nlp, args.texts, truth, args.extractor, order))
    if not any(example.reference.ents for example in data):
        raise SystemExit(f"{args.truth} has no mention of '{args.extractor}' that stands in a text of {args.texts}")
    optimizer = nlp.initialize(lambda: data)
    for _ in range(args.rounds):
        order.shuffle(data)
        losses = {}
        for batch in minibatch(data, size=compounding(4.0, 32.0, 1.02)):
            nlp.update(batch, sgd=optimizer, drop=0.3, losses=losses)
        print(f"loss {losses['ner']:.1f}", flush=True)
    nlp.to_disk(args.model)
    print(f"{len(data)} lines, model in {args.model}")


if __name__ == "__main__":
    main()
