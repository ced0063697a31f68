//! Ingest where others read and assemble: what each side does.
//!
//! Workers read parts of the archive to captures, which are kept by bucket in the form in which they are spilled. From
//! their notes alone, whoever commits settles what looks across URLs and leaves that for the workers that fold URLs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::assemble::{Assembly, Writers};
use super::known::{Heads, Known};
use super::read::{ReadContext, Seen, SeenPart, read_all};
use super::settled::Settled;
use super::source::Source;
use super::spill::{Spill, Spilled};
use super::{Ran, add_folder_rejects, of_folder, tell_remarks, wanted_readers, write_shards};
use crate::captures::CaptureNote;
use crate::manifests::Ingested;
use crate::model::Digest;
use crate::model::StageId;
use crate::run::hands::{Answers, Others, Pass, Worker};
use crate::run::progress::Progress;
use crate::run::shards::{self, Shards};
use crate::run::stage::{Context, Task};
use crate::run::windows::FolderTimes;
use crate::stages::follow;
use crate::store::manifest::Manifest;
use crate::store::passes::{BucketRow, READ, SPILLED};
use crate::store::shard_of;

const SETTLED: &str = "settled";

/// What workers that fold URLs are left.
#[derive(Serialize, Deserialize)]
struct Left<S> {
    settled: S,
    /// Where captures are spilled.
    spilled: PathBuf,
}

/// Captures of a bucket are sent together: what carries rows from worker to worker takes time for each of them.
#[derive(Default)]
struct Together {
    by_bucket: BTreeMap<u32, Vec<u8>>,
    bytes: usize,
}

/// Bytes that wait to be sent.
const TOGETHER: usize = 32 << 20;

impl Together {
    fn add(&mut self, bucket: u32, entry: &[u8], answers: &mut Answers) -> Result<()> {
        if self.bytes > 0 && self.bytes + entry.len() > TOGETHER {
            self.send(answers)?;
        }
        self.by_bucket.entry(bucket).or_default().extend_from_slice(entry);
        self.bytes += entry.len();
        Ok(())
    }

    fn send(&mut self, answers: &mut Answers) -> Result<()> {
        self.bytes = 0;
        for (bucket, rows) in std::mem::take(&mut self.by_bucket) {
            answers.write(BucketRow { bucket: i32::try_from(bucket)?, table: SPILLED, rows: &rows })?;
        }
        Ok(())
    }
}

/// As a worker: reads the parts of the archive that it is asked for.
pub(super) fn read(
    worker: &Worker,
    source: &Source<'_>,
    times: FolderTimes,
    reading: &ReadContext<'_>,
    (dir, shards): (&Path, u32),
) -> Result<Ran> {
    let (parts, split) = (worker.order.parts, worker.order.split);
    worker.each(|part, answers| {
        let mut seen = Seen::default();
        if let Source::Folder(folder) = source {
            let threads = if split { parts as usize } else { 1 };
            let readers = folder.split_readers(times.previous, times.time, threads);
            let mine = wanted_readers(worker.task(), readers).into_iter().enumerate();
            let mine = mine.filter(|(i, _)| i % parts as usize == part as usize).map(|(_, reader)| reader).collect();
            let spill = Spill::create(dir, 1)?;
            seen = read_all(mine, reading, &spill, &Progress::new(false).bytes("", 0))?;
            let mut together = Together::default();
            spill
                .finish()?
                .entries(0, |note: &CaptureNote, entry| together.add(shard_of(&note.url, shards), entry, answers))?;
            together.send(answers)?;
        }
        let rows = postcard::to_stdvec(&seen.into_part())?;
        Ok(answers.write(BucketRow { bucket: i32::try_from(part)?, table: READ, rows: &rows })?)
    })?;
    bail!("a worker commits nothing")
}

/// What workers read, or the need for it.
pub(super) fn read_by(
    others: &Others,
    context: &Context<'_>,
    task: &Task,
    source: &Source<'_>,
    reading: &ReadContext<'_>,
) -> Result<(Seen, Spilled)> {
    let Source::Folder(folder) = source else {
        let folder = others.folder(Pass::Read, true);
        let mut seen = Seen::default();
        if let Source::Unusable(_, problem) = source {
            seen.rejects.push(of_folder(problem.clone()));
        }
        return Ok((seen, Spilled::kept(folder.path(), reading.shards)));
    };
    tell_remarks(&task.snapshot.id, folder);
    for split in [true, false] {
        let kept = others.folder(Pass::Read, split);
        if !kept.is_complete() {
            return Err(others.need(Pass::Read, split, others.parts()));
        }
        let parts: Vec<SeenPart> = kept.read_parts(others.parts())?;
        if split && parts.iter().any(|part| part.misread) {
            log::info!(
                "snapshot {}: damage, or an archive in an archive; its files are read in one piece",
                task.snapshot.id
            );
            continue;
        }
        let spilled = Spilled::kept(kept.path(), reading.shards);
        let bar = context.progress.count(&format!("settle {}", task.snapshot.id), reading.shards.into());
        let of_shard = |shard| {
            let mut seen = Seen::default();
            for capture in spilled.captures(shard)? {
                let url = Digest::of(capture.note.url.as_bytes());
                let last = reading.last_readings.of(&capture.note.url, url)?;
                seen.add(&capture.note, url, capture.at, last);
            }
            Ok(seen)
        };
        let mut seen = Seen::default();
        shards::in_order(Shards::new(reading.shards, Some(&bar)), of_shard, |_, of_shard| {
            seen.merge(of_shard);
            Ok(())
        })?;
        parts.into_iter().for_each(|part| seen.add_part(part));
        add_folder_rejects(task, folder, &mut seen);
        return Ok((seen, spilled));
    }
    bail!("snapshot {}: its files cannot be read in one piece either", task.snapshot.id)
}

/// Leaves for workers what was settled, unless they have done their work.
pub(super) fn leave(others: &Others, spilled: &Spilled, settled: &Settled) -> Result<()> {
    let folder = others.folder(Pass::Ingest, true);
    if !folder.is_complete() {
        folder.save(SETTLED, &Left { settled, spilled: spilled.dir().to_owned() })?;
    }
    Ok(())
}

/// As a worker: folds the URLs of the shards that it is asked for.
pub(super) fn assemble(
    context: &Context<'_>,
    worker: &Worker,
    task: &Task,
    done: &[Manifest<Ingested>],
) -> Result<Ran> {
    let (store, corpus) = (context.store, &context.pipeline.corpus);
    let Left { settled, spilled } = worker.folder.load::<Left<Settled>>(SETTLED)?;
    follow::bring::<Heads>(store, context.index, done)?;
    let before_tonight = context.index.moment();
    let known = Known { before: &before_tonight, index: context.index, shards: store.shards() };
    let (mask, spilled) = (corpus.mask(), Spilled::kept(&spilled, store.shards()));
    let tonight = settled.tonight(&task.snapshot.id, &mask, corpus.ignore_digest());
    let assembly = Assembly { store, tonight, spilled: &spilled, known, settled: &settled };
    let mut staging = store.stage(StageId::Ingest, &task.snapshot)?;
    let writers = Writers { captures: staging.writer()?, pages: staging.writer()?, links: staging.writer()? };
    write_shards(context, &assembly, writers)?;
    bail!("a worker commits nothing")
}
