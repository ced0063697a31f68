//! Extractors that see one unit at a time: a line, a block, a paragraph or the page.
//!
//! What is found in a unit depends on what is shown and on nothing else (`extract::units`). Neither margins nor regions
//! are needed. A unit of the new page that the old page has anywhere, with the same context, is copied from there; equal
//! units of the new page are asked about once.

use std::collections::HashMap;

use super::{Old, Recycled};
use crate::extract::mention::Found;
use crate::extract::reach::Cut;
use crate::extract::units::units;
use crate::extract::{Came, Failure, Question, Runner};
use crate::model::Span;

pub(crate) fn recycle(runner: &mut dyn Runner, old: Option<Old<'_>>, new: &str, cut: Cut) -> Result<Recycled, Failure> {
    let mut known: HashMap<[&str; 3], Span> = HashMap::new();
    if let Some(old) = old {
        for unit in units(old.text, cut).into_iter().rev() {
            // Of equal units the first is inserted last, so that it stays.
            known.insert(unit.texts(old.text), unit.span);
        }
    }
    let mut found = Vec::new();
    let mut asked: HashMap<[&str; 3], usize> = HashMap::new();
    let mut questions = Vec::new();
    let mut waiting = Vec::new();
    for unit in units(new, cut) {
        let texts = unit.texts(new);
        if let (Some(old), Some(source)) = (old, known.get(&texts)) {
            let shift = i64::from(unit.span.start) - i64::from(source.start);
            let first = old.mentions.partition_point(|mention| mention.start < source.start);
            for (index, mention) in (0..).zip(old.mentions).skip(first) {
                if mention.start >= source.end {
                    break;
                }
                found.push(Found { mention: mention.shifted(shift), source: Some(index) });
            }
            continue;
        }
        let question = *asked.entry(texts).or_insert_with(|| {
            let [before, text, after] = texts;
            questions.push(Question { text, before, after, ..Question::default() });
            questions.len() - 1
        });
        waiting.push((unit.span, question));
    }
    let answers = if questions.is_empty() { Vec::new() } else { runner.answer(&questions)? };
    let mut asked_about = Vec::with_capacity(waiting.len());
    for (span, question) in waiting {
        let answer = &answers[question];
        let placed = answer.mentions.iter().map(|mention| mention.shifted(span.start.into()));
        found.extend(placed.map(Found::extracted));
        asked_about.push((span, answer.came.clone()));
    }
    found.sort_by(|a, b| a.mention.cmp(&b.mention));
    // What several pages share is counted where all of them are known.
    let sent = questions.iter().zip(&answers).filter(|(_, answer)| answer.came == Came::Now);
    let bytes_extracted = sent.map(|(question, _)| question.text.len() as u64).sum();
    let refused = answers.iter().map(|answer| answer.refused).sum();
    Ok(Recycled { found, bytes_extracted, units: asked_about, refused, ..Recycled::default() })
}
