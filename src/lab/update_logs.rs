//! Update logs with known habits, for figures, benchmarks and tests. Seeded, so that each is always the same.

use crate::model::{Rng, Timestamp};
use crate::schedule::History;
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
