//! Random page pairs against the invariant, without end.
//!
//! Small alphabets make matches overlap, block moves make regions cross, characters of one to four bytes make
//! boundaries matter. Regions are all maximal ones of every alignment, and random subsets and fragments of them, so
//! whatever a matcher might report is among them. Everything follows from a seed: a failure names the round that
//! shows it again.

mod boxes;
pub(crate) mod check;
pub(crate) mod pages;

use crate::extract::dictionary::{Dictionary, Edit, Options};
use crate::extract::reach::Declared;
use crate::extract::record::{Pairing, Part, Record, Side, Within};
use crate::extract::regex::Patterns;
use crate::extract::schema::{Attribute, Schema};
use crate::extract::{Extractor, Mention, Runner};
use crate::model::{Region, Rng};
use crate::recycle::check::{compare, mentions};
use crate::recycle::{NoWorker, Old, recycle_edited, scratch};

use boxes::local_command;
use check::{Broken, check_pair};
use pages::{pair, some_regions};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Regex,
    Dictionary,
    /// A changed term list, alone and together with a changed page.
    Edit,
    Record,
    Command,
}

impl Subject {
    pub(crate) const ALL: [Self; 5] = [Self::Regex, Self::Dictionary, Self::Edit, Self::Record, Self::Command];

    #[must_use]
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subject| subject.as_str() == name)
    }

    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Regex => "regex",
            Self::Dictionary => "dictionary",
            Self::Edit => "edit",
            Self::Record => "record",
            Self::Command => "command",
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub pairs: u64,
    pub mentions: u64,
    pub copied: u64,
    pub bytes: u64,
    pub bytes_extracted: u64,
    /// Round and what went wrong; the run stops there.
    pub broken: Option<(u64, String)>,
}

/// Runs rounds 0, 1, … as long as `go_on(round)` says so. Each round is one page pair, decided by seed and round alone.
pub(crate) fn fuzz(subject: Subject, seed: u64, mut go_on: impl FnMut(u64) -> bool) -> Report {
    let mut report = Report::default();
    let mut cast = Cast::new();
    let mut round = 0;
    while go_on(round) {
        let mut rng = Rng::of_round(seed ^ (subject as u64) << 56, round);
        report.pairs += 1;
        if let Err(why) = cast.round(subject, &mut rng, &mut report) {
            report.broken = Some((round, why));
            break;
        }
        round += 1;
    }
    report
}

/// Extractors that are worth keeping from round to round.
struct Cast {
    regex: Vec<Extractor>,
    records: Vec<Record>,
    parts: Vec<Extractor>,
}

const PATTERNS: &[&[&str]] = &[
    &["aa"],
    &["abcd|b|c{2}"],
    &["a{1,3}", "(?P<x>a)(?P<y>b)?"],
    &[r"\bab?\b", r"\Ba\B"],
    &[r"(?-u:\b)a", r"a(?-u:\b)"],
    &[r"\Aa|b\z|c"],
    &["(?m)^a.?|.b$"],
    &["(?mR)^.|c$"],
    &[r"é.|.{2}b", "[^a]{2,5}"],
    &[r"\b\w{1,3}\b", r"(?i)k"],
    &[r"(?P<first>a+)b", "(?m)^.+$", "[ab]+c"],
    &[r"\b[ab]+\b", r"\w+\s+\w", r"(?s)a.*b"],
    &[r"\Aa+", r"b+\z", "c"],
    &["a.{0,9}b", "(?P<t>b{2}?)a?"],
];

const TERMS: &[&str] = &[
    "a", "b", "ab", "ba", "aab", "abab", "a b", "b a", "b aé", "é", "aé", "é b", "c++", "c", "a\nb", "\u{212A}", "A",
    "bb b", "€a", "😀",
];

impl Cast {
    fn new() -> Self {
        let built = |set: &[&str], declared| {
            Extractor::Regex(Patterns::new("patterns", set, declared).expect("the fuzzer's patterns are sound"))
        };
        let regex = |set: &&[&str]| built(set, Declared::default());
        let enlarged = |set: &&[&str]| built(set, Declared { scope: Some(4), context: Some(2) });
        let part = |name: &str, many, optional| Part { attribute: name.into(), extractor: name.into(), many, optional };
        let mut records = Vec::new();
        for pairing in [Pairing::All, Pairing::Nearest, Pairing::Once] {
            for scope in [3, 8, 20] {
                let parts = vec![part("a", false, false), part("b", false, true), part("c", true, true)];
                let mut schema = Schema::default();
                for part in &parts {
                    schema.push(Attribute { name: part.attribute.clone(), many: part.many }).expect("plain names");
                }
                let record = Record::new(scope, parts, 0, pairing, 50, schema);
                let withins = Within::ALL.iter().copied().map(Some).chain([None]);
                records.extend(withins.flat_map(|within| {
                    let sides = [None, Some(Side::After), Some(Side::Before)];
                    sides.map(|side| record.clone().keeping(within, side))
                }));
            }
        }
        let parts: [&[&str]; 3] = [&["a{1,2}"], &[r"\bb"], &["c+|é"]];
        Self {
            regex: PATTERNS.iter().map(regex).chain(PATTERNS.iter().map(enlarged)).collect(),
            records,
            parts: parts.iter().map(regex).collect(),
        }
    }

    fn round(&mut self, subject: Subject, rng: &mut Rng, report: &mut Report) -> Result<(), String> {
        let (q, p) = pair(rng);
        let regions = some_regions(rng, &q, &p);
        report.bytes += p.len() as u64;
        let told = |what: String| format!("{what}\nq = {q:?}\np = {p:?}\nregions = {regions:?}");
        match subject {
            Subject::Regex => {
                let made_up = (rng.index(4) == 0).then(|| random_patterns(rng)).flatten();
                let shown = format!("{made_up:?}");
                let made_up = made_up.map(|(_, patterns)| Extractor::Regex(patterns));
                let extractor = made_up.as_ref().unwrap_or_else(|| rng.choose(&self.regex));
                checked(extractor, &mut NoWorker, &q, &p, &regions, report).map_err(|why| told(why + &shown))
            }
            Subject::Dictionary => {
                let dictionary = random_dictionary(rng, TERMS);
                let terms = format!("{dictionary:?}");
                let extractor = Extractor::Dictionary(dictionary);
                checked(&extractor, &mut NoWorker, &q, &p, &regions, report).map_err(|why| told(why + &terms))
            }
            Subject::Edit => edited(rng, &q, &p, &regions, report).map_err(told),
            Subject::Record => {
                let record = rng.choose(&self.records);
                joined(record, &self.parts, &q, &p, &regions, report).map_err(told)
            }
            Subject::Command => {
                let (command, mut runner) = local_command(rng);
                let shown = format!("{runner:?} {:?} {:?}", command.unit(), command.reach());
                let extractor = Extractor::Command(command);
                checked(&extractor, &mut runner, &q, &p, &regions, report).map_err(|why| told(why + &shown))
            }
        }
    }
}

fn checked(
    extractor: &Extractor,
    runner: &mut dyn Runner,
    q: &str,
    p: &str,
    regions: &[Region],
    report: &mut Report,
) -> Result<(), String> {
    let recycled = check_pair(extractor, runner, q, p, regions).map_err(|broken: Broken| broken.to_string())?;
    if recycled.not_local {
        return Err("a local extractor was taken for one that is not".to_owned());
    }
    report.mentions += recycled.found.len() as u64;
    report.copied += recycled.copied();
    report.bytes_extracted += recycled.bytes_extracted;
    Ok(())
}

const ATOMS: &[&str] = &[
    "a",
    "b",
    "c",
    "é",
    "€",
    ".",
    "[ab]",
    "[^a]",
    r"\w",
    r"\s",
    " ",
    r"\n",
    r"\b",
    r"\B",
    r"\A",
    r"\z",
    "(?m:^)",
    "(?m:$)",
    r"(?-u:\b)",
];
const REPEATS: &[&str] = &["", "", "", "", "?", "+", "*", "{2}", "{1,3}", "+?", "{0,2}?"];

/// One or two patterns of a few atoms, alternatives and repetitions; `None` if they are refused.
fn random_patterns(rng: &mut Rng) -> Option<(Vec<String>, Patterns)> {
    let mut pattern = || {
        let mut text = String::new();
        for _ in 0..=rng.index(4) {
            match rng.index(6) {
                0 if !text.is_empty() => text.push('|'),
                1 => text = format!("(?:{text}){}", rng.choose(REPEATS)),
                _ => {}
            }
            text.push_str(rng.choose::<&str>(ATOMS));
            text.push_str(rng.choose::<&str>(REPEATS));
        }
        text
    };
    let sources: Vec<String> = (0..2).map(|_| pattern()).collect();
    let sources = sources[rng.index(2)..].to_vec();
    let patterns = Patterns::new("patterns", &sources, Declared::default()).ok()?;
    Some((sources, patterns))
}

fn random_dictionary(rng: &mut Rng, terms: &[&str]) -> Dictionary {
    let share = 1 + rng.index(4);
    let chosen: Vec<&str> = terms.iter().copied().filter(|_| rng.index(4) < share).collect();
    let options = Options {
        whole_word: rng.index(2) == 0,
        ignore_case: rng.index(2) == 0,
        declared: *rng.choose(&[Declared::default(), Declared { scope: Some(6), context: Some(5) }]),
    };
    Dictionary::new(chosen, options).expect("a small list builds")
}

fn edited(rng: &mut Rng, q: &str, p: &str, regions: &[Region], report: &mut Report) -> Result<(), String> {
    let before = random_dictionary(rng, TERMS);
    let options = before.options();
    let after: Vec<&str> = TERMS.iter().copied().filter(|_| rng.index(2) == 0).collect();
    let after = Dictionary::new(after, options).map_err(|error| error.to_string())?;
    let edit = Edit::new(&before, &after).map_err(|error| error.to_string())?.ok_or("options are equal")?;
    let edited = edit.apply(q, &before.extract(q));
    let got: Vec<Mention> = edited.found.iter().map(|found| found.mention.clone()).collect();
    compare(&after.extract(q), &got).map_err(|difference| difference.to_string())?;
    report.copied += edited.found.iter().filter(|found| found.source.is_some()).count() as u64;
    report.bytes_extracted += edited.bytes_extracted;
    report.mentions += got.len() as u64;
    let before_mentions = before.extract(q);
    let recycled = recycle_edited(&edit, Old { text: q, mentions: &before_mentions }, p, regions);
    for (found, source) in recycled.found.iter().filter_map(|found| Some((found, found.source?))) {
        let source = &before_mentions[source as usize];
        if q[source.span().range()] != p[found.mention.span().range()] {
            return Err("a mention is not what it was copied from".to_owned());
        }
    }
    compare(&after.extract(p), &mentions(&recycled)).map_err(|difference| difference.to_string())
}

fn joined(
    record: &Record,
    parts: &[Extractor],
    q: &str,
    p: &str,
    regions: &[Region],
    report: &mut Report,
) -> Result<(), String> {
    let mut fresh = Vec::new();
    let mut recycled = Vec::new();
    for part in parts {
        let page = check_pair(part, &mut NoWorker, q, p, regions).map_err(|broken| broken.to_string())?;
        fresh.push(mentions(&scratch(part, &mut NoWorker, p).map_err(|error| error.to_string())?));
        report.copied += page.copied();
        recycled.push(mentions(&page));
    }
    let join = |lists: &[Vec<Mention>]| record.join(p, &lists.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let (scratch, again) = (join(&fresh), join(&recycled));
    report.mentions += again.records.len() as u64;
    if scratch == again { Ok(()) } else { Err("records differ".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(subject: Subject, rounds: u64) {
        let report = fuzz(subject, 1, |round| round < rounds);
        if let Some((round, why)) = report.broken {
            panic!("{} round {round}: {why}", subject.as_str());
        }
        assert_eq!(report.pairs, rounds);
        assert!(report.copied * 20 > report.mentions, "{report:?}: too little is copied to show anything");
    }

    #[test]
    fn regex_pages_are_as_from_scratch() {
        run(Subject::Regex, 20_000);
    }

    #[test]
    fn dictionary_pages_are_as_from_scratch() {
        run(Subject::Dictionary, 10_000);
    }

    #[test]
    fn edited_lists_are_as_from_scratch() {
        run(Subject::Edit, 10_000);
    }

    #[test]
    fn records_are_as_from_scratch() {
        run(Subject::Record, 5_000);
    }

    #[test]
    fn command_pages_are_as_from_scratch() {
        run(Subject::Command, 10_000);
    }

    /// The fuzzer must be able to find something: a box that lies about its context is caught.
    #[test]
    fn a_lie_is_found() {
        let mut rng = Rng::of_round(5, 0);
        let mut wrong = 0;
        for _ in 0..2_000 {
            let (q, p) = pair(&mut rng);
            let regions = some_regions(&mut rng, &q, &p);
            let (command, mut runner) = boxes::lying_command(&mut rng);
            let told = check_pair(&Extractor::Command(command), &mut runner, &q, &p, &regions);
            wrong += u32::from(matches!(told, Err(Broken::Differs(_))) || told.is_ok_and(|page| page.not_local));
        }
        assert!(wrong > 50, "{wrong}");
    }
}
