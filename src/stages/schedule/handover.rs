//! Schedules handed over to cron and systemd: files that are written when they are asked for.
//!
//! Both read all they are given whenever it changes, and cron takes no more than [`MOST_LINES`]. They serve up to
//! [`MOST_SOURCES`] sources well; a fleet beyond that wants a poller of its own.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::report::schedules::crontab::{CronClock, MOST_LINES, crontab};
use crate::report::schedules::timers::systemd;
use crate::schedule::{PollCommand, Schedule};
use crate::store::files;

/// Up to so many sources cron and systemd make sense.
pub(crate) const MOST_SOURCES: usize = 1_000;

const FEWER: &str = "use fewer sources, such as by host";

/// A crontab, unless cron would refuse it.
pub(crate) fn crontab_text(schedules: &[Schedule], command: &PollCommand, clock: &CronClock) -> Result<String> {
    let text = crontab(schedules, command, clock);
    let (lines, sources) = (text.lines().count(), schedules.len());
    ensure!(
        lines <= MOST_LINES,
        "no crontab for {sources} sources: it would have {lines} lines, and cron refuses more than {MOST_LINES}; {FEWER}"
    );
    if sources > MOST_SOURCES {
        log::warn!("cron is made for less than {sources} sources ({MOST_SOURCES} or so); {FEWER}");
    }
    Ok(text)
}

/// Writes the units of systemd to a folder.
pub(crate) fn write_timers(dir: &Path, schedules: &[Schedule], command: &PollCommand) -> Result<()> {
    let sources = schedules.len();
    ensure!(
        sources <= MOST_SOURCES,
        "no timers for {sources} sources: systemd keeps two units of each in memory, so that {MOST_SOURCES} are the most; \
         {FEWER}"
    );
    files::make_dir(dir)?;
    for unit in systemd(schedules, command) {
        files::write(&dir.join(unit.name), unit.text.as_bytes())?;
    }
    Ok(())
}
