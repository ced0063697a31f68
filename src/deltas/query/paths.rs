//! The paths of a pattern's link from one page, within the bounds of its length.
//!
//! *Shortest*: a search by levels, neighbours in order of URL, so that the first way to a page is the first by the URLs
//! along it. It finds all pages at least `min` links away. Others may still have a path of `min` links or more that
//! takes a detour; those are searched for in depth, by length, and only with `min` above 1. *All*: in depth.
//!
//! No search goes on from a page that is too far from every goal for what is left of the length: the distances to the
//! nearest goal are known from one search by levels from all goals at once.

use super::bits::Bits;
use super::reduce::{Road, distances};

/// The paths from a page.
#[derive(Default)]
pub(super) struct Reach {
    /// Ordered by page, then length, then the pages along the path.
    ends: Vec<End>,
    inner: Vec<u32>,
}

#[derive(Clone, Copy)]
struct End {
    page: u32,
    start: usize,
    len: usize,
}

impl Reach {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Roughly how many numbers it holds.
    pub(super) fn size(&self) -> usize {
        4 * self.ends.len() + self.inner.len()
    }

    pub(super) fn page(&self, end: usize) -> u32 {
        self.ends[end].page
    }

    /// The pages between, in the direction of the links.
    pub(super) fn inner(&self, end: usize) -> &[u32] {
        let End { start, len, .. } = self.ends[end];
        &self.inner[start..start + len]
    }

    /// The paths to a page.
    pub(super) fn to(&self, page: u32) -> std::ops::Range<usize> {
        let start = self.ends.partition_point(|end| end.page < page);
        start..start + self.ends[start..].partition_point(|end| end.page == page)
    }

    fn push(&mut self, page: u32, inner: impl Iterator<Item = u32>) {
        let start = self.inner.len();
        self.inner.extend(inner);
        self.ends.push(End { page, start, len: self.inner.len() - start });
    }

    fn sorted(mut self) -> Self {
        let inner = &self.inner;
        let key = |end: &End| (end.page, end.len, &inner[end.start..end.start + end.len]);
        self.ends.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        self
    }
}

/// Why a search was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It took too many steps.
    Steps,
    /// There are so many paths from a page, or more.
    Paths { found: u64, exact: bool, page: u32 },
}

/// Steps that are left. They are counted instead of seconds, so that every machine gives up at the same point.
pub(super) struct Budget {
    left: u64,
}

impl Budget {
    /// Links that one evaluation may follow.
    const STEPS: u64 = 10_000_000_000;
    /// Links that it may still follow once there are too many results, only to count them.
    const COUNTING: u64 = 200_000_000;

    pub(super) fn new() -> Self {
        Self { left: Self::STEPS }
    }

    pub(super) fn step(&mut self) -> Result<(), Stop> {
        self.left = self.left.checked_sub(1).ok_or(Stop::Steps)?;
        Ok(())
    }

    pub(super) fn only_count(&mut self) {
        self.left = self.left.min(Self::COUNTING);
    }
}

/// Finds the paths of one link of a pattern.
pub(super) struct PathFinder<'a> {
    road: &'a Road,
    min: u16,
    max: u16,
    all: bool,
    /// More paths than this from a page are an error.
    limit: u64,
    from: &'a Bits,
    to: &'a Bits,
    /// Links from a page to the nearest of `to`, and from the nearest of `from` to a page.
    to_goal: Vec<u16>,
    from_start: Vec<u16>,
    /// Depth of each page in the search by levels, and the page before it; `u16::MAX` if it was not seen.
    depths: Vec<u16>,
    parents: Vec<u32>,
    on_path: Bits,
}

impl<'a> PathFinder<'a> {
    pub(super) fn new(
        road: &'a Road,
        (min, max): (u16, u16),
        all: bool,
        limit: u64,
        (from, to): (&'a Bits, &'a Bits),
        pages: usize,
    ) -> Self {
        Self {
            road,
            min,
            max,
            all,
            limit,
            from,
            to,
            to_goal: distances(&road.backward, to, max, pages),
            from_start: distances(&road.forward, from, max, pages),
            depths: vec![u16::MAX; pages],
            parents: vec![0; pages],
            on_path: Bits::none(pages),
        }
    }

    /// The paths from `page` to a candidate of the other node; with `backward` those that end at `page`.
    pub(super) fn reach(&mut self, page: u32, backward: bool, budget: &mut Budget) -> Result<Reach, Stop> {
        let reach = if self.all { self.all(page, backward, budget) } else { self.shortest(page, backward, budget) };
        reach.map(Reach::sorted)
    }

    fn shortest(&mut self, start: u32, backward: bool, budget: &mut Budget) -> Result<Reach, Stop> {
        let (steps, near, goals) = if backward {
            (&self.road.backward, &self.from_start, self.from)
        } else {
            (&self.road.forward, &self.to_goal, self.to)
        };
        let mut queue = vec![start];
        self.depths[start as usize] = 0;
        let mut at = 0;
        while let Some(&page) = queue.get(at) {
            at += 1;
            let depth = self.depths[page as usize];
            if depth == self.max {
                break;
            }
            for &next in steps.of(page) {
                budget.step()?;
                if self.depths[next as usize] == u16::MAX && near[next as usize] < self.max - depth {
                    self.depths[next as usize] = depth + 1;
                    self.parents[next as usize] = page;
                    queue.push(next);
                }
            }
        }
        let mut reach = Reach::default();
        let mut detours = Vec::new();
        for &page in queue.iter().filter(|page| goals.has(**page)) {
            match self.depths[page as usize] {
                depth if depth >= self.min => {
                    let mut inner = if backward { self.downhill(page) } else { self.uphill(page) };
                    if !backward {
                        inner.reverse();
                    }
                    reach.push(page, inner.into_iter());
                }
                0 => {}
                _ => detours.push(page),
            }
        }
        if backward {
            // In a backward search the depth of a page is what is left of the way to `start`.
            let near = std::mem::take(&mut self.depths);
            let result = detours.into_iter().try_for_each(|page| {
                let mut found = Reach::default();
                self.detours(page, vec![start], &near, &mut found, budget)?;
                (0..found.len()).for_each(|end| reach.push(page, found.inner(end).iter().copied()));
                Ok(())
            });
            self.depths = near;
            result?;
        } else if !detours.is_empty() {
            let near = std::mem::take(&mut self.to_goal);
            let result = self.detours(start, detours, &near, &mut reach, budget);
            self.to_goal = near;
            result?;
        }
        for page in queue {
            self.depths[page as usize] = u16::MAX;
        }
        Ok(reach)
    }

    /// The pages before `page` on the way from where the search began, the last first.
    fn uphill(&self, mut page: u32) -> Vec<u32> {
        let mut inner = Vec::new();
        while self.depths[page as usize] > 1 {
            page = self.parents[page as usize];
            inner.push(page);
        }
        inner
    }

    /// The pages after `page` on the way to where a backward search began.
    fn downhill(&self, mut page: u32) -> Vec<u32> {
        let mut inner = Vec::new();
        while self.depths[page as usize] > 1 {
            let closer = self.depths[page as usize] - 1;
            let next = self.road.forward.of(page).iter().find(|next| self.depths[**next as usize] == closer);
            page = *next.expect("a page was seen from a page one link closer");
            inner.push(page);
        }
        inner
    }

    /// The first path of `min` links or more to each goal, by length, then URLs. `near` bounds the links to the
    /// nearest goal from below.
    fn detours(
        &mut self,
        start: u32,
        mut goals: Vec<u32>,
        near: &[u16],
        reach: &mut Reach,
        budget: &mut Budget,
    ) -> Result<(), Stop> {
        goals.sort_unstable();
        for length in self.min..=self.max {
            if goals.is_empty() {
                break;
            }
            let mut path = vec![start];
            self.on_path.insert(start);
            let result = self.of_length(length, &mut path, &mut goals, near, reach, budget);
            self.on_path.remove(start);
            result?;
        }
        Ok(())
    }

    fn of_length(
        &mut self,
        left: u16,
        path: &mut Vec<u32>,
        goals: &mut Vec<u32>,
        near: &[u16],
        reach: &mut Reach,
        budget: &mut Budget,
    ) -> Result<(), Stop> {
        let road = self.road;
        let page = *path.last().expect("a path begins somewhere");
        for &next in road.forward.of(page) {
            budget.step()?;
            if self.on_path.has(next) || near[next as usize] >= left {
                continue;
            }
            if left == 1 {
                if let Ok(at) = goals.binary_search(&next) {
                    reach.push(next, path[1..].iter().copied());
                    goals.remove(at);
                }
                continue;
            }
            path.push(next);
            self.on_path.insert(next);
            let result = self.of_length(left - 1, path, goals, near, reach, budget);
            self.on_path.remove(next);
            path.pop();
            result?;
            if goals.is_empty() {
                break;
            }
        }
        Ok(())
    }

    fn all(&mut self, start: u32, backward: bool, budget: &mut Budget) -> Result<Reach, Stop> {
        let mut found = AllPaths { reach: Reach::default(), count: 0, path: vec![start] };
        self.on_path.insert(start);
        let result = self.deeper(&mut found, backward, budget);
        found.path.iter().for_each(|&page| self.on_path.remove(page));
        let over = found.count > self.limit;
        match result {
            Ok(()) if !over => Ok(found.reach),
            Err(stop) if !over => Err(stop),
            result => Err(Stop::Paths { found: found.count, exact: result.is_ok(), page: start }),
        }
    }

    fn deeper(&mut self, found: &mut AllPaths, backward: bool, budget: &mut Budget) -> Result<(), Stop> {
        let road = self.road;
        let (steps, near, goals) = if backward {
            (&road.backward, &self.from_start, self.from)
        } else {
            (&road.forward, &self.to_goal, self.to)
        };
        let page = *found.path.last().expect("a path begins somewhere");
        let depth = u16::try_from(found.path.len() - 1).expect("paths are short");
        if depth >= self.min && goals.has(page) {
            found.count += 1;
            if found.count <= self.limit {
                let inner = found.path.get(1..usize::from(depth)).unwrap_or_default().iter().copied();
                if backward { found.reach.push(page, inner.rev()) } else { found.reach.push(page, inner) }
            } else {
                found.reach = Reach::default();
                budget.only_count();
            }
        }
        if depth == self.max {
            return Ok(());
        }
        let left = self.max - depth;
        let open: Vec<u32> = steps.of(page).iter().copied().filter(|next| near[*next as usize] < left).collect();
        for next in open {
            budget.step()?;
            if self.on_path.has(next) {
                continue;
            }
            found.path.push(next);
            self.on_path.insert(next);
            // If the search stops, the path stays as it is, for the caller to clear.
            self.deeper(found, backward, budget)?;
            self.on_path.remove(next);
            found.path.pop();
        }
        Ok(())
    }
}

struct AllPaths {
    reach: Reach,
    count: u64,
    path: Vec<u32>,
}
