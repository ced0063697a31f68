//! A `wget --mirror` tree: `host[:port]/path`, or `scheme/host[:port]/path` with `--protocol-directories`.
//!
//! A mirror keeps neither headers nor fetch times, so URLs are rebuilt from paths and times come from the files:
//! a modification time is taken for the fetch time if it lies after the previous snapshot and not after this one; else
//! (a copied tree, a page last modified long ago, a first snapshot) the snapshot's own time is all that is known.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use fs_err::File;

use crate::model::{Body, RawCapture, Reject, TimeSource, Timestamp};

use super::CaptureReader;
use super::walk::{SourceFile, reject};

/// When the captures of a mirror can have been made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    pub(super) previous: Option<Timestamp>,
    pub(super) time: Option<Timestamp>,
}

impl Window {
    fn fetched_at(self, modified: Option<Timestamp>) -> Option<(Timestamp, TimeSource)> {
        let time = self.time?;
        match (self.previous, modified) {
            (Some(previous), Some(modified)) if previous < modified && modified <= time => {
                Some((modified, TimeSource::Mtime))
            }
            _ => Some((time, TimeSource::Snapshot)),
        }
    }
}

pub(super) struct MirrorReader {
    root: PathBuf,
    files: Arc<[SourceFile]>,
    next: usize,
    window: Window,
    bytes_read: u64,
}

impl MirrorReader {
    pub(super) fn new(root: PathBuf, files: Arc<[SourceFile]>, window: Window) -> Self {
        Self { root, files, next: 0, window, bytes_read: 0 }
    }
}

impl Iterator for MirrorReader {
    type Item = Result<RawCapture, Reject>;

    fn next(&mut self) -> Option<Self::Item> {
        let file = self.files.get(self.next)?;
        self.next += 1;
        self.bytes_read += file.bytes;
        let Some(url) = url_of(&file.path) else {
            return Some(Err(reject(&file.path, "path has no host")));
        };
        let path = self.root.join(&file.path);
        if let Err(error) = File::open(&path) {
            return Some(Err(Reject { url: Some(url), ..reject(&file.path, error.to_string()) }));
        }
        Some(Ok(RawCapture {
            url,
            fetched_at: self.window.fetched_at(file.modified),
            status: None,
            content_type: None,
            content_encoding: None,
            transfer_encoding: None,
            last_modified: None,
            etag: None,
            archive_digest: None,
            revisit: None,
            body: Body::File(path),
            truncated: None,
            source_file: file.name(),
            source_offset: 0,
        }))
    }
}

impl CaptureReader for MirrorReader {
    fn name(&self) -> &'static str {
        "."
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read
    }
}

/// Whether a folder name can be `host[:port]`; `host+port` is how names look where `:` is not allowed.
pub(super) fn is_host(name: &str) -> bool {
    let port = |port: &str| (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    let (host, has_port) = match name.rsplit_once([':', '+']) {
        Some((host, digits)) if port(digits) => (host, true),
        Some(_) => return false,
        None => (name, false),
    };
    let label = |label: &str| {
        !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_')) && label.len() < 64
    };
    let labels: Vec<&str> = host.split('.').collect();
    if !labels.iter().all(|name| label(name)) {
        return false;
    }
    let last = labels[labels.len() - 1];
    // A last label of letters, as all top level domains have, or four numbers: `v1.2` is a version, not a host.
    let is_domain = labels.len() > 1 && (last.starts_with("xn--") || last.chars().all(char::is_alphabetic));
    let is_address = labels.len() == 4 && labels.iter().all(|part| part.parse::<u8>().is_ok());
    has_port || is_domain || is_address || host == "localhost"
}

/// Whether a file lies below the folder of a host.
pub(super) fn has_host(path: &Path) -> bool {
    let names: Vec<&str> = path.iter().map(|name| name.to_str().unwrap_or_default()).collect();
    match names.as_slice() {
        ["http" | "https", host, _, ..] | [host, _, ..] => is_host(host),
        _ => false,
    }
}

/// The URL that a file of the tree was fetched from, as far as its path tells; `None` for files outside of any host.
pub(super) fn url_of(path: &Path) -> Option<String> {
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
    let host = std::str::from_utf8(host).ok()?;
    url.push_str("://");
    url.push_str(&if host.contains(':') { host.to_owned() } else { host.replacen('+', ":", 1) });
    url.push('/');
    for folder in folders {
        encode(folder, b"", &mut url);
        url.push('/');
    }
    let (page, query) = split_query(file);
    // wget stores `/` under this name. A page that really has it becomes the same page, as it mostly is.
    if page != b"index.html" {
        encode(page, b"", &mut url);
    }
    if let Some(query) = query {
        url.push('?');
        encode(query, b"?", &mut url);
    }
    Some(url)
}

/// File names hold the query behind `?`, or `%3F` where that is not allowed.
fn split_query(name: &[u8]) -> (&[u8], Option<&[u8]>) {
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
        for name in
            ["example.org", "a.b-c.de:8080", "localhost", "127.0.0.1", "box:80", "box+8080", "www.xn--p1ai.xn--p1ai"]
        {
            assert!(is_host(name), "{name}");
        }
        for name in ["", "logs", "v1.2", "2024-03-01", "a..org", ".org", "a.org:x", "a b.org", "hts-cache", "1.2.3.4.5"]
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
            assert_eq!(url_of(Path::new(path)).as_deref(), Some(url), "{path}");
        }
        assert_eq!(url_of(Path::new("wget-log")), None);
        assert_eq!(url_of(Path::new("a.org/../x")), None);
    }

    #[test]
    fn mtimes_count_between_two_snapshots() {
        let t = |n: i64| Some(Timestamp(n));
        let window = Window { previous: t(10), time: t(20) };
        assert_eq!(window.fetched_at(t(15)), Some((Timestamp(15), TimeSource::Mtime)));
        assert_eq!(window.fetched_at(t(20)), Some((Timestamp(20), TimeSource::Mtime)));
        for outside in [t(10), t(5), t(21), None] {
            assert_eq!(window.fetched_at(outside), Some((Timestamp(20), TimeSource::Snapshot)));
        }
        let first = Window { previous: None, time: t(20) };
        assert_eq!(first.fetched_at(t(15)), Some((Timestamp(20), TimeSource::Snapshot)));
        assert_eq!(Window::default().fetched_at(t(15)), None);
    }
}
