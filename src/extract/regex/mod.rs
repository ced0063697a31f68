//! Patterns with named groups.
//!
//! Each pattern means its leftmost, non-overlapping matches, exactly as `Regex::captures_iter` of the `regex` crate
//! over the page; several patterns scan independently. The engine underneath that crate is used directly because it
//! can search a span with the page around it visible, which recycling needs.
//!
//! A pattern that can match the empty string is refused (its matches would sit at every cut), and so is a group named
//! like a required column of the mentions table.

pub(crate) mod analysis;

use std::panic::{RefUnwindSafe, UnwindSafe};

use regex_automata::meta::{self, Cache};
use regex_automata::util::pool::{Pool, PoolGuard};
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Input, MatchKind};

use crate::extract::ExtractorKind;
use crate::extract::mention::{Mention, Piece, Value, offset};
use crate::extract::reach::Declared;
use crate::extract::scan::{Mode, Pass, Scan, scan_all};
use crate::extract::schema::{Attribute, Schema};
use crate::extract::traits::{Extracts, Finds, LabelColumn, Labels, Prior};
use crate::model::KeyError;
use crate::model::{DigestBuilder, Span};

type Caches = Pool<Cache, Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>>;
type Guard<'a> = PoolGuard<'a, Cache, Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>>;

#[derive(Debug)]
pub struct Patterns {
    patterns: Vec<Pattern>,
    schema: Schema,
}

#[derive(Debug)]
pub struct Pattern {
    source: String,
    /// Its number among the patterns: the label of its mentions.
    label: u32,
    engine: meta::Regex,
    caches: Caches,
    mode: Mode,
    /// (group, attribute) for each named group.
    groups: Vec<(usize, usize)>,
    slots: usize,
    attributes: usize,
}

impl Patterns {
    /// `key` is how the file calls them (`pattern` or `patterns`), for messages.
    pub fn new<S: AsRef<str>>(key: &'static str, sources: &[S], declared: Declared) -> Result<Self, KeyError> {
        let parsed = sources.iter().map(|source| parse(key, source.as_ref())).collect::<Result<Vec<_>, _>>()?;
        if let Some(twice) =
            (1..parsed.len()).find(|&i| parsed[..i].iter().any(|other| other.source == parsed[i].source))
        {
            // The table names a mention's pattern by its text.
            let problem = format!("pattern '{}' is listed twice", parsed[twice].source);
            return Err(KeyError::new(key, problem, "remove one of them"));
        }
        let mut schema = Schema::default();
        for regex in &parsed {
            for (_, name) in named_groups(&regex.engine) {
                if schema.index(&name).is_none() {
                    let attribute = Attribute { name, many: false };
                    schema
                        .push(attribute)
                        .map_err(|problem| KeyError::new(key, problem, "rename the group, as in (?P<other_name>…)"))?;
                }
            }
        }
        let patterns = (0..).zip(parsed).map(|(label, regex)| regex.finish(label, &schema, declared)).collect();
        Ok(Self { patterns, schema })
    }

    #[must_use]
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    fn passes(&self) -> Vec<&dyn Pass> {
        self.patterns.iter().map(|pattern| pattern as &dyn Pass).collect()
    }

    /// All matches of all patterns, in canonical order.
    #[must_use]
    pub fn extract(&self, text: &str) -> Vec<Mention> {
        scan_all(&self.passes(), text)
    }
}

impl Extracts for Patterns {
    fn kind(&self) -> ExtractorKind {
        ExtractorKind::Regex
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn finds(&self) -> Finds<'_> {
        Finds::ByScan(self.passes())
    }

    fn prior(&self) -> Prior {
        Prior { byte: 4.0, page: 2_000.0 }
    }

    /// Declared numbers are left out: they only enlarge the reach and change no mention.
    fn describe(&self, digest: &mut DigestBuilder) {
        digest.number(self.patterns.len() as u64);
        for pattern in &self.patterns {
            digest.field(pattern.source.as_bytes());
        }
    }

    fn labels(&self) -> Option<&dyn Labels> {
        Some(self)
    }

    /// One line for each pattern that is not recycled by window.
    fn notes(&self) -> Vec<String> {
        self.patterns.iter().filter_map(Pattern::note).collect()
    }
}

impl Labels for Patterns {
    fn column(&self) -> LabelColumn {
        LabelColumn::Pattern
    }

    fn text(&self, label: u32) -> Option<&str> {
        self.patterns.get(label as usize).map(Pattern::source)
    }

    fn find(&self, text: &str) -> Option<u32> {
        self.patterns.iter().find(|pattern| pattern.source == text).map(|pattern| pattern.label)
    }
}

struct Parsed {
    source: String,
    hir: regex_syntax::hir::Hir,
    engine: meta::Regex,
}

/// The last line of what is said of a pattern: the others only show where.
fn syntax_problem(error: &regex_syntax::Error) -> String {
    let said = error.to_string();
    said.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

fn parse(key: &'static str, source: &str) -> Result<Parsed, KeyError> {
    if source.contains('\u{8}') {
        return Err(KeyError::new(
            key,
            "the pattern has a backspace in it, which is what TOML makes of \"\\b\"",
            "write it between '…', where a backslash is one",
        ));
    }
    let hir = regex_syntax::parse(source).map_err(|error| {
        KeyError::new(
            key,
            format!("cannot read the pattern '{source}': {}", syntax_problem(&error)),
            "see the syntax of the Rust crate `regex`",
        )
    })?;
    match hir.properties().minimum_len() {
        Some(0) => {
            let problem = format!("pattern '{source}' can match the empty string");
            return Err(KeyError::new(key, problem, "demand at least one character, as in x+ instead of x*"));
        }
        None => {
            let problem = format!("pattern '{source}' can match nothing at all");
            return Err(KeyError::new(key, problem, "look for an empty class such as [a&&b]"));
        }
        Some(_) => {}
    }
    // The limits are those of the `regex` crate, so that the same patterns are accepted.
    let config = meta::Config::new()
        .nfa_size_limit(Some(10 << 20))
        .hybrid_cache_capacity(2 << 20)
        .match_kind(MatchKind::LeftmostFirst)
        .utf8_empty(true);
    let engine = meta::Builder::new().configure(config).build_from_hir(&hir).map_err(|error| {
        KeyError::new(key, format!("cannot compile the pattern '{source}': {error}"), "make its repetitions smaller")
    })?;
    Ok(Parsed { source: source.to_owned(), hir, engine })
}

fn named_groups(engine: &meta::Regex) -> Vec<(usize, String)> {
    let names = engine.group_info().pattern_names(regex_automata::PatternID::ZERO);
    names.enumerate().filter_map(|(group, name)| Some((group, name?.to_owned()))).collect()
}

impl Parsed {
    fn finish(self, label: u32, schema: &Schema, declared: Declared) -> Pattern {
        let groups: Vec<_> = named_groups(&self.engine)
            .into_iter()
            .map(|(group, name)| (group, schema.index(&name).expect("every group name is in the schema")))
            .collect();
        let engine = self.engine.clone();
        Pattern {
            source: self.source,
            label,
            caches: Pool::new(Box::new(move || engine.create_cache())),
            mode: analysis::mode(&self.hir, declared),
            slots: groups.iter().map(|&(group, _)| 2 * group + 2).max().unwrap_or(0),
            groups,
            attributes: schema.len(),
            engine: self.engine,
        }
    }
}

impl Pattern {
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Why it is not recycled by window.
    fn note(&self) -> Option<String> {
        let source = &self.source;
        match &self.mode {
            Mode::Window(_) => None,
            Mode::Cut(barriers) if barriers.contains(b'\n') => {
                Some(format!("pattern '{source}' has no longest match: recycled by line"))
            }
            Mode::Cut(barriers) => {
                let shown: String =
                    barriers.bytes().iter().map(|&b| char::from(b).escape_default().to_string()).collect();
                Some(format!("pattern '{source}' has no longest match: recycled between any of {shown}"))
            }
            Mode::Page => Some(format!(
                "pattern '{source}' has no longest match and may run over lines: reused on equal pages only; \
                 bound its repetitions, as in {{1,40}}, to recycle it"
            )),
        }
    }
}

impl Pass for Pattern {
    fn mode(&self) -> &Mode {
        &self.mode
    }

    fn scan(&self) -> Box<dyn Scan + '_> {
        Box::new(PatternScan { pattern: self, cache: self.caches.get(), slots: vec![None; self.slots] })
    }
}

/// A pattern at work. It holds the engine's working memory for as long as a page takes.
struct PatternScan<'a> {
    pattern: &'a Pattern,
    cache: Guard<'a>,
    slots: Vec<Option<NonMaxUsize>>,
}

impl Scan for PatternScan<'_> {
    fn next(&mut self, text: &str, from: usize, end: usize) -> Option<Mention> {
        let input = Input::new(text).span(from..end);
        let pattern = self.pattern;
        if pattern.groups.is_empty() {
            let found = pattern.engine.search_with(&mut self.cache, &input)?;
            let mut mention = Mention::plain(offset(found.start()), offset(found.end()), pattern.label);
            if pattern.attributes > 0 {
                mention.attributes = vec![Value::Absent; pattern.attributes].into();
            }
            return Some(mention);
        }
        pattern.engine.search_slots_with(&mut self.cache, &input, &mut self.slots)?;
        let at = |slot: usize| self.slots[slot].map(|at| offset(at.get()));
        let start = at(0).expect("a match has a start");
        let mut attributes = vec![Value::Absent; pattern.attributes];
        for &(group, attribute) in &pattern.groups {
            if let (Some(from), Some(to)) = (at(2 * group), at(2 * group + 1)) {
                attributes[attribute] = Value::One(Piece::Span(Span::new(from - start, to - start)));
            }
        }
        Some(Mention {
            start,
            end: at(1).expect("a match has an end"),
            label: pattern.label,
            attributes: attributes.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn patterns(sources: &[&str]) -> Patterns {
        Patterns::new("patterns", sources, Declared::default()).unwrap()
    }

    /// What `captures_iter` of the `regex` crate gives.
    fn by_the_crate(extractor: &Patterns, text: &str) -> Vec<Mention> {
        let mut found = Vec::new();
        for (label, pattern) in (0..).zip(extractor.patterns()) {
            let regex = regex::Regex::new(pattern.source()).unwrap();
            for captures in regex.captures_iter(text) {
                let whole = captures.get(0).unwrap();
                let value = |attribute: &Attribute| match captures.name(&attribute.name) {
                    None => Value::Absent,
                    Some(group) => {
                        let relative = |at: usize| offset(at - whole.start());
                        Value::One(Piece::Span(Span::new(relative(group.start()), relative(group.end()))))
                    }
                };
                found.push(Mention {
                    start: offset(whole.start()),
                    end: offset(whole.end()),
                    label,
                    attributes: extractor.schema().attributes().iter().map(value).collect(),
                });
            }
        }
        found.sort();
        found
    }

    proptest! {
        #[test]
        fn means_what_captures_iter_means(text in "[ab1é \n]{0,40}") {
            let extractor = patterns(&[
                r"(?P<x>a+)(?P<y>b)?",
                r"\b(?P<y>\w)(?P<z>\w)\b",
                "aa",
                "(?m)^.+$",
                r"(?P<x>a)|(?P<z>é+)",
                r"\Aa|b\z",
            ]);
            prop_assert_eq!(extractor.extract(&text), by_the_crate(&extractor, &text));
        }
    }

    #[test]
    fn refuses_what_cannot_work_and_says_why() {
        let message = |source: &str| {
            let error = Patterns::new("pattern", &[source], Declared::default()).unwrap_err();
            assert_eq!(error.key, "pattern");
            error.to_string()
        };
        assert!(message("x*").contains("empty string"));
        assert!(message(r"\b").contains("empty string"));
        assert!(message("a|").contains("empty string"));
        assert!(message("[a&&b]").contains("nothing at all"));
        assert!(message("(").contains("cannot read"));
        for name in ["url", "start", "end", "text", "pattern", "term", "origin", "since", "snapshot", "whole", "Text"] {
            let text = message(&format!("(?P<{name}>a)"));
            assert!(text.contains(name) && text.contains("rename"), "{text}");
        }
    }

    #[test]
    fn groups_of_all_patterns_make_one_schema() {
        let extractor = patterns(&["(?P<a>x)(?P<b>y)", "(?P<c>z)(?P<a>y)", "q"]);
        let names: Vec<_> = extractor.schema().attributes().iter().map(|a| a.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        let found = extractor.extract("q zy");
        assert_eq!(found[0].attributes.as_ref(), [Value::Absent, Value::Absent, Value::Absent]);
        assert_eq!(found[1].attributes[0], Value::One(Piece::Span(Span::new(1, 2))));
    }

    #[test]
    fn notes_name_the_patterns_that_do_not_recycle_by_window() {
        let notes = patterns(&["a{1,9}", "(?m)^.+$", r"\Aa+", r"[A-Z]\w+\s+[A-Z]\w+"]).notes();
        assert_eq!(notes.len(), 3);
        assert!(notes[0].ends_with("by line") && notes[1].contains("equal pages") && notes[2].contains("between"));
    }
}
