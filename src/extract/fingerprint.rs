//! What must be equal for an old mention to count: the extractor's definition, the engines that run it, and the
//! conversion that made the text.

use crate::extract::{Extractor, ExtractorKind};
use crate::model::{Digest, DigestBuilder};

/// Bumped when our own code comes to mean something else by the same definition.
const OWN_VERSION: u64 = 1;

/// The exact versions of the engines, read from the lock file of the build: an update of a crate (or of the Unicode
/// tables inside it) changes every fingerprint that depends on it without anybody having to remember.
const LOCK: &str = include_str!("../../Cargo.lock");
const ENGINES: [&str; 3] = ["regex-automata", "regex-syntax", "aho-corasick"];

impl Extractor {
    /// `text_version` names the version of the conversion from bytes to text.
    #[must_use]
    pub fn fingerprint(&self, text_version: &str) -> Digest {
        of(self.kind(), text_version, |digest| self.kind_of().describe(digest))
    }

    /// Of a dictionary, the fingerprint without its terms: if two agree in this, one's mentions can be brought up to
    /// date for the other by [`crate::extract::dictionary::Edit`]. For other kinds the same as `fingerprint`.
    #[must_use]
    pub fn fingerprint_without_terms(&self, text_version: &str) -> Digest {
        match self {
            Self::Dictionary(dictionary) => of(self.kind(), text_version, |digest| dictionary.describe_options(digest)),
            _ => self.fingerprint(text_version),
        }
    }
}

/// The digest of a definition: what it `describe`s of itself, together with all that its meaning rests on.
pub(super) fn of(kind: ExtractorKind, text_version: &str, describe: impl FnOnce(&mut DigestBuilder)) -> Digest {
    let mut digest = DigestBuilder::new();
    digest.number(OWN_VERSION).field(text_version.as_bytes()).field(kind.as_str().as_bytes());
    let (major, minor, update) = char::UNICODE_VERSION;
    digest.field(&[major, minor, update]);
    for engine in ENGINES {
        digest.field(locked_version(engine).as_bytes());
    }
    describe(&mut digest);
    digest.finish()
}

fn locked_version(package: &str) -> &'static str {
    let entry = format!("name = \"{package}\"\nversion = \"");
    let version = LOCK.split_once(&entry).and_then(|(_, rest)| rest.split_once('"'));
    version.map_or("unknown", |(version, _)| version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::dictionary::{Dictionary, Options};
    use crate::extract::reach::Declared;
    use crate::extract::regex::Patterns;

    #[test]
    fn engines_are_found_in_the_lock_file() {
        for engine in ENGINES {
            assert!(locked_version(engine).starts_with(|c: char| c.is_ascii_digit()), "{engine}");
        }
    }

    #[test]
    fn everything_that_can_change_a_mention_changes_the_fingerprint() {
        let regex = |p: &[&str]| Extractor::Regex(Patterns::new("patterns", p, Declared::default()).unwrap());
        let dictionary = |whole_word, terms: &str| {
            let options = Options { whole_word, ..Options::default() };
            Extractor::Dictionary(Dictionary::new(Dictionary::terms_of(terms), options).unwrap())
        };
        let all = [
            regex(&["ab"]).fingerprint("1"),
            regex(&["ab"]).fingerprint("2"),
            regex(&["a", "b"]).fingerprint("1"),
            dictionary(true, "ab").fingerprint("1"),
            dictionary(false, "ab").fingerprint("1"),
            dictionary(true, "ab\ncd").fingerprint("1"),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
        let without = |e: Extractor| e.fingerprint_without_terms("1");
        assert_eq!(without(dictionary(true, "ab")), without(dictionary(true, "ab\ncd")));
        assert_ne!(without(dictionary(true, "ab")), without(dictionary(false, "ab")));
    }
}
