//! `[guard]`: how much may be missing, suspect, failed or rejected before a night has a problem.

use serde::Deserialize;
use toml::Spanned;

use super::check::{Check, ConfigError};

/// Shares beyond which a snapshot has a problem.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guard {
    /// Of the pages known that a full crawl did not bring: more is an incomplete crawl.
    pub max_deleted_share: f64,
    /// Of the captured URLs.
    pub max_suspect_share: f64,
    /// Of an extractor's pages.
    pub max_failed_share: f64,
    /// Of captures and rejects.
    pub max_reject_share: f64,
}

impl Default for Guard {
    fn default() -> Self {
        Self { max_deleted_share: 0.3, max_suspect_share: 0.3, max_failed_share: 0.05, max_reject_share: 0.01 }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GuardFile {
    max_deleted_share: Option<Spanned<f64>>,
    max_suspect_share: Option<Spanned<f64>>,
    max_failed_share: Option<Spanned<f64>>,
    max_reject_share: Option<Spanned<f64>>,
}

impl GuardFile {
    /// `in_corpus`: `max_reject_share` where it stood in earlier versions.
    pub(super) fn check(self, check: &Check<'_>, in_corpus: Option<Spanned<f64>>) -> Result<Guard, ConfigError> {
        if let (Some(_), Some(old)) = (&self.max_reject_share, &in_corpus) {
            let message = "`max_reject_share` stands in [corpus] and in [guard]".to_owned();
            return Err(check.at(old, message, "keep the one in [guard]"));
        }
        let share = |written: Option<Spanned<f64>>, key: &str, default: f64| match written {
            None => Ok(default),
            Some(share) if (0.0..=1.0).contains(share.get_ref()) => Ok(share.into_inner()),
            Some(share) => Err(check.at(&share, format!("`{key}` is not a share"), "give a number from 0 to 1")),
        };
        let default = Guard::default();
        let max_reject_share = self.max_reject_share.or(in_corpus);
        Ok(Guard {
            max_deleted_share: share(self.max_deleted_share, "max_deleted_share", default.max_deleted_share)?,
            max_suspect_share: share(self.max_suspect_share, "max_suspect_share", default.max_suspect_share)?,
            max_failed_share: share(self.max_failed_share, "max_failed_share", default.max_failed_share)?,
            max_reject_share: share(max_reject_share, "max_reject_share", default.max_reject_share)?,
        })
    }
}
