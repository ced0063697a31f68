//! Hosts and URLs in the paths of a mirror.

use std::path::{Component, Path};

use crate::text::url::in_mirror;

/// What `wget -E` puts behind the names of pages that do not end so.
pub(crate) const HTML: &[u8] = b".html";

/// Host and port of a folder name, if it can be one: `host[:port]`; `host+port` where `:` is not allowed, `host_port`
/// by HTTrack.
pub(crate) fn split_host(name: &str) -> Option<(&str, Option<&str>)> {
    let is_port = |port: &str| (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    let (host, port) = match name.rsplit_once([':', '+']) {
        Some((host, port)) if is_port(port) => (host, Some(port)),
        Some(_) => return None,
        None => match name.rsplit_once('_') {
            Some((host, port)) if is_port(port) && is_full_host(host) => (host, Some(port)),
            _ => (name, None),
        },
    };
    let is_host = host.split('.').all(is_label) && (port.is_some() || is_full_host(host) || host == "localhost");
    is_host.then_some((host, port))
}

fn is_label(label: &str) -> bool {
    !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_')) && label.len() < 64
}

/// A domain of two labels or more, or an address.
fn is_full_host(host: &str) -> bool {
    let labels: Vec<&str> = host.split('.').collect();
    let last = labels[labels.len() - 1];
    // A last label of letters, as all top level domains have, or four numbers: `v1.2` is a version, not a host.
    let is_domain = labels.len() > 1 && (last.starts_with("xn--") || last.chars().all(char::is_alphabetic));
    let is_address = labels.len() == 4 && labels.iter().all(|part| part.parse::<u8>().is_ok());
    labels.iter().all(|label| is_label(label)) && (is_domain || is_address)
}

pub(crate) fn is_host(name: &str) -> bool {
    split_host(name).is_some()
}

/// Whether a file lies below the folder of a host.
pub(crate) fn has_host(path: &Path) -> bool {
    let names: Vec<&str> = path.iter().map(|name| name.to_str().unwrap_or_default()).collect();
    match names.as_slice() {
        ["http" | "https", host, _, ..] | [host, _, ..] => is_host(host),
        _ => false,
    }
}

/// The URL that a file of the tree was fetched from, as far as its path tells; `None` for files outside of any host.
/// `appended`: wget put `.html` behind the name itself.
pub(crate) fn url_of(path: &Path, appended: bool) -> Option<String> {
    let mut names: Vec<&[u8]> = path
        .components()
        .map(|part| match part {
            Component::Normal(name) => Some(name.as_encoded_bytes()),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let mut url = String::from("http");
    if names.len() > 2 && has_host(path) && matches!(names[0], b"http" | b"https") {
        url = String::from_utf8_lossy(names.remove(0)).into_owned();
    }
    let [host, folders @ .., file] = names.as_slice() else {
        return None;
    };
    let file = if appended { file.strip_suffix(HTML).unwrap_or(file) } else { file };
    let host = std::str::from_utf8(host).ok()?;
    url.push_str("://");
    match split_host(host) {
        Some((host, Some(port))) => url.extend([host, ":", port]),
        _ => url.push_str(host),
    }
    url.push('/');
    for folder in folders {
        encode(folder, b"", &mut url);
        url.push('/');
    }
    let (page, query) = split_query(file);
    encode(page, b"", &mut url);
    if let Some(query) = query {
        url.push('?');
        encode(query, b"?", &mut url);
    }
    // wget stores `/` as `index.html`. A page that is really called so gets the same URL, and mostly is the same page.
    Some(in_mirror(url))
}

/// File names hold the query behind `?`, or `%3F` where that is not allowed.
pub(crate) fn split_query(name: &[u8]) -> (&[u8], Option<&[u8]>) {
    for at in 0..name.len() {
        let mark = match &name[at..] {
            [b'?', ..] => 1,
            [b'%', b'3', b'F' | b'f', ..] => 3,
            _ => continue,
        };
        return (&name[..at], Some(&name[at + mark..]));
    }
    (name, None)
}

/// Percent-encodes what a URL cannot hold, but for `allowed`. Sequences that are encoded already stay: wget writes
/// some itself.
fn encode(name: &[u8], allowed: &[u8], url: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for (at, &byte) in name.iter().enumerate() {
        let keep = match byte {
            _ if allowed.contains(&byte) => true,
            b'%' => matches!(name.get(at + 1..at + 3), Some([a, b]) if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()),
            b'"' | b'#' | b'<' | b'>' | b'?' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => false,
            _ => byte.is_ascii_graphic(),
        };
        if keep {
            url.push(char::from(byte));
        } else {
            url.push('%');
            url.push(char::from(HEX[usize::from(byte >> 4)]));
            url.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        for name in [
            "example.org",
            "a.b-c.de:8080",
            "localhost",
            "127.0.0.1",
            "box:80",
            "box+8080",
            "a.org_8080",
            "www.xn--p1ai.xn--p1ai",
        ] {
            assert!(is_host(name), "{name}");
        }
        for name in
            ["", "logs", "v1.2", "2024-03-01", "a..org", ".org", "a.org:x", "a b.org", "hts-cache", "v_1", "1.2.3.4.5"]
        {
            assert!(!is_host(name), "{name}");
        }
        assert!(!has_host(Path::new("x.org")) && !has_host(Path::new("https/a.org")) && has_host(Path::new("a.org/x")));
        assert!(has_host(Path::new("https/a.org/x")) && !has_host(Path::new("https/x/y")));
    }

    #[test]
    fn urls_are_rebuilt() {
        let cases = [
            ("a.org/index.html", "http://a.org/"),
            ("a.org:8080/x/index.html", "http://a.org:8080/x/"),
            ("a.org+8080/x/y.html", "http://a.org:8080/x/y.html"),
            ("https/a.org/x.html", "https://a.org/x.html"),
            ("127.0.0.1_8765/x.html", "http://127.0.0.1:8765/x.html"),
            ("a.org/p?x=1&y=2", "http://a.org/p?x=1&y=2"),
            ("a.org/p%3Fx=1", "http://a.org/p?x=1"),
            ("a.org/index.html?x=1", "http://a.org/?x=1"),
            ("a.org/p?x=a?b%2Fc", "http://a.org/p?x=a?b%2Fc"),
            ("a.org/a b/100%/c#d.html", "http://a.org/a%20b/100%25/c%23d.html"),
            ("a.org/gr\u{fc}n", "http://a.org/gr%C3%BCn"),
            ("a.org/x%20y", "http://a.org/x%20y"),
            ("a.org/robots.txt", "http://a.org/robots.txt"),
            ("a.org/page.html.orig", "http://a.org/page.html.orig"),
        ];
        for (path, url) in cases {
            assert_eq!(url_of(Path::new(path), false).as_deref(), Some(url), "{path}");
        }
        assert_eq!(url_of(Path::new("a.org/b.php?x=1.html"), true).as_deref(), Some("http://a.org/b.php?x=1"));
        assert_eq!(url_of(Path::new("a.org/sub.html"), true).as_deref(), Some("http://a.org/sub"));
        assert_eq!(url_of(Path::new("wget-log"), false), None);
        assert_eq!(url_of(Path::new("a.org/../x"), false), None);
    }
}
