//! What readers of TOML and JSON say is wrong, in ordinary words.

use serde_json::error::Category;

/// What a value should have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Whole,
    Number,
    Truth,
    Text,
    List,
    Table,
}

impl Expected {
    /// By the name that the reader has for it.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" => Self::Whole,
            "f32" | "f64" => Self::Number,
            "a boolean" => Self::Truth,
            "a string" | "path string" | "a character" => Self::Text,
            "a sequence" => Self::List,
            "a map" => Self::Table,
            other => return other.starts_with("struct ").then_some(Self::Table),
        })
    }

    fn in_words(self, name: &str) -> String {
        let words = match (self, name) {
            (Self::Whole, "u8") => "a whole number from 0 to 255",
            (Self::Whole, "u16") => "a whole number from 0 to 65535",
            (Self::Whole, name) if name.starts_with('u') => "a whole number, 0 or more",
            (Self::Whole, _) => "a whole number",
            (Self::Number, _) => "a number",
            (Self::Truth, _) => "true or false",
            (Self::Text, _) => "text between quotes",
            (Self::List, _) => "a list",
            (Self::Table, _) => "a table",
        };
        words.to_owned()
    }
}

/// `invalid type: …, expected usize` with a word for `usize` that does not need one to know Rust, and what it stands for.
/// Other messages stay as they are.
#[must_use]
pub(crate) fn in_words(message: &str) -> (String, Option<Expected>) {
    let is_wrong = message.starts_with("invalid type: ") || message.starts_with("invalid value: ");
    let Some((found, name)) = message.rsplit_once(", expected ").filter(|_| is_wrong) else {
        return (message.to_owned(), None);
    };
    match Expected::named(name) {
        Some(expected) => (format!("{found}, expected {}", expected.in_words(name)), Some(expected)),
        None => (message.to_owned(), None),
    }
}

/// What is wrong with JSON, and where if that is not its end.
#[must_use]
pub(crate) fn json_problem(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    let place = if line > 1 { format!("line {line}, column {column}") } else { format!("column {column}") };
    match error.classify() {
        Category::Eof => "not JSON: it ends too early".to_owned(),
        Category::Syntax => format!("not JSON: unexpected at {place}"),
        Category::Data | Category::Io => {
            let said = error.to_string();
            let said = said.split(" at line ").next().unwrap_or_default();
            match said.strip_prefix("missing field ") {
                Some(key) => format!("no {key} in it"),
                None => in_words(said).0,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Line {
        #[expect(dead_code, reason = "only read")]
        url: String,
        #[expect(dead_code, reason = "only read")]
        status: Option<u16>,
    }

    #[test]
    fn json_is_told_in_ordinary_words() {
        let said = |json: &str| json_problem(&serde_json::from_str::<Line>(json).unwrap_err());
        assert_eq!(said("{\"url\": \"http://a/\"\n"), "not JSON: it ends too early");
        assert_eq!(said("hello world"), "not JSON: unexpected at column 1");
        assert_eq!(said("{\n\n  x"), "not JSON: unexpected at line 3, column 3");
        assert_eq!(said("{}"), "no `url` in it");
        assert_eq!(said("{\"url\":1}"), "invalid type: integer `1`, expected text between quotes");
        let large = "invalid value: integer `70000`, expected a whole number from 0 to 65535";
        assert_eq!(said("{\"url\":\"\",\"status\":70000}"), large);
    }

    #[test]
    fn what_has_words_of_its_own_keeps_them() {
        let own = "invalid type: string \"x\", expected a table such as { mentions = 'a' }";
        assert_eq!(in_words(own), (own.to_owned(), None));
        let list = "invalid type: string \"a, expected b\", expected a sequence";
        assert_eq!(in_words(list).0, "invalid type: string \"a, expected b\", expected a list");
    }
}
