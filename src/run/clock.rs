//! Clocks for measuring what work costs.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// What is waited for: this thread's own work, which other programs on the machine do not disturb, or somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    Own,
    Wall,
}

/// Time since it was started.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stopwatch {
    Own(f64),
    Wall(Instant),
}

impl Stopwatch {
    pub(crate) fn start(clock: Clock) -> Self {
        match clock {
            Clock::Own => Self::Own(thread_seconds()),
            Clock::Wall => Self::Wall(Instant::now()),
        }
    }

    pub(crate) fn seconds(self) -> f64 {
        match self {
            Self::Own(start) => thread_seconds() - start,
            Self::Wall(start) => start.elapsed().as_secs_f64(),
        }
    }
}

fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    #[expect(clippy::cast_precision_loss, reason = "seconds of one thread")]
    let seconds = time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9;
    seconds
}
