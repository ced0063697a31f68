"""WARC files written by warcio: `capture_http` around ordinary requests, and records made one by one."""
# Before anything that opens connections: it replaces http.client's.
from warcio.capture_http import capture_http  # isort: skip
import http.client
import io

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter


def capture(site, paths, file, gzip, version, known=None):
    """Fetches paths one after the other. `known`: payload digest, URL and date by URL of an earlier capture; an equal
    payload of a good answer becomes a revisit record. Returns what was captured, in the same form."""
    seen = {}

    def filter_records(request, response, recorder):
        url = response.rec_headers.get_header("WARC-Target-URI")
        digest = response.rec_headers.get_header("WARC-Payload-Digest")
        date = response.rec_headers.get_header("WARC-Date")
        seen[url] = (digest, url, date)
        if known is None or known.get(url, (None,))[0] != digest:
            return request, response
        _, old_url, old_date = known[url]
        revisit = recorder.writer.create_revisit_record(url, digest, old_url, old_date, http_headers=response.http_headers)
        return request, revisit

    with open(file, "wb") as out:
        writer = WARCWriter(out, gzip=gzip, warc_version=version)
        with capture_http(writer, filter_records):
            for path in paths:
                connection = http.client.HTTPConnection(site.host)
                connection.request("GET", path, headers={"Accept-Encoding": "gzip, br"})
                connection.getresponse().read()
                connection.close()
    return seen


def other_records(file, base, gzip):
    """Records that are no responses, and a response whose body the writer holds decoded."""
    with open(file, "wb") as out:
        writer = WARCWriter(out, gzip=gzip)
        writer.write_record(writer.create_warcinfo_record("info.warc", {"software": "by hand"}))
        make = writer.create_warc_record
        writer.write_record(make(base + "/made/resource.txt", "resource", payload=io.BytesIO(b"A resource."),
                                 warc_content_type="text/plain"))
        writer.write_record(make(base + "/made/resource.html", "resource", payload=io.BytesIO(
            b"<title>R</title><p>A page without HTTP. <a href='resource.txt'>text</a>"), warc_content_type="text/html"))
        writer.write_record(make("metadata://made/x", "resource", payload=io.BytesIO(b"x"), warc_content_type="text/plain"))
        writer.write_record(make(base + "/made/resource.txt", "metadata", payload=io.BytesIO(b"via: x"),
                                 warc_content_type="application/warc-fields"))
        writer.write_record(make("dns:site.test", "response", payload=io.BytesIO(b"20240101 A 127.0.0.1"),
                                 warc_content_type="text/dns"))
        # Headers as served, body as a browser saw it: neither chunked nor squeezed any more.
        headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html; charset=utf-8"), ("Content-Encoding", "gzip"),
                                              ("Transfer-Encoding", "chunked")], protocol="HTTP/1.1")
        writer.write_record(make(base + "/made/decoded.html", "response", payload=io.BytesIO(b"<p>Decoded already."),
                                 http_headers=headers))
