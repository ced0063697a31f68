//! Whether a URL still has a page to poll.
//!
//! It has none when the server says so (404, 410), when a full crawl no longer finds it, when its page stands elsewhere and
//! it answers with nothing but redirects or errors, and when it has failed for a month. One bad night says nothing.

use serde::{Deserialize, Serialize};

use crate::captures::Answer;
use crate::model::Timestamp;

/// A URL that fails for so long is gone,
const FAILING_US: i64 = 30 * 86_400 * Timestamp::SECOND;
/// if it was asked so often at least.
const FAILING_CAPTURES: u32 = 3;

/// What is known of a URL's presence. No attribute of serde leaves a field out, as in the state of its updates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Presence {
    /// Since when it is gone.
    pub gone: Option<Timestamp>,
    /// Captures that failed since the last one that did not, and the first of them.
    failed: u32,
    failed_since: Option<Timestamp>,
    /// The URL where its page stands now.
    pub moved_to: Option<String>,
}

impl Presence {
    /// Takes in what the server answered.
    pub(crate) fn answered(&mut self, answer: Answer, at: Timestamp) {
        match answer {
            Answer::Page | Answer::AsBefore => {
                (self.gone, self.failed, self.failed_since, self.moved_to) = (None, 0, None, None);
            }
            Answer::Gone => _ = self.gone.get_or_insert(at),
            Answer::Moved | Answer::Nothing => {
                self.failed = self.failed.saturating_add(1);
                let since = *self.failed_since.get_or_insert(at);
                let long = self.failed >= FAILING_CAPTURES && at.0 - since.0 >= FAILING_US;
                if long || self.moved_to.is_some() {
                    self.gone.get_or_insert(at);
                }
            }
        }
    }

    /// Its page was found at another URL.
    pub(crate) fn moves(&mut self, to: &str, at: Timestamp) {
        self.moved_to = Some(to.to_owned());
        if self.failed > 0 {
            self.gone.get_or_insert(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(n: i64) -> Timestamp {
        Timestamp(n * 86_400 * Timestamp::SECOND)
    }

    fn after(answers: &[(i64, u16)]) -> Presence {
        let mut presence = Presence::default();
        answers.iter().for_each(|(n, status)| presence.answered(Answer::of(Some(i64::from(*status))), day(*n)));
        presence
    }

    #[test]
    fn a_server_that_says_gone_is_believed_until_the_page_returns() {
        assert_eq!(after(&[(0, 200), (1, 404), (2, 410)]).gone, Some(day(1)));
        assert_eq!(after(&[(0, 200), (1, 404), (2, 503)]).gone, Some(day(1)));
        assert_eq!(after(&[(0, 200), (1, 404), (2, 200)]), Presence::default());
    }

    #[test]
    fn an_outage_is_not_the_end() {
        assert_eq!(after(&[(0, 200), (1, 503), (2, 503), (29, 500)]).gone, None);
        assert_eq!(after(&[(0, 200), (1, 503), (40, 503)]).gone, None, "asked twice only");
        assert_eq!(after(&[(0, 200), (1, 503), (20, 503), (31, 503)]).gone, Some(day(31)));
        assert_eq!(after(&[(0, 200), (1, 503), (20, 304), (31, 503)]).gone, None);
    }

    #[test]
    fn a_page_that_moved_is_gone_once_its_old_place_fails() {
        let mut first = after(&[(0, 200), (1, 301)]);
        first.moves("http://a/new", day(2));
        assert_eq!(first.gone, Some(day(2)));
        let mut copied = after(&[(0, 200)]);
        copied.moves("http://a/copy", day(1));
        assert_eq!(copied.gone, None, "both stand");
        copied.answered(Answer::of(Some(301i64)), day(3));
        assert_eq!(copied.gone, Some(day(3)));
    }
}
