//! A pipeline file and what it asks for: [`config`] reads it, [`runner`] does what is not yet done, [`progress`]
//! shows how far it is.

pub mod config;
pub mod progress;
pub mod runner;
pub mod schedule;
mod watch;
