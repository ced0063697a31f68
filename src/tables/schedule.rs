//! Tables that `schedule` writes.

use serde::{Deserialize, Serialize};

use crate::model::{Method, Period, Timestamp};
use crate::tables::record::{Table, record, view};

record! {
    /// When to poll a source, and what that is worth.
    #[derive(Serialize, Deserialize)]
    pub struct ScheduleRow {
        source: String = "what is polled: a URL, a host, or URLs grouped by a pattern",
        period: Period = "what the schedule repeats over: hour, day, week or month",
        time_zone: String = "zone of the poll times",
        polls: i64 = "polls in a period",
        poll_times: Vec<i64> = "seconds from the period's start by the wall clock of time_zone; weeks start on Monday 00:00",
        method: Method = "how the times were found: optimal, uniform, theoretical, poisson, freshness-optimal or adaptive; gone: the source has no page any more and left the schedule",
        objective: String = "weights of recall, freshness, delay and staleness that they were chosen for",
        updates: i64 = "updates of the source that it was learned from: all that are known up to 255, of more at least 15 in 16, and of those the newest 2,048",
        test_updates: i64 = "of these, the last ones, which the figures below are measured on and the schedule behind them has not seen",
        versions: i64 = "held-out versions that could be captured",
        recall: Option<f64> = "share of the held-out versions that would have been captured; an expectation where only intervals are known",
        recall_low: Option<f64> = "where only intervals are known: recall is at least this",
        recall_high: Option<f64> = "and at most this",
        freshness: Option<f64> = "share of the held-out time in which the copy is current",
        freshness_low: Option<f64> = "where only intervals are known: freshness is at least this",
        freshness_high: Option<f64> = "and at most this",
        forecast_recall_low: Option<f64> = "95 % of stretches with as many versions as the held-out one have a recall of at least this, if the source goes on as before; NULL if the versions are too few to tell",
        forecast_recall_high: Option<f64> = "and at most this",
        forecast_freshness_low: Option<f64> = "the same of freshness: at least this",
        forecast_freshness_high: Option<f64> = "and at most this",
        age_s: Option<f64> = "mean over time of the seconds since the first unseen update, 0 while current",
        age_last_s: Option<f64> = "the same since the last update",
        delay_s: Option<f64> = "mean seconds from an update to the first poll at or after it, missed versions included",
        staleness: Option<f64> = "mean over time of 1 + 1/2 + … + 1/n where n updates are unseen",
        uniform_recall: Option<f64> = "recall of as many polls at a fixed interval, mean over its phases",
        uniform_freshness: Option<f64> = "freshness of the same",
        uniform_age_s: Option<f64> = "age of the same",
        uniform_delay_s: Option<f64> = "delay of the same",
        uniform_staleness: Option<f64> = "staleness of the same",
        uniform_best_recall: Option<f64> = "recall of a fixed interval at the phase that was best on the training part",
        recall_ceiling: Option<f64> = "recall with every slot polled",
        polls_for_90_percent: Option<i64> = "fewest polls that reach 90 % of recall_ceiling; NULL if more than the curve has",
        gone_since: Option<Timestamp> = "of a source that is gone: since when; it is looked at again every [schedule] recheck",
        signal: Option<bool> = "where the versions' signal is acted on: whether it shows now (of several pages: as notes says), so that poll_times are those while it does; NULL: it is not",
        signal_multiplier: Option<f64> = "how many times sooner a version with the signal ends than one without, if that was measured",
        other_poll_times: Option<Vec<i64>> = "the poll times that hold when the signal is the other way",
        notes: Option<String> = "what else should be known, such as that no gain over uniform polls is shown",
    }
}

impl Table for ScheduleRow {
    const NAME: &'static str = "schedules";
    const ABOUT: &'static str = "when to poll each source, with what that is worth on held-out time and what a fixed interval is; only sources that are new or whose schedule changed (all in a base), so that the newest row of a source counts";
}

view! {
    /// The source of a row. All tables of sources have it.
    pub struct SourceOnly<'a> {
        source: &'a str,
    }
}

record! {
    /// As much of a schedule as tells when its polls are.
    pub struct DueRow {
        source: String = "",
        period: Period = "",
        time_zone: String = "",
        poll_times: Vec<i64> = "",
        method: Method = "",
        gone_since: Option<Timestamp> = "",
    }
}

record! {
    /// What a schedule is worth, without its times.
    pub struct PollSummary {
        source: String = "",
        period: Period = "",
        polls: i64 = "",
        method: Method = "",
        updates: i64 = "",
        versions: i64 = "",
        recall: Option<f64> = "",
        freshness: Option<f64> = "",
        uniform_recall: Option<f64> = "",
        uniform_freshness: Option<f64> = "",
        polls_for_90_percent: Option<i64> = "",
        notes: Option<String> = "",
    }
}

record! {
    /// What one more poll brings.
    #[derive(Serialize, Deserialize)]
    pub struct RecallCurveRow {
        source: String = "source of the schedule",
        period: Period = "its period",
        polls: i64 = "number of polls in a period",
        recall: Option<f64> = "held-out recall of the best schedule with so many polls",
        freshness: Option<f64> = "its held-out freshness",
    }
}

impl Table for RecallCurveRow {
    const NAME: &'static str = "recall_curves";
    const ABOUT: &'static str = "held-out recall and freshness of each source for every number of polls; rows of the sources that have a row in schedules";
}
