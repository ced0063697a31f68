//! Update times: what the captures of a page say about when it changes.
//!
//! [`updates`] turns captures into intervals and carries a URL's state forward, [`rate`] estimates how often it
//! changes, [`phase`] when within a period, [`regularity`] whether by the clock, by chance or in bursts, and
//! [`summary`] puts it together for a source. [`calendar`] is the wall clock that phases and schedules share. Nothing
//! here reads files or clocks.

pub mod calendar;
pub mod phase;
pub mod rate;
pub mod regularity;
pub mod summary;
pub mod updates;
pub(crate) mod whole;

pub use calendar::Calendar;
pub use phase::PhaseModel;
pub use rate::Rate;
pub use regularity::{Bursts, Regularity};
pub use summary::{SourceStats, summarise};
pub use updates::{Evidence, Observation, Update, UrlState};
