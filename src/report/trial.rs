//! A trial: a changed extractor beside the present one, on a sample of pages.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::terminal::{duration, one_line, size};
use crate::model::SnapshotId;
use crate::recycle::shares::Share;
use crate::recycle::trial::{Only, Tally};

pub(crate) struct Trial {
    pub extractor: String,
    /// The file that has the changed one.
    pub candidate: String,
    pub snapshot: SnapshotId,
    /// Looked at, those of them that both could be compared on, and all there are.
    pub pages: u64,
    pub compared: u64,
    pub of: u64,
    pub strata: u64,
    pub has_gold: bool,
    pub tally: Tally,
    /// Of the mentions that either finds, those that both find.
    pub agreement: Option<Share>,
    pub present: TrialSide,
    pub there: TrialSide,
    pub examples: Vec<Example>,
    pub adoption: Adoption,
}

pub(crate) struct TrialSide {
    pub kind: &'static str,
    pub mentions: u64,
    pub precision: Option<Share>,
    pub recall: Option<Share>,
    /// `None` if there is nobody to be asked twice.
    pub again: Option<Again>,
    /// Pages that it failed on, and those that there was no budget for.
    pub failed: u64,
    pub deferred: u64,
    /// Why it failed first.
    pub error: Option<String>,
    /// `None` if it has no price.
    pub spent: Option<f64>,
}

/// What asking twice came to.
pub(crate) struct Again {
    pub units: u64,
    pub tally: Tally,
    pub share: Option<Share>,
}

/// A mention that is not in both.
pub(crate) struct Example {
    pub only: Only,
    pub url: String,
    pub text: String,
    pub start: u32,
}

/// What it takes to extract all pages with the candidate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Adoption {
    pub pages: u64,
    /// Without an answer, and those that kept answers serve; `None` if it is not asked about units.
    pub units: Option<u64>,
    pub kept: u64,
    pub bytes: u64,
    /// Expected, and at most.
    pub price: Option<f64>,
    pub most: Option<f64>,
    pub seconds: f64,
}

/// Differences shown of each kind.
const SHOWN: usize = 5;
/// Of a text.
const SHOWN_CHARS: usize = 60;

impl Trial {
    /// `all`: every difference that is known, not the first few.
    #[must_use]
    pub(crate) fn text(&self, all: bool) -> String {
        let mut text = format!(
            "{}: {} of {} pages of {}, drawn from {} strata; candidate {}\n",
            self.extractor, self.pages, self.of, self.snapshot, self.strata, self.candidate
        );
        let _ = writeln!(text, "  {:<16}{:>24}{:>24}", "", "present", "candidate");
        let mut row = |what: &str, here: String, there: String| {
            let line = format!("  {what:<16}{here:>24}{there:>24}");
            let _ = writeln!(text, "{}", line.trim_end());
        };
        let (here, there) = (&self.present, &self.there);
        row("kind", here.kind.to_owned(), there.kind.to_owned());
        row("mentions", here.mentions.to_string(), there.mentions.to_string());
        row("  only there", self.tally.only_here.to_string(), self.tally.only_there.to_string());
        row("  other values", self.tally.altered.to_string(), self.tally.altered.to_string());
        row("  in both", self.tally.both.to_string(), self.tally.both.to_string());
        if self.has_gold {
            row("precision", interval(here.precision), interval(there.precision));
            row("recall", interval(here.recall), interval(there.recall));
        }
        row("asked twice", here.asked_twice(), there.asked_twice());
        row("  agrees", here.self_agreement(), there.self_agreement());
        let lacks = [("pages failed", here.failed, there.failed), ("pages left out", here.deferred, there.deferred)];
        for (what, here, there) in lacks.into_iter().filter(|(_, here, there)| here + there > 0) {
            row(what, here.to_string(), there.to_string());
        }
        if here.spent.or(there.spent).is_some() {
            row("spent", money(here.spent), money(there.spent));
        }
        let _ = writeln!(text, "both agree on {} of the mentions that either finds", interval(self.agreement));
        for (side, name) in [(here, "present"), (there, "candidate")] {
            if let Some(error) = &side.error {
                let _ = writeln!(text, "the {name} one failed first because: {}", one_line(error));
            }
            if side.deferred > 0 {
                let _ = writeln!(text, "the budget was used up before all pages of the {name} one were asked about");
            }
        }
        self.differences(&mut text, all);
        text.push_str(&self.adoption.text());
        text
    }

    fn differences(&self, text: &mut String, all: bool) {
        let kinds = [
            (Only::Here, "only the present one finds"),
            (Only::There, "only the candidate finds"),
            (Only::Altered, "with other values"),
        ];
        for (kind, what) in kinds {
            let of_kind: Vec<&Example> = self.examples.iter().filter(|example| example.only == kind).collect();
            if of_kind.is_empty() {
                continue;
            }
            let _ = writeln!(text, "{what}:");
            let shown = if all { of_kind.len() } else { SHOWN };
            for example in of_kind.iter().take(shown) {
                let _ = writeln!(text, "  {} ({} at {})", short(&example.text), one_line(&example.url), example.start);
            }
            if of_kind.len() > shown {
                let _ = writeln!(text, "  … (-v shows more)");
            }
        }
    }

    #[must_use]
    pub(crate) fn json(&self) -> Value {
        let side = |side: &TrialSide| {
            let again = side.again.as_ref().map(|again| {
                json!({"units": again.units, "both": again.tally.both, "altered": again.tally.altered,
                       "only_first": again.tally.only_here, "only_second": again.tally.only_there,
                       "agreement": share_json(again.share)})
            });
            json!({"kind": side.kind, "mentions": side.mentions, "precision": share_json(side.precision),
                   "recall": share_json(side.recall), "self_agreement": again, "failed": side.failed,
                   "deferred": side.deferred, "error": side.error, "spent": side.spent})
        };
        let example = |example: &Example| {
            let kind = match example.only {
                Only::Here => "only_present",
                Only::There => "only_candidate",
                Only::Altered => "altered",
            };
            json!({"kind": kind, "url": example.url, "text": example.text, "start": example.start})
        };
        let Tally { both, altered, only_here, only_there } = self.tally;
        let Adoption { pages, units, kept, bytes, price, most, seconds } = self.adoption;
        json!({
            "extractor": self.extractor, "candidate": self.candidate, "snapshot": self.snapshot,
            "pages": self.pages, "compared": self.compared, "of_pages": self.of, "strata": self.strata,
            "both": both, "altered": altered, "only_present": only_here, "only_candidate": only_there,
            "agreement": share_json(self.agreement), "present": side(&self.present), "candidate_side": side(&self.there),
            "differences": self.examples.iter().map(example).collect::<Vec<_>>(),
            "adopting": {"pages": pages, "units": units, "kept": kept, "bytes": bytes, "price": price,
                         "price_at_most": most, "seconds": seconds},
        })
    }
}

impl TrialSide {
    fn asked_twice(&self) -> String {
        self.again.as_ref().map_or_else(|| "-".to_owned(), |again| format!("{} units", again.units))
    }

    /// Who is not asked says the same each time.
    fn self_agreement(&self) -> String {
        match &self.again {
            None => "1 (no need to ask)".to_owned(),
            Some(again) => interval(again.share),
        }
    }
}

impl Adoption {
    fn text(&self) -> String {
        let Self { pages, units, kept, bytes, price, most, seconds } = self;
        let size = size(*bytes);
        let mut text = match units {
            Some(units) => {
                format!(
                    "adopting it on all {pages} pages: {units} units, {size} to ask about; answers of {kept} are kept"
                )
            }
            None => format!("adopting it on all {pages} pages: {size} to extract"),
        };
        match price {
            Some(price) => {
                let _ = write!(text, "; about {}, at most {}", money(Some(*price)), money(*most));
            }
            None => {
                let _ = write!(text, "; about {}", duration(Some(*seconds)));
            }
        }
        text + "\n"
    }
}

fn share_json(share: Option<Share>) -> Value {
    share.map_or(Value::Null, |Share { share, low, high }| json!({"share": share, "low": low, "high": high}))
}

fn interval(share: Option<Share>) -> String {
    match share {
        None => "-".to_owned(),
        Some(Share { share, low, high }) if (high - low).abs() < 1e-12 => format!("{share:.3}"),
        Some(Share { share, low, high }) => format!("{share:.3} ({low:.3} to {high:.3})"),
    }
}

fn money(price: Option<f64>) -> String {
    match price {
        None => "-".to_owned(),
        Some(price) if price > 0.0 && price < 0.01 => format!("{price:.6}"),
        Some(price) => format!("{price:.2}"),
    }
}

/// The beginning of a text, on one line.
fn short(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
