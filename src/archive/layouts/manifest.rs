//! `manifest.jsonl`: a snapshot as files of any names, and one JSON object a line that says what each of them is.
//!
//! `url` and `file` (relative to the snapshot folder) are required; `fetched_at`, `last_modified` (RFC 3339, or as HTTP
//! writes dates), `etag`, `status` and `content_type` are optional, other keys are ignored. A line may lack its `file`
//! where its `status` says that there is no page to keep: 304, 404, 410, a redirect, a server's error. A line is used
//! whole or rejected whole, with its number. The manifest is streamed; the files are left to whoever processes the
//! captures.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use fs_err::File;
use serde::Deserialize;

use crate::archive::detect::{Print, Search};
use crate::archive::part::{Opening, SnapshotPart};
use crate::archive::sniff::FileKind;
use crate::archive::tree::Tree;
use crate::archive::walk::SourceFile;
use crate::archive::{CaptureReader, is_http};
use crate::model::said::json_problem;
use crate::model::{Body, Loss, RawCapture, Reject, TimeSource, Timestamp};

use super::{Layout, Rules, claim};

/// Name of the manifest, at the top of the snapshot folder.
const MANIFEST: &str = "manifest.jsonl";
/// A longer line is no manifest line.
const MAX_LINE: u64 = 1 << 20;

pub(crate) struct Manifest;

impl Rules for Manifest {
    fn expected(&self) -> &'static str {
        "a manifest.jsonl"
    }

    fn evidence(&self, _files: &[SourceFile]) -> String {
        "it has a manifest.jsonl".to_owned()
    }

    /// What a manifest names is a body, even if it looks like an archive.
    fn set_aside(&self, search: &Search<'_>, archives: &mut Vec<usize>) {
        let files = &search.walk.files;
        if !files.iter().any(is_manifest) {
            return;
        }
        let may_be = |at: &&usize| {
            matches!(search.kind(**at), Ok(FileKind::Records(..) | FileKind::Zip))
                || claim(&files[**at].name()).is_some()
        };
        let candidates: BTreeSet<PathBuf> = archives.iter().filter(may_be).map(|at| files[*at].path.clone()).collect();
        if !candidates.is_empty() {
            let bodies = named(search.root, &candidates);
            archives.retain(|at| !bodies.contains(&files[*at].path));
        }
    }

    /// A manifest is read before all others, and every file that is not an archive counts as one of its own.
    fn find(&self, search: &mut Search<'_>, _archives: &[usize]) {
        let files = &search.walk.files;
        if !files.iter().any(is_manifest) {
            return;
        }
        search.add_first(Layout::Manifest, ManifestPart);
        for (at, file) in files.iter().enumerate() {
            if !search.is_used(at) {
                search.take(at, if is_manifest(file) { Print::Whole } else { Print::Size });
            }
        }
    }
}

fn is_manifest(file: &SourceFile) -> bool {
    file.path == Path::new(MANIFEST)
}

#[derive(Debug)]
struct ManifestPart;

impl SnapshotPart for ManifestPart {
    fn readers(&self, opening: &Opening<'_>) -> Vec<Box<dyn CaptureReader>> {
        vec![Box::new(ManifestReader::new(opening.root.to_path_buf(), opening.real_root.to_path_buf()))]
    }
}

#[derive(Deserialize)]
struct Line {
    url: String,
    file: Option<String>,
    fetched_at: Option<String>,
    last_modified: Option<String>,
    etag: Option<String>,
    status: Option<u16>,
    content_type: Option<String>,
}

/// As much of a line as tells which file it names.
#[derive(Deserialize)]
struct Named {
    file: String,
}

struct ManifestReader {
    root: PathBuf,
    tree: Tree,
    lines: Option<BufReader<File>>,
    opened: bool,
    number: u64,
    bytes_read: u64,
}

impl ManifestReader {
    fn new(root: PathBuf, real_root: PathBuf) -> Self {
        let tree = Tree::new(root.clone(), real_root);
        Self { root, tree, lines: None, opened: false, number: 0, bytes_read: 0 }
    }

    fn reject(&self, url: Option<String>, reason: impl Into<String>) -> Reject {
        let source_offset = (self.number > 0).then_some(self.number);
        Reject { source_file: MANIFEST.to_owned(), source_offset, url, reason: reason.into(), lost: Loss::Nothing }
    }

    /// The next line that is not blank, without its end.
    fn next_line(&mut self) -> Option<Result<Vec<u8>, Reject>> {
        loop {
            let lines = self.lines.as_mut()?;
            self.number += 1;
            let mut line = Vec::new();
            let result = lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).and_then(|taken| {
                let whole = line.ends_with(b"\n") || (taken as u64) < MAX_LINE;
                let rest = if whole { 0 } else { lines.skip_until(b'\n')? };
                Ok((whole, taken + rest))
            });
            match result {
                Ok((_, 0)) => {
                    self.lines = None;
                    return None;
                }
                Ok((whole, taken)) => {
                    self.bytes_read += taken as u64;
                    if !whole {
                        return Some(Err(self.reject(None, format!("line is longer than {MAX_LINE} bytes"))));
                    }
                }
                Err(error) => {
                    self.lines = None;
                    return Some(Err(Reject { lost: Loss::Rest, ..self.reject(None, error.to_string()) }));
                }
            }
            if self.number == 1 && line.starts_with(b"\xef\xbb\xbf") {
                line.drain(..3);
            }
            if !line.trim_ascii().is_empty() {
                return Some(Ok(line));
            }
        }
    }

    fn capture(&mut self, line: &[u8]) -> Result<RawCapture, Reject> {
        let line: Line = serde_json::from_slice(line).map_err(|error| {
            // Only the last line of a manifest that was cut has no end.
            let lost = if line.ends_with(b"\n") { Loss::Nothing } else { Loss::Captures };
            Reject { lost, ..self.reject(None, json_problem(&error)) }
        })?;
        let reject = |reason: String| self.reject(Some(line.url.clone()), reason);
        if !is_http(&line.url) {
            return Err(reject("url is not http or https".to_owned()));
        }
        let time = |key: &str, value: &Option<String>| match value {
            None => Ok(None),
            Some(text) => match Timestamp::parse_rfc3339(text).or_else(|| Timestamp::parse_http(text)) {
                Some(time) => Ok(Some((time, TimeSource::Manifest))),
                None => Err(reject(format!(
                    "{key} '{text}' is no time such as 2024-03-01T12:00:00Z or Fri, 01 Mar 2024 12:00:00 GMT"
                ))),
            },
        };
        let fetched_at = time("fetched_at", &line.fetched_at)?;
        let last_modified = time("last_modified", &line.last_modified)?;
        let body = match &line.file {
            Some(file) => {
                let located = self.tree.locate(file);
                let (path, bytes) = located.map_err(|reason| self.reject(Some(line.url.clone()), reason))?;
                self.bytes_read += bytes;
                Body::File(path)
            }
            None if line.status.is_some_and(tells_without_body) => Body::None,
            None => return Err(reject("no `file`, which only a status that brings no page may lack".to_owned())),
        };
        Ok(RawCapture {
            url: line.url,
            fetched_at,
            status: line.status,
            content_type: line.content_type,
            content_encoding: None,
            transfer_encoding: None,
            last_modified,
            etag: line.etag,
            wall: None,
            mirrored: false,
            archive_digest: None,
            revisit: None,
            body,
            truncated: None,
            source_file: MANIFEST.to_owned(),
            source_offset: self.number,
        })
    }
}

/// Whether an answer with this status says all there is to say without a body: as before, gone, elsewhere, an error.
fn tells_without_body(status: u16) -> bool {
    status >= 300
}

/// Which of these paths, relative to the snapshot folder, the manifest names.
fn named(root: &Path, candidates: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut reader = ManifestReader::new(root.to_path_buf(), root.to_path_buf());
    reader.opened = true;
    reader.lines = File::open(root.join(MANIFEST)).ok().map(BufReader::new);
    while let Some(line) = reader.next_line() {
        let Some(line) = line.ok().and_then(|line| serde_json::from_slice::<Named>(&line).ok()) else { continue };
        // Lines may write `./x`; the paths of files here have no `.` in them.
        let path: PathBuf = Path::new(&line.file).components().filter(|part| *part != Component::CurDir).collect();
        if candidates.contains(&path) {
            found.insert(path);
        }
    }
    found
}

impl Iterator for ManifestReader {
    type Item = Result<RawCapture, Reject>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.opened {
            self.opened = true;
            match File::open(self.root.join(MANIFEST)) {
                Ok(file) => self.lines = Some(BufReader::new(file)),
                Err(error) => return Some(Err(self.reject(None, error.to_string()))),
            }
        }
        let line = self.next_line()?;
        Some(line.and_then(|line| self.capture(&line)))
    }
}

impl CaptureReader for ManifestReader {
    fn name(&self) -> &str {
        MANIFEST
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn read(root: &Path) -> Vec<Result<RawCapture, Reject>> {
        ManifestReader::new(root.to_path_buf(), fs_err::canonicalize(root).unwrap()).collect()
    }

    fn folder(manifest: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir(folder.path().join("pages")).unwrap();
        fs_err::write(folder.path().join("pages/a.html"), "<p>a").unwrap();
        fs_err::write(folder.path().join(MANIFEST), manifest).unwrap();
        folder
    }

    #[test]
    fn all_keys_arrive() {
        let folder = folder(concat!(
            "\u{feff}{\"url\":\"http://a/\",\"file\":\"pages/a.html\",\"fetched_at\":\"2024-03-01T12:00:00+01:00\",",
            "\"last_modified\":\"2024-02-01T00:00:00Z\",\"etag\":\"\\\"x\\\"\",\"status\":200,",
            "\"content_type\":\"text/html; charset=utf-8\",\"by\":\"someone\"}\r\n\n",
            "{\"url\":\"https://b/\",\"file\":\"./pages/a.html\",\"status\":null}",
        ));
        let captures: Vec<_> = read(folder.path()).into_iter().map(Result::unwrap).collect();
        let [a, b] = captures.as_slice() else { panic!("{captures:?}") };
        assert_eq!(a.url, "http://a/");
        assert_eq!(a.fetched_at.unwrap().0.to_string(), "2024-03-01T11:00:00Z");
        assert_eq!(a.fetched_at.unwrap().1, TimeSource::Manifest);
        assert_eq!(a.last_modified.unwrap().1, TimeSource::Manifest);
        assert_eq!((a.etag.as_deref(), a.status), (Some("\"x\""), Some(200)));
        assert_eq!(a.content_type.as_deref(), Some("text/html; charset=utf-8"));
        assert_eq!((a.source_file.as_str(), a.source_offset), (MANIFEST, 1));
        let Body::File(path) = &a.body else { panic!("{a:?}") };
        assert_eq!(fs_err::read(path).unwrap(), b"<p>a");
        assert_eq!((b.status, b.fetched_at, b.source_offset), (None, None, 3));
    }

    #[test]
    fn bad_lines_are_rejected_with_their_number() {
        let bad = [
            ("not json", "expected"),
            (r#"{"url":"http://a/"}"#, "file"),
            (r#"{"url":"http://a/","status":200}"#, "file"),
            (r#"{"url":"http://a/","status":null}"#, "file"),
            (r#"{"file":"pages/a.html"}"#, "url"),
            (r#"{"url":"ftp://a/","file":"pages/a.html"}"#, "http"),
            (r#"{"url":"http://a/","file":"../x"}"#, "leaves the snapshot"),
            (r#"{"url":"http://a/","file":"pages/../../x"}"#, "leaves the snapshot"),
            (r#"{"url":"http://a/","file":"/etc/hostname"}"#, "leaves the snapshot"),
            (r#"{"url":"http://a/","file":"pages"}"#, "not a regular file"),
            (r#"{"url":"http://a/","file":""}"#, "not a regular file"),
            (r#"{"url":"http://a/","file":"pages/b.html"}"#, "b.html"),
            (r#"{"url":"http://a/","file":"pages/a.html","fetched_at":"yesterday"}"#, "fetched_at"),
            (r#"{"url":"http://a/","file":"pages/a.html","last_modified":"2024"}"#, "last_modified"),
            (r#"{"url":"http://a/","file":"pages/a.html","status":70000}"#, "70000"),
            ("\u{0}\u{1}", "expected"),
        ];
        let mut text = String::new();
        for (line, _) in bad {
            writeln!(text, "{line}").unwrap();
        }
        text.push_str(r#"{"url":"http://good/","file":"pages/a.html"}"#);
        let folder = folder(&text);
        let mut items = read(folder.path());
        assert_eq!(items.pop().unwrap().unwrap().url, "http://good/");
        assert_eq!(items.len(), bad.len());
        for (number, (item, (line, reason))) in items.iter().zip(bad).enumerate() {
            let reject = item.as_ref().unwrap_err();
            assert_eq!(reject.source_offset, Some(number as u64 + 1));
            assert!(reject.reason.contains(reason), "{line}: {}", reject.reason);
        }
    }

    #[test]
    fn answers_without_a_page_need_no_file() {
        let lines = [304, 404, 410, 301, 429, 500, 503].map(|status| {
            format!("{{\"url\":\"http://a/{status}\",\"status\":{status},\"fetched_at\":\"Fri, 01 Mar 2024 12:00:00 GMT\"}}\n")
        });
        let folder = folder(&lines.concat());
        let captures: Vec<_> = read(folder.path()).into_iter().map(Result::unwrap).collect();
        assert_eq!(captures.len(), lines.len());
        for capture in captures {
            assert!(matches!(capture.body, Body::None), "{capture:?}");
            assert_eq!(capture.fetched_at.unwrap().0.to_string(), "2024-03-01T12:00:00Z");
        }
    }

    #[test]
    fn dates_may_be_written_as_http_does() {
        let line = |key: &str, time: &str| {
            format!("{{\"url\":\"http://a/\",\"file\":\"pages/a.html\",\"{key}\":\"{time}\"}}\n")
        };
        // The three forms that HTTP knows.
        let forms = ["Fri, 01 Mar 2024 12:00:00 GMT", "Friday, 01-Mar-24 12:00:00 GMT", "Fri Mar  1 12:00:00 2024"];
        for form in forms {
            let folder = folder(&[line("fetched_at", form), line("last_modified", form)].concat());
            let items = read(folder.path());
            let [Ok(fetched), Ok(modified)] = items.as_slice() else { panic!("{form}: {items:?}") };
            for time in [fetched.fetched_at, modified.last_modified] {
                assert_eq!(time.unwrap().0.to_string(), "2024-03-01T12:00:00Z", "{form}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_inside() {
        let outside = tempfile::tempdir().unwrap();
        fs_err::write(outside.path().join("secret"), "s").unwrap();
        let naming = |file: &str| format!("{{\"url\":\"http://a/\",\"file\":\"{file}\"}}\n");
        let folder = folder(&["in.html", "out.html", "out/secret", "loop", "pages/a.html"].map(naming).concat());
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, folder.path().join(name)).unwrap();
        link(Path::new("pages/a.html"), "in.html");
        link(&outside.path().join("secret"), "out.html");
        link(outside.path(), "out");
        link(Path::new("loop"), "loop");
        let items = read(folder.path());
        assert!(items[0].is_ok() && items[4].is_ok(), "{items:?}");
        for item in &items[1..3] {
            assert!(item.as_ref().unwrap_err().reason.contains("leaves the snapshot"), "{item:?}");
        }
        assert!(items[3].is_err());
    }

    #[test]
    fn endless_lines_are_passed_over() {
        let mut text = "x".repeat(3 << 20);
        text.push_str("\n{\"url\":\"http://a/\",\"file\":\"pages/a.html\"}\n");
        let folder = folder(&text);
        let mut reader = ManifestReader::new(folder.path().to_path_buf(), fs_err::canonicalize(folder.path()).unwrap());
        assert!(reader.next().unwrap().unwrap_err().reason.contains("longer"));
        assert_eq!(reader.next().unwrap().unwrap().source_offset, 2);
        assert!(reader.next().is_none());
        assert_eq!(reader.bytes_read(), text.len() as u64 + 4);
    }
}
