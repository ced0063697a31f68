//! Term lists of up to a million entries.
//!
//! **Meaning.** An *occurrence* is a place where the page has the bytes of a term; with `whole_word`, only where the
//! characters next to it on both sides are no word characters (`\w` of the `regex` crate; a page edge is none). At each
//! start only the longest occurrence counts. The mentions are those of a scan from left to right: leftmost first, then
//! on from its end. An occurrence that `whole_word` excludes does not stand in the way of another one.
//!
//! **Case.** With `ignore_case` a letter is compared by its lower case, if that is one character of as many bytes
//! (all of ASCII, and all but a few letters of Latin, Greek, Cyrillic and the other scripts with case); other
//! letters, such as the Kelvin sign or the dotted capital I, are compared as they are. So folding never moves an
//! offset.
//!
//! Terms that are equal after folding are one term: the first in the list. `term` of a mention is the term as listed,
//! its text what the page has.
//!
//! **Cost.** Without `whole_word` an Aho-Corasick automaton with leftmost-longest matching: of a few terms one that jumps
//! to where a term may begin, of many a double array, which is built in time linear in the list, but not before there is
//! so much text that it pays (see `heads.rs`). With it, words: a hash look-up per word of the page and a trie of words
//! below (see `words.rs`), which is faster than any automaton and exact where filtering an automaton's matches is not.

mod edit;
mod fold;
mod heads;
mod words;

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, Input};
use daachorse::DoubleArrayAhoCorasick;

use crate::extract::ExtractorKind;
use crate::extract::mention::{Mention, offset};
use crate::extract::reach::{Declared, Reach};
use crate::extract::scan::{Mode, Pass, Scan, scan_all};
use crate::extract::schema::Schema;
use crate::extract::traits::{Extracts, Finds, LabelColumn, Labels, Prior};
use crate::model::DigestBuilder;
use crate::model::KeyError;

pub(crate) use edit::Edit;
use fold::{Folded, fold};
use heads::Heads;
use words::{Text, Words};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub whole_word: bool,
    pub ignore_case: bool,
    pub declared: Declared,
}

pub struct Dictionary {
    /// As listed; the label of a mention is an index into this.
    terms: Vec<Box<str>>,
    /// Labels in the order of their terms, to find a label by text.
    sorted: Vec<u32>,
    finder: Finder,
    reach: Reach,
    /// The same reach, as what its one pass depends on.
    mode: Mode,
    options: Options,
    schema: Schema,
}

enum Finder {
    FewAnywhere(AhoCorasick),
    /// Boxed: it is large.
    ManyAnywhere(Box<Heads>),
    /// Some of them so short that they are everywhere.
    ManyAndShort(DoubleArrayAhoCorasick<u32>),
    WholeWords(Words),
}

/// More terms than this are many. The automaton for few finds rare first bytes and packs terms into vector registers,
/// which does not help many; and building it takes time quadratic in terms that are alike.
const FEW: usize = 1_000;

impl Finder {
    /// `terms`: distinct, not empty, in the order of their labels; `sorted`: labels in the order of their terms. More than
    /// `few` of them are many.
    fn new(terms: &[Cow<'_, str>], sorted: &[u32], whole_word: bool, few: usize) -> Result<Self, String> {
        if whole_word {
            return Ok(Self::WholeWords(Words::new(terms)));
        }
        if terms.len() <= few {
            let longest = aho_corasick::MatchKind::LeftmostLongest;
            let automaton = AhoCorasick::builder().match_kind(longest).build(terms.iter().map(|term| term.as_bytes()));
            return automaton.map(Self::FewAnywhere).map_err(|error| error.to_string());
        }
        let ascending: Vec<(&str, u32)> = sorted.iter().map(|&label| (&*terms[label as usize], label)).collect();
        match Heads::new(&ascending) {
            Some(heads) => Ok(Self::ManyAnywhere(Box::new(heads))),
            None => heads::automaton(ascending.into_iter()).map(Self::ManyAndShort),
        }
    }
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dictionary")
            .field("terms", &self.terms.len())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Dictionary {
    /// The terms of a file: one a line, white space around them dropped, blank lines skipped.
    pub fn terms_of(file: &str) -> impl Iterator<Item = &str> {
        file.strip_prefix('\u{feff}').unwrap_or(file).lines().map(str::trim).filter(|line| !line.is_empty())
    }

    /// Terms must not be empty; `terms_of` yields none that are.
    pub fn new<'a>(terms: impl IntoIterator<Item = &'a str>, options: Options) -> Result<Self, KeyError> {
        Self::with_few(terms, options, FEW)
    }

    fn with_few<'a>(terms: impl IntoIterator<Item = &'a str>, options: Options, few: usize) -> Result<Self, KeyError> {
        let problem = |what: String| KeyError::new("terms", what, "split the list over several extractors");
        let listed: Vec<&str> = terms.into_iter().filter(|term| !term.is_empty()).collect();
        if u32::try_from(listed.len()).is_err() {
            return Err(problem("more than 2^32 terms".into()));
        }
        let key = |term: &'a str| if options.ignore_case { Cow::Owned(fold(term)) } else { Cow::Borrowed(term) };
        let (kept, folded, by_key) = distinct(&listed, listed.iter().map(|term| key(term)).collect());
        let longest = folded.iter().map(|term| term.len()).max().unwrap_or(1);
        let scope = u32::try_from(longest).map_err(|_| problem("a term is longer than 4 GiB".into()))?;
        let finder = Finder::new(&folded, &by_key, options.whole_word, few);
        let finder = finder.map_err(|error| problem(format!("cannot build the term automaton: {error}")))?;
        let mut sorted = by_key;
        if options.ignore_case {
            sorted.sort_unstable_by(|&a, &b| kept[a as usize].cmp(&kept[b as usize]));
        }
        // A neighbour is one character: at most four bytes.
        let context = if options.whole_word { 4 } else { 0 };
        let reach = Reach::new(scope, context, context).enlarged(options.declared);
        let mode = Mode::Window(reach);
        Ok(Self { terms: kept, sorted, finder, reach, mode, options, schema: Schema::default() })
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    #[must_use]
    pub fn options(&self) -> Options {
        self.options
    }

    #[must_use]
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// The term of a label, as listed.
    #[must_use]
    pub fn term(&self, label: u32) -> Option<&str> {
        self.terms.get(label as usize).map(AsRef::as_ref)
    }

    /// The label of a term, spelled as listed.
    #[must_use]
    pub fn label(&self, term: &str) -> Option<u32> {
        let at = self.sorted.binary_search_by(|&label| self.terms[label as usize].as_ref().cmp(term)).ok()?;
        Some(self.sorted[at])
    }

    /// All mentions, in canonical order.
    #[must_use]
    pub fn extract(&self, text: &str) -> Vec<Mention> {
        scan_all(&[self], text)
    }

    /// Declared numbers are left out: they only enlarge the reach and change no mention.
    pub(crate) fn describe_options(&self, digest: &mut DigestBuilder) {
        digest.number(u64::from(self.options.whole_word)).number(u64::from(self.options.ignore_case));
    }

    fn describe_terms(&self, digest: &mut DigestBuilder) {
        digest.number(self.terms.len() as u64);
        for term in &self.terms {
            digest.field(term.as_bytes());
        }
    }
}

/// The first of terms whose keys are equal, with their keys, both in the order of the list; and their labels, which are
/// positions there, in the order of the keys.
fn distinct<'a>(listed: &[&'a str], keys: Vec<Cow<'a, str>>) -> (Vec<Box<str>>, Vec<Cow<'a, str>>, Vec<u32>) {
    // Most keys differ in their first bytes, which are compared without going to where the key is.
    let first = |key: &str| {
        let mut bytes = [0; 8];
        let length = key.len().min(8);
        bytes[..length].copy_from_slice(&key.as_bytes()[..length]);
        u64::from_be_bytes(bytes)
    };
    let mut order: Vec<(u64, u32)> = keys.iter().map(|key| first(key)).zip(0..).collect();
    let key = |at: u32| &*keys[at as usize];
    order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a.1).cmp(key(b.1))).then(a.1.cmp(&b.1)));
    order.dedup_by(|later, earlier| later.0 == earlier.0 && key(later.1) == key(earlier.1));
    let mut is_kept = vec![false; listed.len()];
    order.iter().for_each(|(_, at)| is_kept[*at as usize] = true);
    let mut labels = Vec::with_capacity(listed.len());
    let mut next = 0;
    for &kept in &is_kept {
        labels.push(next);
        next += u32::from(kept);
    }
    let sorted = order.into_iter().map(|(_, at)| labels[at as usize]).collect();
    let kept = || is_kept.iter().copied();
    let terms = listed.iter().zip(kept()).filter(|(_, kept)| *kept).map(|(term, _)| Box::from(*term)).collect();
    let keys = keys.into_iter().zip(kept()).filter(|(_, kept)| *kept).map(|(key, _)| key).collect();
    (terms, keys, sorted)
}

impl Extracts for Dictionary {
    fn kind(&self) -> ExtractorKind {
        ExtractorKind::Dictionary
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn finds(&self) -> Finds<'_> {
        Finds::ByScan(vec![self])
    }

    fn prior(&self) -> Prior {
        Prior { byte: 6.0, page: 2_000.0 }
    }

    fn describe(&self, digest: &mut DigestBuilder) {
        self.describe_options(digest);
        self.describe_terms(digest);
    }

    fn labels(&self) -> Option<&dyn Labels> {
        Some(self)
    }
}

impl Labels for Dictionary {
    fn column(&self) -> LabelColumn {
        LabelColumn::Term
    }

    fn text(&self, label: u32) -> Option<&str> {
        self.term(label)
    }

    fn find(&self, text: &str) -> Option<u32> {
        self.label(text)
    }
}

impl Pass for Dictionary {
    fn mode(&self) -> &Mode {
        &self.mode
    }

    fn scan(&self) -> Box<dyn Scan + '_> {
        Box::new(DictionaryScan { dictionary: self, folded: Folded::default() })
    }
}

struct DictionaryScan<'a> {
    dictionary: &'a Dictionary,
    folded: Folded,
}

impl Scan for DictionaryScan<'_> {
    fn next(&mut self, text: &str, from: usize, end: usize) -> Option<Mention> {
        let Dictionary { finder, options, .. } = self.dictionary;
        // The folded text is as long as the text that it stands for, which begins at `base` in the page.
        let (haystack, base) =
            if options.ignore_case { self.folded.cover(text, from, end) } else { (text.as_bytes(), 0) };
        let (start, stop, term) = match finder {
            Finder::FewAnywhere(automaton) => {
                let found = automaton.find(Input::new(haystack).span(from - base..end - base))?;
                (found.start() + base, found.end() + base, found.pattern().as_u32())
            }
            Finder::ManyAnywhere(heads) => {
                let (start, stop, term) = heads.find(haystack, from - base, end - base)?;
                (start + base, stop + base, term)
            }
            Finder::ManyAndShort(automaton) => {
                let found = automaton.leftmost_find_iter(&haystack[from - base..end - base]).next()?;
                (found.start() + from, found.end() + from, found.value())
            }
            Finder::WholeWords(words) => words.find(Text { text, folded: haystack, base }, from, end)?,
        };
        Some(Mention::plain(offset(start), offset(stop), term))
    }
}

#[cfg(test)]
mod tests;
