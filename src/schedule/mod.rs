//! Polling schedules: when to look at a source, learned from when it changed.
//!
//! ```text
//! log, UrlState ──history──► History ──pattern──► Pattern ──gaps──► costs ──optimal, uniform, theoretical──► slots
//!                               │                                                                             │
//!                            assess (evaluate) ◄── held-out part                                          source, fleet
//!                                                                                                             │
//!                                                                    figure, simulate ◄──────── SourcePlan
//! ```
//! Start at [`source::plan`] for one source, at [`fleet`] for a budget over many. Which method: `optimal` is exact for
//! the objective and never needs more polls than the others for the same history; `uniform` where nothing is to be
//! learned (it is what the automatic period falls back to); `theoretical` is the paper's, `poisson` the rate-only
//! baseline, both for comparison. All of it is computed in memory from what it is given.

pub mod assess;
pub mod evaluate;
pub mod figure;
pub mod fit;
pub mod fleet;
pub mod gaps;
pub mod history;
pub mod log;
pub mod objective;
pub mod optimal;
#[cfg(test)]
mod optimal_tests;
pub mod options;
pub mod pattern;
pub mod period_choice;
pub mod poll_command;
pub mod signal;
pub mod simulate;
pub mod source;
#[cfg(test)]
mod source_tests;
pub mod theoretical;
pub mod uniform;

pub use assess::Quality;
pub use evaluate::Metrics;
pub use history::{History, Sequence, SourceBy};
pub use objective::{BadObjective, Objective};
pub use options::{FitOn, Options, OptionsError};
pub use pattern::Smoothing;
pub use poll_command::{PollCommand, PollCommandError};
pub use source::{CurvePoint, Schedule, SourcePlan, plan, plan_share};
