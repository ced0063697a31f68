//! Is a command as local as it says? Definition 4 of the paper, made executable.
//!
//! A trial takes a window of a page, keeps it, replaces what is left and right of it, and extracts again. Every
//! mention whose own window lies inside the kept one must be there as before, and no other. (A page edge inside the
//! window is kept as an edge.) No single way of replacing finds every lie, so five take turns: random characters,
//! text of other pages, runs of the character at the window's edge, copies of mentions, and nothing at all.
//!
//! A true declaration never fails. A false one fails in a share of the trials that depends on the lie; `n` clean
//! trials leave a failing share of at most `3/n` possible at 95 %.

use super::verify::rule_of_three;
use crate::extract::command::{Offsets, Ruler};
use crate::extract::mention::offset;
use crate::extract::reach::Reach;
use crate::extract::{Failure, Mention, Question, Runner};
use crate::model::{Rng, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    Random,
    Splice,
    Run,
    Plant,
    Nothing,
}

impl Fill {
    pub(crate) const ALL: [Self; 5] = [Self::Splice, Self::Plant, Self::Run, Self::Random, Self::Nothing];

    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Random => "random characters",
            Self::Splice => "text of other pages",
            Self::Run => "runs of one character",
            Self::Plant => "copies of mentions",
            Self::Nothing => "nothing",
        }
    }
}

/// A trial that showed the declaration wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Index of the page.
    pub page: usize,
    /// What was kept, in bytes of the page.
    pub window: Span,
    pub fill: Fill,
    /// Mentions that vanished and that appeared when the outside changed.
    pub lost: u32,
    pub gained: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Audit {
    pub trials: u64,
    /// Mentions longer than the declared scope, on the pages as they are.
    pub too_long: u64,
    pub wrong: u64,
    /// The first few of them.
    pub violations: Vec<Violation>,
}

/// What an audit of one extractor found.
pub(crate) struct Audited {
    pub extractor: String,
    /// Scope, and context on the left and right, as declared; `None` of an extractor that sees units.
    pub declared: Option<(u32, u32, u32)>,
    pub audit: Audit,
    /// The smallest context that passes, the same on both sides; `None` if not even the largest tried does.
    pub smallest_context: Option<u32>,
}

const SHOWN: usize = 10;

impl Audit {
    #[must_use]
    pub(crate) fn passes(&self) -> bool {
        self.wrong == 0 && self.too_long == 0
    }

    /// The share of failing trials that a clean result leaves possible at 95 %.
    #[must_use]
    pub(crate) fn bound(&self) -> f64 {
        rule_of_three(self.trials)
    }
}

/// Does the answer about a unit depend on nothing but what is shown? Each unit is asked about again, after another one
/// drawn at random, and must be answered as the first time.
pub(crate) fn audit_units(
    runner: &mut dyn Runner,
    questions: &[Question<'_>],
    seed: u64,
    trials: u64,
) -> Result<Audit, Failure> {
    let mut audit = Audit::default();
    if questions.is_empty() {
        return Ok(audit);
    }
    let first = runner.answer(questions)?;
    for trial in 0..trials {
        let mut rng = Rng::of_round(seed, trial);
        let (before, which) = (rng.index(questions.len()), rng.index(questions.len()));
        let again = runner.answer(&[questions[before], questions[which]])?;
        audit.trials += 1;
        audit.wrong += u64::from(again[1].mentions != first[which].mentions);
    }
    Ok(audit)
}

/// Pages to draw from, with their mentions from scratch.
pub(crate) struct Auditor<'a> {
    pages: Vec<(&'a str, Vec<Mention>)>,
    /// (page, mention) of every mention.
    mentions: Vec<(usize, usize)>,
    characters: Vec<char>,
    offsets: Offsets,
}

impl<'a> Auditor<'a> {
    /// Extracts the pages once, whole.
    pub(crate) fn new(runner: &mut dyn Runner, offsets: Offsets, pages: &[&'a str]) -> Result<Self, Failure> {
        let mut extracted = Vec::new();
        for page in pages.iter().filter(|page| !page.is_empty()) {
            extracted.push((*page, whole(runner, page)?));
        }
        let every = |(page, (_, found)): (usize, &(&str, Vec<Mention>))| {
            (0..found.len()).map(|mention| (page, mention)).collect::<Vec<_>>()
        };
        let mentions = extracted.iter().enumerate().flat_map(every).collect();
        let mut characters: Vec<char> = extracted.iter().flat_map(|(page, _)| page.chars().take(10_000)).collect();
        characters.sort_unstable();
        characters.dedup();
        Ok(Self { pages: extracted, mentions, characters, offsets })
    }

    /// Runs `trials` trials of a declared reach; stops early after `enough` wrong ones.
    pub(crate) fn audit(
        &self,
        runner: &mut dyn Runner,
        reach: Reach,
        seed: u64,
        trials: u64,
        enough: u64,
    ) -> Result<Audit, Failure> {
        let mut audit = Audit::default();
        for (page, found) in &self.pages {
            let ruler = Ruler::new(page, self.offsets);
            let long = |m: &&Mention| ruler.units(m.end) - ruler.units(m.start) > reach.scope;
            audit.too_long += found.iter().filter(long).count() as u64;
        }
        if self.pages.is_empty() {
            return Ok(audit);
        }
        for round in 0..trials {
            let mut rng = Rng::of_round(seed, round);
            let fill = Fill::ALL[usize::try_from(round % 5).expect("below five")];
            audit.trials += 1;
            if let Some(violation) = self.trial(runner, reach, fill, &mut rng)? {
                audit.wrong += 1;
                if audit.violations.len() < SHOWN {
                    audit.violations.push(violation);
                }
                if audit.wrong >= enough {
                    break;
                }
            }
        }
        Ok(audit)
    }

    /// The smallest context, the same on both sides and at most `most`, that passes, by bisection; `None` if none does.
    pub(crate) fn smallest_context(
        &self,
        runner: &mut dyn Runner,
        scope: u32,
        most: u32,
        seed: u64,
        trials: u64,
    ) -> Result<Option<u32>, Failure> {
        let mut passes = |context: u32| -> Result<bool, Failure> {
            Ok(self.audit(runner, Reach::new(scope, context, context), seed, trials, 1)?.passes())
        };
        if !passes(most)? {
            return Ok(None);
        }
        let (mut low, mut high) = (0, most);
        while low < high {
            let middle = low + (high - low) / 2;
            if passes(middle)? {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(Some(high))
    }

    fn trial(
        &self,
        runner: &mut dyn Runner,
        reach: Reach,
        fill: Fill,
        rng: &mut Rng,
    ) -> Result<Option<Violation>, Failure> {
        let (page, kept) = self.kept_window(reach, rng);
        let (text, before) = &self.pages[page];
        let ruler = Ruler::new(text, self.offsets);
        let units = |at: u32| i64::from(ruler.units(at));
        // The window is not clipped to the page: where it goes beyond an edge, it holds the edge, which must stay one.
        let (from, to) = kept;
        let (from_edge, to_edge) = (from < 0, to > i64::from(ruler.len()));
        let clip = |at: i64| u32::try_from(at.clamp(0, i64::from(ruler.len()))).expect("clamped");
        let window = Span::new(ruler.at_or_before(clip(from)), ruler.at_or_after(clip(to)).expect("clamped"));
        // It is rounded outward to whole characters, so that it holds at least what it must.
        let (mut left, mut right) = (String::new(), String::new());
        if !from_edge {
            left = self.outside(fill, text, window, true, rng);
        }
        if !to_edge {
            right = self.outside(fill, text, window, false, rng);
        }
        // Now and then one side stays as it is.
        match rng.index(6) {
            0 => text[..window.start as usize].clone_into(&mut left),
            1 => text[window.end as usize..].clone_into(&mut right),
            _ => {}
        }
        let changed = format!("{left}{}{right}", &text[window.range()]);
        let after = whole(runner, &changed)?;
        let shift = i64::from(offset(left.len())) - i64::from(window.start);
        let changed_ruler = Ruler::new(&changed, self.offsets);
        let unit_shift = i64::from(changed_ruler.units(offset(left.len()))) - units(window.start);
        let inside = |start: i64, end: i64| from <= start - i64::from(reach.left) && end + i64::from(reach.right) <= to;
        let expected: Vec<&Mention> = before.iter().filter(|m| inside(units(m.start), units(m.end))).collect();
        let got: Vec<Mention> = after
            .iter()
            .filter(|m| {
                let at = |at: u32| i64::from(changed_ruler.units(at)) - unit_shift;
                inside(at(m.start), at(m.end))
            })
            .map(|m| m.shifted(-shift))
            .collect();
        let (mut lost, mut gained) = (0, 0);
        if let Err(difference) = super::check::compare(expected, &got) {
            lost = u32::try_from(difference.missing.len()).expect("few are shown");
            gained = u32::try_from(difference.extra.len()).expect("few are shown");
        }
        Ok((lost + gained > 0).then_some(Violation { page, window, fill, lost, gained }))
    }

    /// A page and what to keep of it: the window of a mention, or of a place where one might be.
    fn kept_window(&self, reach: Reach, rng: &mut Rng) -> (usize, (i64, i64)) {
        let (left, right) = (i64::from(reach.left), i64::from(reach.right));
        if !self.mentions.is_empty() && rng.index(4) > 0 {
            let &(page, mention) = rng.choose(&self.mentions);
            let ruler = Ruler::new(self.pages[page].0, self.offsets);
            let mention = &self.pages[page].1[mention];
            return (page, (i64::from(ruler.units(mention.start)) - left, i64::from(ruler.units(mention.end)) + right));
        }
        let page = rng.index(self.pages.len());
        let len = Ruler::new(self.pages[page].0, self.offsets).len();
        let start = i64::try_from(rng.index(len as usize)).expect("an offset");
        let end = (start + i64::from(reach.scope)).min(i64::from(len));
        (page, (start - left, end + right))
    }

    fn outside(&self, fill: Fill, text: &str, window: Span, left: bool, rng: &mut Rng) -> String {
        match fill {
            Fill::Nothing => String::new(),
            Fill::Random => (0..rng.index(120)).map(|_| *rng.choose(&self.characters)).collect(),
            Fill::Splice => {
                let other = self.pages[rng.index(self.pages.len())].0;
                let at = other.floor_char_boundary(rng.index(other.len()));
                let end = other.floor_char_boundary((at + 1 + rng.index(400)).min(other.len()));
                other[at..end].to_owned()
            }
            Fill::Run => {
                let kept = &text[window.range()];
                let edge = if left { kept.chars().next() } else { kept.chars().next_back() };
                let edge = edge.unwrap_or('a');
                (0..=rng.index(40)).map(|_| edge).collect()
            }
            Fill::Plant => {
                let Some(_) = self.mentions.first() else {
                    return String::new();
                };
                let mut planted = String::new();
                for _ in 0..=rng.index(12) {
                    let &(page, mention) = rng.choose(&self.mentions);
                    let (source, found) = &self.pages[page];
                    planted.push_str(["", " ", " ", "\n", ", "][rng.index(5)]);
                    planted.push_str(&source[found[mention].span().range()]);
                    planted.push_str(["", " ", " ", "\n"][rng.index(4)]);
                }
                planted
            }
        }
    }
}

fn whole(runner: &mut dyn Runner, page: &str) -> Result<Vec<Mention>, Failure> {
    if page.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = runner.run(page, &[Span::new(0, offset(page.len()))])?.pop().unwrap_or_default();
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::recycling::check::FromFn;

    const NAMES: &[&str] =
        &["Ann Lee", "Bob", "Cat", "Room 5", "Room 12", "May 3", "cat", "concat", "1234", "55555", "Mary Ann"];

    fn pages() -> Vec<String> {
        let mut rng = Rng::of_round(9, 9);
        let mut page = || {
            let mut text = String::new();
            for _ in 0..60 + rng.index(60) {
                text.push_str(NAMES[rng.index(NAMES.len())]);
                text.push_str(["  ", " ", ". ", ", and then some more words ", "\n", "é "][rng.index(6)]);
            }
            text
        };
        (0..6).map(|_| page()).collect()
    }

    fn by_pattern(pattern: &str) -> impl Fn(&str) -> Vec<Mention> {
        let regex = regex::Regex::new(pattern).unwrap();
        move |text| regex.find_iter(text).map(|m| Mention::plain(offset(m.start()), offset(m.end()), 0)).collect()
    }

    /// Matches at every start, so nothing hides anything.
    fn at_all_starts(pattern: &str) -> impl Fn(&str) -> Vec<Mention> {
        let regex = regex::Regex::new(&format!("^(?:{pattern})")).unwrap();
        move |text| {
            let starts = text.char_indices().map(|(at, _)| at);
            let found = starts.filter_map(|at| Some((at, at + regex.find(&text[at..])?.end())));
            found.map(|(start, end)| Mention::plain(offset(start), offset(end), 0)).collect()
        }
    }

    fn audit(extract: impl Fn(&str) -> Vec<Mention>, reach: (u32, u32, u32), trials: u64) -> Audit {
        let pages = pages();
        let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
        let mut runner = FromFn(extract);
        let auditor = Auditor::new(&mut runner, Offsets::Byte, &pages).unwrap();
        auditor.audit(&mut runner, Reach::new(reach.0, reach.1, reach.2), 3, trials, u64::MAX).unwrap()
    }

    #[test]
    fn planted_lies_are_found_within_200_trials() {
        let names = by_pattern("Ann|Mary");
        let rooms = by_pattern("Room [0-9]+");
        let nearest = |text: &str| -> Vec<Mention> {
            let rooms = rooms(text);
            names(text)
                .into_iter()
                .filter_map(|name| {
                    let room = rooms.iter().min_by_key(|room| (room.start.abs_diff(name.start), room.start))?;
                    let (start, end) = (name.start.min(room.start), name.end.max(room.end));
                    (end - start <= 60).then(|| Mention::plain(start, end, 0))
                })
                .collect()
        };
        let with_room = |text: &str| -> Vec<Mention> {
            let near = |name: &Mention| rooms(text).iter().any(|room| room.start.abs_diff(name.start) < 30);
            names(text).into_iter().map(|m| Mention { label: u32::from(near(&m)), ..m }).collect()
        };
        let gated = |text: &str| if text.len() > 600 { names(text) } else { Vec::new() };
        let first_five = |text: &str| names(text).into_iter().take(5).collect();
        let numbered = |text: &str| (0..).zip(names(text)).map(|(i, m)| Mention { label: i, ..m }).collect();
        let lies: [(&str, Audit); 9] = [
            (r"\bcat\b without context", audit(by_pattern(r"\bcat\b"), (3, 0, 0), 200)),
            ("digits without context", audit(by_pattern("[0-9]{1,4}"), (4, 0, 0), 200)),
            ("pairs of capitals, one after the other", audit(by_pattern("[A-Z][a-z]+ +[A-Z][a-z]+"), (40, 1, 1), 200)),
            ("nearest room", audit(nearest, (60, 0, 0), 200)),
            ("room or none", audit(with_room, (4, 2, 2), 200)),
            ("long pages only", audit(gated, (4, 4, 4), 200)),
            ("the first five", audit(first_five, (4, 4, 4), 200)),
            ("numbered", audit(numbered, (4, 4, 4), 200)),
            ("scope too small", audit(by_pattern("Room [0-9]+"), (4, 4, 4), 200)),
        ];
        for (lie, audit) in lies {
            assert!(!audit.passes(), "{lie} was not found");
        }
    }

    #[test]
    fn the_truth_raises_no_alarm_in_10_000_trials() {
        let truths: [(&str, Audit); 5] = [
            (r"\bcat\b", audit(at_all_starts(r"cat\b"), (3, 0, 4), 2_500)),
            ("digits, all starts", audit(at_all_starts("[0-9]{1,4}"), (4, 0, 3), 2_500)),
            ("room, declared larger", audit(at_all_starts("Room [0-9]{1,3}"), (20, 5, 5), 2_500)),
            ("pairs, all starts", audit(at_all_starts("[A-Z][a-z]{1,3} {1,2}[A-Z][a-z]{1,3}"), (10, 0, 6), 1_500)),
            ("the word", audit(by_pattern(r"\bconcat\b"), (6, 4, 4), 1_500)),
        ];
        let trials: u64 = truths.iter().map(|(_, audit)| audit.trials).sum();
        assert!(trials >= 10_000);
        for (truth, audit) in truths {
            assert!(audit.passes(), "{truth}: {:?}", audit.violations);
        }
    }

    #[test]
    fn the_smallest_context_that_holds_is_found() {
        let pages = pages();
        let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
        // Looks three bytes ahead of the word.
        let mut runner = FromFn(|text: &str| {
            let found = at_all_starts("Ann")(text);
            found
                .into_iter()
                .map(|m| Mention { label: u32::from(text[m.end as usize..].starts_with(" Le")), ..m })
                .collect()
        });
        let auditor = Auditor::new(&mut runner, Offsets::Byte, &pages).unwrap();
        assert_eq!(auditor.smallest_context(&mut runner, 3, 40, 1, 400), Ok(Some(3)));
        assert_eq!(auditor.smallest_context(&mut runner, 2, 40, 1, 100), Ok(None), "the scope is too small");
    }
}
