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
use crate::extract::{Failure, Question, Runner};
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
    for (span, question) in waiting {
        let placed = answers[question].mentions.iter().map(|mention| mention.shifted(span.start.into()));
        found.extend(placed.map(Found::extracted));
    }
    found.sort_by(|a, b| a.mention.cmp(&b.mention));
    let bytes_extracted = questions.iter().map(|question| question.text.len() as u64).sum();
    Ok(Recycled { found, bytes_extracted, ..Recycled::default() })
}
