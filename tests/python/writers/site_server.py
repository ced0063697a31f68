"""A small web site of awkward pages on loopback, and the truth about it: what every URL answers, what its text, title
and links are, and a log of what was really asked for and answered. Truth is written here by hand or composed from
words, never taken from ratoon."""
import base64, gzip, re, threading, time, zlib
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from email.utils import format_datetime, parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HTML = "text/html; charset=utf-8"
OLD = datetime(2024, 3, 1, 12, 30, 15, tzinfo=timezone.utc)
PIXEL = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000"
                      "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082")
# The body of /br.html, by brotli.compress: with that package installed warcio 1.8.1 cannot index what is squeezed by it.
BROTLI = base64.b64decode("G8ICGIzTFXczSu2YbY5SvZAUu9iSF4TxsoUtxaaEIBcHzOs2TCTh6F0D19zgAItftocJpxccfZo4u2SQk9Uep5UrIJDXZrjy9BmvS34m"
                          "PJDvL1DDnvKlw7Go1g==")


@dataclass
class Page:
    """What a path answers. `text` is None if it is no page."""
    body: bytes = b""
    status: int = 200
    type: str | None = HTML
    coding: str | None = None
    framing: str = "length"           # chunked | close
    modified: datetime | None = None
    etag: str | None = None
    location: str | None = None
    text: str | None = None
    title: str | None = None
    links: list = field(default_factory=list)
    charset: str | None = "UTF-8"
    # Text and charset as read from the bytes alone, where no header says anything.
    bare_text: str | None = None
    bare_charset: str | None = None
    # Whether the bytes alone tell that it is text.
    bare_is_text: bool = True

    def sent(self):
        """The body with its content coding."""
        match self.coding:
            case None: return self.body
            case "gzip": return gzip.compress(self.body, mtime=0)
            case "br": return BROTLI
            case "deflate": return zlib.compress(self.body)
            case "raw-deflate":
                squeeze = zlib.compressobj(wbits=-15)
                return squeeze.compress(self.body) + squeeze.flush()

    def media_type(self):
        return self.type.split(";")[0].strip().lower() if self.type else None

    def as_file(self):
        """The page as read from a file of its own, without headers."""
        if self.coding:
            return replace(self, text=None, links=[], title=None)
        if not self.bare_is_text:
            return replace(self, text=None)
        return replace(self, text=self.text if self.bare_text is None else self.bare_text,
                       charset=self.bare_charset or self.charset)


def page(title, paragraphs=(), links=(), **more):
    """A page of paragraphs and links (href, label, target); its text is a line for each."""
    parts = [f"<h1>{title}</h1>"] + [f"<p>{p}</p>" for p in paragraphs]
    parts += [f'<p><a href="{href}">{label}</a></p>' for href, label, _ in links]
    html = f"<!doctype html>\n<html><head><title>{title}</title></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    encoding = more.pop("encoding", "utf-8")
    text = "\n".join([title, *paragraphs, *[label for _, label, _ in links]])
    return Page(body=html.encode(encoding), text=text, title=title,
                links=[(target, label) for _, label, target in links], **more)


ACCENTS = ["Crème brûlée, déjà vu, naïveté à la façade; où était l'hôtel près de la forêt ?",
           "Le café était fermé, et l'élève répétait : c'était l'été, à côté du théâtre."]


def pages(base, night):
    """Every path of the site, as requested, with what it answers on that night."""
    at = lambda path: base + path
    garbled = [p.encode().decode("cp1252") for p in ACCENTS]
    site = {
        "/plain.html": page("Plain", ["A page with all headers."], modified=OLD, etag='"plain-1"'),
        "/undated.html": page("Undated", ["No Last-Modified, no ETag."]),
        "/weak.html": page("Weak", ["A weak entity tag."], etag='W/"w1"'),
        "/chunked.html": page("Chunked", ["Sent in pieces, " * 40 + "end."], framing="chunked", modified=OLD),
        "/close.html": page("Close", ["Ends when the connection does."], framing="close"),
        "/gzip.html": page("Gzip", ["Squeezed by gzip."], coding="gzip", modified=OLD),
        "/gzip-chunked.html": page("Both", ["Squeezed and in pieces."], coding="gzip", framing="chunked"),
        "/br.html": page("Brotli", ["Squeezed by brotli. " * 30 + "end."], coding="br"),
        "/deflate.html": page("Deflate", ["Squeezed by deflate with its zlib header."], coding="deflate"),
        "/raw-deflate.html": page("Raw deflate", ["Squeezed by deflate without a header."], coding="raw-deflate"),
        "/utf8-unsaid.html": page("Unsaid", ACCENTS, type="text/html"),
        "/latin1-unsaid.html": page("Unsaid Latin", ACCENTS, type="text/html", encoding="cp1252", charset="windows-1252"),
        "/latin1.html": page("Latin", ACCENTS, type="text/html; charset=iso-8859-1", encoding="cp1252",
                             charset="windows-1252"),
        # The header is believed, so the text is garbled; a file without headers is read right.
        "/wrong.html": page("Wrong", ACCENTS, type="text/html; charset=iso-8859-1", charset="windows-1252"),
        "/utf16.html": page("Wide", ["Two bytes a character: ē, 語."], type="text/html", encoding="utf-16",
                            charset="UTF-16LE"),
        "/meta.html": Page(body="<html><head><meta charset='windows-1251'><title>Мета</title></head><body><p>Привет, мир</p>"
                           .encode("cp1251"), type="text/html", title="Мета", text="Привет, мир", charset="windows-1251"),
        "/query?x=1&y=2": page("Query one", ["x is 1."], modified=OLD),
        "/query?x=2": page("Query two", ["x is 2."]),
        "/query": page("No query", ["x is unknown."]),
        "/sp%20ace.html": page("Space", ["A blank in its name."]),
        "/caf%C3%A9.html": page("Café", ["An accent in its name."]),
        "/%E8%AA%9E/%C3%BCber.html": page("Wide path", ["Linked without escapes."]),
        "/UPPER/Case.HTML": page("Upper", ["Case counts."]),
        "/dir/": page("Folder", ["The default page of a folder."],
                      [("a.html", "down", at("/dir/a.html")), ("../plain.html", "up", at("/plain.html"))], modified=OLD),
        "/dir/a.html": page("Relative", ["Links of all kinds."],
                            [("../plain.html#part", "with fragment", at("/plain.html#part")),
                             ("#here", "inside", at("/dir/a.html#here")),
                             ("?q=1", "only a query", at("/dir/a.html?q=1")),
                             ("./", "this folder", at("/dir/")),
                             ("/undated.html", "from the root", at("/undated.html")),
                             (base + "/weak.html", "absolute", at("/weak.html"))]),
        "/dir/a.html?q=1": page("Relative with query", ["The same path, another page."]),
        "/other/index.html": page("Named index", ["Asked for by its name only."]),
        "/based.html": Page(body=b"<html><head><base href='/dir/'><title>Based</title></head><body><p>Links start elsewhere."
                            b"<p><a href='a.html'>moved base</a>", title="Based", text="Links start elsewhere.\nmoved base",
                            links=[(at("/dir/a.html"), "moved base")]),
        "/marked.html": Page(body="<title>M &amp; m</title><style>p {}</style><script>var a = '<p>no</p>'</script>"
                             "<p>one  &lt;two&gt;\n three&nbsp;four<br>five<table><tr><td>c1<td>c2</table>".encode(),
                             title="M & m", text="one <two> three\u00a0four\nfive\nc1\tc2"),
        "/empty.html": Page(body=b"", text="", title=None, bare_charset="UTF-8"),
        "/large.html": page("Large", [f"Paragraph {i} of a long page: " + "lorem ipsum dolor " * 8 + "end."
                                      for i in range(12000)], modified=OLD),
        "/data.json": Page(body='{"key": "välue"}\n'.encode(), type="application/json", text='{"key": "välue"}\n'),
        "/notes.txt": Page(body="first line\r\n\r\n  second, with <b> & blanks  \n".encode(), type="text/plain; charset=utf-8",
                           text="first line\r\n\r\n  second, with <b> & blanks  \n", modified=OLD),
        "/untyped": page("Untyped", ["No content type at all."], type=None),
        "/pixel.png": Page(body=PIXEL, type="image/png", modified=OLD, bare_is_text=False),
        # Not 200: captures, but no pages.
        "/moved": Page(status=301, location="/target.html", body=b"<p>moved"),
        "/chain": Page(status=302, location="/moved", body=b"<p>on and on"),
        "/target.html": page("Target", ["Where redirects lead."]),
        "/loop-a": Page(status=302, location="/loop-b", body=b"<p>to b"),
        "/loop-b": Page(status=302, location="/loop-a", body=b"<p>to a"),
        "/missing.html": Page(status=404, body=b"<p>not here"),
        "/gone.html": Page(status=410, body=b"<p>no more"),
        "/broken.html": Page(status=500, body=b"<p>broken"),
        "/robots.txt": Page(status=404, type="text/plain", body=b"none"),
        "/news.html": page("News", [f"News of night {night}."], modified=OLD.replace(day=night), etag=f'"news-{night}"'),
    }
    site["/wrong.html"] = replace(site["/wrong.html"], text="\n".join(["Wrong", *garbled]),
                                  bare_text="\n".join(["Wrong", *ACCENTS]), bare_charset="UTF-8")
    # The home page links to all, some of them spelled as authors do.
    spelled = {"/sp%20ace.html": "/sp ace.html", "/%E8%AA%9E/%C3%BCber.html": "/語/über.html",
               "/query?x=1&y=2": "/query?x=1&amp;y=2"}
    unlinked = {"/robots.txt", "/target.html", "/dir/a.html?q=1", "/loop-b"}
    links = [(spelled.get(path, path), "to " + path.replace("&", "and"), at(path)) for path in site if path not in unlinked]
    site["/"] = page("Home", ["All pages of the site."], links, modified=OLD.replace(day=night))
    return site


def canonical(path):
    return re.sub("%[0-9a-f]{2}", lambda escape: escape[0].upper(), path)


@dataclass
class Request:
    method: str
    path: str
    status: int
    time: float


class Site:
    """The running site. `log` holds every request that was answered."""

    def __init__(self):
        self.night = 1
        self.log: list[Request] = []
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.base = f"http://{self.host}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def pages(self):
        return pages(self.base, self.night)

    def page(self, path):
        """What a path answers, however its escapes are spelled."""
        return self.pages().get(canonical(path), Page(status=404, body=b"<p>unknown"))

    def take_log(self):
        """The requests since it was last asked for."""
        with self.lock:
            log, self.log = self.log, []
        return log

    def handler(self):
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Small writes would wait for each other.
            wbufsize, disable_nagle_algorithm = 1 << 16, True
            server_version, sys_version = "Awkward/1", ""

            def log_message(self, *_):
                pass

            def do_GET(self):
                page = site.page(self.path)
                if page.status == 200 and self.unchanged(page):
                    page = replace(page, status=304)
                with site.lock:
                    site.log.append(Request(self.command, self.path, page.status, time.time()))
                body = b"" if page.status == 304 else page.sent()
                self.send_response(page.status)
                if page.type is not None and page.status != 304:
                    self.send_header("Content-Type", page.type)
                if page.coding and page.status != 304:
                    self.send_header("Content-Encoding", page.coding.removeprefix("raw-"))
                if page.modified:
                    self.send_header("Last-Modified", format_datetime(page.modified, usegmt=True))
                if page.etag:
                    self.send_header("ETag", page.etag)
                if page.location:
                    self.send_header("Location", page.location)
                framing = "length" if page.status == 304 else page.framing
                if framing == "chunked":
                    self.send_header("Transfer-Encoding", "chunked")
                # wget waits for a body behind a 304 until the connection ends.
                elif framing == "close" or page.status == 304:
                    self.send_header("Connection", "close")
                    self.close_connection = True
                elif page.status != 304:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "HEAD":
                    return
                if framing == "chunked":
                    for start in range(0, len(body), 97):
                        piece = body[start:start + 97]
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    body = b"0\r\n\r\n"
                self.wfile.write(body)

            do_HEAD = do_GET

            def unchanged(self, page):
                tags, since = self.headers.get("If-None-Match"), self.headers.get("If-Modified-Since")
                if tags and page.etag:
                    return page.etag in tags
                return bool(since and page.modified and parsedate_to_datetime(since) >= page.modified)

        return Handler
