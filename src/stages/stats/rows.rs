//! Rows of `update_stats`: what is known of the URLs of each source, summed up.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::known::KnownUrl;
use crate::config::schedule::ScheduleSettings;
use crate::model::Timestamp;
use crate::stats::{Calendar, PhaseModel, UrlState, summarise};
use crate::store::Store;
use crate::tables::stats::UpdateStatsRow;

/// Rows of sources that are one URL each.
pub(super) fn stats_of_urls<'s>(
    states: impl IntoIterator<Item = (&'s String, &'s KnownUrl)>,
    settings: &ScheduleSettings,
) -> Vec<UpdateStatsRow> {
    let states: Vec<_> = states.into_iter().collect();
    // Rows are large: there is room for all before they come.
    states.into_iter().map(|(url, known)| stats_row(url, &[known], &settings.options.calendar)).collect()
}

/// Rows of sources that are several URLs, by the shard of the source's name, then by name.
pub(super) fn stats_of_groups(
    store: &Store,
    states: &[(String, KnownUrl)],
    settings: &ScheduleSettings,
) -> BTreeMap<u32, Vec<UpdateStatsRow>> {
    let mut sources: BTreeMap<(u32, &str), Vec<(&str, &KnownUrl)>> = BTreeMap::new();
    for (url, known) in states {
        let source = settings.by.source(url);
        sources.entry((store.shard_of(source), source)).or_default().push((url, known));
    }
    let rows: Vec<(u32, UpdateStatsRow)> = sources
        .into_par_iter()
        .map(|((shard, source), mut urls)| {
            urls.sort_unstable_by_key(|(url, _)| *url);
            let states: Vec<&KnownUrl> = urls.into_iter().map(|(_, known)| known).collect();
            (shard, stats_row(source, &states, &settings.options.calendar))
        })
        .collect();
    let mut shards: BTreeMap<u32, Vec<UpdateStatsRow>> = BTreeMap::new();
    for (shard, row) in rows {
        shards.entry(shard).or_default().push(row);
    }
    shards
}

fn stats_row(source: &str, urls: &[&KnownUrl], calendar: &Calendar) -> UpdateStatsRow {
    let states: Vec<&UrlState> = urls.iter().map(|known| &known.state).collect();
    let stats = summarise(source, &states, calendar);
    // A source is gone when the last of its URLs is.
    let gone: Option<Vec<Timestamp>> = urls.iter().map(|known| known.presence.gone).collect();
    let (rate, regularity, bursts) = (stats.rate, stats.regularity, stats.bursts);
    let [hour, day, week, month] = stats.phases.each_ref().map(PhaseModel::histogram);
    let [unchanged_hour, unchanged_day, unchanged_week, unchanged_month] = stats.phases.map(|model| model.unchanged_s);
    let [hour_utc, day_utc, week_utc, month_utc] = stats.histograms_utc;
    UpdateStatsRow {
        source: source.to_owned(),
        urls: as_i64(stats.urls),
        captures: as_i64(stats.captures),
        updates: as_i64(stats.updates),
        first_seen: stats.first_seen,
        last_seen: stats.last_seen,
        last_update: stats.last_update,
        gone_since: gone.and_then(|gone| gone.into_iter().max()),
        rate_per_day: rate.per_day,
        rate_low: rate.low,
        rate_high: rate.high,
        rate_estimator: rate.estimator,
        period: stats.period,
        time_zone: calendar.name().to_owned(),
        phase_hour: hour,
        phase_day: day,
        phase_week: week,
        phase_month: month,
        phase_hour_utc: hour_utc,
        phase_day_utc: day_utc,
        phase_week_utc: week_utc,
        phase_month_utc: month_utc,
        unchanged_s: stats.unchanged_s,
        unchanged_hour_s: unchanged_hour,
        unchanged_day_s: unchanged_day,
        unchanged_week_s: unchanged_week,
        unchanged_month_s: unchanged_month,
        regularity: regularity.map(|r| r.rhythm),
        variation: regularity.map(|r| r.variation),
        poisson_p: regularity.map(|r| r.p_value),
        bursts: as_i64(bursts.bursts),
        burst_share: bursts.share,
        mean_life_s: stats.mean_life_s,
        crawl_gap_s: stats.crawl_gap_s,
        new_text_share: stats.new_text_share,
        warnings: (!stats.warnings.is_empty()).then(|| stats.warnings.join("; ")),
    }
}

fn as_i64(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
