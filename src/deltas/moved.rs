//! Pages that moved: the text of one URL is found again under another.
//!
//! Equal texts are the only evidence, so it must be unmistakable: the text is not short, and on either side just one
//! page has it. A text that two deleted or two added pages share says nothing about which became which.

use std::collections::HashMap;

use crate::model::{Change, Digest, Fate};

/// Shorter texts are equal by chance ("not found", "under construction").
const LEAST_BYTES: u64 = 64;

/// Whether a page with a text of so many bytes can be recognised under another URL.
#[must_use]
pub fn is_recognisable(text_bytes: u64) -> bool {
    text_bytes >= LEAST_BYTES
}

/// Pairs of a deleted page and the added page that it became, by their positions. Each page is given by what became of
/// it, and the digest and length of its text. Ordered by the deleted page.
pub fn moves(pages: impl IntoIterator<Item = (Fate, Digest, u64)>) -> Vec<(usize, usize)> {
    #[derive(Default)]
    struct SameText {
        deleted: Vec<usize>,
        added: Vec<usize>,
    }
    let mut by_text: HashMap<Digest, SameText> = HashMap::new();
    for (at, (fate, text, text_bytes)) in pages.into_iter().enumerate() {
        if !is_recognisable(text_bytes) {
            continue;
        }
        match fate {
            Fate::Changed(Change::Deleted) => by_text.entry(text).or_default().deleted.push(at),
            Fate::Changed(Change::Added) => by_text.entry(text).or_default().added.push(at),
            Fate::Changed(Change::Modified) | Fate::Unchanged => {}
        }
    }
    let sole = |pages: SameText| match (pages.deleted.as_slice(), pages.added.as_slice()) {
        ([from], [to]) => Some((*from, *to)),
        _ => None,
    };
    let mut moves: Vec<(usize, usize)> = by_text.into_values().filter_map(sole).collect();
    moves.sort_unstable();
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unmistakable_texts_move() {
        let page = |change, name: &str, bytes| (Fate::Changed(change), Digest::of(name.as_bytes()), bytes);
        let pages = [
            page(Change::Deleted, "moved", 64),
            page(Change::Added, "short", 63),
            page(Change::Deleted, "short", 63),
            page(Change::Added, "moved", 64),
            page(Change::Modified, "moved", 64),
            page(Change::Deleted, "gone", 1_000),
            page(Change::Added, "new", 1_000),
            page(Change::Deleted, "two deleted", 1_000),
            page(Change::Deleted, "two deleted", 1_000),
            page(Change::Added, "two deleted", 1_000),
            page(Change::Added, "two added", 1_000),
            page(Change::Added, "two added", 1_000),
            page(Change::Deleted, "two added", 1_000),
        ];
        assert_eq!(moves(pages), [(0, 3)]);
    }
}
