//! `close`: what a snapshot brought, in numbers, once all other stages are done.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::manifests::{Closed, Extracted, Ingested};
use crate::model::{DigestBuilder, MentionChange, StageId};
use crate::run::stage::{Context, Ran, Stage, Task};
use crate::store::manifest::Manifest;
use crate::store::view::Read;
use crate::tables::close::SnapshotRow;
use crate::tables::delta::{Alert, NewTextBytes, PageDelta};
use crate::tables::extract::{MentionChanged, MentionDelta};
use crate::tables::ingest::{Capture, RejectRow};
use crate::tables::record::Table as _;

pub(crate) struct Close;

impl Stage for Close {
    fn id(&self) -> StageId {
        StageId::Close
    }

    fn about(&self) -> &'static str {
        "Write down what each snapshot brought, in numbers"
    }

    fn reads(&self) -> &'static [Read] {
        &[
            Read::Table(PageDelta::NAME),
            Read::Table(Alert::NAME),
            Read::Table(MentionDelta::NAME),
            Read::Manifest(StageId::Ingest),
            Read::Manifest(StageId::Extract),
        ]
    }

    fn writes(&self) -> &'static [&'static str] {
        &[SnapshotRow::NAME]
    }

    fn run(&self, context: &Context<'_>, task: &Task, _: &[Manifest<Ingested>]) -> Result<Ran> {
        close(context, task).with_context(|| format!("snapshot {}", task.snapshot.id))
    }
}

fn close(context: &Context<'_>, task: &Task) -> Result<Ran> {
    let started = Instant::now();
    let (store, snapshot) = (context.store, &task.snapshot.id);
    let ingested = store.manifest::<Ingested>(snapshot)?.context("it has not been ingested")?;
    let extracted = store.manifest::<Extracted>(snapshot)?.context("it has not been extracted")?;
    let mentions = store.partition(MentionDelta::NAME, snapshot)?.all_rows::<MentionChanged>()?;
    let changed = |change| count(mentions.iter().filter(|row| row.change == change).count() as u64);
    let new_text = store.partition(PageDelta::NAME, snapshot)?.all_rows::<NewTextBytes>()?;
    let alerts = store.partition(Alert::NAME, snapshot)?.rows();
    let Ingested { changes, .. } = &ingested.summary;
    let pages = ingested.summary.alive;
    let row = SnapshotRow {
        time: task.snapshot.time,
        whole: ingested.summary.whole,
        base: ingested.summary.base,
        incomplete: ingested.summary.incomplete,
        layout: ingested.summary.layout.clone(),
        captures: count(ingested.rows(Capture::NAME)),
        pages: count(pages),
        added: count(changes.added),
        modified: count(changes.modified),
        unchanged: count(changes.unchanged),
        // All others are as an earlier snapshot left them.
        carried: count(pages.saturating_sub(changes.added + changes.modified + changes.unchanged)),
        deleted: count(changes.went),
        suspects: count(changes.suspects),
        rejects: count(ingested.rows(RejectRow::NAME)),
        mentions: count(extracted.summary.mentions.values().sum()),
        mentions_added: changed(MentionChange::Added),
        mentions_deleted: changed(MentionChange::Deleted),
        failed_extractions: count(extracted.summary.costs.values().map(|costs| costs.failed).sum()),
        deferred_extractions: count(extracted.shortfall.deferred),
        text_bytes: count(ingested.summary.text_bytes),
        new_text_bytes: new_text.iter().filter_map(|row| row.new_text_bytes).sum(),
        alerts: count(alerts),
        price: extracted.summary.price,
    };
    let mut staging = store.stage(StageId::Close, &task.snapshot)?;
    let mut writer = staging.writer::<SnapshotRow>()?;
    writer.write(0, &[row])?;
    let mut manifest = Manifest::new(&task.snapshot, ingested.inputs, DigestBuilder::new().finish(), Closed {});
    manifest.tables = BTreeMap::from([(SnapshotRow::NAME.to_owned(), writer.finish()?.slim())]);
    manifest.seconds = started.elapsed().as_secs_f64();
    staging.commit(&mut manifest)?;
    Ran::new(&manifest)
}

fn count(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
