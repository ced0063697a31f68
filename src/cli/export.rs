//! `ratoon export`: a snapshot's texts, rebuilt from the store.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use rayon::prelude::*;
use serde_json::json;

use super::outcome::{Outcome, Usage};
use super::{Options, open_store, output, snapshot_id};
use crate::config::Pipeline;
use crate::manifests::Ingested;
use crate::model::{Digest, SnapshotId};
use crate::store::files;
use crate::store::parquet::{GROUP_BYTES, PartitionWriter};
use crate::store::texts::pages_with_text;
use crate::tables::ingest::Page;

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// The snapshot to rebuild
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    snapshot: SnapshotId,
    /// Where to write it: a manifest.jsonl and a file for each text, which ratoon reads as a snapshot again
    dir: PathBuf,
    /// One Parquet file (pages.parquet) with all texts instead
    #[arg(long)]
    parquet: bool,
}

pub(super) fn export(args: &ExportArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let store = open_store(&pipeline)?;
    let Some(manifest) = store.manifest::<Ingested>(&args.snapshot)? else {
        let known =
            store.manifests::<Ingested>()?.into_iter().map(|m| m.snapshot.to_string()).collect::<Vec<_>>().join(", ");
        bail!(Usage(format!("no snapshot {} in the store; there are {known}", args.snapshot)));
    };
    if files::is_in_use(&args.dir)? && !options.force {
        bail!(Usage(format!("{} is not empty; --force writes into it all the same", args.dir.display())));
    }
    let pages = manifest.tables.get("pages").copied().unwrap_or(0);
    if options.dry_run {
        return output::text(&format!("dry run: {pages} texts would go to {}\n", args.dir.display()));
    }
    let bar = options.progress().count(&format!("export {}", args.snapshot), pages);
    let check = |page: &Page, text: &str| {
        bar.add(1);
        if Digest::of(text.as_bytes()) == page.text_digest {
            return Ok(());
        }
        bail!("the text of {} in snapshot {} does not have the digest it should", page.url, page.text_snapshot)
    };
    files::make_dir(&args.dir)?;
    if args.parquet {
        let path = args.dir.join("pages.parquet");
        let mut writer = PartitionWriter::<Page>::create(&path)?;
        for shard in 0..store.shards() {
            let mut rows: Vec<Page> = Vec::new();
            let mut bytes = 0;
            pages_with_text(&store, &args.snapshot, shard, |page: Page, text| -> anyhow::Result<()> {
                check(&page, &text)?;
                bytes += text.len();
                rows.push(Page { text: Some(text), ..page });
                if bytes >= GROUP_BYTES {
                    bytes = 0;
                    writer.write(shard, &std::mem::take(&mut rows))?;
                }
                Ok(())
            })?;
            writer.write(shard, &rows)?;
        }
        writer.finish()?;
    } else {
        let shards: Vec<u32> = (0..store.shards()).collect();
        let lines = shards.par_iter().map(|&shard| -> anyhow::Result<String> {
            let mut lines = String::new();
            pages_with_text(&store, &args.snapshot, shard, |page: Page, text| -> anyhow::Result<()> {
                check(&page, &text)?;
                let name = Digest::of(page.url.as_bytes()).to_string();
                let file = format!("texts/{}/{name}.txt", &name[..2]);
                files::write(&args.dir.join(&file), text.as_bytes())?;
                let mut line = json!({
                    "url": page.url, "file": file, "status": 200, "content_type": "text/plain; charset=utf-8",
                    "title": page.title, "text_digest": page.text_digest.to_string(),
                });
                let times = [("fetched_at", page.fetched_at), ("last_modified", page.last_modified)];
                for (key, time) in times.into_iter().filter_map(|(key, time)| Some((key, time?))) {
                    line[key] = time.to_string().into();
                }
                lines.push_str(&line.to_string());
                lines.push('\n');
                Ok(())
            })?;
            Ok(lines)
        });
        let lines = lines.collect::<anyhow::Result<Vec<_>>>()?.concat();
        let path = args.dir.join("manifest.jsonl");
        files::write(&path, lines.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    drop(bar);
    if options.json {
        return output::json(&json!({"snapshot": args.snapshot, "texts": pages, "dir": args.dir}));
    }
    if options.quiet {
        return Ok(Outcome::Done);
    }
    output::text(&format!("{pages} texts of {} in {}, all with the right digest\n", args.snapshot, args.dir.display()))
}
