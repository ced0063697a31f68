"""Nights on Spark against nights on one machine: `run.py RATOON FOLDER [CASE …]`, all cases without.

A standalone master and two workers on loopback run pipelines/spark/night.py; all tables must be, byte for byte, those
that `ratoon run` writes. Prints one line a case and ends with exit code 0 if all is well.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

from cluster import Cluster

PROJECT = Path(__file__).resolve().parents[3]
NIGHT = PROJECT / "pipelines" / "spark" / "night.py"
# These follow measured times.
MEASURED = {"plans", "plan_costs", "answers"}

PIPELINE = """[corpus]
snapshots = "{snapshots}"
store = "{store}"
coverage = "{coverage}"

[[extractor]]
name = "researcher"
kind = "regex"
pattern = '(?:Dr|Prof)\\. (?P<first>[A-Z][a-z]{{1,20}}) (?P<last>[A-Z][a-z]{{1,24}})'

[[extractor]]
name = "time"
kind = "regex"
pattern = '\\b[0-9]{{1,2}}(?::[0-9]{{2}})? ?[ap]m\\b'

[[watch]]
name = "rooms"
on = {{ new_text = '\\b(?:Room|Hall) [A-D]?[0-9]{{1,3}}\\b' }}

[plan]
choose = "anchor"
"""

# A program that fails on pages of one kind and ends on those of another.
FAILING = """
[[extractor]]
name = "failing"
kind = "command"
command = ["{python}", "{program}"]
"""
PROGRAM = '''
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "text" not in asked:
        print(json.dumps({"name": "failing", "version": "1", "fingerprint": "1", "attributes": [], "offsets": "byte",
                          "unit": "page", "deterministic": False}), flush=True)
    elif "Hall" in asked["text"]:
        print(json.dumps({"id": asked["id"], "error": "no halls"}), flush=True)
    else:
        at = asked["text"].find("Room")
        mentions = [{"start": len(asked["text"][:at].encode()), "end": len(asked["text"][:at].encode()) + 4}]
        print(json.dumps({"id": asked["id"], "mentions": mentions if at >= 0 else []}), flush=True)
'''


def members(archive):
    """The members of a gzip file, as bytes: one record each."""
    data, at = archive.read_bytes(), 0
    while at < len(data):
        reader = zlib.decompressobj(31)
        reader.decompress(data[at:at + 65_536])
        end = at + 65_536
        while not reader.eof and end < len(data):
            reader.decompress(data[end:end + 65_536])
            end += 65_536
        length = min(end, len(data)) - at - len(reader.unused_data)
        yield data[at:at + length]
        at += length


def thin(archive, every):
    """Leaves one record of so many: what a poll would bring."""
    kept = [member for i, member in enumerate(members(archive)) if i == 0 or i % every == 0]
    archive.write_bytes(b"".join(kept))


def tables(store):
    digests = {}
    for path in store.rglob("*.parquet"):
        name = path.relative_to(store)
        if name.parts[0] not in MEASURED:
            digests[str(name)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests


class Site:
    """Two pipelines over the same snapshots, one for each way."""

    def __init__(self, ratoon, folder, more=""):
        self.ratoon, self.folder, self.more = ratoon, folder, more
        self.snapshots = folder / "snapshots"
        self.snapshots.mkdir(parents=True)

    def pipeline(self, way, coverage):
        path = self.folder / f"{way}.toml"
        path.write_text(PIPELINE.format(snapshots=self.snapshots, store=self.folder / way, coverage=coverage) + self.more)
        return path

    def local(self, coverage="full"):
        started = time.monotonic()
        ended = subprocess.run([self.ratoon, "run", "-q", self.pipeline("local", coverage)])
        return ended.returncode, time.monotonic() - started

    def shared(self, cluster, coverage="full", on_line=None, on_end=None):
        started = time.monotonic()
        args = [self.pipeline("shared", coverage), "--work", self.folder / "work", "--ratoon", self.ratoon, "--parts", "4"]
        code, said = cluster.night(NIGHT, *map(str, args), on_line=on_line, on_end=on_end)
        return code, time.monotonic() - started, said

    def compare(self):
        local, shared = tables(self.folder / "local"), tables(self.folder / "shared")
        differ = sorted(name for name in local.keys() | shared.keys() if local.get(name) != shared.get(name))
        assert local and not differ, f"these differ: {differ}"
        for command in (["check"], ["verify", "--all"]):
            subprocess.run([self.ratoon, *command, self.folder / "shared.toml", "-q"], check=True)
        return len(local)


def both(site, cluster, coverage="full", expected=0, on_line=None):
    code, took_local = site.local(coverage)
    assert code == expected, f"local: exit code {code}"
    code, took, said = site.shared(cluster, coverage, on_line)
    assert code == expected, f"on Spark: exit code {code}\n" + "\n".join(said[-40:])
    return took_local, took


def sample(ratoon, folder, cluster):
    site = Site(ratoon, folder)
    for night in sorted((PROJECT / "sample_data/campus").iterdir())[:3]:
        shutil.copytree(night, site.snapshots / night.name)
    took = both(site, cluster)
    return f"{site.compare()} files of tables are equal; {took[0]:.1f} s here, {took[1]:.1f} s on Spark"


def synthetic(ratoon, folder, cluster, pages=20_000):
    """Three nights, full, full and partial; an executor is killed in the second; a fourth night goes on locally."""
    site, aside = Site(ratoon, folder), folder / "nights"
    synth = [ratoon, "synth", "-q", aside, "--pages", str(pages), "--snapshots", "4", "--no-mentions", "--part", "campus",
             "--page-bytes", "1500"]
    subprocess.run(synth, check=True)
    nights = sorted(aside.iterdir())
    for night in nights[2:]:
        thin(next(night.iterdir()), 9)
    killed = []

    def kill(line):
        if "extract" in line and not killed:
            def soon():
                time.sleep(1)
                victims = cluster.executors()
                killed.extend(victims[:1])
                for victim in victims[:1]:
                    os.kill(victim, signal.SIGKILL)
            threading.Thread(target=soon).start()

    took = []
    for i, (night, coverage) in enumerate(zip(nights[:3], ["full", "full", "partial"])):
        night.rename(site.snapshots / night.name)
        before = cluster.executors_ever()
        took.append(both(site, cluster, coverage, on_line=kill if i == 1 else None))
        if i == 1:
            assert killed, "no executor was killed"
            assert cluster.executors_ever() - before > 2, "the executor that was killed was not replaced"
    files = site.compare()
    nights[3].rename(site.snapshots / nights[3].name)
    # Both say that some pages are "as before" that the thinned nights never brought.
    runs = [subprocess.run([ratoon, "run", "-q", site.pipeline(way, "partial")]) for way in ("local", "shared")]
    assert [ended.returncode for ended in runs] == [3, 3], runs
    site.compare()
    times = ", ".join(f"{here:.1f}/{spark:.1f}" for here, spark in took)
    return f"{files} files of tables are equal; seconds here/on Spark: {times}; one executor killed; a local night went on"


def faulty(ratoon, folder, cluster):
    """A program that fails on some pages, and an archive that is damaged in the middle and cut at its end."""
    program = folder / "failing.py"
    folder.mkdir(parents=True)
    program.write_text(PROGRAM)
    site = Site(ratoon, folder, FAILING.format(python=sys.executable, program=program))
    for night in sorted((PROJECT / "sample_data/campus").iterdir())[:2]:
        shutil.copytree(night, site.snapshots / night.name)
    archive = next((site.snapshots / "2024-03-02").iterdir())
    data = bytearray(archive.read_bytes())
    data[len(data) // 2:len(data) // 2 + 64] = bytes(64)
    archive.write_bytes(data[:-len(data) // 10])
    both(site, cluster, expected=3)
    files = site.compare()
    rejects = subprocess.run([ratoon, "sql", folder / "shared.toml", "select count(*) as n from rejects_all", "--format", "csv"],
                             capture_output=True, text=True, check=True).stdout.split()[-1]
    failed = subprocess.run([ratoon, "sql", folder / "shared.toml",
                             "select count(*) as n from extractions_all where error is not null", "--format", "csv"],
                            capture_output=True, text=True, check=True).stdout.split()[-1]
    assert int(rejects) > 0 and int(failed) > 0, f"{rejects} rejects, {failed} failed extractions"
    return f"{files} files of tables are equal, with {rejects} rejects and {failed} failed extractions"


def failing_worker(ratoon, folder, cluster):
    """A `ratoon worker` that cannot work: its exit code and its one line reach Spark's own error."""
    site = Site(ratoon, folder)
    night = sorted((PROJECT / "sample_data/campus").iterdir())[0]
    shutil.copytree(night, site.snapshots / night.name)
    broken = folder / "ratoon"
    broken.write_text(f'#!/bin/sh\nif [ "$1" = worker ]; then exec {ratoon} worker read nothing.toml --pass nowhere; fi\nexec {ratoon} "$@"\n')
    broken.chmod(0o755)
    site.ratoon = str(broken)
    code, _, said = site.shared(cluster)
    text = "\n".join(said)
    assert code != 0 and "ended with exit code 2" in text and "nothing.toml" in text, text[-3000:]
    return "exit code and reason reach Spark's error"


CASES = {"sample": sample, "faulty": faulty, "failing-worker": failing_worker, "synthetic": synthetic}


def main():
    ratoon, folder, *cases = sys.argv[1:]
    folder = Path(folder).resolve()
    with Cluster(folder / "cluster") as cluster:
        for case in cases or CASES:
            started = time.monotonic()
            told = CASES[case](str(Path(ratoon).resolve()), folder / case, cluster)
            print(f"{case}: {told} ({time.monotonic() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
