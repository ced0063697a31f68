//! What an alert is about.

use super::change::{Change, MentionChange};
use super::closed_set::closed_set;
use super::tuple::TupleChange;

closed_set! {
    /// What made a watch fire.
    pub enum AlertKind: "kind of alert" {
        /// New text that a pattern matches.
        NewText = "new_text",
        /// Enough of a page's text is new.
        Share = "share",
        /// Enough pages changed since the watch last fired.
        Changes = "changes",
    }
    or Page("page_" + Change)
    or Mention("mention_" + MentionChange)
    or Tuple("tuple_" + TupleChange)
}

impl AlertKind {
    /// Whether it is about text that is new on a page. Such alerts do not hold for a page that moved here from another
    /// URL.
    #[must_use]
    pub fn is_about_text(self) -> bool {
        matches!(self, Self::NewText | Self::Share)
    }
}
