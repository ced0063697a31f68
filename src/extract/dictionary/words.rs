//! Whole-word search by words instead of bytes.
//!
//! Cut page and terms into *tokens*: maximal runs of word characters, and single other characters. A whole-word
//! occurrence has no word character next to it, so it begins and ends between tokens, and every run of word
//! characters in it is bounded inside it or by those neighbours: it is a sequence of whole tokens of the page. Hence
//! occurrences are paths in a trie of tokens, and only token starts need to be tried (those not after a word
//! character).
//!
//! Tokens are numbered by a hash table (short ones are their own key, so a look-up touches one entry), trie edges are
//! another on (node, token); a node with a single child, which is most of them, holds it itself. A page word that
//! starts no term mostly costs a look at a small bit filter. Memory: about 100 bytes per term of a few words.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(super) struct Words {
    /// Tokens of up to `SHORT` bytes, by their bytes and length.
    short: HashMap<u128, Token, BuildHasherDefault<Mix>>,
    long: HashMap<Box<[u8]>, Token, BuildHasherDefault<Mix>>,
    /// Tokens of one ASCII byte. They are in `short` too, but are looked up most.
    ascii: Box<[Option<Token>; 128]>,
    tokens: u32,
    nodes: Vec<Node>,
    /// Of nodes with several children: (node << 32 | token) to child.
    edges: HashMap<u64, u32, BuildHasherDefault<Mix>>,
    /// Bits for the hashes of tokens that start a term.
    filter: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Token {
    id: u32,
    /// The node it leads to from the root; `NONE` if no term starts with it.
    first: u32,
}

struct Node {
    /// The term that ends here.
    term: u32,
    /// Its only child and the token that leads there; `NONE` if it has none, `SEVERAL` if there are more.
    token: u32,
    child: u32,
}

const NONE: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;
const SHORT: usize = 15;

impl Words {
    /// Terms must be distinct and not empty.
    pub(super) fn new(terms: &[impl AsRef<str>]) -> Self {
        let mut words = Self {
            short: HashMap::default(),
            long: HashMap::default(),
            ascii: Box::new([None; 128]),
            tokens: 0,
            nodes: Vec::new(),
            edges: HashMap::default(),
            filter: vec![0; (terms.len() / 4).next_power_of_two().max(64)],
        };
        for (label, term) in (0..).zip(terms) {
            let term = term.as_ref();
            let mut node = None;
            let mut at = 0;
            while at < term.len() {
                let end = token_end(term, at);
                node = Some(words.step(node, &term.as_bytes()[at..end]));
                at = end;
            }
            if let Some(node) = node {
                words.nodes[node as usize].term = label;
            }
        }
        words
    }

    /// The child of a node (of the root, if `None`) for a token, made if need be.
    fn step(&mut self, node: Option<u32>, bytes: &[u8]) -> u32 {
        let fresh = u32::try_from(self.nodes.len()).expect("fewer nodes than bytes of terms");
        let mut token = self.token(bytes).unwrap_or(Token { id: self.tokens, first: NONE });
        self.tokens = self.tokens.max(token.id + 1);
        let child = match node {
            None => {
                let (word, bit) = self.filter_bit(bytes);
                self.filter[word] |= bit;
                if token.first == NONE {
                    token.first = fresh;
                }
                token.first
            }
            Some(at) => {
                let parent = &mut self.nodes[at as usize];
                if parent.token == NONE {
                    (parent.token, parent.child) = (token.id, fresh);
                } else if parent.token != token.id && parent.token != SEVERAL {
                    self.edges.insert(edge_key(at, parent.token), parent.child);
                    parent.token = SEVERAL;
                }
                if parent.token == SEVERAL {
                    *self.edges.entry(edge_key(at, token.id)).or_insert(fresh)
                } else {
                    parent.child
                }
            }
        };
        self.set_token(bytes, token);
        if child == fresh {
            self.nodes.push(Node { term: NONE, token: NONE, child: NONE });
        }
        child
    }

    fn token(&self, bytes: &[u8]) -> Option<Token> {
        match *bytes {
            [byte] if byte.is_ascii() => self.ascii[usize::from(byte)],
            _ => match short_key(bytes) {
                Some(key) => self.short.get(&key).copied(),
                None => self.long.get(bytes).copied(),
            },
        }
    }

    fn set_token(&mut self, bytes: &[u8], token: Token) {
        match *bytes {
            [byte] if byte.is_ascii() => self.ascii[usize::from(byte)] = Some(token),
            _ => match short_key(bytes) {
                Some(key) => _ = self.short.insert(key, token),
                None => _ = self.long.insert(bytes.into(), token),
            },
        }
    }

    fn child(&self, node: u32, token: u32) -> Option<u32> {
        let at = &self.nodes[node as usize];
        match at.token {
            SEVERAL => self.edges.get(&edge_key(node, token)).copied(),
            only => (only == token).then_some(at.child),
        }
    }

    fn filter_bit(&self, bytes: &[u8]) -> (usize, u64) {
        let mut mix = Mix::default();
        mix.write(bytes);
        // The hash tables use the low bits, so the filter uses the high ones.
        let at = (mix.finish() >> 20) as usize & (self.filter.len() * 64 - 1);
        (at / 64, 1 << (at % 64))
    }

    fn may_start(&self, bytes: &[u8]) -> bool {
        let (word, bit) = self.filter_bit(bytes);
        self.filter[word] & bit != 0
    }

    /// The leftmost, then longest occurrence inside `[from, end)`: start, end and term.
    pub(super) fn find(&self, page: Text<'_>, from: usize, end: usize) -> Option<(usize, usize, u32)> {
        let text = page.text;
        let mut at = text.ceil_char_boundary(from);
        if word_before(text, at) {
            if at < end && word_at(text, at) {
                at = token_end(text, at);
            }
            // What follows the word cannot start an occurrence: a word character stands before it.
            at = (at < text.len()).then(|| token_end(text, at))?;
        }
        // The word after the last one tried, which is usually the next to be tried.
        let mut ahead = Ahead { at: NOWHERE, token: None };
        while at < end {
            let stop = token_end(text, at);
            if stop > end {
                return None;
            }
            let bytes = page.compared(at, stop);
            let token = if ahead.at == at {
                ahead.token
            } else if self.may_start(bytes) {
                self.token(bytes)
            } else {
                None
            };
            if let Some(first) = token.map(|token| token.first).filter(|&first| first != NONE)
                && let Some((occurrence_end, term)) = self.longest(page, first, stop, end, &mut ahead)
            {
                return Some((at, occurrence_end, term));
            }
            let word = word_at(text, at);
            at = stop;
            if word && at < text.len() {
                at = token_end(text, at);
            }
        }
        None
    }

    /// The longest term that continues from `node`, whose last token ends at `at`.
    fn longest(
        &self,
        page: Text<'_>,
        mut node: u32,
        mut at: usize,
        end: usize,
        ahead: &mut Ahead,
    ) -> Option<(usize, u32)> {
        let text = page.text;
        let began = at;
        let mut best = None;
        loop {
            let term = self.nodes[node as usize].term;
            // After a run of word characters no word character follows anyway; after another character one may.
            if term != NONE && !(at < text.len() && word_at(text, at)) {
                best = Some((at, term));
            }
            if at >= end || self.nodes[node as usize].token == NONE {
                return best;
            }
            let stop = token_end(text, at);
            if stop > end {
                return best;
            }
            let token = self.token(page.compared(at, stop));
            if (ahead.at == NOWHERE || ahead.at < began) && word_at(text, at) {
                *ahead = Ahead { at, token };
            }
            let Some(next) = token.and_then(|token| self.child(node, token.id)) else {
                return best;
            };
            node = next;
            at = stop;
        }
    }
}

/// A page, and what of it is compared: its bytes from `base` on, folded or not.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) text: &'a str,
    pub(super) folded: &'a [u8],
    pub(super) base: usize,
}

impl<'a> Text<'a> {
    fn compared(self, from: usize, to: usize) -> &'a [u8] {
        &self.folded[from - self.base..to - self.base]
    }
}

/// A word that was looked up on the way.
struct Ahead {
    at: usize,
    token: Option<Token>,
}

const NOWHERE: usize = usize::MAX;

/// The bytes and their number in one key.
fn short_key(bytes: &[u8]) -> Option<u128> {
    if bytes.len() > SHORT {
        return None;
    }
    let mut key = [0; 16];
    key[..bytes.len()].copy_from_slice(bytes);
    key[SHORT] = u8::try_from(bytes.len()).expect("short");
    Some(u128::from_le_bytes(key))
}

fn edge_key(node: u32, token: u32) -> u64 {
    u64::from(node) << 32 | u64::from(token)
}

/// Whether the character at `at` is a word character; `at` is a character boundary before the end.
fn word_at(text: &str, at: usize) -> bool {
    let byte = text.as_bytes()[at];
    if byte.is_ascii() {
        ascii_word(byte)
    } else {
        text[at..].chars().next().is_some_and(regex_syntax::is_word_character)
    }
}

fn word_before(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_some_and(regex_syntax::is_word_character)
}

fn ascii_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// End of the token that starts at `at`, a character boundary before the end.
fn token_end(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut end = at;
    loop {
        while end < bytes.len() && ascii_word(bytes[end]) {
            end += 1;
        }
        if end == bytes.len() || (bytes[end].is_ascii() && end > at) {
            return end;
        }
        if bytes[end].is_ascii() {
            return end + 1;
        }
        let c = text[end..].chars().next().expect("not at the end");
        if !regex_syntax::is_word_character(c) {
            return if end == at { end + c.len_utf8() } else { end };
        }
        end += c.len_utf8();
    }
}

/// Multiply and fold, eight bytes at a time. Keys are the user's own terms, so nobody attacks it.
#[derive(Default)]
pub(super) struct Mix(u64);

impl Mix {
    fn add(&mut self, value: u64) {
        const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
        let product = (self.0 ^ value ^ ODD.rotate_left(32)).wrapping_mul(ODD);
        self.0 = product ^ (product >> 32);
    }
}

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.add(u64::from_le_bytes(chunk.try_into().expect("chunks of eight")));
        }
        let rest = chunks.remainder();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
    }

    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }

    fn write_u128(&mut self, value: u128) {
        let bytes = value.to_le_bytes();
        self.write(&bytes[..8]);
        self.write(&bytes[8..]);
    }

    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }
}
