//! How far an extractor looks.

use crate::extract::command::Offsets;
use crate::model::closed_set::closed_set;

/// How long a mention can be, and how many bytes on each side of it decide about it: the paper's alpha and beta, with
/// the context split by side.
///
/// `scope` is the length of the longest mention in bytes (so the paper's strict `end - start < alpha` holds for the
/// half-open spans used here under either reading). The *window* of a mention `[s, e)` is `[s - left, e + right)`,
/// not clipped to the page: a page edge inside the window is part of what the extractor sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reach {
    pub scope: u32,
    pub left: u32,
    pub right: u32,
}

impl Reach {
    #[must_use]
    pub fn new(scope: u32, left: u32, right: u32) -> Self {
        Self { scope: scope.max(1), left, right }
    }

    /// Length of the longest window: the paper's gamma plus one, and the length of the shortest old region that is of
    /// use in the middle of a page.
    #[must_use]
    pub fn window(self) -> i64 {
        i64::from(self.scope) + i64::from(self.left) + i64::from(self.right)
    }

    /// The paper's `2 beta + alpha - 1`.
    #[must_use]
    pub fn gamma(self) -> i64 {
        self.window() - 1
    }

    /// The smallest reach that includes both.
    #[must_use]
    pub fn widest(self, other: Self) -> Self {
        Self { scope: self.scope.max(other.scope), left: self.left.max(other.left), right: self.right.max(other.right) }
    }

    /// Declared numbers may enlarge what is known, never shrink it.
    #[must_use]
    pub fn enlarged(self, declared: Declared) -> Self {
        Self {
            scope: self.scope.max(declared.scope.unwrap_or(0)),
            left: self.left.max(declared.context.unwrap_or(0)),
            right: self.right.max(declared.context.unwrap_or(0)),
        }
    }
}

/// `scope` and `context` as a pipeline file states them, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Declared {
    pub scope: Option<u32>,
    pub context: Option<u32>,
}

closed_set! {
    /// What a program is shown at a time, as pipeline files and workers name it. From narrow to wide.
    pub enum Unit: "unit" {
        /// Any part of a page: a mention depends on its window only.
        Window = "window",
        /// Each line for itself.
        Line = "line",
        /// Consecutive lines, cut where the lines around tell.
        Block = "block",
        /// Each paragraph for itself: lines up to a blank one.
        Paragraph = "paragraph",
        /// The whole page: a mention may depend on anything in it.
        Page = "page",
    }
}

/// What a [`Runner`](crate::extract::Runner) is shown at a time, and thus what a mention can depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sees {
    /// Any part of the page. Mentions whose window lies in it are the page's.
    Windows(Windows),
    /// One piece of the page at a time, and nothing but what is declared to be shown along with it.
    Units(Cut),
}

impl Sees {
    /// Counted in the offsets of its windows; `None` if there are none.
    pub(crate) fn reach(self) -> Option<Reach> {
        match self {
            Self::Windows(windows) => Some(windows.reach),
            Self::Units(_) => None,
        }
    }
}

/// How far somebody who is asked looks beyond a mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    /// Counted in `offsets`.
    pub(crate) reach: Reach,
    pub(crate) offsets: Offsets,
    /// Whether the same text always gets the same answer.
    pub(crate) deterministic: bool,
}

/// How a page is cut into units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    Lines,
    Paragraphs,
    Blocks(Blocks),
    /// The page is one unit: a mention may depend on anything in it.
    Page,
}

/// How blocks are cut and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// Their size on average.
    pub bytes: u32,
    /// How many blocks on each side are shown along with one.
    pub context: u32,
}

impl Default for Blocks {
    fn default() -> Self {
        Self { bytes: 1200, context: 0 }
    }
}

/// What of a page is shown along with each of its units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Along {
    pub title: bool,
    pub url: bool,
}

impl Unit {
    /// How a page is cut into units of this kind; `None` for windows, which are no units.
    pub(crate) fn cut(self, blocks: Blocks) -> Option<Cut> {
        match self {
            Self::Window => None,
            Self::Line => Some(Cut::Lines),
            Self::Block => Some(Cut::Blocks(blocks)),
            Self::Paragraph => Some(Cut::Paragraphs),
            Self::Page => Some(Cut::Page),
        }
    }
}
