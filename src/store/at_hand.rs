//! Old texts that were read a moment ago: a night matches them, compares them and shows them, each in another stage, and
//! their neighbours would be unpacked with them every time.
//!
//! What is kept is what the file holds, by the identity of the file, so that nobody can tell where a text comes from. It
//! takes bounded room: what finds none is read from its file again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::memory::Identity;
use crate::model::maps::HashMap;

/// Bytes of URLs and texts that are kept.
const MOST: usize = 16 << 20;

/// Texts of pages by file and URL.
#[derive(Clone, Default)]
pub(super) struct TextsAtHand {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    bytes: usize,
    files: HashMap<Identity, HashMap<String, String>>,
}

impl TextsAtHand {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The texts of URLs, as far as they are kept.
    pub(super) fn find(&self, file: Identity, urls: &[&str]) -> Vec<Option<String>> {
        let kept = self.kept();
        let texts = kept.files.get(&file);
        urls.iter().map(|url| texts.and_then(|texts| texts.get(*url)).cloned()).collect()
    }

    /// Keeps texts as long as there is room.
    pub(super) fn keep<'a>(&self, file: Identity, texts: impl Iterator<Item = (&'a str, &'a str)>) {
        let mut kept = self.kept();
        for (url, text) in texts {
            let bytes = url.len() + text.len();
            if kept.bytes + bytes > MOST {
                continue;
            }
            let before = kept.files.entry(file).or_default().insert(url.to_owned(), text.to_owned());
            if before.is_none() {
                kept.bytes += bytes;
            }
        }
    }

    /// Another night begins, with other texts.
    pub(super) fn clear(&self) {
        *self.kept() = Kept::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inode: u64) -> Identity {
        Identity { inode, bytes: 1, modified: (0, 0) }
    }

    #[test]
    fn texts_are_found_by_file_and_url() {
        let texts = TextsAtHand::default();
        assert_eq!(texts.find(file(1), &["a"]), [None]);
        texts.keep(file(1), [("a", "one"), ("b", "two")].into_iter());
        texts.keep(file(2), [("a", "other")].into_iter());
        assert_eq!(texts.find(file(1), &["b", "c", "a"]), [Some("two".to_owned()), None, Some("one".to_owned())]);
        assert_eq!(texts.find(file(2), &["a", "b"]), [Some("other".to_owned()), None]);
        texts.clear();
        assert_eq!(texts.find(file(1), &["a"]), [None]);
        assert_eq!(texts.kept().bytes, 0);
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let texts = TextsAtHand::default();
        let half = "x".repeat(MOST / 2);
        texts.keep(file(1), [("a", half.as_str()), ("b", "y"), ("c", half.as_str()), ("d", "z")].into_iter());
        // The same again takes no more.
        texts.keep(file(1), [("b", "y")].into_iter());
        let found: Vec<bool> = texts.find(file(1), &["a", "b", "c", "d"]).iter().map(Option::is_some).collect();
        assert_eq!(found, [true, true, false, true]);
        assert_eq!(texts.kept().bytes, MOST / 2 + 5);
    }
}
