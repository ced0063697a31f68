"""What a night on Spark costs beside one here: `measure.py RATOON FOLDER [--pages N] [--workers 1 2]`.

Processor time of all processes of a small Spark on loopback (its Java, its Python, ratoon), from the first pass to the
end of the night, so without the start of Spark; and of ratoon alone, by command. Two nights: all pages are new, then
one in twenty changed.
"""

import argparse
import os
import resource
import shutil
import subprocess
import time
from pathlib import Path

from cluster import Cluster
from run import Site

TICKS = os.sysconf("SC_CLK_TCK")


def spent(cluster):
    """Seconds of processor time of all processes of a cluster and of those that they waited for."""
    sessions, ticks = {child.pid for child in cluster.started}, 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(fields[3]) in sessions:
            ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


def by_command(log):
    totals = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        user, system, *command = line.split()
        name = " ".join(word for word in command[1:3] if not word.startswith("/"))
        totals[name] = totals.get(name, 0.0) + float(user) + float(system)
    return totals


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ratoon")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--workers", type=int, nargs="*", default=[2])
    args = parser.parse_args()
    ratoon, folder = str(Path(args.ratoon).resolve()), args.folder.resolve()
    nights = folder / "nights"
    subprocess.run([ratoon, "synth", "-q", nights, "--pages", str(args.pages), "--snapshots", "2", "--no-mentions",
                    "--part", "campus"], check=True)
    for workers in args.workers:
        site = Site(ratoon, folder / f"with{workers}")
        log, timed = site.folder / "times", site.folder / "ratoon"
        timed.write_text(f'#!/bin/sh\nexec /usr/bin/env time -a -o {log} -f "%U %S %C" {ratoon} "$@"\n')
        timed.chmod(0o755)
        with Cluster(site.folder / "cluster", workers) as cluster:
            for night in sorted(nights.iterdir()):
                shutil.copytree(night, site.snapshots / night.name)
                site.ratoon = ratoon
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                code, _ = site.local()
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                local = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                assert code == 0
                log.unlink(missing_ok=True)
                site.ratoon, marks = str(timed), []

                def mark(_):
                    marks.append((time.monotonic(), spent(cluster)))

                code, _, said = site.shared(cluster, on_line=mark, on_end=mark)
                assert code == 0, said[-20:]
                wall, spark = (end - begin for begin, end in zip(marks[0], marks[-1]))
                commands = {name: round(seconds, 1) for name, seconds in sorted(by_command(log).items())}
                per_page = 1000 / args.pages
                print(f"{workers} workers, {night.name}: here {local:.1f} s ({local * per_page:.2f} ms a page), "
                      f"on Spark {spark:.1f} s ({spark * per_page:.2f} ms), of them ratoon {sum(commands.values()):.1f} s "
                      f"{commands}; {spark / local:.2f} times; {wall:.1f} s on the clock", flush=True)


if __name__ == "__main__":
    main()
