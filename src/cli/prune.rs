//! `ratoon prune`: drop old snapshots.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use serde_json::json;

use super::outcome::{Outcome, Usage};
use super::{Options, output, snapshot_id};
use crate::config::Pipeline;
use crate::manifests::Ingested;
use crate::model::SnapshotId;
use crate::run::prune;
use crate::stages;
use crate::store::Store;
use crate::store::lock::StoreLock;

#[derive(Debug, Args)]
pub(super) struct PruneArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// The oldest snapshot to keep
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    before: SnapshotId,
}

pub(super) fn prune(args: &PruneArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let root = &pipeline.corpus.store;
    if Store::open(root)?.is_none() {
        bail!("no store at {}; nothing to prune", root.display());
    }
    let _lock = StoreLock::take(root, "prune")?;
    let store = Store::open_or_create(root)?;
    let manifests = store.manifests::<Ingested>()?;
    let Some(first) = manifests.iter().position(|manifest| manifest.snapshot == args.before) else {
        let known = manifests.iter().map(|m| m.snapshot.to_string()).collect::<Vec<_>>().join(", ");
        bail!(Usage(format!("no snapshot {} in the store; there are {known}", args.before)));
    };
    let (dropped, kept) = manifests.split_at(first);
    if !options.dry_run {
        store.clear_staging()?;
        prune::prune(stages::graph(), &store, dropped, kept)?;
    }
    let ids: Vec<&str> = dropped.iter().map(|manifest| manifest.snapshot.as_str()).collect();
    if options.json {
        return output::json(&json!({"dropped": ids, "kept": kept.len(), "dry_run": options.dry_run}));
    }
    if options.quiet {
        return Ok(Outcome::Done);
    }
    let verb = if options.dry_run { "would drop" } else { "dropped" };
    output::text(&match ids.as_slice() {
        [] => format!("nothing is older than {}\n", args.before),
        _ => format!("{verb} {}; {} snapshots stay\n", ids.join(", "), kept.len()),
    })
}
