//! All ways to poll the sources of a log, side by side on time that none of them has seen: `ratoon simulate --compare`.
//!
//! Each way learns from the first part of every source's updates and is judged on the rest, as in `schedule`. Those that
//! give every source the same and those that share a budget spend the same number of polls in all; only the rule of
//! crawlers, left to itself, spends what it likes.

use anyhow::Result;
use rayon::prelude::*;

use super::planning::plan_all;
use crate::config::schedule::ScheduleSettings;
use crate::model::{Method, Period};
use crate::schedule::adaptive::adapt;
use crate::schedule::assess::Judge;
use crate::schedule::compared::{Comparison, Judged, Sharing, summed_up};
use crate::schedule::history::Sequence;
use crate::schedule::{FitOn, History, Metrics, SourcePlan};

/// Compares all methods on the sources of a log, by the budget of the settings, or with so many polls for each source.
pub(crate) fn compare(histories: &[History], settings: &ScheduleSettings) -> Result<Comparison> {
    let period = settings.options.period.unwrap_or(Period::Day);
    let sources = histories.len();
    let budget = settings.budget.unwrap_or(settings.options.polls * sources);
    let each = (budget / sources.max(1)).max(1);
    let mut ways = Vec::new();
    let planned = |method: Method, shared: bool| {
        let mut settings = settings.clone();
        (settings.budget, settings.host_limit) = (shared.then_some(budget), None);
        let options = &mut settings.options;
        (options.method, options.period, options.polls, options.fit) = (method, Some(period), each, FitOn::Train);
        // No curve is shown.
        options.curve_polls = 1;
        plan_all(histories, &settings)
    };
    for (method, sharing) in [
        (Method::Uniform, Sharing::Each),
        (Method::Theoretical, Sharing::Each),
        (Method::Optimal, Sharing::Each),
        (Method::Poisson, Sharing::Shared),
        (Method::Adaptive, Sharing::Shared),
        (Method::FreshnessOptimal, Sharing::Shared),
        (Method::Optimal, Sharing::Shared),
    ] {
        let fleet = planned(method, sharing == Sharing::Shared)?;
        let judged = |metrics: &dyn Fn(usize) -> Metrics| -> Vec<Judged> {
            let plans = fleet.planned.iter().enumerate();
            let one = |(i, plan): (usize, &SourcePlan)| Judged {
                polls: plan.schedule.period.mean_polls(&plan.schedule.poll_times),
                weight: settings.weighing.of(&plan.schedule.source),
                metrics: metrics(i),
            };
            plans.map(one).collect()
        };
        if method == Method::Uniform {
            let mean = judged(&|i| fleet.planned[i].uniform);
            ways.push(summed_up("uniform, mean over phases", sharing, &mean));
        }
        let found = judged(&|i| fleet.planned[i].held_out.expected);
        ways.push(summed_up(method.as_str(), sharing, &found));
    }
    let free: Vec<Judged> = histories.par_iter().map(|history| free_rule(history, settings, period, each)).collect();
    ways.push(summed_up(Method::Adaptive.as_str(), Sharing::Free, &free));
    Ok(Comparison { period, sources, budget, holdout: settings.options.holdout, ways })
}

/// The rule of crawlers at work: its interval learned on the first part, its polls judged on the rest.
fn free_rule(history: &History, settings: &ScheduleSettings, period: Period, polls: usize) -> Judged {
    let shortest = settings.options.min_gap_s as f64;
    let (train, test) = history.split(settings.options.holdout);
    let first = period.mean_seconds() / polls as f64;
    let (mut interval, mut known) = (0.0, 0.0);
    for moments in train.sequences.iter().map(Sequence::moments) {
        let span = (moments.first().copied().unwrap_or(0), moments.last().copied().unwrap_or(0));
        interval += adapt(&moments, span, first, shortest).interval_s;
        known += 1.0;
    }
    let interval = if known > 0.0 { interval / known } else { first };
    let polls_of = |moments: &[i64]| -> Vec<i64> {
        let (Some(first), Some(last)) = (moments.first(), moments.last()) else { return Vec::new() };
        let beyond = last + 8 * 86_400_000_000;
        adapt(moments, (*first, beyond), interval, shortest).polls
    };
    let mut made = Judged { polls: 0.0, weight: settings.weighing.of(&history.source), metrics: Metrics::default() };
    for sequence in &test.sequences {
        let moments = sequence.moments();
        let (Some(first), Some(last)) = (moments.first(), moments.last()) else { continue };
        let within = polls_of(&moments).iter().filter(|poll| *poll <= last).count();
        let periods = (last - first) as f64 / 1e6 / period.mean_seconds();
        made.polls += within as f64 / periods.max(1.0) / test.sequences.len() as f64;
    }
    made.metrics = Judge::new(&test).followed(polls_of);
    made
}
