//! Which capture of a URL is its page in a snapshot, and what a capture that only says "as before" stands for.

use super::{Answer, CaptureNote, NotedText};

/// What holds the content of a capture. `E` is something that another URL holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContentOf<E> {
    /// The capture of this index, among those of the URL in this snapshot.
    Capture(usize),
    /// The URL's last good page.
    LastPage,
    Elsewhere(E),
}

/// The captures of one URL in one snapshot, resolved.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Resolved<E> {
    /// For each capture, what holds its content; `None` if it has none or is an unresolved revisit.
    pub(crate) contents: Vec<Option<ContentOf<E>>>,
    /// Index of the capture that is the page.
    pub(crate) page: Option<usize>,
}

/// Resolves the captures of one URL, sorted by [`CaptureNote::order`].
///
/// `last` tells whether the URL has a last good page and which digest the archive stated for it. `elsewhere` finds a
/// capture or last page by stated digest or by the URL that a revisit names.
///
/// A revisit stands for the capture with its digest; without a digest, or as a 304, for what the URL held just before
/// it. A digest that contradicts what the URL held, and is found nowhere else, leaves it unresolved.
pub(crate) fn resolve<'a, E: Clone>(
    notes: impl IntoIterator<Item = &'a CaptureNote>,
    last: Option<Option<&'a str>>,
    elsewhere: impl Fn(&CaptureNote) -> Option<E>,
) -> Resolved<E> {
    let mut held: Option<ContentOf<E>> = last.map(|_| ContentOf::LastPage);
    let mut held_digest: Option<&str> = last.flatten();
    let mut resolved = Resolved { contents: Vec::new(), page: None };
    for (i, note) in notes.into_iter().enumerate() {
        let stated = note.archive_digest.as_deref();
        let content = match (&note.revisit, &note.text) {
            _ if note.broken || note.suspect.is_some() => None,
            (Some(revisit), _) => match (stated, held_digest) {
                _ if note.answer() == Answer::AsBefore => held.clone(),
                (Some(stated), Some(known)) if stated == known => held.clone(),
                (Some(stated), _) if last.flatten() == Some(stated) => Some(ContentOf::LastPage),
                (stated, known) => elsewhere(note).map(ContentOf::Elsewhere).or_else(|| {
                    let same_url = revisit.refers_to_url.as_ref().is_none_or(|url| *url == note.url);
                    let contradicts = stated.is_some() && known.is_some();
                    if same_url && !contradicts { held.clone() } else { None }
                }),
            },
            (None, NotedText::None) => None,
            (None, NotedText::AsLast) => Some(ContentOf::LastPage),
            (None, NotedText::Parsed(_)) => Some(ContentOf::Capture(i)),
        };
        if note.is_good() && content.is_some() {
            held.clone_from(&content);
            if stated.is_some() || note.revisit.is_none() {
                held_digest = stated;
            }
            resolved.page = Some(i);
        }
        resolved.contents.push(content);
    }
    resolved
}
