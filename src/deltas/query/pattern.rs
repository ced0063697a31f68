//! The language of links: `x -> y`, `x -{m,n}-> y`, `x -{n}-> y`, each with `[label = 'glob', kind = 'local|global']`
//! behind it if wanted.

use std::fmt;

use crate::model::LinkKind;
use crate::model::key::{NAME_FIX, is_name};

/// Longest path that a pattern may ask for.
pub(super) const LONGEST: u16 = 100;

/// A link as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LinkText {
    pub(super) from: String,
    pub(super) to: String,
    /// Fewest and most links of a path; `None` for a single link.
    pub(super) path: Option<(u16, u16)>,
    /// A glob, and where it stands.
    pub(super) label: Option<(String, usize)>,
    /// Kinds of links that it may be; any if this is empty.
    pub(super) kinds: Vec<LinkKind>,
}

/// What is wrong in a link, where (in bytes), and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadLink {
    pub(super) at: usize,
    pub(super) problem: String,
    pub(super) fix: String,
}

impl fmt::Display for LinkText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path {
            None => write!(f, "{} -> {}", self.from, self.to)?,
            Some((min, max)) => write!(f, "{} -{{{min},{max}}}-> {}", self.from, self.to)?,
        }
        let quote = |text: &str| if text.contains('\'') { format!("\"{text}\"") } else { format!("'{text}'") };
        let label = self.label.as_ref().map(|(glob, _)| format!("label = {}", quote(glob)));
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.as_str()).collect();
        let kinds = (!kinds.is_empty()).then(|| format!("kind = '{}'", kinds.join("|")));
        let conditions: Vec<String> = label.into_iter().chain(kinds).collect();
        if conditions.is_empty() { Ok(()) } else { write!(f, " [{}]", conditions.join(", ")) }
    }
}

impl LinkText {
    pub(super) fn parse(text: &str) -> Result<Self, BadLink> {
        let mut reader = Reader { text, at: 0 };
        let from = reader.name("a link begins with the name of a node")?;
        let path = reader.arrow()?;
        let to = reader.name("the arrow leads to no node")?;
        let mut link = Self { from, to, path, label: None, kinds: Vec::new() };
        if reader.eat("[") {
            reader.conditions(&mut link)?;
        }
        reader.blanks();
        if reader.rest().is_empty() {
            return Ok(link);
        }
        let rest = reader.rest();
        let fix =
            if rest.starts_with('-') { "write each link as a text of its own" } else { "write x -> y [label = '…']" };
        Err(reader.bad(format!("'{rest}' is not expected here"), fix))
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn bad(&self, problem: impl Into<String>, fix: impl Into<String>) -> BadLink {
        BadLink { at: self.at, problem: problem.into(), fix: fix.into() }
    }

    fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Skips blanks, then `token` if it is there.
    fn eat(&mut self, token: &str) -> bool {
        self.blanks();
        let there = self.rest().starts_with(token);
        if there {
            self.at += token.len();
        }
        there
    }

    /// Skips blanks and takes the longest start that `belongs`.
    fn take(&mut self, belongs: impl Fn(char, &str) -> bool) -> &'a str {
        self.blanks();
        let rest = self.rest();
        let end = rest.char_indices().find(|&(at, c)| !belongs(c, &rest[at..])).map_or(rest.len(), |(at, _)| at);
        self.at += end;
        &rest[..end]
    }

    fn name(&mut self, missing: &str) -> Result<String, BadLink> {
        self.blanks();
        let start = self.at;
        // A dash may be the start of the arrow.
        let arrow = |rest: &str| rest.starts_with("->") || rest.starts_with("-{");
        let name = self.take(|c, rest| (c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '>')) && !arrow(rest));
        let name = if let Some(before) = name.find('>') { &name[..before] } else { name };
        self.at = start + name.len();
        if is_name(name) {
            return Ok(name.to_owned());
        }
        self.at = start;
        if name.is_empty() {
            return Err(self.bad(missing, "write x -> y, or x -{m,n}-> y for a path of m to n links"));
        }
        Err(self.bad(format!("'{name}' cannot be the name of a node"), NAME_FIX))
    }

    fn arrow(&mut self) -> Result<Option<(u16, u16)>, BadLink> {
        if self.eat("->") {
            return Ok(None);
        }
        let start = self.at;
        if !self.eat("-{") {
            return Err(
                self.bad("an arrow is expected here", "write x -> y, or x -{m,n}-> y for a path of m to n links")
            );
        }
        let min = self.number()?;
        let max = if self.eat(",") { self.number()? } else { min };
        if !self.eat("}") {
            return Err(self.bad("the length of the path is not closed", "write -{m,n}->"));
        }
        if !self.eat("->") {
            return Err(self.bad("the arrow of the path has no head", "write -{m,n}->"));
        }
        self.at = start;
        let bad = if min > max {
            Some((format!("a path of at least {min} and at most {max} links"), format!("write -{{{max},{min}}}->")))
        } else if max == 0 {
            Some(("a path of no links".to_owned(), "use one name for both nodes".to_owned()))
        } else if max > LONGEST {
            Some((format!("a path of {max} links"), format!("ask for at most {LONGEST}")))
        } else {
            None
        };
        if let Some((problem, fix)) = bad {
            return Err(self.bad(problem, fix));
        }
        self.at = start + self.text[start..].find("->").map_or(0, |head| head + 2);
        Ok(Some((min, max)))
    }

    fn number(&mut self) -> Result<u16, BadLink> {
        self.blanks();
        let start = self.at;
        let digits = self.take(|c, _| c.is_ascii_digit());
        digits.parse().map_err(|_| {
            let problem = if digits.is_empty() {
                "a number of links is expected here"
            } else {
                "the number of links is too large"
            };
            BadLink { at: start, problem: problem.into(), fix: "write -{m,n}->, such as -{0,4}->".into() }
        })
    }

    /// Reads the conditions after `[`, and the `]` that ends them.
    fn conditions(&mut self, link: &mut LinkText) -> Result<(), BadLink> {
        loop {
            self.blanks();
            let start = self.at;
            let key = self.take(|c, _| c.is_alphanumeric() || c == '_');
            let at_key = |problem: String, fix: &str| BadLink { at: start, problem, fix: fix.into() };
            let known = matches!(key, "label" | "kind");
            if !known {
                let problem = if key.is_empty() {
                    "a condition is expected here".into()
                } else {
                    format!("unknown condition '{key}'")
                };
                return Err(at_key(problem, "write label = 'glob' or kind = 'interior|local|global'"));
            }
            if (key == "label" && link.label.is_some()) || (key == "kind" && !link.kinds.is_empty()) {
                return Err(at_key(format!("'{key}' is given twice"), "give it once; a glob may hold {this,that}"));
            }
            if !self.eat("=") {
                return Err(self.bad(format!("'{key}' has no value"), format!("write {key} = '…'")));
            }
            let (value, at) = self.quoted()?;
            if key == "label" {
                link.label = Some((value.to_owned(), at));
            } else {
                let mut offset = at;
                for word in value.split('|') {
                    let kind = word.trim().parse().map_err(|_| BadLink {
                        at: offset,
                        problem: format!("unknown kind of link '{}'", word.trim()),
                        fix: "use interior (same page), local (same host), global, or several with | between".into(),
                    })?;
                    if !link.kinds.contains(&kind) {
                        link.kinds.push(kind);
                    }
                    offset += word.len() + 1;
                }
                link.kinds.sort_by_key(|kind| *kind as u8);
            }
            if self.eat("]") {
                return Ok(());
            }
            if !self.eat(",") {
                return Err(self.bad("the conditions are not closed", "write [label = '…', kind = '…']"));
            }
        }
    }

    /// A text in quotes of either kind, and where it begins.
    fn quoted(&mut self) -> Result<(&'a str, usize), BadLink> {
        self.blanks();
        let quote = self.rest().chars().next().filter(|c| matches!(c, '\'' | '"'));
        let Some(quote) = quote else {
            return Err(self.bad("a text in quotes is expected here", "write '…'"));
        };
        let begin = self.at + 1;
        let Some(len) = self.text[begin..].find(quote) else {
            return Err(self.bad("the quote is not closed", format!("end the text with {quote}")));
        };
        self.at = begin + len + 1;
        Ok((&self.text[begin..begin + len], begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_as_they_print() {
        for (text, expected) in [
            ("a->b", "a -> b"),
            ("  a  ->  b  ", "a -> b"),
            ("a-1 -> b_2", "a-1 -> b_2"),
            ("a-1->b-", "a-1 -> b-"),
            ("a -{0,4}-> u", "a -{0,4}-> u"),
            ("a-{ 2 }->u", "a -{2,2}-> u"),
            ("u -> d [label = 'side effects*']", "u -> d [label = 'side effects*']"),
            ("u -> d [ kind='global|local' , label=\"it's\" ]", "u -> d [label = \"it's\", kind = 'local|global']"),
        ] {
            let link = LinkText::parse(text).unwrap_or_else(|bad| panic!("{text}: {bad:?}"));
            assert_eq!(link.to_string(), expected);
            assert_eq!(LinkText::parse(expected).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn what_is_wrong_is_shown_in_its_place() {
        for (text, at, problem) in [
            ("", 0, "a link begins with"),
            ("-> b", 0, "a link begins with"),
            ("a", 1, "an arrow"),
            ("a b", 2, "an arrow"),
            ("a <- b", 2, "an arrow"),
            ("a -> ", 5, "the arrow leads"),
            ("A -> b", 0, "'A' cannot be"),
            ("a -> b.1", 5, "'b.1' cannot be"),
            ("a -> b -> c", 7, "'-> c' is not expected"),
            ("a -{3,2}-> b", 2, "a path of at least 3 and at most 2"),
            ("a -{0,0}-> b", 2, "a path of no links"),
            ("a -{0,1000}-> b", 2, "a path of 1000 links"),
            ("a -{0,99999}-> b", 6, "the number of links is too large"),
            ("a -{,2}-> b", 4, "a number of links"),
            ("a -{1,}-> b", 6, "a number of links"),
            ("a -{1,2-> b", 7, "the length of the path is not closed"),
            ("a -{1,2} b", 9, "the arrow of the path has no head"),
            ("a -> b [", 8, "a condition is expected"),
            ("a -> b [text = 'x']", 8, "unknown condition 'text'"),
            ("a -> b [label 'x']", 14, "'label' has no value"),
            ("a -> b [label = x]", 16, "a text in quotes"),
            ("a -> b [label = 'x]", 16, "the quote is not closed"),
            ("a -> b [label = 'x'", 19, "the conditions are not closed"),
            ("a -> b [label = 'x', label = 'y']", 21, "'label' is given twice"),
            ("a -> b [kind = 'local|lokal']", 22, "unknown kind of link 'lokal'"),
            ("a -> b [kind = 'local'] x", 24, "'x' is not expected"),
        ] {
            let bad = LinkText::parse(text).expect_err(text);
            assert!(bad.problem.starts_with(problem), "{text}: {bad:?}");
            assert_eq!(bad.at, at, "{text}: {bad:?}");
            assert!(!bad.fix.is_empty());
        }
    }
}
