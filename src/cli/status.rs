//! `ratoon status`: what is done, what is left, what is wrong.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::outcome::Outcome;
use super::{Options, output};
use crate::config::Pipeline;
use crate::look;
use crate::model::Timestamp;
use crate::model::time::{DURATION_FIX, parse_duration};

#[derive(Debug, Args)]
#[command(after_help = "Example, for monitoring: ratoon status my.toml --check --max-age 26h")]
pub(super) struct StatusArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// Only say what is not in order with the newest snapshot: exit 1 and one line if it is unfinished, has a problem that
    /// nobody accepted, or is too old
    #[arg(long)]
    check: bool,
    /// With --check: how old the newest snapshot may be, such as 26h
    #[arg(long, value_name = "AGE", requires = "check", value_parser = age)]
    max_age: Option<Duration>,
}

fn age(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| format!("no duration; {DURATION_FIX}"))
}

pub(super) fn status(args: &StatusArgs, options: &Options) -> anyhow::Result<Outcome> {
    let status = look::status::status(&Pipeline::load(&args.pipeline)?)?;
    if options.json {
        output::json(&status.json())?;
    } else if !args.check {
        output::text(&status.text())?;
    }
    let complaint = status.complaint(Timestamp::from(jiff::Timestamp::now()), args.max_age);
    if let Some(complaint) = complaint.filter(|_| args.check) {
        log::error!("{complaint}");
        return Ok(Outcome::Failed);
    }
    Ok(Outcome::Done)
}
