//! Update logs with known habits, for figures, benchmarks and tests. Seeded, so that each is always the same.

use std::fmt::Write as _;

use crate::model::closed_set::closed_set;
use crate::model::{Rng, Timestamp};
use crate::schedule::History;
use crate::schedule::history::Sequence;
use crate::stats::Update;
use crate::stats::whole::whole;

/// Uniform in (0, 1).
pub fn uniform(rng: &mut Rng) -> f64 {
    // Half a step above the numbers of `[0, 1)`.
    const HALF: f64 = 0.5 / 9_007_199_254_740_992.0;
    rng.unit() + HALF
}

/// Exponential with mean 1.
fn exponential(rng: &mut Rng) -> f64 {
    -uniform(rng).ln()
}

/// 2024-01-01, a Monday.
const START_S: f64 = 1_704_067_200.0;

fn history(name: &str, seconds: &[f64]) -> History {
    let moments: Vec<Timestamp> = seconds.iter().map(|s| Timestamp(whole((START_S + s) * 1e6))).collect();
    History::of_moments(name, &moments)
}

/// Like the paper's air traffic messages: about two an hour, near :05 and :15.
#[must_use]
pub fn datis_like(hours: u32, seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let mut times = Vec::new();
    for hour in 0..hours {
        for minute in [4.0, 14.0] {
            times.push(f64::from(hour) * 3_600.0 + (minute + 1.5 * uniform(&mut rng)) * 60.0);
        }
    }
    history("d-atis-like", &times)
}

/// The paper's second example: {:00, :05, :10, :15}, with up to half a minute of jitter.
#[must_use]
pub fn quarter_bursts(hours: u32, seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let mut times = Vec::new();
    for hour in 0..hours {
        for minute in [0.0, 5.0, 10.0, 15.0] {
            times.push(f64::from(hour) * 3_600.0 + (minute + 0.5 * uniform(&mut rng)) * 60.0);
        }
    }
    history("quarter-bursts", &times)
}

/// By chance alone, so many hours apart on average.
#[must_use]
pub fn poisson(updates: u32, mean_hours: f64, seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let mut time = 0.0;
    let times = (0..updates).map(|_| {
        time += exponential(&mut rng) * mean_hours * 3_600.0;
        time
    });
    history("poisson", &times.collect::<Vec<_>>())
}

/// Working hours: on weekdays several updates between 8 and 18 o'clock, some of them in bursts, few at other times.
#[must_use]
pub fn newsroom(days: u32, a_day: f64, seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let mut times = Vec::new();
    for day in 0..days {
        let busy = day % 7 < 5;
        let mut hour = if busy { 8.0 + uniform(&mut rng) } else { 24.0 * uniform(&mut rng) };
        while hour < 18.0 {
            times.push((f64::from(day) * 24.0 + hour) * 3_600.0);
            // One in four comes within minutes.
            hour += if uniform(&mut rng) < 0.25 {
                0.1 * exponential(&mut rng)
            } else {
                10.0 / a_day * exponential(&mut rng)
            };
            if !busy {
                hour += 12.0;
            }
        }
    }
    history("newsroom", &times)
}

/// Like the paper's page of new movies: once a week, mostly on Thursday between 9 and 17 o'clock, else on the day before or
/// after.
#[must_use]
pub(crate) fn hollywood_like(weeks: u32, seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let time = |week: u32| {
        let day = match uniform(&mut rng) {
            x if x < 0.85 => 3.0,
            x if x < 0.93 => 2.0,
            _ => 4.0,
        };
        ((f64::from(week) * 7.0 + day) * 24.0 + 9.0 + 8.0 * uniform(&mut rng)) * 3_600.0
    };
    history("hollywood-like", &(0..weeks).map(time).collect::<Vec<_>>())
}

/// How many times sooner a breaking story is followed up.
pub(crate) const BREAKING: f64 = 8.0;

/// Like the paper's news page: a headline every hour or so, fewer at night. One in forty breaks a story; until it is over,
/// which one in twenty headlines says, the next come [`BREAKING`] times as fast. `signal` says whether a story is breaking.
#[must_use]
pub fn cnn_like(days: u32, seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let (mut hour, mut breaking, mut updates) = (0.0, false, Vec::new());
    while hour < f64::from(days) * 24.0 {
        let awake = (6.0..23.0).contains(&(hour % 24.0));
        breaking = if breaking { uniform(&mut rng) > 0.05 } else { uniform(&mut rng) < 0.025 };
        let moment = Timestamp(whole((START_S + hour * 3_600.0) * 1e6));
        updates.push(Update { signal: Some(breaking), ..Update::at(moment) });
        let a_day = if awake { 1.0 } else { 0.35 };
        hour += exponential(&mut rng) / (a_day * if breaking { BREAKING } else { 0.8 });
    }
    History::new("cnn-like", vec![Sequence::new(updates).0])
}

/// A front page like [`cnn_like`] among pages that change by chance, every so many hours each, and never show the signal: it
/// shows as long as the front page does.
#[cfg(test)]
#[must_use]
pub(crate) fn front_page(days: u32, others: u32, mean_hours: f64, seed: u64) -> History {
    let updates = u32::try_from(whole(f64::from(days) * 24.0 / mean_hours)).unwrap_or(0);
    let quiet = (0..others).map(|i| {
        let mut page = poisson(updates, mean_hours, seed * 100 + u64::from(i)).sequences.remove(0);
        page.updates.iter_mut().for_each(|update| update.signal = Some(false));
        page
    });
    let front = cnn_like(days, seed).sequences.remove(0);
    History::new("front-page", std::iter::once(front).chain(quiet).collect())
}

/// A page that changes every three hours or so and, about once a day, a story that has a page of its own: twenty versions or
/// so, ten minutes each, all with the signal; then the page stays as it is.
#[cfg(test)]
#[must_use]
pub(crate) fn stories(days: u32, seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let at = |hour: f64, shows: bool| {
        let moment = Timestamp(whole((START_S + hour * 3_600.0) * 1e6));
        Update { signal: Some(shows), ..Update::at(moment) }
    };
    let end = f64::from(days) * 24.0;
    let (mut hour, mut front) = (0.0, Vec::new());
    while hour < end {
        front.push(at(hour, false));
        hour += exponential(&mut rng) * 3.0;
    }
    let (mut pages, mut hour) = (vec![front], exponential(&mut rng) * 24.0);
    while hour < end {
        let mut story = Vec::new();
        while story.is_empty() || uniform(&mut rng) > 0.05 {
            story.push(at(hour, true));
            hour += exponential(&mut rng) / 6.0;
        }
        pages.push(story);
        hour += exponential(&mut rng) * 24.0;
    }
    History::new("stories", pages.into_iter().map(|updates| Sequence::new(updates).0).collect())
}

closed_set! {
    /// A log with a known rhythm.
    pub(crate) enum LogKind: "log" {
        /// Two updates an hour, near :05 and :15.
        Datis = "datis",
        /// One a week, mostly on Thursday.
        Hollywood = "hollywood",
        /// About one an hour, fewer at night, many while a story is breaking.
        Cnn = "cnn",
        /// By chance alone.
        Poisson = "poisson",
    }
}

impl LogKind {
    /// Days that tell enough of the rhythm.
    #[must_use]
    pub(crate) fn days(self) -> u32 {
        match self {
            Self::Datis => 60,
            Self::Hollywood => 3 * 364,
            Self::Cnn => 180,
            Self::Poisson => 365,
        }
    }

    /// The updates of one source. Of several that change by chance each has its own rate, which its name tells.
    #[must_use]
    pub(crate) fn source(self, number: u32, days: u32, seed: u64) -> History {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(u64::from(number));
        let history = match self {
            Self::Datis => datis_like(24 * days, seed),
            Self::Hollywood => hollywood_like(days.div_ceil(7), seed),
            Self::Cnn => cnn_like(days, seed),
            Self::Poisson => {
                let hours = [6, 24, 2, 72, 12, 1, 168][number as usize % 7];
                let history = poisson((24 * days).div_ceil(hours), f64::from(hours), seed);
                return History { source: format!("poisson-{hours}h-{}", number + 1), ..history };
            }
        };
        History { source: format!("{self}-{}", number + 1), ..history }
    }
}

/// Sources of all kinds, to compare methods on.
#[must_use]
pub(crate) fn fleet() -> Vec<History> {
    let of_kind = |kind: LogKind, sources: u32, days: u32| (0..sources).map(move |i| kind.source(i, days, 1));
    of_kind(LogKind::Datis, 3, 60)
        .chain(of_kind(LogKind::Hollywood, 4, 728))
        .chain(of_kind(LogKind::Cnn, 5, 90))
        .chain(of_kind(LogKind::Poisson, 14, 365))
        .collect()
}

/// A log as CSV, with the column `signal` where updates have one.
#[must_use]
pub(crate) fn csv(histories: &[History]) -> String {
    let updates = || histories.iter().flat_map(|history| history.sequences.iter().flat_map(|s| &s.updates));
    let signal = updates().any(|update| update.signal.is_some());
    let mut text = String::from(if signal { "source,updated_at,signal\n" } else { "source,updated_at\n" });
    for history in histories {
        for update in history.sequences.iter().flat_map(|sequence| &sequence.updates) {
            let _ = write!(text, "{},{}", history.source, update.central());
            let _ = match update.signal.filter(|_| signal) {
                Some(shows) => writeln!(text, ",{shows}"),
                None => writeln!(text, "{}", if signal { "," } else { "" }),
            };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::log::read;
    use crate::stats::Calendar;

    #[test]
    fn logs_read_as_they_are_written() {
        for kind in LogKind::ALL {
            let histories: Vec<History> = (0..2).map(|i| kind.source(i, 28, 5)).collect();
            let text = csv(&histories);
            let log = read(text.as_bytes(), &Calendar::utc()).unwrap();
            assert!(log.bad.is_empty() && log.out_of_order == 0 && log.histories.len() == 2, "{kind}");
            assert_eq!(log.rows, histories.iter().map(History::updates).sum::<usize>(), "{kind}");
            let signals = |histories: &[History]| -> Vec<Option<bool>> {
                histories.iter().flat_map(|h| h.sequences[0].updates.iter().map(|u| u.signal)).collect()
            };
            assert_eq!(signals(&log.histories), signals(&histories), "{kind}");
            assert_eq!(
                csv(&(0..2).map(|i| kind.source(i, 28, 5)).collect::<Vec<_>>()),
                text,
                "the same seed, the same log"
            );
            assert_ne!(csv(&[kind.source(0, 28, 6)]), csv(&[kind.source(0, 28, 5)]));
        }
    }
}
