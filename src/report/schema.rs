//! The schema reference, from the declarations that write the tables.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::tables;

#[must_use]
pub(crate) fn schema_json() -> Value {
    let column = |column: &tables::record::Column| {
        json!({
            "name": column.name, "type": column.type_name(), "nullable": column.nullable,
            "description": column.description,
        })
    };
    let described = tables::all().into_iter().map(|table| {
        let columns: Vec<Value> = table.columns.iter().map(column).collect();
        json!({"name": table.name, "about": table.about, "columns": columns})
    });
    described.collect()
}

/// As Markdown.
#[must_use]
pub(crate) fn schema() -> String {
    let mut text = String::from(
        "# Tables\n\nEach is a folder `<store>/<table>` of Parquet files, partitioned by `snapshot`. Times are UTC; NULL means unknown.\n",
    );
    text.push_str(
        "\nIn SQL there is also `texts`: of each row of `pages`, only snapshot, url, text_digest and text. It has no folder.\n",
    );
    for table in tables::all() {
        let _ = write!(text, "\n## {}\n{}\n\n| column | type | meaning |\n|---|---|---|\n", table.name, table.about);
        for column in &table.columns {
            let null = if column.nullable { ", may be NULL" } else { "" };
            let _ = writeln!(text, "| {} | {}{null} | {} |", column.name, column.type_name(), column.description);
        }
    }
    text
}
