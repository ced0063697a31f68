//! Parts of a question that polars answers without the functions given to it: queries in `with`, in parentheses, and the
//! sides of `union` and its like. Here each such part that needs them becomes a frame of its own, inside out, so that
//! everywhere is as good as the outermost select.
//!
//! Parts are told by words and parentheses alone. What is no sound SQL stays as it is, and polars says what is wrong.

use std::collections::BTreeMap;

use polars::prelude::{LazyFrame, PolarsResult};

/// What tables and parts are called, and what they hold.
pub(super) type Frames = BTreeMap<String, LazyFrame>;

/// Words that a query begins with.
const BEGIN: [&str; 4] = ["select", "with", "from", "values"];
/// Words between the sides of a set operation, and words after the last side that belong to all of it.
const SET: [&str; 3] = ["union", "intersect", "except"];
const SET_MORE: [&str; 4] = ["all", "distinct", "by", "name"];
const AFTER: [&str; 4] = ["order", "limit", "offset", "fetch"];

/// The first piece of a query: a word, a text in quotes, a comment, white space, or one character of any other kind.
pub(super) fn piece(query: &str) -> Option<&str> {
    let c = query.chars().next()?;
    let many = |is: fn(char) -> bool| query.find(|c: char| !is(c)).unwrap_or(query.len());
    let len = match c {
        '\'' | '"' | '`' => query[1..].find(c).map_or(query.len(), |end| end + 2),
        '-' if query.starts_with("--") => query.find('\n').unwrap_or(query.len()),
        '/' if query.starts_with("/*") => query.find("*/").map_or(query.len(), |end| end + 2),
        c if c.is_whitespace() => many(char::is_whitespace),
        _ => many(|c| c.is_alphanumeric() || c == '_').max(c.len_utf8()),
    };
    Some(&query[..len])
}

fn pieces(query: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let found = piece(&query[at..])?;
        at += found.len();
        Some((at - found.len(), found))
    })
}

/// Whether a query has a word, outside of quotes and comments.
pub(super) fn has_word(query: &str, word: &str) -> bool {
    pieces(query).any(|(_, piece)| piece.eq_ignore_ascii_case(word))
}

fn is_one_of(piece: &str, words: &[&str]) -> bool {
    words.iter().any(|word| piece.eq_ignore_ascii_case(word))
}

fn is_blank(piece: &str) -> bool {
    piece.trim().is_empty() || piece.starts_with("--") || piece.starts_with("/*")
}

/// What stands in the parentheses that open at the beginning; `None` if they do not close.
fn inside(query: &str) -> Option<&str> {
    let mut depth = 0;
    for (at, piece) in pieces(query) {
        depth += i32::from(piece == "(") - i32::from(piece == ")");
        if depth == 0 {
            return query.get(1..at);
        }
    }
    None
}

/// Whether this is a query, not an expression or a list.
fn is_query(text: &str) -> bool {
    let first = pieces(text).map(|(_, piece)| piece).find(|piece| !is_blank(piece) && *piece != "(");
    first.is_some_and(|first| is_one_of(first, &BEGIN))
}

/// Answers questions in parts.
pub(super) struct Parts<'a> {
    /// The function that parts need.
    pub(super) function: &'a str,
    /// Answers a question about frames, with the function at its outermost level.
    pub(super) ask: &'a dyn Fn(&Frames, &str) -> PolarsResult<LazyFrame>,
}

impl Parts<'_> {
    pub(super) fn answer(&self, frames: &Frames, query: &str) -> PolarsResult<LazyFrame> {
        let mut frames = frames.clone();
        let rest = self.take_parts(&mut frames, query)?;
        let rest = self.take_sides(&mut frames, &rest)?;
        (self.ask)(&frames, &rest)
    }

    /// A query for a part that became a frame.
    fn put(frames: &mut Frames, part: LazyFrame) -> String {
        let name = format!("part {}", frames.len());
        let query = format!("select * from \"{name}\"");
        frames.insert(name, part);
        query
    }

    /// Puts a query of `with` among the frames; `named` is what stands before it.
    fn put_named(&self, frames: &mut Frames, named: &str, mut frame: LazyFrame) -> PolarsResult<()> {
        let name = pieces(named).map(|(_, piece)| piece).find(|piece| !is_blank(piece)).unwrap_or_default();
        if named.contains('(') {
            let inner = Self::put(frames, frame);
            frame = (self.ask)(frames, &format!("with {named} ({inner}) select * from {name}"))?;
        }
        frames.insert(name.trim_matches(['"', '`']).to_owned(), frame);
        Ok(())
    }

    /// The query without `with`, whose queries are frames by their names, and with frames for the queries in parentheses
    /// that need the function.
    fn take_parts(&self, frames: &mut Frames, query: &str) -> PolarsResult<String> {
        let first = pieces(query).find(|(_, piece)| !is_blank(piece));
        let with = first.filter(|(_, word)| word.eq_ignore_ascii_case("with")).map(|(at, word)| at + word.len());
        let mut out = String::new();
        // What stands before the next query of `with`: its name, its columns, `as`.
        let mut named = with.map(|_| String::new());
        let mut at = with.unwrap_or(0);
        while let Some(found) = piece(&query[at..]) {
            let part = inside(&query[at..]).filter(|part| found == "(" && is_query(part));
            at += part.map_or(found.len(), |part| part.len() + 2);
            match (part, &mut named) {
                (Some(part), Some(name)) => {
                    let frame = self.answer(frames, part)?;
                    self.put_named(frames, &std::mem::take(name), frame)?;
                    let next = pieces(&query[at..]).find(|(_, piece)| !is_blank(piece));
                    match next.filter(|(_, piece)| *piece == ",") {
                        Some((comma, _)) => at += comma + 1,
                        None => named = None,
                    }
                }
                (Some(part), None) if has_word(part, self.function) => {
                    let frame = self.answer(frames, part)?;
                    out += &format!("({})", Self::put(frames, frame));
                }
                (Some(part), None) => out += &format!("({part})"),
                (None, Some(name)) => name.push_str(found),
                (None, None) => out.push_str(found),
            }
        }
        Ok(out)
    }

    /// The query with frames for the sides of a set operation that need the function.
    fn take_sides(&self, frames: &mut Frames, query: &str) -> PolarsResult<String> {
        let (mut out, mut side, mut depth, mut sides) = (String::new(), String::new(), 0, 0);
        let mut between = false;
        let mut end = query.len();
        for (at, piece) in pieces(query) {
            depth += i32::from(piece == "(") - i32::from(piece == ")");
            if depth == 0 && is_one_of(piece, &SET) {
                out.push_str(&self.side(frames, &side)?);
                (side, between, sides) = (String::new(), true, sides + 1);
            } else if depth == 0 && sides > 0 && is_one_of(piece, &AFTER) {
                end = at;
                break;
            }
            between &= is_blank(piece) || is_one_of(piece, &SET) || is_one_of(piece, &SET_MORE);
            if between { &mut out } else { &mut side }.push_str(piece);
        }
        if sides == 0 {
            return Ok(query.to_owned());
        }
        out.push_str(&self.side(frames, &side)?);
        out.push_str(&query[end..]);
        Ok(out)
    }

    fn side(&self, frames: &mut Frames, side: &str) -> PolarsResult<String> {
        if !has_word(side, self.function) {
            return Ok(side.to_owned());
        }
        let frame = (self.ask)(frames, side)?;
        Ok(format!("{} ", Self::put(frames, frame)))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use polars::prelude::{DataFrame, IntoLazy as _};

    use super::*;

    /// What is asked of polars for a query, in order.
    fn asked(query: &str) -> Vec<String> {
        let asked = RefCell::new(Vec::new());
        let ask = |_: &Frames, query: &str| {
            asked.borrow_mut().push(query.split_whitespace().collect::<Vec<_>>().join(" "));
            Ok(DataFrame::empty().lazy())
        };
        assert!(Parts { function: "f", ask: &ask }.answer(&Frames::new(), query).is_ok());
        asked.into_inner()
    }

    #[test]
    fn parts_that_need_the_function_are_asked_for_first() {
        assert_eq!(asked("select f(a) from t where (a + f(b)) > 1"), ["select f(a) from t where (a + f(b)) > 1"]);
        assert_eq!(asked("select * from (select a from t) u"), ["select * from (select a from t) u"]);
        assert_eq!(
            asked("select * from (select f(a) as x from t) u where x in (select b from v)"),
            ["select f(a) as x from t", "select * from (select * from \"part 0\") u where x in (select b from v)"]
        );
        assert_eq!(
            asked("select * from (select * from (select ')', f(a) -- )\n from t))"),
            [
                "select ')', f(a) -- ) from t",
                "select * from (select * from \"part 0\")",
                "select * from (select * from \"part 0\")"
            ]
        );
    }

    #[test]
    fn queries_of_with_are_frames_by_their_names() {
        assert_eq!(
            asked("with a(x) as (select f(b) from t), c as (select * from a) select * from c order by x"),
            [
                "select f(b) from t",
                "with a(x) as (select * from \"part 0\") select * from a",
                "select * from a",
                "select * from c order by x"
            ]
        );
    }

    #[test]
    fn sides_of_unions_are_asked_for_one_by_one() {
        assert_eq!(
            asked("select f(a) as x from t union all select b from u order by x limit 3"),
            ["select f(a) as x from t", "select * from \"part 0\" union all select b from u order by x limit 3"]
        );
    }

    #[test]
    fn what_is_no_sound_query_stays_as_it_is() {
        for query in
            ["", "(", ")", "select (select f(", "with", "with a as", "'", "union f", "/*", "é(", "select 'f' -- f"]
        {
            let last = asked(query).pop();
            assert!(last.is_some(), "{query}");
        }
    }
}
