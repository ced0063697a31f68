//! How far an extractor looks.

/// Longest mention and bytes looked at on each side. The paper's alpha and beta, with the context split by side.
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

/// What an extractor's result for a place depends on, which decides how it is recycled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A mention depends on its window only.
    Window,
    /// Each line is extracted for itself.
    Line,
    /// Each paragraph (lines up to a blank one) is extracted for itself.
    Paragraph,
    /// A mention may depend on anything in the page: reused only if the page is equal.
    Page,
}

impl Unit {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::Line => "line",
            Self::Paragraph => "paragraph",
            Self::Page => "page",
        }
    }
}
