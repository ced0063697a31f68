//! `ratoon show URL PIPELINE`: a page against its old version.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::json;

use super::outcome::{Outcome, Usage};
use super::{Options, open_store, output, snapshot_id};
use crate::config::Pipeline;
use crate::deltas::segments::{Comparison, SegmentKind};
use crate::manifests::Ingested;
use crate::matching::{MatcherKind, Scratch};
use crate::model::{SnapshotId, Span, Timestamp};
use crate::report::compare::{self, Marks};
use crate::report::side_by_side::{self, Mark, Side};
use crate::stages::matching::DEFAULT_MIN_REGION;
use crate::store::texts::ShardReader;
use crate::store::{Store, files};
use crate::tables::extract::{MentionSpan, mentions_of};
use crate::tables::ingest::Page;

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The page's URL, as the table pages has it
    url: String,
    /// The pipeline file
    pipeline: PathBuf,
    /// The snapshot to look at [default: the newest that has the page]
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    snapshot: Option<SnapshotId>,
    /// The snapshot to compare with [default: where the page was last seen before]
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    against: Option<SnapshotId>,
    /// Do not shorten what stayed the same
    #[arg(long)]
    whole: bool,
    /// Write both versions side by side, with mentions, to one HTML file that needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn show(args: &ShowArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let store = open_store(&pipeline)?;
    let url =
        crate::stages::normalise(&args.url, &pipeline).map_err(|error| Usage(format!("{}: {error}", args.url)))?;
    let ids: Vec<SnapshotId> = store.manifests::<Ingested>()?.into_iter().map(|manifest| manifest.snapshot).collect();
    for asked in [&args.snapshot, &args.against].into_iter().flatten() {
        if !ids.contains(asked) {
            let known = ids.iter().map(SnapshotId::as_str).collect::<Vec<_>>().join(", ");
            bail!(Usage(format!("no snapshot {asked} in the store; there are {known}")));
        }
    }
    let (snapshot, page) = match &args.snapshot {
        Some(id) => (id.clone(), store.page(id, &url)?.with_context(|| format!("no page {url} in snapshot {id}"))?),
        None => newest(&store, &ids, &url)?,
    };
    // By default against its old page, which may be another URL's, if that has not been pruned.
    let (old_url, against) = match &args.against {
        Some(id) => (&url, Some(id.clone())),
        None => (page.moved_from.as_ref().unwrap_or(&url), page.old_snapshot.clone().filter(|id| ids.contains(id))),
    };
    let old = match &against {
        Some(id) => Some(store.page(id, old_url)?.with_context(|| format!("no page {old_url} in snapshot {id}"))?),
        None => None,
    };
    let text = |page: &Page| -> anyhow::Result<String> {
        let mut reader = ShardReader::new(&store, store.shard_of(&page.url));
        Ok(reader.texts(&[(&page.url, &page.text_snapshot)])?.pop().unwrap_or_default())
    };
    let new_text = text(&page)?;
    let old_text = old.as_ref().map_or_else(|| Ok(String::new()), text)?;
    let mut regions = Vec::new();
    MatcherKind::Anchor.regions(&old_text, &new_text, DEFAULT_MIN_REGION, &mut Scratch::new(), &mut regions);
    let comparison = Comparison::new(u32::try_from(old_text.len())?, u32::try_from(new_text.len())?, &regions);

    if let Some(file) = &args.html {
        let sides = Sides { store: &store, pipeline: &pipeline };
        let old_mentions = match (&against, &old) {
            (Some(id), Some(old)) => sides.mentions(id, &old.url)?,
            _ => Vec::new(),
        };
        let new_mentions = sides.mentions(&snapshot, &url)?;
        let old_id = against.as_ref().map_or("", SnapshotId::as_str);
        let old_side = old.as_ref().map(|page| side(page, old_id, &old_text, &old_mentions));
        let new_side = side(&page, snapshot.as_str(), &new_text, &new_mentions);
        let html = side_by_side::render(old_side.as_ref(), &new_side, &comparison, args.whole);
        files::write(file, html.as_bytes()).with_context(|| format!("cannot write {}", file.display()))?;
        if options.json {
            return output::json(&json!({"url": url, "snapshot": snapshot, "against": against, "html": file}));
        }
        if options.quiet {
            return Ok(Outcome::Done);
        }
        return output::text(&format!("{}\n", file.display()));
    }
    if options.json {
        let segments: Vec<_> = comparison
            .segments
            .iter()
            .map(|s| {
                let old_start = (s.kind != SegmentKind::New).then_some(s.old_start);
                json!({"kind": s.kind.as_str(), "start": s.span.start, "end": s.span.end, "old_start": old_start, "text": &new_text[s.span.range()]})
            })
            .collect();
        let deleted: Vec<_> = comparison
            .deleted
            .iter()
            .map(|span| json!({"start": span.start, "end": span.end, "text": &old_text[span.range()]}))
            .collect();
        return output::json(&json!({
            "url": url, "snapshot": snapshot, "against": against, "title": page.title, "change": page.change,
            "moved_from": page.moved_from, "segments": segments, "deleted": deleted,
        }));
    }
    let mut out = format!("{url}\n");
    if let Some(title) = &page.title {
        let _ = writeln!(out, "title     {title}");
    }
    let _ = writeln!(out, "snapshot  {snapshot}: {}", page.change);
    if let Some(from) = &page.moved_from {
        let _ = writeln!(out, "moved     from {from}");
    }
    match &against {
        Some(against) => {
            let deleted: u64 = comparison.deleted.iter().map(|span| u64::from(span.len())).sum();
            let [kept, moved, new] =
                [SegmentKind::Kept, SegmentKind::Moved, SegmentKind::New].map(|kind| comparison.bytes(kind));
            let _ =
                writeln!(out, "against   {against}: {kept} bytes kept, {moved} moved, {new} new, {deleted} deleted");
        }
        None => {
            let why =
                if page.old_snapshot.is_some() { "its old version was pruned" } else { "there is no earlier version" };
            let _ = writeln!(out, "against   nothing: {why}");
        }
    }
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colours = std::io::stdout().is_terminal() && !no_colour;
    let marks = if colours { Marks::Colours } else { Marks::Brackets };
    out.push('\n');
    out.push_str(&compare::render(&old_text, &new_text, &comparison, marks, args.whole));
    output::text(&out)
}

/// The newest snapshot that has the page.
fn newest(store: &Store, ids: &[SnapshotId], url: &str) -> anyhow::Result<(SnapshotId, Page)> {
    for id in ids.iter().rev() {
        if let Some(page) = store.page(id, url)? {
            return Ok((id.clone(), page));
        }
    }
    bail!("no page {url} in any snapshot; the table pages lists those there are")
}

/// A page as the HTML file shows it.
fn side<'a>(page: &'a Page, snapshot: &'a str, text: &'a str, mentions: &'a [(String, Span)]) -> Side<'a> {
    let time = |time: Option<Timestamp>| time.map_or_else(|| "unknown".to_owned(), |time| time.to_string());
    Side {
        url: &page.url,
        snapshot,
        title: page.title.as_deref(),
        text,
        facts: vec![
            ("fetched", time(page.fetched_at)),
            ("last modified", time(page.last_modified)),
            ("type", page.content_type.clone().unwrap_or_else(|| "unknown".to_owned())),
            ("text digest", page.text_digest.to_string()),
            ("content digest", page.content_digest.to_string()),
        ],
        mentions: mentions.iter().map(|(extractor, span)| Mark { extractor, span: *span }).collect(),
    }
}

struct Sides<'a> {
    store: &'a Store,
    pipeline: &'a Pipeline,
}

impl Sides<'_> {
    /// The mentions of all extractors on a page.
    fn mentions(&self, snapshot: &SnapshotId, url: &str) -> anyhow::Result<Vec<(String, Span)>> {
        let mut mentions = Vec::new();
        for extractor in &self.pipeline.extractors {
            let name = &extractor.config.name;
            let Some(partition) = self.store.partition_if_there(&mentions_of(name), snapshot)? else { continue };
            for row in partition.shard::<MentionSpan>(self.store.shard_of(url))? {
                if *row.url == *url && row.start <= row.end {
                    let span = Span::new(u32::try_from(row.start)?, u32::try_from(row.end)?);
                    mentions.push((name.clone(), span));
                }
            }
        }
        Ok(mentions)
    }
}
