//! `ratoon delta`: what changed, between consecutive snapshots or any two.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use serde_json::json;

use super::outcome::{Outcome, Usage};
use super::{Options, StageArgs, open_store, output, snapshot_id};
use crate::config::Pipeline;
use crate::manifests::Ingested;
use crate::model::closed_set::ClosedSet;
use crate::model::{Change, Fate, SnapshotId, StageId};
use crate::run::Wanted;
use crate::run::stage::Asked;
use crate::stages::delta::between::{Difference, between};
use crate::store::files;
use crate::store::parquet::PartitionWriter;
use crate::tables::delta::{LinkDelta, PageDelta, RegionDelta, TupleDelta};
use crate::tables::record::Table;

#[derive(Debug, Args)]
pub(super) struct DeltaArgs {
    #[command(flatten)]
    stage: StageArgs,
    /// Write the web joins of queries too, up to a million pairs
    #[arg(long)]
    keep_joins: bool,
    /// Compare this snapshot, of those ingested, with that of --to; nothing is written to the store
    #[arg(long, value_name = "ID", value_parser = snapshot_id, requires = "to", conflicts_with = "snapshot")]
    from: Option<SnapshotId>,
    /// The snapshot to compare with that of --from
    #[arg(long, value_name = "ID", value_parser = snapshot_id, requires = "from")]
    to: Option<SnapshotId>,
    /// Write the tables of --from and --to here
    #[arg(long, value_name = "DIR", requires = "from")]
    out: Option<PathBuf>,
}

pub(super) fn delta(args: &DeltaArgs, options: &Options) -> anyhow::Result<Outcome> {
    let (Some(from), Some(to)) = (&args.from, &args.to) else {
        let wanted = Wanted {
            stage: Some(StageId::Delta),
            snapshot: args.stage.snapshot.clone(),
            force: options.force,
            dry_run: options.dry_run,
            asked: Asked { keep_joins: args.keep_joins, ..Asked::default() },
            ..Wanted::default()
        };
        return super::run::carry_out(&args.stage.pipeline, &wanted, options);
    };
    let pipeline = Pipeline::load(&args.stage.pipeline)?;
    let store = open_store(&pipeline)?;
    let known: Vec<SnapshotId> = store.manifests::<Ingested>()?.into_iter().map(|manifest| manifest.snapshot).collect();
    if let Some(unknown) = [from, to].into_iter().find(|id| !known.contains(id)) {
        let known = known.iter().map(SnapshotId::as_str).collect::<Vec<_>>().join(", ");
        bail!(Usage(format!("no snapshot {unknown} in the store; there are {known}")));
    }
    if let Some(dir) = args.out.as_deref()
        && files::is_in_use(dir)?
        && !options.force
    {
        bail!(Usage(format!("{} is not empty; --force writes into it all the same", dir.display())));
    }
    if options.dry_run {
        return output::text(&format!("dry run: would compare {from} with {to}\n"));
    }
    let difference = between(&pipeline, &store, from, to)?;
    if let Some(dir) = &args.out {
        write(dir, &difference)?;
    }
    let counts = counts(&difference);
    if options.json {
        let pages: Vec<_> = difference.pages.iter().map(page_json).collect();
        return output::json(&json!({"from": from, "to": to, "counts": counts, "out": args.out, "pages": pages}));
    }
    if options.quiet && args.out.is_some() {
        return Ok(Outcome::Done);
    }
    output::text(&describe(from, to, &difference, &counts, args.out.as_deref()))
}

/// Tables as Parquet folders.
fn write(dir: &Path, difference: &Difference) -> anyhow::Result<()> {
    fn table<T: Table>(dir: &Path, rows: &[T]) -> anyhow::Result<()> {
        let folder = dir.join(T::NAME);
        files::make_dir(&folder)?;
        let mut writer = PartitionWriter::<T>::create(&folder.join(crate::store::PART))?;
        writer.write(0, rows)?;
        writer.finish()?;
        Ok(())
    }
    table::<PageDelta>(dir, &difference.pages)?;
    table::<LinkDelta>(dir, &difference.links)?;
    table::<RegionDelta>(dir, &difference.regions)?;
    table::<TupleDelta>(dir, &difference.tuples)
}

type Counts = BTreeMap<&'static str, BTreeMap<&'static str, usize>>;

fn counts(difference: &Difference) -> Counts {
    fn count<S: ClosedSet>(changes: impl Iterator<Item = S>) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        changes.for_each(|change| *counts.entry(change.name()).or_default() += 1);
        counts
    }
    // A tuple has a row for each of its pages.
    let tuples = difference.tuples.chunk_by(|a, b| (&a.query, a.delta, a.tuple) == (&b.query, b.delta, b.tuple));
    BTreeMap::from([
        ("pages", count(difference.pages.iter().map(|row| row.change))),
        ("links", count(difference.links.iter().map(|row| row.change))),
        ("regions", count(difference.regions.iter().map(|row| row.change))),
        ("tuples", count(tuples.map(|rows| rows[0].delta))),
    ])
}

fn page_json(row: &PageDelta) -> serde_json::Value {
    json!({
        "url": *row.url, "change": row.change, "reason": row.reason, "old_bytes": row.old_bytes,
        "new_bytes": row.new_bytes, "text_changed": row.text_changed, "title_changed": row.title_changed,
        "links_changed": row.links_changed, "new_text_bytes": row.new_text_bytes, "moved_bytes": row.moved_bytes,
        "moved_to": row.moved_to, "moved_from": row.moved_from, "unlinked": row.unlinked,
    })
}

fn describe(
    from: &SnapshotId,
    to: &SnapshotId,
    difference: &Difference,
    counts: &Counts,
    out: Option<&Path>,
) -> String {
    let mut text = String::new();
    let number = |n: Option<i64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let mut pages: Vec<&PageDelta> = difference.pages.iter().collect();
    pages.sort_by_key(|row| &row.url);
    if !pages.is_empty() {
        text.push_str("change     new bytes     moved  page\n");
    }
    for row in pages {
        let mut notes: Vec<String> = row.reason.iter().map(ToString::to_string).collect();
        notes.extend(row.moved_to.as_ref().map(|to| format!("moved to {to}")));
        notes.extend(row.moved_from.as_ref().map(|from| format!("moved from {from}")));
        notes.extend(row.unlinked.then(|| "no longer linked".to_owned()));
        if row.change == Fate::Changed(Change::Modified) && !row.text_changed {
            notes.push("only title or links".to_owned());
        }
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        let (new, moved) = (number(row.new_text_bytes), number(row.moved_bytes));
        let _ = writeln!(text, "{:<9}  {new:>9}  {moved:>8}  {}{notes}", row.change, row.url);
    }
    let _ = write!(text, "{from} to {to}:");
    for (i, (what, counts)) in counts.iter().filter(|(_, counts)| !counts.is_empty()).enumerate() {
        let counts = counts.iter().map(|(change, n)| format!("{n} {change}")).collect::<Vec<_>>().join(", ");
        let _ = write!(text, "{} {what} {counts}", if i > 0 { ";" } else { "" });
    }
    if counts.values().all(BTreeMap::is_empty) {
        text.push_str(" no difference");
    }
    text.push('\n');
    if let Some(out) = out {
        let _ = writeln!(text, "tables in {}", out.display());
    }
    text
}
