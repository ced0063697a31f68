//! What all our HTML files have in common: hostile text as text, and a head that lets a browser load nothing.

use std::fmt::Write as _;

use serde_json::Value;

use super::terminal::is_directional;
use crate::model::Digest;

/// How HTML and SVG write a character that means something to them.
fn in_markup(c: char) -> Option<&'static str> {
    match c {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\'' => Some("&#39;"),
        _ => None,
    }
}

/// Text as HTML shows it. Control characters, and those that change the direction of what follows, are named: they
/// must not make a page look like another.
#[must_use]
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            c if let Some(named) = in_markup(c) => out.push_str(named),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || is_directional(c) => {
                let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// Text as SVG can hold and shows it. There is no room to name the characters that are named above; they are blank.
#[must_use]
pub(super) fn escape_in_svg(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if let Some(named) = in_markup(c) => out.push_str(named),
            // XML has no way to say these.
            '\u{FFFE}' | '\u{FFFF}' => {}
            c if c.is_control() || is_directional(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A JSON value that a script may read and a browser never runs, whatever text is in it.
#[must_use]
pub(super) fn data_block(id: &str, value: &Value) -> String {
    let mut json = String::new();
    for c in value.to_string().chars() {
        match c {
            // Nothing that could end the element or begin another, or make the file look like another.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => _ = write!(json, "\\u{:04x}", u32::from(c)),
            c if c.is_control() || is_directional(c) => _ = write!(json, "\\u{:04x}", u32::from(c)),
            c => json.push(c),
        }
    }
    format!("<script type=\"application/json\" id=\"{id}\">{json}</script>\n")
}

/// A file that needs nothing else.
pub(super) struct Document<'a> {
    pub title: &'a str,
    pub style: &'a str,
    pub script: Option<&'a str>,
    pub body: &'a str,
}

impl Document<'_> {
    /// The whole file. Its content security policy forbids to load anything, and to run or apply anything but what is
    /// here: only an element that names the digest of this very file's body may do so, which no text in it can know.
    #[must_use]
    pub(super) fn render(&self) -> String {
        let Self { title, style, script, body } = self;
        let nonce = Digest::of(body.as_bytes()).hex();
        let nonce = nonce.as_str();
        let allowed = if script.is_some() { format!(" script-src 'nonce-{nonce}';") } else { String::new() };
        let script = script.map_or(String::new(), |script| format!("<script nonce=\"{nonce}\">\n{script}</script>\n"));
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'nonce-{nonce}';{allowed} base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"viewport\" content=\"width=device-width, \
             initial-scale=1\">\n<title>{}</title>\n<style nonce=\"{nonce}\">\n{style}</style>\n</head>\n<body>\n{body}{script}\
             </body>\n</html>\n",
            escape(title)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_leave_its_element() {
        let hostile = "</script><script>alert(1)</script><!--\u{2028}&amp;\u{202e}";
        let block = data_block("data", &serde_json::json!({ "text": hostile }));
        let inside = block.strip_prefix("<script type=\"application/json\" id=\"data\">").unwrap();
        let inside = inside.strip_suffix("</script>\n").unwrap();
        assert!(!inside.contains(['<', '>', '&', '\u{2028}', '\u{202e}']));
        let read: Value = serde_json::from_str(inside).unwrap();
        assert_eq!(read["text"], hostile, "a script reads what was written");
    }

    #[test]
    fn nothing_is_loaded_and_only_our_script_runs() {
        let document = Document { title: "<t>", style: "b{}", script: Some("go()"), body: "<p>x</p>\n" };
        let page = document.render();
        assert!(page.contains("default-src 'none'") && page.contains("<title>&lt;t&gt;</title>"));
        let nonce = page.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
        assert_eq!(page.matches(&format!("nonce=\"{nonce}\"")).count(), 2);
        let other = Document { body: "<p>y</p>\n", ..document }.render();
        assert!(!other.contains(nonce), "what allows a script differs from file to file");
        assert!(!Document { title: "", style: "", script: None, body: "" }.render().contains("script-src"));
    }
}
