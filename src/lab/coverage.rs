//! How often stated intervals cover what comes of sources with known habits.

use crate::lab::update_logs;
use crate::model::Period;
use crate::schedule::assess::Judge;
use crate::schedule::source::plan;
use crate::schedule::{History, Options};
use crate::stats::whole::count;

/// Three in four by chance, with known rates from one update in 40 hours to one an hour; the others by working hours.
pub fn sources(number: u32) -> impl Iterator<Item = History> {
    (0..number).map(|i| {
        let mean_hours = 40f64.powf(f64::from(i % 20) / 19.0);
        match i % 4 {
            3 => update_logs::newsroom(100 + i % 150, 1.0 + f64::from(i % 9), u64::from(i)),
            _ => update_logs::poisson(120 + 13 * (i % 30), mean_hours, u64::from(i)),
        }
    })
}

/// Of recall and of freshness: how many forecasts covered what came, and how many there were. Of each source the first
/// part is known; polls learned from it then meet as many versions as the forecast was measured on.
#[must_use]
pub fn forecasts(sources: impl Iterator<Item = History>) -> [(usize, usize); 2] {
    let options = Options { period: Some(Period::Day), polls: 4, curve_polls: 1, ..Options::default() };
    let mut covered = [(0, 0); 2];
    for source in sources {
        let updates = source.updates() as f64;
        // The held-out part of what is known is then as long as what is to come.
        let known = count(updates / (1.0 + options.holdout)) as f64;
        let (past, future) = source.split(1.0 - known / updates);
        let planned = plan(&past, &options).expect("the options are fine");
        let schedule = &planned.schedule;
        let came = Judge::new(&future).expected(&options.calendar, schedule.period, &schedule.poll_times);
        let forecast = &planned.held_out;
        let found = [(forecast.recall_forecast, came.recall), (forecast.freshness_forecast, came.freshness)];
        for (sum, (interval, came)) in covered.iter_mut().zip(found) {
            if let (Some((low, high)), Some(came)) = (interval, came) {
                sum.0 += usize::from(low - 1e-9 <= came && came <= high + 1e-9);
                sum.1 += 1;
            }
        }
    }
    covered
}
