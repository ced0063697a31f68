//! What runs when a source is due: a shell command with places for the source.
//!
//! A source is a crawled URL, so it is hostile. The command is cut at its places once, when it is read; filling joins the
//! pieces and never looks at what was filled in. Each source is filled in as one word in single quotes, which keep every
//! character as it is, but only where the shell expects a bare word: a place inside quotes, inside backticks, or behind a
//! backslash or a dollar sign is refused. Cron removes a backslash before a percent sign and, in some versions, before
//! another backslash; a command that has either would not reach the shell as it was checked here, so it is refused too.

/// A shell command with places for the source: `{url}` and `{source}`, which mean the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollCommand {
    /// The text around the places: one piece more than there are places.
    around: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PollCommandError {
    #[error("it has a line end or another control character; cron runs one line")]
    Control,
    #[error(r"it has \\ or \%, which cron reads in its own way; write a percent sign without a backslash")]
    CronEscape,
    #[error(
        "{0} stands in quotes or backticks, or behind a backslash or dollar sign; write it bare, it is quoted already"
    )]
    Quoted(&'static str),
    #[error(
        "quotes or backticks are left open at its end, where the URL belongs; close them, or say where with {{url}}"
    )]
    Open,
}

const PLACES: [&str; 2] = ["{url}", "{source}"];

impl PollCommand {
    /// Cuts a command at its places; without one, the source goes to the end.
    pub fn parse(command: &str) -> Result<Self, PollCommandError> {
        if command.chars().any(char::is_control) {
            return Err(PollCommandError::Control);
        }
        if command.contains(r"\\") || command.contains(r"\%") {
            return Err(PollCommandError::CronEscape);
        }
        let mut around = vec![String::new()];
        let mut shell = Shell::default();
        let mut rest = command;
        while let Some(c) = rest.chars().next() {
            if let Some(place) = PLACES.into_iter().find(|place| rest.starts_with(place)) {
                if !shell.takes_a_word {
                    return Err(PollCommandError::Quoted(place));
                }
                around.push(String::new());
                rest = &rest[place.len()..];
            } else {
                shell.read(c);
                around.last_mut().expect("it starts with one piece").push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        if let [only] = around.as_mut_slice() {
            only.push(' ');
            if !shell.is_closed() {
                return Err(PollCommandError::Open);
            }
            around.push(String::new());
        }
        Ok(Self { around })
    }

    /// The command for a source, to be run by `sh`.
    #[must_use]
    pub fn fill(&self, source: &str) -> String {
        self.around.join(&quoted(source))
    }
}

impl Default for PollCommand {
    /// Stands in for the fetcher's command where none is named.
    fn default() -> Self {
        Self { around: vec!["fetch ".to_owned(), String::new()] }
    }
}

/// A text as one word of the shell. After a backslash the quotes are closed and opened again, so that it never stands
/// before a percent sign or another backslash: cron, which reads the line first, would take it for an escape.
pub(crate) fn quoted(text: &str) -> String {
    let mut word = String::with_capacity(text.len() + 2);
    word.push('\'');
    for c in text.chars() {
        match c {
            '\\' => word.push_str(r"\''"),
            '\'' => word.push_str(r"'\''"),
            c => word.push(c),
        }
    }
    word.push('\'');
    word
}

/// How the shell reads a command, as far as it matters to the places in it.
struct Shell {
    /// The quote or backtick that is open.
    open: Option<char>,
    /// Whether the last character takes its meaning from the next one.
    escaped: bool,
    /// Whether a word in single quotes may stand here.
    takes_a_word: bool,
}

impl Default for Shell {
    fn default() -> Self {
        Self { open: None, escaped: false, takes_a_word: true }
    }
}

impl Shell {
    fn read(&mut self, c: char) {
        let plain = !std::mem::take(&mut self.escaped);
        match (self.open, c) {
            (Some('\''), '\'') => self.open = None,
            (Some('\''), _) => {}
            (_, '\\') if plain => self.escaped = true,
            (Some(open), _) if plain && c == open => self.open = None,
            (None, '\'' | '"' | '`') if plain => self.open = Some(c),
            _ => {}
        }
        self.takes_a_word = self.is_closed() && c != '$';
    }

    fn is_closed(&self) -> bool {
        self.open.is_none() && !self.escaped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(command: &str, source: &str) -> String {
        PollCommand::parse(command).unwrap().fill(source)
    }

    #[test]
    fn what_was_filled_in_is_never_filled_again() {
        let hostile = "http://evil.test/?;touch${IFS}x;{source}{url}";
        assert_eq!(filled("fetch {url}", hostile), format!("fetch '{hostile}'"));
        assert_eq!(filled("a {source} b {url} c", "{url}"), "a '{url}' b '{url}' c");
    }

    #[test]
    fn a_source_is_one_word() {
        assert_eq!(filled("fetch", "x"), "fetch 'x'");
        assert_eq!(PollCommand::default(), PollCommand::parse("fetch {url}").unwrap());
        assert_eq!(filled("f {url}", "it's"), r"f 'it'\''s'");
        assert_eq!(filled("f {url}", r"a\%\\'"), r"f 'a\''%\''\'''\'''");
    }

    #[test]
    fn places_stand_where_the_shell_expects_a_bare_word() {
        for good in [
            r#"f "$X" '$Y' {url}"#,
            r#"f "a\"b" {url} "c" {source}"#,
            r"f \' {url}",
            r"f --url={url} | tee $(date)",
            r"f 'a\' {url}",
            "f `date` {url}",
        ] {
            assert!(PollCommand::parse(good).is_ok(), "{good}");
        }
        for (bad, place) in [
            (r#"f "{url}""#, "{url}"),
            ("f '{source}'", "{source}"),
            (r#"sh -c "f {url}""#, "{url}"),
            (r#"f "a\"{url}""#, "{url}"),
            ("f `g {url}`", "{url}"),
            (r"f \{url}", "{url}"),
            ("f ${url}", "{url}"),
            ("f {url} '{url}'", "{url}"),
        ] {
            assert_eq!(PollCommand::parse(bad), Err(PollCommandError::Quoted(place)), "{bad}");
        }
        for open in ["f 'a", "f \"", "f `", "f \\"] {
            assert_eq!(PollCommand::parse(open), Err(PollCommandError::Open), "{open}");
        }
        assert_eq!(PollCommand::parse("f\n{url}"), Err(PollCommandError::Control));
        for read_by_cron in [r#"f "\\" {url}"#, r"date +\%F; f {url}"] {
            assert_eq!(PollCommand::parse(read_by_cron), Err(PollCommandError::CronEscape), "{read_by_cron}");
        }
    }
}
