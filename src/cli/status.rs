//! `ratoon status`: what is done, what is left.

use std::path::Path;

use super::outcome::Outcome;
use super::{Options, output};
use crate::config::Pipeline;
use crate::look;

pub(super) fn status(pipeline: &Path, options: &Options) -> anyhow::Result<Outcome> {
    let status = look::status::status(&Pipeline::load(pipeline)?)?;
    if options.json {
        return output::json(&status.json());
    }
    output::text(&status.text())
}
