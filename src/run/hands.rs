//! Who works on the shards of a snapshot: this process, or others for it.
//!
//! A stage prepares, works on each shard and takes in what came of them, in order. Only the middle is much work, and it
//! only reads: so others may do it ([`Hands::Worker`] is such a process) and hand over what came of it, and whoever runs
//! the stage takes that instead of working ([`Hands::Others`]). There is one program for both, and one result.
//!
//! A run with others stops where something is not there yet and says what is needed ([`PassNeeded`]); once that has been
//! worked out it is run again and goes on from there.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::graph::Graph;
use super::inventory;
use super::progress::Progress;
use super::stage::{Asked, Context, Task};
use crate::config::Pipeline;
use crate::model::closed_set::closed_set;
use crate::model::{Digest, DigestBuilder, SnapshotId, StageId};
use crate::store::Store;
use crate::store::index::Index;
use crate::store::passes::{BucketRow, Parcel, PassFolder, RowReader, RowWriter};
use crate::store::scratch::Workroom;

closed_set! {
    /// A part of a night that others can work on.
    pub(crate) enum Pass: "pass" {
        /// Archive files to captures.
        Read = "read",
        Ingest = "ingest",
        Match = "match",
        Extract = "extract",
        Delta = "delta",
    }
}

impl Pass {
    /// The pass that works on the shards of a stage.
    #[must_use]
    pub(crate) fn of(stage: StageId) -> Option<Self> {
        Self::ALL.into_iter().find(|pass| *pass != Self::Read && pass.stage() == stage)
    }

    #[must_use]
    fn stage(self) -> StageId {
        match self {
            Self::Read | Self::Ingest => StageId::Ingest,
            Self::Match => StageId::Match,
            Self::Extract => StageId::Extract,
            Self::Delta => StageId::Delta,
        }
    }
}

/// Who works on the shards of a snapshot.
#[derive(Clone, Copy)]
pub(crate) enum Hands<'a> {
    /// This process, which also commits.
    Own,
    /// This process, for another one that commits.
    Worker(&'a Worker),
    /// Others, for this process.
    Others(&'a Others),
}

/// What workers are told of a pass.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) pass: Pass,
    task: Task,
    forced: bool,
    /// Of the pass `read`: in how many parts the archive is read, and whether files are cut.
    pub(crate) parts: u32,
    pub(crate) split: bool,
}

const ORDER: &str = "order";

/// Something that others have to work out first.
#[derive(Clone, Debug, Serialize, thiserror::Error)]
#[error("pass {pass} of snapshot {snapshot} is to be worked out in {}", folder.display())]
pub(crate) struct PassNeeded {
    pub(crate) pass: Pass,
    pub(crate) snapshot: SnapshotId,
    pub(crate) folder: PathBuf,
    /// Parts or buckets, counted from 0, that workers are to be asked for.
    pub(crate) count: u32,
}

/// Where others leave what they worked out for a stage on a snapshot.
#[derive(Debug)]
pub(crate) struct Others {
    work: PathBuf,
    /// Follows from all that the stage builds on.
    token: Digest,
    task: Task,
    forced: bool,
    parts: u32,
}

/// A run that others work for.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// A folder that all of them see at the same place.
    pub work: PathBuf,
    /// In how many parts archives are read.
    pub parts: u32,
    /// Into how many buckets the URLs of a store are sorted that is made now.
    pub buckets: u32,
}

impl Elsewhere {
    /// For a stage on a snapshot; `before`: the snapshot before it.
    pub(super) fn others(
        &self,
        pipeline: &Pipeline,
        store: &Store,
        task: &Task,
        before: Option<&SnapshotId>,
        forced: bool,
    ) -> Result<Others> {
        let mut token = DigestBuilder::new();
        token.field(&crate::store::files::digest(&pipeline.path)?.0).number(u64::from(self.parts));
        if let Some(folder) = &task.folder {
            token.field(&crate::archive::SnapshotFolder::listing(folder).0);
        }
        for snapshot in [Some(&task.snapshot.id), before].into_iter().flatten() {
            token.field(snapshot.as_str().as_bytes());
            for stage in StageId::ALL {
                if let Some(done) = store.done(stage, snapshot)? {
                    token.field(stage.as_str().as_bytes()).field(&done.lineage.0);
                }
            }
        }
        let token = token.finish();
        Ok(Others { work: self.work.clone(), token, task: task.clone(), forced, parts: self.parts })
    }
}

impl Others {
    /// The folder of a pass. `split`: whether files are cut.
    #[must_use]
    pub(crate) fn folder(&self, pass: Pass, split: bool) -> PassFolder {
        let mut token = DigestBuilder::new();
        token.field(&self.token.0).number(u64::from(split));
        PassFolder::new(&self.work, self.task.snapshot.id.as_str(), pass.as_str(), token.finish())
    }

    #[must_use]
    pub(crate) fn parts(&self) -> u32 {
        self.parts
    }

    /// Leaves the order of a pass for workers; what is returned ends the run.
    pub(crate) fn need(&self, pass: Pass, split: bool, count: u32) -> anyhow::Error {
        let folder = self.folder(pass, split);
        let order = Order { pass, task: self.task.clone(), forced: self.forced, parts: self.parts, split };
        match folder.save(ORDER, &order) {
            Ok(()) => {
                let snapshot = self.task.snapshot.id.clone();
                PassNeeded { pass, snapshot, folder: folder.path().to_owned(), count }.into()
            }
            Err(error) => error.into(),
        }
    }

    /// Removes the folders of a stage that is committed.
    pub(super) fn clear(&self, stage: StageId) -> Result<()> {
        for pass in Pass::ALL.into_iter().filter(|pass| pass.stage() == stage) {
            for split in [false, true] {
                self.folder(pass, split).remove()?;
            }
        }
        Ok(())
    }
}

/// A process that works for another one.
pub(crate) struct Worker {
    pub(crate) folder: PassFolder,
    pub(crate) order: Order,
    /// What it is asked for, and where what came of it goes.
    asked: Mutex<Option<(Numbers, Answers)>>,
}

pub(crate) type Numbers = RowReader<Box<dyn Read + Send>>;
pub(crate) type Answers = RowWriter<Box<dyn Write + Send>>;

/// A worker has done all that it was asked for: nothing is left to commit.
#[derive(Debug, thiserror::Error)]
#[error("a worker commits nothing")]
struct AllWorked;

impl Worker {
    #[must_use]
    pub(crate) fn task(&self) -> &Task {
        &self.order.task
    }

    /// Calls `work` for all that is asked for, with what takes its rows. The error that it returns ends the stage.
    pub(crate) fn each(&self, mut work: impl FnMut(u32, &mut Answers) -> Result<()>) -> Result<()> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (numbers, mut answers) = asked.context("a worker was asked twice")?;
        numbers.numbers(|number| work(number, &mut answers))?;
        answers.finish()?;
        Err(AllWorked.into())
    }

    /// Works on shards.
    pub(super) fn shards(&self, work: impl Fn(u32) -> Result<Parcel>) -> Result<()> {
        self.each(|shard, answers| {
            for section in work(shard)?.into_sections() {
                let bucket = i32::try_from(shard)?;
                answers.write(BucketRow { bucket, table: &section.table, rows: &section.rows })?;
            }
            Ok(())
        })
    }
}

/// What workers are told of a pass.
pub(crate) fn order(folder: &PassFolder) -> Result<Order> {
    Ok(folder.load(ORDER)?)
}

/// Does what a pass asks for, as a worker.
pub(crate) fn work(graph: Graph, pipeline: &Pipeline, folder: PassFolder, asked: (Numbers, Answers)) -> Result<()> {
    let order = order(&folder)?;
    let room = Workroom::make()?;
    let root = &pipeline.corpus.store;
    let store = Store::open(root)?.with_context(|| format!("no store in {}", root.display()))?;
    let store = store.working_in(room.path());
    let index = Index::open_to_read(&store.index_folder())?;
    let task = order.task.clone();
    let mut done = inventory::ingested(&store)?;
    done.retain(|night| (night.time, &night.snapshot) < (task.snapshot.time, &task.snapshot.id));
    let of = order.pass.stage();
    let stage = graph.stages().iter().find(|stage| stage.id() == of).context("no such stage")?;
    let view = store.for_stage(of, stage.reads(), stage.writes());
    let (forced, asked) = (order.forced, Mutex::new(Some(asked)));
    let worker = Worker { folder, order, asked };
    let context = Context {
        pipeline,
        store: &view,
        index: &index,
        progress: Progress::new(false),
        asked: Asked::default(),
        forced,
        hands: Hands::Worker(&worker),
    };
    match stage.run(&context, &task, &done) {
        Err(error) if error.is::<AllWorked>() => Ok(()),
        Err(error) => Err(error),
        Ok(_) => anyhow::bail!("the pass has no shards to work on"),
    }
}
