//! What `ingest` would read from a folder and what it would reject, without writing anything.
//!
//! The same readers and the same judgement (`judge`), but bodies are only decoded, not parsed, and nothing is
//! kept of a capture except counts.

use std::path::{Path, PathBuf};

use anyhow::Result;
use jiff::tz::TimeZone;

use super::drain::{Sink, drain};
use super::{read_body, without_credentials};
use crate::archive::{Layout, SnapshotFolder, file_id, list_snapshots};
use crate::captures::{Answer, judge, media_type};
use crate::inspect::{Count, Inspected, InspectedSnapshot, Inspection, Looked, PathKind, Sight, Tally};
use crate::model::{RawCapture, Reject, SnapshotId, Timestamp};
use crate::run::progress::Progress;
use crate::text::url;

/// How to look.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub layout: Layout,
    pub time_zone: TimeZone,
    /// Remember every reject, not only their number by reason.
    pub keep_rejects: bool,
}

/// Looks at everything below a path. What the path leads to is told by a look at it, unless the caller knows.
pub(crate) fn inspect(path: &Path, kind: Option<PathKind>, look: &Look, progress: Progress) -> Result<Inspected> {
    let kind = kind.unwrap_or_else(|| kind_of(path, look));
    let (snapshots, total) = match kind {
        PathKind::File | PathKind::Snapshot => {
            let (looked, tally) = inspect_snapshot(path, "", None, None, look, progress)?;
            let name = looked.id.as_ref().map_or_else(|| name_of(path), ToString::to_string);
            (vec![InspectedSnapshot { name, looked: Ok(looked) }], tally.inspection())
        }
        PathKind::Snapshots => inspect_snapshots(list_snapshots(path)?, look, progress),
    };
    Ok(Inspected { path: path.to_owned(), kind, snapshots, total })
}

/// A folder named by a time is a snapshot; one that holds folders named by times is a folder of snapshots; of other
/// folders with folders in them, those that cannot be read as a snapshot but whose folders can.
fn kind_of(path: &Path, look: &Look) -> PathKind {
    if path.is_file() {
        return PathKind::File;
    }
    let states_time = |id: &SnapshotId| id.stated_time(&look.time_zone).is_some();
    if id_of(path).is_some_and(|id| states_time(&id)) {
        return PathKind::Snapshot;
    }
    let Ok(folders) = list_snapshots(path) else { return PathKind::Snapshot };
    if folders.iter().any(|(id, _)| states_time(id)) {
        return PathKind::Snapshots;
    }
    let is_snapshot = |path: &Path| SnapshotFolder::open(path, look.layout).is_ok();
    if !is_snapshot(path) && folders.iter().any(|(_, folder)| is_snapshot(folder)) {
        return PathKind::Snapshots;
    }
    PathKind::Snapshot
}

/// Looks at several snapshots; one that cannot be read does not stop the others.
fn inspect_snapshots(
    folders: Vec<(SnapshotId, PathBuf)>,
    look: &Look,
    progress: Progress,
) -> (Vec<InspectedSnapshot>, Inspection) {
    let mut snapshots = Vec::new();
    let mut total = Tally::new(look.keep_rejects);
    // A page counts in every snapshot that has it, so that these are sums and not what all together hold.
    let (mut pages, mut pages_by_repeat) = (0, 0);
    let mut previous = None;
    for (id, path, time) in in_order(folders, look) {
        let name = id.to_string();
        let prefix = format!("{name}/");
        let looked = time.and_then(|time| inspect_snapshot(&path, &prefix, time, previous, look, progress));
        let looked = looked.map(|(looked, tally)| {
            previous = looked.time.or(previous);
            pages += looked.found.pages.count;
            pages_by_repeat += looked.found.pages_by_repeat;
            total.merge(tally);
            looked
        });
        snapshots.push(InspectedSnapshot { name, looked: looked.map_err(|error| format!("{error:#}")) });
    }
    let total = Inspection { pages: Count { count: pages, exact: true }, pages_by_repeat, ..total.inspection() };
    (snapshots, total)
}

/// Snapshots with the times that `ingest` would give them, in its order; those that cannot be opened come last.
fn in_order(folders: Vec<(SnapshotId, PathBuf)>, look: &Look) -> Vec<(SnapshotId, PathBuf, Result<Option<Timestamp>>)> {
    let timed = |(id, path): (SnapshotId, PathBuf)| {
        let time = match id.stated_time(&look.time_zone) {
            Some(time) => Ok(Some(time)),
            None => SnapshotFolder::newest_capture(&path, look.layout).map_err(Into::into),
        };
        (id, path, time)
    };
    let mut timed: Vec<_> = folders.into_iter().map(timed).collect();
    let key =
        |time: &Result<Option<Timestamp>>| time.as_ref().ok().copied().flatten().map_or(i64::MAX, Timestamp::micros);
    timed.sort_by(|a, b| (key(&a.2), &a.0).cmp(&(key(&b.2), &b.0)));
    timed
}

/// Reads a snapshot to its end. `prefix` is put before the names of files in rejects; `previous` is the time of the
/// snapshot before it.
fn inspect_snapshot(
    path: &Path,
    prefix: &str,
    time: Option<Timestamp>,
    previous: Option<Timestamp>,
    look: &Look,
    progress: Progress,
) -> Result<(Looked, Tally)> {
    let folder = SnapshotFolder::open(path, look.layout)?;
    let id = id_of(path);
    let stated = id.as_ref().and_then(|id| id.stated_time(&look.time_zone));
    let known = stated.or(time).or_else(|| folder.newest_modified());
    let bar = progress.bytes(&format!("look at {}", name_of(path)), folder.bytes());
    let without_status = folder.without_status();
    let counter = || Counter { tally: Tally::new(look.keep_rejects), prefix, without_status };
    let mut drained = drain(folder.split_readers(previous, known, rayon::current_num_threads()), counter, &bar)?;
    if drained.misread {
        drained = drain(folder.readers(previous, known), counter, &bar)?;
    }
    let mut tally = Tally::new(look.keep_rejects);
    for counter in drained.sinks {
        tally.merge(counter.tally);
    }
    for reject in folder.rejects() {
        tally.reject(shown(reject.clone(), prefix));
    }
    drop(bar);
    let time = known.or_else(|| tally.newest());
    tally.date(time);
    let looked = Looked {
        layout: folder.layout_names(),
        why: if look.layout == Layout::Auto { folder.evidence() } else { "as asked for".to_owned() },
        files: folder.files().len() as u64,
        bytes: folder.bytes(),
        id,
        time,
        time_stated: stated.is_some(),
        remarks: folder.remarks().to_vec(),
        doubts: folder.doubts().to_vec(),
        found: tally.inspection(),
    };
    Ok((looked, tally))
}

struct Counter<'a> {
    tally: Tally,
    prefix: &'a str,
    without_status: &'static str,
}

impl Sink for Counter<'_> {
    fn captures(&mut self, batch: Vec<(RawCapture, u64)>) -> Result<()> {
        batch.into_iter().for_each(|(raw, _)| self.count(raw));
        Ok(())
    }

    fn reject(&mut self, reject: Reject) {
        self.tally.reject(shown(reject, self.prefix));
    }
}

impl Counter<'_> {
    fn count(&mut self, mut raw: RawCapture) {
        let (tally, prefix) = (&mut self.tally, self.prefix);
        let Some(judged) = judge(&mut raw, false, read_body, |reject| tally.reject(shown(reject, prefix))) else {
            return;
        };
        let answer = Answer::of(raw.status);
        let repeats = raw.revisit.is_some() || answer == Answer::AsBefore;
        let content_type = raw.content_type.as_deref().and_then(media_type);
        tally.capture(&Sight {
            url: &judged.url,
            host: url::host(&judged.url),
            record: match () {
                () if raw.revisit.is_some() => "revisit",
                () if raw.status.is_some() => "response",
                () => self.without_status,
            },
            status: raw.status,
            content_type: content_type.as_deref(),
            fetched_at: raw.fetched_at,
            last_modified: raw.last_modified.is_some(),
            etag: raw.etag.is_some(),
            payload_bytes: judged.payload.as_ref().map_or(0, |bytes| bytes.len() as u64),
            is_text: judged.is_text,
            is_repeat: repeats && !judged.broken && answer.is_good(),
        });
    }
}

/// A reject as it is shown.
fn shown(mut reject: Reject, prefix: &str) -> Reject {
    reject.source_file.insert_str(0, prefix);
    reject.url = reject.url.as_deref().map(without_credentials);
    reject
}

/// As `ingest` names it: a folder by its name, a file by its name without what makes it the name of an archive.
fn id_of(path: &Path) -> Option<SnapshotId> {
    let name = name_of(path);
    let id = if path.is_file() { file_id(&name)? } else { &name };
    SnapshotId::new(id).ok()
}

/// The last name of a path, also of `.` and `a/..`.
fn name_of(path: &Path) -> String {
    let named = path.file_name().map(ToOwned::to_owned);
    let real = || std::path::absolute(path).ok().and_then(|path| path.file_name().map(ToOwned::to_owned));
    named.or_else(real).unwrap_or_default().to_string_lossy().into_owned()
}
