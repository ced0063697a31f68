//! Which pages are left for each node: those that meet its predicates and have a partner along each link.
//!
//! A link removes from both of its nodes the pages without a partner in the other (semi-join); what that removes may
//! cost pages of other nodes their partners, so it goes on until nothing changes, or a round for each link was made,
//! which is enough for patterns without cycles. A path's partners are found by levels, with walks instead of paths: a
//! page too many may be left, never one too few.

use super::bits::Bits;
use super::compile::{Link, Query};
use super::evaluate::Empty;
use super::predicate::{Field, Predicate};
use super::web::{Steps, Web};

/// A link of the pattern, laid over the web.
pub(super) struct Road {
    pub(super) forward: Steps,
    pub(super) backward: Steps,
    /// The labels it allows.
    pub(super) labels: Bits,
}

impl Road {
    pub(super) fn new(web: &Web, link: &Link) -> Self {
        let labels = web.labels_for(link);
        let forward = web.steps(link, &labels);
        let backward = forward.reversed();
        Self { forward, backward, labels }
    }
}

/// The pages that meet each node's predicates, as far as they need no text.
pub(super) fn candidates(query: &Query, web: &Web) -> Result<Vec<Bits>, Empty> {
    let pages = web.pages().len();
    if pages == 0 {
        return Err(Empty::NoPages);
    }
    let mut domains = Vec::new();
    for node in &query.nodes {
        let mut domain = Bits::all(pages);
        for predicate in &node.predicates {
            let mut kept = Bits::none(pages);
            for page in domain.iter() {
                if predicate.of_page(&web.pages()[page as usize]).unwrap_or(true) {
                    kept.insert(page);
                }
            }
            if kept.is_empty() {
                return Err(Empty::Predicate {
                    node: node.name.clone(),
                    predicate: predicate.to_string(),
                    pages: domain.count(),
                    hint: nearby(web, predicate),
                });
            }
            domain = kept;
        }
        domains.push(domain);
    }
    Ok(domains)
}

/// A URL that was perhaps meant: the same without or with a slash at its end, or with the other scheme.
fn nearby(web: &Web, predicate: &Predicate) -> Option<String> {
    let Predicate::Glob(Field::Url, glob) = predicate else {
        return None;
    };
    if !glob.is_literal() {
        return None;
    }
    let simple = |url: &str| {
        let bare = url.split_once("://").map_or(url, |(_, rest)| rest);
        let bare = bare.strip_prefix("www.").unwrap_or(bare);
        bare.trim_end_matches('/').to_lowercase()
    };
    let wanted = simple(glob.as_str());
    web.pages().iter().find(|page| simple(&page.url) == wanted).map(|page| format!("there is {}", page.url))
}

/// Removes pages without partners.
pub(super) fn reduce(query: &Query, roads: &[Road], domains: &mut [Bits], pages: usize) -> Result<(), Empty> {
    // How often each node lost pages; and for each link, how often its two nodes had when it was last looked at.
    let mut losses = vec![0u32; domains.len()];
    let mut seen = vec![None; query.links.len()];
    for _ in 0..=query.links.len() {
        let mut changed = false;
        for (i, (link, road)) in query.links.iter().zip(roads).enumerate() {
            let now = Some((losses[link.from], losses[link.to]));
            if seen[i] == now {
                continue;
            }
            for (steps, from, to) in [(&road.forward, link.from, link.to), (&road.backward, link.to, link.from)] {
                let reached = if from == to {
                    loops(steps, &domains[to], pages)
                } else {
                    reach(steps, &domains[from], link, pages)
                };
                let left = |node: usize| (query.nodes[node].name.clone(), domains[node].count());
                let before = (left(link.from), left(link.to));
                if domains[to].retain(&reached) {
                    losses[to] += 1;
                    changed = true;
                }
                if domains[to].is_empty() {
                    return Err(Empty::Link { link: link.text.clone(), from: before.0, to: before.1 });
                }
            }
            seen[i] = Some((losses[link.from], losses[link.to]));
        }
        if !changed {
            break;
        }
    }
    Ok(())
}

/// The pages that lead to themselves.
fn loops(steps: &Steps, set: &Bits, pages: usize) -> Bits {
    let mut found = Bits::none(pages);
    set.iter().filter(|page| steps.of(*page).binary_search(page).is_ok()).for_each(|page| found.insert(page));
    found
}

/// All pages that a link, or a walk as long as the path may be, leads to from some page of a set.
fn reach(steps: &Steps, set: &Bits, link: &Link, pages: usize) -> Bits {
    let Some((min, max)) = link.path else {
        return steps.image(set, pages);
    };
    let mut frontier = set.clone();
    for _ in 0..min {
        frontier = steps.image(&frontier, pages);
    }
    let mut reached = frontier.clone();
    for _ in min..max {
        frontier = steps.image(&frontier, pages);
        frontier.remove_all(&reached);
        if frontier.is_empty() {
            break;
        }
        reached.insert_all(&frontier);
    }
    reached
}

/// Links from each page to the nearest of `goals`, up to `max`; `u16::MAX` where there is none.
pub(super) fn distances(towards: &Steps, goals: &Bits, max: u16, pages: usize) -> Vec<u16> {
    let mut distances = vec![u16::MAX; pages];
    let mut frontier: Vec<u32> = goals.iter().collect();
    frontier.iter().for_each(|&page| distances[page as usize] = 0);
    for distance in 1..=max {
        let mut next = Vec::new();
        for page in frontier {
            for &before in towards.of(page) {
                if distances[before as usize] == u16::MAX {
                    distances[before as usize] = distance;
                    next.push(before);
                }
            }
        }
        frontier = next;
    }
    distances
}
