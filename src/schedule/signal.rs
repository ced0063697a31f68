//! Does the last version's content tell that the next update is near?
//!
//! The paper leaves this open: a page with breaking news changes sooner. A signal is a yes or no about a version (much
//! new text, a regex or a mention in it). Versions with the signal end at a rate that is a multiple of the others';
//! time runs by the daily phases, so that a signal which merely falls into busy hours is not credited with them. The
//! multiplier is learned on the training part and kept only if the held-out versions are more likely with it: by more
//! than two standard errors. Then there are two timetables, one while the last version that was seen shows the signal and one
//! while it does not ([`switched`]); both together cost what one does.

use serde::{Deserialize, Serialize};

use super::history::{History, Sequence};
use crate::model::Period;
use crate::stats::phase::{PhaseModel, bins_for};
use crate::stats::summary::median_width;
use crate::stats::{Calendar, Update};

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
    let updates: Vec<Update> = train.sequences.iter().flat_map(|s| s.updates.iter().copied()).collect();
    let lived: Vec<_> =
        (train.sequences.iter()).flat_map(|s| s.updates.windows(2).map(|p| (p[0].central(), p[1].central()))).collect();
    let bins = bins_for(Period::Day, median_width(&updates).max(3_600.0));
    let moments: Vec<Update> = updates.iter().map(|u| Update::at(u.central())).collect();
    let model = PhaseModel::fit(calendar, Period::Day, bins, &moments, &lived);
    let mean_rate = updates.len() as f64 / lived.iter().map(|(a, b)| (b.0 - a.0) as f64 / 1e6).sum::<f64>().max(1.0);
    let versions = |sequences: &[Sequence]| -> Vec<LivedVersion> {
        let pairs = sequences.iter().flat_map(|s| s.updates.windows(2));
        pairs
            .filter_map(|pair| {
                let (from, to) = (pair[0].central(), pair[1].central());
                let phased = model.between(calendar, from, to).expected / mean_rate / 86_400.0;
                Some(LivedVersion { on: pair[0].signal?, days: (to.0 - from.0) as f64 / 86_400e6, phased })
            })
            .collect()
    };
    let (learned, held) = (versions(&train.sequences), versions(&test.sequences));
    let sums = |on: bool| {
        let of = learned.iter().filter(|v| v.on == on);
        of.fold((0.0, 0.0, 0.0), |(n, days, phased), v| (n + 1.0, days + v.days, phased + v.phased))
    };
    let (on, off) = (sums(true), sums(false));
    if f64::min(on.0, off.0).min(held.len() as f64) < f64::from(LEAST_VERSIONS) {
        return None;
    }
    let base = (on.0 + off.0) / (on.2 + off.2);
    // One version at the common rate is added to each, which steadies rates of few versions.
    let rate = |(n, _, phased): (f64, f64, f64)| (n + 1.0) / (phased + 1.0 / base);
    let (rate_on, rate_off) = (rate(on), rate(off));
    let gains: Vec<f64> = held
        .iter()
        .map(|v| {
            let rate = if v.on { rate_on } else { rate_off };
            (rate / base).ln() - (rate - base) * v.phased
        })
        .collect();
    let n = gains.len() as f64;
    let gain = gains.iter().sum::<f64>() / n;
    let standard_error = (gains.iter().map(|g| (g - gain).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
    Some(Signal {
        multiplier: rate_on / rate_off,
        rate_on,
        rate_off,
        share_on: on.1 / (on.1 + off.1),
        gain,
        standard_error,
        kept: gain > 2.0 * standard_error,
    })
}

/// The polls that are made by two timetables: after each poll that of the version it saw. `on` and `off` are all polls of
/// either, ascending; `updates` ascending, each with whether its version shows the signal.
#[must_use]
pub(crate) fn switched(on: &[i64], off: &[i64], updates: &[(i64, bool)]) -> Vec<i64> {
    let (mut polls, mut shows, mut seen) = (Vec::new(), false, 0);
    let mut at = i64::MIN;
    loop {
        let timetable = if shows { on } else { off };
        let Some(next) = timetable.get(timetable.partition_point(|poll| *poll <= at)) else { return polls };
        at = *next;
        polls.push(at);
        seen += updates[seen..].partition_point(|(update, _)| *update <= at);
        if let Some((_, signal)) = seen.checked_sub(1).and_then(|last| updates.get(last)) {
            shows = *signal;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;
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
        let updates = [(3, false), (15, true), (31, false)];
        assert_eq!(switched(&on, &off, &updates), [0, 10, 20, 22, 24, 26, 28, 30, 32, 40, 50]);
        assert_eq!(switched(&on, &off, &[]), off);
    }

    #[test]
    fn an_idle_signal_is_dropped() {
        let signal = measure(&source(4.0, false), &Calendar::utc(), 0.3).unwrap();
        assert!(!signal.kept, "{signal:?}");
        let none = History::of_moments("s", &[Timestamp(0), Timestamp(1)]);
        assert_eq!(measure(&none, &Calendar::utc(), 0.3), None);
    }
}
