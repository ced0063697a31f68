//! `ratoon inspect`: what an archive is, what would be read from it and what rejected. Writes nothing.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;

use super::outcome::{Outcome, Usage};
use super::{Options, output};
use crate::archive::Layout;
use crate::config::guard::Guard;
use crate::inspect::{Inspected, PathKind};
use crate::report::inspection;
use crate::stages::ingest::inspect::{Look, inspect as look_at};

#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// A snapshot folder, a folder of snapshot folders, or an archive file
    path: PathBuf,
    #[arg(long, default_value = "auto", value_name = "LAYOUT")]
    #[arg(help = format!("How captures are held: auto looks; or {}", Layout::names()))]
    layout: Layout,
    /// What PATH is, if a look at it is not enough
    #[arg(long, value_enum, value_name = "WHAT")]
    r#as: Option<As>,
    /// Time zone of snapshot names
    #[arg(long, default_value = "UTC", value_name = "ZONE")]
    time_zone: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum As {
    /// One snapshot, whatever folders are in it
    Snapshot,
    /// A folder of snapshot folders
    Snapshots,
}

pub(super) fn inspect(args: &InspectArgs, options: &Options) -> anyhow::Result<Outcome> {
    let Ok(time_zone) = TimeZone::get(&args.time_zone) else {
        bail!(Usage(format!("--time-zone: '{}' is not a time zone, such as UTC or Europe/Berlin", args.time_zone)));
    };
    if !args.path.exists() {
        bail!("nothing is at {}; name a snapshot folder or an archive file", args.path.display());
    }
    let look = Look { layout: args.layout, time_zone, keep_rejects: options.verbose > 0 };
    let kind = args.r#as.map(|what| match what {
        As::Snapshot => PathKind::Snapshot,
        As::Snapshots => PathKind::Snapshots,
    });
    let inspected = look_at(&args.path, kind, &look, options.progress())?;
    if options.json {
        output::json(&inspection::inspected_json(&inspected))?;
    } else {
        output::text(&inspection::inspected(&inspected, options.verbose > 0))?;
    }
    check_usable(&inspected)?;
    Ok(outcome(&inspected, options))
}

/// Fails where a run would.
fn check_usable(inspected: &Inspected) -> anyhow::Result<()> {
    let path = inspected.path.display();
    if inspected.kind != PathKind::Snapshots && inspected.total.captures == 0 {
        bail!("no usable capture in {path}: {}", inspection::why_nothing(&inspected.total));
    }
    if inspected.snapshots.is_empty() {
        bail!("no snapshot in {path}: every folder below it is one, such as 2024-03-01");
    }
    let unusable = inspected.snapshots.iter().filter_map(|snapshot| match &snapshot.looked {
        Err(error) => Some((&snapshot.name, error.clone())),
        Ok(looked) if looked.found.captures == 0 => Some((&snapshot.name, inspection::why_nothing(&looked.found))),
        Ok(_) => None,
    });
    let unusable: Vec<_> = unusable.collect();
    for (name, why) in &unusable {
        log::error!("snapshot {name} has no usable capture: {why}");
    }
    if let [(name, _), ..] = unusable.as_slice() {
        bail!("`ratoon run` would stop at snapshot {name}; hint: mend its folder or move it away");
    }
    Ok(())
}

/// How a run would end.
fn outcome(inspected: &Inspected, options: &Options) -> Outcome {
    let rejects = inspected.total.rejects.count;
    if options.strict && rejects > 0 {
        log::error!("--strict: {rejects} would be rejected");
        return Outcome::Rejected;
    }
    let most = Guard::default().max_reject_share;
    if inspected.readable().any(|looked| looked.found.reject_share > most) {
        let all = if options.verbose > 0 { "" } else { "; -v lists all rejects" };
        log::warn!("more than {} % would be rejected{all}", most * 100.0);
        return Outcome::Problem;
    }
    Outcome::Done
}
