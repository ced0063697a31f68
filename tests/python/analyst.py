#!/usr/bin/env python3
"""An analyst's first day: the module as it is installed, on a store that was moved, and every line of its README.

    python analyst.py RATOON STORE README

The store is copied elsewhere and read from another folder. Exit code 0 if all of it holds.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import polars as pl

import ratoon


def blocks(document: str, language: str) -> list[str]:
    """The blocks of code of a document, without what they are indented by."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", document, flags=re.DOTALL | re.MULTILINE)
    return ["\n".join(line.removeprefix(indent) for line in text.splitlines()) for indent, text in found]


def try_readme(program: str, store: pathlib.Path, readme: str) -> None:
    names: dict[str, object] = {}
    asked = 0
    for block in blocks(readme, "python"):
        for line in block.replace("out/campus", str(store)).splitlines():
            try:
                answer = eval(line, names)  # noqa: S307 (our own document)
            except SyntaxError:
                exec(line, names)  # noqa: S102
                continue
            asked += 1
            assert answer is not None and len(answer) > 0, f"no answer: {line}"
    for query in blocks(readme, "sql"):
        done = subprocess.run([program, "sql", str(store), query, "--format", "csv"], capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout.count("\n") > 1, f"{query}: {done.stdout}{done.stderr}"
        asked += 1
    assert asked >= 20, f"only {asked} questions"


def try_module(store: ratoon.Store) -> None:
    talks = store.mentions("talk")
    assert talks.schema["snapshot"] == pl.String and talks.schema["since"] == pl.String
    sliced = store.slice(talks)
    assert sliced.drop("slice").equals(talks) and (sliced["slice"] == sliced["text"]).all()
    assert any(len(text) < len(text.encode()) for text in store.pages()["text"]), "some text is not ASCII"
    wide = store.slice(talks, before=10, after=10)
    assert wide.select(pl.col("slice").str.contains(pl.col("text"), literal=True).all()).item()
    assert store.slice(talks.clear()).height == 0
    assert store.pages(text=False).height == store.pages().height
    assert store.sql("select count(*) as n from pages_all").item() == store.table("pages_all").height
    # DuckDB slices bytes by the same offsets, and pandas takes what polars has.
    query = "select count(*) from mentions_talk m join pages p using (url) where slice_bytes(p.text, m.start, m.end) <> m.text"
    assert store.duckdb().sql(query).fetchall() == [(0,)]
    # The program does so for polars, wherever in a query that stands.
    cut = 'select slice_bytes(p.text, m.start, m."end") as cut, m.text from mentions_talk m join pages p on m.url = p.url'
    assert store.sql(f"select count(*) as n from ({cut}) c where c.cut = c.text").item() == talks.height
    # Every condition of a join counts, as it does for DuckDB.
    near = "select count(*) as n from mentions_time m join mentions_room n on m.url = n.url and n.start - m.start < 60"
    assert [(store.sql(near).item(),)] == store.duckdb().sql(near).fetchall()
    first = store.snapshots[0]
    assert store.sql(cut, at=first).height == store.mentions("talk", at=first).height
    assert len(store.pages().to_pandas()) == store.pages().height
    for wrong, said in [
        (lambda: store.table("page"), "did you mean pages?"),
        (lambda: store.mentions("talks"), "did you mean talk?"),
        (lambda: store.pages(at="2030-01-01"), "no snapshot 2030-01-01"),
        (lambda: store.sql("select slice_bytes(txt, 0, 1) from pages"), "no column txt; did you mean text?"),
        (lambda: ratoon.open("/"), "no store"),
    ]:
        try:
            wrong()
        except ratoon.RatoonError as error:
            assert said in str(error), error
        else:
            raise AssertionError(f"nothing is wrong where {said!r} should be said")


def main() -> None:
    program, readme = sys.argv[1], pathlib.Path(sys.argv[3]).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        moved = pathlib.Path(folder) / "it's elsewhere"
        shutil.copytree(sys.argv[2], moved)
        os.chdir(folder)
        try_module(ratoon.open(moved))
        try_readme(program, moved, readme)
    print("all questions are answered by", ratoon.__file__)


if __name__ == "__main__":
    main()
