//! What is due, for whoever fetches it. URLs and entity tags are other people's words: none may break out of its line or
//! its quotes.

use std::fmt::Write as _;

use serde_json::json;

use crate::model::Timestamp;
use crate::model::closed_set::closed_set;
use crate::schedule::history::host;
use crate::schedule::poll_command::quoted;

/// A URL to fetch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DueUrl {
    pub url: String,
    pub due_at: Timestamp,
    /// As the server stated it with the version that is known.
    pub etag: Option<String>,
    pub last_modified: Option<Timestamp>,
    /// How likely it brings something new.
    pub gain: f64,
    /// Never fetched before.
    pub new: bool,
}

impl DueUrl {
    #[must_use]
    pub(crate) fn new(url: String, due_at: Timestamp, gain: f64) -> Self {
        Self { url, due_at, etag: None, last_modified: None, gain, new: false }
    }

    /// The entity tag, if it can stand in a header.
    fn safe_etag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| etag.chars().all(|c| (' '..='~').contains(&c)))
    }
}

closed_set! {
    /// How due URLs are written.
    #[derive(Default)]
    pub(crate) enum DueFormat: "format" {
        /// One URL a line.
        #[default]
        Urls = "urls",
        /// One JSON object a line.
        Jsonl = "jsonl",
        /// One command for the shell a line.
        Wget = "wget",
    }
}

/// All of them, in their order.
#[must_use]
pub(crate) fn due(urls: &[DueUrl], format: DueFormat) -> String {
    let mut text = String::new();
    for due in urls {
        let url = on_one_line(&due.url);
        let _ = match format {
            DueFormat::Urls => writeln!(text, "{url}"),
            DueFormat::Jsonl => writeln!(text, "{}", object(due, &url)),
            DueFormat::Wget => writeln!(text, "{}", command(due, &url)),
        };
    }
    text
}

fn object(due: &DueUrl, url: &str) -> serde_json::Value {
    json!({
        "url": url, "due_at": due.due_at.to_string(), "etag": due.safe_etag(),
        "last_modified": due.last_modified.map(|time| time.to_string()), "host": host(url), "gain": due.gain,
        "new": due.new,
    })
}

fn command(due: &DueUrl, url: &str) -> String {
    let mut command = "wget --no-verbose --force-directories".to_owned();
    if let Some(etag) = due.safe_etag() {
        let _ = write!(command, " --header={}", quoted(&format!("If-None-Match: {etag}")));
    }
    if let Some(date) = due.last_modified.and_then(http_date) {
        let _ = write!(command, " --header={}", quoted(&format!("If-Modified-Since: {date}")));
    }
    format!("{command} -- {}", quoted(url))
}

fn http_date(time: Timestamp) -> Option<String> {
    let time = jiff::Timestamp::from_microsecond(time.0).ok()?;
    Some(time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
}

/// A URL without anything that ends a line or a word, which no URL needs.
fn on_one_line(url: &str) -> String {
    let mut safe = String::with_capacity(url.len());
    for c in url.chars() {
        if c.is_control() || c.is_whitespace() || c == '\u{2028}' || c == '\u{2029}' {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes).bytes().for_each(|byte| _ = write!(safe, "%{byte:02X}"));
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hostile() -> Vec<DueUrl> {
        let urls = [
            "http://a.test/?q=';touch x;'",
            "http://a.test/$(touch x)`touch x`\"\\",
            "http://a.test/\nhttp://evil.test/\r\u{2028}\u{1b}[2J",
            "http://a.test/%27%0a{url}{source}",
        ];
        let due = |url: &&str| DueUrl {
            etag: Some("\"x\r\nCookie: y'$(z)\"".to_owned()),
            last_modified: Some(Timestamp(0)),
            ..DueUrl::new((*url).to_owned(), Timestamp(0), 0.5)
        };
        let mut due: Vec<DueUrl> = urls.iter().map(due).collect();
        due[0].etag = Some("\"it's $(here)\"".to_owned());
        due
    }

    #[test]
    fn every_url_is_one_line_in_every_format() {
        let urls = hostile();
        for format in DueFormat::ALL {
            let text = due(&urls, format);
            assert_eq!(text.lines().count(), urls.len(), "{text}");
            assert!(!text.chars().any(|c| c.is_control() && c != '\n') && !text.contains('\u{2028}'), "{text:?}");
        }
    }

    #[test]
    fn objects_say_what_is_known() {
        let text = due(&hostile()[..1], DueFormat::Jsonl);
        let object: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(object["etag"], "\"it's $(here)\"");
        assert_eq!(
            (object["last_modified"].as_str(), object["host"].as_str()),
            (Some("1970-01-01T00:00:00Z"), Some("a.test"))
        );
        let text = due(&hostile()[1..2], DueFormat::Jsonl);
        assert!(text.contains("\"etag\":null"), "an entity tag that would end its header is not passed on: {text}");
    }

    #[test]
    fn a_shell_hands_wget_the_words_that_were_meant() {
        let urls = hostile();
        let script =
            format!("wget() {{ for word; do printf '%s\\n' \"$word\"; done; }}\n{}", due(&urls, DueFormat::Wget));
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let words = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = words.lines().collect();
        assert!(lines.contains(&"--header=If-None-Match: \"it's $(here)\""), "{words}");
        assert!(lines.contains(&"--header=If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT"), "{words}");
        let shown: Vec<&str> = lines.iter().copied().filter(|line| line.starts_with("http")).collect();
        assert_eq!(shown, urls.iter().map(|due| on_one_line(&due.url)).collect::<Vec<_>>());
    }
}
