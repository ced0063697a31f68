//! The pages and links of a snapshot, in memory.
//!
//! Pages are numbered by URL, so that the order of numbers is the order of URLs. Links lie by page, target, label and
//! kind, each once: about 12 bytes a link, besides the labels, which are held once.

use std::collections::HashMap;
use std::sync::Arc;

use super::bits::Bits;
use super::compile::Link;
use crate::model::{Digest, LinkKind, Timestamp};

/// What predicates ask of a page without reading its text.
#[derive(Clone, Debug)]
pub struct WebPage {
    /// Normalised.
    pub url: Arc<str>,
    pub title: Option<String>,
    pub host: String,
    pub content_type: Option<String>,
    pub last_modified: Option<Timestamp>,
    /// Length of the text.
    pub bytes: u64,
    /// The digest that decides whether the page changed.
    pub version: Digest,
}

/// The web of a snapshot: its pages and the links between them.
#[derive(Clone, Debug)]
pub struct Web {
    /// Ordered by URL.
    pages: Vec<WebPage>,
    /// Ordered as texts.
    labels: Vec<Arc<str>>,
    /// Where the links of each page begin in `hops`, and where the last ones end.
    starts: Vec<usize>,
    hops: Vec<Hop>,
}

/// A link to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    pub(super) to: u32,
    pub(super) label: u32,
    pub(super) kind: LinkKind,
}

/// Gathers the links of a snapshot.
pub(crate) struct WebBuilder {
    pages: Vec<WebPage>,
    numbers: HashMap<Arc<str>, u32>,
    labels: Vec<Arc<str>>,
    label_numbers: HashMap<Arc<str>, u32>,
    hops: Vec<(u32, Hop)>,
}

impl WebBuilder {
    /// The pages in any order. Of several with one URL the first counts.
    #[must_use]
    pub(crate) fn new(mut pages: Vec<WebPage>) -> Self {
        pages.sort_by(|a, b| a.url.cmp(&b.url));
        pages.dedup_by(|a, b| a.url == b.url);
        assert!(u32::try_from(pages.len()).is_ok(), "a snapshot has fewer than 2^32 pages");
        let numbers = pages.iter().map(|page| Arc::clone(&page.url)).zip(0..).collect();
        Self { pages, numbers, labels: Vec::new(), label_numbers: HashMap::new(), hops: Vec::new() }
    }

    /// A link of the page `from` to the normalised URL `target`, whose fragment does not count. Links from and to
    /// URLs that are no pages of the snapshot lead nowhere.
    pub(crate) fn link(&mut self, from: &str, target: &str, label: &str, kind: LinkKind) {
        let page = target.split_once('#').map_or(target, |(page, _)| page);
        let (Some(&from), Some(&to)) = (self.numbers.get(from), self.numbers.get(page)) else {
            return;
        };
        let label = match self.label_numbers.get(label) {
            Some(&number) => number,
            None => {
                let number = u32::try_from(self.labels.len()).expect("fewer than 2^32 labels fit in memory");
                let label: Arc<str> = label.into();
                self.labels.push(Arc::clone(&label));
                self.label_numbers.insert(label, number);
                number
            }
        };
        self.hops.push((from, Hop { to, label, kind }));
    }

    #[must_use]
    pub(crate) fn finish(self) -> Web {
        let Self { pages, labels, mut hops, .. } = self;
        let mut by_rank: Vec<usize> = (0..labels.len()).collect();
        by_rank.sort_unstable_by(|&a, &b| labels[a].cmp(&labels[b]));
        let mut ranks = vec![0; labels.len()];
        for (rank, &number) in (0..).zip(&by_rank) {
            ranks[number] = rank;
        }
        for (_, hop) in &mut hops {
            hop.label = ranks[hop.label as usize];
        }
        hops.sort_unstable_by_key(|(from, hop)| (*from, hop.to, hop.label, hop.kind as u8));
        hops.dedup();
        let mut starts = vec![0; pages.len() + 1];
        for &(from, _) in &hops {
            starts[from as usize + 1] += 1;
        }
        for page in 0..pages.len() {
            starts[page + 1] += starts[page];
        }
        Web {
            pages,
            labels: by_rank.into_iter().map(|number| Arc::clone(&labels[number])).collect(),
            starts,
            hops: hops.into_iter().map(|(_, hop)| hop).collect(),
        }
    }
}

impl Web {
    /// Ordered by URL.
    #[must_use]
    pub fn pages(&self) -> &[WebPage] {
        &self.pages
    }

    /// Gives the pages that are not `modified` between the two webs the versions that they have in `other`. For webs
    /// whose versions were made by different rules.
    pub fn take_versions(&mut self, other: &Self, modified: impl Fn(&str) -> bool) {
        for page in &mut self.pages {
            if let Ok(there) = other.pages.binary_search_by(|twin| twin.url.cmp(&page.url))
                && !modified(&page.url)
            {
                page.version = other.pages[there].version;
            }
        }
    }

    /// Number of different links between pages.
    #[must_use]
    pub fn links(&self) -> usize {
        self.hops.len()
    }

    pub(super) fn url(&self, page: u32) -> &str {
        &self.pages[page as usize].url
    }

    pub(super) fn labels(&self) -> &[Arc<str>] {
        &self.labels
    }

    /// Ordered by target, label and kind.
    fn hops(&self, page: u32) -> &[Hop] {
        &self.hops[self.starts[page as usize]..self.starts[page as usize + 1]]
    }

    /// The links from one page to another.
    pub(super) fn between(&self, from: u32, to: u32) -> &[Hop] {
        let hops = self.hops(from);
        let start = hops.partition_point(|hop| hop.to < to);
        let end = start + hops[start..].partition_point(|hop| hop.to == to);
        &hops[start..end]
    }

    /// The labels that a link of a pattern allows.
    pub(super) fn labels_for(&self, link: &Link) -> Bits {
        let Some(glob) = &link.label else {
            return Bits::all(self.labels.len());
        };
        let mut allowed = Bits::none(self.labels.len());
        for (number, label) in (0..).zip(&self.labels) {
            if glob.is_match(label) {
                allowed.insert(number);
            }
        }
        allowed
    }

    /// Which pages a link of a pattern leads to from each page. On a path no link to the page itself is of use.
    pub(super) fn steps(&self, link: &Link, labels: &Bits) -> Steps {
        let mut starts = vec![0];
        let mut targets: Vec<u32> = Vec::new();
        for page in (0..).take(self.pages.len()) {
            let first = targets.len();
            for hop in self.hops(page) {
                let follows =
                    link.allows(hop.kind) && labels.has(hop.label) && !(link.path.is_some() && hop.to == page);
                if follows && targets[first..].last() != Some(&hop.to) {
                    targets.push(hop.to);
                }
            }
            starts.push(targets.len());
        }
        Steps { starts, targets }
    }
}

/// From each page to others, each once and in order.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    starts: Vec<usize>,
    targets: Vec<u32>,
}

impl Steps {
    pub(super) fn of(&self, page: u32) -> &[u32] {
        &self.targets[self.starts[page as usize]..self.starts[page as usize + 1]]
    }

    /// The same in the other direction.
    pub(super) fn reversed(&self) -> Self {
        let pages = self.starts.len() - 1;
        let mut starts = vec![0; pages + 1];
        for &to in &self.targets {
            starts[to as usize + 1] += 1;
        }
        for page in 0..pages {
            starts[page + 1] += starts[page];
        }
        let mut next = starts.clone();
        let mut targets = vec![0; self.targets.len()];
        for page in (0..).take(pages) {
            for &to in self.of(page) {
                targets[next[to as usize]] = page;
                next[to as usize] += 1;
            }
        }
        Self { starts, targets }
    }

    /// All pages that some page of a set leads to.
    pub(super) fn image(&self, set: &Bits, pages: usize) -> Bits {
        let mut image = Bits::none(pages);
        for page in set.iter() {
            self.of(page).iter().for_each(|&to| image.insert(to));
        }
        image
    }
}
