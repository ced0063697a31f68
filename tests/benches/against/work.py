"""What is looked for, the same for all programs: three patterns, 100,000 terms, a slow worker and a model.

Nothing here looks over the end of a line, so that what is found in a piece of whole lines is what is found there on the
page, whoever cuts it.
"""

import collections
import pathlib
import re

# The longest match of each is bounded, and both `re` and Rust's regex read them alike.
PATTERNS = {
    "version": r"\b[0-9]{1,3}\.[0-9]{1,3}(?:\.[0-9]{1,4})?\b",
    "name": r"\b(?:Create|Delete|Describe|List|Update)[A-Z][A-Za-z]{2,40}\b",
    "word": r"\b(?:deprecated|removed|required|optional|experimental|supported)\b",
}
# What the slow worker and the model look for: two words in capitals, a name and a call.
RULE = r"\b[A-Z][a-z]{2,15} [A-Z][a-z]{2,15}\b|\b[a-z_]{3,30}\(\)"
TERMS = 100_000
# Bytes a second of each of the slow worker's processes, as a small model for names takes them, and how many there are.
RATE, WORKERS = 50_000, 2
# Seconds for an answer of the model, and how many may be asked for at a time.
DELAY, IN_FLIGHT = 0.2, 8
# What programs that cut pages for a model give it at a time, and the size of chunks that are known by their digests.
UNIT, CHUNK = 1_200, 2_048

PIPELINE = """
[corpus]
snapshots = "{snapshots}"
store     = "store"

[guard]
max_deleted_share = 1.0
max_suspect_share = 1.0
max_failed_share  = 0.0
"""
EXTRACTORS = {
    "patterns": "".join(
        f"\n[[extractor]]\nname = '{name}'\nkind = 'regex'\npattern = '{pattern}'\n" for name, pattern in PATTERNS.items()
    ),
    "terms": "\n[[extractor]]\nname = 'term'\nkind = 'dictionary'\nterms = '{terms}'\n",
    # What is paid by the byte gets small blocks.
    "command": "\n[[extractor]]\nname = 'slow'\nkind = 'command'\ncommand = ['{python}', '{slow}', '{tally}']\nunit = 'block'\n"
    "block_bytes = 400\n",
    "model": "\n[[extractor]]\nname = 'model'\nkind = 'llm'\nmodel = 'rule'\nendpoint = '{endpoint}'\nprompt = '{prompt}'\n"
    f"unit = 'block'\nin_flight = {IN_FLIGHT}\n",
    # Without extractors nobody needs the table of old regions.
    "changes": "\n[plan]\nchoose = 'none'\n",
}


def terms(pages: list[str]) -> list[str]:
    """Pairs of words, a fifth of which some page has: those that are rarest there, as names are. All look alike."""
    counts: collections.Counter[str] = collections.Counter()
    for page in pages:
        for line in page.splitlines():
            words = re.findall(r"[A-Za-z][A-Za-z0-9_]{3,}", line)
            counts.update(f"{a} {b}" for a, b in zip(words, words[1:]))
    rare = [term for term, _ in sorted(counts.items(), key=lambda item: (item[1], item[0]))[: TERMS // 5]]
    return rare + [f"{rare[at % len(rare)]} {at}" for at in range(TERMS - len(rare))]


def write_terms(night: pathlib.Path, file: pathlib.Path) -> None:
    pages = [path.read_text(encoding="utf-8") for path in sorted((night / "pages").rglob("*")) if path.is_file()]
    file.write_text("\n".join(terms(pages)) + "\n", encoding="utf-8")
