//! What a crawl brings: pages, bodies, addresses, dates.

use std::path::Path;

use super::{Parser, lines};
use crate::model::time::parse_duration;
use crate::model::{SnapshotId, Timestamp};
use crate::text::elements::any_element;
use crate::text::{TextOptions, TextReader, encoding, url};

pub(super) const PARSERS: [Parser; 7] = [
    Parser { name: "html", samples: pages, words: TAGS, read: |bytes, _| page(bytes, "text/html") },
    Parser { name: "xhtml", samples: pages, words: TAGS, read: |bytes, _| page(bytes, "application/xhtml+xml") },
    Parser { name: "xml", samples: pages, words: TAGS, read: |bytes, _| page(bytes, "application/xml") },
    Parser {
        name: "text",
        samples: pages,
        words: &["\u{feff}", "\u{fffd}", "é"],
        read: |bytes, _| {
            let types = [
                "",
                "text/plain; charset=shift_jis",
                "text/html; charset=utf-16",
                "application/json",
                "x",
                "image/png",
            ];
            page(bytes, types[bytes.len() % types.len()])
        },
    },
    Parser { name: "body", samples: bodies, words: &["\r\n", "0\r\n\r\n", "ffffffff\r\n", "\u{1f}"], read: body },
    Parser {
        name: "url",
        samples: |_| {
            lines(&["http://user:pw@a.org:81/a/../b%2e?q=1#f", "https://[::1]/", "http://xn--a.é/\u{1f600}", "HTTP:a"])
        },
        words: &["http://", "//", "..", "%2e", "@", ":", "[", "]", "\\", "#", "?", "é", "\u{0}", "xn--", "%"],
        read: address,
    },
    Parser {
        name: "date",
        samples: |_| {
            lines(&[
                "2024-03-01T12:00:00Z",
                "Fri, 01 Mar 2024 12:00:00 GMT",
                "Friday, 01-Mar-24 12:00:00 GMT",
                "20240301120000",
                "2024-03-01T23-05",
                "1h 30m",
                "PT90S",
                "90s",
                "Fri Mar  1 12:00:00 2024",
            ])
        },
        words: &["-", "+99:99", "T", "Z", "99999999", "PT", "d", "Feb 30", "60", "\u{663}"],
        read: date,
    },
];

const TAGS: &[&str] = &[
    "<a href='",
    "<base href=",
    "<title>",
    "</title>",
    "<svg>",
    "<foreignObject>",
    "<math>",
    "<template>",
    "<script>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "&amp;",
    "&#x110000;",
    "&notin",
    "<pre>",
    "<textarea>",
    "<plaintext>",
    "<frameset>",
    "<iframe",
    "<area alt=",
    "/>",
    "'",
    "\"",
    "\u{0}",
    "é",
    "\u{202e}",
    "<meta charset=utf-16>",
    "<?xml encoding='latin1'?>",
];

fn pages(_: &Path) -> Vec<Vec<u8>> {
    lines(&[
        "<!doctype html><title>A &amp; B</title><base href='/x/'><p>One <a href='y'>two</a><pre>\n a\n</pre><table><td>1<td>2</table>",
        "<html><svg><title>t</title><text>x</text><foreignObject><p>y</foreignObject></svg><math><mi>z</math>é &eacute; &#233;",
        "<?xml version='1.0'?><feed><entry xlink:href='a'><![CDATA[ <b> ]]></entry></feed>",
        "<script>if (a < b) { '</script>' }</script><style>p{}</style><noscript>n</noscript><textarea>t</textarea>",
        "<meta http-equiv=content-type content='text/html; charset=windows-1252'><ul><li>1<li>2<ol><li>3</ol></ul><dl><dt>a<dd>b</dl><b>x<i>y</b>z</i><select><option>o<optgroup><option>p</select>",
        "<frameset><frame src='a.html'><noframes>n</noframes></frameset><map><area href='b' alt='c'></map><img alt='d'><iframe src='e'>f</iframe><object data=g><embed src=h>",
        "<table><caption>c</caption><colgroup><col><thead><tr><th>1<tbody><tr><td><table><tr><td>in</table><p>2<tfoot></table>out",
        "<?xml version='1.0' encoding='utf-8'?><rss><channel><title>T</title><item><link>http://a.org/1</link><pubDate>Fri, 01 Mar 2024 12:00:00 GMT</pubDate><description>&lt;p>x</description></item></channel></rss>",
        "<?xml version='1.0'?><!DOCTYPE r [<!ENTITY a 'b'>]><urlset xmlns='s'><url><loc>http://a.org/2</loc><lastmod>2024-03-01</lastmod></url></urlset>",
    ])
}

fn page(bytes: &[u8], content_type: &str) -> Result<u64, String> {
    let even = bytes.len().is_multiple_of(2);
    let mut reader = TextReader::new(TextOptions { equate_schemes: even, keep_elements: even });
    let own = "http://a.org/b/c?d";
    let first = reader.read(bytes, Some(content_type), own);
    let again = reader.read(bytes, Some(content_type), own);
    if first.content != again.content {
        return Err("read twice, it says two things".to_owned());
    }
    let Some(content) = first.content else { return Ok(0) };
    if let Some(elements) = &content.elements {
        let _ = any_element(elements, &content.text, |names| names.len() % 2 == 1, |text| text.len() > 1_000_000);
    }
    let links = content.links.iter().map(|link| link.target.len() + link.label.len()).sum::<usize>();
    if let Some(link) = content.links.iter().find(|link| !link.target.starts_with("http")) {
        return Err(format!("a link to {}", link.target));
    }
    Ok((content.text.len() + links) as u64)
}

fn bodies(_: &Path) -> Vec<Vec<u8>> {
    use std::io::Write as _;
    let text = "<p>some text that is here more than once, here more than once</p>".repeat(20);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    let mut brotli = Vec::new();
    // Writing to memory does not fail.
    let _ = gzip.write_all(text.as_bytes());
    let _ = zlib.write_all(text.as_bytes());
    let _ = brotli::CompressorWriter::new(&mut brotli, 4096, 5, 20).write_all(text.as_bytes());
    let chunked = format!("{:x}\r\n{text}\r\n0\r\n\r\n", text.len());
    let zstd = zstd::encode_all(text.as_bytes(), 3).unwrap_or_default();
    vec![gzip.finish().unwrap_or_default(), zlib.finish().unwrap_or_default(), brotli, zstd, chunked.into_bytes()]
}

fn body(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let mut most = 0;
    for content in ["gzip", "deflate", "br", "zstd", "gzip, gzip", "br, deflate, identity, x"] {
        for transfer in [None, Some("chunked")] {
            let decoded = encoding::decode_body(bytes.to_vec(), transfer, Some(content), 64 << 20);
            most = most.max(decoded.map_or(0, |decoded| decoded.bytes.len() as u64));
        }
    }
    Ok(most)
}

fn address(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let Ok(normal) = url::normalise(&String::from_utf8_lossy(bytes), bytes.len().is_multiple_of(2)) else {
        return Ok(0);
    };
    let again = url::normalise(&normal, bytes.len().is_multiple_of(2)).map_err(|error| format!("{normal}: {error}"))?;
    if again != normal
        || normal.contains(|c: char| c.is_control() || c.is_whitespace())
        || url::host(&normal).is_empty()
    {
        return Err(format!("{normal} is not in normal form: {again}"));
    }
    Ok(normal.len() as u64)
}

fn date(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let text = String::from_utf8_lossy(bytes);
    let mut out = 0;
    for time in [Timestamp::parse_rfc3339(&text), Timestamp::parse_http(&text)].into_iter().flatten() {
        out += 1;
        let again = Timestamp::parse_rfc3339(&time.to_string());
        if again.is_some_and(|again| again != time) {
            return Err(format!("{time} is read as {again:?}"));
        }
    }
    out += u64::from(parse_duration(&text).is_some());
    let id = SnapshotId::new(&*text).ok();
    out += u64::from(id.and_then(|id| id.stated_time(&jiff::tz::TimeZone::UTC)).is_some());
    Ok(out)
}
