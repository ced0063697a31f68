//! `ratoon tables`: the schema reference, from the declarations that write the tables.

use std::fmt::Write as _;

use serde_json::json;

use super::outcome::Outcome;
use super::{Options, output};

pub(super) fn tables(options: &Options) -> anyhow::Result<Outcome> {
    let tables = crate::tables::all();
    if options.json {
        let tables: Vec<_> = tables
            .iter()
            .map(|table| {
                let columns: Vec<_> = table
                    .columns
                    .iter()
                    .map(|c| json!({"name": c.name, "type": c.type_name(), "nullable": c.nullable, "description": c.description}))
                    .collect();
                json!({"name": table.name, "about": table.about, "columns": columns})
            })
            .collect();
        return output::json(&tables);
    }
    let mut text = String::from(
        "# Tables\n\nEach is a folder `<store>/<table>` of Parquet files, partitioned by `snapshot`. Times are UTC; NULL means unknown.\n",
    );
    for table in &tables {
        let _ = write!(text, "\n## {}\n{}\n\n| column | type | meaning |\n|---|---|---|\n", table.name, table.about);
        for column in &table.columns {
            let null = if column.nullable { ", may be NULL" } else { "" };
            let _ = writeln!(text, "| {} | {}{null} | {} |", column.name, column.type_name(), column.description);
        }
    }
    output::text(&text)
}
