#!/usr/bin/env python3
"""Fetches real page pairs for the matching bench: consecutive releases of packages that carry data or documentation.

    python3 tests/benches/pairs.py [FOLDER]

writes FOLDER/{light,heavy}/NNNN.{old,new} (default: .bench/pairs under the project root), and the pages' names, one a
line, into FOLDER/{light,heavy}/names. `light` are pages of neighbouring releases, `heavy` pages of releases far apart.
Only changed pages of 5 KB to 2 MB that are UTF-8.
Packages are fetched by `pip download`; an archive already there is not fetched again.
"""

import gzip
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEAST = 5_000
MOST = 2_000_000
MOST_PER_STEP = 60
SUFFIXES = {".json", ".txt", ".rst", ".md", ".html", ".po", ".xml", ".csv"}

# (package, versions in order): each version is paired with the next.
LIGHT = [
    ("botocore", ["1.40.0", "1.40.1", "1.40.2", "1.40.3"]),
    ("google-api-python-client", ["2.170.0", "2.171.0", "2.172.0"]),
    ("Django", ["5.2", "5.2.1", "5.2.2", "5.2.3"]),
    ("SQLAlchemy", ["2.0.38", "2.0.39", "2.0.40", "2.0.41"]),
    ("Sphinx", ["8.1.0", "8.1.3", "8.2.0"]),
    ("docutils", ["0.21.1", "0.21.2"]),
]
HEAVY = [
    ("botocore", ["1.35.0", "1.40.3"]),
    ("Django", ["4.2", "5.2"]),
    ("SQLAlchemy", ["1.4.50", "2.0.41"]),
    ("Sphinx", ["5.3.0", "8.2.0"]),
    ("docutils", ["0.17", "0.21.2"]),
]
# Their wheels hold the pages; of the others only the sdists hold the documentation.
WHEELS = {"botocore", "google-api-python-client"}


def fetch(package: str, version: str, archives: pathlib.Path) -> pathlib.Path | None:
    """The sdist or wheel of a version, if it can be had."""
    folder = archives / f"{package}-{version}"
    if not (folder.is_dir() and any(folder.iterdir())):
        folder.mkdir(parents=True, exist_ok=True)
        base = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
        form = ["--only-binary", package] if package in WHEELS else ["--no-binary", package]
        done = subprocess.run([*base, *form, f"{package}=={version}"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"note: {package} {version}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
    files = sorted(folder.iterdir())
    return files[0] if files else None


def pages(archive: pathlib.Path) -> dict[str, bytes]:
    """Text pages by path, without the folder that carries the version."""
    found: dict[str, bytes] = {}

    def add(name: str, read) -> None:
        path = pathlib.PurePosixPath(name.removesuffix(".gz"))
        if path.suffix in SUFFIXES:
            data = gzip.decompress(read()) if name.endswith(".gz") else read()
            if LEAST <= len(data) <= MOST:
                parts = [part for part in path.parts if not part.endswith(".dist-info")]
                key = "/".join(parts if archive.suffix == ".whl" else parts[1:])
                found[key] = data

    if archive.suffix == ".whl" or archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as zipped:
            for info in zipped.infolist():
                add(info.filename, lambda info=info: zipped.read(info))
    else:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isfile():
                    add(member.name, lambda member=member: tar.extractfile(member).read())
    return found


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def write(name: str, steps: list[tuple[str, list[str]]], root: pathlib.Path) -> None:
    folder = root / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names: list[str] = []
    size = 0
    for package, versions in steps:
        taken = 0
        for before, after in zip(versions, versions[1:]):
            archives = [fetch(package, version, root / "archives") for version in (before, after)]
            if None in archives:
                print(f"note: no {package} {before} -> {after}", file=sys.stderr)
                continue
            old, new = (pages(archive) for archive in archives)
            changed = [path for path in sorted(new) if path in old and old[path] != new[path]]
            # Evenly over the paths, so that one large folder does not fill the set.
            for path in changed[:: max(1, -(-len(changed) // MOST_PER_STEP))]:
                if is_text(old[path]) and is_text(new[path]):
                    (folder / f"{len(names):04}.old").write_bytes(old[path])
                    (folder / f"{len(names):04}.new").write_bytes(new[path])
                    # Without the release: all versions of a page have one name.
                    names.append(f"{package}/{path}")
                    taken += 1
                    size += len(old[path]) + len(new[path])
        print(f"{name}: {package}: {taken} pairs", file=sys.stderr)
    (folder / "names").write_text("".join(f"{page}\n" for page in names))
    print(f"{name}: {len(names)} pairs, {size / 1e6:.1f} MB in {folder}", file=sys.stderr)


def main() -> None:
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".bench" / "pairs"
    write("light", LIGHT, root)
    write("heavy", HEAVY, root)


if __name__ == "__main__":
    main()
