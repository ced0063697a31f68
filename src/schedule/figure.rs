//! What the paper's Figure 5 shows: recall against polls, for every method. It is drawn in `report`.

use std::cmp::Reverse;

use super::assess::Judge;
use super::fit::SlotFitter;
use super::history::History;
use super::options::Options;
use super::source::SourcePlan;
use super::uniform::NamePhase;
use crate::model::{Method, Period};

/// A line of the figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub name: &'static str,
    /// Polls and held-out recall.
    pub points: Vec<(usize, f64)>,
}

/// One source's chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    pub title: String,
    pub period: Period,
    pub series: Vec<Series>,
    pub ceiling: Option<f64>,
}

/// Held-out recall of every method for every number of polls, learned on the training part.
#[must_use]
pub fn panel(history: &History, options: &Options, period: Period, polls: &[usize]) -> Panel {
    let (train, test) = history.split(options.holdout);
    let phase = NamePhase::of(&history.source);
    let judge = Judge::new(&test);
    let fitter = SlotFitter::new(&train, &phase, options, period, options.grain_s);
    let of_method = |method: Method| {
        let recall = |n: usize| {
            let times = fitter.times(&fitter.slots(method, n));
            judge.expected(&options.calendar, period, &times).recall
        };
        polls.iter().filter_map(|n| Some((*n, recall(*n)?))).collect::<Vec<_>>()
    };
    let mean = polls.iter().filter_map(|n| Some((*n, judge.uniform(period, &vec![0; *n]).recall?))).collect();
    let series = vec![
        Series { name: Method::Optimal.as_str(), points: of_method(Method::Optimal) },
        Series { name: Method::Theoretical.as_str(), points: of_method(Method::Theoretical) },
        Series { name: "uniform, best phase", points: of_method(Method::Uniform) },
        Series { name: "poisson (even, any phase)", points: of_method(Method::Poisson) },
        Series { name: "uniform, mean of phases", points: mean },
    ];
    let ceiling = judge.ceiling(&options.calendar, options.grain_s);
    Panel { title: history.source.clone(), period, series, ceiling }
}

/// A panel for each of the sources with most updates, over the period of its schedule.
#[must_use]
pub(crate) fn panels(histories: &[History], planned: &[SourcePlan], options: &Options) -> Vec<Panel> {
    const PANELS: usize = 6;
    const POLLS: [usize; 8] = [1, 2, 3, 4, 6, 8, 12, 24];
    let mut sources: Vec<(&History, &SourcePlan)> = histories.iter().zip(planned).collect();
    sources.sort_by_key(|(history, _)| Reverse(history.updates()));
    let most = sources.into_iter().take(PANELS);
    most.map(|(history, plan)| panel(history, options, plan.schedule.period, &POLLS)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::update_logs;

    #[test]
    fn figure_5_has_the_papers_shape() {
        let options = Options { grain_s: 60, min_gap_s: 0, ..Options::default() };
        let panel = panel(&update_logs::datis_like(24 * 40, 1), &options, Period::Hour, &[1, 2, 3, 4, 6]);
        let recall = |name: &str, polls: usize| {
            let series = panel.series.iter().find(|s| s.name == name).unwrap();
            series.points.iter().find(|p| p.0 == polls).unwrap().1
        };
        assert!(recall("optimal", 2) > 0.97 && recall("theoretical", 2) > 0.97);
        assert!(recall("uniform, mean of phases", 2) < 0.7);
        assert!((recall("optimal", 1) - 0.5).abs() < 0.02);
    }
}
