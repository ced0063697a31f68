//! The texts of a snapshot, rebuilt from the store and checked against their digests.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use rayon::prelude::*;
use serde_json::json;

use crate::manifests::Ingested;
use crate::model::{Digest, SnapshotId};
use crate::run::inventory::known_snapshots;
use crate::run::progress::{Bar, Progress};
use crate::store::parquet::{GROUP_BYTES, PartitionWriter};
use crate::store::texts::pages_with_text;
use crate::store::{Store, files};
use crate::tables::ingest::Page;

/// How texts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// A file for each text and a `manifest.jsonl`, which can be read as a snapshot again.
    Files,
    /// One Parquet file.
    Parquet,
}

/// How many texts a snapshot has.
pub(crate) fn texts(store: &Store, snapshot: &SnapshotId) -> Result<u64> {
    known_snapshots(store, [snapshot])?;
    Ok(store.manifest::<Ingested>(snapshot)?.map_or(0, |manifest| manifest.summary.alive))
}

/// Writes the texts of a snapshot to a folder; gives how many.
pub(crate) fn export(
    store: &Store,
    snapshot: &SnapshotId,
    dir: &Path,
    format: Format,
    progress: Progress,
) -> Result<u64> {
    let texts = texts(store, snapshot)?;
    let bar = progress.count(&format!("export {snapshot}"), texts);
    let export = Export { store, snapshot, dir, bar };
    files::make_dir(dir)?;
    match format {
        Format::Files => export.files()?,
        Format::Parquet => export.parquet()?,
    }
    Ok(texts)
}

struct Export<'a> {
    store: &'a Store,
    snapshot: &'a SnapshotId,
    dir: &'a Path,
    bar: Bar,
}

impl Export<'_> {
    fn parquet(&self) -> Result<()> {
        let mut writer = PartitionWriter::<Page>::create(&self.dir.join("pages.parquet"))?.first_of_table(true);
        for shard in 0..self.store.shards() {
            let mut rows: Vec<Page> = Vec::new();
            let mut bytes = 0;
            self.pages(shard, |page, text| {
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
        Ok(())
    }

    fn files(&self) -> Result<()> {
        let shards: Vec<u32> = (0..self.store.shards()).collect();
        let lines = shards.par_iter().map(|&shard| {
            let mut lines = String::new();
            self.pages(shard, |page, text| {
                lines.push_str(&self.file(&page, &text)?);
                lines.push('\n');
                Ok(())
            })?;
            Ok(lines)
        });
        let lines = lines.collect::<Result<Vec<_>>>()?.concat();
        let path = self.dir.join("manifest.jsonl");
        files::write(&path, lines.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Writes the file of a text; gives its line of the manifest.
    fn file(&self, page: &Page, text: &str) -> Result<String> {
        let name = Digest::of(page.url.as_bytes()).to_string();
        let file = format!("texts/{}/{name}.txt", &name[..2]);
        files::write(&self.dir.join(&file), text.as_bytes())?;
        let mut line = json!({
            "url": page.url, "file": file, "status": 200, "content_type": "text/plain; charset=utf-8",
            "title": page.title, "text_digest": page.text_digest.to_string(),
        });
        let times = [("fetched_at", page.fetched_at), ("last_modified", page.last_modified)];
        for (key, time) in times.into_iter().filter_map(|(key, time)| Some((key, time?))) {
            line[key] = time.to_string().into();
        }
        Ok(line.to_string())
    }

    /// Calls `visit` with the pages of a shard, each with its text, once the text is found to have its digest.
    fn pages(&self, shard: u32, mut visit: impl FnMut(Page, String) -> Result<()>) -> Result<()> {
        let pages = self.store.pages_at(self.snapshot)?;
        pages_with_text(self.store, &pages, shard, |page: Page, text: String| {
            self.bar.add(1);
            if Digest::of(text.as_bytes()) != page.text_digest {
                let (url, snapshot) = (&page.url, &page.text_snapshot);
                bail!("the text of {url} in snapshot {snapshot} does not have the digest it should");
            }
            visit(page, text)
        })
    }
}
