//! Every rule of the parent module as a case, and the reader against its slow twin on nasty input.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{HtmlOptions, HtmlReader, oracle};
use crate::model::{Content, LinkKind};

const PAGE: &str = "http://example.org/dir/page.html";

fn read(html: &str) -> Content {
    HtmlReader::default().read(html, PAGE, HtmlOptions::default())
}

/// Source and text; the slow twin must give the same.
fn check(cases: &[(&str, &str)]) {
    for (html, text) in cases {
        let content = read(html);
        assert_eq!(content.text, *text, "{html}");
        assert_eq!(content, oracle::read(html, PAGE, HtmlOptions::default()), "{html}");
    }
}

#[test]
fn blocks_are_lines() {
    check(&[
        ("", ""),
        ("one", "one"),
        ("<p>one<p>two", "one\ntwo"),
        ("<div><div>one</div></div>\n\n<div></div><DIV>two</DIV>", "one\ntwo"),
        ("one<br>two<br/>three</br>four<br><br>five", "one\ntwo\nthree\nfour\nfive"),
        ("a<hr>b", "a\nb"),
        ("<ul><li>a<li>b</ul>c", "a\nb\nc"),
        ("<dl><dt>a<dd>b</dl>", "a\nb"),
        ("<h1>a</h1>b<blockquote>c</blockquote>d", "a\nb\nc\nd"),
        ("<select><option>a<option>b</select>c", "a\nb\nc"),
        ("a<span>b</span>c <b>d</b> <i> e </i>f", "abc d e f"),
        ("<figure><figcaption>a</figcaption></figure>b", "a\nb"),
    ]);
}

#[test]
fn white_space_is_folded() {
    check(&[
        ("  a \t\r\n\x0C b  ", "a b"),
        ("<p> a </p> <p> b </p> ", "a\nb"),
        ("a <b> b</b>", "a b"),
        ("a&nbsp; &#160;b", "a\u{A0} \u{A0}b"),
        ("a&#32;&#10;&Tab;&NewLine; b", "a b"),
        ("a\u{2003}b\u{3000}c", "a\u{2003}b\u{3000}c"),
        ("a\x0Bb\x01c", "a\x0Bb\x01c"),
        ("a\0b &am\0p; c", "ab &amp; c"),
    ]);
}

#[test]
fn preformatted_text_keeps_its_lines() {
    check(&[
        ("<pre>\n a  b\n\n  c\r\nd\re</pre> f\n g", "a b\nc\nd\ne\nf g"),
        ("<pre>a<b>\n</b>b<pre>c\nd</pre>e\nf</pre>g\nh", "a\nb\nc\nd\ne\nf\ng h"),
        ("<listing>a\nb</listing>c", "a\nb\nc"),
        ("a<textarea>b\nc &lt; <b></textarea>d\ne", "a\nb\nc < <b>\nd e"),
        ("a<xmp>b\n&lt;<b></xmp>c", "a\nb\n&lt;<b>\nc"),
        ("a<plaintext>b\n<b></plaintext>&lt;", "a\nb\n<b></plaintext>&lt;"),
        ("</pre>a\nb", "a b"),
        ("<pre>a&#10;b&#13;c", "a\nb\nc"),
    ]);
}

#[test]
fn cells_are_separated_by_tabs() {
    check(&[
        ("<table><tr><td>a</td><td>b</td></tr><tr><th>c<td>d</table>e", "a\tb\nc\td\ne"),
        ("<table>\n<tr>\n <td> a </td>\n <td></td>\n <td> b c </td>\n</tr></table>", "a\tb c"),
        ("<tr><td><p>a</p></td><td><p>b</p></td>", "a\nb"),
        ("<TD>a<TH>b", "a\tb"),
        ("<caption>x</caption><tbody><tr><td>a", "x\na"),
    ]);
}

#[test]
fn what_is_not_shown_is_not_text() {
    check(&[
        ("a<script>if (a < b) '</scrip>'</script>b", "ab"),
        ("a<SCRIPT src=x></Script >b", "ab"),
        ("a<script><!-- <script> </script> --></script>b", "ab"),
        ("a<script><!-- </script>b --></script>c", "ab -->c"),
        ("a<style>p > b {}</style>b", "ab"),
        ("a<noscript><p>on</p></noscript>b", "ab"),
        ("a<iframe>x</iframe><noembed>y</noembed><noframes>z</noframes>b", "ab"),
        ("a<template>b<template>c</template><p>d</template>e", "ae"),
        ("a<template><script></template></script>b</template>c", "ac"),
        ("<head><meta name=x><link rel=y></head>a", "a"),
        ("<head><title>t</title>stray<body>a", "stray\na"),
        ("<img alt='no text' src=x>a<input value=no>", "a"),
        ("a<script/>b</script>c", "ac"),
        ("a</template></script></style>b", "ab"),
    ]);
}

#[test]
fn what_stands_in_for_something_else_is_not_text() {
    check(&[
        ("<ruby>K<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>!", "Kkan!"),
        ("<ruby>K<rp>(<rt>kan<rp>)</ruby>!", "Kkan!"),
        ("<ruby>K<rp>(<p>b", "K\nb"),
        ("a<video src=x><p>No video here</p><a href=x>Get it</a></video>b", "ab"),
        ("a<CANVAS><canvas>x</canvas>y</Canvas>b<audio>c</audio>d", "abd"),
        ("a<object data=x><object data=y>z</object><svg><text>s</text></svg></object>b", "ab"),
        // One that was left open ends with the block around it.
        ("<div>a<video src=x>no<p>no</p></div>b", "a\nb"),
        ("<table><tr><td>a<object>no<td>b</table>c", "a\nc"),
        ("a<canvas/>b</canvas>c", "ac"),
        ("<math><mi>x</mi><annotation>x</annotation><annotation-xml><p>y</p></annotation-xml></math>b", "xb"),
        ("<annotation>a</annotation>", "a"),
    ]);
}

#[test]
fn a_page_may_give_its_own_address() {
    for (html, expected) in [
        ("<link rel=canonical href=/a><link rel=canonical href=/b>", Some("http://example.org/a")),
        (
            "<base href='http://example.net/'><LINK REL='alternate Canonical' HREF='x?a&amp;b'>",
            Some("http://example.net/x?a&b"),
        ),
        ("<link rel=canonical><link rel=next href=c>", None),
        ("<link rel=canonical href='mailto:x'>", None),
        ("<template><link rel=canonical href=a></template><svg><link rel=canonical href=b></svg>", None),
    ] {
        let content = read(html);
        assert_eq!(content.canonical.as_deref(), expected, "{html}");
        assert_eq!(content, oracle::read(html, PAGE, HtmlOptions::default()), "{html}");
    }
}

#[test]
fn structure_is_what_elements_are_shown() {
    let structure = |html: &str| read(html).structure.unwrap();
    let page = "<title>t</title><div class=a><h1>Title</h1><p>text</div>";
    for same in [
        "<title>other</title><DIV id=b ><h1>Another</h1 x>\n<p>text, and more</div>",
        "<meta name=x><link rel=y><script>if (a<b)</script><title>t</title><!-- <b> --><div><h1></h1><template><p></template><p></div>",
    ] {
        assert_eq!(structure(page), structure(same), "{same}");
    }
    for other in [
        "<div><h2>Title</h2><p>text</div>",
        "<div><h1>Title</h1></div><p>text",
        "<div><p>text<h1>Title</h1></div>",
        "<div><h1>Title</h1><p>text</div><br>",
        "",
    ] {
        assert_ne!(structure(page), structure(other), "{other}");
    }
}

#[test]
fn links_say_what_made_them() {
    use crate::model::LinkElement::{A, Area, Frame, Iframe, Refresh};
    let html =
        "<a href=a>b</a><area href=c><iframe src=d></iframe><frame src=e><meta http-equiv=refresh content='0;f'>";
    let elements: Vec<_> = read(html).links.iter().map(|link| link.element.unwrap()).collect();
    assert_eq!(elements, [A, Area, Iframe, Frame, Refresh]);
}

#[test]
fn comments_and_declarations() {
    check(&[
        ("<!DOCTYPE html PUBLIC \"-//W3C//DTD\">a", "a"),
        ("<!doctype \">\">a", "\">a"),
        ("a<!-- b -->c<!-->d<!--->e<!-- x --!>f", "acdef"),
        ("a<!-- <p> > -> -- --- ---->b", "ab"),
        ("a<!--b", "a"),
        ("a<?php echo '>' ?>b", "a' ?>b"),
        ("a<![CDATA[b]]>c<!ELEMENT d>e", "ace"),
        ("a<![CDATA[ > ]]>c", "a ]]>c"),
        ("a</>b</ x>c</1>d", "abcd"),
        ("a</", "a</"),
        ("a<", "a<"),
        ("a < b <3 <= <> c", "a < b <3 <= <> c"),
    ]);
}

#[test]
fn tags_and_attributes() {
    check(&[
        ("<p title='a>b'>c<p title=\"a>b\">d<p title=a>e", "c\nd\ne"),
        ("<p title = 'a>b' x>c", "c"),
        ("<p x='1'y='2'/z>c", "c"),
        ("<p ='>'>c", "'>c"),
        ("<p a=b'>c", "c"),
        ("<p\n>a</p\t\n>b", "a\nb"),
        ("a</p x='>'>b", "a\nb"),
        ("a<p", "a"),
        ("a<p title='", "a"),
        ("a</p", "a"),
        ("<div\0>a</div\0>b", "ab"),
        ("<custom-element>a</custom-element><x:y>b", "ab"),
        ("<\u{E9}>a", "<\u{E9}>a"),
    ]);
}

#[test]
fn drawings_and_formulas() {
    check(&[
        ("a<svg><text>b</text></svg>c", "abc"),
        ("a<svg><title>b</title><desc>c<title>d</title></desc><text>e</text></svg>f", "aef"),
        ("<svg><style>x<y {}</style><script>z</script></svg>b", "b"),
        ("<svg><![CDATA[a <b>]]></svg><![CDATA[c]]>d", "a <b>d"),
        ("<svg><title>a</svg>b", "b"),
        (
            "<svg><foreignObject><p>a<style>b</style><svg><title>c</title></svg></p></foreignObject><title>d</title></svg>e",
            "a\ne",
        ),
        ("<svg><p>a<style></svg>b</style>c", "ac"),
        ("<svg/><style>a</style>b", "b"),
        ("<svg><path/><title/>a</svg>", "a"),
        ("<math><mi>x</mi><mo>=</mo></math>", "x="),
        ("<div><svg></div><style>a</style>b", "b"),
        ("<svg><textarea>a<b>b</textarea></svg>c", "ab\nc"),
    ]);
}

#[test]
fn titles() {
    for (html, title) in [
        ("a", None),
        ("<title></title>", Some("")),
        ("<TITLE> a\n &amp; <b>  b</TITLE >", Some("a & <b> b")),
        ("<title>a</title><title>b</title>", Some("a")),
        ("<svg><title>a</title></svg><title>b</title>", Some("b")),
        ("<template><title>a</title></template><title>b</title>", Some("b")),
        ("<title>a</titl></title", Some("a</titl></title")),
        ("<title>a\0&eacute</title>", Some("a\u{FFFD}é")),
        ("<body><p>x<title>late</title>", Some("late")),
        ("<script><title>a</title></script>", None),
    ] {
        let content = read(html);
        assert_eq!(content.title.as_deref(), title, "{html}");
        assert_eq!(content, oracle::read(html, PAGE, HtmlOptions::default()), "{html}");
    }
}

#[test]
fn links() {
    type Expected = (&'static str, &'static str, LinkKind);
    use LinkKind::{Global, Interior, Local};
    let cases: [(&str, &[Expected]); 27] = [
        ("<a href=x>y</a>", &[("http://example.org/dir/x", "y", Local)]),
        ("<A HREF='/x'> y\n<b>z</b> </A>", &[("http://example.org/x", "y z", Local)]),
        ("a<a href=\"#x\">b</a>c", &[("http://example.org/dir/page.html#x", "b", Interior)]),
        ("<a href>b</a>", &[("http://example.org/dir/page.html", "b", Interior)]),
        ("<a href=//example.com>b</a>", &[("http://example.com/", "b", Global)]),
        ("<a href='https://example.org/x#y'>b", &[("https://example.org/x#y", "b", Local)]),
        ("<a href=x><p>a</p><p>b</p></a>", &[("http://example.org/dir/x", "a b", Local)]),
        ("a <a href=x> <td>b</td><td>c</td></a>", &[("http://example.org/dir/x", "b c", Local)]),
        (
            "<a href=x>a<a href=y>b</a>c</a>",
            &[("http://example.org/dir/x", "a", Local), ("http://example.org/dir/y", "b", Local)],
        ),
        ("<a href=x>a<a name=n>b</a>", &[("http://example.org/dir/x", "a", Local)]),
        ("<a href='?a=1&amp;b=2&copy=3'>b</a>", &[("http://example.org/dir/page.html?a=1&b=2&copy=3", "b", Local)]),
        ("<a href=x href=y>b</a>", &[("http://example.org/dir/x", "b", Local)]),
        ("<a href=mailto:a@b.c>b</a><a href='javascript:x'>c</a><a href='http://['>d</a><a name=x>e</a>", &[]),
        ("<a href=x><img alt=y></a>", &[("http://example.org/dir/x", "y", Local)]),
        ("<a href=x> <img alt=' y\nz'><img><img alt=w></a>", &[("http://example.org/dir/x", "y z w", Local)]),
        ("<a href=x>t<img alt=y></a><img alt=z>", &[("http://example.org/dir/x", "t", Local)]),
        (
            "<frameset><frame src=menu.html name=menu title=''><frame src=/b title=' The  main part ' name=m></frameset>",
            &[("http://example.org/dir/menu.html", "menu", Local), ("http://example.org/b", "The main part", Local)],
        ),
        (
            "a<iframe src='http://example.com/'><a href=no>no</a></iframe><svg><iframe src=no></iframe></svg>",
            &[("http://example.com/", "", Global)],
        ),
        (
            "<meta http-equiv=' Refresh' content='0; URL=new.html'><meta name=refresh content='0;url=no'><meta http-equiv=refresh content=60>",
            &[("http://example.org/dir/new.html", "", Local)],
        ),
        (
            "<svg><a xlink:href=x><text>a</text></a></svg><a xlink:href=no>b</a>",
            &[("http://example.org/dir/x", "a", Local)],
        ),
        ("<a href=x><script>y</script><template>z</template>w</a>", &[("http://example.org/dir/x", "w", Local)]),
        (
            "<map><area href=x alt=' a\n b'></map><a href=z>y<area href=w></a>",
            &[
                ("http://example.org/dir/x", "a b", Local),
                ("http://example.org/dir/z", "y", Local),
                ("http://example.org/dir/w", "", Local),
            ],
        ),
        (
            "<a href=x>a</a><base href='http://example.net/b/'><base href=/ignored/><a href=y>b</a>",
            &[("http://example.net/b/x", "a", Global), ("http://example.net/b/y", "b", Global)],
        ),
        ("<base href='mailto:x'><a href=#x>a</a>", &[("http://example.org/dir/page.html#x", "a", Interior)]),
        ("<base href=/b/><a href=#x>a</a>", &[("http://example.org/b/#x", "a", Local)]),
        ("<template><a href=x>a</a><base href=/b/></template><!-- <a href=y> --><link rel=next href=z>", &[]),
        ("<svg><a href=x><text>a</text></a></svg>", &[("http://example.org/dir/x", "a", Local)]),
    ];
    for (html, expected) in cases {
        let content = read(html);
        let found: Vec<_> = content.links.iter().map(|link| (&*link.target, &*link.label, link.kind)).collect();
        assert_eq!(found, expected, "{html}");
        assert_eq!(content, oracle::read(html, PAGE, HtmlOptions::default()), "{html}");
    }
}

#[test]
fn xhtml_closes_empty_elements() {
    let xml = HtmlOptions { xml: true, ..HtmlOptions::default() };
    for (html, text) in [
        ("a<script src='x'/>b<textarea/>c<title/><iframe/>d", "ab\ncd"),
        ("a<![CDATA[<b> &amp;]]>c", "a<b> &amp;c"),
        ("a<pre/>b\nc", "a\nb c"),
    ] {
        let content = HtmlReader::default().read(html, PAGE, xml);
        assert_eq!(content.text, text, "{html}");
        assert_eq!(content, oracle::read(html, PAGE, xml), "{html}");
    }
    let content = HtmlReader::default().read("<a href=x id='y'/>b", PAGE, xml);
    assert_eq!(content.links[0].label, "");
}

#[test]
fn a_reader_forgets_the_page_before() {
    let mut reader = HtmlReader::default();
    reader.read("<title>a</title><pre>b <a href=x>c", PAGE, HtmlOptions::default());
    let html = "d\ne <a href=y>f</a>";
    assert_eq!(reader.read(html, PAGE, HtmlOptions::default()), read(html));
}

/// Ways to make a careless reader quadratic. Each must take time in proportion to its size.
#[test]
fn hostile_pages_take_linear_time() {
    let patterns = [
        "<div>",
        "</div>",
        "<",
        "</",
        "<!",
        "<!--",
        "<!-->",
        "<!--x-",
        "<!--x->",
        "<![CDATA[",
        "<?",
        "&",
        "&#",
        "&#x",
        "&a",
        "&#1",
        "&notit",
        "<script>",
        "<script><!--",
        "<script><!--<script",
        "<title>",
        "</title",
        "<title></title",
        "<textarea></textare",
        "<a href=x>",
        "<a href='../../../x'>",
        "<a href='http://[",
        "<a href=é",
        "<a href=é>",
        "<a href=../>",
        "<p a",
        "<p a=",
        "<p a='",
        "<p a=\"x\" ",
        "<svg>",
        "<svg><foreignObject>",
        "<svg><title>",
        "<svg></title>",
        "<svg><![CDATA[",
        "<svg><![CDATA[]",
        "<template>",
        "<pre>\n",
        " ",
        "\n ",
        "\0",
        "a ",
        "é",
        "<base href=x>",
        "<style></styl",
        "<plaintext>",
        "<td>",
        "<area href=x alt='",
    ];
    let mut reader = HtmlReader::default();
    let mut time = |html: &str| {
        let start = Instant::now();
        let content = reader.read(html, PAGE, HtmlOptions::default());
        (start.elapsed(), content.text.len())
    };
    for pattern in patterns {
        for prefix in ["", "<p ", "<title>", "<script>", "<!--", "<svg>", "<a href=\""] {
            let html = prefix.to_owned() + &pattern.repeat(1_000_000 / pattern.len());
            let (spent, _) = time(&html);
            // A linear reader needs a few milliseconds, a quadratic one minutes.
            assert!(spent < Duration::from_secs(5), "{prefix}{pattern}: {spent:?}");
        }
    }
    let attributes: String = (0..100_000).map(|i| format!(" a{i}=\"{i}\"")).collect();
    let (spent, _) = time(&format!("<a{attributes} href=x>y</a>"));
    assert!(spent < Duration::from_secs(5), "{spent:?}");
}

/// Pieces that open, close and confuse every state of the tokenizer.
const PIECES: &[&str] = &[
    "<",
    ">",
    "/",
    "</",
    "/>",
    "<!",
    "<!--",
    "-->",
    "--!>",
    "--",
    "-",
    "!",
    "<!-->",
    "<![CDATA[",
    "]]>",
    "]",
    "<?",
    "?>",
    "<!doctype html>",
    "=",
    "'",
    "\"",
    " ",
    "\n",
    "\t",
    "\r\n",
    "\r",
    "\x0C",
    "\0",
    "a",
    "b ",
    " c",
    "é",
    "\u{A0}",
    "\u{FEFF}",
    "\x01",
    "&",
    "&amp;",
    "&amp",
    "&lt;",
    "&#65;",
    "&#x",
    "&#10;",
    "&#13;",
    "&#0;",
    "&nbsp;",
    "&notit;",
    "&eacute",
    "&NewLine;",
    "&#128;",
    ";",
    "#",
    "x",
    "<p>",
    "</p>",
    "<div class='x'>",
    "</div>",
    "<br>",
    "<br/>",
    "</br>",
    "<td>",
    "</td>",
    "<tr>",
    "<table>",
    "<li>",
    "<span>",
    "</span>",
    "<b",
    "<a href=x>",
    "<a href=\"#y\" id=1>",
    "<A HREF='../z?a&amp;b&copy=1'>",
    "</a>",
    "<a>",
    "<a name=x>",
    "<area href=m alt=' n &amp; o'>",
    "<base href='/q/'>",
    "<base href=mailto:x>",
    "<title>",
    "</title>",
    "</title",
    "<TITLE x>",
    "<textarea>",
    "</textarea>",
    "<xmp>",
    "</xmp>",
    "<pre>",
    "</pre>",
    "<listing>",
    "<plaintext>",
    "<script>",
    "</script>",
    "</script",
    "<script ",
    "</SCRIPT/>",
    "<style>",
    "</style>",
    "<noscript>",
    "</noscript>",
    "<iframe>",
    "<iframe src=f title=' t' name=n>",
    "<frame src=g name='a b'>",
    "<frame/>",
    "<meta http-equiv=refresh content='1;url=h'>",
    "<a xlink:href=l>",
    "</iframe>",
    "<template>",
    "</template>",
    "<svg>",
    "</svg>",
    "<svg/>",
    "<math>",
    "</math>",
    "<desc>",
    "</desc>",
    "<foreignObject>",
    "</foreignobject>",
    "<path/>",
    "<p/>",
    "<style/>",
    "<title/>",
    "<foreignobject/>",
    "<section>",
    " href=k",
    " alt='",
    " x=",
    "<h1",
    "<\u{E9}",
    "<img alt='i'>",
    "<head>",
    "<ruby>",
    "</ruby>",
    "<rp>",
    "</rp>",
    "<rt>",
    "<video src=v>",
    "</video>",
    "<canvas>",
    "<canvas/>",
    "</canvas>",
    "<object>",
    "</OBJECT>",
    "<annotation>",
    "</annotation>",
    "<annotation-xml encoding=x>",
    "</annotation-xml>",
    "<link rel=canonical href=c>",
    "<link rel='x CANONICAL' href='d'>",
    "<h2>",
    "</h1>",
    "</tr>",
    "<hr>",
];

fn nasty() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..24).prop_map(|pieces| pieces.concat())
}

fn is_folded(line: &str) -> bool {
    let bytes = line.as_bytes();
    let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0C');
    !bytes.is_empty()
        && !bytes.first().is_some_and(space)
        && !bytes.last().is_some_and(space)
        && !bytes.windows(2).any(|pair| space(&pair[0]) && space(&pair[1]))
        && !bytes.contains(&b'\r')
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn nasty_pages_read_as_by_the_slow_twin(html in nasty(), xml: bool, equate_schemes: bool) {
        let options = HtmlOptions { xml, equate_schemes, keep_elements: false };
        let content = HtmlReader::default().read(&html, PAGE, options);
        prop_assert_eq!(&content, &oracle::read(&html, PAGE, options));
        prop_assert!(content.text.is_empty() || content.text.lines().all(is_folded));
    }
}
