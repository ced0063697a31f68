"""The cases: each fetches the site with a real program and compares the tables with what was served."""
import with_warcio  # first: it replaces http.client's connections
import shutil, subprocess, sys
from dataclasses import replace
from pathlib import Path

import httrack
import truth
import wget
from site_server import Page, Request, Site, canonical
from tables import Work


def start(ratoon, folder):
    return Work(ratoon, folder), Site()


def served_pages(site, pages, log):
    """Pages among what was served: text of good answers."""
    good = {request.path for request in log if request.status == 200}
    return {site.base + path: pages[path] for path in good if pages[path].text is not None}


def reached(work, site, log, but=()):
    """The program asked for every path of the site: else a comparison could pass by comparing little."""
    asked = {canonical(request.path) for request in log}
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
        work.ingest(name, "warc")
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
        work.ingest(name, "warc")
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


def as_mirrored(site, pages, log, options):
    """A `wget --mirror` tree by URL as it can be rebuilt: what a redirect leads to lies under the path that was linked,
    `index.html` is `/`, and -E puts `.html` behind names, which is taken off again only behind a query."""
    linked = {target.removeprefix(site.base).split("#")[0] for page in pages.values() for target, _ in page.links} | {"/"}
    asked = {request.path for request in log}
    suffixes = {"gzip": ".gz", "br": ".br", "deflate": ".zlib", "raw-deflate": ".zlib"}
    files = {}
    for path in linked & asked:
        end = followed(pages, path)
        if end is None:
            continue
        page, name = pages[end], path.removesuffix("index.html")
        if "-E" in options:
            is_page = page.media_type() in (None, "text/html")
            if is_page and not name.endswith(("/", ".html", ".HTML")) and "?" not in name:
                name += ".html"
            name += suffixes.get(page.coding, "")
        files[site.base + name] = page
    return files


def wget_mirror(ratoon, folder, *options):
    """`wget --mirror`, two nights. A tree has no headers, so no status, type, ETag; a file's time is the fetch time only
    where the server dated nothing and the snapshot before is known. --save-headers keeps all of that. -k rewrites links,
    and with them the time of the file; -K keeps the page as it came beside that."""
    work, site = start(ratoon, folder)
    headers, rewritten = "--save-headers" in options, "-k" in options and "-K" not in options
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
        files = as_mirrored(site, pages, log, options)
        rows = []
        for url, page in files.items():
            row = dict(url=url, status=200, content_type=page.media_type(), last_modified=page.modified, revisit=False,
                       last_modified_source="header" if page.modified else None, etag=page.etag, fetched_at_source="header",
                       payload_bytes=len(page.body))
            if not headers:
                touched = not page.modified or (rewritten and page.links)
                row.update(status=None, content_type=None, last_modified=None, last_modified_source=None, etag=None,
                           fetched_at_source="mtime" if previous and touched else "snapshot",
                           payload_bytes=len(page.sent()))
            rows.append(row)
        work.ingest(name, "mirror")
        truth.compare_captures(work, name, rows, span, time, ignore={"payload_bytes"} if rewritten else ())
        expected = {}
        for url, page in files.items():
            page = page if headers else page.as_file()
            # A folder and the file that holds its page are one page of a tree, also where links were rewritten.
            page = replace(page, links=[(target.removesuffix("index.html") if target.endswith("/index.html") else target, label)
                                        for target, label in page.links])
            if page.text is not None:
                expected[url] = page
        truth.compare_pages(work, name, expected)
        work.same("rejects", work.rejects(name), [])
        total, previous = total + len(rows), name
    work.done(f"{total} captures")


def wacz(ratoon, folder):
    """`wacz create` over files of warcio: two gzip files in one WACZ; a plain one with revisits; a snapshot that is just
    the file."""
    work, site = start(ratoon, folder)
    known, total = None, 0
    for night, name in [(1, "2024-01-01"), (2, "2024-01-02"), (2, "2024-01-03")]:
        site.night = night
        paths, before = list(site.pages()), known
        begun = truth.now()
        if night == 1:
            files = [folder / "a.warc.gz", folder / "b.warc.gz"]
            known = with_warcio.capture(site, paths[:20], files[0], True, "WARC/1.1")
            known |= with_warcio.capture(site, paths[20:], files[1], True, "WARC/1.0")
        else:
            files = [folder / f"{name}.warc"]
            known = with_warcio.capture(site, paths, files[0], False, "WARC/1.1", known)
        span = begun, truth.now()
        log, pages = site.take_log(), site.pages()
        target = folder / "snapshots" / "2024-01-03.wacz" if name == "2024-01-03" else work.snapshot(name) / "crawl.wacz"
        program = Path(sys.executable).with_name("wacz")
        subprocess.run([program, "create", "-f", *files, "-o", target], check=True, capture_output=True, cwd=folder)
        rows = []
        for request in log:
            row = truth.capture_row(site, pages, request)
            if before and before[row["url"]][0] == known[row["url"]][0]:
                row.update(revisit=True, payload_bytes=None)
            rows.append(row)
        work.ingest(name, "wacz")
        truth.compare_captures(work, name, rows, span)
        truth.compare_pages(work, name, served_pages(site, pages, log))
        work.same("rejects", work.rejects(name), [])
        total += len(rows)
    work.done(f"{total} captures")


def httrack_mirror(ratoon, folder):
    """HTTrack, two nights, the second by --update. Its cache has statuses, types and ETags; no fetch times, and dates that
    cannot be trusted; a page that the server calls unmodified is there again; what is not gzip stays squeezed; an empty
    page is lost."""
    work, site = start(ratoon, folder)
    total, previous = 0, None
    squeezed = {path for path, page in site.pages().items() if page.coding not in (None, "gzip")}
    for night in [1, 2]:
        site.night = night
        tree = folder / f"night-{night}"
        if previous:
            shutil.copytree(folder / "snapshots" / previous, tree)
        else:
            tree.mkdir()
        begun = truth.now()
        httrack.run(tree, *(["--update"] if previous else [site.base + "/"]))
        span = begun, truth.now()
        log, pages = site.take_log(), site.pages()
        reached(work, site, log, but=["/robots.txt"])
        name, time = work.keep(tree)
        rows = []
        for request in log:
            path = canonical(request.path)
            page, good = pages[path], request.status in (200, 304)
            if path == "/empty.html":
                continue
            body = page.sent() if path in squeezed else page.body
            rows.append(dict(url=site.base + path, status=200 if good else request.status,
                             content_type=page.media_type() or "text/html", last_modified=None, last_modified_source=None,
                             etag=page.etag, fetched_at_source="mtime" if previous else "snapshot", revisit=False,
                             payload_bytes=len(body) if good else None))
        work.ingest(name, "httrack")
        truth.compare_captures(work, name, rows, span, time)
        expected = {site.base + path: page for path, page in pages.items()
                    if page.status == 200 and page.text and path not in squeezed}
        truth.compare_pages(work, name, expected, but={site.base + path for path in squeezed})
        work.same("rejects", work.rejects(name), [])
        total, previous = total + len(rows), name
    changes = work.table("pages").filter(snapshot=previous).to_dicts()
    modified = [row["url"] for row in changes if row["change"] == "modified"]
    work.same("pages that changed in the second night", modified, [site.base + "/news.html"])
    work.done(f"{total} captures")


def httrack_tree(ratoon, folder):
    """A tree of HTTrack without its cache: a mirror of pages that carry the time of the crawl in comments, which must not
    make them differ. Names with a query are lost, and error pages look like pages."""
    work, site = start(ratoon, folder)
    kept = {path for path, page in site.pages().items() if page.status == 200 and page.coding in (None, "gzip")
            and page.text is not None and path.endswith((".html", ".json", ".txt", "dir/")) and not path.endswith("index.html")}
    for night in [1, 2]:
        site.night = night
        tree = folder / f"night-{night}"
        tree.mkdir()
        httrack.run(tree, site.base + "/")
        shutil.rmtree(tree / "hts-cache")
        name, _ = work.keep(tree)
        work.ingest(name, "mirror")
        found, pages = work.pages(name), site.pages()
        for path in sorted(kept):
            row, page = found.get(site.base + path, {}), pages[path]
            for column, value in [("text", page.text), ("title", page.title), ("change", "added" if night == 1 else
                                  "modified" if path == "/news.html" else "unchanged")]:
                work.same(f"{column} of {path}", row.get(column), value)
            labels = [label for _, label in row.get("links", [])]
            work.same(f"labels of {path}", labels, [label for _, label in page.links])
        work.same("links under another base", found[site.base + "/based.html"]["links"], pages["/based.html"].links)
        work.same("rejects", work.rejects(name), [])
    work.done(f"{len(kept)} pages")


def mirror(*options):
    return lambda ratoon, folder: wget_mirror(ratoon, folder, *options)


CASES = {
    "httrack": httrack_mirror,
    "httrack-tree": httrack_tree,
    "wacz": wacz,
    "wget-mirror": mirror(),
    "wget-mirror-p": mirror("-p"),
    "wget-mirror-k": mirror("-k"),
    "wget-mirror-k-K": mirror("-k", "-K"),
    "wget-mirror-E": mirror("-E"),
    "wget-mirror-E-k-K": mirror("-E", "-k", "-K"),
    "wget-mirror-headers": mirror("--save-headers"),
    "warcio-gzip": lambda ratoon, folder: warcio(ratoon, folder, True, "WARC/1.1"),
    "warcio-plain": lambda ratoon, folder: warcio(ratoon, folder, False, "WARC/1.0"),
    "wget-warc": wget_warc,
    "wget-warc-plain": lambda ratoon, folder: wget_warc(ratoon, folder, "--no-warc-compression"),
}
