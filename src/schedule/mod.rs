//! Polling schedules: when to look at a source, learned from when it changed.
//!
//! ```text
//! log, UrlState ──history──► History ──pattern──► Pattern ──gaps──► costs ──optimal, uniform, theoretical──► slots
//!                               │                                                                             │
//!                  assess (evaluate, …)      ◄── held-out part                                   source, fleet, hosts
//!                                                                                                             │
//!                                                                    figure, simulate ◄──────── SourcePlan
//! ```
//! Start at [`source::plan`] for one source, at [`fleet`] for a budget over many, at [`hosts`] for a limit per host, at
//! [`kept`] for what spares learning again what has not changed. Which method: `optimal` is exact for
//! the objective and never needs more polls than the others for the same history; `uniform` where nothing is to be
//! learned (it is what the automatic period falls back to); `theoretical` is the paper's, `poisson` the rate-only
//! baseline, [`adaptive`] what crawlers without a history do, all for comparison; `freshness-optimal` shares a budget over
//! a very large fleet by rates alone ([`water`]). What sources count in a budget: [`weights`]. All of it is computed in memory from what it is given.

pub(crate) mod adaptive;
pub(crate) mod assess;
pub(crate) mod bounds;
pub(crate) mod compared;
pub(crate) mod evaluate;
pub(crate) mod figure;
pub(crate) mod fit;
pub(crate) mod fleet;
pub(crate) mod forecast;
pub(crate) mod gaps;
pub(crate) mod history;
pub(crate) mod hosts;
pub(crate) mod kept;
pub(crate) mod log;
pub(crate) mod objective;
pub(crate) mod optimal;
#[cfg(test)]
mod optimal_tests;
pub(crate) mod options;
pub(crate) mod pattern;
pub(crate) mod period_choice;
pub(crate) mod poll_command;
pub(crate) mod signal;
pub(crate) mod simulate;
pub(crate) mod source;
#[cfg(test)]
mod source_tests;
pub(crate) mod theoretical;
pub(crate) mod uniform;
pub(crate) mod water;
pub(crate) mod weights;

pub(crate) use evaluate::Metrics;
pub(crate) use history::{History, SourceBy};
pub use objective::Objective;
pub use options::Options;
pub(crate) use options::{FitOn, OptionsError};
pub use poll_command::PollCommand;
pub use source::Schedule;
pub(crate) use source::{CurvePoint, SourcePlan};
