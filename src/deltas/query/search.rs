//! Putting tuples together: from the node with the fewest candidates along the links.
//!
//! The order is fixed beforehand. A link between two nodes that have their pages is looked at first, for it only
//! removes; then the link that is expected to lead to the fewest pages.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use super::bits::Bits;
use super::compile::Query;
use super::config::Paths;
use super::evaluate::{Empty, TooMany};
use super::paths::{Budget, PathFinder, Reach, Stop};
use super::reduce::Road;
use super::web::Web;
use crate::deltas::web::{TableBuilder, TupleLink, WebTable, by_name};

/// Paths are kept in case their first page comes again, up to so many numbers held.
const MEMORY: usize = 20_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Forward,
    Backward,
    /// Both ends have their pages already; only the link between them is looked for.
    Check,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    link: usize,
    way: Way,
}

pub(super) struct Search<'a> {
    query: &'a Query,
    web: &'a Web,
    roads: &'a [Road],
    domains: &'a [Bits],
    start: usize,
    steps: Vec<Step>,
    /// What finds the paths of each link that is one.
    finders: Vec<Option<PathFinder<'a>>>,
    /// Paths that were found already, by step and first page.
    known: HashMap<(usize, u32), Rc<Reach>>,
    known_size: usize,
    budget: Budget,
    /// The page of each node.
    bound: Vec<u32>,
    /// The path that is taken for each link that is one.
    taken: Vec<Option<(Rc<Reach>, usize)>>,
    /// Numbers of names: of nodes, and of the inner nodes of each link.
    names: Names,
    table: TableBuilder,
    found: u64,
    /// How many partial tuples got past each step.
    passed: Vec<u64>,
    nodes: Vec<(u32, u32)>,
    links: Vec<TupleLink>,
}

struct Names {
    nodes: Vec<u32>,
    inner: Vec<Vec<u32>>,
    /// The links in the order of their nodes. The order of the pipeline file must not reach the schema.
    order: Vec<usize>,
}

impl<'a> Search<'a> {
    pub(super) fn new(query: &'a Query, web: &'a Web, roads: &'a [Road], domains: &'a [Bits]) -> Self {
        let (start, steps) = plan(query, roads, domains);
        let pages = web.pages().len();
        let finders = query.links.iter().zip(roads).map(|(link, road)| {
            let ends = (&domains[link.from], &domains[link.to]);
            let all = query.paths == Paths::All;
            Some(PathFinder::new(road, link.path?, all, query.max_tuples, ends, pages))
        });
        let (names, texts) = names(query);
        let pages = web.pages().iter().map(|page| (Arc::clone(&page.url), page.version));
        Self {
            query,
            web,
            roads,
            domains,
            start,
            finders: finders.collect(),
            known: HashMap::new(),
            known_size: 0,
            budget: Budget::new(),
            bound: vec![0; query.nodes.len()],
            taken: vec![None; query.links.len()],
            names,
            table: TableBuilder::new(&query.name, texts, pages, web.labels().to_vec()),
            found: 0,
            passed: vec![0; steps.len()],
            steps,
            nodes: Vec::new(),
            links: Vec::new(),
        }
    }

    pub(super) fn run(mut self) -> Result<(WebTable, Option<Empty>), TooMany> {
        let domains = self.domains;
        let result = domains[self.start].iter().try_for_each(|page| {
            self.bound[self.start] = page;
            self.extend(0)
        });
        let (query, limit) = (self.query.name.clone(), self.query.max_tuples);
        if self.found > limit {
            return Err(TooMany::Tuples { query, limit, found: self.found, exact: result.is_ok() });
        }
        match result {
            Ok(()) => {
                let empty = if self.found == 0 { self.culprit() } else { None };
                Ok((self.table.finish(), empty))
            }
            Err((_, Stop::Steps)) => Err(TooMany::Steps { query, found: self.found }),
            Err((step, Stop::Paths { found, exact, page })) => {
                let link = self.query.links[self.steps[step].link].text.clone();
                let backward = self.steps[step].way == Way::Backward;
                Err(TooMany::Paths { query, limit, found, exact, link, page: self.web.url(page).to_owned(), backward })
            }
        }
    }

    /// The first step that no partial tuple got past.
    fn culprit(&self) -> Option<Empty> {
        let step = self.passed.iter().position(|&passed| passed == 0)?;
        let before = step.checked_sub(1).map_or(self.domains[self.start].count() as u64, |before| self.passed[before]);
        let text = |step: &Step| self.query.links[step.link].text.clone();
        Some(Empty::Together {
            link: text(&self.steps[step]),
            others: self.steps[..step].iter().map(text).collect(),
            before,
        })
    }

    /// An error carries the step where it happened.
    fn extend(&mut self, at: usize) -> Result<(), (usize, Stop)> {
        let Some(&Step { link: number, way }) = self.steps.get(at) else {
            return self.emit().map_err(|stop| (at, stop));
        };
        let link = &self.query.links[number];
        let (roads, domains) = (self.roads, self.domains);
        let (near, far) = if way == Way::Backward { (link.to, link.from) } else { (link.from, link.to) };
        let page = self.bound[near];
        if link.path.is_none() {
            let steps = if way == Way::Backward { &roads[number].backward } else { &roads[number].forward };
            if way == Way::Check {
                self.budget.step().map_err(|stop| (at, stop))?;
                if steps.of(page).binary_search(&self.bound[far]).is_ok() {
                    self.passed[at] += 1;
                    self.extend(at + 1)?;
                }
                return Ok(());
            }
            for &other in steps.of(page) {
                self.budget.step().map_err(|stop| (at, stop))?;
                if domains[far].has(other) {
                    self.bound[far] = other;
                    self.passed[at] += 1;
                    self.extend(at + 1)?;
                }
            }
            return Ok(());
        }
        let reach = self.reach(at, number, page, way == Way::Backward).map_err(|stop| (at, stop))?;
        let ends = if way == Way::Check { reach.to(self.bound[far]) } else { 0..reach.len() };
        for end in ends {
            self.budget.step().map_err(|stop| (at, stop))?;
            self.bound[far] = reach.page(end);
            self.taken[number] = Some((Rc::clone(&reach), end));
            self.passed[at] += 1;
            self.extend(at + 1)?;
        }
        Ok(())
    }

    fn reach(&mut self, at: usize, link: usize, page: u32, backward: bool) -> Result<Rc<Reach>, Stop> {
        if let Some(reach) = self.known.get(&(at, page)) {
            return Ok(Rc::clone(reach));
        }
        let finder = self.finders[link].as_mut().expect("only paths ask for one");
        let reach = Rc::new(finder.reach(page, backward, &mut self.budget)?);
        self.known_size += reach.size() + 8;
        if self.known_size > MEMORY {
            self.known.clear();
            self.known_size = reach.size() + 8;
        }
        self.known.insert((at, page), Rc::clone(&reach));
        Ok(reach)
    }

    fn emit(&mut self) -> Result<(), Stop> {
        self.found += 1;
        if self.found > self.query.max_tuples {
            self.budget.only_count();
            return self.budget.step();
        }
        self.nodes.clear();
        self.links.clear();
        self.nodes.extend(self.names.nodes.iter().copied().zip(self.bound.iter().copied()));
        let mut schema = String::new();
        for &number in &self.names.order {
            let link = &self.query.links[number];
            let mut last = (self.names.nodes[link.from], self.bound[link.from]);
            let end = (self.names.nodes[link.to], self.bound[link.to]);
            if let Some((reach, taken)) = &self.taken[number] {
                let inner = reach.inner(*taken);
                let nodes = self.names.inner[number].iter().copied().zip(inner.iter().copied());
                for node in nodes {
                    show_links(self.web, &self.roads[number], link, last, node, &mut self.links);
                    self.nodes.push(node);
                    last = node;
                }
                let same_page = self.bound[link.from] == self.bound[link.to];
                let length = if same_page { 0 } else { inner.len() + 1 };
                let (from, to) = (&self.query.nodes[link.from].name, &self.query.nodes[link.to].name);
                let comma = if schema.is_empty() { "" } else { "," };
                let _ = write!(schema, "{comma}{from}>{to}={length}");
                if same_page {
                    continue;
                }
            }
            show_links(self.web, &self.roads[number], link, last, end, &mut self.links);
        }
        self.table.push(&schema, &mut self.nodes, &mut self.links);
        Ok(())
    }
}

/// All links of the web between two nodes that a link of the pattern allows.
fn show_links(
    web: &Web,
    road: &Road,
    link: &super::compile::Link,
    (from, page): (u32, u32),
    (to, target): (u32, u32),
    out: &mut Vec<TupleLink>,
) {
    let hops = web.between(page, target).iter().filter(|hop| link.allows(hop.kind) && road.labels.has(hop.label));
    out.extend(hops.map(|hop| TupleLink { from, to, label: hop.label, kind: hop.kind }));
}

/// Numbers and texts of all names that a tuple may have, in order.
fn names(query: &Query) -> (Names, Vec<Arc<str>>) {
    let name = |node: usize| query.nodes[node].name.as_str();
    let inner = |link: &super::compile::Link| {
        let most = link.path.map_or(1, |(_, max)| max);
        (1..most).map(|at| format!("{}>{}.{at}", name(link.from), name(link.to))).collect::<Vec<_>>()
    };
    let inner: Vec<Vec<String>> = query.links.iter().map(inner).collect();
    let mut texts: Vec<Arc<str>> = query.nodes.iter().map(|node| node.name.as_str().into()).collect();
    texts.extend(inner.iter().flatten().map(|name| name.as_str().into()));
    texts.sort_by(|a, b| by_name(a, b));
    texts.dedup();
    let number = |name: &str| {
        let at = texts.binary_search_by(|text| by_name(text, name)).expect("every name was entered");
        u32::try_from(at).expect("a query has few names")
    };
    let mut order: Vec<usize> = (0..query.links.len()).collect();
    order.sort_by_key(|&link| (query.links[link].from, query.links[link].to));
    let names = Names {
        order,
        nodes: query.nodes.iter().map(|node| number(&node.name)).collect(),
        inner: inner.iter().map(|names| names.iter().map(|name| number(name)).collect()).collect(),
    };
    (names, texts)
}

/// Where to begin, and in which order to follow the links.
fn plan(query: &Query, roads: &[Road], domains: &[Bits]) -> (usize, Vec<Step>) {
    let sizes: Vec<usize> = domains.iter().map(Bits::count).collect();
    let start = (0..sizes.len()).min_by_key(|&node| sizes[node]).unwrap_or_default();
    // Pairs of candidates that a link connects; for a path, all pairs as an upper bound.
    let pairs: Vec<u128> = query
        .links
        .iter()
        .zip(roads)
        .map(|(link, road)| match link.path {
            Some(_) => sizes[link.from] as u128 * sizes[link.to] as u128,
            None => domains[link.from]
                .iter()
                .map(|page| road.forward.of(page).iter().filter(|other| domains[link.to].has(**other)).count() as u128)
                .sum(),
        })
        .collect();
    let mut bound = vec![false; query.nodes.len()];
    bound[start] = true;
    let mut rest: Vec<usize> = (0..query.links.len()).collect();
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let way = |link: usize| match (bound[query.links[link].from], bound[query.links[link].to]) {
            (true, true) => Some(Way::Check),
            (true, false) => Some(Way::Forward),
            (false, true) => Some(Way::Backward),
            (false, false) => None,
        };
        // Pages to be expected for each page bound so far, in thousandths.
        let cost = |link: usize, way: Way| match way {
            Way::Check => 0,
            Way::Forward => 1000 * pairs[link] / sizes[query.links[link].from].max(1) as u128,
            Way::Backward => 1000 * pairs[link] / sizes[query.links[link].to].max(1) as u128,
        };
        let open = rest.iter().enumerate().filter_map(|(at, &link)| Some((at, link, way(link)?)));
        // A check of a path costs more than one of a link.
        let best = open.min_by_key(|&(_, link, way)| (cost(link, way), query.links[link].path.is_some(), link));
        let (at, link, way) = best.expect("a query is connected");
        rest.remove(at);
        (bound[query.links[link].from], bound[query.links[link].to]) = (true, true);
        steps.push(Step { link, way });
    }
    (start, steps)
}
