//! Recycling: the mentions of a new page from those of the old one, exactly as from scratch.
//!
//! **Invariant.** For every extractor, every set of certified regions and every two pages, [`recycle`] gives the same
//! multiset of mentions as [`scratch`]; both are in canonical order, so they are equal but for where each comes from.
//!
//! Which way leads there depends on what an extractor's result at a place depends on, which it says itself
//! (`extract::traits::Finds`):
//!
//! | it finds mentions | way | file |
//! | --- | --- | --- |
//! | by scanning, matches have a longest length | synchronised scan | `synced` |
//! | by scanning, matches have none, but barriers | stretches between barriers | `cuts` |
//! | by asking somebody who sees windows | copy and extraction regions, blind slices | `window` |
//! | by asking somebody who sees lines, blocks, paragraphs or pages | equal units | `units` |
//! | in any other way | equal pages only | here |
//!
//! Records are not recycled. Their parts are, and the records are joined again (`extract::record`).
//!
//! Regions may come from any matcher, overlap, repeat or miss things: they only decide how much is saved. They are
//! compared with both texts before use, so a stale or wrong region cannot do harm.
//!
//! `forecast` tells beforehand how much of a page would be extracted, `check` compares two lists of mentions, `verify`
//! does so on stored pages, `audit` tests a declared reach, `trial` compares two extractors, and `shares` says how sure a
//! sample is of that. A fuzzer of the invariant is in `lab::recycling`.

pub(crate) mod audit;
mod chain;
pub(crate) mod check;
mod cuts;
pub(crate) mod forecast;
pub(crate) mod shares;
mod synced;
#[cfg(test)]
mod tests;
pub(crate) mod trial;
mod units;
pub(crate) mod verify;
mod window;

use crate::extract::dictionary::Edit;
use crate::extract::mention::{Found, Mention};
use crate::extract::reach::Sees;
use crate::extract::scan::{Mode, Pass, scan_all};
use crate::extract::traits::Finds;
use crate::extract::{Came, Extractor, Failure, Runner};
use crate::model::{Region, Span};

use chain::{Chain, Range, merged, total};
use cuts::Cutting;
use synced::OldMatches;

/// The last good version of a page and all its mentions by the same extractor (same fingerprint), in canonical
/// order. Never a page whose extraction failed.
#[derive(Clone, Copy, Debug)]
pub struct Old<'a> {
    pub text: &'a str,
    pub mentions: &'a [Mention],
}

/// All mentions of a page, and what they cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recycled {
    /// In canonical order.
    pub found: Vec<Found>,
    /// Bytes of the page that the extractor was given (by at least one of its patterns).
    pub bytes_extracted: u64,
    /// Bytes in windows that no region covers, the yardstick for `bytes_extracted`. `None` where there are no windows.
    pub lower_bound: Option<u64>,
    /// Two regions disagreed: the command is not as local as it says, and the page was done from scratch.
    pub not_local: bool,
    /// Mentions longer than the declared scope, dropped.
    pub too_long: u64,
    /// Units that were asked about, and how their answers were come by.
    pub units: Vec<(Span, Came)>,
    /// What answers told of that does not stand in their units.
    pub refused: u64,
}

impl Recycled {
    #[must_use]
    pub fn copied(&self) -> u64 {
        self.found.iter().filter(|found| found.source.is_some()).count() as u64
    }

    /// Units that have no answer yet.
    #[must_use]
    pub fn deferred(&self) -> u64 {
        self.units.iter().filter(|(_, came)| *came == Came::NotYet).count() as u64
    }

    #[must_use]
    pub fn extracted(&self) -> u64 {
        self.found.len() as u64 - self.copied()
    }
}

/// For extractors that run in this process.
pub struct NoWorker;

impl Runner for NoWorker {
    fn run(&mut self, _: &str, _: &[Span]) -> Result<Vec<Vec<Mention>>, Failure> {
        Err(Failure::Crashed("no worker was started for this command".to_owned()))
    }
}

/// The mentions of a page without any help from an old one.
pub fn scratch(extractor: &Extractor, runner: &mut dyn Runner, text: &str) -> Result<Recycled, Failure> {
    let finds = extractor.finds();
    match &finds {
        Finds::ByScan(passes) => {
            let found = scan_all(passes, text).into_iter().map(Found::extracted).collect();
            let bytes = text.len() as u64;
            let lower_bound = finds.reach().map(|_| bytes);
            Ok(Recycled { found, bytes_extracted: bytes, lower_bound, ..Recycled::default() })
        }
        Finds::ByAsking(sees) => ask_from_scratch(*sees, runner, text),
    }
}

/// The mentions of a page, copied where an old region allows it. Regions are in the order of `(start, old_start)`.
pub fn recycle(
    extractor: &Extractor,
    runner: &mut dyn Runner,
    old: Option<Old<'_>>,
    new: &str,
    regions: &[Region],
) -> Result<Recycled, Failure> {
    let Some(old) = old else {
        return scratch(extractor, runner, new);
    };
    let finds = extractor.finds();
    if old.text == new {
        return Ok(copy_everything(old, finds.reach().is_some()));
    }
    let useful = || useful(&finds, old.text, new, regions);
    match &finds {
        Finds::ByScan(passes) => Ok(recycle_scans(passes, old, new, &useful())),
        Finds::ByAsking(Sees::Windows(windows)) => window::recycle(runner, old, new, &useful(), *windows),
        Finds::ByAsking(Sees::Units(cut)) => units::recycle(runner, Some(old), new, *cut),
    }
}

/// The mentions of a page when the term list changed too (or alone, if the texts are equal): `old` has the mentions
/// and labels of the old list. A mention counts as copied if it was there under the old list.
#[must_use]
pub(crate) fn recycle_edited(edit: &Edit<'_>, old: Old<'_>, new: &str, regions: &[Region]) -> Recycled {
    let edited = edit.apply(old.text, old.mentions);
    let mentions: Vec<Mention> = edited.found.iter().map(|found| found.mention.clone()).collect();
    let old = Old { text: old.text, mentions: &mentions };
    let mut page = if old.text == new {
        copy_everything(old, true)
    } else {
        let passes: Vec<&dyn Pass> = vec![edit.dictionary()];
        let regions = useful(&Finds::ByScan(passes.clone()), old.text, new, regions);
        recycle_scans(&passes, old, new, &regions)
    };
    for found in &mut page.found {
        found.source = found.source.and_then(|index| edited.found[index as usize].source);
    }
    page.bytes_extracted += edited.bytes_extracted;
    page
}

/// The page is equal: all its mentions are there. `by_window` is whether the extractor looks at windows, of which none
/// was left uncovered.
fn copy_everything(old: Old<'_>, by_window: bool) -> Recycled {
    let found = (0..).zip(old.mentions).map(|(index, mention)| Found { mention: mention.clone(), source: Some(index) });
    Recycled { found: found.collect(), lower_bound: by_window.then_some(0), ..Recycled::default() }
}

fn ask_from_scratch(sees: Sees, runner: &mut dyn Runner, text: &str) -> Result<Recycled, Failure> {
    match sees {
        Sees::Windows(windows) => window::scratch(runner, text, windows),
        Sees::Units(cut) => units::recycle(runner, None, text, cut),
    }
}

/// The regions that an extractor can copy from. Where it looks at windows only, shorter regions are of no use to it,
/// unless they reach to the edge of both pages.
fn useful(finds: &Finds<'_>, old: &str, new: &str, regions: &[Region]) -> Vec<Region> {
    let least = finds.reach().and(finds.useful_region()).unwrap_or(1);
    certified(old, new, regions, least)
}

/// Bytes of regions that are compared for each byte of the page. Comparing costs next to nothing, but a hostile page may
/// have overlapping regions without end. Regions beyond this are ignored, which is always safe.
const COMPARED_PER_BYTE: usize = 16;

/// The regions that say the truth, lie on character boundaries and fit both pages; of those shorter than `least` only
/// the ones that a page edge makes longer.
fn certified(old: &str, new: &str, regions: &[Region], least: u32) -> Vec<Region> {
    let mut budget = new.len().saturating_mul(COMPARED_PER_BYTE).saturating_add(1 << 16);
    let holds = |region: &&Region| {
        let (start, end) = (region.start as usize, region.end as usize);
        let old_start = region.old_start as usize;
        if start >= end {
            return false;
        }
        let at_edges = (start == 0 && old_start == 0) || (end == new.len() && old_start + (end - start) == old.len());
        if end - start < least as usize && !at_edges {
            return false;
        }
        let Some(left) = budget.checked_sub(end - start) else {
            return false;
        };
        budget = left;
        // `get` is `None` off the text and off a character boundary.
        match (new.get(start..end), old.get(old_start..old_start + (end - start))) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        }
    };
    let mut regions: Vec<Region> = regions.iter().filter(holds).copied().collect();
    if !regions.is_sorted() {
        regions.sort_unstable();
    }
    regions
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).expect("texts are shorter than 4 GiB")
}

fn recycle_scans(passes: &[&dyn Pass], old: Old<'_>, new: &str, regions: &[Region]) -> Recycled {
    let count = passes.len();
    let by_label = (count > 1).then(|| {
        let mut lists = vec![Vec::new(); count];
        for (index, mention) in (0..).zip(old.mentions) {
            lists[mention.label as usize].push(index);
        }
        lists
    });
    let mut found = Vec::new();
    let mut searched: Vec<Range> = Vec::new();
    let mut lower: Option<Vec<Range>> = Some(Vec::new());
    for (label, pass) in passes.iter().enumerate() {
        let chosen = by_label.as_ref().map(|lists| lists[label].as_slice());
        let matches = OldMatches { mentions: old.mentions, chosen };
        let mut scan = pass.scan();
        match pass.mode() {
            Mode::Window(reach) => {
                let chain = Chain::of_scan(regions.iter().copied(), length(old.text), length(new), *reach);
                synced::recycle(&mut *scan, &matches, new, &chain, &mut found, &mut searched);
                if let Some(lower) = &mut lower {
                    lower.extend(chain.uncovered_windows());
                }
            }
            Mode::Cut(barriers) => {
                let cutting = Cutting { barriers, old: old.text, new, regions };
                cutting.recycle(&mut *scan, &matches, &mut found, &mut searched);
                lower = None;
            }
            Mode::Page => {
                synced::scan_to_the_end(&mut *scan, new, 0, &mut found, &mut searched);
                lower = None;
            }
        }
    }
    if count > 1 {
        found.sort_by(|a, b| a.mention.cmp(&b.mention));
    }
    Recycled {
        found,
        bytes_extracted: total(&merged(searched)),
        lower_bound: lower.map(|ranges| total(&merged(ranges))),
        ..Recycled::default()
    }
}
