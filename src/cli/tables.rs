//! `ratoon tables`: the schema reference.

use super::outcome::Outcome;
use super::{Options, output};
use crate::report::schema;

pub(super) fn tables(options: &Options) -> anyhow::Result<Outcome> {
    if options.json {
        return output::json(&schema::schema_json());
    }
    output::text(&schema::schema())
}
