//! Everything that is rendered: for people as text on a terminal, HTML and SVG, for programs as JSON, crontab and units
//! of systemd.
//!
//! A function here takes typed values and gives text or a JSON value; nothing is read, decided or printed. Records that
//! exist only to be shown are declared here and filled by whoever looks them up ([`crate::look`], [`crate::stages`]).
//! Text of crawled pages is hostile: it goes into a file only in the quoting of that file's format.

pub(crate) mod catalog;
pub(crate) mod checks;
pub(crate) mod difference;
pub(crate) mod due;
pub(crate) mod html;
pub(crate) mod inspection;
pub(crate) mod integrity;
pub(crate) mod metrics;
pub(crate) mod overview;
pub(crate) mod pages;
pub(crate) mod plan;
pub(crate) mod rows;
pub(crate) mod run;
pub(crate) mod schedules;
pub(crate) mod schema;
pub(crate) mod sources;
pub(crate) mod status;
pub(crate) mod terminal;
pub(crate) mod triage;
pub(crate) mod trial;
pub(crate) mod tried;
pub(crate) mod upkeep;
pub(crate) mod versions;
pub(crate) mod webs;
