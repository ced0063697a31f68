"""What the tables must hold, given what the site served, and the comparison of both."""
from datetime import datetime, timedelta, timezone


def capture_row(site, pages, request, **lost):
    """A row of `captures` for a request, with what the writer loses put in place of what was served."""
    page = pages[request.path]
    fresh = request.status != 304
    row = dict(
        url=site.base + request.path, status=request.status, content_type=page.media_type() if fresh else None,
        last_modified=page.modified, last_modified_source="header" if page.modified else None, etag=page.etag,
        fetched_at_source="header", revisit=not fresh, payload_bytes=len(page.body) if fresh else None)
    row.update(lost)
    return row


COMPARED = ["url", "status", "content_type", "last_modified", "last_modified_source", "etag", "fetched_at_source",
            "revisit", "payload_bytes"]


def compare_captures(work, snapshot, expected, span, time=None, ignore=()):
    """Rows as multisets, but for columns to ignore; every fetch time inside the run where it is known, else that of the
    snapshot."""
    pick = lambda row: tuple((column, row[column]) for column in COMPARED if column not in ignore)
    found = work.captures(snapshot)
    work.same_rows("captures", [pick(row) for row in found], [pick(row) for row in expected])
    start, end = span
    for row in found:
        fetched = row["fetched_at"]
        if row["fetched_at_source"] == "snapshot":
            work.same(f"fetched_at of {row['url']}", fetched, time)
        elif not start - timedelta(seconds=1) <= fetched <= end + timedelta(seconds=1):
            work.wrong.append(f"fetched_at of {row['url']}: {fetched} is not between {start} and {end}")


def compare_pages(work, snapshot, expected, but=()):
    """`expected`: pages by URL, as site.Page."""
    found = {url: page for url, page in work.pages(snapshot).items() if url not in but}
    work.same_rows("pages", list(found), list(expected))
    for url in found.keys() & expected.keys():
        row, page = found[url], expected[url]
        work.same(f"text of {url}", row["text"], page.text)
        work.same(f"title of {url}", row["title"], page.title)
        work.same(f"links of {url}", row["links"], list(page.links))
        work.same(f"charset of {url}", row["charset"], page.charset)


def now():
    return datetime.now(timezone.utc)
