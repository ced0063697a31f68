//! The tables of a night: shards come in order, whoever extracted them, and what they took is summed up.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::Result;

use super::adopting;
use super::answers::Answers;
use super::costs::{self, CostsBy};
use super::job::Job;
use super::known::Known;
use super::live::{Live, LiveExtractor};
use super::output::{AskedPage, Output};
use super::shard::extract_shard;
use super::sharing::Sharing;
use crate::extract::{Status, Works};
use crate::manifests::{Costs, Matched, Planned};
use crate::model::{Digest, Snapshot, StageId};
use crate::plan::Served;
use crate::plan::model::Speed;
use crate::run::hands::{Hands, Pass};
use crate::run::shards::{self, Handing, Shards};
use crate::run::stage::Context;
use crate::store::answers::KeptAnswer;
use crate::store::manifest::Manifest;
use crate::store::parquet::{GROUP_ROWS, Written};
use crate::store::staging::Staging;
use crate::tables::extract::{AnswerRow, AwayRow, Extraction, MentionDelta, answers_of};
use crate::tables::mentions::{MentionRow, mentions_of};
use crate::tables::plan::PlanCost;
use crate::tables::record::{Record as _, Table as _};

/// What was written, and what it cost.
pub(super) struct Made<'a> {
    pub(super) tables: BTreeMap<String, Written>,
    /// By extractor.
    pub(super) costs: Vec<CostsBy>,
    pub(super) read: Speed,
    /// By extractor, mentions that the pages worked on had before, and those that went.
    pub(super) old_mentions: Vec<i64>,
    /// By extractor, pages that have what another definition found, and of those worked on, how many had.
    pub(super) older: Vec<(u64, u64)>,
    /// By extractor, pages that it failed on and had not failed on before.
    pub(super) failed_anew: Vec<u64>,
    /// By extractor, why it failed first.
    pub(super) errors: Vec<Option<String>>,
    pub(super) staging: Staging<'a>,
}

/// Extracts shards in parallel, a few at a time, and writes them in order.
pub(super) fn write<'a>(
    context: &Context<'a>,
    job: &Job<'_>,
    sharing: &Sharing,
    (planned, matched): (&Manifest<Planned>, &Manifest<Matched>),
    asking_s: f64,
) -> Result<Made<'a>> {
    let store = context.store;
    let snapshot = Snapshot { id: job.snapshot.clone(), time: planned.time };
    let mut staging = store.stage(StageId::Extract, &snapshot)?;
    let mut extractions = staging.writer::<Extraction>()?;
    let mut deltas = staging.writer::<MentionDelta>()?;
    let mut mentions = Vec::new();
    for live in &job.live.all {
        mentions.push(staging.batch_writer(&mentions_of(&live.name), live.schema.arrow())?);
    }
    let mut costs = vec![CostsBy::new(); job.live.all.len()];
    let mut read = Speed::default();
    let mut old_mentions = vec![0; job.live.all.len()];
    let mut failed_anew = vec![0; job.live.all.len()];
    let mut older = vec![(0, 0); job.live.all.len()];
    let mut errors: Vec<Option<String>> = vec![None; job.live.all.len()];
    let bar = context.progress.count(&format!("extract {}", job.snapshot), store.shards().into());
    let mut sent: Vec<HashSet<Digest>> = vec![HashSet::new(); job.live.all.len()];
    let take = |shard, mut output: Output| {
        count_shared(&mut output, &mut sent);
        extractions.write(shard, &output.extractions)?;
        deltas.write(shard, &output.deltas)?;
        for (i, (writer, live)) in mentions.iter_mut().zip(&job.live.all).enumerate() {
            for batch in live.schema.encode_all(&output.mentions[i], job.whole[i], GROUP_ROWS) {
                writer.write(shard, batch)?;
            }
        }
        match &output.known {
            Some(known) => job.known.take(shard, known, &output.gone)?,
            None => job.known.advance(shard, job.snapshot, &output.extractions, &output.gone)?,
        }
        for row in output.extractions.iter().filter(|row| row.error.is_some()) {
            let at = job.live.all.iter().position(|live| live.name == row.extractor);
            if let Some(first) = at.map(|at| &mut errors[at]).filter(|first| first.is_none()) {
                first.clone_from(&row.error);
            }
        }
        read.add(output.read);
        old_mentions.iter_mut().zip(&output.old_mentions).for_each(|(sum, more)| *sum += more);
        failed_anew.iter_mut().zip(&output.failed_anew).for_each(|(sum, more)| *sum += more);
        adopting::add(&mut older, &output);
        for (sums, more) in costs.iter_mut().zip(output.costs) {
            more.into_iter().for_each(|(served, more)| *sums.entry(served).or_default() += more);
        }
        Ok(())
    };
    let context = &Context { hands: if sharing.is_shared() { context.hands } else { Hands::Own }, ..*context };
    let handing = &Handing {
        pack: |output: Output| output.pack(job),
        unpack: |shard, parcel| sharing.join(job, shard, Output::unpack(parcel, job.live)?),
    };
    let work = |shard| {
        let output = extract_shard(job, shard)?;
        // What cannot be kept is not asked, so that what was found lacks it.
        job.live.all.iter().filter_map(LiveExtractor::answers).try_for_each(Answers::check)?;
        Ok(output)
    };
    let shards = Shards::new(store.shards(), Some(&bar));
    let is_waited_for = job.live.all.iter().any(|live| live.traits.works == Works::Elsewhere);
    let shards = if is_waited_for { shards.all_at_once() } else { shards };
    shards::handed(context, Pass::Extract, shards, work, handing, take)?;
    let answer_tables = write_answers(job.live, &mut staging, &mut costs)?;
    share_asking(job.live, &mut costs, asking_s);
    let mut plan_costs = staging.writer::<PlanCost>()?;
    plan_costs.write(0, &costs::cost_rows(job.live, &costs, &planned.summary, &matched.summary))?;
    let all_whole = job.whole.iter().all(|whole| *whole);
    let mut tables = BTreeMap::from([
        (PlanCost::NAME.to_owned(), plan_costs.finish()?.slim()),
        (Extraction::NAME.to_owned(), extractions.finish()?.whole_if(all_whole)),
        (MentionDelta::NAME.to_owned(), deltas.finish()?.slim()),
    ]);
    tables.extend(answer_tables);
    for ((writer, live), whole) in mentions.into_iter().zip(&job.live.all).zip(&job.whole) {
        tables.insert(mentions_of(&live.name), writer.finish()?.whole_if(*whole));
    }
    Ok(Made { tables, costs, read, old_mentions, older, failed_anew, errors, staging })
}

/// What is known of pages that are away, for a base.
pub(super) fn write_away(context: &Context<'_>, job: &Job<'_>, staging: &mut Staging<'_>) -> Result<Written> {
    let mut away = staging.writer::<AwayRow>()?;
    let after_tonight = context.index.moment();
    let known = Known { before: &after_tonight, ..job.known };
    shards::written(&mut away, job.store.shards(), |shard| known.away(shard, job.snapshot))?;
    Ok(away.finish()?)
}

/// Writes what was asked for in this snapshot; what it came to is added to the costs.
fn write_answers(live: &Live, staging: &mut Staging<'_>, costs: &mut [CostsBy]) -> Result<BTreeMap<String, Written>> {
    let mut tables = BTreeMap::new();
    for (live, costs) in live.all.iter().zip(costs) {
        let Some(answers) = live.answers() else { continue };
        answers.finish()?;
        let rows = answer_rows(answers.tonight()?, costs.entry(Served::None).or_default());
        let mut writer = staging.batch_writer(&answers_of(&live.name), AnswerRow::schema())?;
        for part in rows.chunks(GROUP_ROWS) {
            writer.write(0, AnswerRow::encode(part))?;
        }
        tables.insert(answers_of(&live.name), writer.finish()?.slim());
    }
    Ok(tables)
}

/// What several pages of a snapshot share was sent once: it counts for the first of them, and the others have it copied.
/// Shards come in order.
fn count_shared(output: &mut Output, sent: &mut [HashSet<Digest>]) {
    for AskedPage { extractor: i, extraction, rows, units } in &output.asked {
        let extraction = &mut output.extractions[*extraction];
        let costs = output.costs[*i].entry(extraction.matcher).or_default();
        let mut here: HashMap<Digest, bool> = HashMap::new();
        for (_, key) in units {
            here.entry(*key).or_insert_with(|| sent[*i].insert(*key));
        }
        let mut counted = HashSet::new();
        for (span, key) in units {
            let bytes = u64::from(span.len());
            if here[key] && counted.insert(*key) {
                extraction.bytes_extracted += i64::from(span.len());
                costs.bytes_extracted += bytes;
                costs.lower_bound += bytes;
            }
            if here[key] {
                continue;
            }
            let inside = |row: &&mut MentionRow| i64::from(span.start) <= row.start && row.start < i64::from(span.end);
            for row in output.mentions[*i].rows[rows.clone()].iter_mut().filter(inside).filter(|row| !row.copied) {
                row.copied = true;
                extraction.copied += 1;
                costs.copied += 1;
                costs.extracted = costs.extracted.saturating_sub(1);
            }
        }
    }
}

/// Models were asked ahead of all pages: the time belongs to the pages that most was sent of.
fn share_asking(live: &Live, costs: &mut [CostsBy], asking_s: f64) {
    let models = live.all.iter().filter(|live| live.model().is_some()).count();
    for (_, costs) in live.all.iter().zip(costs).filter(|(live, _)| live.model().is_some()) {
        if let Some(most) = costs.values_mut().max_by_key(|costs| costs.bytes_extracted) {
            #[expect(clippy::cast_precision_loss, reason = "a handful")]
            let share = asking_s / models as f64;
            most.extract_s += share;
        }
    }
}

/// What was asked for in a snapshot, as rows; what it came to is added to the costs.
fn answer_rows(asked: Vec<(Digest, bool, KeptAnswer)>, costs: &mut Costs) -> Vec<AnswerRow> {
    let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let mut rows = Vec::with_capacity(asked.len());
    for (request, good, kept) in asked {
        costs.requests += u64::from(kept.attempts);
        costs.input_tokens += kept.input_tokens.unwrap_or(0);
        costs.output_tokens += kept.output_tokens.unwrap_or(0);
        costs.price += kept.price.unwrap_or(0.0);
        rows.push(AnswerRow {
            request,
            url: kept.url.into(),
            unit_digest: kept.unit,
            unit_bytes: count(kept.bytes),
            answer: kept.said,
            input_tokens: kept.input_tokens.map(count),
            output_tokens: kept.output_tokens.map(count),
            price: kept.price,
            attempts: kept.attempts.into(),
            seconds: kept.seconds,
            status: if good { Status::Ok } else { Status::Failed },
        });
    }
    rows
}
