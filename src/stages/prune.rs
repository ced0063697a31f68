//! Dropping old snapshots without losing what later ones rest on.
//!
//! The first kept snapshot becomes a base: whole, with all texts, links, mentions and sources, and with what is known of
//! URLs from before. Later snapshots that point to what is dropped point there instead. Each step leaves a store that is
//! right, so that an interrupted prune does no harm and the same command again completes it: the tables of later stages
//! first, then the pages, which make it a base; then pointers; then the manifests of dropped snapshots go, and partitions
//! that no manifest names are swept, here and at the start of every run.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::delta::Texts;
use super::delta::web_tables::Partitioned;
use super::extract::{extracted_at, mention_schema, mentions_of_rows, prune_answers};
use super::follow;
use super::stats::UpdateEvidence;
use crate::config::Pipeline;
use crate::extract::Status;
use crate::manifests::{Closed, Compared, Extracted, Ingested, Observed, Scheduled};
use crate::model::{Digest, SnapshotId, StageId, Standing};
use crate::report::upkeep::{AnswersLeft, Pruned};
use crate::run::graph::Graph;
use crate::run::inventory::find;
use crate::store::Store;
use crate::store::batches::batches;
use crate::store::index::Index;
use crate::store::lock::StoreLock;
use crate::store::manifest::{Manifest, Summary};
use crate::store::parquet::{BatchWriter, GROUP_BYTES, GROUP_ROWS, PartitionWriter, Written};
use crate::store::state::Placed;
use crate::store::texts::ShardReader;
use crate::tables::close::SnapshotRow;
use crate::tables::delta::{SeenRow, WEB_LINKS, WEB_TUPLES, WebLinkRow, WebTupleRow, table_of};
use crate::tables::extract::{AwayRow, Extraction};
use crate::tables::ingest::{Head, LinkRow, Page, PageFacts, PagePointers, Tombstone, VersionRow};
use crate::tables::mentions::mentions_of;
use crate::tables::record::{Record, Table};
use crate::tables::schedule::{RecallCurveRow, ScheduleRow};
use crate::tables::stats::{EvidenceRow, UpdateStatsRow};

/// Drops all snapshots older than `before`; with `dry_run` only says which these are.
pub(crate) fn prune_before(graph: Graph, root: &Path, before: &SnapshotId, dry_run: bool) -> Result<Pruned> {
    if Store::open(root)?.is_none() {
        bail!("no store at {}; nothing to prune", root.display());
    }
    let _lock = StoreLock::take(root, "prune")?;
    let store = Store::open_or_create(root)?;
    let manifests = store.manifests::<Ingested>()?;
    let ids: Vec<SnapshotId> = manifests.iter().map(|manifest| manifest.snapshot.clone()).collect();
    let first = find(&ids, before)?;
    if !dry_run {
        store.recover()?;
        store.clear_staging()?;
        if first > 0 {
            drop_snapshots(graph, &store, &manifests, first)?;
        }
        // Also what an interrupted prune has left.
        for stage in graph.stages() {
            store.sweep(stage.writes())?;
        }
    }
    Ok(Pruned { dropped: ids[..first].to_vec(), kept: ids.len() - first })
}

/// Drops the kept answers that no text of a kept snapshot needs.
pub(crate) fn prune_kept_answers(pipeline: &Pipeline) -> Result<Vec<AnswersLeft>> {
    let root = &pipeline.corpus.store;
    if Store::open(root)?.is_none() {
        bail!("no store at {}; nothing to prune", root.display());
    }
    let _lock = StoreLock::take(root, "prune")?;
    let store = Store::open_or_create(root)?;
    store.recover()?;
    prune_answers(pipeline, &store)
}

/// Drops the snapshots before the one at position `first`.
fn drop_snapshots(graph: Graph, store: &Store, manifests: &[Manifest<Ingested>], first: usize) -> Result<()> {
    let (dropped, kept) = manifests.split_at(first);
    let gone: HashSet<&SnapshotId> = dropped.iter().map(|manifest| &manifest.snapshot).collect();
    check_done(graph, store, dropped, &kept[0])?;
    let base = NewBase { store, upto: &manifests[..=first], now: &kept[0], gone: &gone };
    if !store.is_first_kept(&kept[0].snapshot)? {
        base.make()?;
        // From here on the snapshots before it are none of the store's any more.
        store.set_first_kept(kept[0].time, &kept[0].snapshot)?;
    }
    let there = base.pages()?;
    for manifest in kept {
        repoint(store, &manifest.snapshot, &kept[0].snapshot, &gone, &there)?;
    }
    // It knows of what is dropped, and follows again from the new base.
    Index::remove(&store.index_folder())?;
    for manifest in dropped {
        store.forget(StageId::ALL.as_slice(), &manifest.snapshot)?;
    }
    Ok(())
}

/// What was never compared or counted cannot be kept: the stages that have been at work must have done the new base.
fn check_done(graph: Graph, store: &Store, dropped: &[Manifest<Ingested>], first: &Manifest<Ingested>) -> Result<()> {
    for stage in graph.stages() {
        let mut worked = false;
        for manifest in dropped {
            worked |= store.done(stage.id(), &manifest.snapshot)?.is_some();
        }
        if worked && store.done(stage.id(), &first.snapshot)?.is_none() {
            bail!(
                "{} is not done for snapshot {}, and would lose what it knows from before; run the pipeline first",
                stage.id(),
                first.snapshot
            );
        }
    }
    Ok(())
}

/// A snapshot that becomes a base.
struct NewBase<'a> {
    store: &'a Store,
    /// All snapshots up to it, oldest first.
    upto: &'a [Manifest<Ingested>],
    now: &'a Manifest<Ingested>,
    gone: &'a HashSet<&'a SnapshotId>,
}

/// Files that replace partitions of a stage.
struct Files {
    dir: PathBuf,
    files: Vec<(PathBuf, String)>,
}

impl Files {
    fn new(store: &Store, stage: StageId) -> Result<Self> {
        Ok(Self { dir: store.scratch_dir(&format!("prune-{stage}"))?, files: Vec::new() })
    }

    fn file(&mut self, table: &str) -> PathBuf {
        let file = self.dir.join(format!("{}.parquet", self.files.len()));
        self.files.push((file.clone(), table.to_owned()));
        file
    }

    fn writer<T: Table>(&mut self) -> Result<PartitionWriter<T>> {
        Ok(PartitionWriter::create(&self.file(T::NAME))?.first_of_table(true))
    }
}

impl NewBase<'_> {
    fn make(&self) -> Result<()> {
        let index = Index::open(&self.store.scratch_dir("prune-index")?)?;
        self.delta(&index)?;
        self.stats(&index)?;
        self.schedule()?;
        self.extract()?;
        self.close()?;
        self.ingest()
    }

    fn replace<S: Summary>(
        &self,
        mut manifest: Manifest<S>,
        files: &Files,
        tables: impl IntoIterator<Item = (String, Written)>,
    ) -> Result<()> {
        manifest.tables.extend(tables);
        Ok(self.store.replace(&manifest, &files.files, &files.dir)?)
    }

    /// When texts were first seen, and the web tables of all queries.
    fn delta(&self, index: &Index) -> Result<()> {
        let Some(manifest) = self.store.manifest::<Compared>(&self.now.snapshot)? else { return Ok(()) };
        follow::bring::<Texts>(self.store, index, self.upto)?;
        let mut files = Files::new(self.store, StageId::Delta)?;
        let mut lines = files.writer::<SeenRow>()?;
        for shard in 0..self.store.shards() {
            lines.write(shard, &super::delta::all_seen(index, shard)?)?;
        }
        let mut tables = vec![(SeenRow::NAME.to_owned(), lines.finish()?)];
        for name in manifest.summary.queries.iter().filter(|(_, asked)| asked.failed.is_none()).map(|(name, _)| name) {
            let Some(rows) = Partitioned::of_base(self.store, name, &self.now.snapshot)? else { continue };
            for (folder, batch, schema) in [
                (WEB_TUPLES, WebTupleRow::encode(&rows.nodes), WebTupleRow::schema()),
                (WEB_LINKS, WebLinkRow::encode(&rows.links), WebLinkRow::schema()),
            ] {
                let table = table_of(folder, name);
                let mut writer = BatchWriter::create(&files.file(&table), schema)?.first_of_table(true);
                for from in (0..batch.num_rows()).step_by(GROUP_ROWS) {
                    writer.write(0, batch.slice(from, GROUP_ROWS.min(batch.num_rows() - from)))?;
                }
                tables.push((table, writer.finish()?));
            }
        }
        self.replace(manifest, &files, tables)
    }

    /// What is known of updates.
    fn stats(&self, index: &Index) -> Result<()> {
        let Some(manifest) = self.store.manifest::<Observed>(&self.now.snapshot)? else { return Ok(()) };
        follow::bring::<UpdateEvidence>(self.store, index, self.upto)?;
        let mut files = Files::new(self.store, StageId::Stats)?;
        let (mut evidence, mut stats) = (files.writer::<EvidenceRow>()?, files.writer::<UpdateStatsRow>()?);
        for shard in 0..self.store.shards() {
            evidence.write(shard, &super::stats::evidence_rows(index, shard)?)?;
            stats.write(shard, &self.sources::<UpdateStatsRow>(shard, |row| &row.source)?)?;
        }
        let tables =
            [(EvidenceRow::NAME.to_owned(), evidence.finish()?), (UpdateStatsRow::NAME.to_owned(), stats.finish()?)];
        self.replace(manifest, &files, tables)
    }

    fn schedule(&self) -> Result<()> {
        let Some(manifest) = self.store.manifest::<Scheduled>(&self.now.snapshot)? else { return Ok(()) };
        let mut files = Files::new(self.store, StageId::Schedule)?;
        let (mut schedules, mut curves) = (files.writer::<ScheduleRow>()?, files.writer::<RecallCurveRow>()?);
        for shard in 0..self.store.shards() {
            schedules.write(shard, &self.sources::<ScheduleRow>(shard, |row| &row.source)?)?;
            curves.write(shard, &self.curves(shard)?)?;
        }
        let tables =
            [(ScheduleRow::NAME.to_owned(), schedules.finish()?), (RecallCurveRow::NAME.to_owned(), curves.finish()?)];
        self.replace(manifest, &files, tables)
    }

    /// The newest row of each source of a shard, by source.
    fn sources<T: Table>(&self, shard: u32, source: fn(&T) -> &String) -> Result<Vec<T>> {
        let mut rows: BTreeMap<String, T> = BTreeMap::new();
        for snapshot in self.store.layers(T::NAME, &self.now.snapshot)?.snapshots().iter().rev() {
            for row in self.store.partition(T::NAME, snapshot)?.shard::<T>(shard)? {
                rows.insert(source(&row).clone(), row);
            }
        }
        Ok(rows.into_values().collect())
    }

    /// The newest curve of each source of a shard: a source has a curve in every snapshot that has its schedule.
    fn curves(&self, shard: u32) -> Result<Vec<RecallCurveRow>> {
        let mut curves: BTreeMap<String, Vec<RecallCurveRow>> = BTreeMap::new();
        for snapshot in self.store.layers(ScheduleRow::NAME, &self.now.snapshot)?.snapshots().iter().rev() {
            let schedules = self.store.partition(ScheduleRow::NAME, snapshot)?.shard::<ScheduleRow>(shard)?;
            curves.extend(schedules.into_iter().map(|row| (row.source, Vec::new())));
            for point in self.store.partition(RecallCurveRow::NAME, snapshot)?.shard::<RecallCurveRow>(shard)? {
                curves.entry(point.source.clone()).or_default().push(point);
            }
        }
        Ok(curves.into_values().flatten().collect())
    }

    /// All extractions and mentions.
    fn extract(&self) -> Result<()> {
        let Some(manifest) = self.store.manifest::<Extracted>(&self.now.snapshot)? else { return Ok(()) };
        let (store, snapshot) = (self.store, &self.now.snapshot);
        let mut files = Files::new(store, StageId::Extract)?;
        let mut extractions = files.writer::<Extraction>()?;
        let away = files.writer::<AwayRow>()?;
        let mut writers = Vec::new();
        for name in manifest.summary.fingerprints.keys() {
            // Without any mention so far there is nothing to write.
            if let Some(schema) = mention_schema(store, name, snapshot)? {
                let file = files.file(&mentions_of(name));
                let writer = BatchWriter::create(&file, schema.arrow())?.first_of_table(true);
                writers.push((name.clone(), schema, writer));
            }
        }
        for shard in 0..store.shards() {
            let mut rows: Vec<Extraction> = Vec::new();
            for (name, schema, writer) in &mut writers {
                let mut of_extractor = extracted_at(store, name, snapshot, shard)?;
                let mut mentions = mentions_of_rows(store, name, shard, &of_extractor)?;
                mentions.iter_mut().for_each(|row| row.whole = true);
                for part in mentions.chunks(GROUP_ROWS) {
                    writer.write(shard, schema.encode(part))?;
                }
                of_extractor.iter_mut().for_each(|row| self.in_base(row));
                rows.extend(of_extractor);
            }
            // The rows of a page follow each other, in the order of extractors.
            rows.sort_by(|a, b| a.url.cmp(&b.url));
            extractions.write(shard, &rows)?;
        }
        let mut tables = BTreeMap::new();
        for (name, _, writer) in writers {
            tables.insert(mentions_of(&name), writer.finish()?);
        }
        tables.insert(Extraction::NAME.to_owned(), extractions.finish()?);
        tables.insert(AwayRow::NAME.to_owned(), away.finish()?);
        self.replace(manifest, &files, tables)
    }

    /// An extraction as the base has it.
    fn in_base(&self, row: &mut Extraction) {
        let snapshot = &self.now.snapshot;
        row.whole = true;
        row.mentions_snapshot = row.mentions_snapshot.take().map(|_| snapshot.clone());
        // Where the last good extraction was of another text, it is dropped with that.
        let good = row.good_snapshot.take();
        row.good_snapshot = match row.status {
            Status::Ok => Some(snapshot.clone()),
            _ => good.filter(|good| !self.gone.contains(good)),
        };
    }

    /// The row of the table `snapshots`.
    fn close(&self) -> Result<()> {
        let Some(manifest) = self.store.manifest::<Closed>(&self.now.snapshot)? else { return Ok(()) };
        let mut rows = self.store.partition(SnapshotRow::NAME, &self.now.snapshot)?.all_rows::<SnapshotRow>()?;
        for row in &mut rows {
            (row.whole, row.base) = (true, true);
        }
        let mut files = Files::new(self.store, StageId::Close)?;
        let mut writer = files.writer::<SnapshotRow>()?;
        writer.write(0, &rows)?;
        self.replace(manifest, &files, [(SnapshotRow::NAME.to_owned(), writer.finish()?.slim())])
    }

    /// All pages, with texts and links, and what is known of their URLs.
    fn ingest(&self) -> Result<()> {
        let (store, snapshot) = (self.store, &self.now.snapshot);
        let mut files = Files::new(store, StageId::Ingest)?;
        let mut pages = Grouped::<Page>::new(files.writer()?);
        let mut links = Grouped::<LinkRow>::new(files.writer()?);
        let (mut heads, mut versions) = (files.writer::<Head>()?, files.writer::<VersionRow>()?);
        let mut known: BTreeMap<Digest, VersionRow> = BTreeMap::new();
        let mut summary = self.now.summary.clone();
        (summary.changes.stored_text_bytes, summary.changes.stored_link_bytes) = (0, 0);
        let layers = store.pages_at(snapshot)?;
        for shard in 0..store.shards() {
            let rows: Vec<Placed<Page>> = layers.placed(store, shard)?;
            let mut shard_heads = Vec::new();
            for batch in batches(&rows, |placed| placed.row.text_bytes) {
                for (page, page_links) in self.with_contents(shard, batch)? {
                    let bytes = page.text.as_ref().map_or(0, String::len);
                    let link_bytes =
                        page_links.iter().map(|link| link.url.len() + link.target.len() + link.label.len());
                    summary.changes.stored_text_bytes += bytes as u64;
                    summary.changes.stored_link_bytes += link_bytes.sum::<usize>() as u64;
                    if let Some(digest) = &page.archive_digest {
                        let archive_digest = Digest::of(digest.as_bytes());
                        let url = page.url.clone();
                        let row = || VersionRow { archive_digest, url, page_snapshot: snapshot.clone() };
                        known.entry(archive_digest).or_insert_with(row);
                    }
                    shard_heads.push(Head { page: facts(&page), page_snapshot: snapshot.clone(), alive: true });
                    pages.push(shard, page, bytes)?;
                    for link in page_links {
                        links.push(shard, link, 0)?;
                    }
                }
            }
            pages.flush(shard)?;
            links.flush(shard)?;
            heads.write(shard, &shard_heads)?;
        }
        versions.write(0, &known.into_values().collect::<Vec<_>>())?;
        summary.base = true;
        summary.whole = true;
        summary.known = summary.alive;
        let mut manifest = self.now.clone();
        manifest.summary = summary;
        let tables = [
            (Page::NAME.to_owned(), pages.writer.finish()?),
            (LinkRow::NAME.to_owned(), links.writer.finish()?.slim()),
            (Head::NAME.to_owned(), heads.finish()?),
            (VersionRow::NAME.to_owned(), versions.finish()?),
        ];
        self.replace(manifest, &files, tables)
    }

    /// Pages as the base has them, with their texts, and their links.
    fn with_contents(&self, shard: u32, rows: &[Placed<Page>]) -> Result<Vec<(Page, Vec<LinkRow>)>> {
        let snapshot = &self.now.snapshot;
        let mut reader = ShardReader::new(self.store, shard);
        let texts: Vec<_> = rows.iter().map(|placed| (placed.row.url.as_str(), &placed.row.text_snapshot)).collect();
        let links: Vec<_> = rows.iter().map(|placed| (placed.row.url.as_str(), &placed.row.content_snapshot)).collect();
        let contents = reader.texts_and_elements(&texts)?.into_iter().zip(reader.links(&links)?);
        let pages = rows.iter().zip(contents).map(|(placed, ((text, elements), links))| {
            let own = placed.snapshot == *snapshot;
            let row = placed.row.clone();
            let page = Page {
                text: Some(text),
                elements: elements.filter(|_| row.elements_digest.is_some()),
                text_snapshot: snapshot.clone(),
                content_snapshot: snapshot.clone(),
                change: if own { row.change } else { Standing::Carried },
                returned: own && row.returned,
                structure_changed: row.structure_changed.filter(|_| own),
                moved_from: row.moved_from.filter(|_| own),
                old_snapshot: row.old_snapshot.filter(|_| own),
                old_text_digest: row.old_text_digest.filter(|_| own),
                old_text_snapshot: row.old_text_snapshot.filter(|_| own),
                whole: true,
                ..row
            };
            (page, links)
        });
        Ok(pages.collect())
    }

    /// The pages of the base, by URL, with the digests of their texts.
    fn pages(&self) -> Result<HashMap<String, Digest>> {
        let partition = self.store.partition(Page::NAME, &self.now.snapshot)?;
        let rows: Vec<PageFacts> = partition.all_rows()?;
        Ok(rows.into_iter().map(|page| (page.url, page.content.text_digest)).collect())
    }
}

fn facts(page: &Page) -> PageFacts {
    PageFacts {
        content: crate::tables::ingest::ContentFacts {
            title: page.title.clone(),
            charset: page.charset.clone(),
            text_digest: page.text_digest,
            text_bytes: page.text_bytes,
            content_digest: page.content_digest,
            change_digest: page.change_digest,
            masked_text_digest: page.masked_text_digest,
            canonical: page.canonical.clone(),
            structure_digest: page.structure_digest,
            elements_digest: page.elements_digest,
        },
        url: page.url.clone(),
        content_type: page.content_type.clone(),
        fetched_at: page.fetched_at,
        last_modified: page.last_modified,
        etag: page.etag.clone(),
        text_snapshot: page.text_snapshot.clone(),
        content_snapshot: page.content_snapshot.clone(),
        payload_digest: page.payload_digest,
        archive_digest: page.archive_digest.clone(),
        reading_digest: page.reading_digest,
        ignore_digest: page.ignore_digest,
    }
}

/// Rewrites a snapshot's pages if anything in them points to a dropped snapshot: to the new base where that has it
/// (`there`, by URL), else nowhere.
fn repoint(
    store: &Store,
    snapshot: &SnapshotId,
    base: &SnapshotId,
    gone: &HashSet<&SnapshotId>,
    there: &HashMap<String, Digest>,
) -> Result<()> {
    let partition = store.partition(Page::NAME, snapshot)?;
    let points = |pointers: &PagePointers| {
        let all =
            [&pointers.text_snapshot, &pointers.content_snapshot, &pointers.old_snapshot, &pointers.old_text_snapshot];
        all.into_iter().flatten().any(|id| gone.contains(id))
    };
    let mut any = false;
    for shard in 0..store.shards() {
        any |= partition.shard::<PagePointers>(shard)?.iter().any(points);
        any |= partition.read::<PagePointers>(&partition.deleted(shard))?.iter().any(points);
    }
    if !any {
        return Ok(());
    }
    let repointed = |id: &mut SnapshotId| {
        if gone.contains(id) {
            id.clone_from(base);
        }
    };
    // What the base itself was compared with is gone.
    let holds = |url: &str| there.get(url).filter(|_| snapshot != base);
    let old = |url: &str, id: &mut Option<SnapshotId>| {
        if id.as_ref().is_some_and(|id| gone.contains(id)) && holds(url).is_some() {
            *id = Some(base.clone());
        }
    };
    let old_text = |url: &str, id: &mut Option<SnapshotId>, text: Option<Digest>| {
        if id.as_ref().is_some_and(|id| gone.contains(id)) {
            *id = holds(url).filter(|held| text == Some(**held)).map(|_| base.clone());
        }
    };
    let dir = store.scratch_dir("prune-pages")?;
    let file = dir.join("pages.parquet");
    let mut pages = Grouped::<Page>::new(PartitionWriter::create(&file)?.first_of_table(snapshot == base));
    for shard in 0..store.shards() {
        for part in partition.part(shard).pieces() {
            for mut page in partition.read::<Page>(&part)? {
                repointed(&mut page.text_snapshot);
                repointed(&mut page.content_snapshot);
                let url = page.moved_from.clone().unwrap_or_else(|| page.url.clone());
                old(&url, &mut page.old_snapshot);
                old_text(&url, &mut page.old_text_snapshot, page.old_text_digest);
                let bytes = page.text.as_ref().map_or(0, String::len);
                pages.push(shard, page, bytes)?;
            }
        }
        pages.flush(shard)?;
        let mut deleted: Vec<Tombstone> = partition.read(&partition.deleted(shard))?;
        for row in &mut deleted {
            old(&row.url, &mut row.old_snapshot);
            old_text(&row.url, &mut row.old_text_snapshot, row.old_text_digest);
        }
        pages.writer.write_deleted(shard, &deleted);
    }
    let mut manifest = store.manifest::<Ingested>(snapshot)?.context("a kept snapshot is ingested")?;
    let whole = manifest.summary.whole;
    manifest.tables.insert(Page::NAME.to_owned(), pages.writer.finish()?.whole_if(whole));
    Ok(store.replace(&manifest, &[(file, Page::NAME.to_owned())], &dir)?)
}

/// Cuts rows into row groups as they come.
struct Grouped<T> {
    writer: PartitionWriter<T>,
    rows: Vec<T>,
    bytes: usize,
}

impl<T: Record> Grouped<T> {
    fn new(writer: PartitionWriter<T>) -> Self {
        Self { writer, rows: Vec::new(), bytes: 0 }
    }

    fn push(&mut self, shard: u32, row: T, bytes: usize) -> Result<()> {
        self.rows.push(row);
        self.bytes += bytes;
        if self.rows.len() >= GROUP_ROWS || self.bytes >= GROUP_BYTES {
            self.flush(shard)?;
        }
        Ok(())
    }

    fn flush(&mut self, shard: u32) -> Result<()> {
        self.bytes = 0;
        Ok(self.writer.write(shard, &std::mem::take(&mut self.rows))?)
    }
}
