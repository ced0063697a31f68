//! All assignments, all simple paths: the definition, without any thought of cost.

use std::collections::BTreeSet;

use crate::model::LinkKind;

/// What a link of the pattern asks for. Labels are compared whole or by their first letter.
#[derive(Clone, Debug)]
pub(super) struct NaiveLink {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) path: Option<(usize, usize)>,
    pub(super) label: Option<char>,
    pub(super) kind: Option<LinkKind>,
}

#[derive(Clone, Debug)]
pub(super) struct NaiveQuery {
    /// Names with the titles that a page may have.
    pub(super) nodes: Vec<(String, Option<char>)>,
    pub(super) links: Vec<NaiveLink>,
    pub(super) all: bool,
}

#[derive(Clone, Debug)]
pub(super) struct NaiveWeb {
    /// URL and title, sorted by URL.
    pub(super) pages: Vec<(String, char)>,
    pub(super) links: Vec<(usize, usize, char, LinkKind)>,
}

/// Nodes, links between them, and the lengths of the paths.
pub(super) type NaiveTuple = (Vec<(String, String)>, Vec<(String, String, String, &'static str)>, String);

impl NaiveWeb {
    fn follows(&self, link: &NaiveLink, from: usize, to: usize) -> Vec<(char, LinkKind)> {
        let fits = |label: char, kind| link.label.is_none_or(|l| l == label) && link.kind.is_none_or(|k| k == kind);
        let between = self.links.iter().filter(|l| l.0 == from && l.1 == to && fits(l.2, l.3));
        between.map(|l| (l.2, l.3)).collect()
    }

    /// Every sequence of pages, ends included, that the link allows.
    fn paths(&self, link: &NaiveLink, from: usize, to: usize) -> Vec<Vec<usize>> {
        let Some((min, max)) = link.path else {
            return if self.follows(link, from, to).is_empty() { vec![] } else { vec![vec![from, to]] };
        };
        let mut found = Vec::new();
        let mut open = vec![vec![from]];
        while let Some(path) = open.pop() {
            let last = *path.last().unwrap();
            if last == to && path.len() > min {
                found.push(path.clone());
            }
            if path.len() <= max {
                for next in 0..self.pages.len() {
                    if !path.contains(&next) && !self.follows(link, last, next).is_empty() {
                        open.push(path.iter().copied().chain([next]).collect());
                    }
                }
            }
        }
        found
    }
}

impl NaiveQuery {
    pub(super) fn evaluate(&self, web: &NaiveWeb) -> BTreeSet<NaiveTuple> {
        let mut tuples = BTreeSet::new();
        let count = self.nodes.len();
        let pages = web.pages.len();
        for number in 0..pages.pow(u32::try_from(count).unwrap()) {
            let bound: Vec<usize> =
                (0..count).map(|node| number / pages.pow(u32::try_from(node).unwrap()) % pages).collect();
            let fits =
                bound.iter().zip(&self.nodes).all(|(&page, (_, title))| title.is_none_or(|t| t == web.pages[page].1));
            if !fits {
                continue;
            }
            let mut choices: Vec<Vec<Vec<usize>>> = vec![vec![]];
            for link in &self.links {
                let mut paths = web.paths(link, bound[link.from], bound[link.to]);
                if !self.all {
                    paths.sort_by_key(|path| (path.len(), path.clone()));
                    paths.truncate(1);
                }
                choices = choices
                    .iter()
                    .flat_map(|chosen| paths.iter().map(|path| chosen.iter().cloned().chain([path.clone()]).collect()))
                    .collect();
            }
            tuples.extend(choices.iter().map(|paths| self.tuple(web, &bound, paths)));
        }
        tuples
    }

    fn tuple(&self, web: &NaiveWeb, bound: &[usize], paths: &[Vec<usize>]) -> NaiveTuple {
        let url = |page: usize| web.pages[page].0.clone();
        let mut nodes: Vec<_> =
            bound.iter().zip(&self.nodes).map(|(&page, (name, _))| (name.clone(), url(page))).collect();
        let mut links = BTreeSet::new();
        let mut schema = Vec::new();
        for (link, path) in self.links.iter().zip(paths) {
            let (from, to) = (&self.nodes[link.from].0, &self.nodes[link.to].0);
            let name = |at: usize| match at {
                0 => from.clone(),
                at if at + 1 == path.len() => to.clone(),
                at => format!("{from}>{to}.{at}"),
            };
            for at in 1..path.len() {
                for (label, kind) in web.follows(link, path[at - 1], path[at]) {
                    links.insert((name(at - 1), name(at), label.to_string(), kind.as_str()));
                }
                if at + 1 < path.len() {
                    nodes.push((name(at), url(path[at])));
                }
            }
            if link.path.is_some() {
                schema.push(format!("{from}>{to}={}", path.len() - 1));
            }
        }
        nodes.sort();
        schema.sort();
        (nodes, links.into_iter().collect(), schema.join(","))
    }
}
