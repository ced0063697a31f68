//! What a server's answer says about the page at its URL.

/// An answer, by its status. This is the only place that knows which statuses make a capture good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Here is the page: 200, or no status because the archive keeps none.
    Page,
    /// The page is as it was: 304.
    AsBefore,
    /// There is no such page any more: 404, 410.
    Gone,
    /// The page lies elsewhere for good: 301, 308.
    Moved,
    /// An error, or a redirect for the time being: it says nothing about the page.
    Nothing,
}

impl Answer {
    #[must_use]
    pub(crate) fn of(status: Option<impl Into<i64>>) -> Self {
        match status.map(Into::into) {
            None | Some(200) => Self::Page,
            Some(304) => Self::AsBefore,
            Some(404 | 410) => Self::Gone,
            Some(301 | 308) => Self::Moved,
            Some(_) => Self::Nothing,
        }
    }

    /// Whether a capture with this answer can be the page of its URL.
    #[must_use]
    pub(crate) fn is_good(self) -> bool {
        matches!(self, Self::Page | Self::AsBefore)
    }
}
