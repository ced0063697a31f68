//! What is wrong with a snapshot that is done: a person should look at it, but nothing failed.
//!
//! # To add a kind
//! A member of [`ProblemKind`], a variant of [`Problem`] with its facts, its arms in [`Problem::kind`], in [`Problem`]'s
//! `Display` and in [`Problem::remedy`]. The stage that sees it pushes it to its manifest's `problems`; the run does the rest: it says
//! it in one line, also with `-q`, exits with 3, and `status` and `--json` show it until the snapshot is accepted.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::closed_set::closed_set;
use super::snapshot::SnapshotId;

closed_set! {
    /// What a problem is about.
    pub enum ProblemKind: "kind of problem" {
        /// More was rejected than allowed.
        Rejects = "rejects",
        /// Archive files end in the middle or cannot be read.
        CutArchive = "cut_archive",
        /// More pages are missing from a full crawl than allowed.
        MissingPages = "missing_pages",
        /// Nothing in the folder could be used.
        UnusableFolder = "unusable_folder",
        /// More captures than allowed are not what they claim to be.
        Suspects = "suspects",
        /// Pages are said to be as before, but no kept snapshot has them.
        UnknownPages = "unknown_pages",
        /// An extractor failed on more pages than allowed.
        FailedExtractions = "failed_extractions",
        /// A budget was used up before all was extracted.
        DeferredExtractions = "deferred_extractions",
    }
}

/// A problem of a snapshot, with its facts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Problem {
    Rejects { rejects: u64, captures: u64 },
    CutArchive { files: u64, first: String },
    MissingPages { missing: u64, of: u64 },
    UnusableFolder { reason: String },
    Suspects { suspects: u64, captures: u64 },
    UnknownPages { urls: u64, first: String },
    FailedExtractions { extractor: String, failed: u64, pages: u64, error: Option<String> },
    DeferredExtractions { extractor: String, pages: u64, units: u64 },
}

impl Problem {
    #[must_use]
    pub fn kind(&self) -> ProblemKind {
        match self {
            Self::Rejects { .. } => ProblemKind::Rejects,
            Self::CutArchive { .. } => ProblemKind::CutArchive,
            Self::MissingPages { .. } => ProblemKind::MissingPages,
            Self::UnusableFolder { .. } => ProblemKind::UnusableFolder,
            Self::Suspects { .. } => ProblemKind::Suspects,
            Self::UnknownPages { .. } => ProblemKind::UnknownPages,
            Self::FailedExtractions { .. } => ProblemKind::FailedExtractions,
            Self::DeferredExtractions { .. } => ProblemKind::DeferredExtractions,
        }
    }

    /// What a person can do about it. `pipeline` is the pipeline file.
    #[must_use]
    pub fn remedy(&self, pipeline: &str, snapshot: &SnapshotId) -> String {
        match self {
            Self::CutArchive { .. } | Self::UnusableFolder { .. } => {
                format!(
                    "pages that it does not show are kept; mend the folder and `ratoon run {pipeline} --force --snapshot \
                     {snapshot}`, or `--accept {snapshot}` to hear of it no more"
                )
            }
            Self::MissingPages { .. } => {
                format!(
                    "they are kept as they were; if the site really shrank, `ratoon run {pipeline} --accept {snapshot}` deletes \
                     them"
                )
            }
            Self::Rejects { .. } => "see the table rejects".to_owned(),
            Self::Suspects { .. } => "see captures.suspect".to_owned(),
            Self::UnknownPages { .. } => "fetch them once without a condition".to_owned(),
            Self::FailedExtractions { .. } => "the next run tries them again; see extractions.error".to_owned(),
            Self::DeferredExtractions { .. } => "the next run goes on with them".to_owned(),
        }
    }
}

/// What is wrong, on one line, whatever the foreign text in it holds.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clean = |text: &str| text.replace(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'), "?");
        match self {
            Self::Rejects { rejects, captures } => write!(f, "{rejects} rejects beside {captures} captures"),
            Self::CutArchive { files: 1, first } => {
                write!(f, "incomplete crawl: {} is cut or cannot be read", clean(first))
            }
            Self::CutArchive { files, first } => {
                write!(f, "incomplete crawl: {files} files are cut or cannot be read, the first is {}", clean(first))
            }
            Self::MissingPages { missing, of } => {
                write!(f, "incomplete crawl: {missing} of {of} pages are missing from it")
            }
            Self::UnusableFolder { reason } => write!(f, "nothing in its folder could be used: {}", clean(reason)),
            Self::Suspects { suspects, captures } => {
                write!(f, "{suspects} of {captures} captures are suspect: not the pages that they stand for")
            }
            Self::UnknownPages { urls, first } => write!(
                f,
                "{urls} pages are said to be as before, but no kept snapshot has them, the first is {}",
                clean(first)
            ),
            Self::FailedExtractions { extractor, failed, pages, error } => {
                write!(f, "extractor '{}' failed on {failed} of {pages} pages", clean(extractor))?;
                error.as_ref().map_or(Ok(()), |error| write!(f, ": {}", clean(error)))
            }
            Self::DeferredExtractions { extractor, pages, units } => write!(
                f,
                "the budget of extractor '{}' was used up: {units} units of {pages} pages are deferred",
                clean(extractor)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_one_line_and_goes_through_every_format() {
        let error = Some("429\n\u{1b}[2Jrate limited".to_owned());
        let problem = Problem::FailedExtractions { extractor: "x".into(), failed: 3, pages: 4, error };
        assert_eq!(problem.to_string(), "extractor 'x' failed on 3 of 4 pages: 429??[2Jrate limited");
        let json = serde_json::to_value(&problem).unwrap();
        assert_eq!(json[problem.kind().as_str()]["failed"], 3, "its JSON has the name of its kind: {json}");
        assert_eq!(serde_json::from_value::<Problem>(json).unwrap(), problem);
        let bytes = postcard::to_stdvec(&problem).unwrap();
        assert_eq!(postcard::from_bytes::<Problem>(&bytes).unwrap(), problem);
    }
}
