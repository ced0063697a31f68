"""Runs the nights of a pipeline on Spark, until nothing is left to do.

    spark-submit pipelines/spark/night.py my.toml --work /shared/work --master spark://host:7077

`ratoon commit` says which pass comes next; Spark spreads it over the workers; `ratoon commit` takes what they left and
writes it as a local run would. A pass is a number of parts (of the archive) or buckets (of URLs): each goes through a
process of `ratoon worker`. README.md beside this file says which passes there are and what each machine has to see.
"""

import argparse
import json
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

ROWS = "bucket int, table string, rows binary"


def through(*command):
    """A function for mapInArrow: sends the batches of a partition through a process, whose rows are those that come out."""

    def run(batches):
        first = next(batches, None)
        if first is None:  # an empty partition has no schema either
            return
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said, failed = deque(maxlen=20), []

        def feed():
            try:
                with child.stdin, pa.ipc.new_stream(child.stdin, first.schema) as stream:
                    stream.write_batch(first)
                    for batch in batches:
                        stream.write_batch(batch)
            except BrokenPipeError:  # it has ended; its exit code says why
                pass
            except Exception as error:
                failed.append(error)
                child.kill()

        helpers = [threading.Thread(target=feed), threading.Thread(target=lambda: said.extend(child.stderr))]
        for helper in helpers:
            helper.start()
        try:
            try:
                yield from pa.ipc.open_stream(child.stdout)
            except pa.ArrowInvalid as error:  # it ended in the middle
                failed.append(error)
            for helper in helpers:
                helper.join()
            code = child.wait()
            if code:
                words = b"".join(said).decode(errors="replace").strip()
                raise RuntimeError(f"{' '.join(command[:3])} ended with exit code {code}: {words}")
            if failed:
                raise failed[0]
        finally:
            child.kill()
            child.wait()

    return run


def spread(spark, ratoon, pipeline, step):
    """Has a pass worked out by the workers and kept in its folder."""

    def worker(name):
        return through(ratoon, "worker", name, pipeline, "--pass", step["folder"], "--quiet", "--threads", "1")

    # A few tasks for each core: all of them are kept busy to the end, and a process does several buckets.
    tasks = min(step["count"], 3 * spark.sparkContext.defaultParallelism)
    numbers = spark.range(0, step["count"], 1, tasks)
    rows = numbers.mapInArrow(worker("read" if step["pass"] == "read" else "night"), ROWS)
    if step["pass"] == "read":  # captures come by file and are kept by bucket
        rows = rows.repartition(tasks, "bucket").sortWithinPartitions("bucket")
    rows.mapInArrow(worker("keep"), ROWS).collect()
    (Path(step["folder"]) / "_SUCCESS").touch()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pipeline", help="the pipeline file")
    parser.add_argument("--work", required=True, help="a folder that all machines see at the same place")
    parser.add_argument("--ratoon", default="ratoon", help="the program, at the same place on all machines")
    parser.add_argument("--parts", type=int, default=16, help="in how many parts an archive is read")
    parser.add_argument("--buckets", type=int, default=16, help="of a new store: into how many buckets URLs are sorted")
    parser.add_argument("--master", help="of Spark; spark-submit says it otherwise")
    args = parser.parse_args()
    pipeline, work = str(Path(args.pipeline).resolve()), str(Path(args.work).resolve())
    builder = SparkSession.builder.appName(f"ratoon {pipeline}")
    spark = (builder.master(args.master) if args.master else builder).getOrCreate()
    worst = 0
    while True:
        numbers = ["--parts", str(args.parts), "--buckets", str(args.buckets)]
        commit = [args.ratoon, "commit", pipeline, "--work", work, *numbers, "--json", "--quiet"]
        ended = subprocess.run(commit, stdout=subprocess.PIPE)
        if ended.returncode not in (0, 3):
            sys.exit(ended.returncode)
        step = json.loads(ended.stdout)
        if "pass" in step:
            print(f"{step['snapshot']}: {step['pass']}, {step['count']} {'parts' if step['pass'] == 'read' else 'buckets'}", file=sys.stderr, flush=True)
            spread(spark, args.ratoon, pipeline, step)
        elif step["done"]:
            worst = max(worst, ended.returncode)
            print(f"{step['done'][-1]['snapshot']}: done, exit code {ended.returncode}", file=sys.stderr, flush=True)
        else:
            spark.stop()
            sys.exit(worst)


if __name__ == "__main__":
    main()
