//! Schedules handed over to cron and systemd: files that are written when they are asked for.
//!
//! Both read all they are given whenever it changes, and cron takes no more than [`MOST_LINES`]. They serve up to
//! [`MOST_SOURCES`] sources; what of a larger fleet is to be fetched, `ratoon due` tells.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::report::schedules::crontab::{CronClock, LONGEST_COMMAND, MOST_LINES, crontab, too_long};
use crate::report::schedules::timers::systemd;
use crate::schedule::{PollCommand, Schedule};
use crate::store::files;

/// Up to so many sources cron and systemd make sense.
pub(crate) const MOST_SOURCES: usize = 1_000;

/// Sources that are named where some are left out.
const NAMED: usize = 5;

/// A crontab, unless cron would refuse it. What it leaves out is named on standard error.
pub(crate) fn crontab_text(schedules: &[Schedule], command: &PollCommand, clock: &CronClock) -> Result<String> {
    let sources = schedules.len();
    ensure!(
        sources <= MOST_SOURCES,
        "no crontab for {sources} sources: cron is made for {MOST_SOURCES} or so; `ratoon due` tells what to fetch now"
    );
    let text = crontab(schedules, command, clock);
    let lines = text.lines().count();
    ensure!(
        lines <= MOST_LINES,
        "no crontab for {sources} sources: it would have {lines} lines, and cron refuses more than {MOST_LINES}; `ratoon \
         due` tells what to fetch now"
    );
    let left_out = too_long(schedules, command);
    for source in left_out.iter().take(NAMED) {
        log::warn!(
            "left out of the crontab, since cron takes no command of more than {LONGEST_COMMAND} bytes: {source}"
        );
    }
    if left_out.len() > NAMED {
        log::warn!("left out of the crontab: {} more like these", left_out.len() - NAMED);
    }
    Ok(text)
}

/// Writes the units of systemd to a folder.
pub(crate) fn write_timers(dir: &Path, schedules: &[Schedule], command: &PollCommand) -> Result<()> {
    let sources = schedules.len();
    ensure!(
        sources <= MOST_SOURCES,
        "no timers for {sources} sources: systemd keeps two units of each in memory, so that {MOST_SOURCES} are the most; \
         `ratoon due` tells what to fetch now"
    );
    files::make_dir(dir)?;
    for unit in systemd(schedules, command) {
        files::write(&dir.join(unit.name), unit.text.as_bytes())?;
    }
    Ok(())
}
