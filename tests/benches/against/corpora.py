"""Real corpora that change: releases of packages as nights of a crawl, with the registry's dates.

Archives are fetched by pip and npm, one version after the other; those already there are not fetched again. A page is
a text file of an archive at http://<package>.example/<path>. Every night is a folder with a manifest and `pages`, in
which a page has the same name every night, so that programs that compare folders can do so.
"""

import collections.abc
import concurrent.futures
import csv
import dataclasses
import datetime
import gzip
import json
import multiprocessing
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import pairs
import releases

TYPES = {".html": "text/html; charset=utf-8", ".json": "application/json"}
# Services that many people use and that change often.
SERVICES = """
    appconfig athena autoscaling batch bedrock bedrock-agent bedrock-runtime cloudfront cloudwatch connect datazone
    dynamodb ec2 ecr ecs eks emr glue guardduty iam kms lambda lightsail logs medialive neptune opensearch quicksight
    rds redshift route53 s3 sagemaker secretsmanager securityhub sns sqs ssm transfer workspaces
""".split()
# Packages whose release times are a log of updates: data that is published often, nightly builds, busy programs.
UPDATED = """
    caniuse-db caniuse-lite @mdn/browser-compat-data electron-to-chromium mdn-data simple-icons mime-db
    typescript next react svelte vite vue eslint webpack prettier rollup esbuild
    aws-cdk firebase renovate electron npm pnpm @types/node @aws-sdk/client-ec2
""".split()


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A package, its releases in order, and which of its files are pages."""

    name: str
    package: str
    registry: str
    versions: tuple[str, ...]
    # From the path of a file in the archive, without the folder that carries the version, to that of the page.
    page: collections.abc.Callable[[str], str | None]
    # About this share of a page is text.
    text: float = 1.0


def service(path: str) -> str | None:
    parts = path.removesuffix(".gz").split("/")
    return "/".join(parts[2:]) if len(parts) == 5 and parts[1] == "data" and parts[2] in SERVICES else None


def documentation(path: str) -> str | None:
    return path.removeprefix("doc/") if path.startswith("doc/") and path.endswith(".html") else None


def feature(path: str) -> str | None:
    return path if path.startswith("features-json/") else None


CORPORA = [
    # Descriptions of web services as JSON: a release nearly every day, in which a few of them change.
    Corpus("services", "botocore", "pip", tuple(f"1.43.{patch}" for patch in range(115, 121)), service),
    # Built HTML: a release a month, which every page names.
    Corpus("documentation", "SQLAlchemy", "pip", tuple(f"2.0.{patch}" for patch in range(49, 55)), documentation, 0.3),
    # Tables of browser features as JSON: a release every week or two, in which nearly all of them change a little.
    Corpus("features", "caniuse-db", "npm", tuple(f"1.0.30001{n}" for n in (806, 807, 809, 810, 812, 813)), feature),
    # The services, two releases months apart.
    Corpus("months", "botocore", "pip", ("1.42.1", "1.43.120"), service),
]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def apart(function: collections.abc.Callable, *arguments: object) -> None:
    """In a process of its own: what a child inherits counts as its memory, so the one that measures stays small."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        process.submit(function, *arguments).result()


# --- Fetching ---


def fetch(corpus: Corpus, version: str, archives: pathlib.Path) -> pathlib.Path:
    if corpus.registry == "pip":
        archive = pairs.fetch(corpus.package, version, archives)
    else:
        archive = npm_pack(corpus.package, version, archives)
    if archive is None:
        sys.exit(f"bench-peers: {corpus.package} {version} cannot be had; is there a network, and are pip and npm there?")
    return archive


def npm_pack(package: str, version: str, archives: pathlib.Path) -> pathlib.Path | None:
    folder = archives / f"{package}-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.glob("*.tgz")):
        npm("pack", f"{package}@{version}", "--silent", "--pack-destination", str(folder))
    return next(folder.glob("*.tgz"), None)


def npm(*words: str) -> str:
    done = subprocess.run(["npm", *words], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def npm_times(package: str, archives: pathlib.Path) -> dict[str, datetime.datetime]:
    """When each version of an npm package was published; asked once."""
    kept = archives / f"{package.replace('/', '-')}-times.json"
    if not kept.is_file():
        text = npm("view", package, "time", "--json")
        if not text:
            say(f"note: no release times of {package}")
            return {}
        kept.write_text(text)
    times = json.loads(kept.read_text())
    return {
        version: datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).astimezone(datetime.UTC)
        for version, time in times.items()
        if version not in ("created", "modified") and isinstance(time, str)
    }


def members(archive: pathlib.Path) -> collections.abc.Iterator[tuple[str, datetime.datetime, collections.abc.Callable[[], bytes]]]:
    """Path without the folder of the version, time and content of every file."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as zipped:
            for info in zipped.infolist():
                time = datetime.datetime(*info.date_time, tzinfo=datetime.UTC)
                yield info.filename, time, lambda info=info: zipped.read(info)
    else:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isfile():
                    time = datetime.datetime.fromtimestamp(member.mtime, datetime.UTC)
                    path = member.name.partition("/")[2]
                    yield path, time, lambda member=member: tar.extractfile(member).read()


def read(corpus: Corpus, archive: pathlib.Path) -> tuple[dict[str, bytes], datetime.datetime]:
    """The pages of a release by path, and the newest time of a file: it was packed then."""
    pages, newest = {}, datetime.datetime.min.replace(tzinfo=datetime.UTC)
    for name, time, content in members(archive):
        newest = max(newest, time)
        path = corpus.page(name)
        if path is not None:
            data = gzip.decompress(content()) if name.endswith(".gz") else content()
            if pairs.is_text(data):
                pages[path] = data
    return newest_versions(pages) if corpus.page is service else pages, newest


def newest_versions(pages: dict[str, bytes]) -> dict[str, bytes]:
    """Of each service the newest version of its interface."""
    newest: dict[str, str] = {}
    for path in pages:
        name, version, _ = path.split("/")
        newest[name] = max(version, newest.get(name, ""))
    return {path: data for path, data in pages.items() if path.split("/")[1] == newest[path.split("/")[0]]}


# --- Nights ---


@dataclasses.dataclass
class Night:
    folder: pathlib.Path
    pages: int
    size: int
    # Pages that were there the night before with another content, and their size.
    changed: int
    changed_size: int

    @property
    def id(self) -> str:
        return self.folder.name


def lay_out(corpus: Corpus, root: pathlib.Path, size: int, most: int, nights: int) -> list[Night]:
    """The last nights of a corpus, with pages of at most `most` bytes, about `size` bytes a night."""
    versions = corpus.versions[-nights:] if len(corpus.versions) > 2 else corpus.versions
    folder = root / "corpora" / f"{corpus.name}-{size}-{most}-{len(versions)}"
    index = folder / "_nights.json"
    if not index.is_file():
        apart(write_nights, corpus, versions, root / "archives", folder, size, most)
    return [Night(folder / row["id"], *row["figures"]) for row in json.loads(index.read_text())]


def write_nights(corpus: Corpus, versions: tuple[str, ...], archives: pathlib.Path, folder: pathlib.Path, size: int, most: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    found = [read(corpus, fetch(corpus, version, archives)) for version in versions]
    if corpus.registry == "npm":
        times = npm_times(corpus.package, archives)
        found = [(pages, times[version]) for version, (pages, _) in zip(versions, found, strict=True)]
    small = {path: data for path, data in found[-1][0].items() if len(data) <= most}
    last = releases.last_rank(small, size)
    rows, before = [], {}
    for pages, time in found:
        pages = {path: data for path, data in pages.items() if releases.rank(path) <= last and len(data) <= most}
        night = folder / f"{time:%Y-%m-%dT%H-%M-%S}"
        write_night(night, corpus.package.lower(), time, pages)
        changed = [len(data) for path, data in pages.items() if before.get(path, data) != data]
        figures = [len(pages), sum(map(len, pages.values())), len(changed), sum(changed)]
        rows.append({"id": night.name, "figures": figures})
        before = pages
    (folder / "_nights.json").write_text(json.dumps(rows))


def write_night(folder: pathlib.Path, host: str, time: datetime.datetime, pages: dict[str, bytes]) -> None:
    folder.mkdir(parents=True)
    with (folder / "manifest.jsonl").open("w", encoding="utf-8") as manifest:
        for path, data in sorted(pages.items()):
            file = folder / "pages" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            row = {
                "url": f"http://{host}.example/{path}",
                "file": f"pages/{path}",
                "status": 200,
                "content_type": TYPES[file.suffix],
                "fetched_at": f"{time:%Y-%m-%dT%H:%M:%SZ}",
            }
            manifest.write(json.dumps(row) + "\n")


def update_log(root: pathlib.Path, file: pathlib.Path) -> int:
    """A log of the releases of many packages; how many sources it has."""
    archives = root / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    logs = {package: npm_times(package, archives) for package in UPDATED}
    with file.open("w", newline="", encoding="utf-8") as out:
        rows = csv.writer(out)
        rows.writerow(["source", "updated_at"])
        for package, times in logs.items():
            # Of the last two years: habits change.
            newest = max(times.values(), default=None)
            rows.writerows(
                [package, f"{time:%Y-%m-%dT%H:%M:%SZ}"]
                for time in sorted(times.values())
                if time > newest - datetime.timedelta(days=730)
            )
    return sum(map(bool, logs.values()))
