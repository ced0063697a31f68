//! What a snapshot brought, counted from its tables.

use polars::prelude::{DataFrame, IntoLazy as _, PolarsResult, col, len};
use serde::Serialize;

/// A snapshot in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Overview {
    pub captures: u64,
    /// Captures with a status other than 200 and 304 (unknown ones are good).
    pub failed: u64,
    pub revisits: u64,
    pub pages: u64,
    pub added: u64,
    pub modified: u64,
    pub unchanged: u64,
    pub carried: u64,
    pub moved: u64,
    pub text_bytes: u64,
}

impl Overview {
    /// Counts `captures` (`CaptureStatus`) and `pages` (`PageChange`).
    pub fn of(captures: &DataFrame, pages: &DataFrame) -> PolarsResult<Self> {
        let status = captures
            .clone()
            .lazy()
            .select([
                len().alias("captures"),
                col("status").neq(200).and(col("status").neq(304)).sum().alias("failed"),
                col("revisit").sum().alias("revisits"),
            ])
            .collect()?;
        let changes = pages
            .clone()
            .lazy()
            .group_by([col("change")])
            .agg([
                len().alias("pages"),
                col("moved_from").is_not_null().sum().alias("moved"),
                col("text_bytes").sum().alias("text_bytes"),
            ])
            .collect()?;
        let mut overview = Self {
            captures: number(&status, "captures", 0)?,
            failed: number(&status, "failed", 0)?,
            revisits: number(&status, "revisits", 0)?,
            ..Self::default()
        };
        let names = changes.column("change")?.str()?.clone();
        for (i, name) in names.iter().enumerate() {
            let pages = number(&changes, "pages", i)?;
            overview.pages += pages;
            overview.moved += number(&changes, "moved", i)?;
            overview.text_bytes += number(&changes, "text_bytes", i)?;
            match name {
                Some("added") => overview.added = pages,
                Some("modified") => overview.modified = pages,
                Some("unchanged") => overview.unchanged = pages,
                Some("carried") => overview.carried = pages,
                _ => {}
            }
        }
        Ok(overview)
    }
}

fn number(frame: &DataFrame, column: &str, row: usize) -> PolarsResult<u64> {
    frame.column(column)?.get(row)?.try_extract::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use polars::prelude::df;

    #[test]
    fn counts_are_by_kind() {
        let captures =
            df!("status" => [Some(200i64), Some(404), Some(304), None], "revisit" => [false, false, true, false])
                .unwrap();
        let pages = df!(
            "change" => ["added", "modified", "added"],
            "moved_from" => [None, None, Some("http://a/")],
            "text_bytes" => [1i64, 20, 300],
        )
        .unwrap();
        let expected = Overview {
            captures: 4,
            failed: 1,
            revisits: 1,
            pages: 3,
            added: 2,
            modified: 1,
            moved: 1,
            text_bytes: 321,
            ..Overview::default()
        };
        assert_eq!(Overview::of(&captures, &pages).unwrap(), expected);
        assert_eq!(Overview::of(&captures.head(Some(0)), &pages.head(Some(0))).unwrap(), Overview::default());
    }
}
