//! The pipeline file as typed. A key that does not exist is refused here; what the keys mean is decided beside it.

use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use super::guard::GuardFile;
use super::notify::NotifyFile;
use super::schedule::ScheduleFile;
use super::verify::VerifyFile;
use super::watches::WatchFile;
use crate::archive::Layout;
use crate::deltas::query::QueryConfig;
use crate::extract::ExtractorConfig;
use crate::model::Coverage;
use crate::plan::PlanChoice;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PipelineFile {
    pub(super) corpus: CorpusFile,
    #[serde(default)]
    pub(super) guard: GuardFile,
    #[serde(default)]
    pub(super) plan: PlanFile,
    #[serde(default)]
    pub(super) extractor: Vec<Spanned<ExtractorConfig>>,
    #[serde(default)]
    pub(super) query: Vec<Spanned<QueryConfig>>,
    #[serde(default)]
    pub(super) watch: Vec<WatchFile>,
    #[serde(default)]
    pub(super) schedule: ScheduleFile,
    #[serde(default)]
    pub(super) notify: NotifyFile,
    #[serde(default)]
    pub(super) verify: VerifyFile,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CorpusFile {
    pub(super) snapshots: Spanned<PathBuf>,
    pub(super) store: Spanned<PathBuf>,
    #[serde(default)]
    pub(super) layout: Layout,
    #[serde(default)]
    pub(super) coverage: Coverage,
    pub(super) every: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) equate_schemes: bool,
    #[serde(default)]
    pub(super) ignore: Vec<Spanned<String>>,
    /// Stands in `[guard]` now.
    pub(super) max_reject_share: Option<Spanned<f64>>,
    pub(super) time_zone: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanFile {
    #[serde(default)]
    pub(super) choose: PlanChoice,
    pub(super) k: Option<Spanned<u16>>,
    pub(super) sample: Option<u16>,
    pub(super) share: Option<Spanned<f64>>,
}
