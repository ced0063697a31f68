//! Tables that `stats` writes.

use crate::model::{Digest, Estimator, Period, Rhythm, Timestamp, UpdatedAtSource};
use crate::tables::record::{Table, record};

record! {
    /// An observed change of a page.
    pub struct UpdateRow {
        url: String = "URL whose text changed (what the ignore rules match does not count)",
        source: String = "source it belongs to, as [schedule] by groups URLs",
        after: Timestamp = "last capture with the old text: the change came later",
        before: Timestamp = "first capture with the new text: the change came at or before it",
        updated_at: Option<Timestamp> = "when it changed; NULL if only the interval (after, before] is known",
        updated_at_source: Option<UpdatedAtSource> = "how updated_at is known: last_modified (trusted, inside the interval)",
        new_text_share: Option<f64> = "share of the text's bytes that stood nowhere on the page in the snapshot before (in pieces of 32 bytes or more), whatever the plan; of the text that the snapshot keeps, where it shows several; 1 for a page that was not there before",
        signal: Option<bool> = "whether the new version shows what [schedule] signal looks for; NULL if it looks for nothing",
    }
}

impl Table for UpdateRow {
    const NAME: &'static str = "updates";
    const ABOUT: &'static str =
        "changes of pages that the captures of the snapshot show, each by the interval it happened in";
}

record! {
    /// How a source changes.
    pub struct UpdateStatsRow {
        source: String = "what is polled: a URL, a host, or URLs grouped by a pattern",
        urls: i64 = "URLs of the source",
        captures: i64 = "good captures of them, up to this snapshot",
        updates: i64 = "updates seen",
        first_seen: Option<Timestamp> = "first good capture",
        last_seen: Option<Timestamp> = "last good capture",
        last_update: Option<Timestamp> = "newest update: its moment, or the end of its interval",
        gone_since: Option<Timestamp> = "since when no URL of the source has a page any more: 404, 410, absent from a full crawl, moved, or failing for 30 days; NULL if one has",
        rate_per_day: f64 = "estimated updates a day of one URL, those hidden between captures included",
        rate_low: f64 = "lower end of the rate's 95 % interval",
        rate_high: f64 = "upper end; infinite if every look found a change",
        rate_estimator: Estimator = "regular (Cho and Garcia-Molina), likelihood (on intervals) or none",
        period: Option<Period> = "period in which the updates concentrate most beyond chance: hour, day, week or month",
        time_zone: String = "zone of the phase columns without _utc",
        phase_hour: Vec<f64> = "share of the updates in each part of the hour; as many parts as the captures can tell apart, none without updates",
        phase_day: Vec<f64> = "the same of the day",
        phase_week: Vec<f64> = "the same of the week, from Monday 00:00",
        phase_month: Vec<f64> = "the same of the month",
        phase_hour_utc: Vec<f64> = "as phase_hour, in UTC",
        phase_day_utc: Vec<f64> = "as phase_day, in UTC",
        phase_week_utc: Vec<f64> = "as phase_week, in UTC",
        phase_month_utc: Vec<f64> = "as phase_month, in UTC",
        unchanged_s: f64 = "seconds in which a URL is known not to have changed, over all URLs",
        unchanged_hour_s: Vec<f64> = "unchanged seconds in each part of phase_hour",
        unchanged_day_s: Vec<f64> = "unchanged seconds in each part of phase_day",
        unchanged_week_s: Vec<f64> = "unchanged seconds in each part of phase_week",
        unchanged_month_s: Vec<f64> = "unchanged seconds in each part of phase_month",
        regularity: Option<Rhythm> = "regular, random (Poisson is not rejected) or bursty; NULL if too few updates tell",
        variation: Option<f64> = "standard deviation of the gaps between updates over their mean: 1 for Poisson, 0 for a clock",
        poisson_p: Option<f64> = "bound of the p-value of a Poisson process (Kolmogorov-Smirnov, Stephens)",
        bursts: i64 = "runs of updates much faster than the mean",
        burst_share: f64 = "share of the updates in one",
        mean_life_s: Option<f64> = "mean seconds from an update to the next",
        crawl_gap_s: Option<f64> = "mean seconds between captures",
        new_text_share: Option<f64> = "mean of the updates' new_text_share",
        warnings: Option<String> = "what to beware of, such as changes that sit on the crawler's own hour",
    }
}

impl Table for UpdateStatsRow {
    const NAME: &'static str = "update_stats";
    const ABOUT: &'static str = "how each source changes, from all captures up to the snapshot: rate, rhythm, phases; only sources of which the snapshot tells something new (all in a base), so that the newest row of a source counts";
}

record! {
    /// What is known of a URL's updates up to a snapshot.
    pub struct EvidenceRow {
        url: String = "URL",
        text_digest: Option<Digest> = "unmasked digest of the last good text",
        state: String = "captures, updates and trust so far, and whether it still has a page, as JSON",
    }
}

impl Table for EvidenceRow {
    const NAME: &'static str = "states/evidence";
    const ABOUT: &'static str = "written with every base: what all captures so far tell of each URL's updates";
}

record! {
    /// How often a source changes.
    pub struct RateRow {
        source: String = "",
        last_seen: Option<Timestamp> = "",
        rate_per_day: f64 = "",
        rate_high: f64 = "",
    }
}

record! {
    /// Whether an update brought the signal.
    pub struct UpdateSignal {
        url: String = "",
        before: Timestamp = "",
        signal: Option<bool> = "",
    }
}

record! {
    /// Where an update came.
    pub struct UpdateUrl {
        url: String = "",
    }
}

record! {
    /// When an update came.
    #[derive(serde::Serialize, serde::Deserialize)]
    pub struct UpdateMoment {
        after: Timestamp = "",
        before: Timestamp = "",
        updated_at: Option<Timestamp> = "",
    }
}

record! {
    /// How a source changes, without its phases.
    pub struct SourceRate {
        source: String = "",
        captures: i64 = "",
        updates: i64 = "",
        last_update: Option<Timestamp> = "",
        gone_since: Option<Timestamp> = "",
        rate_per_day: f64 = "",
        rate_low: f64 = "",
        rate_high: f64 = "",
        period: Option<Period> = "",
        regularity: Option<Rhythm> = "",
        warnings: Option<String> = "",
    }
}

record! {
    /// A source, how many updates are known of it, and whether it is gone.
    pub struct SourceUpdates {
        source: String = "",
        updates: i64 = "",
        gone_since: Option<Timestamp> = "",
    }
}

record! {
    /// The source of a row.
    pub struct SourceOnly {
        source: String = "",
    }
}
