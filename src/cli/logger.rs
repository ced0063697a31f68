//! Log lines on stderr, above whatever progress bar is there.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

use log::{Level, LevelFilter, Log, Metadata, Record};

use super::Options;
use crate::report::terminal::fit;
use crate::run::problems::TOLD;

struct Logger {
    colour: bool,
    quiet: bool,
    /// Lines begin with the time.
    timed: bool,
    /// The pipeline file at hand, which a store does not know.
    pipeline: Option<String>,
}

pub(super) fn start(options: &Options, pipeline: Option<PathBuf>) {
    let level = match (options.quiet, options.verbose) {
        // Of warnings those that are told to whoever was not there.
        (true, _) | (false, 0) => LevelFilter::Warn,
        (false, 1) => LevelFilter::Info,
        (false, _) => LevelFilter::Debug,
    };
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colour = std::io::stderr().is_terminal() && !no_colour;
    // Fails only if there is a logger already, which is as good.
    let pipeline = pipeline.map(|path| path.display().to_string());
    let logger = Logger { colour, quiet: options.quiet, timed: options.verbose > 0, pipeline };
    if log::set_boxed_logger(Box::new(logger)).is_ok() {
        log::set_max_level(level);
    }
}

/// Commands that mend a store, with the pipeline file at hand in the place of `PIPELINE`.
fn naming(words: &str, pipeline: Option<&str>) -> String {
    let Some(pipeline) = pipeline else { return words.to_owned() };
    ["check", "drop", "prune", "run"].iter().fold(words.to_owned(), |words, command| {
        words.replace(&format!("`ratoon {command} PIPELINE"), &format!("`ratoon {command} {pipeline}"))
    })
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
        let words = naming(&record.args().to_string(), self.pipeline.as_deref());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mends_a_store_names_the_pipeline_file() {
        let said = "damaged; `ratoon check PIPELINE` says what repairs it (`ratoon run PIPELINE --force`)";
        assert_eq!(
            naming(said, Some("a.toml")),
            "damaged; `ratoon check a.toml` says what repairs it (`ratoon run a.toml --force`)"
        );
        assert_eq!(naming(said, None), said);
        for command in ["drop", "prune"] {
            let again = |file: &str| format!("do it again (`ratoon {command} {file} --snapshot ID`)");
            assert_eq!(naming(&again("PIPELINE"), Some("a.toml")), again("a.toml"));
        }
    }
}
