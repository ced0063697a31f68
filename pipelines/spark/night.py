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


def through(*commands):
    """A function for mapInArrow: sends the batches of a partition through processes, one behind the other, without a look
    at what goes from one to the next; its rows are those that come out of the last."""

    def run(batches):
        first = next(batches, None)
        if first is None:  # an empty partition has no schema either
            return
        chain, failed = [], []
        for command in commands:
            source = chain[-1].stdout if chain else subprocess.PIPE
            chain.append(subprocess.Popen(command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            if source is not subprocess.PIPE:  # so that it is told when the next one has ended
                source.close()

        def feed():
            child = chain[0]
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

        said = [deque(maxlen=20) for _ in chain]
        helpers = [threading.Thread(target=feed)]
        helpers += [threading.Thread(target=lines.extend, args=(child.stderr,)) for lines, child in zip(said, chain)]
        for helper in helpers:
            helper.start()
        try:
            try:
                yield from pa.ipc.open_stream(chain[-1].stdout)
            except pa.ArrowInvalid as error:  # it ended in the middle
                failed.append(error)
            for helper in helpers:
                helper.join()
            # What one of them gives up for is told by the first that fails.
            for command, child, lines in zip(commands, chain, said):
                if code := child.wait():
                    words = b"".join(lines).decode(errors="replace").strip()
                    raise RuntimeError(f"{' '.join(command[:3])} ended with exit code {code}: {words}")
            if failed:
                raise failed[0]
        finally:
            for child in chain:
                child.kill()
                child.wait()

    return run


def spread(spark, ratoon, pipeline, step):
    """Has a pass worked out by the workers and kept in its folder."""

    def worker(name):
        return (ratoon, "worker", name, pipeline, "--pass", step["folder"], "--quiet", "--threads", "1")

    # A few tasks for each core: all of them are kept busy to the end, and a process does several buckets.
    tasks = min(step["count"], 3 * spark.sparkContext.defaultParallelism)
    numbers = spark.range(0, step["count"], 1, tasks)
    if step["pass"] == "read":  # captures come by file and are kept by bucket
        rows = numbers.mapInArrow(through(worker("read")), ROWS)
        rows = rows.repartition(tasks, "bucket").sortWithinPartitions("bucket")
        rows.mapInArrow(through(worker("keep")), ROWS).collect()
    else:  # whoever works on a bucket has all of it
        numbers.mapInArrow(through(worker("night"), worker("keep")), ROWS).collect()
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
