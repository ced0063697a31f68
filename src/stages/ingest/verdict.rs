//! What a snapshot is as a whole, decided between reading and assembling it: which of its captures are suspect, and
//! whether the crawl came to its end. It follows from the URLs captured, from what is known of them and from counts, never
//! from a clock or from the rows themselves.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::assemble::UnknownPages;
use super::known::Known;
use super::read::{AskingRevisit, Seen, SeenText};
use super::source::Source;
use super::spill::Spilled;
use crate::captures::suspect::{Member, of_group, was_like_that};
use crate::captures::{CaptureNote, NotedText, SpilledAt, SpilledCapture};
use crate::config::guard::Guard;
use crate::manifests::Ingested;
use crate::model::maps::{HashMap, HashSet};
use crate::model::{Coverage, Digest, Loss, Problem, Reject, Suspect};
use crate::run::stage::{Context, Task};
use crate::store::Store;
use crate::store::manifest::Manifest;
use crate::store::texts::ShardReader;
use crate::tables::ingest::{Capture, Head};
use crate::tables::record::Table as _;

/// A text that fewer URLs of a host have tells nothing.
const FEWEST: usize = 3;
/// With fewer pages known, some that are missing tell nothing.
const LEAST_KNOWN: u64 = 20;

/// The suspects among the captures of a snapshot, beyond those that show it on their face.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Suspects {
    captures: HashMap<SpilledAt, Suspect>,
    /// What archives stated of suspects: a revisit of one is suspect too.
    digests: HashMap<String, Suspect>,
}

impl Suspects {
    /// Looks at captures that have a weak sign, and at texts that several URLs of a host have.
    pub(super) fn find(store: &Store, seen: &mut Seen, spilled: &Spilled, known: Known<'_>) -> Result<Self> {
        let mut suspects = Self::default();
        suspects.confirm_signs(store, seen, spilled, known)?;
        suspects.look_at_groups(seen, spilled, known)?;
        for (at, suspect) in &suspects.captures {
            let note = spilled.note(*at)?;
            seen.says_nothing(&note.url);
            suspects.digests.extend(note.archive_digest.map(|digest| (digest, *suspect)));
        }
        suspects.digests.extend(std::mem::take(&mut seen.suspect_digests));
        // What is no page holds no content that others could refer to.
        seen.by_archive_digest.retain(|digest, _| !suspects.digests.contains_key(digest));
        Ok(suspects)
    }

    /// Notes in captures what was found out about them.
    pub(super) fn mark(&self, captures: &mut [SpilledCapture]) {
        if self.captures.is_empty() && self.digests.is_empty() {
            return;
        }
        for SpilledCapture { note, at } in captures {
            let of_revisit =
                || note.revisit.as_ref().and(note.archive_digest.as_ref()).and_then(|d| self.digests.get(d));
            note.suspect = note.suspect.or_else(|| self.captures.get(at).or_else(of_revisit).copied());
        }
    }

    /// A weak sign counts where the URL had another text, without the sign.
    fn confirm_signs(&mut self, store: &Store, seen: &Seen, spilled: &Spilled, known: Known<'_>) -> Result<()> {
        let mut notes = Vec::new();
        for (at, sign) in &seen.signs {
            notes.push((*at, *sign, spilled.note(*at)?));
        }
        let heads = known.heads(&notes.iter().map(|(.., note)| note.url.clone()).collect())?;
        notes.sort_by(|(.., a), (.., b)| a.url.cmp(&b.url));
        for (at, sign, note) in notes {
            let Some(head) = heads.get(&note.url) else { continue };
            if text_of(&note) != Some(head.page.content.text_digest) && !looked_like_that(store, head, sign)? {
                self.captures.insert(at, sign);
            }
        }
        Ok(())
    }

    fn look_at_groups(&mut self, seen: &mut Seen, spilled: &Spilled, known: Known<'_>) -> Result<()> {
        let mut texts = std::mem::take(&mut seen.texts);
        // A revisit stands for the text of the capture that holds its digest.
        for AskingRevisit { host, digest, at, .. } in &seen.revisits {
            let holder = digest.as_ref().and_then(|digest| seen.by_archive_digest.get(digest)?.text);
            texts.extend(holder.map(|(text, bytes)| SeenText { host: *host, text, bytes, at: *at }));
        }
        texts.sort_unstable();
        for group in texts.chunk_by(|a, b| (a.host, a.text) == (b.host, b.text)) {
            if group.len() < FEWEST {
                continue;
            }
            let (text, bytes) = (group[0].text, group[0].bytes);
            let urls: Vec<String> = group.iter().map(|seen| Ok(spilled.note(seen.at)?.url)).collect::<Result<_>>()?;
            let heads = known.heads(&urls.iter().cloned().collect())?;
            let old =
                |url: &String| heads.get(url).map(|head| (head.page.content.text_digest, head.page.content.text_bytes));
            // A URL that was captured twice counts once.
            let once: HashSet<&String> = urls.iter().collect();
            let members: Vec<Member> = once.into_iter().map(|url| Member { old: old(url) }).collect();
            let Some(suspect) = of_group(text, bytes, &members) else { continue };
            for (seen, url) in group.iter().zip(&urls) {
                if old(url).is_none_or(|(old, _)| old != text) {
                    self.captures.entry(seen.at).or_insert(suspect);
                }
            }
        }
        Ok(())
    }
}

fn text_of(note: &CaptureNote) -> Option<Digest> {
    match &note.text {
        NotedText::Parsed(facts) => Some(facts.text_digest),
        _ => None,
    }
}

fn looked_like_that(store: &Store, head: &Head, sign: Suspect) -> Result<bool> {
    let page = &head.page;
    let mut reader = ShardReader::new(store, store.shard_of(&page.url));
    let text = reader.texts(&[(&page.url, &page.text_snapshot)])?.pop().unwrap_or_default();
    Ok(was_like_that(sign, page.content.title.as_deref(), &text))
}

/// What a person should look at. One event is one problem: a file that is cut is not also told as rejects, nor as the
/// pages that are missing because of it. `alive`: pages before tonight.
pub(super) fn problems(
    manifest: &Manifest<Ingested>,
    seen: &Seen,
    guard: &Guard,
    alive: u64,
    unknown: UnknownPages,
) -> Vec<Problem> {
    #[expect(clippy::cast_precision_loss, reason = "shares of counts")]
    let exceeds = |count: u64, share: f64, of: u64| count as f64 > share * of as f64;
    let summary = &manifest.summary;
    let captures = manifest.rows(Capture::NAME);
    // Files that are cut; where pages are missing, also those with a hole.
    let holes = summary.incomplete && summary.missing > 0;
    let is_cut = |reject: &&Reject| reject.lost == Loss::Rest || (holes && reject.lost == Loss::Captures);
    let cut: Vec<&Reject> = seen.rejects.iter().filter(is_cut).collect();
    let mut problems = Vec::new();
    if summary.unusable {
        let reason = seen.rejects.first().map_or("no capture in it", |reject| &reject.reason);
        problems.push(Problem::UnusableFolder { reason: reason.to_owned() });
    } else {
        let rejects = (seen.rejects.len() - cut.len()) as u64;
        if exceeds(rejects, guard.max_reject_share, captures + rejects) {
            problems.push(Problem::Rejects { rejects, captures });
        }
        if let Some(first) = cut.first() {
            let files = distinct_files(cut.iter().map(|reject| reject.source_file.as_str()).collect());
            problems.push(Problem::CutArchive { files, first: first.source_file.clone() });
        } else if summary.incomplete || summary.accepted {
            problems.push(Problem::MissingPages { missing: summary.missing, of: alive });
        }
    }
    if exceeds(summary.changes.suspects, guard.max_suspect_share, captures) {
        problems.push(Problem::Suspects { suspects: summary.changes.suspects, captures });
    } else if summary.changes.suspects > 0 {
        let (id, suspects) = (&manifest.snapshot, summary.changes.suspects);
        log::warn!("snapshot {id}: {suspects} captures are no pages though the server says so; see captures.suspect");
    }
    problems.extend(unknown.first.map(|first| Problem::UnknownPages { urls: unknown.urls, first }));
    problems
}

/// How many files these are. An archive within a file is not counted beside that file.
fn distinct_files(mut names: Vec<&str>) -> u64 {
    names.sort_unstable();
    let lies_in =
        |name: &str, file: &str| name.strip_prefix(file).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    names.dedup_by(|name, file| lies_in(name, file));
    names.len() as u64
}

/// What a snapshot is as a whole.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) suspects: Suspects,
    /// Pages known of which a full crawl says nothing.
    pub(super) missing: u64,
    /// Files that end in the middle or cannot be read.
    pub(super) cut_files: u64,
    /// Nothing could be read at all.
    pub(super) unusable: bool,
    /// Absence of a URL says nothing.
    pub(super) incomplete: bool,
    /// It would be incomplete, were it not for somebody who says that the site shrank.
    pub(super) accepted: bool,
}

impl Verdict {
    /// `before`: the snapshot before; of the rest, what was read of this one and what is known of URLs.
    pub(super) fn fall(
        context: &Context<'_>,
        task: &Task,
        source: &Source<'_>,
        coverage: Coverage,
        before: Option<&Ingested>,
        (seen, spilled, known): (&mut Seen, &Spilled, Known<'_>),
    ) -> Result<Self> {
        let suspects = match before {
            Some(_) => Suspects::find(context.store, seen, spilled, known)?,
            None => Suspects::default(),
        };
        let may_be_empty = seen.rejects.is_empty() && source.may_be_empty(context.pipeline.corpus.coverage);
        let (cut_files, unusable) = (seen.cut_files(), seen.captures == 0 && !may_be_empty);
        let alive = before.map_or(0, |before| before.alive);
        let missing = match coverage {
            Coverage::Full => alive.saturating_sub(seen.living_heard_of()),
            Coverage::Partial => 0,
        };
        let allowed = context.pipeline.guard.max_deleted_share;
        #[expect(clippy::cast_precision_loss, reason = "a share of counts")]
        let shrank = alive >= LEAST_KNOWN && missing as f64 > allowed * alive as f64;
        let accepted = shrank && context.store.accepted()?.contains(&task.snapshot.id);
        // A hole matters only where something is missing that may have been in it.
        let holes = missing > 0 && seen.rejects.iter().any(|reject| reject.lost == Loss::Captures);
        let cut_files = cut_files + u64::from(holes);
        let incomplete = cut_files > 0 || unusable || (shrank && !accepted);
        Ok(Self { suspects, missing, cut_files, unusable, incomplete, accepted })
    }
}
