//! Bytes to text.
//!
//! The charset is the first of these that is known: byte order mark, HTTP header, `<meta>` or XML declaration within
//! the first 1024 bytes, UTF-8 if the bytes are valid UTF-8 (but for a character cut off at the end, or a few bytes that
//! others broke), a guess from the bytes and the host's top-level domain. The table of captures keeps its name, [`Rule`] says which one decided. The
//! mark itself is never part of the text; bytes that mean nothing become U+FFFD. Text that is UTF-8 already is
//! borrowed, not copied.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::html::scan;

/// How far into a page a declaration may stand: the standard's number.
const PRESCAN: usize = 1024;
/// How much of a page the guess looks at.
const SAMPLE: usize = 1 << 20;

/// What decided the charset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A byte order mark.
    Mark,
    /// The `charset` parameter of the HTTP header.
    Header,
    /// A declaration in the page.
    Declared,
    /// Valid UTF-8, but for a few bytes.
    Valid,
    Guessed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decoded<'a> {
    pub text: Cow<'a, str>,
    /// The standard's name, such as `windows-1252`.
    pub charset: &'static str,
    pub rule: Rule,
}

/// Where in a payload its charset may be declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declares {
    Nowhere,
    /// XML declaration.
    Xml,
    /// XML declaration or `<meta>`.
    Html,
}

/// `header` is the charset that HTTP states; `host` helps the guess.
#[must_use]
pub(crate) fn decode<'a>(payload: &'a [u8], header: Option<&str>, declares: Declares, host: &str) -> Decoded<'a> {
    if let Some(decoded) = by_mark(payload) {
        return decoded;
    }
    if let Some(encoding) = header.and_then(known) {
        return with(encoding, payload, Rule::Header);
    }
    let declared = match declares {
        Declares::Nowhere => None,
        Declares::Xml => xml_declaration(payload),
        Declares::Html => xml_declaration(payload).or_else(|| meta(payload)),
    };
    if let Some(encoding) = declared {
        return with(encoding, payload, Rule::Declared);
    }
    match std::str::from_utf8(payload) {
        Ok(text) => Decoded { text: Cow::Borrowed(text), charset: UTF_8.name(), rule: Rule::Valid },
        Err(error) if error.error_len().is_none() => with(UTF_8, payload, Rule::Valid),
        Err(_) if is_mostly_utf_8(payload) => with(UTF_8, payload, Rule::Valid),
        Err(_) => with(guess(payload, host), payload, Rule::Guessed),
    }
}

/// So many characters of several bytes stand against each sequence that is none. In text of other encodings bytes beyond
/// ASCII form such characters by chance only: of Latin letters hardly ever, of Chinese in GBK about one in ten.
const SOUND: usize = 4;

/// Whether bytes are UTF-8 in which a few were broken, as by a template in another encoding or a text cut in the middle of a
/// character.
fn is_mostly_utf_8(payload: &[u8]) -> bool {
    let (mut sound, mut broken) = (0, 0);
    for chunk in payload.utf8_chunks() {
        sound += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    sound >= SOUND * broken
}

/// Whether it is UTF-8 with a few broken bytes, of which nothing but the bytes tells: an earlier version read it in another
/// way.
#[must_use]
pub(crate) fn is_flawed_utf_8(payload: &[u8], content_type: Option<&str>) -> bool {
    let stated = content_type.is_some_and(|header| charset_parameter(header.as_bytes()).is_some());
    !stated && std::str::from_utf8(payload).is_err_and(|error| error.error_len().is_some()) && is_mostly_utf_8(payload)
}

fn with<'a>(encoding: &'static Encoding, payload: &'a [u8], rule: Rule) -> Decoded<'a> {
    let (text, _) = encoding.decode_without_bom_handling(payload);
    Decoded { text, charset: encoding.name(), rule }
}

/// An encoding by label, unless it is one that browsers refuse to decode.
fn known(label: &str) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(label.trim_matches(['"', '\'', ' ']).as_bytes())
}

fn by_mark(payload: &[u8]) -> Option<Decoded<'_>> {
    // The longer marks first: UTF-32 in little endian begins like UTF-16.
    if let Some(rest) = payload.strip_prefix(&[0xFF, 0xFE, 0, 0]) {
        return Some(utf_32(rest, u32::from_le_bytes, "UTF-32LE"));
    }
    if let Some(rest) = payload.strip_prefix(&[0, 0, 0xFE, 0xFF]) {
        return Some(utf_32(rest, u32::from_be_bytes, "UTF-32BE"));
    }
    let (encoding, length) = Encoding::for_bom(payload)?;
    Some(with(encoding, &payload[length..], Rule::Mark))
}

fn utf_32(rest: &[u8], order: fn([u8; 4]) -> u32, charset: &'static str) -> Decoded<'static> {
    let (units, cut) = rest.as_chunks::<4>();
    let char = |unit: &[u8; 4]| char::from_u32(order(*unit)).unwrap_or(char::REPLACEMENT_CHARACTER);
    let mut text: String = units.iter().map(char).collect();
    if !cut.is_empty() {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    Decoded { text: Cow::Owned(text), charset, rule: Rule::Mark }
}

fn guess(payload: &[u8], host: &str) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(&payload[..payload.len().min(SAMPLE)], payload.len() <= SAMPLE);
    // Lower case and ASCII, as hosts of normalised URLs are; anything else would be refused by a panic.
    let top = host.rsplit('.').next().unwrap_or_default().as_bytes();
    let usable = !top.is_empty() && top.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    detector.guess(usable.then_some(top), Utf8Detection::Deny)
}

/// A declaration that could be read byte by byte cannot be of UTF-16: the page is in UTF-8 then.
fn declared(label: &[u8]) -> Option<&'static Encoding> {
    let encoding = known(std::str::from_utf8(label).ok()?)?;
    if encoding == UTF_16LE || encoding == UTF_16BE {
        Some(UTF_8)
    } else if encoding.name() == "x-user-defined" {
        Some(WINDOWS_1252)
    } else {
        Some(encoding)
    }
}

/// `<?xml version="1.0" encoding="…"?>` at the very start.
fn xml_declaration(payload: &[u8]) -> Option<&'static Encoding> {
    let head = &payload[..payload.len().min(PRESCAN)];
    let rest = head.strip_prefix(b"<?xml")?;
    let rest = &rest[..memchr::memchr(b'>', rest)?];
    let at = memchr::memmem::find(rest, b"encoding")?;
    let rest = rest[at + 8..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (&quote, rest) = rest.split_first()?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    declared(&rest[..memchr::memchr(quote, rest)?])
}

/// The first `<meta>` that states a charset, after the standard's prescan.
fn meta(payload: &[u8]) -> Option<&'static Encoding> {
    let head = &payload[..payload.len().min(PRESCAN)];
    let mut at = 0;
    loop {
        at += memchr::memchr(b'<', &head[at..])?;
        let rest = &head[at + 1..];
        at = match rest.first()? {
            b'!' if rest.starts_with(b"!--") => scan::comment(head, at + 4),
            b'!' | b'?' => scan::bracket(head, at + 2),
            b'/' if !rest.get(1)?.is_ascii_alphabetic() => scan::bracket(head, at + 2),
            byte if byte.is_ascii_alphabetic() || *byte == b'/' => {
                let is_meta = rest.get(..4).is_some_and(|name| name.eq_ignore_ascii_case(b"meta"))
                    && rest.get(4).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'/');
                let name = rest.iter().position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'>'))?;
                let (mut charset, mut content, mut pragma) = (None, None, false);
                let end = scan::attributes(head, at + 1 + name.max(1), |name, value| {
                    let (name, value) = (&head[name], &head[value]);
                    if charset.is_none() && name.eq_ignore_ascii_case(b"charset") {
                        charset = Some(value);
                    } else if content.is_none() && name.eq_ignore_ascii_case(b"content") {
                        content = Some(value);
                    } else if name.eq_ignore_ascii_case(b"http-equiv") {
                        pragma |= value.eq_ignore_ascii_case(b"content-type");
                    }
                })?;
                if is_meta {
                    let label = charset.or_else(|| content.filter(|_| pragma).and_then(charset_parameter));
                    if let Some(encoding) = label.and_then(declared) {
                        return Some(encoding);
                    }
                }
                end.at
            }
            _ => at + 1,
        };
    }
}

/// The value of `charset=` in a content type.
pub(super) fn charset_parameter(content_type: &[u8]) -> Option<&[u8]> {
    let mut rest = content_type;
    loop {
        let at = rest.windows(7).position(|window| window.eq_ignore_ascii_case(b"charset"))?;
        rest = rest[at + 7..].trim_ascii_start();
        let Some(value) = rest.strip_prefix(b"=") else { continue };
        let value = value.trim_ascii_start();
        return match value.first()? {
            quote @ (b'"' | b'\'') => {
                let value = &value[1..];
                Some(&value[..memchr::memchr(*quote, value)?])
            }
            _ => {
                let end = value.iter().position(|byte| byte.is_ascii_whitespace() || matches!(byte, b';' | b','));
                Some(&value[..end.unwrap_or(value.len())])
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn html(payload: &[u8], header: Option<&str>) -> (String, &'static str, Rule) {
        let decoded = decode(payload, header, Declares::Html, "example.org");
        (decoded.text.into_owned(), decoded.charset, decoded.rule)
    }

    #[test]
    fn the_first_rule_that_knows_decides() {
        for (payload, header, text, charset, rule) in [
            (&b"\xEF\xBB\xBFa"[..], Some("latin1"), "a", "UTF-8", Rule::Mark),
            (b"\xFF\xFEa\0\xE9\0", Some("utf-8"), "aé", "UTF-16LE", Rule::Mark),
            (b"\xFE\xFF\0a\0\xE9", None, "aé", "UTF-16BE", Rule::Mark),
            (b"\xFF\xFE\0\0a\0\0\0\0\xF6\x01\0", None, "a😀", "UTF-32LE", Rule::Mark),
            (b"\0\0\xFE\xFF\0\0\0a\0", None, "a\u{FFFD}", "UTF-32BE", Rule::Mark),
            (b"\xE9", Some("ISO-8859-1"), "é", "windows-1252", Rule::Header),
            (b"\xE9<meta charset=utf-8>", Some("\"latin1\""), "é<meta charset=utf-8>", "windows-1252", Rule::Header),
            (b"\xC3\xA9", Some("nonsense"), "é", "UTF-8", Rule::Valid),
            (b"\xC3\xA9", Some("iso-2022-kr"), "é", "UTF-8", Rule::Valid),
            (b"a\xFFb", Some("utf-8"), "a\u{FFFD}b", "UTF-8", Rule::Header),
            (b"a\xC3", None, "a\u{FFFD}", "UTF-8", Rule::Valid),
            (b"", None, "", "UTF-8", Rule::Valid),
        ] {
            assert_eq!(html(payload, header), (text.to_owned(), charset, rule), "{payload:?} {header:?}");
        }
    }

    #[test]
    fn declarations() {
        for (payload, charset) in [
            ("<meta charset=windows-1251>", Some("windows-1251")),
            ("<html><head><META  CharSet = 'KOI8-R' >", Some("KOI8-R")),
            ("<meta http-equiv=content-type content='text/html; charset=shift_jis'>", Some("Shift_JIS")),
            ("<meta content='text/html;charset=\"gbk\"' http-equiv=Content-Type>", Some("GBK")),
            ("<meta content='text/html;charset=gbk'>", None),
            ("<meta charset=utf-16le>", Some("UTF-8")),
            ("<meta charset=x-user-defined>", Some("windows-1252")),
            ("<!-- <meta charset=gbk> --><meta charset=big5>", Some("Big5")),
            ("<p title='<meta charset=gbk>'><meta charset=big5>", Some("Big5")),
            ("</p title='>' <meta><meta charset=big5>", Some("Big5")),
            ("<metax charset=gbk>", None),
            ("<meta charset=nonsense><meta charset=big5>", Some("Big5")),
            ("<?xml version='1.0' encoding=\"iso-8859-2\"?>", Some("ISO-8859-2")),
            (" <?xml version='1.0' encoding=\"iso-8859-2\"?>", None),
            ("<?xml version='1.0'?><meta charset=big5>", Some("Big5")),
            ("<meta charset=", None),
            ("<meta", None),
            ("</", None),
            ("<", None),
        ] {
            let (_, found, rule) = html(payload.as_bytes(), None);
            assert_eq!((rule == Rule::Declared).then_some(found), charset, "{payload}");
        }
        let far = " ".repeat(PRESCAN) + "<meta charset=big5>";
        assert_eq!(html(far.as_bytes(), None).2, Rule::Valid);
        // JSON and plain text declare nothing.
        let decoded = decode(b"<meta charset=big5>", None, Declares::Nowhere, "");
        assert_eq!(decoded.rule, Rule::Valid);
        assert_eq!(decode(b"<meta charset=big5>", None, Declares::Xml, "").rule, Rule::Valid);
    }

    #[test]
    fn the_rest_is_guessed() {
        let russian = "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему.";
        let (bytes, _, _) = encoding_rs::WINDOWS_1251.encode(russian);
        let decoded = decode(&bytes, None, Declares::Html, "example.ru");
        assert_eq!((decoded.charset, decoded.rule, &*decoded.text), ("windows-1251", Rule::Guessed, russian));
        // A host that is no domain must not stop it.
        for host in ["", "[::1]", "1.2.3.4", "EXAMPLE.RU", "b\u{FC}cher"] {
            assert_eq!(decode(&bytes, None, Declares::Html, host).text, russian);
        }
    }

    #[test]
    fn a_few_broken_bytes_leave_utf_8_what_it_is() {
        let page = "Größe, Öl, Füße, ärgerlich, naïve, café";
        for broken in [&b"\xE9"[..], b"\xFF", b"\xC3", b"\xE2\x82"] {
            let payload = [page.as_bytes(), broken, b" and so on"].concat();
            let decoded = decode(&payload, None, Declares::Html, "example.de");
            assert_eq!((decoded.charset, decoded.rule), ("UTF-8", Rule::Valid), "{broken:?}");
            assert_eq!(decoded.text, format!("{page}\u{FFFD} and so on"));
            assert!(is_flawed_utf_8(&payload, Some("text/html")));
            assert!(!is_flawed_utf_8(&payload, Some("text/html; charset=latin1")), "there the header decides");
        }
        assert!(!is_flawed_utf_8(page.as_bytes(), None) && !is_flawed_utf_8(b"a\xC3", None));
        // One of each is no sign.
        assert_eq!(decode(b"caf\xC3\xA9 \xE9 x", None, Declares::Html, "").rule, Rule::Guessed);
    }

    #[test]
    fn other_encodings_are_not_taken_for_it() {
        use encoding_rs::{BIG5, EUC_JP, EUC_KR, GBK, KOI8_R, SHIFT_JIS, WINDOWS_1251, WINDOWS_1253};
        for (encoding, text) in [
            (WINDOWS_1252, "Größe, Öl, Füße: »naïve« Café, ÃƒÂ© Ã©tÃ©"),
            (WINDOWS_1251, "Все счастливые семьи похожи друг на друга, каждая несчастливая семья"),
            (KOI8_R, "Все счастливые семьи похожи друг на друга, каждая несчастливая семья"),
            (WINDOWS_1253, "Όλες οι ευτυχισμένες οικογένειες μοιάζουν"),
            (SHIFT_JIS, "幸福な家庭はすべて互いに似かよったものであり"),
            (EUC_JP, "幸福な家庭はすべて互いに似かよったものであり"),
            (GBK, "幸福的家庭都是相似的，不幸的家庭各有各的不幸"),
            (BIG5, "幸福的家庭都是相似的，不幸的家庭各有各的不幸"),
            (EUC_KR, "행복한 가정은 모두 모습이 비슷하고 불행한 가정은"),
        ] {
            let (bytes, _, lossy) = encoding.encode(text);
            assert!(!lossy && !is_mostly_utf_8(&bytes), "{}", encoding.name());
        }
    }

    #[test]
    fn utf_8_is_borrowed() {
        let page = "<p>é".as_bytes();
        for header in [None, Some("utf-8")] {
            assert!(matches!(decode(page, header, Declares::Html, "").text, Cow::Borrowed(_)));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_text(
            payload in prop::collection::vec(any::<u8>(), 0..80),
            text in "[<meta chars='utf8>/!?xl\u{FEFF}-]{0,60}",
            header in prop::option::of("(utf-8|utf-16|gbk|x)"),
        ) {
            let _ = decode(&payload, header.as_deref(), Declares::Html, "a.jp");
            let decoded = decode(text.as_bytes(), None, Declares::Nowhere, "");
            prop_assert_eq!(&*decoded.text, text.strip_prefix('\u{FEFF}').unwrap_or(&text));
        }
    }
}
