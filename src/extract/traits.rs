//! What a kind of extractor says of itself, and what follows from it for the rest of the program.
//!
//! Each kind implements [`Extracts`] in its own module. Planning, recycling, tables and stages ask for these answers
//! and never for the kind itself, so a new kind changes none of them.

use std::path::Path;

use crate::extract::ExtractorKind;
use crate::extract::mention::Mention;
use crate::extract::reach::{Along, Cut, Reach, Sees};
use crate::extract::runner::{Failure, Question, Runner};
use crate::extract::scan::{Mode, Pass};
use crate::extract::schema::Schema;
use crate::model::closed_set::closed_set;
use crate::model::{Digest, DigestBuilder};

/// What every kind of extractor has to answer.
pub(crate) trait Extracts {
    fn kind(&self) -> ExtractorKind;

    /// The attributes of its mentions, in column order.
    fn schema(&self) -> &Schema;

    /// How it finds mentions. This alone decides how they are recycled.
    fn finds(&self) -> Finds<'_>;

    /// What it costs, as long as nothing has been measured.
    fn prior(&self) -> Prior;

    /// Adds to its fingerprint everything in its definition that can change a mention, and nothing else.
    fn describe(&self, digest: &mut DigestBuilder);

    /// What the labels of its mentions stand for; `None` if it has no labels.
    fn labels(&self) -> Option<&dyn Labels> {
        None
    }

    /// What of a page is shown along with each of its units.
    fn along(&self) -> Along {
        Along::default()
    }

    /// Whether answers about units are kept, and serve wherever the same is asked.
    fn keeps_answers(&self) -> bool {
        false
    }

    /// The identity of a request: all that its answer depends on. `fingerprint` is the extractor's.
    fn request_key(&self, question: &Question<'_>, fingerprint: Digest) -> Digest {
        let mut digest = DigestBuilder::new();
        digest.field(&fingerprint.0).field(&question.identity().0);
        digest.finish()
    }

    /// Reads a kept answer about a unit.
    fn read(&self, _said: &str, _text: &str) -> Result<Read, Failure> {
        Err(Failure::BadAnswer("its answers are not kept".to_owned()))
    }

    /// Lines for the log: what of it cannot be recycled well, and why.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// A runner for one thread, if it finds mentions [by asking](Finds::ByAsking). `folder` is that of the pipeline file.
    fn runner(&self, _folder: &Path) -> Option<Box<dyn Runner + Send>> {
        None
    }
}

/// A kept answer, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    /// In canonical order, with offsets from the start of the unit.
    pub(crate) mentions: Vec<Mention>,
    /// What it told of that does not stand in the unit.
    pub(crate) refused: u64,
}

/// How an extractor finds mentions.
pub(crate) enum Finds<'a> {
    /// This process scans the page from left to right, once for each pass. Where there are several passes, the mentions
    /// of each have its number as their label.
    ByScan(Vec<&'a dyn Pass>),
    /// A [`Runner`] is given parts of the page and answers with their mentions.
    ByAsking(Sees),
}

impl Finds<'_> {
    /// How far it looks, over all passes; `None` if some of it does not look at windows.
    pub(crate) fn reach(&self) -> Option<Reach> {
        match self {
            Self::ByScan(passes) => {
                let reaches: Option<Vec<Reach>> = passes.iter().map(|pass| pass.mode().reach()).collect();
                reaches?.into_iter().reduce(Reach::widest)
            }
            Self::ByAsking(sees) => sees.reach(),
        }
    }

    /// The length of the shortest old region in the middle of a page that it can copy from: its window, and of several
    /// passes the shortest one. `None` if it looks at no windows.
    pub(crate) fn useful_region(&self) -> Option<u32> {
        let least = match self {
            Self::ByScan(passes) => passes.iter().filter_map(|pass| pass.mode().reach()).map(Reach::window).min(),
            Self::ByAsking(sees) => sees.reach().map(Reach::window),
        };
        least.map(|window| u32::try_from(window).unwrap_or(u32::MAX))
    }

    fn recycles(&self) -> Recycles {
        match self {
            Self::ByScan(passes) if passes.iter().any(|pass| matches!(pass.mode(), Mode::Page)) => Recycles::Never,
            Self::ByScan(_) | Self::ByAsking(Sees::Windows(_)) => Recycles::ByRegion,
            Self::ByAsking(Sees::Units(Cut::Page)) => Recycles::Never,
            Self::ByAsking(Sees::Units(_)) => Recycles::ByUnit,
        }
    }
}

/// Names for the labels of mentions, one to one.
pub(crate) trait Labels {
    /// The column that shows them.
    fn column(&self) -> LabelColumn;

    fn text(&self, label: u32) -> Option<&str>;

    fn find(&self, text: &str) -> Option<u32>;
}

closed_set! {
    /// The column of a mentions table that says what matched.
    pub enum LabelColumn: "column" {
        Pattern = "pattern",
        Term = "term",
    }
}

/// What the program has to know of an extractor or a record besides running it. Follows from [`Extracts`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traits {
    pub recycles: Recycles,
    pub works: Works,
    pub prior: Prior,
    /// `None` if its mentions have no labels.
    pub label: Option<LabelColumn>,
    /// The length of the shortest old region in the middle of a page that it can copy from; `None` if regions do not
    /// tell it anything, or if it has no window.
    pub useful_region: Option<u32>,
}

impl Traits {
    pub(crate) fn of(extractor: &dyn Extracts) -> Self {
        let finds = extractor.finds();
        Self {
            recycles: finds.recycles(),
            works: if matches!(finds, Finds::ByScan(_)) { Works::Here } else { Works::Elsewhere },
            prior: extractor.prior(),
            label: extractor.labels().map(Labels::column),
            useful_region: finds.useful_region(),
        }
    }
}

/// Where an extractor gets what it copies on a page that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recycles {
    /// From old regions.
    ByRegion,
    /// From equal lines, blocks or paragraphs, which need no matcher.
    ByUnit,
    /// From nowhere: it is extracted again, or joined again from other extractors.
    Never,
}

/// Who does the work, which decides the clock that measures it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Works {
    /// The thread that asks for the mentions.
    Here,
    /// Somebody whom that thread waits for.
    Elsewhere,
}

/// What an extractor is taken to cost as long as nothing has been measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// Nanoseconds for each byte that is extracted.
    pub byte: f64,
    /// Nanoseconds for each recycled page, besides its bytes.
    pub page: f64,
}

impl Prior {
    /// Of what is done on every plan, so that it does not count.
    pub const NOTHING: Self = Self { byte: 0.0, page: 0.0 };
}
