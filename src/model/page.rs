//! What a page says: its text, and on the side its title and links.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::closed_set::closed_set;
use crate::model::{Digest, DigestBuilder, Timestamp};

/// A payload as read: everything that ratoon keeps of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Content {
    pub title: Option<String>,
    pub text: String,
    /// In page order.
    pub links: Vec<Link>,
    /// The address that the page gives as its own.
    pub canonical: Option<String>,
    /// Digest of the names of its elements, in page order; `None` for what has no elements.
    pub structure: Option<Digest>,
    /// Where its text stands among its elements, as `text::elements` writes it; `None` where nobody asked for it.
    pub elements: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    /// Absolute URL, with its fragment.
    pub target: String,
    /// Anchor text, white space folded.
    pub label: String,
    pub kind: LinkKind,
    /// `None` where it was stored before anybody noted it.
    pub element: Option<LinkElement>,
    /// When a feed says that its entry was published.
    pub dated: Option<Timestamp>,
}

closed_set! {
    /// What made a link.
    pub enum LinkElement: "element that makes a link" {
        A = "a",
        Area = "area",
        Frame = "frame",
        Iframe = "iframe",
        /// `<meta http-equiv=refresh>`.
        Refresh = "refresh",
        Xlink = "xlink",
        /// `link` of a feed.
        Feed = "feed",
    }
}

closed_set! {
    /// Where a link leads to.
    pub enum LinkKind: "kind of link" {
        /// Into the same page (differs in the fragment only).
        Interior = "interior",
        /// To another page of the same host.
        Local = "local",
        /// To another host.
        Global = "global",
    }
}

impl Content {
    /// Digest of title, text and links (target, label) in page order, each with its length. `mask` is applied to
    /// title, text and labels first: the identity gives the content digest, the pipeline's `ignore` rules the
    /// change digest.
    #[must_use]
    pub(crate) fn digest_with<'a, M>(&'a self, mask: M) -> Digest
    where
        M: Fn(&'a str) -> Cow<'a, str>,
    {
        self.fields_with(mask).finish()
    }

    /// What the digest is of.
    pub(crate) fn fields_with<'a, M>(&'a self, mask: M) -> DigestBuilder
    where
        M: Fn(&'a str) -> Cow<'a, str>,
    {
        let links = self.links.iter().map(|link| (link.target.as_str(), link.label.as_str()));
        content_fields(self.title.as_deref(), &self.text, links, mask)
    }
}

/// The same of a content that lies in parts; a link is target and label.
#[must_use]
pub(crate) fn content_digest<'a, M>(
    title: Option<&'a str>,
    text: &'a str,
    links: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
    mask: M,
) -> Digest
where
    M: Fn(&'a str) -> Cow<'a, str>,
{
    content_fields(title, text, links, mask).finish()
}

fn content_fields<'a, M>(
    title: Option<&'a str>,
    text: &'a str,
    links: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
    mask: M,
) -> DigestBuilder
where
    M: Fn(&'a str) -> Cow<'a, str>,
{
    let mut builder = DigestBuilder::new();
    // An absent title differs from an empty one.
    builder.number(u64::from(title.is_some()));
    builder.field(mask(title.unwrap_or_default()).as_bytes());
    builder.field(mask(text).as_bytes());
    builder.number(links.len() as u64);
    for (target, label) in links {
        builder.field(target.as_bytes()).field(mask(label).as_bytes());
    }
    builder
}
