//! `ingest`: a snapshot folder to `captures`, `pages`, `links` and `rejects`.
//!
//! Two halves, so that memory does not grow with the snapshot. `read` turns archives into captures, on all threads,
//! and spills them to one file per shard. `assemble` takes the shards one by one, merges each with the heads of the
//! snapshot before (both in URL order), folds URL by URL (`captures`) and writes rows. A payload that was there last time is only hashed.

mod assemble;
mod drain;
pub(crate) mod inspect;
mod read;
mod spill;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};

use self::assemble::{Assembly, Writers};
use self::read::{ReadContext, Seen, read_all};
use self::spill::{Spill, Spilled};
use crate::archive::SnapshotFolder;
use crate::captures::{LastPage, MAX_PAYLOAD, ReadingRules, Referable, Tonight, UniqueTexts};
use crate::manifests::{Changes, Ingested};
use crate::model::{Digest, Reject, Snapshot, SnapshotId, StageId, Timestamp};
use crate::run::shards;
use crate::run::stage::{Context, Ran, Stage, Task};
use crate::store::carried::Carried;
use crate::store::manifest::Manifest;
use crate::store::parquet::{Partition, PartitionWriter};
use crate::store::staging::Staging;
use crate::store::view::Read;
use crate::store::{Store, files, shard_of};
use crate::tables::ingest::{Capture, HeadReading, HeadText, LinkRow, Page, RejectRow};
use crate::tables::record::Table as _;

/// Every so many snapshots the texts and links of all pages are stored again, which bounds how far back a pointer
/// reaches.
pub(crate) const BASE_EVERY: usize = 30;

pub(crate) struct Ingest;

impl Stage for Ingest {
    fn id(&self) -> StageId {
        StageId::Ingest
    }

    fn about(&self) -> &'static str {
        "Read snapshot folders into captures, pages, links and rejects"
    }

    fn reads(&self) -> &'static [Read] {
        &[]
    }

    fn writes(&self) -> &'static [&'static str] {
        &[Capture::NAME, Page::NAME, LinkRow::NAME, RejectRow::NAME]
    }

    fn forget(&self, store: &Store, snapshot: &SnapshotId) -> Result<()> {
        Ok(store.carried(Carried::Heads).drop(snapshot)?)
    }

    fn run(&self, context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
        let folder = task.folder.as_ref().context("the snapshot's folder is gone")?;
        let layout = context.pipeline.corpus.layout;
        let folder = SnapshotFolder::open(folder, layout)?;
        ingest(context, task, done, &folder).with_context(|| format!("snapshot {}", task.snapshot.id))
    }
}

fn ingest(context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>], folder: &SnapshotFolder) -> Result<Ran> {
    let started = Instant::now();
    let (store, corpus, snapshot) = (context.store, &context.pipeline.corpus, &task.snapshot);
    let base = needs_base(done);
    let earlier: Vec<_> = done.iter().map(|manifest| (&manifest.snapshot, manifest.summary.ignore)).collect();
    let heads = store.heads(&earlier)?;
    let (mask, ignore_digest) = (corpus.mask(), corpus.ignore_digest());
    let reading = ReadContext {
        rules: ReadingRules {
            equate_schemes: corpus.equate_schemes,
            mask: &mask,
            ignore_digest,
            snapshot_time: snapshot.time,
            parse_all: base,
        },
        readings: known_readings(store, heads.as_ref())?,
        shards: store.shards(),
    };
    let mut staging = store.stage(StageId::Ingest, &snapshot.id)?;
    let previous = done.last().map(|manifest| manifest.time);
    let (mut seen, spilled) = read_folder(context, task, folder, previous, &reading, staging.dir())?;
    let read_seconds = started.elapsed().as_secs_f64();

    let mut referable = referable(&mut seen, &spilled, store.shards())?;
    let last_pages = look_up_heads(store, heads.as_ref(), &seen, &mut referable)?;
    let tonight = Tonight {
        snapshot: &snapshot.id,
        base,
        coverage: corpus.coverage,
        mask: &mask,
        ignore_digest,
        last_pages: &last_pages,
    };
    let assembly = Assembly { store, tonight, spilled: &spilled, heads: heads.as_ref(), referable: &referable };
    let heads_staged = staging.dir().join("heads.parquet");
    let writers = Writers {
        captures: staging.writer()?,
        pages: staging.writer()?,
        links: staging.writer()?,
        heads: PartitionWriter::create(&heads_staged)?,
    };
    let (rows, changes) = write_shards(context, &assembly, writers)?;
    let rejects = write_rejects(&mut staging, &seen)?;

    let summary = Ingested {
        layout: folder.layout_names(),
        bytes: folder.bytes(),
        payload_bytes: seen.payload_bytes,
        parsed: seen.parsed,
        changes,
        read_seconds,
        base,
        ignore: ignore_digest,
    };
    let mut manifest = Manifest::new(snapshot, folder.fingerprint()?, corpus.settings_digest(), summary);
    manifest.tables = rows.into_iter().chain([(RejectRow::NAME.to_owned(), rejects)]).collect();
    manifest.seconds = started.elapsed().as_secs_f64();
    // Before the commit: a run that is killed after it would leave them, and the next has nothing to do.
    let keep: Vec<_> = done.last().map(|manifest| &manifest.snapshot).into_iter().chain([&snapshot.id]).collect();
    let heads = store.carried(Carried::Heads);
    heads.keep(&keep)?;
    staging.commit(&manifest, &[(heads_staged, heads.file(&snapshot.id))])?;
    Ok(Ran { archive_bytes: Some(manifest.summary.bytes), ..Ran::new(&manifest)? })
}

/// First half: reads the folder to its end. `previous`: the time of the snapshot before; `dir`: where captures are
/// spilled to.
fn read_folder(
    context: &Context<'_>,
    task: &Task,
    folder: &SnapshotFolder,
    previous: Option<Timestamp>,
    reading: &ReadContext<'_>,
    dir: &Path,
) -> Result<(Seen, Spilled)> {
    let Snapshot { id, time } = &task.snapshot;
    for remark in folder.remarks() {
        log::info!("snapshot {id}: {remark}");
    }
    for doubt in folder.doubts() {
        log::warn!("snapshot {id}: {doubt}");
    }
    let bar = context.progress.bytes(&format!("read {id}"), folder.bytes());
    let mut spill = Spill::create(dir, reading.shards)?;
    let readers = folder.split_readers(previous, Some(*time), rayon::current_num_threads());
    let mut seen = read_all(readers, reading, &spill, &bar)?;
    if seen.misread {
        log::info!("snapshot {id}: damage, or an archive in an archive; its files are read in one piece");
        // Dropping writes what is still buffered, so it must come before the same files are begun again.
        drop(spill);
        spill = Spill::create(dir, reading.shards)?;
        seen = read_all(folder.readers(previous, Some(*time)), reading, &spill, &bar)?;
    }
    seen.rejects.extend(folder.rejects().iter().cloned());
    seen.sort_rejects();
    if seen.captures == 0 {
        let first = seen.rejects.first();
        let first = first.map(|r| format!("; the first of {}: {}: {}", seen.rejects.len(), r.source_file, r.reason));
        anyhow::bail!("no usable capture in its folder{}", first.unwrap_or_default());
    }
    Ok((seen, spill.finish()?))
}

/// Reads a body that is a file of its own.
pub(crate) fn read_body(path: &Path) -> Result<Vec<u8>> {
    Ok(files::read_capped(path, MAX_PAYLOAD)?)
}

/// The first snapshot is a base, and so is every thirtieth after the last one.
fn needs_base(done: &[Manifest<Ingested>]) -> bool {
    let since = done.iter().rev().position(|manifest| manifest.summary.base);
    since.is_none_or(|since| since + 1 >= BASE_EVERY)
}

/// Reading of each URL's last good page, by digest of the URL: all that deciding whether to parse needs.
fn known_readings(store: &Store, heads: Option<&Partition>) -> Result<HashMap<Digest, Option<Digest>>> {
    let mut known = HashMap::new();
    if let Some(heads) = heads {
        for shard in 0..store.shards() {
            let rows = heads.shard::<HeadReading>(shard)?;
            known.extend(rows.into_iter().map(|row| (Digest::of(row.url.as_bytes()), row.reading_digest)));
        }
    }
    Ok(known)
}

/// What of this snapshot revisits of other URLs may refer to.
fn referable(seen: &mut Seen, spilled: &Spilled, shards: u32) -> Result<Referable> {
    let holders = std::mem::take(&mut seen.by_archive_digest);
    let mut referable = Referable::new(holders.into_iter().map(|(digest, holder)| (digest, holder.at)).collect());
    let asked: HashSet<u32> = seen.asked_urls.iter().map(|url| shard_of(url, shards)).collect();
    for shard in asked {
        let mut captures = spilled.captures(shard)?;
        captures.retain(|capture| seen.asked_urls.contains(&capture.note.url));
        referable.add_named_captures(captures);
    }
    Ok(referable)
}

/// Finds, among all heads, the texts of new URLs and what revisits may refer to.
fn look_up_heads(
    store: &Store,
    heads: Option<&Partition>,
    seen: &Seen,
    referable: &mut Referable,
) -> Result<UniqueTexts<LastPage>> {
    let mut last_pages = UniqueTexts::default();
    let Some(heads) = heads else {
        return Ok(last_pages);
    };
    let asked: HashSet<&String> = seen.asked.iter().filter(|digest| !referable.has_capture(digest)).collect();
    if seen.new_texts.is_empty() && asked.is_empty() && seen.asked_urls.is_empty() {
        return Ok(last_pages);
    }
    for shard in 0..store.shards() {
        for row in heads.shard::<HeadText>(shard)? {
            if seen.asked_urls.contains(&row.url) {
                referable.add_named_page(row.url.clone(), row.archive_digest.clone());
            }
            if let Some(digest) = row.archive_digest.filter(|digest| asked.contains(digest)) {
                referable.add_page(digest, &row.url);
            }
            if seen.new_texts.contains(&row.text_digest) {
                let last = LastPage { url: row.url, snapshot: row.snapshot, text_snapshot: row.text_snapshot };
                last_pages.add(row.text_digest, row.text_bytes, last);
            }
        }
    }
    Ok(last_pages)
}

/// Assembles shards in parallel, a few at a time, and appends them in order.
fn write_shards(
    context: &Context<'_>,
    assembly: &Assembly<'_>,
    mut writers: Writers,
) -> Result<(Vec<(String, u64)>, Changes)> {
    let mut changes = Changes::default();
    let count = context.store.shards();
    let bar = context.progress.count(&format!("write {}", assembly.tonight.snapshot), count.into());
    let encoders = writers.encoders();
    shards::in_order(
        count,
        Some(&bar),
        |shard| assembly.shard(shard, &encoders),
        |_, output| {
            changes += output.changes;
            writers.append(output)
        },
    )?;
    writers.heads.finish()?;
    let rows = vec![
        (Capture::NAME.to_owned(), writers.captures.finish()?),
        (Page::NAME.to_owned(), writers.pages.finish()?),
        (LinkRow::NAME.to_owned(), writers.links.finish()?),
    ];
    Ok((rows, changes))
}

fn write_rejects(staging: &mut Staging<'_>, seen: &Seen) -> Result<u64> {
    let row = |reject: &Reject| RejectRow {
        source_file: reject.source_file.clone(),
        source_offset: reject.source_offset.and_then(|offset| i64::try_from(offset).ok()),
        url: reject.url.as_deref().map(without_credentials),
        stage: StageId::Ingest,
        reason: reject.reason.clone(),
    };
    for reject in &seen.rejects {
        let place = reject.source_offset.map(|offset| format!(" at {offset}")).unwrap_or_default();
        log::info!("rejected {}{place}: {}", reject.source_file, reject.reason);
    }
    let mut writer = staging.writer::<RejectRow>()?;
    // A reject may have no URL, so they are in one shard, by file and offset.
    writer.write(0, &seen.rejects.iter().map(row).collect::<Vec<_>>())?;
    Ok(writer.finish()?)
}

/// A URL as the archive has it, but for the credentials that no table may show.
fn without_credentials(url: &str) -> String {
    let clean = url.contains('@').then(|| crate::text::url::normalise(url, false).ok()).flatten();
    clean.unwrap_or_else(|| url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_comes_first_and_then_every_thirty() {
        let mut done: Vec<Manifest<Ingested>> = Vec::new();
        let mut bases = Vec::new();
        for i in 0..70 {
            let base = needs_base(&done);
            if base {
                bases.push(i);
            }
            let snapshot = Snapshot { id: SnapshotId::new(format!("n{i}")).unwrap(), time: Timestamp(i) };
            let nothing = Digest::of(b"");
            let summary = Ingested {
                layout: String::new(),
                bytes: 0,
                payload_bytes: 0,
                parsed: 0,
                changes: Changes::default(),
                read_seconds: 0.0,
                base,
                ignore: nothing,
            };
            done.push(Manifest::new(&snapshot, nothing, nothing, summary));
        }
        assert_eq!(bases, [0, 30, 60]);
    }
}
