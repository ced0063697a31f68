//! Update times: what the captures of a page say about when it changes.
//!
//! [`updates`] turns captures into intervals and carries a URL's state forward, [`rate`] estimates how often it
//! changes, [`phase`] when within a period, [`regularity`] whether by the clock, by chance or in bursts, and
//! [`summary`] puts it together for a source; [`presence`] says whether there is still a page, [`signal`] whether a version tells that the next update is near. [`calendar`] is the wall clock that phases and schedules share. Nothing
//! here reads files or clocks.

pub(crate) mod calendar;
pub(crate) mod phase;
pub(crate) mod presence;
pub(crate) mod rate;
pub(crate) mod regularity;
pub(crate) mod signal;
pub(crate) mod summary;
pub(crate) mod updates;
pub(crate) mod whole;

pub use calendar::Calendar;
pub(crate) use phase::PhaseModel;
pub(crate) use presence::Presence;
pub(crate) use signal::SignalRule;
pub use summary::summarise;
pub use updates::{Evidence, Observation, Update, UrlState};
