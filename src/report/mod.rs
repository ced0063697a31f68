//! Everything that is rendered: for people as text on a terminal, HTML and SVG, for programs as JSON, crontab and units
//! of systemd.
//!
//! A function here takes typed values and gives text or a JSON value; nothing is read, decided or printed. Records that
//! exist only to be shown are declared here and filled by whoever looks them up ([`crate::look`], [`crate::stages`]).
//! Text of crawled pages is hostile: it goes into a file only in the quoting of that file's format.

pub mod checks;
pub mod difference;
pub mod inspection;
pub mod plan;
pub mod run;
pub mod schedules;
pub mod schema;
pub mod status;
pub mod terminal;
pub mod upkeep;
pub mod versions;
