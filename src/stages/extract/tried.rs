//! One page, tried: its units, what is sent of them and what is found. Nothing is written, and nothing is kept.

use anyhow::{Context as _, Result, bail};

use super::answers::Asker;
use super::live::{Live, LiveExtractor};
use super::rows;
use super::shown::Beside;
use crate::config::Pipeline;
use crate::extract::llm::{Client, Trouble};
use crate::extract::reach::Sees;
use crate::extract::traits::Finds;
use crate::extract::units::units;
use crate::extract::{Extractor, Mention, Question};
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
    let mut extractors = Vec::new();
    for live in live.all.iter().filter(|live| only.is_none_or(|only| *live.name == *only)) {
        let Some(extractor) = live.extractor() else { continue };
        let log = store.answers_to_read(&live.name)?;
        let mut trial = Trial { live, extractor, log: &log, client: None };
        extractors.push(trial.page(url, &text, &beside)?);
    }
    Ok(TriedPage { url: url.to_owned(), snapshot, bytes: text.len() as u64, extractors })
}

struct Trial<'a> {
    live: &'a LiveExtractor,
    extractor: &'a Extractor,
    log: &'a AnswerLog,
    client: Option<Client>,
}

impl Trial<'_> {
    fn page(&mut self, url: &str, text: &str, beside: &Beside) -> Result<TriedExtractor> {
        let name = self.live.name.to_string();
        let kind = self.extractor.kind().as_str();
        let Finds::ByAsking(Sees::Units(cut)) = self.extractor.finds() else {
            // It sees the page, or any part of it.
            let found = scratch(self.extractor, &mut self.live.runner(), text);
            let unit = match found {
                Ok(page) => {
                    let found: Vec<Mention> = page.found.into_iter().map(|found| found.mention).collect();
                    TriedUnit { mentions: self.shown(&found, 0, text, url), ..TriedUnit::of(0, text) }
                }
                Err(failure) => TriedUnit { error: Some(failure.to_string()), ..TriedUnit::of(0, text) },
            };
            return Ok(TriedExtractor { name, kind, units: vec![unit] });
        };
        let mut tried = Vec::new();
        for unit in units(text, cut) {
            let [before, own, after] = unit.texts(text);
            let question = Question { text: own, before, after, ..beside.of(self.live.along, url) };
            tried.push(self.unit(unit.span, &question, text, url)?);
        }
        Ok(TriedExtractor { name, kind, units: tried })
    }

    fn unit(&mut self, span: Span, question: &Question<'_>, text: &str, url: &str) -> Result<TriedUnit> {
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
                unit.mentions = self.shown(&read.mentions, span.start, text, url);
                unit.refused = read.refused;
                unit.answer = Some(said);
            }
            Err(problem) => unit.error = Some(problem),
        }
        Ok(unit)
    }

    /// Mentions for people, `start` bytes further on.
    fn shown(&self, mentions: &[Mention], start: u32, text: &str, url: &str) -> Vec<TriedMention> {
        let none = crate::model::SnapshotId::new("none").expect("a name");
        let url = url.into();
        let mention = |mention: &Mention| {
            let placed = mention.shifted(start.into());
            let row = rows::row(self.live, &placed, &url, text, false, none.clone());
            let names = self.live.schema.attributes.iter().map(|(name, _)| name.clone());
            let values = row.attributes.iter().map(|value| {
                value.as_ref().map(|pieces| pieces.iter().map(|piece| piece.text.clone()).collect::<Vec<_>>())
            });
            let attributes = names.zip(values).filter_map(|(name, value)| Some((name, value?))).collect();
            TriedMention { start: placed.start, end: placed.end, text: row.text, attributes }
        };
        mentions.iter().map(mention).collect()
    }
}
