//! How a page stands to its last good version.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// No earlier snapshot has a good page of this URL.
    Added,
    /// Its change digest differs from the last good page's.
    Modified,
    Unchanged,
    /// Not captured in this snapshot of a partial crawl: last good page taken over.
    Carried,
}

impl Change {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Unchanged => "unchanged",
            Self::Carried => "carried",
        }
    }
}
