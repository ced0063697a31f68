//! Log lines on stderr, above whatever progress bar is there.

use std::io::{IsTerminal as _, Write as _};

use log::{Level, LevelFilter, Log, Metadata, Record};

use super::Options;
use crate::report::terminal::fit;
use crate::run::problems::TOLD;

struct Logger {
    colour: bool,
    quiet: bool,
    /// Lines begin with the time.
    timed: bool,
}

pub(super) fn start(options: &Options) {
    let level = match (options.quiet, options.verbose) {
        // Of warnings those that are told to whoever was not there.
        (true, _) | (false, 0) => LevelFilter::Warn,
        (false, 1) => LevelFilter::Info,
        (false, _) => LevelFilter::Debug,
    };
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colour = std::io::stderr().is_terminal() && !no_colour;
    // Fails only if there is a logger already, which is as good.
    if log::set_boxed_logger(Box::new(Logger { colour, quiet: options.quiet, timed: options.verbose > 0 })).is_ok() {
        log::set_max_level(level);
    }
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let told = metadata.level() == Level::Error || metadata.target() == TOLD;
        metadata.target().starts_with("ratoon") && (told || !self.quiet)
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let (name, colour) = match record.level() {
            Level::Error => ("error", "31"),
            Level::Warn => ("warning", "33"),
            Level::Info => ("info", "36"),
            Level::Debug | Level::Trace => ("debug", "2"),
        };
        let words = record.args().to_string();
        // They may be those of a worker, a page or a file name.
        let words = fit(&words);
        let time = if self.timed { format!("{:.3} ", jiff::Timestamp::now()) } else { String::new() };
        let line = match self.colour {
            true => format!("{time}\x1b[{colour}m{name}\x1b[0m: {words}\n"),
            false => format!("{time}{name}: {words}\n"),
        };
        // A closed stderr is no reason to stop.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }

    fn flush(&self) {}
}
