//! `ratoon trial PIPELINE --candidate FILE`: a changed extractor beside the present one.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::outcome::{Outcome, Usage};
use super::{Options, output};
use crate::config::Pipeline;
use crate::look::open_store;
use crate::stages::extract::trial::{Trying, changed, try_candidate};
use crate::store::files;

#[derive(Debug, Args)]
pub(super) struct TrialArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// The pipeline file with the changed extractor
    #[arg(long, value_name = "FILE")]
    candidate: PathBuf,
    /// Only this extractor [default: all that differ]
    #[arg(long, value_name = "NAME")]
    extractor: Option<String>,
    /// Pages to look at
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pages: u64,
    /// What pages really have: lines of JSON with `url`, and `text` or `start` and `end`; only these pages are looked at
    #[arg(long, value_name = "FILE")]
    gold: Option<PathBuf>,
    /// What the trial may cost at most [default: the candidate's `budget`]
    #[arg(long, value_name = "X", value_parser = budget)]
    budget: Option<f64>,
    /// Chooses the pages
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn budget(written: &str) -> Result<f64, String> {
    let sound = written.parse().ok().filter(|budget: &f64| budget.is_finite() && *budget >= 0.0);
    sound.ok_or_else(|| "a budget is a number, not negative, such as 0.50".to_owned())
}

pub(super) fn trial(args: &TrialArgs, options: &Options) -> anyhow::Result<Outcome> {
    let load = || anyhow::Ok((Pipeline::load(&args.pipeline)?, Pipeline::load(&args.candidate)?));
    let (present, candidate) = load()?;
    let store = open_store(&present)?;
    let names = match &args.extractor {
        Some(name) => {
            for pipeline in [&present, &candidate] {
                let known: Vec<&str> = pipeline.extractors.iter().map(|e| e.config.name.as_str()).collect();
                if !known.contains(&name.as_str()) {
                    let (path, known) = (pipeline.path.display(), known.join(", "));
                    return Err(Usage(format!("{path} has no extractor '{name}'; there are {known}")).into());
                }
            }
            vec![name.clone()]
        }
        None => changed(&present, &candidate),
    };
    if names.is_empty() {
        let problem = "no extractor is another one in the candidate's file";
        return Err(Usage(format!("{problem}; --extractor NAME tries one that is the same")).into());
    }
    let gold = match &args.gold {
        Some(path) => Some(files::read_to_string(path).with_context(|| path.display().to_string())?),
        None => None,
    };
    let mut trials = Vec::new();
    // What one trial has spent is not there for the next.
    let mut left = args.budget;
    for name in &names {
        let trying =
            Trying { extractor: name, pages: args.pages, seed: args.seed, gold: gold.as_deref(), budget: left };
        let trial = try_candidate(load()?, &store, &trying, options.progress())?;
        let spent = trial.present.spent.unwrap_or(0.0) + trial.there.spent.unwrap_or(0.0);
        left = left.map(|left| (left - spent).max(0.0));
        trials.push(trial);
    }
    if options.json {
        return output::json(&serde_json::json!({
            "trials": trials.iter().map(crate::report::trial::Trial::json).collect::<Vec<_>>(),
        }));
    }
    let texts: Vec<String> = trials.iter().map(|trial| trial.text(options.verbose > 0)).collect();
    output::text(&texts.join("\n"))
}
