//! What those who build ratoon need besides the program: things to test it with and things to measure it by. No
//! user's night depends on any of it.
//!
//! | module | what it is | command |
//! | --- | --- | --- |
//! | `synth` | an evolving site with known truth, of any size | `ratoon synth` |
//! | `archives` | small archives of every layout, and a fuzzer that damages them | `ratoon fuzz archive-…` |
//! | `parsers` | a fuzzer of everything else that reads what others wrote | `ratoon fuzz parse-…` |
//! | `recycling` | a fuzzer of the invariant: recycled pages equal pages from scratch | `ratoon fuzz …` |
//! | `shapes` | changes that keep the form of JSON and of text, for both | |
//! | `worker` | a worker of our own with a settable price per byte | `ratoon bench-worker` |
//! | `coverage` | how often stated intervals cover what comes | benchmarks and tests only |
//! | `update_logs` | update logs with known habits | benchmarks and tests only |
//!
//! It is compiled with the feature `lab`, which is on by default, and for unit tests. It may use everything below
//! `cli`; nothing but `cli` and tests may use it. What both it and the core need, such as the random generator
//! (`model::rng`), belongs to the core.

pub(crate) mod archives;
pub(crate) mod coverage;
pub(crate) mod parsers;
pub(crate) mod recycling;
pub(crate) mod shapes;
pub(crate) mod synth;
pub(crate) mod update_logs;
pub(crate) mod worker;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What all threads of this process have worked so far. Other programs on the machine do not count.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
