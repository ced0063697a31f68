//! All that is said of a source: one row of `update_stats`.

use serde::{Deserialize, Serialize};

use super::calendar::Calendar;
use super::phase::{PhaseModel, bins_for};
use super::rate::{Evidenced, Rate, rate};
use super::regularity::{Bursts, Regularity, bursts, regularity};
use super::updates::{Update, UrlState, seconds_between};
use crate::model::{Period, Timestamp};

const PERIODS: usize = Period::ALL.len();

/// Statistics of one source, which may be several URLs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceStats {
    pub source: String,
    pub urls: u64,
    pub captures: u64,
    pub updates: u64,
    pub first_seen: Option<Timestamp>,
    pub last_seen: Option<Timestamp>,
    /// End of the newest update's interval, or its moment.
    pub last_update: Option<Timestamp>,
    /// The rate of one URL of the source.
    pub rate: Rate,
    /// Time in which a URL is known not to have changed, in seconds, over all URLs.
    pub unchanged_s: f64,
    /// Mean time from an update to the next, seconds.
    pub mean_life_s: Option<f64>,
    pub new_text_share: Option<f64>,
    pub regularity: Option<Regularity>,
    pub bursts: Bursts,
    /// Mean seconds between captures.
    pub crawl_gap_s: Option<f64>,
    /// By hour (12 bins), day (24), week (168) and month (31), or fewer bins where captures are too far apart.
    pub phases: [PhaseModel; PERIODS],
    /// Their histograms by the clock of UTC.
    pub histograms_utc: [Vec<f64>; PERIODS],
    /// The period in which the updates concentrate most beyond chance, if any.
    pub period: Option<Period>,
    pub warnings: Vec<String>,
}

/// Statistics of the URLs of one source; phases in the calendar's time zone, their histograms also in UTC.
#[must_use]
pub fn summarise(source: &str, urls: &[&UrlState], calendar: &Calendar) -> SourceStats {
    let updates: Vec<Update> = urls.iter().flat_map(|u| u.updates.iter().copied()).collect();
    let unchanged: Vec<(Timestamp, Timestamp)> = urls.iter().flat_map(|u| u.unchanged()).collect();
    let mut gaps = Vec::new();
    for url in urls {
        // Where intervals are wide, the gaps between their middles are the crawl's, not the page's.
        let tight = url.updates.windows(2).filter(|pair| {
            let gap = seconds_between(pair[0].central(), pair[1].central());
            pair[0].width_s().max(pair[1].width_s()) <= gap / 4.0
        });
        gaps.extend(tight.map(|pair| seconds_between(pair[0].central(), pair[1].central())));
    }
    let lives: Vec<f64> = urls
        .iter()
        .flat_map(|u| u.updates.windows(2).map(|pair| seconds_between(pair[0].central(), pair[1].central())))
        .collect();
    let crawl_gap_s = mean(urls.iter().filter_map(|u| u.crawl_gap()).map(|(gap, _)| gap));
    let phases = phases(calendar, &updates, &unchanged);
    let rate = match urls {
        [one] => rate(one),
        _ => {
            let mut evidence = Evidenced::default();
            urls.iter().for_each(|u| evidence.add(u));
            evidence.fit()
        }
    };
    SourceStats {
        source: source.to_owned(),
        urls: urls.len() as u64,
        captures: urls.iter().map(|u| u.captures).sum(),
        updates: urls.iter().map(|u| u.updates_total).sum(),
        first_seen: urls.iter().filter_map(|u| u.first_seen).min(),
        last_seen: urls.iter().filter_map(|u| u.last_seen).max(),
        last_update: updates.iter().map(|u| u.exact().unwrap_or(u.before)).max(),
        rate,
        unchanged_s: unchanged.iter().map(|(from, to)| seconds_between(*from, *to)).sum(),
        mean_life_s: mean(lives.iter().copied()),
        new_text_share: mean(updates.iter().filter_map(|u| u.new_text_share)),
        regularity: regularity(&gaps),
        bursts: if gaps.len() == lives.len() { bursts(&gaps) } else { Bursts::default() },
        crawl_gap_s,
        period: concentrated(&phases),
        warnings: cron_warning(&updates, calendar).into_iter().collect(),
        histograms_utc: histograms_utc(calendar, &phases, &updates, &unchanged),
        phases,
    }
}

/// When within each period the updates come; without updates no period has bins.
fn phases(calendar: &Calendar, updates: &[Update], unchanged: &[(Timestamp, Timestamp)]) -> [PhaseModel; PERIODS] {
    // Most sources of a large corpus have not changed yet: of them there is nothing to say, and it costs nothing.
    if updates.is_empty() {
        return Period::ALL.map(PhaseModel::unknown);
    }
    let resolution = median_width(updates);
    Period::ALL.map(|period| {
        let finest = match period {
            Period::Hour => 300.0,
            Period::Day | Period::Week => 3_600.0,
            Period::Month => 86_400.0,
        };
        PhaseModel::fit(calendar, period, bins_for(period, resolution.max(finest)), updates, unchanged)
    })
}

/// The histograms in UTC, given the phases in the calendar's zone.
fn histograms_utc(
    calendar: &Calendar,
    local: &[PhaseModel; PERIODS],
    updates: &[Update],
    unchanged: &[(Timestamp, Timestamp)],
) -> [Vec<f64>; PERIODS] {
    let histograms = |phases: &[PhaseModel; PERIODS]| phases.each_ref().map(PhaseModel::histogram);
    // Without an update they are empty in every zone, and of one length.
    if calendar.is_utc() || updates.is_empty() {
        histograms(local)
    } else {
        histograms(&phases(&Calendar::utc(), updates, unchanged))
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut n, mut sum) = (0.0, 0.0);
    for value in values {
        n += 1.0;
        sum += value;
    }
    (n > 0.0).then(|| sum / n)
}

/// Median uncertainty of the updates, in seconds; 0 if most are known exactly.
#[must_use]
pub(crate) fn median_width(updates: &[Update]) -> f64 {
    let mut widths: Vec<f64> = updates.iter().map(Update::width_s).collect();
    widths.sort_by(f64::total_cmp);
    widths.get(widths.len() / 2).copied().unwrap_or(0.0)
}

/// The period whose histogram departs most from its exposure, beyond what so many updates do by chance.
fn concentrated(phases: &[PhaseModel]) -> Option<Period> {
    let excess = |model: &PhaseModel| {
        let (n, watched) = (model.updates.iter().sum::<f64>(), model.exposure_s.iter().sum::<f64>());
        let bins = model.updates.len();
        if bins < 2 || n < 10.0 || watched <= 0.0 {
            return None;
        }
        // Likelihood ratio against a flat rate; twice it is about chi squared with bins - 1 degrees of freedom.
        let ratio: f64 = (model.updates.iter().zip(&model.exposure_s))
            .filter(|(u, e)| **u > 0.0 && **e > 0.0)
            .map(|(u, e)| u * (u / (n * e / watched)).ln())
            .sum();
        let freedom = (bins - 1) as f64;
        Some((2.0 * ratio - freedom) / (2.0 * freedom).sqrt())
    };
    phases
        .iter()
        .filter_map(|model| excess(model).filter(|z| *z > 3.0).map(|z| (model.period, z)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(period, _)| period)
}

/// A crawl that always comes at the same time of day learns nothing about the hour of its changes.
fn cron_warning(updates: &[Update], calendar: &Calendar) -> Option<String> {
    // A tight interval may well end at the same time every day: then it is the page that keeps the hour.
    let intervals: Vec<&Update> = updates.iter().filter(|u| u.exact().is_none()).collect();
    if intervals.len() < 5 || median_width(updates) < 12.0 * 3_600.0 {
        return None;
    }
    let phases: Vec<f64> =
        intervals.iter().map(|u| calendar.place(Period::Day, u.before).phase as f64 / 86_400e6).collect();
    let resultant = resultant(&phases);
    (resultant > 0.95).then(|| {
        format!(
            "changes are seen at the crawler's own time of day (concentration {resultant:.2}): the hour of the updates is unknown"
        )
    })
}

/// Length of the mean vector of phases given as shares of a turn: 0 spread out, 1 all equal.
#[must_use]
pub(crate) fn resultant(phases: &[f64]) -> f64 {
    let (mut x, mut y) = (0.0, 0.0);
    for phase in phases {
        let (sin, cos) = (phase * std::f64::consts::TAU).sin_cos();
        x += cos;
        y += sin;
    }
    (x * x + y * y).sqrt() / phases.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::updates::{Evidence, Observation};
    use super::*;
    use crate::model::Digest;

    fn crawl(times: impl Iterator<Item = i64>, version: impl Fn(i64) -> i64) -> UrlState {
        let mut state = UrlState::default();
        for hour in times {
            state.observe(&Observation {
                fetched_at: Timestamp(hour * 3_600 * Timestamp::SECOND),
                evidence: Evidence::Text(Digest::of(&version(hour).to_le_bytes())),
                last_modified: None,
                new_text_share: Some(0.25),
                signal: None,
            });
        }
        state
    }

    #[test]
    fn a_daily_page_under_an_hourly_crawl() {
        // Changes every day between 06:00 and 07:00.
        let state = crawl(0..24 * 60, |hour| (hour - 7).div_euclid(24));
        let stats = summarise("u", &[&state], &Calendar::utc());
        assert_eq!((stats.captures, stats.updates), (1_440, 60));
        assert!((stats.rate.per_day - 1.0).abs() < 0.05, "{:?}", stats.rate);
        assert_eq!(stats.period, Some(Period::Day));
        assert!(stats.phases[1].histogram()[6] > 0.95);
        assert!((stats.mean_life_s.unwrap() - 86_400.0).abs() < 1.0);
        assert_eq!(stats.new_text_share, Some(0.25));
        assert_eq!(stats.regularity.unwrap().rhythm.as_str(), "regular");
        assert!((stats.unchanged_s - (1_439.0 - 60.0) * 3_600.0).abs() < 1.0);
        // An hourly crawl cannot tell minutes, and its histogram has one bin to say so.
        assert_eq!(stats.phases[0].updates.len(), 1);
        assert!(stats.warnings.is_empty(), "{:?}", stats.warnings);
    }

    #[test]
    fn a_daily_crawl_warns_about_its_own_hour() {
        let state = crawl((0..90).map(|day| day * 24 + 3), |hour| hour / 48);
        let stats = summarise("u", &[&state], &Calendar::utc());
        assert_eq!(stats.warnings.len(), 1);
        assert_eq!(stats.phases[1].updates.len(), 1);
        assert_ne!(stats.period, Some(Period::Day));
    }

    #[test]
    fn histograms_in_utc_are_those_of_a_source_in_utc() {
        let berlin = Calendar::new(jiff::tz::TimeZone::get("Europe/Berlin").unwrap());
        for changes_every in [1_000_000, 30, 24] {
            let state = crawl(0..24 * 20, |hour| (hour - 7).div_euclid(changes_every));
            let (local, utc) = (summarise("u", &[&state], &berlin), summarise("u", &[&state], &Calendar::utc()));
            assert_eq!(local.histograms_utc, utc.histograms_utc);
            assert_eq!(utc.histograms_utc, utc.phases.each_ref().map(PhaseModel::histogram));
            assert_eq!(local.histograms_utc[1] == local.phases[1].histogram(), state.updates.is_empty());
        }
    }

    #[test]
    fn no_update_is_a_row_too() {
        let state = crawl((0..30).map(|day| day * 24), |_| 0);
        let stats = summarise("u", &[&state], &Calendar::utc());
        assert_eq!((stats.updates, stats.last_update, stats.period), (0, None, None));
        assert_eq!(stats.rate.per_day, 0.0);
        assert!(stats.rate.high > 0.0);
        assert!(stats.phases.iter().all(|phase| phase.updates.is_empty() && phase.unchanged_s.is_empty()));
        let none = summarise("v", &[], &Calendar::utc());
        assert_eq!(none.captures, 0);
    }
}
