//! Does the last version's content tell that the next update is near?
//!
//! The paper leaves this open: a page with breaking news changes sooner. A signal is a yes or no about a version (much
//! new text, a regex or a mention in it). Versions with the signal end at a rate that is a multiple of the others';
//! time runs by the daily phases, so that a signal which merely falls into busy hours is not credited with them. The
//! multiplier is learned on the training part and kept only if the held-out versions are more likely with it: by more
//! than two standard errors. Then there are two timetables, one while the signal shows in what was seen last and one
//! while it does not ([`switched`]); both together cost what one does.
//!
//! A source of several URLs is polled as one, so that what counts is when any of its pages changes next, and the versions
//! are the times between such moments. Whether the signal shows meanwhile can be read in two ways ([`SignalReading`]); the one
//! that makes the training part more likely is taken. Of one URL both are the same.

use serde::{Deserialize, Serialize};

use super::history::History;
use crate::model::closed_set::closed_set;
use crate::model::{Period, Timestamp};
use crate::stats::phase::{PhaseModel, bins_for};
use crate::stats::summary::median_width;
use crate::stats::{Calendar, Update};

closed_set! {
    /// When the signal of a source of several pages shows.
    #[derive(Default)]
    pub enum SignalReading: "reading" {
        /// While the pages that changed last do, any of those that changed together. Pages that have come to rest with the
        /// signal on them count no longer.
        #[default]
        Newest = "newest",
        /// While the newest version of any page does. It holds while other pages change.
        Any = "any",
    }
}

/// What a signal is worth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    /// How many times sooner a version with the signal ends than one without.
    pub multiplier: f64,
    /// Updates a day after a version with and without it.
    pub rate_on: f64,
    pub rate_off: f64,
    /// Share of the time that shows a version with the signal.
    pub share_on: f64,
    /// Log likelihood gained per held-out version, and its standard error.
    pub gain: f64,
    pub standard_error: f64,
    /// Whether the gain exceeds twice its standard error.
    pub kept: bool,
    /// When it shows, where there are several pages.
    #[serde(default)]
    pub reading: SignalReading,
}

/// Updates of a source that came at about the same time: of one page, or of several that one poll found changed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Moment {
    time: Timestamp,
    /// Whether the signal shows from here on, read in either way; `None` if nobody looked for it.
    newest: Option<bool>,
    any: Option<bool>,
}

impl Moment {
    fn shows(&self, reading: SignalReading) -> Option<bool> {
        match reading {
            SignalReading::Newest => self.newest,
            SignalReading::Any => self.any,
        }
    }
}

/// The moments at which a source changed, ascending. Those of one URL are its updates.
fn moments(history: &History) -> Vec<Moment> {
    let pages = history.sequences.iter().enumerate();
    let mut updates: Vec<(Timestamp, usize, &Update)> = pages
        .flat_map(|(page, sequence)| sequence.updates.iter().map(move |u| (u.exact().unwrap_or(u.before), page, u)))
        .collect();
    updates.sort_by_key(|(latest, page, _)| (*latest, *page));
    let mut shows = vec![None; history.sequences.len()];
    let mut found = Vec::new();
    let mut rest = updates.as_slice();
    while let [(end, _, first), ..] = rest {
        // What has come, more likely than not, by the time when the first of them must have.
        let together = |update: &Update| update.central() < *end || update.exact() == Some(*end);
        let (now, later) = rest.split_at(rest.iter().take_while(|(.., update)| together(update)).count().max(1));
        now.iter().for_each(|(_, page, update)| shows[*page] = update.signal);
        let looked = now.iter().any(|(.., update)| update.signal.is_some());
        let newest = now.iter().any(|(.., update)| update.signal == Some(true));
        let any = shows.contains(&Some(true));
        let told = |shows: bool| looked.then_some(shows);
        found.push(Moment { time: first.central(), newest: told(newest), any: told(any) });
        rest = later;
    }
    found
}

/// Whether the signal shows in the newest versions of a source.
#[must_use]
pub(crate) fn shows_now(history: &History, reading: SignalReading) -> bool {
    moments(history).last().and_then(|moment| moment.shows(reading)) == Some(true)
}

/// A finished version: whether it showed the signal, how long it lived in days, and the same by the phases.
struct LivedVersion {
    on: bool,
    days: f64,
    phased: f64,
}

/// Fewer versions of either sort say nothing.
const LEAST_VERSIONS: u32 = 10;

/// Measures the signal that the updates carry; `None` if too few do.
#[must_use]
pub fn measure(history: &History, calendar: &Calendar, holdout: f64) -> Option<Signal> {
    let (train, test) = history.split(holdout);
    let cut = test.span()?.0;
    let all = moments(history);
    let (learned, held) = all.split_at(all.partition_point(|moment| moment.time < cut));
    let lived: Vec<_> = learned.windows(2).map(|pair| (pair[0].time, pair[1].time)).collect();
    let updates: Vec<Update> = train.sequences.iter().flat_map(|s| s.updates.iter().copied()).collect();
    let bins = bins_for(Period::Day, median_width(&updates).max(3_600.0));
    let times: Vec<Update> = learned.iter().map(|moment| Update::at(moment.time)).collect();
    let model = PhaseModel::fit(calendar, Period::Day, bins, &times, &lived);
    let mean_rate = times.len() as f64 / lived.iter().map(|(a, b)| (b.0 - a.0) as f64 / 1e6).sum::<f64>().max(1.0);
    let versions = |moments: &[Moment], reading: SignalReading| -> Vec<LivedVersion> {
        let version = |pair: &[Moment]| {
            let (from, to) = (pair[0].time, pair[1].time);
            let phased = model.between(calendar, from, to).expected / mean_rate / 86_400.0;
            Some(LivedVersion { on: pair[0].shows(reading)?, days: (to.0 - from.0) as f64 / 86_400e6, phased })
        };
        moments.windows(2).filter_map(version).collect()
    };
    let readings: &[SignalReading] =
        if history.sequences.len() > 1 { &SignalReading::ALL } else { &[SignalReading::Newest] };
    let mut best: Option<(f64, Rates, SignalReading)> = None;
    for &reading in readings {
        let versions = versions(learned, reading);
        let Some(rates) = Rates::of(&versions) else { continue };
        let gain = rates.gains(&versions).sum();
        if best.as_ref().is_none_or(|best| gain > best.0) {
            best = Some((gain, rates, reading));
        }
    }
    let (_, rates, reading) = best?;
    let gains: Vec<f64> = rates.gains(&versions(held, reading)).collect();
    if gains.len() < LEAST_VERSIONS as usize {
        return None;
    }
    let n = gains.len() as f64;
    let gain = gains.iter().sum::<f64>() / n;
    let standard_error = (gains.iter().map(|g| (g - gain).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
    Some(Signal {
        multiplier: rates.on / rates.off,
        rate_on: rates.on,
        rate_off: rates.off,
        share_on: rates.share_on,
        gain,
        standard_error,
        kept: gain > 2.0 * standard_error,
        reading,
    })
}

/// How fast versions end, in phased days: with the signal, without, and whatever they show.
struct Rates {
    on: f64,
    off: f64,
    base: f64,
    share_on: f64,
}

impl Rates {
    /// `None` if there are too few versions of either sort.
    fn of(learned: &[LivedVersion]) -> Option<Self> {
        let sums = |on: bool| {
            let of = learned.iter().filter(|v| v.on == on);
            of.fold((0.0, 0.0, 0.0), |(n, days, phased), v| (n + 1.0, days + v.days, phased + v.phased))
        };
        let (on, off) = (sums(true), sums(false));
        if f64::min(on.0, off.0) < f64::from(LEAST_VERSIONS) {
            return None;
        }
        let base = (on.0 + off.0) / (on.2 + off.2);
        // One version at the common rate is added to each, which steadies rates of few versions.
        let rate = |(n, _, phased): (f64, f64, f64)| (n + 1.0) / (phased + 1.0 / base);
        Some(Self { on: rate(on), off: rate(off), base, share_on: on.1 / (on.1 + off.1) })
    }

    /// How much more likely each version is than by the common rate, in nats.
    fn gains<'v>(&'v self, versions: &'v [LivedVersion]) -> impl Iterator<Item = f64> + 'v {
        versions.iter().map(|version| {
            let rate = if version.on { self.on } else { self.off };
            (rate / self.base).ln() - (rate - self.base) * version.phased
        })
    }
}

/// An update of one of a source's pages, and whether its version shows the signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PageUpdate {
    pub at: i64,
    pub page: usize,
    pub shows: bool,
}

/// The polls that are made by two timetables: after each poll that of what it saw. A poll looks at all pages; those that have
/// changed since the poll before are the newest, whichever changed last. `on` and `off` are all polls of either, ascending,
/// and so are `updates`.
#[must_use]
pub(crate) fn switched(on: &[i64], off: &[i64], updates: &[PageUpdate], reading: SignalReading) -> Vec<i64> {
    let pages = updates.iter().map(|update| update.page + 1).max().unwrap_or(0);
    let mut seen = vec![false; pages];
    let (mut polls, mut shows, mut rest) = (Vec::new(), false, updates);
    let mut at = i64::MIN;
    loop {
        let timetable = if shows { on } else { off };
        let Some(next) = timetable.get(timetable.partition_point(|poll| *poll <= at)) else { return polls };
        at = *next;
        polls.push(at);
        let (news, later) = rest.split_at(rest.partition_point(|update| update.at <= at));
        rest = later;
        if news.is_empty() {
            continue;
        }
        news.iter().for_each(|update| seen[update.page] = update.shows);
        shows = match reading {
            SignalReading::Newest => news.iter().any(|update| seen[update.page]),
            SignalReading::Any => seen.contains(&true),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::Sequence;
    use super::*;
    use crate::stats::whole::whole;

    fn source(multiplier: f64, informative: bool) -> History {
        let mut state = 5u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        };
        let (mut time, mut updates) = (0.0, Vec::new());
        for _ in 0..1_500 {
            let on = random() < 0.3;
            updates.push(Update { signal: Some(on), ..Update::at(Timestamp(whole(time * 86_400e6))) });
            let rate = if on && informative { multiplier } else { 1.0 };
            time += -random().ln() / rate;
        }
        History::new("s", vec![Sequence::new(updates).0])
    }

    #[test]
    fn a_telling_signal_is_kept_and_measured() {
        let signal = measure(&source(4.0, true), &Calendar::utc(), 0.3).unwrap();
        assert!(signal.kept, "{signal:?}");
        assert!((3.0..5.0).contains(&signal.multiplier), "{signal:?}");
    }

    #[test]
    fn timetables_switch_with_what_polls_see() {
        // Every 10 while quiet, every 2 while the signal shows, which it does from 15 to 31.
        let (on, off): (Vec<i64>, Vec<i64>) = ((0..30).map(|i| 2 * i).collect(), (0..6).map(|i| 10 * i).collect());
        let page = |page: usize, at: i64, shows: bool| PageUpdate { at, page, shows };
        let one = [page(0, 3, false), page(0, 15, true), page(0, 31, false)];
        for reading in SignalReading::ALL {
            assert_eq!(switched(&on, &off, &one, reading), [0, 10, 20, 22, 24, 26, 28, 30, 32, 40, 50]);
            assert_eq!(switched(&on, &off, &[], reading), off);
        }
        // Another page changes while the first one goes on to show it, and once together with it.
        let two = [page(0, 15, true), page(1, 19, false), page(1, 23, false), page(0, 31, false)];
        let (newest, any) = (SignalReading::Newest, SignalReading::Any);
        assert_eq!(switched(&on, &off, &two, newest), [0, 10, 20, 22, 24, 30, 40, 50]);
        assert_eq!(switched(&on, &off, &two, any), [0, 10, 20, 22, 24, 26, 28, 30, 32, 40, 50]);
    }

    #[test]
    fn an_idle_signal_is_dropped() {
        let signal = measure(&source(4.0, false), &Calendar::utc(), 0.3).unwrap();
        assert!(!signal.kept, "{signal:?}");
        let none = History::of_moments("s", &[Timestamp(0), Timestamp(1)]);
        assert_eq!(measure(&none, &Calendar::utc(), 0.3), None);
    }

    #[test]
    fn what_one_poll_finds_is_one_moment() {
        let at = |hours: i64| Timestamp(hours * 3_600 * Timestamp::SECOND);
        let found =
            |from: i64, to: i64, shows: bool| Update { signal: Some(shows), ..Update::within(at(from), at(to)) };
        // A crawl every ten hours that takes two: the first page at its beginning, the other ones later.
        let pages = [
            vec![found(0, 10, true), found(20, 30, false)],
            vec![found(1, 11, false), found(11, 21, false), found(21, 31, false)],
            vec![found(12, 22, true)],
        ];
        let history = History::new("s", pages.map(|updates| Sequence::new(updates).0).to_vec());
        let shown: Vec<_> = moments(&history).iter().map(|m| (m.time, m.newest, m.any)).collect();
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(shown, [(at(5), yes, yes), (at(16), yes, yes), (at(25), no, yes)]);
        assert!(!shows_now(&history, SignalReading::Newest) && shows_now(&history, SignalReading::Any));
        // Of one page every update is a moment of its own.
        let one = History::new("s", vec![history.sequences[1].clone()]);
        assert_eq!(moments(&one).iter().map(|m| m.time).collect::<Vec<_>>(), [at(6), at(16), at(26)]);
    }
}
