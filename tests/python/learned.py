#!/usr/bin/env python3
"""A learned extractor over some nights: a small spaCy model, trained here, by block.

    python learned.py target/release/ratoon [--pages 40] [--train-pages 150] [--change 0.1]

The model learns from one synthetic site (`ratoon synth`) and is run on another one. Each night is compared with the
same night extracted from scratch in a store of its own: mentions must be equal, and so must F1 against the truth. Prints
what each night cost and sent.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
EXTRACTOR = "researcher"


def pipeline(folder, name, snapshots, extract):
    text = f"[corpus]\nsnapshots = '{snapshots}'\nstore = '{name}'\n[verify]\nnightly = 'off'\n"
    if extract:
        command = json.dumps([sys.executable, str(PIPELINES / "spacy_entity.py"), "model"])
        text += f"[[extractor]]\nname = '{EXTRACTOR}'\nkind = 'command'\nunit = 'block'\ncommand = {command}\n"
    (folder / f"{name}.toml").write_text(text)


def f1(found, truth):
    right = sum((Counter(found) & Counter(truth)).values())
    return 2 * right / max(len(found) + len(truth), 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ratoon")
    parser.add_argument("--pages", type=int, default=40)
    parser.add_argument("--train-pages", type=int, default=150)
    parser.add_argument("--change", default="0.1")
    args = parser.parse_args()
    program = os.path.abspath(args.ratoon)

    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)

        def ratoon(*arguments):
            ended = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
            if ended.returncode != 0:
                raise SystemExit(f"ratoon {' '.join(arguments)}: {ended.returncode}\n{ended.stdout}{ended.stderr}")
            return ended.stdout

        def ask(name, question, at=None):
            at = ["--at", at] if at else []
            return json.loads(ratoon("sql", f"{name}.toml", question, "--format", "json", *at))

        def site(name, seed, pages, snapshots):
            ratoon("synth", name, "--truth", f"{name}_truth", "--part", "campus", "--pages", str(pages), "--snapshots",
                   str(snapshots), "--change", args.change, "--boilerplate", "0.3", "--seed", str(seed))
            return sorted(path.name for path in (folder / name).iterdir())

        [night] = site("lessons", 7, args.train_pages, 1)
        pipeline(folder, "school", "lessons", False)
        ratoon("ingest", "school.toml", "-q")
        ratoon("export", "school.toml", "--snapshot", night, "texts")
        train = [sys.executable, str(PIPELINES / "spacy_train.py"), "texts", "lessons_truth/mentions.jsonl", "model"]
        subprocess.run([*train, "--extractor", EXTRACTOR], cwd=folder, check=True, stdout=subprocess.DEVNULL)

        nights = site("site", 8, args.pages, 3)
        truth = {night: [] for night in nights}
        for line in (folder / "site_truth/mentions.jsonl").read_text(encoding="utf-8").splitlines():
            mention = json.loads(line)
            if mention["extractor"] == EXTRACTOR:
                truth[mention["snapshot"]].append((mention["url"], mention["text"]))
        pipeline(folder, "nightly", "site", True)
        print("| night | text | sent | of it | seconds | F1 | from scratch: seconds | F1 |\n|---|---|---|---|---|---|---|---|")
        for i, night in enumerate(nights):
            # What is not about the extractor is done before the clock starts.
            ratoon("match", "nightly.toml", "-q", "--snapshot", night)
            started = time.monotonic()
            ratoon("extract", "nightly.toml", "-q", "--snapshot", night)
            seconds = time.monotonic() - started
            # In the other store the extractor is new on this night.
            (folder / f"until{i}").mkdir()
            for earlier in nights[: i + 1]:
                (folder / f"until{i}" / earlier).symlink_to(folder / "site" / earlier)
            pipeline(folder, f"scratch{i}", f"until{i}", False)
            ratoon("extract", f"scratch{i}.toml", "-q")
            pipeline(folder, f"scratch{i}", f"until{i}", True)
            started = time.monotonic()
            ratoon("extract", f"scratch{i}.toml", "-q")
            fresh_seconds = time.monotonic() - started
            question = f'select url, start, "end", text, label.text as label from mentions_{EXTRACTOR} order by url, start'
            recycled, fresh = ask("nightly", question, night), ask(f"scratch{i}", question)
            assert recycled == fresh, f"{night}: not as from scratch"
            scores = [f1([(row["url"], row["text"]) for row in rows], truth[night]) for rows in (recycled, fresh)]
            text = ask("nightly", "select sum(text_bytes) as n from pages", night)[0]["n"]
            sent = ask("nightly", f"select sum(bytes_extracted) as n from extractions_all where snapshot = '{night}'")[0]["n"]
            print(f"| {night} | {text} | {sent} | {sent / text:.3f} | {seconds:.2f} | {scores[0]:.4f} "
                  f"| {fresh_seconds:.2f} | {scores[1]:.4f} |")
            assert scores[0] == scores[1] and scores[0] > 0.9, scores
            assert i == 0 or sent < 0.5 * text, "old blocks are sent again"
        print(ratoon("verify", "nightly.toml", "--all").strip())


if __name__ == "__main__":
    main()
