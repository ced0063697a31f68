#!/usr/bin/env python3
"""Executes pipelines/notebook.ipynb against a store.

    python notebook.py NOTEBOOK STORE [--write]

Every cell must work, and the cells must say what the committed notebook shows. With --write the notebook is written
with its new output instead.
"""

import os
import pathlib
import sys

import nbclient
import nbformat


def shown(cell: nbformat.NotebookNode) -> list[str]:
    """What a cell shows as text. Pictures depend on the fonts of a machine."""
    texts = []
    for output in cell.get("outputs", []):
        text = output.get("text") or output.get("data", {}).get("text/plain", "")
        if "image/png" not in output.get("data", {}):
            texts.append("".join(text))
    return texts


def slim(notebook: nbformat.NotebookNode) -> None:
    """Leaves of each output what a forge shows: tables as text, pictures, nothing that differs from run to run."""
    for cell in notebook.cells:
        cell.get("metadata", {}).pop("execution", None)
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                data.pop("text/plain", None)
            data.pop("text/html", None)
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"], "language_info": {"name": "python"}}


def main() -> None:
    path, store = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    os.environ["RATOON_STORE"] = str(store)
    # The module beside the notebook serves where none is installed.
    beside = str(path.resolve().parent / "python")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), beside]))
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    committed = nbformat.read(path, as_version=4)
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    slim(notebook)
    if "--write" in sys.argv:
        nbformat.write(notebook, path)
        return
    for old, new in zip(committed.cells, notebook.cells, strict=True):
        assert shown(old) == shown(new), f"{new['source']}\nshows {shown(new)}\nnot {shown(old)}; make notebook writes it anew"
    size = len(path.read_bytes())
    assert size < 200_000, f"the notebook has {size} bytes: too much to read on a forge"
    print("the notebook holds")


if __name__ == "__main__":
    main()
