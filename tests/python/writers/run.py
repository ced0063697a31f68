"""Runs one case: a real program fetches the awkward site, ratoon reads what it wrote, and the tables are compared with
what was served.   usage: run.py CASE RATOON FOLDER"""
import sys
from pathlib import Path

import cases

if __name__ == "__main__":
    name, ratoon, folder = sys.argv[1:]
    cases.CASES[name](Path(ratoon).resolve(), Path(folder).resolve())
