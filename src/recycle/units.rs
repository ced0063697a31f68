//! Extractors that see one line or one paragraph at a time.
//!
//! The caller cuts, so that what is found in a unit depends on the unit's bytes and on nothing else. Neither margins nor
//! regions are needed. A unit of the new page that the old page has anywhere is copied from there; equal units of the new page
//! are extracted once.

use std::collections::HashMap;

use super::{Old, Recycled};
use crate::extract::mention::{Found, offset};
use crate::extract::reach::Cut;
use crate::extract::{Failure, Runner};
use crate::model::Span;

/// The units of a text: lines without their line feed, or paragraphs, which are runs of lines that are not blank. Units
/// of white space only are left out, because there is nothing in them to ask about.
pub(super) fn units(text: &str, cut: Cut) -> Vec<Span> {
    let mut units: Vec<Span> = Vec::new();
    let mut start = 0;
    let mut in_paragraph = false;
    for line in text.split('\n') {
        let end = start + line.len();
        let blank = line.trim().is_empty();
        if !blank {
            match units.last_mut() {
                Some(last) if in_paragraph => last.end = offset(end),
                _ => units.push(Span::new(offset(start), offset(end))),
            }
        }
        in_paragraph = cut == Cut::Paragraphs && !blank;
        start = end + 1;
    }
    units
}

pub(crate) fn recycle(runner: &mut dyn Runner, old: Option<Old<'_>>, new: &str, cut: Cut) -> Result<Recycled, Failure> {
    let mut known: HashMap<&str, Span> = HashMap::new();
    if let Some(old) = old {
        for span in units(old.text, cut).into_iter().rev() {
            // Of equal units the first is inserted last, so that it stays.
            known.insert(&old.text[span.range()], span);
        }
    }
    let mut found = Vec::new();
    let mut asked: HashMap<&str, usize> = HashMap::new();
    let mut slices = Vec::new();
    let mut waiting = Vec::new();
    for span in units(new, cut) {
        let text = &new[span.range()];
        if let (Some(old), Some(source)) = (old, known.get(text)) {
            let shift = i64::from(span.start) - i64::from(source.start);
            let first = old.mentions.partition_point(|mention| mention.start < source.start);
            for (index, mention) in (0..).zip(old.mentions).skip(first) {
                if mention.start >= source.end {
                    break;
                }
                found.push(Found { mention: mention.shifted(shift), source: Some(index) });
            }
            continue;
        }
        let slice = *asked.entry(text).or_insert_with(|| {
            slices.push(span);
            slices.len() - 1
        });
        waiting.push((span, slice));
    }
    let answers = if slices.is_empty() { Vec::new() } else { runner.run(new, &slices)? };
    for (span, slice) in waiting {
        let shift = i64::from(span.start) - i64::from(slices[slice].start);
        found.extend(answers[slice].iter().map(|mention| Found::extracted(mention.shifted(shift))));
    }
    found.sort_by(|a, b| a.mention.cmp(&b.mention));
    let bytes_extracted = slices.iter().map(|slice| u64::from(slice.len())).sum();
    Ok(Recycled { found, bytes_extracted, ..Recycled::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_paragraphs() {
        let text = "a\nb\r\n\n \nc\n";
        let of = |cut| units(text, cut).iter().map(|span| &text[span.range()]).collect::<Vec<_>>();
        assert_eq!(of(Cut::Lines), ["a", "b\r", "c"]);
        assert_eq!(of(Cut::Paragraphs), ["a\nb\r", "c"]);
        assert_eq!(units("", Cut::Lines), []);
    }
}
