//! Which URL a page has: one spelling for each.
//!
//! Two captures are of the same page if their URLs are equal after [`normalise`]: http and https only, without
//! fragment and credentials, in the spelling of the URL standard (crate `url`). Nothing else is guessed: case of the
//! path, order of the query, a trailing slash all count. With `equate_schemes` an https URL takes the spelling of its
//! http twin, which is the older of the two: a corpus that begins before a site's move keeps its URLs.
//!
//! Parsing costs some hundred nanoseconds, and most URLs are normal already: `is_plain` knows those by one look at
//! each byte.

use thiserror::Error;
use url::Url;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum UrlError {
    #[error("not a URL: {0}")]
    Invalid(url::ParseError),
    #[error("scheme `{0}` is not http or https")]
    Scheme(String),
    #[error("a URL of {0} bytes, more than {LONGEST_URL}")]
    TooLong(usize),
}

/// Every row about a page repeats its URL. Servers refuse a tenth of this.
pub(crate) const LONGEST_URL: usize = 64 << 10;

/// The identity of a URL. Blanks and one pair of angle brackets around it are dropped: some archives write them.
pub(crate) fn normalise(raw: &str, equate_schemes: bool) -> Result<String, UrlError> {
    let mut raw = raw.trim_ascii();
    if let Some(inner) = raw.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
        raw = inner.trim_ascii();
    }
    if raw.len() > LONGEST_URL {
        return Err(UrlError::TooLong(raw.len()));
    }
    let plain = raw.split_once('#').map_or(raw, |(before, _)| before);
    if is_plain(plain) {
        return Ok(match plain.strip_prefix("https") {
            Some(rest) if equate_schemes => format!("http{rest}"),
            _ => plain.to_owned(),
        });
    }
    let mut url = Url::parse(raw).map_err(UrlError::Invalid)?;
    if !is_web(&url) {
        return Err(UrlError::Scheme(url.scheme().to_owned()));
    }
    url.set_fragment(None);
    // These cannot fail, since an http URL has a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let url = String::from(url);
    Ok(if equate_schemes { equate(url) } else { url })
}

/// The page that a normalised URL names in a mirror, which keeps a folder's own page as `index.html`: there both are one
/// page, named by the folder. Of what comes with headers, as in WARC, they may be two, and stay so.
#[must_use]
pub(crate) fn in_mirror(url: String) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    match url[..end].strip_suffix("index.html").filter(|folder| folder.ends_with('/') && !folder.ends_with("://")) {
        Some(folder) => format!("{folder}{}", &url[end..]),
        None => url,
    }
}

/// The host of a normalised URL, without port; empty if there is none. It is asked for every capture and page, so that bytes
/// are looked for, not strings.
#[must_use]
pub(crate) fn host(url: &str) -> &str {
    let after_scheme = match memchr::memchr(b':', url.as_bytes()) {
        Some(colon) if url[colon..].starts_with("://") => Some(colon),
        _ => url.find("://"),
    };
    let Some(colon) = after_scheme else { return "" };
    let rest = &url[colon + "://".len()..];
    let authority = &rest[..memchr::memchr3(b'/', b'?', b'#', rest.as_bytes()).unwrap_or(rest.len())];
    let host = &authority[memchr::memrchr(b'@', authority.as_bytes()).map_or(0, |at| at + 1)..];
    match memchr::memrchr(b':', host.as_bytes()) {
        // Not a colon inside the brackets of an IPv6 address.
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    }
}

/// The http spelling of a normalised https URL; other URLs as they are.
#[must_use]
pub(crate) fn equate(url: String) -> String {
    let Some(rest) = url.strip_prefix("https://") else {
        return url;
    };
    // Port 80 is written out under https and must not be under http.
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let kept = rest[..authority].strip_suffix(":80").unwrap_or(&rest[..authority]);
    format!("http://{kept}{}", &rest[authority..])
}

pub(super) fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

const PATH: u8 = 1;
const QUERY: u8 = 2;
const FRAGMENT: u8 = 4;
const HOST: u8 = 8;

/// In which parts a byte stays as it is under the URL standard's parser. Narrower than the standard where
/// implementations differ.
static STAYS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0u8;
    while byte < 128 {
        table[byte as usize] = match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' => PATH | QUERY | FRAGMENT | HOST,
            b'A'..=b'Z'
            | b'_'
            | b'~'
            | b'!'
            | b'$'
            | b'&'
            | b'('
            | b')'
            | b'*'
            | b'+'
            | b','
            | b';'
            | b'='
            | b':'
            | b'@'
            | b'/'
            | b'%' => PATH | QUERY | FRAGMENT,
            b'\'' => PATH | FRAGMENT,
            b'?' => QUERY | FRAGMENT,
            _ => 0,
        };
        byte += 1;
    }
    table
};

/// Whether the URL standard's parser keeps `tail`, a path with what follows it, byte for byte. The tail begins with a
/// slash, or follows a URL that ends with one. False is always safe: the caller then asks the real parser.
pub(super) fn is_plain_tail(tail: &[u8]) -> bool {
    let mut part = PATH;
    // Dots at the start of a segment may be `.` or `..`, in any of their escaped spellings.
    if may_be_dots(tail, 0) {
        return false;
    }
    for (at, &byte) in tail.iter().enumerate() {
        if STAYS[usize::from(byte)] & part == 0 {
            part = match (byte, part) {
                (b'?', PATH) => QUERY,
                (b'#', PATH | QUERY) => FRAGMENT,
                _ => return false,
            };
        } else if byte == b'/' && part == PATH && may_be_dots(tail, at + 1) {
            return false;
        }
    }
    true
}

fn may_be_dots(tail: &[u8], segment: usize) -> bool {
    match tail.get(segment) {
        Some(b'.') => true,
        Some(b'%') => tail.get(segment + 1) == Some(&b'2'),
        _ => false,
    }
}

/// Whether an absolute URL is its own normal form. It is known for http and https with a plain DNS name, without port
/// or credentials. False is always safe.
pub(super) fn is_plain(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http").map(|rest| rest.strip_prefix('s').unwrap_or(rest)) else {
        return false;
    };
    rest.strip_prefix("://").is_some_and(|rest| is_plain_authority_and_tail(rest.as_bytes()))
}

fn is_plain_authority_and_tail(rest: &[u8]) -> bool {
    let Some(slash) = memchr::memchr(b'/', rest) else {
        return false;
    };
    let host = &rest[..slash];
    let mut label = 0;
    for (at, &byte) in host.iter().enumerate() {
        if STAYS[usize::from(byte)] & HOST == 0 {
            return false;
        }
        if byte == b'.' {
            if label == at {
                return false;
            }
            label = at + 1;
        } else if at == label && host[at..].starts_with(b"xn--") {
            return false;
        }
    }
    // A last label that starts with a digit may be an IPv4 address in one of its many spellings.
    host.get(label).is_some_and(u8::is_ascii_lowercase) && is_plain_tail(&rest[slash..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_spelling_for_each_page() {
        for (raw, expected) in [
            ("http://example.org", "http://example.org/"),
            ("HTTP://EXAMPLE.org:80/A?b#c", "http://example.org/A?b"),
            ("https://example.org:443/", "https://example.org/"),
            ("https://example.org:80/", "https://example.org:80/"),
            ("http://user:secret@example.org/a", "http://example.org/a"),
            (" <http://example.org/a b> ", "http://example.org/a%20b"),
            ("http://example.org/a/../b/./c", "http://example.org/b/c"),
            ("http://example.org/a/%2e%2e/b", "http://example.org/b"),
            ("http://b\u{FC}cher.example/\u{E9}?\u{E9}", "http://xn--bcher-kva.example/%C3%A9?%C3%A9"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://[::1]:8080/x", "http://[::1]:8080/x"),
            ("http://example.org/?", "http://example.org/?"),
            ("http://example.org/a'b?c'd", "http://example.org/a'b?c%27d"),
        ] {
            assert_eq!(normalise(raw, false).as_deref(), Ok(expected), "{raw}");
        }
    }

    #[test]
    fn schemes_are_equated_on_demand() {
        for (raw, expected) in [
            ("https://example.org/a", "http://example.org/a"),
            ("https://example.org:80/a", "http://example.org/a"),
            ("https://example.org:8443/a?b=:80", "http://example.org:8443/a?b=:80"),
            ("http://example.org/a", "http://example.org/a"),
        ] {
            assert_eq!(normalise(raw, true).as_deref(), Ok(expected), "{raw}");
            let once = normalise(raw, true).unwrap();
            assert_eq!(normalise(&once, true).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn what_is_no_web_page_is_refused() {
        assert_eq!(normalise("ftp://example.org/", false), Err(UrlError::Scheme("ftp".into())));
        assert_eq!(normalise("mailto:a@example.org", false), Err(UrlError::Scheme("mailto".into())));
        assert!(matches!(normalise("/a", false), Err(UrlError::Invalid(_))));
        assert!(matches!(normalise("http://", false), Err(UrlError::Invalid(_))));
        assert!(matches!(normalise("", false), Err(UrlError::Invalid(_))));
    }

    #[test]
    fn hosts() {
        for (url, expected) in [
            ("http://example.org/", "example.org"),
            ("http://example.org:81/a@b:c", "example.org"),
            ("http://u:p@example.org:81/", "example.org"),
            ("http://[::1]/", "[::1]"),
            ("http://[::1]:80/", "[::1]"),
            ("nothing", ""),
            ("a:b://c/", "c"),
        ] {
            assert_eq!(host(url), expected, "{url}");
        }
    }

    /// The same by parts of strings.
    fn host_by_parts(url: &str) -> &str {
        let Some((_, rest)) = url.split_once("://") else { return "" };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        match host.rfind(':') {
            Some(colon) if !host[colon..].contains(']') => &host[..colon],
            _ => host,
        }
    }

    fn urls() -> impl Strategy<Value = String> {
        (
            prop_oneof!["http://", "https://", "HTTP://", "http:/"],
            prop_oneof![
                "[a-z0-9.-]{1,6}",
                "example.org",
                "xn--[a-z]{2}.org",
                "a.0x1",
                "a.1",
                "a..b",
                "a.",
                "u@h.org",
                "h.org:8",
                "H.org"
            ],
            "(/(\\.|\\.\\.|%2e|%2E.|a|B|'|\"|\\^|\\||%|%zz|\\\\|`|\\{|~|:|@|é|;|=|\t| ){0,3}){0,4}",
            "(\\?[a'\"?/#%é|^`{\\\\]{0,4})?",
            "(#[a'\"?/#%é|^`{\\\\<>]{0,4})?",
        )
            .prop_map(|(scheme, host, path, query, fragment)| scheme + &host + &path + &query + &fragment)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn plain_urls_are_what_the_parser_makes_of_them(url in urls()) {
            if is_plain(&url) {
                let parsed = Url::parse(&url).map(String::from);
                prop_assert_eq!(parsed.as_deref(), Ok(url.as_str()));
            }
        }

        #[test]
        fn hosts_are_found_by_bytes(url in urls(), any in "[a:/@?#\\[\\]é]{0,12}") {
            for url in [url, any] {
                prop_assert_eq!(host(&url), host_by_parts(&url));
            }
        }

        #[test]
        fn the_identity_is_a_fixed_point(url in urls(), equate_schemes: bool) {
            if let Ok(once) = normalise(&url, equate_schemes) {
                let twice = normalise(&once, equate_schemes);
                prop_assert_eq!(twice.as_deref(), Ok(once.as_str()));
                let parsed = Url::parse(&once).unwrap();
                prop_assert_eq!(parsed.host_str(), Some(host(&once)));
                prop_assert!(parsed.fragment().is_none() && parsed.username().is_empty());
            }
        }
    }
}
