//! What an archive is, what would be read from it and what rejected.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::terminal::{count, one_line, size, table};
use crate::inspect::{Count, Inspected, InspectedSnapshot, Inspection, Looked, PathKind, Ranking};
use crate::model::Reject;

#[must_use]
pub(crate) fn inspected_json(inspected: &Inspected) -> Value {
    let snapshot = |snapshot: &InspectedSnapshot| match &snapshot.looked {
        Ok(looked) => snapshot_json(looked),
        Err(error) => json!({ "id": snapshot.name, "error": error }),
    };
    let snapshots: Vec<Value> = inspected.snapshots.iter().map(snapshot).collect();
    let found = &inspected.total;
    let total = json!({
        "captures": found.captures, "urls": found.urls.count, "pages": found.pages.count,
        "pages_by_repeat": found.pages_by_repeat, "rejects": found.rejects.count,
    });
    json!({ "path": inspected.path, "what": inspected.kind, "snapshots": snapshots, "total": total })
}

fn snapshot_json(looked: &Looked) -> Value {
    let time_source = looked.time.map(|_| if looked.time_stated { "name" } else { "newest capture" });
    json!({
        "id": looked.id, "time": looked.time.map(|time| time.to_string()), "time_source": time_source,
        "layout": looked.layout, "why": looked.why, "files": looked.files, "bytes": looked.bytes,
        "remarks": looked.remarks, "doubts": looked.doubts, "found": looked.found,
    })
}

/// As text. With `all_rejects`, every reject has a line, if they were kept.
#[must_use]
pub(crate) fn inspected(inspected: &Inspected, all_rejects: bool) -> String {
    match (inspected.kind, inspected.snapshots.as_slice()) {
        (PathKind::File | PathKind::Snapshot, [InspectedSnapshot { looked: Ok(looked), .. }]) => {
            one(inspected, looked, all_rejects)
        }
        _ => several(inspected, all_rejects),
    }
}

fn one(inspected: &Inspected, looked: &Looked, all_rejects: bool) -> String {
    let mut text = format!("{}\n", inspected.path.display());
    line(&mut text, "layout", &format!("{} ({})", looked.layout, looked.why));
    line(&mut text, "snapshot", &id_and_time(inspected, looked));
    line(&mut text, "files", &format!("{}, {}", looked.files, size(looked.bytes)));
    counts(&mut text, &looked.found);
    rejects(&mut text, &looked.found, all_rejects);
    for remark in &looked.remarks {
        line(&mut text, "left out", remark);
    }
    for doubt in &looked.doubts {
        line(&mut text, "doubt", doubt);
    }
    text
}

fn several(inspected: &Inspected, all_rejects: bool) -> String {
    let mut text =
        format!("{}: a folder of {}\n", inspected.path.display(), count(inspected.snapshots.len() as u64, "snapshot"));
    let header = ["snapshot", "time", "layout", "files", "size", "captures", "urls", "pages", "rejects"];
    let mut rows: Vec<Vec<String>> = inspected.snapshots.iter().map(row).collect();
    rows.push(total_row(inspected));
    text.push_str(&table(&header, &rows));
    counts(&mut text, &inspected.total);
    rejects(&mut text, &inspected.total, all_rejects);
    for snapshot in &inspected.snapshots {
        let Ok(looked) = &snapshot.looked else { continue };
        for said in looked.remarks.iter().chain(&looked.doubts) {
            line(&mut text, "remark", &format!("{}: {said}", snapshot.name));
        }
    }
    text
}

fn row(snapshot: &InspectedSnapshot) -> Vec<String> {
    let cells = match &snapshot.looked {
        Ok(looked) => [
            looked.time.map_or_else(|| "unknown".to_owned(), |time| time.to_string()),
            looked.layout.clone(),
            looked.files.to_string(),
            size(looked.bytes),
            looked.found.captures.to_string(),
            number(looked.found.urls),
            match looked.found.pages_by_repeat {
                0 => number(looked.found.pages),
                more => format!("{} (+{more})", number(looked.found.pages)),
            },
            number(looked.found.rejects),
        ],
        Err(_) => ["unreadable", "-", "-", "-", "-", "-", "-", "-"].map(str::to_owned),
    };
    [snapshot.name.clone()].into_iter().chain(cells).collect()
}

fn total_row(inspected: &Inspected) -> Vec<String> {
    let (files, bytes) =
        inspected.readable().fold((0, 0), |(files, bytes), looked| (files + looked.files, bytes + looked.bytes));
    let found = &inspected.total;
    vec![
        "total".to_owned(),
        String::new(),
        String::new(),
        files.to_string(),
        size(bytes),
        found.captures.to_string(),
        number(found.urls),
        number(found.pages),
        number(found.rejects),
    ]
}

/// Its name as a snapshot, and its time with where that is from.
fn id_and_time(inspected: &Inspected, looked: &Looked) -> String {
    let time = match (looked.time, looked.time_stated) {
        (Some(time), true) => format!("time {time} by its name"),
        (Some(time), false) => format!("time {time} by its newest capture"),
        (None, _) => "no time: neither its name nor any capture states one; name it like 2024-03-01".to_owned(),
    };
    match &looked.id {
        Some(id) => format!("{id}, {time}"),
        None if inspected.kind == PathKind::File => format!("a single file; {time}"),
        None => format!(
            "'{}' cannot be an id (letters, digits, '.', '_' and '-' only), rename it; {time}",
            inspected.path.file_name().unwrap_or_default().to_string_lossy()
        ),
    }
}

fn counts(text: &mut String, found: &Inspection) {
    let records = found.records.iter().map(|(name, count)| format!("{count} {name}"));
    let records = records.collect::<Vec<_>>().join(", ");
    line(text, "captures", &format!("{} of {} URLs: {records}", found.captures, number(found.urls)));
    let mut statuses: Vec<_> = found.statuses.iter().collect();
    statuses.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let statuses: Vec<String> = statuses.into_iter().map(|(status, count)| format!("{status} × {count}")).collect();
    line(text, "status", &statuses.join(", "));
    line(text, "types", &ranking(&found.content_types));
    line(text, "hosts", &ranking(&found.hosts));
    if let Some([from, to]) = &found.fetched {
        let sources: Vec<String> =
            found.fetched_at_source.iter().map(|(source, count)| format!("{source} × {count}")).collect();
        line(text, "fetched", &format!("{from} to {to} (by {})", sources.join(", ")));
    }
    line(text, "headers", &format!("Last-Modified × {}, ETag × {}", found.with_last_modified, found.with_etag));
    let more = match found.pages_by_repeat {
        0 => String::new(),
        more => format!(", and {more} more if what revisits and 304s refer to is known"),
    };
    let decoded = size(found.payload_bytes);
    line(text, "pages", &format!("{}{more}; {decoded} of decoded bodies", number(found.pages)));
}

fn rejects(text: &mut String, found: &Inspection, all_rejects: bool) {
    let share = match found.rejects.count {
        0 => String::new(),
        _ => format!(" ({:.2} %)", found.reject_share * 100.0),
    };
    line(text, "rejects", &format!("{}{share}", number(found.rejects)));
    let all = found.all_rejects.as_ref().filter(|_| all_rejects);
    for reason in &found.reject_reasons {
        let first = &reason.first;
        let _ = match reason.count.count {
            // Each is listed below.
            1 if all.is_some() => Ok(()),
            n if all.is_some() => writeln!(text, "    {n} × {}", one_line(&reason.reason)),
            1 => writeln!(text, "    {}", where_and_why(first)),
            n => writeln!(text, "    {n} × {}; the first: {}", one_line(&reason.reason), where_and_why(first)),
        };
    }
    if let Some(all) = all {
        for reject in all {
            let url = reject.url.as_deref().map(|url| format!(" ({})", one_line(url))).unwrap_or_default();
            let _ = writeln!(text, "  rejected {}{url}", where_and_why(reject));
        }
    }
}

/// Why a snapshot without a capture has none, as far as its rejects tell.
#[must_use]
pub(crate) fn why_nothing(found: &Inspection) -> String {
    match found.reject_reasons.first() {
        Some(reason) => format!("{} ({} rejected)", where_and_why(&reason.first), found.rejects.count),
        None => "there is no response, revisit or resource of a web page in it".to_owned(),
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<9} {value}");
}

fn where_and_why(reject: &Reject) -> String {
    let at = reject.source_offset.map(|offset| format!(" at {offset}")).unwrap_or_default();
    one_line(&format!("{}{at}: {}", reject.source_file, reject.reason))
}

fn number(count: Count) -> String {
    if count.exact { count.count.to_string() } else { format!("~{}", count.count) }
}

fn ranking(ranking: &Ranking) -> String {
    let about = if ranking.error > 0 { "≥ " } else { "" };
    let most: Vec<String> =
        ranking.most.iter().map(|value| format!("{} × {about}{}", value.value, value.count)).collect();
    let told = ranking.most.len() as u64;
    let more = ranking.different.count.saturating_sub(told);
    match more {
        0 => most.join(", "),
        _ => format!("{}, and {more} more", most.join(", ")),
    }
}
