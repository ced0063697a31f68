"""The tables of a store as ordinary rows, and comparisons that name every difference."""
import json
import subprocess
import time
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

import polars as pl

PIPELINE = """[corpus]
snapshots = 'snapshots'
store = 'store'
[guard]
max_reject_share = 1.0
max_deleted_share = 1.0
"""


class Work:
    """A folder with a pipeline file and snapshots."""

    def __init__(self, ratoon, folder):
        self.ratoon, self.folder = ratoon, Path(folder)
        (self.folder / "snapshots").mkdir(parents=True)
        (self.folder / "p.toml").write_text(PIPELINE)
        self.wrong = []

    def snapshot(self, name):
        folder = self.folder / "snapshots" / name
        folder.mkdir(exist_ok=True)
        return folder

    def keep(self, tree):
        """Makes a folder a snapshot named by the next full second, as a crawl is named when it is done; waits for that."""
        now = time.time()
        moment = datetime.fromtimestamp(int(now) + 1, timezone.utc)
        time.sleep(moment.timestamp() - now)
        name = moment.strftime("%Y%m%d%H%M%S")
        tree.rename(self.folder / "snapshots" / name)
        return name, moment

    def ingest(self, snapshot, layout):
        """Ingests; and `ratoon inspect` must have said what would come of it."""
        looked = self.inspect(snapshot)
        run = subprocess.run([self.ratoon, "ingest", "p.toml"], cwd=self.folder, capture_output=True, text=True)
        assert run.returncode == 0, run
        found, captures = looked["found"], self.captures(snapshot)
        statuses = Counter("unknown" if row["status"] is None else str(row["status"]) for row in captures)
        self.same("layout by inspect", looked["layout"], layout)
        self.same("id by inspect", looked["id"], snapshot)
        self.same("captures by inspect", found["captures"], len(captures))
        self.same("statuses by inspect", found["statuses"], dict(statuses))
        self.same("rejects by inspect", found["rejects"]["count"], len(self.rejects(snapshot)))
        least, pages = found["pages"]["count"], len(self.pages(snapshot))
        if not least <= pages <= least + found["pages_by_repeat"]:
            self.wrong.append(f"pages by inspect: {least} and {found['pages_by_repeat']} more at most, really {pages}")

    def inspect(self, snapshot):
        path, = (self.folder / "snapshots").glob(snapshot + "*")
        run = subprocess.run([self.ratoon, "inspect", path, "--json"], capture_output=True, text=True)
        assert run.returncode in (0, 3), run
        return json.loads(run.stdout)["snapshots"][0]

    def table(self, name):
        frame = pl.read_parquet(self.folder / "store" / name)
        return frame.with_columns(pl.col("snapshot").cast(pl.String))

    def captures(self, snapshot):
        return self.table("captures").filter(pl.col("snapshot") == snapshot).to_dicts()

    def rejects(self, snapshot):
        return self.table("rejects").filter(pl.col("snapshot") == snapshot).to_dicts()

    def pages(self, snapshot):
        """Pages by URL, with text and links wherever they lie."""
        pages, links = self.table("pages"), self.table("links")
        texts = {(row["url"], row["snapshot"]): row["text"] for row in pages.to_dicts()}
        linked = {}
        for row in links.sort("ordinal").to_dicts():
            linked.setdefault((row["url"], row["snapshot"]), []).append((row["target"], row["label"]))
        return {row["url"]: dict(row, text=texts[row["url"], row["text_snapshot"]],
                                 links=linked.get((row["url"], row["content_snapshot"]), []))
                for row in pages.filter(pl.col("snapshot") == snapshot).to_dicts()}

    def same(self, what, found, expected):
        if found != expected:
            self.wrong.append(f"{what}:\n    found    {short(found)}\n    expected {short(expected)}")

    def same_rows(self, what, found, expected):
        """Equal as multisets."""
        found, expected = Counter(found), Counter(expected)
        for row in sorted((found - expected).elements(), key=repr):
            self.wrong.append(f"{what}: not expected: {short(row)}")
        for row in sorted((expected - found).elements(), key=repr):
            self.wrong.append(f"{what}: missing: {short(row)}")

    def done(self, summary):
        assert not self.wrong, f"{len(self.wrong)} differences\n" + "\n".join(self.wrong[:40])
        print(f"as served: {summary}")


def short(value):
    text = repr(value)
    return text if len(text) < 300 else f"{text[:200]}…{text[-60:]} ({len(text)})"
