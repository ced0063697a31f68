//! Pages that moved between two snapshots: one was deleted, one was added, and both have the same text.

use crate::captures::UniqueTexts;
use crate::model::{Change, Digest, Fate};

/// Pairs of a deleted page and the added page that it became, by their positions. Each page is given by what became of
/// it, and the digest and length of its text. Ordered by the deleted page.
pub(crate) fn moves(pages: impl IntoIterator<Item = (Fate, Digest, i64)>) -> Vec<(usize, usize)> {
    let (mut deleted, mut added) = (UniqueTexts::default(), UniqueTexts::default());
    for (at, (fate, text, text_bytes)) in pages.into_iter().enumerate() {
        match fate {
            Fate::Changed(Change::Deleted) => deleted.add(text, text_bytes, at),
            Fate::Changed(Change::Added) => added.add(text, text_bytes, at),
            Fate::Changed(Change::Modified) | Fate::Unchanged => {}
        }
    }
    let pair = |(text, from): (Digest, &usize)| Some((*from, *added.holder(text)?));
    let mut moves: Vec<(usize, usize)> = deleted.iter().filter_map(pair).collect();
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
