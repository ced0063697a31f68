//! Fleets that are planned again after news, against fleets planned from nothing, and those against sources planned one
//! by one.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::convert::Infallible;

use super::planning::{Fleet, FleetSource, Keep, plan_all, replan};
use super::rows::{curve_rows, schedule_row};
use crate::config::schedule::ScheduleSettings;
use crate::model::{Method, Period, Rng, Timestamp};
use crate::schedule::fleet::{Average, SourceCurve, allocate, source_curve};
use crate::schedule::history::Sequence;
use crate::schedule::hosts::{WantedPolls, keep_to_limit};
use crate::schedule::kept::KeptSource;
use crate::schedule::source::{SourcePlan, plan, plan_share};
use crate::schedule::uniform::NamePhase;
use crate::schedule::{History, Objective, Options};
use crate::stats::Update;
use crate::tables::schedule::{RecallCurveRow, ScheduleRow};

const HOUR: i64 = 3_600 * Timestamp::SECOND;

/// A history of one of few sorts, so that many are equal.
fn history(random: &mut Rng, name: &str) -> History {
    let (n, shift) = ([0, 0, 1, 2, 3, 9, 25][random.index(7)], random.index(2) as i64);
    let width = [0, 1, 24, 24][random.index(4)];
    let update = |i: i64| {
        let at = 470_000 * HOUR + (i * 37 % 9 + i * 24 + 5 + shift) * HOUR;
        if width == 0 { Update::at(Timestamp(at)) } else { Update::within(Timestamp(at - width * HOUR), Timestamp(at)) }
    };
    let mut sequences = vec![Sequence::new((0..n).map(update).collect()).0];
    if random.index(4) == 0 {
        sequences.push(Sequence::new((0..n / 2).map(|i| update(2 * i)).collect()).0);
    }
    History::new(name, sequences)
}

fn name(random: &mut Rng) -> String {
    format!("http://{}.test/{}", ["a", "b"][random.index(2)], random.index(9))
}

/// Options of one sort in two, so that most rounds keep them.
fn options(random: &mut Rng) -> Options {
    let delay = [0.0, 0.4][random.index(2)];
    Options {
        grain_s: [1_800, 900][random.index(2)],
        method: [
            Method::Optimal,
            Method::Optimal,
            Method::Uniform,
            Method::Theoretical,
            Method::Poisson,
            Method::FreshnessOptimal,
            Method::Adaptive,
        ][random.index(7)],
        period: [None, Some(Period::Day), Some(Period::Day), Some(Period::Week)][random.index(4)],
        objective: Objective { delay, ..Objective::default() },
        curve_polls: 6,
        polls: 1 + random.index(3),
        ..Options::default()
    }
}

fn settings(random: &mut Rng) -> ScheduleSettings {
    let mut settings = ScheduleSettings::default();
    settings.options = options(random);
    couple(random, &mut settings);
    settings
}

/// What couples the sources.
fn couple(random: &mut Rng, settings: &mut ScheduleSettings) {
    settings.budget = [None, Some(1), Some(7), Some(40), Some(400)][random.index(5)];
    settings.floor = [None, None, Some(0), Some(2), Some(30)][random.index(5)];
    settings.average = [Average::Macro, Average::Micro][random.index(2)];
    settings.host_limit = [None, Some(1), Some(2)][random.index(3)];
}

/// Each source alone, curves in full.
fn one_by_one(histories: &[History], settings: &ScheduleSettings) -> Fleet {
    let options = &settings.options;
    let phase = |history: &History| NamePhase::of(&history.source);
    let mut planned: Vec<SourcePlan> = match settings.budget {
        None => histories.iter().map(|history| plan(history, options).unwrap()).collect(),
        Some(budget) => {
            let period = options.period.unwrap_or(Period::Day);
            let curve = |history: &History| {
                let train = history.split(options.holdout).0;
                source_curve(&train, &phase(history), options, period, usize::MAX)
            };
            let curves: Vec<SourceCurve> = histories.iter().map(curve).collect();
            let floor = settings.floor.unwrap_or(usize::from(budget >= histories.len()));
            let shared = allocate(options.method, &curves, &[], (budget, floor), settings.average);
            let shares = histories.iter().zip(&shared.polls);
            shares.map(|(history, polls)| plan_share(history, &phase(history), options, period, *polls)).collect()
        }
    };
    let mut repair = None;
    if let Some(limit) = settings.host_limit {
        let wanted = |(plan, history): (&'_ SourcePlan, &History)| (plan.schedule.clone(), history.updates());
        let schedules: Vec<_> = planned.iter().zip(histories).map(wanted).collect();
        let wanted: Vec<WantedPolls<'_>> = (schedules.iter())
            .map(|(schedule, updates)| WantedPolls {
                source: &schedule.source,
                updates: *updates,
                period: schedule.period,
                poll_times: &schedule.poll_times,
                before: None,
            })
            .collect();
        let history = |i: usize| Ok::<_, Infallible>(Cow::Borrowed(&histories[i]));
        let (moved, total) = keep_to_limit(&wanted, options, limit, history).unwrap();
        for ((plan, moved), history) in planned.iter_mut().zip(moved).zip(histories) {
            if let Some(moved) = moved {
                plan.move_polls(history, &phase(history), options, &moved.placed);
                assert_eq!(plan.schedule.poll_times, moved.poll_times);
            }
        }
        repair = Some(total);
    }
    Fleet { planned, budget: None, repair }
}

#[test]
fn equal_evidence_is_learned_once_and_the_result_is_that_of_each() {
    for seed in 0..80 {
        let mut random = Rng::new(seed);
        let settings = settings(&mut random);
        let histories: Vec<History> = (0..18)
            .map(|i| {
                let host = ["a", "b"][random.index(2)];
                history(&mut random, &format!("http://{host}.test/{i}"))
            })
            .collect();
        let (found, alone) = (plan_all(&histories, &settings).unwrap(), one_by_one(&histories, &settings));
        assert_eq!(found.planned, alone.planned, "seed {seed}");
        assert_eq!(found.repair, alone.repair, "seed {seed}");
        let spent: usize = found.planned.iter().map(|plan| plan.schedule.poll_times.len()).sum();
        if let (Some(budget), None) = (found.budget, settings.host_limit) {
            assert!(spent <= budget.spent && budget.spent <= budget.polls, "seed {seed}");
        }
    }
}

/// A fleet over time: what a store would hold of it.
#[derive(Default)]
struct Stored {
    histories: BTreeMap<String, History>,
    kept: BTreeMap<String, KeptSource>,
    rows: BTreeMap<String, (ScheduleRow, Vec<RecallCurveRow>)>,
}

fn rows(plan: &SourcePlan) -> (ScheduleRow, Vec<RecallCurveRow>) {
    (schedule_row(plan), curve_rows(plan))
}

impl Stored {
    /// Some sources come, go or change; gives the names of those that may have changed.
    fn change(&mut self, random: &mut Rng) -> Vec<String> {
        let mut changed = Vec::new();
        for _ in 0..random.index(4) {
            let name = name(random);
            if random.index(4) == 0 {
                self.histories.remove(&name);
                self.kept.remove(&name);
                self.rows.remove(&name);
            } else {
                self.histories.insert(name.clone(), history(random, &name));
                changed.push(name);
            }
        }
        changed
    }

    /// Plans again; gives how many histories were asked for.
    fn replan(&mut self, changed: &[String], settings: &ScheduleSettings) -> usize {
        let sources: Vec<FleetSource<'_>> = (self.histories.iter())
            .map(|(name, history)| {
                let kept = self.kept.get(name);
                let history = Some(history).filter(|_| kept.is_none() || changed.contains(name));
                FleetSource { name, history, kept, weight: 1.0 }
            })
            .collect();
        let asked = Cell::new(0);
        let ask = |names: &[&str]| {
            asked.set(asked.get() + names.len());
            Ok(names.iter().map(|name| self.histories[*name].clone()).collect())
        };
        let news = replan(&sources, settings, &ask).unwrap();
        let names: Vec<String> = sources.iter().map(|source| source.name.to_owned()).collect();
        let all: Vec<History> = self.histories.values().cloned().collect();
        for (name, news) in names.iter().zip(news.sources) {
            if let Some(plan) = news.plan {
                self.rows.insert(name.clone(), rows(&plan));
            }
            match news.keep {
                Keep::AsBefore => {}
                Keep::This(kept) => {
                    let bytes = postcard::to_stdvec(&kept).unwrap();
                    assert_eq!(postcard::from_bytes::<KeptSource>(&bytes).unwrap(), *kept);
                    self.kept.insert(name.clone(), *kept);
                }
                Keep::Nothing => {
                    self.kept.remove(name);
                }
            }
        }
        let anew = plan_all(&all, settings).unwrap();
        assert_eq!((news.budget, news.repair), (anew.budget, anew.repair));
        assert_eq!(self.rows.len(), anew.planned.len());
        for (found, plan) in self.rows.values().zip(&anew.planned) {
            assert_eq!(*found, rows(plan));
        }
        asked.get()
    }
}

#[test]
fn a_fleet_planned_again_is_one_planned_from_nothing() {
    for seed in 0..40 {
        let mut random = Rng::new(seed);
        let mut stored = Stored::default();
        let mut settings = settings(&mut random);
        for _ in 0..10 {
            stored.change(&mut random);
        }
        for _ in 0..12 {
            let changed = stored.change(&mut random);
            match random.index(8) {
                0 => couple(&mut random, &mut settings),
                1 => settings.options = options(&mut random),
                _ => {}
            }
            stored.replan(&changed, &settings);
        }
    }
}

#[test]
fn news_of_few_sources_asks_for_few_histories() {
    let mut random = Rng::new(3);
    let mut settings = ScheduleSettings::default();
    settings.options = Options { grain_s: 1_800, period: Some(Period::Day), curve_polls: 6, ..Options::default() };
    (settings.budget, settings.host_limit) = (Some(400), Some(3));
    let mut stored = Stored::default();
    for i in 0..200 {
        let name = format!("http://{}.test/{i}", i % 5);
        stored.histories.insert(name.clone(), history(&mut random, &name));
    }
    assert_eq!(stored.replan(&[], &settings), 0, "all are new, so that all histories are given");
    assert_eq!(stored.replan(&[], &settings), 0, "nothing is new");
    let kept = stored.kept.clone();
    for i in [3, 77, 150] {
        let name = format!("http://{}.test/{i}", i % 5);
        stored.histories.insert(name.clone(), history(&mut random, &name));
        let asked = stored.replan(&[name], &settings);
        assert!(asked < 40, "{asked}");
    }
    assert!(stored.kept != kept);
    // A history that is not the one the schedule was learned from is no answer.
    let name = "http://0.test/0".to_owned();
    let other = BTreeMap::from([(name.clone(), stored.kept[&name].clone())]);
    let source = FleetSource { name: &name, history: None, kept: other.get(&name), weight: 1.0 };
    settings.options.polls += 1;
    let wrong = |_: &[&str]| Ok(vec![History::of_moments(name.clone(), &[Timestamp(7)])]);
    if other[&name].updates > 0 {
        assert!(replan(&[source], &settings, &wrong).unwrap_err().to_string().contains("not the one"));
    }
}
