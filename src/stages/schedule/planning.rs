//! Many sources at once: each with polls of its own, or all with a budget. Sources are planned in parallel; the result
//! does not depend on the number of threads.
//!
//! A fleet can be planned from nothing ([`plan_all`]) or again after news of some sources ([`replan`]), with the same
//! result: what is learned from a history that has not changed is taken from what was kept, and so are the rows of a
//! source whose polls come out the same. What is done for all sources, whatever changed: sharing a budget from their
//! curves, and going through the polls of hosts with a limit.

use std::borrow::Cow;

use anyhow::{Result, bail, ensure};
use rayon::prelude::*;

use super::once::{Lesson, learn_once};
use crate::config::schedule::ScheduleSettings;
use crate::model::{Digest, Period};
use crate::schedule::fleet::{Average, Budget, HostRepair, SourceCurve, allocate, source_curve};
use crate::schedule::hosts::{MovedPolls, WantedPolls, keep_to_limit};
use crate::schedule::kept::KeptSource;
use crate::schedule::source::{SourcePlan, plan_checked, plan_share};
use crate::schedule::uniform::NamePhase;
use crate::schedule::{History, Options};

/// The sources' schedules and what sharing did.
#[derive(Debug, Default)]
pub struct Fleet {
    /// In the order of the histories.
    pub planned: Vec<SourcePlan>,
    pub budget: Option<Budget>,
    pub repair: Option<HostRepair>,
}

/// Plans every source; a budget is shared by what each source's training part gains from another poll.
pub fn plan_all(histories: &[History], settings: &ScheduleSettings) -> Result<Fleet> {
    let weighed = |history: &'_ History| settings.weighing.of(&history.source);
    let sources: Vec<FleetSource<'_>> =
        histories.iter().map(|history| FleetSource { weight: weighed(history), ..FleetSource::new(history) }).collect();
    let found = replan(&sources, settings, &|_| bail!("all histories are given"))?;
    let planned = found.sources.into_iter().filter_map(|news| news.plan).map(|plan| *plan).collect();
    Ok(Fleet { planned, budget: found.budget, repair: found.repair })
}

/// A source of a fleet.
#[derive(Clone, Copy, Debug)]
pub struct FleetSource<'a> {
    pub name: &'a str,
    /// Its history, if that may be another than when it was planned; if it was never planned, always.
    pub history: Option<&'a History>,
    /// What was kept of it.
    pub kept: Option<&'a KeptSource>,
    /// What it counts in a budget.
    pub weight: f64,
}

impl<'a> FleetSource<'a> {
    /// One that was never planned.
    #[must_use]
    pub fn new(history: &'a History) -> Self {
        Self { name: &history.source, history: Some(history), kept: None, weight: 1.0 }
    }
}

/// What is new of a source.
#[derive(Debug)]
pub struct SourceNews {
    /// Its plan; `None` if its rows are what they were.
    pub plan: Option<Box<SourcePlan>>,
    pub keep: Keep,
}

/// What is to be kept of a source.
#[derive(Clone, Debug, PartialEq)]
pub enum Keep {
    /// What was kept.
    AsBefore,
    This(Box<KeptSource>),
    /// No other source has a say in its schedule, so that it is not kept up; what was kept of it must go.
    Nothing,
}

/// What is new of a fleet.
#[derive(Debug)]
pub struct FleetNews {
    /// In the order of the sources.
    pub sources: Vec<SourceNews>,
    pub budget: Option<Budget>,
    pub repair: Option<HostRepair>,
}

/// Gives the histories of sources that were planned before, by their names and in their order.
pub(crate) type AskHistories<'a> = dyn Fn(&[&str]) -> Result<Vec<History>> + 'a;

/// Plans a fleet after news of some sources, with the same result as from nothing. `ask` is asked for the histories of
/// others that get another share of the budget, or whose polls must be moved.
pub fn replan(sources: &[FleetSource<'_>], settings: &ScheduleSettings, ask: &AskHistories<'_>) -> Result<FleetNews> {
    let mut planning = Planning::begin(sources, settings, ask)?;
    let budget = settings.budget.map(|budget| planning.share(budget)).transpose()?;
    planning.plan_changed()?;
    let repair = settings.host_limit.map(|limit| planning.keep_to_limit(limit)).transpose()?;
    planning.plan_moved()?;
    let moved = planning.places(|source| source.plan.is_some() && source.moved.is_some());
    planning.need(&moved)?;
    let learned_with = planning.learned_with;
    let sources = planning.sources.into_par_iter().map(|source| source.news(learned_with, settings)).collect();
    Ok(FleetNews { sources, budget, repair })
}

/// First length of the curves; those that turn out too short are computed again, longer.
const CURVE: usize = 24;

struct Planning<'a> {
    settings: &'a ScheduleSettings,
    /// Identifies the options.
    learned_with: Digest,
    ask: &'a AskHistories<'a>,
    sources: Vec<Planned<'a>>,
}

/// A source on its way to a plan.
struct Planned<'a> {
    name: &'a str,
    weight: f64,
    history: Option<Cow<'a, History>>,
    evidence: Digest,
    updates: usize,
    /// What was kept of it, if that still holds.
    kept: Option<&'a KeptSource>,
    /// A curve that was not kept.
    curve: Option<SourceCurve>,
    /// Its share of the budget.
    share: Option<usize>,
    /// The plan before the host's limit, if it is not the kept one.
    plan: Option<Box<SourcePlan>>,
    moved: Option<MovedPolls>,
}

impl<'a> Planning<'a> {
    fn begin(sources: &[FleetSource<'a>], settings: &'a ScheduleSettings, ask: &'a AskHistories<'a>) -> Result<Self> {
        match settings.budget {
            Some(_) => Options { polls: 1, period: Some(period_of(settings)), ..settings.options.clone() }.check()?,
            None => settings.options.check()?,
        }
        let learned_with = settings.options.digest();
        let begun = sources.par_iter().map(|source| Planned::begin(source, learned_with)).collect();
        let mut planning = Self { settings, learned_with, ask, sources: begun };
        // Without anything that holds, only the history can say what a source is.
        let unknown = planning.places(|source| source.kept.is_none() && source.history.is_none());
        planning.need(&unknown)?;
        Ok(planning)
    }

    fn places(&self, wanted: impl Fn(&Planned<'a>) -> bool) -> Vec<usize> {
        self.sources.iter().enumerate().filter(|(_, source)| wanted(source)).map(|(i, _)| i).collect()
    }

    /// Sees to it that the histories of these sources are there.
    fn need(&mut self, places: &[usize]) -> Result<()> {
        let missing: Vec<usize> = places.iter().copied().filter(|i| self.sources[*i].history.is_none()).collect();
        let (nothing, missing): (Vec<usize>, Vec<usize>) =
            missing.into_iter().partition(|i| self.sources[*i].knows_nothing());
        for i in nothing {
            let source = &mut self.sources[i];
            source.history = Some(Cow::Owned(History::new(source.name, Vec::new())));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = missing.iter().map(|i| self.sources[*i].name).collect();
        let histories = (self.ask)(&names)?;
        ensure!(histories.len() == names.len(), "{} of {} histories are there", histories.len(), names.len());
        for (i, history) in missing.into_iter().zip(histories) {
            self.sources[i].take(history)?;
        }
        Ok(())
    }

    /// Shares the budget by curves, learning those that are not kept or too short.
    fn share(&mut self, budget: usize) -> Result<Budget> {
        let settings = self.settings;
        let period = period_of(settings);
        let floor = settings.floor.unwrap_or_else(|| usize::from(budget >= self.sources.len()));
        let nothing = SourceCurve::of_nothing(&settings.options, period);
        // How many mentions a poll gains depends on how many updates there are.
        let average = if settings.weighing.is_by_mentions() { Average::Micro } else { settings.average };
        let weights: Vec<f64> = self.sources.iter().map(|source| source.weight).collect();
        let unknown = self.places(|source| !source.knows_nothing() && source.kept_curve().is_none());
        self.learn_curves(unknown, |_| CURVE.min(budget))?;
        let shared = loop {
            let curves: Vec<&SourceCurve> =
                self.sources.iter().map(|source| source.present_curve().unwrap_or(&nothing)).collect();
            let shared = allocate(settings.options.method, &curves, &weights, (budget, floor), average);
            if shared.cut_short.is_empty() {
                break shared;
            }
            self.learn_curves(shared.cut_short, |curve| curve.map_or(CURVE, |curve| curve.values.len() * 2))?;
        };
        for (source, polls) in self.sources.iter_mut().zip(&shared.polls) {
            source.share = Some(*polls);
        }
        Ok(Budget {
            polls: budget,
            period,
            spent: shared.spent,
            floor,
            average,
            unpolled: shared.polls.iter().filter(|polls| **polls == 0).count(),
        })
    }

    /// Learns the curves of these sources, so long as told from the present ones.
    fn learn_curves(&mut self, places: Vec<usize>, length: impl Fn(Option<&SourceCurve>) -> usize) -> Result<()> {
        self.need(&places)?;
        let lesson = |i: &usize| {
            let source = &self.sources[*i];
            source.lesson(Some(length(source.present_curve())))
        };
        let lessons: Vec<Lesson<'_>> = places.iter().filter_map(lesson).collect();
        let (options, period) = (&self.settings.options, period_of(self.settings));
        let curves = learn_once(&lessons, |lesson, phase| {
            let train = lesson.history.split(options.holdout).0;
            source_curve(&train, phase, options, period, lesson.polls.unwrap_or(CURVE))
        });
        for (i, curve) in places.into_iter().zip(curves) {
            self.sources[i].curve = Some(curve);
        }
        Ok(())
    }

    /// Plans the sources with another history or another share.
    fn plan_changed(&mut self) -> Result<()> {
        let changed = self.places(|source| source.kept.is_none_or(|kept| kept.share != source.share));
        self.plan(&changed)
    }

    fn plan(&mut self, places: &[usize]) -> Result<()> {
        let (nothing, some): (Vec<usize>, Vec<usize>) = places.iter().partition(|i| self.sources[**i].knows_nothing());
        self.need(&some)?;
        let (options, period) = (&self.settings.options, period_of(self.settings));
        let plan = |history: &History, phase: &NamePhase, share: Option<usize>| match share {
            Some(polls) => Box::new(plan_share(history, phase, options, period, polls)),
            None => Box::new(plan_checked(history, phase, options)),
        };
        let lessons: Vec<Lesson<'_>> = some
            .iter()
            .filter_map(|i| {
                let source = &self.sources[*i];
                source.lesson(source.share)
            })
            .collect();
        let learned = learn_once(&lessons, |lesson, phase| plan(lesson.history, phase, lesson.polls));
        let even = nothing.par_iter().map(|i| {
            let source = &self.sources[*i];
            plan(&History::new(source.name, Vec::new()), &NamePhase::of(source.name), source.share)
        });
        let even: Vec<Box<SourcePlan>> = even.collect();
        for (i, mut plan) in some.into_iter().chain(nothing).zip(learned.into_iter().chain(even)) {
            let source = &mut self.sources[i];
            source.name.clone_into(&mut plan.schedule.source);
            source.plan = Some(plan);
        }
        Ok(())
    }

    /// Plans the sources that want the same polls as before and get others, since a limit or other sources changed.
    fn plan_moved(&mut self) -> Result<()> {
        let elsewhere = self.places(Planned::is_polled_at_other_times);
        self.plan(&elsewhere)
    }

    /// Moves polls that are too many for a host.
    fn keep_to_limit(&mut self, limit: usize) -> Result<HostRepair> {
        let wanted: Vec<WantedPolls<'_>> = self.sources.iter().map(Planned::wanted).collect();
        let mut loaded: Vec<(usize, History)> = Vec::new();
        let history = |i: usize| {
            let source = &self.sources[i];
            if let Some(history) = &source.history {
                return Ok(Cow::Borrowed(history.as_ref()));
            }
            let history = if source.knows_nothing() {
                History::new(source.name, Vec::new())
            } else {
                let Some(history) = (self.ask)(&[source.name])?.pop() else { bail!("{} has no history", source.name) };
                history
            };
            loaded.push((i, history.clone()));
            anyhow::Ok(Cow::Owned(history))
        };
        let (moved, repair) = keep_to_limit(&wanted, &self.settings.options, limit, history)?;
        drop(wanted);
        for (i, history) in loaded {
            self.sources[i].take(history)?;
        }
        for (source, moved) in self.sources.iter_mut().zip(moved) {
            source.moved = moved;
        }
        Ok(repair)
    }
}

/// What a budget is shared over.
fn period_of(settings: &ScheduleSettings) -> Period {
    settings.options.period.unwrap_or(Period::Day)
}

impl<'a> Planned<'a> {
    fn begin(source: &FleetSource<'a>, learned_with: Digest) -> Self {
        let known = source.history.map(|history| (history.evidence(), history.updates()));
        let kept = source.kept.filter(|kept| {
            kept.settings == learned_with && known.is_none_or(|(evidence, _)| evidence == kept.evidence)
        });
        let then = source.kept.map(|kept| (kept.evidence, kept.updates));
        let (evidence, updates) = known.or(then).unwrap_or((History::default().evidence(), 0));
        let history = source.history.map(Cow::Borrowed);
        let FleetSource { name, weight, .. } = *source;
        Self { name, weight, history, evidence, updates, kept, curve: None, share: None, plan: None, moved: None }
    }

    /// Takes the history that was asked for.
    fn take(&mut self, history: History) -> Result<()> {
        ensure!(
            history.source == self.name && history.evidence() == self.evidence,
            "the history of {} is not the one that its schedule was learned from",
            self.name
        );
        self.history = Some(Cow::Owned(history));
        Ok(())
    }

    fn knows_nothing(&self) -> bool {
        self.updates == 0
    }

    fn kept_curve(&self) -> Option<&'a SourceCurve> {
        self.kept.and_then(|kept| kept.curve.as_ref())
    }

    fn present_curve(&self) -> Option<&SourceCurve> {
        self.curve.as_ref().or(self.kept_curve())
    }

    fn lesson(&self, polls: Option<usize>) -> Option<Lesson<'_>> {
        Some(Lesson { history: self.history.as_deref()?, evidence: self.evidence, polls })
    }

    /// Period and polls without a limit of the host.
    fn polls(&self) -> (Period, &[i64]) {
        match (&self.plan, self.kept) {
            (Some(plan), _) => (plan.schedule.period, &plan.schedule.poll_times),
            (None, Some(kept)) => (kept.period, &kept.poll_times),
            (None, None) => (Period::Day, &[]),
        }
    }

    fn wanted(&self) -> WantedPolls<'_> {
        let (period, poll_times) = self.polls();
        let before = self.kept.filter(|kept| kept.period == period && kept.poll_times == poll_times);
        let before = before.and_then(|kept| kept.moved.as_ref());
        WantedPolls { source: self.name, updates: self.updates, period, poll_times, before }
    }

    /// Whether it has no plan yet, but needs one.
    fn is_polled_at_other_times(&self) -> bool {
        let times = self.moved.as_ref().map_or(self.polls().1, |moved| &moved.poll_times);
        self.plan.is_none() && self.kept.is_some_and(|kept| kept.polled_at() != times)
    }

    fn to_keep(&self, learned_with: Digest) -> KeptSource {
        let (period, poll_times) = self.polls();
        KeptSource {
            settings: learned_with,
            evidence: self.evidence,
            updates: self.updates,
            curve: self.share.and_then(|_| self.present_curve().cloned()),
            share: self.share,
            period,
            poll_times: poll_times.to_vec(),
            moved: self.moved.clone(),
        }
    }

    fn news(mut self, learned_with: Digest, settings: &ScheduleSettings) -> SourceNews {
        let same =
            self.curve.is_none() && self.kept.is_some_and(|kept| kept.share == self.share && kept.moved == self.moved);
        let keep = match (same, settings.is_separable()) {
            (true, _) => Keep::AsBefore,
            (false, false) => Keep::This(Box::new(self.to_keep(learned_with))),
            (false, true) => Keep::Nothing,
        };
        // What is kept are the polls that it wants; the plan has those that it gets.
        if let (Some(plan), Some(moved), Some(history)) = (&mut self.plan, &self.moved, &self.history) {
            plan.move_polls(history, &NamePhase::of(self.name), &settings.options, &moved.placed);
        }
        SourceNews { plan: self.plan, keep }
    }
}
