//! What becomes of a question in SQL before polars sees it. It is parsed as polars does; what is no sound SQL stays as it is
//! written, and polars says what is wrong.
//!
//! | module | what it mends |
//! | --- | --- |
//! | `words` | `end`, a column of ours, ends `case` in SQL |
//! | `joins` | conditions of joins that polars passes over or misreads |
//! | `parts` | subqueries, in which polars does not know functions of ours |

mod joins;
mod parts;
mod words;

use polars::prelude::{LazyFrame, PolarsResult};
use sqlparser::ast::Statement;
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::{Parser, ParserError, ParserOptions};

pub(super) use self::parts::{Frames, Parts};
pub(super) use self::words::first_word;

/// Names have a dot or two.
const MOST_DOTS: usize = 12;

/// A question as polars is asked it.
pub(super) struct Question {
    text: String,
    /// None if it is no sound SQL.
    statements: Vec<Statement>,
}

impl Question {
    /// Says what is wrong if it cannot be asked.
    pub(super) fn new(query: &str) -> Result<Self, String> {
        if words::most_dots(query) > MOST_DOTS {
            return Err(format!("a name with more than {MOST_DOTS} dots"));
        }
        let text = words::quote_end(query);
        let Ok(mut statements) = parse(&text) else { return Ok(Self { text, statements: Vec::new() }) };
        let written = |all: &[Statement]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        // As it was written, where that will do: what polars says about it is then about the words of its author.
        if !joins::mend(&mut statements)? {
            // Nor is it taken apart where it cannot be put down again, such as the name `t . 3`.
            let statements = if parse(&written(&statements)).is_ok() { statements } else { Vec::new() };
            return Ok(Self { text, statements });
        }
        let text = written(&statements);
        // A name that is a word of SQL, such as a column `select`, can be understood where it stands and not elsewhere.
        match parse(&text) {
            Ok(statements) => Ok(Self { text, statements }),
            Err(error) => Err(format!("{error}: a name that is a word of SQL needs quotes, as in \"select\"")),
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Answers it, in parts where it must be.
    pub(super) fn answer(&self, frames: &Frames, parts: &Parts<'_>) -> PolarsResult<LazyFrame> {
        match self.statements.as_slice() {
            [Statement::Query(query)] if parts.has_some(query) => parts.answer(frames, query),
            _ => (parts.ask)(frames, &self.text),
        }
    }
}

/// Parses as polars does.
fn parse(query: &str) -> Result<Vec<Statement>, ParserError> {
    let options = ParserOptions { trailing_commas: true, ..ParserOptions::default() };
    Parser::new(&GenericDialect).with_options(options).try_with_sql(query)?.parse_statements()
}

/// All that polars is asked for a question, in order, where `function` is one that it does not know in subqueries; for the
/// fuzzer.
#[cfg(any(test, feature = "lab"))]
pub(super) fn asked(query: &str, function: &str) -> Result<Vec<String>, String> {
    use polars::prelude::{DataFrame, IntoLazy as _};
    let asked = std::cell::RefCell::new(Vec::new());
    let ask = |_: &Frames, query: &str| {
        asked.borrow_mut().push(query.to_owned());
        Ok(DataFrame::empty().lazy())
    };
    let answered = Question::new(query)?.answer(&Frames::new(), &Parts { function, ask: &ask });
    answered.map(drop).map_err(|error| error.to_string())?;
    Ok(asked.into_inner())
}

/// Whether a statement is sound SQL.
#[cfg(any(test, feature = "lab"))]
pub(super) fn is_sound(query: &str) -> bool {
    words::most_dots(query) <= MOST_DOTS && parse(&words::quote_end(query)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_put_down_again_is_asked_as_it_is() {
        let query = "select slice_bytes(p.text, m.start, m.end) as t from m join p on m.u = p.u order by t . 3";
        assert!(is_sound(query));
        assert_eq!(asked(query, "slice_bytes").unwrap(), [words::quote_end(query)]);
    }

    /// The parser needs twice as long for each dot.
    #[test]
    fn names_without_end_are_refused() {
        let names = "m.".repeat(200);
        assert!(Question::new(&format!("select a from m join p on {names}.m = p.u")).is_err());
        assert!(Question::new("select m.a, m.b, m.c, p.text from m join p on m.u = p.u where m.a.b = p.a.b").is_ok());
        let flags = vec!["m.flag"; 40].join(" and ");
        assert!(Question::new(&format!("select m.a from m where {flags}")).is_ok());
    }
}
