//! `ratoon inspect`: what an archive is, what would be read from it and what rejected. Writes nothing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::outcome::{Outcome, Usage};
use super::{Options, output};
use crate::archive::{Layout, list_snapshots};
use crate::config::DEFAULT_MAX_REJECT_SHARE;
use crate::inspect::{Count, Inspection, Ranking, Tally};
use crate::model::Reject;
use crate::stages::ingest::inspect::{Look, Looked, Place, in_order, inspect as look_at, place};

#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// A snapshot folder, a folder of snapshot folders, or an archive file
    path: PathBuf,
    #[arg(long, default_value = "auto", value_name = "LAYOUT")]
    #[arg(help = format!("How captures are held: auto looks; or {}", Layout::names()))]
    layout: Layout,
    /// What PATH is, if a look at it is not enough
    #[arg(long, value_enum, value_name = "WHAT")]
    r#as: Option<As>,
    /// Time zone of snapshot names
    #[arg(long, default_value = "UTC", value_name = "ZONE")]
    time_zone: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum As {
    /// One snapshot, whatever folders are in it
    Snapshot,
    /// A folder of snapshot folders
    Snapshots,
}

/// A snapshot of several, or why it cannot be read.
struct Line {
    name: String,
    looked: anyhow::Result<(Looked, Inspection)>,
}

pub(super) fn inspect(args: &InspectArgs, options: &Options) -> anyhow::Result<Outcome> {
    let Ok(time_zone) = TimeZone::get(&args.time_zone) else {
        bail!(Usage(format!("--time-zone: '{}' is not a time zone, such as UTC or Europe/Berlin", args.time_zone)));
    };
    let look = Look { layout: args.layout, time_zone, keep_rejects: options.verbose > 0 };
    let place = match args.r#as {
        None => place(&args.path, &look),
        Some(As::Snapshot) => Place::Snapshot,
        Some(As::Snapshots) => Place::Snapshots(list_snapshots(&args.path)?),
    };
    match place {
        Place::File | Place::Snapshot => one(args, &look, &place, options),
        Place::Snapshots(folders) => {
            let mut lines = Vec::new();
            let mut total = Tally::new(look.keep_rejects);
            let mut previous = None;
            for (id, path, time) in in_order(folders, &look) {
                let name = id.to_string();
                let looked = time
                    .and_then(|time| look_at(&path, &format!("{name}/"), time, previous, &look, options.progress()));
                let looked = looked.map(|mut looked| {
                    previous = looked.time.or(previous);
                    let found = looked.tally.inspection();
                    total.merge(std::mem::replace(&mut looked.tally, Tally::new(false)));
                    (looked, found)
                });
                lines.push(Line { name, looked });
            }
            many(&args.path, &lines, &total, options)
        }
    }
}

fn one(args: &InspectArgs, look: &Look, place: &Place, options: &Options) -> anyhow::Result<Outcome> {
    let looked = look_at(&args.path, "", None, None, look, options.progress())?;
    let found = looked.tally.inspection();
    if options.json {
        let what = if *place == Place::File { "file" } else { "snapshot" };
        let snapshot = snapshot_json(&looked, &found);
        output::json(&json!({ "path": args.path, "what": what, "snapshots": [snapshot], "total": totals(&found) }))?;
    } else {
        let mut text = format!("{}\n", args.path.display());
        line(&mut text, "layout", &format!("{} ({})", looked.layout, looked.why));
        line(&mut text, "snapshot", &snapshot_words(&looked, place, &args.path));
        line(&mut text, "files", &format!("{}, {}", looked.files, output::size(looked.bytes)));
        describe(&mut text, &found, options);
        for remark in &looked.remarks {
            line(&mut text, "left out", remark);
        }
        for doubt in &looked.doubts {
            line(&mut text, "doubt", doubt);
        }
        output::text(&text)?;
    }
    if found.captures == 0 {
        bail!("no usable capture in {}: {}", args.path.display(), first_reason(&found));
    }
    Ok(judge(found.rejects.count, found.reject_share > DEFAULT_MAX_REJECT_SHARE, options))
}

fn many(path: &Path, lines: &[Line], total: &Tally, options: &Options) -> anyhow::Result<Outcome> {
    let found = total.inspection();
    let readable = || lines.iter().filter_map(|line| line.looked.as_ref().ok());
    let pages: u64 = readable().map(|(_, found)| found.pages.count).sum();
    let pages_by_repeat: u64 = readable().map(|(_, found)| found.pages_by_repeat).sum();
    if options.json {
        let snapshot = |line: &Line| match &line.looked {
            Ok((looked, found)) => snapshot_json(looked, found),
            Err(error) => json!({ "id": line.name, "error": format!("{error:#}") }),
        };
        let snapshots: Vec<Value> = lines.iter().map(snapshot).collect();
        let mut total = totals(&found);
        total["pages"] = pages.into();
        total["pages_by_repeat"] = pages_by_repeat.into();
        output::json(&json!({ "path": path, "what": "snapshots", "snapshots": snapshots, "total": total }))?;
    } else {
        let mut text = format!("{}: a folder of {} snapshots\n", path.display(), lines.len());
        let header = ["snapshot", "time", "layout", "files", "size", "captures", "urls", "pages", "rejects"];
        let mut rows: Vec<Vec<String>> = lines.iter().map(row).collect();
        let (files, bytes) =
            readable().fold((0, 0), |(files, bytes), (looked, _)| (files + looked.files, bytes + looked.bytes));
        rows.push(
            ["total", "", "", &files.to_string(), &output::size(bytes), &found.captures.to_string()]
                .map(str::to_owned)
                .into_iter()
                .chain([number(found.urls), pages.to_string(), number(found.rejects)])
                .collect(),
        );
        text.push_str(&output::table(&header, &rows));
        let whole = Inspection { pages: Count { count: pages, exact: true }, pages_by_repeat, ..found.clone() };
        describe(&mut text, &whole, options);
        for (name, looked) in lines.iter().filter_map(|line| Some((&line.name, &line.looked.as_ref().ok()?.0))) {
            for said in looked.remarks.iter().chain(&looked.doubts) {
                line(&mut text, "remark", &format!("{name}: {said}"));
            }
        }
        output::text(&text)?;
    }
    if lines.is_empty() {
        bail!("no snapshot in {}: every folder below it is one, such as 2024-03-01", path.display());
    }
    let unusable = lines.iter().filter_map(|line| match &line.looked {
        Err(error) => Some((&line.name, format!("{error:#}"))),
        Ok((_, found)) if found.captures == 0 => Some((&line.name, first_reason(found))),
        Ok(_) => None,
    });
    let unusable: Vec<_> = unusable.collect();
    for (name, why) in &unusable {
        log::error!("snapshot {name} has no usable capture: {why}");
    }
    if let [(name, _), ..] = unusable.as_slice() {
        bail!("`ratoon run` would stop at snapshot {name}; hint: mend its folder or move it away");
    }
    let too_many = readable().any(|(_, found)| found.reject_share > DEFAULT_MAX_REJECT_SHARE);
    Ok(judge(found.rejects.count, too_many, options))
}

/// As a run would end.
fn judge(rejects: u64, too_many: bool, options: &Options) -> Outcome {
    if options.strict && rejects > 0 {
        log::error!("--strict: {rejects} would be rejected");
        return Outcome::Rejected;
    }
    if too_many {
        log::warn!("more than {} % would be rejected; -v lists all rejects", DEFAULT_MAX_REJECT_SHARE * 100.0);
        return Outcome::TooManyRejects;
    }
    Outcome::Done
}

fn first_reason(found: &Inspection) -> String {
    match found.reject_reasons.first() {
        Some(reason) => format!("{} ({} rejected)", where_and_why(&reason.first), found.rejects.count),
        None => "there is no response, revisit or resource of a web page in it".to_owned(),
    }
}

fn snapshot_json(looked: &Looked, found: &Inspection) -> Value {
    json!({
        "id": looked.id, "time": looked.time.map(|time| time.to_string()),
        "time_source": time_source(looked), "layout": looked.layout, "why": looked.why,
        "files": looked.files, "bytes": looked.bytes, "remarks": looked.remarks, "doubts": looked.doubts, "found": found,
    })
}

fn totals(found: &Inspection) -> Value {
    json!({
        "captures": found.captures, "urls": found.urls.count, "pages": found.pages.count,
        "pages_by_repeat": found.pages_by_repeat, "rejects": found.rejects.count,
    })
}

fn time_source(looked: &Looked) -> Option<&'static str> {
    looked.time.map(|_| if looked.time_stated { "name" } else { "newest capture" })
}

fn snapshot_words(looked: &Looked, place: &Place, path: &Path) -> String {
    let time = match (looked.time, looked.time_stated) {
        (Some(time), true) => format!("time {time} by its name"),
        (Some(time), false) => format!("time {time} by its newest capture"),
        (None, _) => "no time: neither its name nor any capture states one; name it like 2024-03-01".to_owned(),
    };
    match &looked.id {
        Some(id) => format!("{id}, {time}"),
        None if *place == Place::File => format!("a single file; {time}"),
        None => format!(
            "'{}' cannot be an id (letters, digits, '.', '_' and '-' only), rename it; {time}",
            path.file_name().unwrap_or_default().to_string_lossy()
        ),
    }
}

fn row(line: &Line) -> Vec<String> {
    let cells = match &line.looked {
        Ok((looked, found)) => [
            looked.time.map_or_else(|| "unknown".to_owned(), |time| time.to_string()),
            looked.layout.to_string(),
            looked.files.to_string(),
            output::size(looked.bytes),
            found.captures.to_string(),
            number(found.urls),
            match found.pages_by_repeat {
                0 => number(found.pages),
                more => format!("{} (+{more})", number(found.pages)),
            },
            number(found.rejects),
        ],
        Err(_) => ["unreadable", "-", "-", "-", "-", "-", "-", "-"].map(str::to_owned),
    };
    [line.name.clone()].into_iter().chain(cells).collect()
}

fn describe(text: &mut String, found: &Inspection, options: &Options) {
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
    let decoded = output::size(found.payload_bytes);
    line(text, "pages", &format!("{}{more}; {decoded} of decoded bodies", number(found.pages)));
    let share = match found.rejects.count {
        0 => String::new(),
        _ => format!(" ({:.2} %)", found.reject_share * 100.0),
    };
    line(text, "rejects", &format!("{}{share}", number(found.rejects)));
    for reason in &found.reject_reasons {
        let first = &reason.first;
        let _ = match reason.count.count {
            1 => writeln!(text, "    {}", where_and_why(first)),
            n => writeln!(text, "    {n} × {}; the first: {}", reason.reason, where_and_why(first)),
        };
    }
    if let (Some(all), true) = (&found.all_rejects, options.verbose > 0) {
        for reject in all {
            let url = reject.url.as_deref().map(|url| format!(" ({url})")).unwrap_or_default();
            let _ = writeln!(text, "  rejected {}{url}", where_and_why(reject));
        }
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<9} {value}");
}

fn where_and_why(reject: &Reject) -> String {
    let at = reject.source_offset.map(|offset| format!(" at {offset}")).unwrap_or_default();
    format!("{}{at}: {}", reject.source_file, reject.reason)
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
