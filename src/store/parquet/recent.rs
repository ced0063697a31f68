//! Rows that were written a moment ago, kept in memory: the stages of a run read what earlier ones wrote, and need not
//! decode it again.
//!
//! What is kept is exactly what the file holds, row group by row group, so that nobody can tell where rows come from. All
//! that is kept shares one room of bounded size; a row group that finds none is read from its file. What was kept first
//! goes first.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;

use crate::store::memory::Identity;

/// The rows of each file, the latest last.
type Files = VecDeque<(Identity, Arc<RecentRows>)>;

/// Rows of files by the files' identity, which renaming them does not change.
#[derive(Clone)]
pub(crate) struct Shelf {
    bytes: usize,
    room: Room,
    files: Arc<Mutex<Files>>,
}

impl Shelf {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { bytes, room: Room::new(bytes), files: Arc::default() }
    }

    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, file: Identity, rows: RecentRows) {
        if rows.groups.iter().any(Option::is_some) {
            self.files().push_back((file, Arc::new(rows)));
        }
    }

    /// What is kept of a file.
    pub(crate) fn find(&self, file: Identity) -> Option<Arc<RecentRows>> {
        self.files().iter().rev().find(|(known, _)| *known == file).map(|(_, rows)| Arc::clone(rows))
    }

    /// Makes room for what a stage is about to write: half of it all. Says whether anything had to go.
    pub(crate) fn make_room(&self) -> bool {
        let (mut files, mut left) = (self.files(), self.room.left());
        let before = files.len();
        while left < self.bytes / 2 {
            let Some((_, rows)) = files.pop_front() else { break };
            left += rows.bytes();
        }
        files.len() < before
    }
}

/// Bytes that all kept rows may take together.
#[derive(Clone)]
pub(super) struct Room {
    left: Arc<AtomicUsize>,
}

impl Room {
    fn new(bytes: usize) -> Self {
        Self { left: Arc::new(AtomicUsize::new(bytes)) }
    }

    fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// Room for so many bytes, if there is as much; it is free again when what is returned is dropped.
    fn take(&self, bytes: usize) -> Option<Taken> {
        let enough = |left: usize| left.checked_sub(bytes);
        self.left.try_update(Ordering::Relaxed, Ordering::Relaxed, enough).ok()?;
        Some(Taken { bytes, left: Arc::clone(&self.left) })
    }

    /// Keeps a batch, if there is room for it.
    pub(super) fn keep(&self, batch: &RecordBatch, bytes: usize) -> Option<KeptBatch> {
        Some(KeptBatch { taken: self.take(bytes)?, batch: batch.clone() })
    }
}

struct Taken {
    bytes: usize,
    left: Arc<AtomicUsize>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// A batch that takes room.
pub(super) struct KeptBatch {
    taken: Taken,
    batch: RecordBatch,
}

/// The rows of a partition by row group, as far as they are kept.
#[derive(Default)]
pub(crate) struct RecentRows {
    groups: Vec<Option<Vec<KeptBatch>>>,
}

impl RecentRows {
    fn bytes(&self) -> usize {
        self.groups.iter().flatten().flatten().map(|kept| kept.taken.bytes).sum()
    }

    /// Adds the next row group; `None` if it is not kept.
    pub(super) fn push(&mut self, group: Option<Vec<KeptBatch>>) {
        self.groups.push(group);
    }

    /// The rows at ascending `ranges`, counted over these row groups, with these columns (all without): batches, and which of
    /// their rows are meant. `None` if not all of them are kept.
    pub(super) fn rows(
        &self,
        groups: &[usize],
        ranges: &[Range<usize>],
        columns: Option<&[&str]>,
    ) -> Option<Vec<(RecordBatch, Vec<Range<usize>>)>> {
        let kept: Vec<&Vec<KeptBatch>> =
            groups.iter().map(|&group| self.groups.get(group)?.as_ref()).collect::<Option<_>>()?;
        let mut found = Vec::new();
        let mut ranges = ranges.iter().cloned().peekable();
        let mut before = 0;
        for batch in kept.into_iter().flatten().map(|kept| &kept.batch) {
            let end = before + batch.num_rows();
            let mut inside = Vec::new();
            while let Some(range) = ranges.peek_mut().filter(|range| range.start < end) {
                inside.push(range.start - before..range.end.min(end) - before);
                if range.end > end {
                    range.start = end;
                    break;
                }
                ranges.next();
            }
            if !inside.is_empty() {
                found.push((project(batch, columns), inside));
            }
            before = end;
        }
        Some(found)
    }
}

fn project(batch: &RecordBatch, columns: Option<&[&str]>) -> RecordBatch {
    let Some(columns) = columns else { return batch.clone() };
    let schema = batch.schema();
    let wanted = |(i, field): (usize, &Arc<arrow_schema::Field>)| columns.contains(&field.name().as_str()).then_some(i);
    let indices: Vec<usize> = schema.fields().iter().enumerate().filter_map(wanted).collect();
    batch.project(&indices).expect("these columns are there")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_back() {
        let room = Room::new(10);
        let first = room.take(7).unwrap();
        assert!(room.take(4).is_none());
        let second = room.take(3).unwrap();
        assert_eq!(room.left(), 0);
        drop(first);
        assert_eq!(room.left(), 7);
        drop(second);
        assert_eq!(room.left(), 10);
    }
}
