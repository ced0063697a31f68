//! `[verify]`: how much is extracted from scratch and compared after each run.

use serde::Deserialize;
use toml::Spanned;

use super::check::{Check, ConfigError};

/// What is looked at after each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifySettings {
    /// At most one page of so many; `None`: none.
    pub nightly: Option<u64>,
}

const DEFAULT_NIGHTLY: u64 = 30;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VerifyFile {
    nightly: Option<Spanned<String>>,
}

impl VerifyFile {
    pub(super) fn check(self, check: &Check<'_>) -> Result<VerifySettings, ConfigError> {
        let Some(written) = self.nightly else { return Ok(VerifySettings { nightly: Some(DEFAULT_NIGHTLY) }) };
        if written.get_ref() == "off" {
            return Ok(VerifySettings { nightly: None });
        }
        let of = written.get_ref().strip_prefix("1/").and_then(|of| of.parse().ok()).filter(|of| *of > 0);
        match of {
            Some(of) => Ok(VerifySettings { nightly: Some(of) }),
            None => Err(check.at(&written, "`nightly` of [verify] is no part".into(), "write \"1/30\", or \"off\"")),
        }
    }
}
