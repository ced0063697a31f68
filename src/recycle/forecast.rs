//! How much of a page an extractor would be given, without running it: for choosing a plan.
//!
//! The bytes are those of the windows that no region covers (for patterns without a longest match the stretches between
//! barriers, for lines and paragraphs those that are new). A synchronised scan may search a little less or more, since
//! it depends on the old mentions, which are not looked at.

use std::collections::HashSet;

use super::chain::{Chain, Range, merged, total};
use super::cuts::Cutting;
use super::{length, useful};
use crate::extract::reach::{Cut, Sees};
use crate::extract::scan::{Mode, Pass};
use crate::extract::traits::Finds;
use crate::extract::units::units;
use crate::extract::{Extractor, Reach};
use crate::model::Region;

/// What is left to do on a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Forecast {
    /// Bytes that would be extracted.
    pub bytes: u64,
    /// Places that would be copied from.
    pub places: u64,
}

/// Foresees what [`super::recycle`] would do with these regions.
#[must_use]
pub(crate) fn forecast(extractor: &Extractor, old: &str, new: &str, regions: &[Region]) -> Forecast {
    if old == new {
        return Forecast { bytes: 0, places: 1 };
    }
    let finds = extractor.finds();
    match &finds {
        Finds::ByScan(passes) => of_scans(passes, old, new, &useful(&finds, old, new, regions)),
        // As if it counted in bytes, which is near enough.
        Finds::ByAsking(Sees::Windows(windows)) => {
            of_reach(windows.reach, old, new, &useful(&finds, old, new, regions))
        }
        Finds::ByAsking(Sees::Units(cut)) => of_units(*cut, old, new),
    }
}

fn of_reach(reach: Reach, old: &str, new: &str, regions: &[Region]) -> Forecast {
    let chain = Chain::of_scan(regions.iter().copied(), length(old), length(new), reach);
    Forecast { bytes: total(&chain.uncovered_windows()), places: chain.places().len() as u64 }
}

fn of_scans(passes: &[&dyn Pass], old: &str, new: &str, regions: &[Region]) -> Forecast {
    let mut searched: Vec<Range> = Vec::new();
    let mut places = 0;
    for pass in passes {
        match pass.mode() {
            Mode::Window(reach) => {
                let chain = Chain::of_scan(regions.iter().copied(), length(old), length(new), *reach);
                places = places.max(chain.places().len());
                searched.extend(chain.uncovered_windows());
            }
            Mode::Cut(barriers) => {
                let stretches = Cutting { barriers, old, new, regions }.stretches();
                places = places.max(stretches.len());
                let position = |at: usize| i64::try_from(at).expect("texts are shorter than 4 GiB");
                let mut at = 0;
                for (from, to, _) in stretches {
                    searched.push((position(at), position(from)));
                    at = to;
                }
                searched.push((position(at), length(new)));
            }
            Mode::Page => searched.push((0, length(new))),
        }
    }
    Forecast { bytes: total(&merged(searched)), places: places as u64 }
}

fn of_units(cut: Cut, old: &str, new: &str) -> Forecast {
    let mut known: HashSet<[&str; 3]> = units(old, cut).iter().map(|unit| unit.texts(old)).collect();
    let mut forecast = Forecast::default();
    for unit in units(new, cut) {
        if known.insert(unit.texts(new)) {
            forecast.bytes += u64::from(unit.span.len());
        } else {
            forecast.places += 1;
        }
    }
    forecast
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::config::ExtractorConfig;
    use crate::extract::{Declaration, Definition, Mention};
    use crate::matching::{MatcherKind, Scratch};
    use crate::recycle::{NoWorker, Old, recycle, scratch};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn extractor(toml: &str) -> Arc<Extractor> {
        let config: ExtractorConfig = toml::from_str(toml).unwrap();
        match config.build(Some("ab\nbca\nabab\n")).unwrap() {
            Declaration::Complete(Definition::Extracts(extractor)) => extractor,
            other => panic!("{other:?} does not extract"),
        }
    }

    proptest! {
        /// With windows the forecast is the lower bound of the run; between barriers it is the run itself.
        #[test]
        fn the_forecast_is_what_the_run_reports(old in "[abc\n]{0,60}", new in "[abc\n]{0,60}", cut in 0usize..60, kind in 0usize..3) {
            // New pages that share something with the old one.
            let new = format!("{new}{}", &old[..cut.min(old.len())]);
            let extractor = extractor([
                "name = 'x'\nkind = 'regex'\npattern = '\\bab{1,3}'",
                "name = 'x'\nkind = 'regex'\npattern = 'a[^\\n]+c'",
                "name = 'x'\nkind = 'dictionary'\nterms = 't'",
            ][kind]);
            let mut scratch_memory = Scratch::new();
            for matcher in MatcherKind::ALL {
                let mut regions = Vec::new();
                matcher.regions(&old, &new, 3, &mut scratch_memory, &mut regions);
                let before: Vec<Mention> =
                    scratch(&extractor, &mut NoWorker, &old).unwrap().found.into_iter().map(|f| f.mention).collect();
                let source = Old { text: &old, mentions: &before };
                let run = recycle(&extractor, &mut NoWorker, Some(source), &new, &regions).unwrap();
                let seen = forecast(&extractor, &old, &new, &regions);
                match run.lower_bound {
                    Some(bound) => prop_assert_eq!(seen.bytes, bound),
                    None => prop_assert_eq!(seen.bytes, run.bytes_extracted),
                }
            }
        }
    }

    #[test]
    fn units_are_counted_once() {
        let seen = of_units(Cut::Lines, "a\nb\n", "a\nnew\nnew\nb\n");
        assert_eq!(seen, Forecast { bytes: 3, places: 3 });
    }
}
