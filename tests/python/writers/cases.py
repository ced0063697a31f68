"""The cases: each fetches the site with a real program and compares the tables with what was served."""
import with_warcio  # first: it replaces http.client's connections
import truth
import wget
from site_server import Page, Request, Site
from tables import Work


def start(ratoon, folder):
    return Work(ratoon, folder), Site()


def served_pages(site, pages, log):
    """Pages among what was served: text of good answers."""
    good = {request.path for request in log if request.status == 200}
    return {site.base + path: pages[path] for path in good if pages[path].text is not None}


def reached(work, site, log, but=()):
    """The program asked for every path of the site: else a comparison could pass by comparing little."""
    asked = {request.path for request in log}
    work.same("paths never asked for", sorted(site.pages().keys() - asked), sorted(but))


def wget_warc(ratoon, folder, *options):
    """`wget --warc-file`, three nights: everything; only what changed, the rest as `revisit` (--warc-dedup); 304."""
    work, site = start(ratoon, folder)
    total, recursive = 0, ["--recursive", "--level=inf", "--delete-after", "--no-directories", *options]
    nights = [
        (1, "2024-01-01", [*recursive, "--warc-cdx"], ["/"]),
        (2, "2024-01-02", [*recursive, f"--warc-dedup={folder}/snapshots/2024-01-01/crawl.cdx"], ["/"]),
        (2, "2024-01-03", [*options, "--output-document=/dev/null", '--header=If-None-Match: "plain-1", "news-2"'],
         ["/plain.html", "/news.html", "/undated.html"]),
    ]
    before = {}
    for night, name, extra, paths in nights:
        site.night = night
        target = work.snapshot(name)
        begun = truth.now()
        wget.run(folder, f"--warc-file={target}/crawl", *extra, *[site.base + path for path in paths])
        span = begun, truth.now()
        log, pages = site.take_log(), site.pages()
        if paths == ["/"]:
            reached(work, site, log)
        rows = []
        for request in log:
            row = truth.capture_row(site, pages, request)
            body = pages[request.path].sent()
            # wget leaves out a payload that it knows of the same URL.
            if name == "2024-01-02" and before[request.path] == body:
                row.update(revisit=True, payload_bytes=None)
            rows.append(row)
        work.ingest()
        truth.compare_captures(work, name, rows, span)
        if paths == ["/"]:
            expected = served_pages(site, pages, log)
        else:
            expected = {site.base + path: pages[path] for path in paths}
        truth.compare_pages(work, name, expected)
        work.same("rejects", work.rejects(name), [])
        before = {path: page.sent() for path, page in pages.items()}
        total += len(log)
    changes = {row["url"]: row["change"] for row in work.table("pages").filter(snapshot="2024-01-02").to_dicts()}
    modified = [url for url, change in changes.items() if change == "modified"]
    work.same("pages that changed in the second night", modified, [site.base + "/news.html"])
    work.done(f"{total} captures")


def warcio(ratoon, folder, gzip, version):
    """warcio: responses and requests as they go over the wire, revisits that name what they refer to, other records."""
    work, site = start(ratoon, folder)
    known, total = None, 0
    for night, name in [(1, "2024-01-01"), (2, "2024-01-02")]:
        site.night = night
        target = work.snapshot(name)
        paths, before = list(site.pages()), known
        begun = truth.now()
        known = with_warcio.capture(site, paths, target / "responses.warc", gzip, version, known)
        with_warcio.other_records(target / "others", site.base, gzip)
        span = begun, truth.now()
        log, pages = site.take_log(), site.pages()
        reached(work, site, log)
        rows = []
        for request in log:
            row = truth.capture_row(site, pages, request)
            if night == 2 and before[row["url"]][0] == known[row["url"]][0]:
                row.update(revisit=True, payload_bytes=None)
            rows.append(row)
        made = {
            "/made/resource.txt": Page(body=b"A resource.", type="text/plain", text="A resource."),
            "/made/resource.html": Page(type="text/html", title="R", text="A page without HTTP. text",
                                        body=b"<title>R</title><p>A page without HTTP. <a href='resource.txt'>text</a>",
                                        links=[(site.base + "/made/resource.txt", "text")]),
            "/made/decoded.html": Page(body=b"<p>Decoded already.", text="Decoded already."),
        }
        for path, page in made.items():
            status = 200 if path == "/made/decoded.html" else None
            rows.append(truth.capture_row(site, made, Request("GET", path, status, 0.0)))
        work.ingest()
        truth.compare_captures(work, name, rows, span)
        expected = served_pages(site, pages, log) | {site.base + path: page for path, page in made.items()}
        truth.compare_pages(work, name, expected)
        work.same("rejects", work.rejects(name), [])
        work.same("revisits are there", any(row["revisit"] for row in rows), night == 2)
        total += len(rows)
    work.done(f"{total} captures")


def followed(pages, path):
    """Where a path leads: the path itself, that of its redirects' end, or None."""
    seen = set()
    while pages[path].location:
        if path in seen:
            return None
        seen.add(path)
        path = pages[path].location
    return path if pages[path].status == 200 else None


def as_mirrored(site, pages, log):
    """A `wget --mirror` tree by URL: what a redirect leads to lies under the path that was linked, `index.html` is `/`, and
    nothing but the body is kept."""
    linked = {target.removeprefix(site.base).split("#")[0] for page in pages.values() for target, _ in page.links} | {"/"}
    asked = {request.path for request in log}
    files = {}
    for path in linked & asked:
        end = followed(pages, path)
        if end is not None:
            files[site.base + path.removesuffix("index.html")] = pages[end]
    return files


def wget_mirror(ratoon, folder, *options):
    """`wget --mirror`, two nights: no headers, so no status, type, ETag; a file's time is the fetch time only where the
    server dated nothing and the snapshot before is known."""
    work, site = start(ratoon, folder)
    total, previous = 0, None
    for night in [1, 2]:
        site.night = night
        tree = folder / f"night-{night}"
        tree.mkdir()
        begun = truth.now()
        wget.run(tree, "--mirror", *options, site.base + "/")
        span = begun, truth.now()
        log, pages = site.take_log(), site.pages()
        reached(work, site, log)
        name, time = work.keep(tree)
        files = as_mirrored(site, pages, log)
        rows = [dict(url=url, status=None, content_type=None, last_modified=None, last_modified_source=None, etag=None,
                     revisit=False, payload_bytes=len(page.sent()),
                     fetched_at_source="mtime" if previous and not page.modified else "snapshot")
                for url, page in files.items()]
        work.ingest()
        truth.compare_captures(work, name, rows, span, time)
        expected = {url: page.as_file() for url, page in files.items()}
        truth.compare_pages(work, name, {url: page for url, page in expected.items() if page.text is not None})
        work.same("rejects", work.rejects(name), [])
        total, previous = total + len(rows), name
    work.done(f"{total} captures")


CASES = {
    "wget-mirror": wget_mirror,
    "wget-mirror-requisites": lambda ratoon, folder: wget_mirror(ratoon, folder, "--page-requisites"),
    "warcio-gzip": lambda ratoon, folder: warcio(ratoon, folder, True, "WARC/1.1"),
    "warcio-plain": lambda ratoon, folder: warcio(ratoon, folder, False, "WARC/1.0"),
    "wget-warc": wget_warc,
    "wget-warc-plain": lambda ratoon, folder: wget_warc(ratoon, folder, "--no-warc-compression"),
}
