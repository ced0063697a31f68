//! One page, tried: its units, what is sent of them and what is found. Nothing is written, and nothing is kept.

use anyhow::{Context as _, Result, bail};

use super::answers::Asker;
use super::live::{Live, LiveExtractor, Making};
use super::rows;
use super::shown::Beside;
use crate::config::Pipeline;
use crate::extract::llm::{Client, Trouble};
use crate::extract::reach::Sees;
use crate::extract::traits::Finds;
use crate::extract::units::units;
use crate::extract::{Extractor, Mention, Question, Record};
use crate::model::Span;
use crate::recycle::scratch;
use crate::report::tried::{Sent, TriedExtractor, TriedMention, TriedPage, TriedUnit};
use crate::store::Store;
use crate::store::answers::AnswerLog;
use crate::store::texts::ShardReader;
use crate::tables::ingest::{Page, PageTitle};

/// Tries the extractors of a pipeline, or the one named, on the newest version of a page.
pub(crate) fn try_page(pipeline: &Pipeline, store: &Store, url: &str, only: Option<&str>) -> Result<TriedPage> {
    let newest = store.manifests::<crate::manifests::Ingested>()?.pop();
    let newest = newest
        .with_context(|| format!("no snapshot is ingested yet; run `ratoon run {}` first", pipeline.path.display()))?;
    let snapshot = newest.snapshot;
    let page = store.pages_at(&snapshot)?.of_url::<Page>(store, url)?.pop();
    let Some(page) = page.map(|placed| placed.row) else {
        let pipeline = pipeline.path.display();
        bail!("no page {url} in snapshot {snapshot}; `ratoon urls {pipeline} WORDS` lists those there are");
    };
    let mut reader = ShardReader::new(store, store.shard_of(url));
    let text = reader.texts(&[(url, &page.text_snapshot)])?.pop().unwrap_or_default();
    let beside = Beside::from(PageTitle { url: url.to_owned(), title: page.title });
    let live = Live::new(pipeline)?;
    let is_asked = |live: &LiveExtractor| only.is_none_or(|only| *live.name == *only);
    // Whoever a record that is asked for is made of has to be tried too.
    let parts: Vec<usize> =
        live.all.iter().filter(|live| is_asked(live)).flat_map(LiveExtractor::parts).copied().collect();
    let mut tried: Vec<Option<TriedExtractor>> = Vec::new();
    let mut found: Vec<Option<Vec<Mention>>> = Vec::new();
    for (i, live) in live.all.iter().enumerate() {
        let (page, mentions) = match live.extractor().filter(|_| is_asked(live) || parts.contains(&i)) {
            Some(extractor) => {
                let log = store.answers_to_read(&live.name)?;
                let mut trial = Trial { live, extractor, log: &log, client: None };
                let (page, mentions) = trial.page(url, &text, &beside)?;
                (Some(page), mentions)
            }
            None => (None, None),
        };
        tried.push(page);
        found.push(mentions);
    }
    for (i, one) in live.all.iter().enumerate().filter(|(_, live)| is_asked(live)) {
        if let Making::Joins { record, parts } = &one.making {
            tried[i] = Some(joined(&live, one, (record, parts), &found, url, &text));
        }
    }
    let extractors =
        live.all.iter().zip(tried).filter(|(live, _)| is_asked(live)).filter_map(|(_, tried)| tried).collect();
    Ok(TriedPage { url: url.to_owned(), snapshot, bytes: text.len() as u64, extractors })
}

/// A record of a page, made of what was found there just now.
fn joined(
    all: &Live,
    live: &LiveExtractor,
    (record, parts): (&Record, &[usize]),
    found: &[Option<Vec<Mention>>],
    url: &str,
    text: &str,
) -> TriedExtractor {
    let mut unit = TriedUnit { sent: Sent::Joined, ..TriedUnit::of(0, text) };
    let lists: Result<Vec<&[Mention]>, usize> = parts.iter().map(|&part| found[part].as_deref().ok_or(part)).collect();
    match lists {
        Ok(lists) => {
            let joined = record.join(text, &lists);
            let mentions: Vec<Mention> = joined.records.into_iter().map(|joined| joined.mention).collect();
            unit.mentions = shown(live, &mentions, 0, text, url);
            unit.error =
                joined.capped.then(|| format!("more than {} records; the rest is left out", record.max_records()));
        }
        Err(part) => unit.error = Some(format!("its part '{}' has no mentions", all.all[part].name)),
    }
    TriedExtractor {
        name: live.name.to_string(),
        kind: "record",
        made_of: record.extractors().to_vec(),
        units: vec![unit],
    }
}

struct Trial<'a> {
    live: &'a LiveExtractor,
    extractor: &'a Extractor,
    log: &'a AnswerLog,
    client: Option<Client>,
}

impl Trial<'_> {
    /// The page as it was tried, and all mentions on it in their order, unless some part of it failed.
    fn page(&mut self, url: &str, text: &str, beside: &Beside) -> Result<(TriedExtractor, Option<Vec<Mention>>)> {
        let name = self.live.name.to_string();
        let kind = self.extractor.kind().as_str();
        let tried = |units| TriedExtractor { name, kind, made_of: Vec::new(), units };
        let Finds::ByAsking(Sees::Units(cut)) = self.extractor.finds() else {
            // It sees the page, or any part of it.
            let found = scratch(self.extractor, &mut self.live.runner(), text);
            let unit = TriedUnit::of(0, text);
            return Ok(match found {
                Ok(page) => {
                    let found: Vec<Mention> = page.found.into_iter().map(|found| found.mention).collect();
                    let mentions = shown(self.live, &found, 0, text, url);
                    (tried(vec![TriedUnit { mentions, ..unit }]), Some(found))
                }
                Err(failure) => (tried(vec![TriedUnit { error: Some(failure.to_string()), ..unit }]), None),
            });
        };
        let mut cut_up = Vec::new();
        let mut found = Some(Vec::new());
        for unit in units(text, cut) {
            let [before, own, after] = unit.texts(text);
            let question = Question { text: own, before, after, ..beside.of(self.live.along, url) };
            let (unit, mentions) = self.unit(unit.span, &question, text, url)?;
            cut_up.push(unit);
            found = found.zip(mentions).map(|(mut found, mentions)| {
                found.extend(mentions);
                found
            });
        }
        if let Some(found) = &mut found {
            found.sort();
        }
        Ok((tried(cut_up), found))
    }

    /// A unit, and the mentions in it by their places on the page.
    fn unit(
        &mut self,
        span: Span,
        question: &Question<'_>,
        text: &str,
        url: &str,
    ) -> Result<(TriedUnit, Option<Vec<Mention>>)> {
        let key = Asker { extractor: self.extractor, fingerprint: self.live.fingerprint }.key(question);
        let mut unit = TriedUnit::of(span.start, question.text);
        let request = self.live.model().map(|model| model.request(question));
        unit.request = request.as_ref().map(|request| request.body().to_owned());
        let kept = if self.extractor.keeps_answers() { self.log.get(key)? } else { None };
        let said = match (kept, request, self.live.model()) {
            (Some(kept), ..) => {
                unit.sent = Sent::Kept;
                Ok(kept.said)
            }
            (None, Some(request), Some(model)) => {
                if self.client.is_none() {
                    let problem = |problem| anyhow::anyhow!("extractor '{}': {problem}", self.live.name);
                    self.client = Some(Client::new(model.spec()).map_err(problem)?);
                }
                let reply = self.client.as_ref().context("a client")?.ask(&request);
                reply.map(|reply| reply.content).map_err(|trouble| match trouble {
                    Trouble::Busy { why, .. } | Trouble::Bad { why, .. } | Trouble::Refused(why) => why,
                })
            }
            (None, ..) => {
                let mut runner = self.live.runner();
                let answer = crate::extract::Runner::answer(&mut runner, &[*question]);
                answer.map_err(|failure| failure.to_string()).map(|mut given| given.pop().unwrap_or_default().said)
            }
        };
        match said.and_then(|said| {
            let read = self.extractor.read(&said, question.text).map_err(|failure| failure.to_string())?;
            Ok((said, read))
        }) {
            Ok((said, read)) => {
                unit.mentions = shown(self.live, &read.mentions, span.start, text, url);
                unit.refused = read.refused;
                unit.answer = Some(said);
                let placed = read.mentions.iter().map(|mention| mention.shifted(span.start.into())).collect();
                Ok((unit, Some(placed)))
            }
            Err(problem) => Ok((TriedUnit { error: Some(problem), ..unit }, None)),
        }
    }
}

/// Mentions for people, `start` bytes further on.
fn shown(live: &LiveExtractor, mentions: &[Mention], start: u32, text: &str, url: &str) -> Vec<TriedMention> {
    let none = crate::model::SnapshotId::new("none").expect("a name");
    let url = url.into();
    let mention = |mention: &Mention| {
        let placed = mention.shifted(start.into());
        let row = rows::row(live, &placed, &url, text, false, none.clone());
        let names = live.schema.attributes.iter().map(|(name, _)| name.clone());
        let values = row.attributes.iter().map(|value| {
            value.as_ref().map(|pieces| pieces.iter().map(|piece| piece.text.clone()).collect::<Vec<_>>())
        });
        let attributes = names.zip(values).filter_map(|(name, value)| Some((name, value?))).collect();
        TriedMention { start: placed.start, end: placed.end, text: row.text, attributes }
    };
    mentions.iter().map(mention).collect()
}
