//! Words of a question, where it need not be sound yet.

use sqlparser::dialect::GenericDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

/// Up to quotes or a comment that do not end.
fn tokens(query: &str) -> Vec<TokenWithSpan> {
    let mut tokens = Vec::new();
    let _ = Tokenizer::new(&GenericDialect, query).tokenize_with_location_into_buf(&mut tokens);
    tokens
}

/// The first word, in small letters, after comments and parentheses.
pub(in crate::look) fn first_word(query: &str) -> Option<String> {
    let skipped = |token: &Token| matches!(token, Token::Whitespace(_) | Token::LParen);
    match tokens(query).into_iter().map(|token| token.token).find(|token| !skipped(token))? {
        Token::Word(word) => Some(word.value.to_ascii_lowercase()),
        other => Some(other.to_string()),
    }
}

/// The most dots between the words of one name. The parser takes time without end over a long name that is not sound.
pub(super) fn most_dots(query: &str) -> usize {
    let (mut dots, mut most) = (0, 0);
    let mut after_word = false;
    for token in tokens(query) {
        match token.token {
            Token::Whitespace(_) => continue,
            Token::Period => dots += 1,
            Token::Word(_) if !after_word => {}
            // Another name begins, or there is none.
            _ => dots = 0,
        }
        after_word = matches!(token.token, Token::Word(_));
        most = most.max(dots);
    }
    most
}

/// The query with `end` in quotes where it must be the column: tables of mentions have one, but in SQL the word ends `case`.
pub(super) fn quote_end(query: &str) -> String {
    let mut columns = Vec::new();
    let mut cases = 0;
    let mut before = None;
    for TokenWithSpan { token, span } in tokens(query) {
        let keyword = match &token {
            Token::Word(word) if word.quote_style.is_none() => word.keyword,
            _ => Keyword::NoKeyword,
        };
        match keyword {
            Keyword::CASE => cases += 1,
            Keyword::END if cases > 0 => cases -= 1,
            Keyword::END if before != Some(Token::Period) => columns.push(span.start),
            _ => {}
        }
        before = Some(token);
    }
    let mut quoted = String::with_capacity(query.len() + 2 * columns.len());
    let mut rest = 0;
    for start in offsets(query, columns) {
        let end = start + "end".len();
        quoted.push_str(&query[rest..start]);
        quoted.push_str("\"end\"");
        rest = end;
    }
    quoted + &query[rest..]
}

/// The bytes at places that are told by line and character, from 1, in order.
fn offsets(query: &str, places: Vec<Location>) -> Vec<usize> {
    let mut wanted = places.into_iter().peekable();
    let (mut line, mut column) = (1, 1);
    let mut found = Vec::new();
    for (at, c) in query.char_indices() {
        if wanted.next_if(|place| (place.line, place.column) == (line, column)).is_some() {
            found.push(at);
        }
        (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_end_needs_no_quotes() {
        for (query, quoted) in [
            ("select start, end from m", "select start, \"end\" from m"),
            ("select END - m.end, \"end\", 'end' -- end", "select \"end\" - m.end, \"end\", 'end' -- end"),
            ("select case when a > 1 then 2 end, end", "select case when a > 1 then 2 end, \"end\""),
            ("select é, send, end_ /* end */", "select é, send, end_ /* end */"),
            ("select 'é\n\né', end,\r\n\tend from m", "select 'é\n\né', \"end\",\r\n\t\"end\" from m"),
            ("select 'it''s the end', 'open end", "select 'it''s the end', 'open end"),
        ] {
            assert_eq!(quote_end(query), quoted, "{query}");
        }
    }

    #[test]
    fn it_takes_no_longer_the_more_there_are() {
        let query = format!("select {} from m", "end,\n".repeat(50_000));
        assert_eq!(quote_end(&query).len(), query.len() + 100_000);
    }

    #[test]
    fn the_first_word_is_found_behind_comments() {
        for (query, word) in [
            (" -- why\n/* so */ (( WITH t as (select 1) select * from t", Some("with")),
            ("", None),
            (" -- only this", None),
            ("select 'open", Some("select")),
            ("; select", Some(";")),
        ] {
            assert_eq!(first_word(query).as_deref(), word, "{query}");
        }
    }
}
