//! Many sources at once: each with polls of its own, or all with a budget. Sources are planned in parallel; the result
//! does not depend on the number of threads.

use anyhow::Result;
use rayon::prelude::*;

use crate::config::schedule::ScheduleSettings;
use crate::model::Period;
use crate::schedule::fleet::{Budget, HostRepair, repair_hosts, share, source_curve};
use crate::schedule::source::{SourcePlan, plan, plan_share};
use crate::schedule::uniform::NamePhase;
use crate::schedule::{History, Schedule};

/// The sources' schedules and what sharing did.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    /// In the order of the histories.
    pub planned: Vec<SourcePlan>,
    pub budget: Option<Budget>,
    pub repair: Option<HostRepair>,
}

/// First length of the curves; those that turn out too short are computed again, longer.
const CURVE: usize = 24;

/// Plans every source; a budget is shared by what each source's training part gains from another poll.
pub(crate) fn plan_all(histories: &[History], settings: &ScheduleSettings) -> Result<Fleet> {
    let options = &settings.options;
    let mut fleet = Fleet::default();
    if let Some(budget) = settings.budget {
        let period = options.period.unwrap_or(Period::Day);
        let floor = settings.floor.unwrap_or_else(|| usize::from(budget >= histories.len()));
        let train: Vec<History> = histories.iter().map(|history| history.split(options.holdout).0).collect();
        let mut curves: Vec<_> = train
            .par_iter()
            .map(|history| source_curve(history, &NamePhase::of(&history.source), options, period, CURVE.min(budget)))
            .collect();
        let shared = loop {
            let shared = share(&curves, budget, floor, settings.average);
            if shared.cut_short.is_empty() {
                break shared;
            }
            let longer: Vec<_> = shared
                .cut_short
                .par_iter()
                .map(|&i| {
                    source_curve(
                        &train[i],
                        &NamePhase::of(&train[i].source),
                        options,
                        period,
                        curves[i].values.len() * 2,
                    )
                })
                .collect();
            for (i, curve) in shared.cut_short.iter().zip(longer) {
                curves[*i] = curve;
            }
        };
        let planned: Result<Vec<SourcePlan>, _> = histories
            .par_iter()
            .zip(&shared.polls)
            .map(|(history, polls)| plan_share(history, options, period, *polls))
            .collect();
        fleet.planned = planned?;
        fleet.budget = Some(Budget {
            polls: budget,
            period,
            spent: shared.spent,
            floor,
            average: settings.average,
            unpolled: shared.polls.iter().filter(|polls| **polls == 0).count(),
        });
    } else {
        options.check()?;
        let planned: Result<Vec<SourcePlan>, _> = histories.par_iter().map(|history| plan(history, options)).collect();
        fleet.planned = planned?;
    }
    if let Some(limit) = settings.host_limit {
        let mut schedules: Vec<Schedule> = fleet.planned.iter().map(|plan| plan.schedule.clone()).collect();
        fleet.repair = Some(repair_hosts(&mut schedules, histories, options, limit));
        for (plan, schedule) in fleet.planned.iter_mut().zip(schedules) {
            if plan.schedule != schedule {
                plan.notes.push("polls were moved to keep to the host's limit".to_owned());
                plan.schedule = schedule;
            }
        }
    }
    Ok(fleet)
}
