//! Equal evidence is learned once.
//!
//! Pages of one crawl often change in the same nights, and then their histories are equal. What is learned from a history
//! depends on the source's name through its phases alone, and on these only where they were asked for: so sources with
//! equal histories are learned together, parted by the phases that made a difference.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::model::Digest;
use crate::model::maps::HashMap;
use crate::schedule::History;
use crate::schedule::uniform::NamePhase;

/// A source to learn from.
pub(super) struct Lesson<'a> {
    pub history: &'a History,
    /// Of the history.
    pub evidence: Digest,
    /// So many polls are asked for.
    pub polls: Option<usize>,
}

/// What `learn` gives for each lesson, in their order; it must not look at the source's name.
pub(super) fn learn_once<T: Clone + Send>(
    lessons: &[Lesson<'_>],
    learn: impl Fn(&Lesson<'_>, &NamePhase) -> T + Sync,
) -> Vec<T> {
    let mut alike: HashMap<(Digest, Option<usize>), Vec<usize>> = HashMap::default();
    for (i, lesson) in lessons.iter().enumerate() {
        alike.entry((lesson.evidence, lesson.polls)).or_default().push(i);
    }
    let learned: Vec<Vec<(usize, T)>> = alike
        .into_values()
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(|alike| together(lessons, &alike, &learn))
        .collect();
    let mut learned: Vec<(usize, T)> = learned.into_iter().flatten().collect();
    learned.sort_unstable_by_key(|(i, _)| *i);
    learned.into_iter().map(|(_, learned)| learned).collect()
}

/// Of lessons that differ in the name only.
fn together<T: Clone + Send>(
    lessons: &[Lesson<'_>],
    alike: &[usize],
    learn: &(impl Fn(&Lesson<'_>, &NamePhase) -> T + Sync),
) -> Vec<(usize, T)> {
    let Some((&first, rest)) = alike.split_first() else { return Vec::new() };
    let phase = |i: usize| NamePhase::of(&lessons[i].history.source);
    let first_phase = phase(first);
    let learned = learn(&lessons[first], &first_phase);
    if rest.is_empty() {
        return vec![(first, learned)];
    }
    let asked = first_phase.asked();
    let phases = |i: usize| {
        let phase = phase(i);
        asked.iter().map(|slots| phase.at(*slots)).collect::<Vec<usize>>()
    };
    let mut others: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
    for &i in rest {
        others.entry(phases(i)).or_default().push(i);
    }
    let same = others.remove(&phases(first)).unwrap_or_default();
    let mut found: Vec<(usize, T)> = same.into_iter().map(|i| (i, learned.clone())).collect();
    found.push((first, learned));
    found.par_extend(others.into_par_iter().flat_map_iter(|(_, alike)| together(lessons, &alike, learn)));
    found
}
