//! `ingest`: a snapshot folder to `captures`, `pages`, `links` and `rejects`.
//!
//! Two halves, so that memory does not grow with the snapshot. `read` turns archives into captures, on all threads,
//! and spills them to one file per shard. `assemble` takes the shards one by one, joins the captures with what is `known`
//! of their URLs, folds URL by URL (`captures`) and writes rows: of all URLs where the snapshot is whole, else of those
//! that it touched. A payload that was there last time is only hashed. In between falls the `verdict` on the snapshot:
//! which captures are suspect, and whether the crawl came to its end.

mod assemble;
mod drain;
pub(crate) mod inspect;
mod known;
mod others;
mod read;
mod settled;
mod source;
mod spill;
mod verdict;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

use self::assemble::{Assembly, ShardOutput, UnknownPages, Writers};
pub(super) use self::known::Heads;
use self::known::{Known, LastReadings, NewVersions};
use self::read::{AskingRevisit, InWindow, ReadContext, Seen, read_all};
use self::settled::Settled;
use self::source::Source;
use self::spill::{Spill, Spilled};
use self::verdict::{Suspects, Verdict};
use crate::archive::{CaptureReader, SnapshotFolder};
use crate::bounds::{self, MAX_BODY};
use crate::captures::{ReadingRules, Referable, StoredVersion};
use crate::manifests::{Changes, Ingested};
use crate::model::maps::{HashMap, HashSet};
use crate::model::window::FolderWindow;
use crate::model::{Coverage, Digest, DigestBuilder, Loss, Reject, SnapshotId, StageId};
use crate::run::hands::{Hands, Pass};
use crate::run::shards::{self, Handing, Shards};
use crate::run::stage::{Asking, Context, Position, Ran, Stage, Task};
use crate::run::windows::FolderTimes;
use crate::stages::follow;
use crate::store::manifest::Manifest;
use crate::store::parquet::Written;
use crate::store::staging::Staging;
use crate::store::texts::rows_of;
use crate::store::view::Read;
use crate::store::{Store, files, shard_of};
use crate::tables::ingest::{Capture, Head, LinkRow, Page, PageFacts, RejectRow, VersionRow};
use crate::tables::record::Table as _;

/// After so many snapshots at the latest the texts and links of all pages are stored again.
pub(crate) const BASE_EVERY: usize = 256;
/// A snapshot is whole if it captured at least the share 1 / this of the URLs that had a page.
const WHOLE_SHARE: u64 = 4;

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
        &[Capture::NAME, Page::NAME, LinkRow::NAME, RejectRow::NAME, Head::NAME, VersionRow::NAME]
    }

    fn run(&self, context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
        if let Hands::Worker(worker) = context.hands
            && worker.order.pass == Pass::Ingest
        {
            return others::assemble(context, worker, task, done);
        }
        let path = task.folder.as_ref().context("the snapshot's folder is gone")?;
        let source = Source::open(path, context.pipeline.corpus.layout)?;
        ingest(context, task, done, &source).with_context(|| format!("snapshot {}", task.snapshot.id))
    }

    /// A crawl that somebody accepted since is done again: what it did not bring is deleted then.
    fn is_done(&self, asking: Asking<'_>, at: Position<'_>) -> Result<bool> {
        let Some(manifest) = asking.store.manifest::<Ingested>(at.snapshot)? else { return Ok(false) };
        Ok(!manifest.summary.waits_for_acceptance() || !asking.store.accepted()?.contains(at.snapshot))
    }
}

fn ingest(context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>], source: &Source<'_>) -> Result<Ran> {
    let started = Instant::now();
    let (store, corpus, snapshot) = (context.store, &context.pipeline.corpus, &task.snapshot);
    follow::bring::<Heads>(store, context.index, done)?;
    let before_tonight = context.index.moment();
    let known = Known { before: &before_tonight, index: context.index, shards: store.shards() };
    let base = needs_base(done);
    let before = done.last().map(|manifest| &manifest.summary);
    let coverage = coverage(task, corpus.coverage);
    let (mask, ignore_digest) = (corpus.mask(), corpus.ignore_digest());
    let reading = ReadContext {
        rules: ReadingRules {
            equate_schemes: corpus.equate_schemes,
            mask: &mask,
            ignore_digest,
            snapshot_time: snapshot.time,
            parse_all: base,
            keep_elements: context.pipeline.keeps_elements(),
        },
        last_readings: LastReadings::new(known, before.map_or(0, |before| before.known), coverage == Coverage::Full)?,
        // One file is enough for a worker, which sends its captures on.
        shards: if matches!(context.hands, Hands::Worker(_)) { 1 } else { store.shards() },
        window: task.window.as_ref().map(|window| InWindow::new(window, snapshot.time)),
    };
    let mut staging = store.stage(StageId::Ingest, snapshot)?;
    let times = times(task, done);
    let (mut seen, spilled) = match context.hands {
        Hands::Own => read_source(context, task, source, times, &reading, staging.dir())?,
        Hands::Worker(worker) => return others::read(worker, source, times, &reading, (staging.dir(), store.shards())),
        Hands::Others(all) => others::read_by(all, context, task, source, &reading)?,
    };
    finish_seen(context, source, &mut seen);
    let read_seconds = started.elapsed().as_secs_f64();

    let alive_before = before.map_or(0, |before| before.alive);
    let whole = base
        || context.asked.whole
        || coverage == Coverage::Full
        || WHOLE_SHARE * seen.urls.len() as u64 >= alive_before;
    let mut verdict = Verdict::fall(context, task, source, coverage, before, (&mut seen, &spilled, known))?;
    refuse_to_lose(store, &snapshot.id, &verdict, &seen)?;
    let referable = referable(&mut seen, &spilled, &verdict.suspects, known)?;
    let settled = Settled {
        base,
        whole,
        absent_is_gone: coverage == Coverage::Full && !verdict.incomplete,
        coverage,
        rejected: std::mem::take(&mut seen.rejected),
        seen_before: std::mem::take(&mut seen.earlier_urls),
        versions: stored_versions(store, &referable)?,
        suspects: std::mem::take(&mut verdict.suspects),
        referable,
    };
    if let Hands::Others(all) = context.hands {
        others::leave(all, &spilled, &settled)?;
    }
    let tonight = settled.tonight(&snapshot.id, &mask, ignore_digest);
    let assembly = Assembly { store, tonight, spilled: &spilled, known, settled: &settled };
    let writers = Writers { captures: staging.writer()?, pages: staging.writer()?, links: staging.writer()? };
    let (mut tables, changes, unknown) = write_shards(context, &assembly, writers)?;
    tables.insert(RejectRow::NAME.to_owned(), write_rejects(&mut staging, &seen)?);
    if base {
        let after_tonight = context.index.moment();
        tables.extend(write_states(&mut staging, Known { before: &after_tonight, ..known })?);
    }
    tell_passed_over(task, changes.passed_over);
    let night = Night { task, source, before, seen: &seen, verdict: &verdict, base, whole, read_seconds };
    let summary = night.summary(changes, ignore_digest);
    let inputs = match &summary.window {
        Some(window) => window_inputs(window),
        None => source.fingerprint(verdict.unusable)?,
    };
    let mut manifest = Manifest::new(snapshot, inputs, corpus.settings_digest(), summary);
    manifest.follows = done.last().map(|manifest| manifest.lineage);
    manifest.tables = tables;
    manifest.problems = verdict::problems(&manifest, &seen, &context.pipeline.guard, alive_before, unknown);
    manifest.seconds = started.elapsed().as_secs_f64();
    staging.commit(&mut manifest)?;
    follow::followed::<Heads>(context.index, &snapshot.id, manifest.lineage);
    Ok(Ran { archive_bytes: Some(manifest.summary.bytes), ..Ran::new(&manifest)? })
}

/// What was read before is not given up for a folder that gives nothing now.
fn refuse_to_lose(store: &Store, snapshot: &SnapshotId, verdict: &Verdict, seen: &Seen) -> Result<()> {
    let had_captures = store.manifest::<Ingested>(snapshot)?.is_some_and(|before| !before.summary.unusable);
    match seen.rejects.first().filter(|_| verdict.unusable && had_captures) {
        Some(first) => anyhow::bail!("{}; what was read from it before stays", first.reason),
        None => Ok(()),
    }
}

/// When captures that state no time can have been made.
fn times(task: &Task, done: &[Manifest<Ingested>]) -> FolderTimes {
    match &task.window {
        Some(window) => window.times,
        None => FolderTimes { previous: done.last().map(|manifest| manifest.time), time: Some(task.snapshot.time) },
    }
}

/// What a folder does not show is known when its last window is read.
fn coverage(task: &Task, of_corpus: Coverage) -> Coverage {
    if task.window.as_ref().is_none_or(|window| window.last) { of_corpus } else { Coverage::Partial }
}

/// A snapshot that was read and assembled.
struct Night<'a> {
    task: &'a Task,
    source: &'a Source<'a>,
    before: Option<&'a Ingested>,
    seen: &'a Seen,
    verdict: &'a Verdict,
    base: bool,
    whole: bool,
    read_seconds: f64,
}

impl Night<'_> {
    /// What it leaves for others.
    fn summary(&self, changes: Changes, ignore: Digest) -> Ingested {
        let Self { source, before, seen, verdict, .. } = self;
        let alive_before = before.map_or(0, |before| before.alive);
        Ingested {
            layout: source.layout_names(),
            bytes: source.bytes(),
            payload_bytes: seen.payload_bytes,
            parsed: seen.parsed,
            changes,
            read_seconds: self.read_seconds,
            base: self.base,
            whole: self.whole,
            alive: (alive_before + changes.came).saturating_sub(changes.went),
            known: before.map_or(0, |before| before.known) + changes.added,
            text_bytes: match before {
                Some(before) if !self.whole => {
                    (before.text_bytes + changes.text_bytes).saturating_sub(changes.old_text_bytes)
                }
                _ => changes.text_bytes,
            },
            ignore,
            window: self.task.window.as_ref().map(|window| FolderWindow {
                folder: window.folder.clone(),
                every: window.every,
                last: window.last,
                captures: seen.in_window,
            }),
            incomplete: verdict.incomplete,
            missing: verdict.missing,
            cut_files: verdict.cut_files,
            unusable: verdict.unusable,
            accepted: verdict.accepted,
        }
    }
}

/// What a base stores of all URLs besides their pages.
fn write_states(staging: &mut Staging<'_>, known: Known<'_>) -> Result<[(String, Written); 2]> {
    let (mut heads, mut versions) = (staging.writer::<Head>()?, staging.writer::<VersionRow>()?);
    known.write_states(&mut heads, &mut versions)?;
    Ok([(Head::NAME.to_owned(), heads.finish()?), (VersionRow::NAME.to_owned(), versions.finish()?)])
}

/// Versions that no table has are told: they were crawled, and somebody may want them.
fn tell_passed_over(task: &Task, versions: u64) {
    let (id, what) = match versions {
        0 => return,
        1 => (&task.snapshot.id, "1 distinct version of a page is".to_owned()),
        n => (&task.snapshot.id, format!("{n} distinct versions of pages are")),
    };
    let shorter = if task.window.is_some() { "a shorter `every`" } else { "`every = \"1h\"`" };
    log::warn!(
        "snapshot {id}: {what} passed over, for a snapshot keeps the last one of each page; {shorter} in [corpus] keeps more"
    );
}

/// Identifies what a window was read from: its captures, and not what else its folder holds, which may still grow.
fn window_inputs(window: &FolderWindow) -> Digest {
    let mut builder = DigestBuilder::new();
    builder.field(window.folder.as_str().as_bytes()).number(u64::from(window.last));
    builder.number(window.captures.count).field(&window.captures.sum.0);
    builder.finish()
}

/// First half, of whatever there is to read.
fn read_source(
    context: &Context<'_>,
    task: &Task,
    source: &Source<'_>,
    times: FolderTimes,
    reading: &ReadContext<'_>,
    dir: &Path,
) -> Result<(Seen, Spilled)> {
    match source {
        Source::Folder(folder) => read_folder(context, task, folder, times, reading, dir),
        Source::Unusable(_, problem) => {
            let mut seen = Seen::default();
            seen.rejects.push(of_folder(problem.clone()));
            Ok((seen, Spill::create(dir, reading.shards)?.finish()?))
        }
    }
}

/// What follows from all that was read.
fn finish_seen(context: &Context<'_>, source: &Source<'_>, seen: &mut Seen) {
    if seen.captures == 0 && seen.rejects.is_empty() && !source.may_be_empty(context.pipeline.corpus.coverage) {
        seen.rejects.push(of_folder("no capture in it".to_owned()));
    }
    let urls = seen.rejects.iter().filter_map(|reject| reject.url.as_deref());
    let equate_schemes = context.pipeline.corpus.equate_schemes;
    seen.rejected = urls.filter_map(|url| crate::text::url::normalise(url, equate_schemes).ok()).collect();
}

/// A folder is rejected as a whole.
fn of_folder(reason: String) -> Reject {
    Reject { source_file: ".".to_owned(), source_offset: None, url: None, reason, lost: Loss::Nothing }
}

/// First half: reads the folder to its end. `dir`: where captures are spilled to.
fn read_folder(
    context: &Context<'_>,
    task: &Task,
    folder: &SnapshotFolder,
    times: FolderTimes,
    reading: &ReadContext<'_>,
    dir: &Path,
) -> Result<(Seen, Spilled)> {
    let id = &task.snapshot.id;
    let FolderTimes { previous, time } = times;
    let wanted = |readers| wanted_readers(task, readers);
    tell_remarks(id, folder);
    let bar = context.progress.bytes(&format!("read {id}"), folder.bytes());
    let mut spill = Spill::create(dir, reading.shards)?;
    let readers = folder.split_readers(previous, time, rayon::current_num_threads());
    let mut seen = read_all(wanted(readers), reading, &spill, &bar)?;
    if seen.misread {
        log::info!("snapshot {id}: damage, or an archive in an archive; its files are read in one piece");
        // Dropping writes what is still buffered, so it must come before the same files are begun again.
        drop(spill);
        spill = Spill::create(dir, reading.shards)?;
        seen = read_all(wanted(folder.readers(previous, time)), reading, &spill, &bar)?;
    }
    add_folder_rejects(task, folder, &mut seen);
    Ok((seen, spill.finish()?))
}

/// The readers that hold captures of the snapshot. The last window is told all that is wrong with its folder, and has to
/// know all that the folder shows.
fn wanted_readers(task: &Task, mut readers: Vec<Box<dyn CaptureReader>>) -> Vec<Box<dyn CaptureReader>> {
    let wanted = task.window.as_ref().filter(|window| !window.last).and_then(|window| window.files.as_ref());
    readers.retain(|reader| wanted.is_none_or(|wanted| wanted.contains(reader.name())));
    readers
}

fn tell_remarks(id: &SnapshotId, folder: &SnapshotFolder) {
    for remark in folder.remarks() {
        log::info!("snapshot {id}: {remark}");
    }
    for doubt in folder.doubts() {
        log::warn!("snapshot {id}: {doubt}");
    }
}

/// Adds what the folder itself shows to be unusable.
fn add_folder_rejects(task: &Task, folder: &SnapshotFolder, seen: &mut Seen) {
    match &task.window {
        Some(window) if !window.last => {}
        _ => seen.rejects.extend(folder.rejects().iter().cloned()),
    }
    seen.sort_rejects();
}

/// Reads a body that is a file of its own.
pub(crate) fn read_body(path: &Path) -> Result<Vec<u8>> {
    bounds::before_growing(path.metadata().map_or(0, |found| usize::try_from(found.len()).unwrap_or(usize::MAX)));
    Ok(files::read_capped(path, MAX_BODY)?)
}

/// The first snapshot is a base. Another one is due when as much has been stored since the last as that stores, or when
/// slim snapshots have as many rows as it has pages: so a store is about twice its changes at most, and a state is never
/// spread over more than it is worth.
fn needs_base(done: &[Manifest<Ingested>]) -> bool {
    let Some(base) = done.iter().rposition(|manifest| manifest.summary.base) else { return true };
    let (base, since) = (&done[base], &done[base + 1..]);
    let stored = |manifest: &Manifest<Ingested>| {
        manifest.summary.changes.stored_text_bytes + manifest.summary.changes.stored_link_bytes
    };
    let slim = since.iter().filter(|manifest| !manifest.summary.whole);
    since.len() + 1 >= BASE_EVERY
        || (!since.is_empty() && since.iter().map(stored).sum::<u64>() >= stored(base).max(1))
        || slim.map(|manifest| manifest.rows(Page::NAME)).sum::<u64>() >= base.rows(Page::NAME).max(1)
}

/// What revisits may refer to: captures of this snapshot and stored versions, by the digest that they state; where nobody
/// has that, captures and last pages of the URLs that they name.
fn referable(seen: &mut Seen, spilled: &Spilled, suspects: &Suspects, known: Known<'_>) -> Result<Referable> {
    let holders = std::mem::take(&mut seen.by_archive_digest);
    let mut referable = Referable::new(holders.into_iter().map(|(digest, holder)| (digest, holder.at)).collect());
    let mut revisits = std::mem::take(&mut seen.revisits);
    let is_found = |referable: &Referable, revisit: &AskingRevisit| {
        revisit.digest.as_ref().is_some_and(|digest| referable.has_digest(digest))
    };
    revisits.retain(|revisit| !is_found(&referable, revisit));
    let digests: HashSet<&str> = revisits.iter().filter_map(|revisit| revisit.digest.as_deref()).collect();
    for (digest, version) in known.versions(&digests.into_iter().collect::<Vec<_>>())? {
        referable.add_version(digest.to_owned(), version);
    }
    revisits.retain(|revisit| !is_found(&referable, revisit));
    let named: HashSet<String> = revisits.into_iter().filter_map(|revisit| revisit.names).collect();
    let asked: HashSet<u32> = named.iter().map(|url| shard_of(url, known.shards)).collect();
    let of_shard = |shard| {
        let mut captures = if asked.contains(&shard) { spilled.captures(shard)? } else { Vec::new() };
        suspects.mark(&mut captures);
        captures.retain(|capture| named.contains(&capture.note.url));
        Ok(captures)
    };
    shards::in_order(Shards::new(known.shards, None), of_shard, |_, captures| {
        referable.add_named_captures(captures);
        Ok(())
    })?;
    for (url, digest) in known.archive_digests(&named)? {
        referable.add_named_page(url, digest);
    }
    Ok(referable)
}

/// Reads the rows of stored versions that revisits may refer to, partition by partition.
fn stored_versions(store: &Store, referable: &Referable) -> Result<HashMap<StoredVersion, PageFacts>> {
    let mut wanted: BTreeMap<(&SnapshotId, u32), Vec<&str>> = BTreeMap::new();
    for StoredVersion { snapshot, url } in referable.versions() {
        wanted.entry((snapshot, store.shard_of(url))).or_default().push(url);
    }
    let read = |((snapshot, shard), urls): ((&SnapshotId, u32), Vec<&str>)| {
        let rows = rows_of::<PageFacts>(store, shard, Page::NAME, snapshot, &urls)?;
        let version = |page: PageFacts| (StoredVersion { snapshot: snapshot.clone(), url: page.url.clone() }, page);
        Ok(rows.into_iter().flatten().map(version).collect::<Vec<_>>())
    };
    let found: Vec<Vec<(StoredVersion, PageFacts)>> = wanted.into_par_iter().map(read).collect::<Result<_>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// Assembles shards in parallel, a few at a time, and appends them in order.
fn write_shards(
    context: &Context<'_>,
    assembly: &Assembly<'_>,
    mut writers: Writers,
) -> Result<(BTreeMap<String, Written>, Changes, UnknownPages)> {
    let (mut changes, mut unknown) = (Changes::default(), UnknownPages::default());
    let count = context.store.shards();
    let bar = context.progress.count(&format!("write {}", assembly.tonight.snapshot), count.into());
    let encoders = writers.encoders(matches!(context.hands, Hands::Worker(_)));
    let mut versions = NewVersions::default();
    shards::handed(
        context,
        Pass::Ingest,
        Shards::new(count, Some(&bar)),
        |shard| assembly.shard(shard, &encoders),
        &Handing { pack: ShardOutput::pack, unpack: |shard, parcel| ShardOutput::unpack(shard, parcel, &encoders) },
        |shard, mut output| {
            changes += output.changes;
            unknown.add(std::mem::take(&mut output.unknown));
            assembly.known.advance(shard, std::mem::take(&mut output.heads), &mut versions)?;
            writers.append(shard, output)
        },
    )?;
    versions.take(context.index)?;
    let whole = assembly.tonight.whole;
    let tables = BTreeMap::from([
        (Capture::NAME.to_owned(), writers.captures.finish()?.slim()),
        (Page::NAME.to_owned(), writers.pages.finish()?.whole_if(whole)),
        (LinkRow::NAME.to_owned(), writers.links.finish()?.slim()),
    ]);
    Ok((tables, changes, unknown))
}

fn write_rejects(staging: &mut Staging<'_>, seen: &Seen) -> Result<Written> {
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
    Ok(writer.finish()?.slim())
}

/// A URL as the archive has it, but for the credentials that no table may show.
fn without_credentials(url: &str) -> String {
    let clean = url.contains('@').then(|| crate::text::url::normalise(url, false).ok()).flatten();
    clean.unwrap_or_else(|| url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Snapshot, Timestamp};
    use crate::store::parquet::Tail;

    fn night(i: i64, base: bool, whole: bool, stored: u64, rows: u64) -> Manifest<Ingested> {
        let snapshot = Snapshot { id: SnapshotId::new(format!("n{i}")).unwrap(), time: Timestamp(i) };
        let nothing = Digest::of(b"");
        let summary = Ingested {
            layout: String::new(),
            bytes: 0,
            payload_bytes: 0,
            parsed: 0,
            changes: Changes { stored_text_bytes: stored, stored_link_bytes: stored, ..Changes::default() },
            read_seconds: 0.0,
            base,
            whole,
            alive: 0,
            known: 0,
            text_bytes: 0,
            ignore: nothing,
            window: None,
            incomplete: false,
            missing: 0,
            cut_files: 0,
            unusable: false,
            accepted: false,
        };
        let mut manifest = Manifest::new(&snapshot, nothing, nothing, summary);
        let written = Written { rows, bytes: 1, digest: nothing, tail: Tail::default(), whole };
        manifest.tables.insert(Page::NAME.to_owned(), written);
        manifest
    }

    /// The nights that are bases, of so many that store `stored` and, being slim or not, have `rows`.
    fn bases(nights: i64, whole: bool, stored: u64, rows: u64) -> Vec<i64> {
        let mut done: Vec<Manifest<Ingested>> = Vec::new();
        let mut bases = Vec::new();
        for i in 0..nights {
            let base = needs_base(&done);
            bases.extend(base.then_some(i));
            done.push(if base { night(i, true, true, 100, 100) } else { night(i, false, whole, stored, rows) });
        }
        bases
    }

    #[test]
    fn a_base_is_due_when_as_much_was_stored_or_touched_as_it_holds() {
        assert_eq!(bases(30, true, 10, 100), [0, 11, 22], "texts and links");
        assert_eq!(bases(30, false, 0, 10), [0, 11, 22], "rows of slim snapshots");
        assert_eq!(bases(30, true, 0, 100), [0], "whole snapshots have all rows anyway");
        assert_eq!(bases(600, false, 0, 0), [0, 256, 512]);
    }
}
