//! Asking a query again where few pages changed.
//!
//! Problem: a poll touches a hundred pages of a hundred thousand, and the query's table before it is known. Idea: a
//! choice of pages for the nodes of the pattern (an *assignment*) can have other tuples than before only if
//!
//! - a touched page is one of its pages, or
//! - there is a path through a touched page, short enough, between two of its pages that a path connects, or
//! - a path of its old tuples led through a touched page.
//!
//! For all pages else are as they were, and so are the links between them. Tuples of all other assignments stay. Those
//! of the three kinds are found again in a part of the web: starting at what makes an assignment one of them, the
//! pattern is followed link by link, and every page that could stand for a node or lie on a path is taken along. That
//! gives pages too many, never one too few; the query is then asked of the part, and of its answer only tuples of such
//! assignments are taken.
//!
//! Pages and links are looked up as they are needed, so that the cost is that of what was touched and what lies around
//! it. Where that is much of the web (a hub changed, a path of four links leads everywhere), it is given up, and asking
//! the whole web is cheaper.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::compile::{Link, Query};
use super::predicate::{Field, Predicate};
use super::web::{Web, WebBuilder, WebPage};
use crate::deltas::web::{BadRows, TupleNodeRow, WebTable};
use crate::model::{Digest, LinkKind};

/// Where pages and links are looked up by URL.
pub(crate) trait Neighbours {
    type Error;

    /// The pages of URLs, which are ascending; `None` for a URL that has none.
    fn pages(&mut self, urls: &[&str]) -> Result<Vec<Option<WebPage>>, Self::Error>;

    /// The links of pages that were looked up before, in the order asked for.
    fn links(&mut self, urls: &[&str]) -> Result<Vec<Vec<OutLink>>, Self::Error>;

    /// The pages that link to a page, itself included if it does; `None` if there are more than `most`.
    fn linkers(&mut self, url: &str, most: usize) -> Result<Option<Vec<String>>, Self::Error>;
}

/// A link of a page.
#[derive(Clone, Debug)]
pub(crate) struct OutLink {
    /// The page it leads to, if there is one.
    pub(crate) to: String,
    pub(crate) label: String,
    pub(crate) kind: LinkKind,
}

/// The part of a web in which everything lies that may have changed in a query's table.
pub(crate) struct Around {
    web: Web,
    concerned: Concerned,
}

impl Query {
    /// The part of the web around what was touched; `None` where more than `most` pages would have to be looked up. `old`:
    /// the query's table before.
    pub(crate) fn around<N: Neighbours>(
        &self,
        touched: &BTreeSet<String>,
        old: &WebTable,
        most: usize,
        neighbours: &mut N,
    ) -> Result<Option<Around>, N::Error> {
        let mut gatherer = Gatherer {
            query: self,
            neighbours,
            left: most,
            numbers: HashMap::new(),
            urls: Vec::new(),
            pages: Vec::new(),
            links: Vec::new(),
        };
        match gatherer.gather(touched, old) {
            Ok(around) => Ok(Some(around)),
            Err(Halt::TooFar) => Ok(None),
            Err(Halt::Failed(error)) => Err(error),
        }
    }
}

impl Around {
    /// What the query has to be asked of.
    pub(crate) fn web(&self) -> &Web {
        &self.web
    }

    /// The query's table now, from the one before and what was found in the part.
    pub(crate) fn table(&self, old: &WebTable, found: &WebTable) -> Result<WebTable, BadRows> {
        let stay = self.concerned.tuples(old, false);
        let come = self.concerned.tuples(found, true);
        let nodes = old.node_rows().filter(|row| stay.contains(&row.tuple));
        let links = old.link_rows().filter(|row| stay.contains(&row.tuple));
        WebTable::from_rows(
            old.query(),
            nodes.chain(found.node_rows().filter(|row| come.contains(&row.tuple))),
            links.chain(found.link_rows().filter(|row| come.contains(&row.tuple))),
        )
    }
}

/// Which assignments may have other tuples than before.
struct Concerned {
    touched: BTreeSet<String>,
    /// Names of the pattern's nodes.
    names: Vec<String>,
    paths: Vec<Detours>,
    /// Assignments with a tuple that has a touched page.
    again: HashSet<Vec<String>>,
}

/// The paths of a link of the pattern that lead through a touched page.
struct Detours {
    /// Numbers of its nodes.
    from: usize,
    to: usize,
    max: u16,
    /// Links from a page to the nearest touched one, and from the nearest touched one to a page.
    before: HashMap<Arc<str>, u16>,
    behind: HashMap<Arc<str>, u16>,
}

impl Concerned {
    /// The tuples of a table whose assignment is concerned, or is not.
    fn tuples(&self, table: &WebTable, concerned: bool) -> HashSet<Digest> {
        let mut tuples = HashSet::new();
        of_tuples(table, |rows| {
            if self.has(&assignment(&self.names, rows)) == concerned {
                tuples.insert(rows[0].tuple);
            }
        });
        tuples
    }

    fn has(&self, assignment: &[String]) -> bool {
        let detour = |path: &Detours| {
            let before = path.before.get(assignment[path.from].as_str());
            let behind = path.behind.get(assignment[path.to].as_str());
            before.zip(behind).is_some_and(|(before, behind)| before + behind <= path.max)
        };
        assignment.iter().any(|url| self.touched.contains(url))
            || self.paths.iter().any(detour)
            || self.again.contains(assignment)
    }
}

/// The pages of a tuple's nodes that the pattern names, in the order of these names.
fn assignment(names: &[String], rows: &[TupleNodeRow<'_>]) -> Vec<String> {
    let url = |name: &String| rows.iter().find(|row| row.node == name).map_or("", |row| row.url);
    names.iter().map(|name| url(name).to_owned()).collect()
}

/// Shows the rows of each tuple.
fn of_tuples(table: &WebTable, mut visit: impl FnMut(&[TupleNodeRow<'_>])) {
    let mut rows: Vec<TupleNodeRow<'_>> = Vec::new();
    for row in table.node_rows() {
        if rows.first().is_some_and(|first| first.tuple != row.tuple) {
            visit(&rows);
            rows.clear();
        }
        rows.push(row);
    }
    if !rows.is_empty() {
        visit(&rows);
    }
}

enum Halt<E> {
    /// More would have to be looked up than is worth it.
    TooFar,
    Failed(E),
}

impl<E> From<E> for Halt<E> {
    fn from(error: E) -> Self {
        Self::Failed(error)
    }
}

/// Pages by number.
type Set = BTreeSet<u32>;

/// Along a link or against it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Backward,
}

/// Looks up pages and links, each once.
struct Gatherer<'a, N> {
    query: &'a Query,
    neighbours: &'a mut N,
    /// Pages that may still be looked up.
    left: usize,
    numbers: HashMap<Arc<str>, u32>,
    urls: Vec<Arc<str>>,
    /// `None` for what was not looked up.
    pages: Vec<Option<Option<WebPage>>>,
    links: Vec<Option<Vec<(u32, OutLink)>>>,
}

impl<N: Neighbours> Gatherer<'_, N> {
    fn gather(&mut self, touched: &BTreeSet<String>, old: &WebTable) -> Result<Around, Halt<N::Error>> {
        let query = self.query;
        let names: Vec<String> = query.nodes.iter().map(|node| node.name.clone()).collect();
        let seeds: Set = touched.iter().map(|url| self.number(url)).collect();
        let seeds = self.living(seeds)?;
        let mut part = Set::new();
        for node in 0..names.len() {
            let mut domains = vec![None; names.len()];
            domains[node] = Some(self.fitting(node, &seeds));
            self.spread(domains, &mut part)?;
        }
        let mut paths = Vec::new();
        for link in query.links.iter().filter(|link| link.path.is_some()) {
            paths.push(self.detours(link, &seeds, &mut part)?);
        }
        let mut again: HashSet<Vec<String>> = HashSet::new();
        of_tuples(old, |rows| {
            if rows.iter().any(|row| touched.contains(row.url)) {
                again.insert(assignment(&names, rows));
            }
        });
        let mut domains = vec![Set::new(); names.len()];
        for assignment in again.iter().filter(|assignment| !assignment.iter().any(|url| touched.contains(url))) {
            for (domain, url) in domains.iter_mut().zip(assignment) {
                domain.insert(self.number(url));
            }
        }
        for domain in &mut domains {
            *domain = self.living(std::mem::take(domain))?;
        }
        self.spread(domains.into_iter().map(Some).collect(), &mut part)?;
        let web = self.web(&part)?;
        Ok(Around { web, concerned: Concerned { touched: touched.clone(), names, paths, again } })
    }

    /// Takes along what is needed for assignments that a path of a link through a touched page may concern.
    fn detours(&mut self, link: &Link, seeds: &Set, part: &mut Set) -> Result<Detours, Halt<N::Error>> {
        let (_, max) = link.path.expect("only paths are asked for");
        let behind = self.ball(link, Way::Forward, seeds, max)?;
        let before = self.ball(link, Way::Backward, seeds, max)?;
        let ends = |ball: &BTreeMap<u32, u16>, node: usize| -> Vec<(u32, u16)> {
            ball.iter().filter(|(page, _)| self.fits(node, **page)).map(|(page, links)| (*page, *links)).collect()
        };
        let (from, to) = (ends(&before, link.from), ends(&behind, link.to));
        let nearest = |ends: &[(u32, u16)]| ends.iter().map(|end| end.1).min();
        if let (Some(nearest_from), Some(nearest_to)) = (nearest(&from), nearest(&to)) {
            let within = |ends: Vec<(u32, u16)>, other: u16| -> Set {
                ends.into_iter().filter(|(_, links)| links + other <= max).map(|(page, _)| page).collect()
            };
            let mut domains = vec![None; self.query.nodes.len()];
            domains[link.from] = Some(within(from, nearest_to));
            domains[link.to] = Some(within(to, nearest_from));
            self.spread(domains, part)?;
        }
        let by_url = |ball: BTreeMap<u32, u16>| -> HashMap<Arc<str>, u16> {
            ball.into_iter().map(|(page, links)| (Arc::clone(&self.urls[page as usize]), links)).collect()
        };
        Ok(Detours { from: link.from, to: link.to, max, before: by_url(before), behind: by_url(behind) })
    }

    /// From the pages that some nodes may be, follows the pattern to all others, and adds every page to the part that
    /// may be in a tuple or on a path between two of its pages.
    fn spread(&mut self, mut domains: Vec<Option<Set>>, part: &mut Set) -> Result<(), Halt<N::Error>> {
        let query = self.query;
        let mut open: Vec<&Link> = query.links.iter().collect();
        let mut inner = Set::new();
        loop {
            if domains.iter().flatten().any(Set::is_empty) {
                return Ok(());
            }
            // What costs least comes first: it may show that there is nothing.
            let cost = |link: &Link| match (&domains[link.from], &domains[link.to]) {
                (None, None) => None,
                (Some(from), Some(to)) => Some((link.path.is_some(), 0, from.len().min(to.len()))),
                (Some(known), None) | (None, Some(known)) => Some((link.path.is_some(), 1, known.len())),
            };
            let best = (0..open.len()).filter_map(|at| Some((cost(open[at])?, at))).min();
            let Some((_, at)) = best else { break };
            let link = open.remove(at);
            let (from, to) = (domains[link.from].clone(), domains[link.to].clone());
            let (way, known, node) = match (from, to) {
                (Some(_), Some(_)) if link.path.is_none() => continue,
                (Some(from), Some(to)) if from.len() <= to.len() => (Way::Forward, from, None),
                (Some(_), Some(to)) => (Way::Backward, to, None),
                (Some(from), None) => (Way::Forward, from, Some(link.to)),
                (None, to) => (Way::Backward, to.expect("one end is known"), Some(link.from)),
            };
            let reached: Set = match link.path {
                None => self.step(link, way, &known, node)?,
                Some((_, max)) => {
                    let ball: Set = self.ball(link, way, &known, max)?.into_keys().collect();
                    inner.extend(&ball);
                    ball
                }
            };
            if let Some(node) = node {
                domains[node] = Some(self.fitting(node, &reached));
            }
        }
        part.extend(inner);
        domains.into_iter().flatten().for_each(|domain| part.extend(domain));
        Ok(())
    }

    /// The part of the web that these pages and the links between them are.
    fn web(&mut self, part: &Set) -> Result<Web, Halt<N::Error>> {
        self.read_links(part)?;
        let page = |page: &u32| self.pages[*page as usize].clone().flatten();
        let mut builder = WebBuilder::new(part.iter().filter_map(page).collect());
        for &page in part {
            let from = &self.urls[page as usize];
            for (to, link) in self.links[page as usize].iter().flatten().filter(|(to, _)| part.contains(to)) {
                builder.link(from, &self.urls[*to as usize], &link.label, link.kind);
            }
        }
        Ok(builder.finish())
    }

    /// How many links each page is away from the nearest of a set, up to `max`.
    fn ball(&mut self, link: &Link, way: Way, set: &Set, max: u16) -> Result<BTreeMap<u32, u16>, Halt<N::Error>> {
        let mut distances: BTreeMap<u32, u16> = set.iter().map(|&page| (page, 0)).collect();
        let mut frontier = set.clone();
        for distance in 1..=max {
            let mut next = self.step(link, way, &frontier, None)?;
            next.retain(|page| !distances.contains_key(page));
            if next.is_empty() {
                break;
            }
            distances.extend(next.iter().map(|&page| (page, distance)));
            frontier = next;
        }
        Ok(distances)
    }

    /// The pages one link further. With a `node`, only those whose URL it may have.
    fn step(&mut self, link: &Link, way: Way, set: &Set, node: Option<usize>) -> Result<Set, Halt<N::Error>> {
        let query = self.query;
        let may_be = |url: &str| node.is_none_or(|node| may_have(query, node, url));
        if way == Way::Forward {
            self.read_links(set)?;
            let links = set.iter().flat_map(|page| self.links[*page as usize].iter().flatten());
            let followed = links.filter(|(_, out)| follows(link, out) && may_be(&out.to));
            let reached = followed.map(|(to, _)| *to).collect();
            return self.living(reached);
        }
        let mut linkers: BTreeSet<String> = BTreeSet::new();
        for &page in set {
            // Those that are known already cost little, but a hub has more than anybody would look at.
            let most = self.left + self.urls.len();
            let found = self.neighbours.linkers(&self.urls[page as usize], most)?.ok_or(Halt::TooFar)?;
            linkers.extend(found.into_iter().filter(|url| may_be(url)));
        }
        let linkers: Set = linkers.iter().map(|url| self.number(url)).collect();
        let mut linkers = self.living(linkers)?;
        self.read_links(&linkers)?;
        let leads = |page: &u32| {
            let mut links = self.links[*page as usize].iter().flatten();
            links.any(|(to, out)| set.contains(to) && follows(link, out))
        };
        linkers.retain(leads);
        Ok(linkers)
    }

    fn number(&mut self, url: &str) -> u32 {
        if let Some(&number) = self.numbers.get(url) {
            return number;
        }
        let (url, number): (Arc<str>, _) = (url.into(), u32::try_from(self.urls.len()).expect("the web is smaller"));
        self.urls.push(Arc::clone(&url));
        self.pages.push(None);
        self.links.push(None);
        self.numbers.insert(url, number);
        number
    }

    /// Those of a set that have a page.
    fn living(&mut self, mut set: Set) -> Result<Set, Halt<N::Error>> {
        let mut unknown: Vec<u32> = set.iter().copied().filter(|page| self.pages[*page as usize].is_none()).collect();
        self.left = self.left.checked_sub(unknown.len()).ok_or(Halt::TooFar)?;
        unknown.sort_unstable_by(|a, b| self.urls[*a as usize].cmp(&self.urls[*b as usize]));
        let urls: Vec<&str> = unknown.iter().map(|page| &*self.urls[*page as usize]).collect();
        if !urls.is_empty() {
            let found = self.neighbours.pages(&urls)?;
            unknown.iter().zip(found).for_each(|(page, found)| self.pages[*page as usize] = Some(found));
        }
        set.retain(|page| matches!(self.pages[*page as usize], Some(Some(_))));
        Ok(set)
    }

    fn read_links(&mut self, set: &Set) -> Result<(), Halt<N::Error>> {
        let unknown: Vec<u32> = set.iter().copied().filter(|page| self.links[*page as usize].is_none()).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let urls: Vec<&str> = unknown.iter().map(|page| &*self.urls[*page as usize]).collect();
        for (page, links) in unknown.iter().zip(self.neighbours.links(&urls)?) {
            let links = links.into_iter().map(|link| (self.number(&link.to), link)).collect();
            self.links[*page as usize] = Some(links);
        }
        Ok(())
    }

    fn fits(&self, node: usize, page: u32) -> bool {
        let Some(Some(page)) = &self.pages[page as usize] else { return false };
        // What only the text can tell is asked later.
        self.query.nodes[node].predicates.iter().all(|predicate| predicate.of_page(page).unwrap_or(true))
    }

    fn fitting(&self, node: usize, set: &Set) -> Set {
        set.iter().copied().filter(|&page| self.fits(node, page)).collect()
    }
}

/// Whether a node may have a page of this URL, as far as that alone tells.
fn may_have(query: &Query, node: usize, url: &str) -> bool {
    query.nodes[node].predicates.iter().all(|predicate| match predicate {
        Predicate::Glob(Field::Url, glob) => glob.is_match(url),
        _ => true,
    })
}

fn follows(link: &Link, out: &OutLink) -> bool {
    link.allows(out.kind) && link.label.as_ref().is_none_or(|glob| glob.is_match(&out.label))
}
