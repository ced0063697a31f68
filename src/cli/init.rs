//! `ratoon init`: a pipeline file to start from.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;

use super::outcome::{Outcome, Usage};
use super::{Options, output};
use crate::archive::Layout;

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Where to write it
    #[arg(default_value = "pipeline.toml")]
    file: PathBuf,
    /// Folder of snapshot folders, relative to the file
    #[arg(long, value_name = "DIR", default_value = "snapshots")]
    snapshots: String,
    /// Folder for the tables, relative to the file
    #[arg(long, value_name = "DIR", default_value = "store")]
    store: String,
}

/// The commented template; a test holds it to what the program reads.
fn template(snapshots: &str, store: &str) -> String {
    let layouts = Layout::names();
    format!(
        r#"# A ratoon pipeline: `ratoon run` with this file does whatever is not yet done.
# Paths are relative to this file.

[corpus]
# A folder of snapshots, one per crawl: folders named 2024-03-01, 2024-03-02T03-00, 20240303 …, or archive files
# such as 2024-03-01.warc.gz
snapshots = {snapshots}
# Where the tables go. Everything a run writes lies below it.
store = {store}
# How a snapshot folder holds its captures: auto looks. Or {layouts}.
layout = "auto"
# full: a URL that was not captured is gone. partial: it is as it was.
coverage = "full"
# Treat http and https addresses of a page as one.
equate_schemes = false
# Regexes for what changes without meaning anything (clocks, counters): masked when pages are
# compared, never in the text that is stored.
ignore = []
# More rejects than this share of the captures: exit code 3.
max_reject_share = 0.01
# Of snapshot names that state no zone, and of poll times.
time_zone = "UTC"

# What to find. Uncomment, or write your own; kinds are regex, dictionary, record and command.
# [[extractor]]
# name = "person"
# kind = "regex"
# pattern = '(?P<first>[A-Z][a-z]{{1,15}}) (?P<last>[A-Z][a-z]{{1,20}})'
#
# [[extractor]]
# name = "topic"
# kind = "dictionary"
# terms = "topics.txt"          # one a line
# whole_word = true

# Deltas between snapshots need no settings. A query finds pages by how they hang together, night by night; a
# watch tells of what came, went or changed.
# [[query]]
# name = "people"
# nodes.d = {{ title = "department*" }}
# links = ["d -{{1,2}}-> p [label = 'people*']"]
#
# [[watch]]
# name = "new-topic"
# on = {{ pages = "http://www.example.org/*", new_text = 'some (?i:pattern)' }}
# command = ["notify"]          # optional: gets each alert as JSON on its standard input

# How old text is found: auto weighs what each way costs against what it saves, from what earlier nights measured
# (`ratoon plan FILE --explain` shows it). Or force one: none, edges, diff, suffix-tree, anchor.
[plan]
choose = "auto"
# k = 3                 # nights whose measurements count
# sample = 30           # changed pages on which every way is tried each night, at most
# share = 0.01          # of the night, what choosing may take

# When to poll each source, learned from when it changed: tables schedules and recall_curves, and
# schedule.crontab, schedule.json and schedule.timers in the store. What is commented out is the default.
[schedule]
# What is polled: "url", "host", or a regex whose first group names the source of a URL.
by = "url"
# Polls for each source: in a period, or a day if the period is "auto". Or budget = 10000 over all sources.
polls = 4
# hour, day, week, month; auto: by cross-validation, and even polls where no gain is shown.
period = "auto"
# Width of a slot, and the least time between two polls of a source.
grain = "5m"
min_gap = "10m"
objective = {{ recall = 1.0, freshness = 0.3, delay = 0.0 }}
# What cron and systemd run.
command = "fetch {{url}}"
# host_limit = 1        # polls that one host gets in a slot
# holdout = 0.3         # share of the updates, the last ones, that schedules are judged on
# method = "optimal"    # uniform, theoretical, poisson
"#,
        snapshots = toml::Value::from(snapshots),
        store = toml::Value::from(store),
    )
}

pub(super) fn init(args: &InitArgs, options: &Options) -> anyhow::Result<Outcome> {
    if args.file.exists() && !options.force {
        bail!(Usage(format!("{} is there already; --force overwrites it", args.file.display())));
    }
    let text = template(&args.snapshots, &args.store);
    if options.dry_run {
        return output::text(&text);
    }
    crate::store::files::write(&args.file, text.as_bytes())
        .with_context(|| format!("cannot write {}", args.file.display()))?;
    if options.json {
        return output::json(&serde_json::json!({ "file": args.file }));
    }
    output::text(&format!("wrote {0}; next: ratoon run {0}\n", args.file.display()))
}

#[cfg(test)]
mod tests {
    use crate::config::Pipeline;

    #[test]
    fn the_template_is_a_pipeline() {
        let text = super::template("a \"b\"", "c");
        let pipeline = Pipeline::parse(std::path::Path::new("p.toml"), &text).unwrap();
        assert_eq!(pipeline.corpus.snapshots, std::path::Path::new("a \"b\""));
    }
}
