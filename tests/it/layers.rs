//! The architecture as a table: which module may use which. The picture is in `src/lib.rs`.

use std::collections::BTreeSet;
use std::fs;

use crate::workspace::project;

/// Module, and the modules of the crate that it may use.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "cli",
        &[
            "archive",
            "captures",
            "config",
            "deltas",
            "extract",
            "inspect",
            "manifests",
            "matching",
            "model",
            "plan",
            "recycle",
            "report",
            "run",
            "schedule",
            "stages",
            "stats",
            "store",
            "synth",
            "tables",
        ],
    ),
    (
        "stages",
        &[
            "archive",
            "captures",
            "config",
            "deltas",
            "extract",
            "inspect",
            "manifests",
            "matching",
            "model",
            "plan",
            "recycle",
            "report",
            "run",
            "schedule",
            "stats",
            "store",
            "tables",
            "text",
        ],
    ),
    ("run", &["archive", "config", "manifests", "model", "plan", "store", "tables"]),
    ("config", &["archive", "deltas", "extract", "model", "plan", "schedule", "stats", "store", "text"]),
    ("manifests", &["extract", "matching", "model", "plan", "schedule", "stats", "store", "tables"]),
    ("report", &["deltas", "model", "schedule", "stats", "tables"]),
    ("archive", &["model"]),
    ("store", &["model", "tables"]),
    ("recycle", &["extract", "matching", "model"]),
    ("plan", &["matching", "model"]),
    ("schedule", &["model", "stats"]),
    ("deltas", &["model"]),
    ("stats", &["model"]),
    ("matching", &["model"]),
    ("extract", &["model"]),
    ("synth", &["model"]),
    ("captures", &["model"]),
    ("inspect", &["model"]),
    ("text", &["model"]),
    ("tables", &["model"]),
    ("model", &[]),
];

/// Crates that only some modules may use.
const CRATES: &[(&str, &[&str])] = &[
    ("arrow_array", &["tables", "store"]),
    ("parquet", &["store"]),
    ("polars", &["store", "report"]),
    ("polars_io", &["store"]),
    ("rayon", &["cli", "matching", "run", "stages"]),
    ("indicatif", &["run", "cli"]),
    ("clap", &["cli"]),
    ("fs_err", &["archive", "store"]),
    ("walkdir", &["archive"]),
    ("fastwarc", &["archive"]),
    ("anyhow", &["cli", "run", "stages"]),
];

#[test]
fn modules_use_only_what_lies_below_them() {
    let src = project().join("src");
    let mut found = BTreeSet::new();
    let mut wrong = Vec::new();
    for entry in walkdir::WalkDir::new(&src).into_iter().map(Result::unwrap) {
        let path = entry.path();
        if path.extension().is_none_or(|e| e != "rs") {
            continue;
        }
        let inside = path.strip_prefix(&src).unwrap();
        let module = inside.components().next().unwrap().as_os_str().to_str().unwrap();
        if matches!(module, "lib.rs" | "main.rs") {
            continue;
        }
        found.insert(module.to_owned());
        let text = fs::read_to_string(path).unwrap();
        // Unit tests may use more than the code they test.
        let code = text.split("#[cfg(test)]").next().unwrap();
        if inside.components().any(|part| part.as_os_str().to_string_lossy().trim_end_matches(".rs").ends_with("tests"))
        {
            continue;
        }
        let allowed = ALLOWED.iter().find(|(name, _)| *name == module).map(|(_, below)| *below);
        let allowed = allowed.unwrap_or_else(|| panic!("src/{module} is not in the table of layers"));
        for used in uses(code, "crate::") {
            if used != module && !allowed.contains(&used.as_str()) && used.chars().all(|c| c.is_lowercase() || c == '_')
            {
                wrong.push(format!("{} uses crate::{used}", inside.display()));
            }
        }
        for (name, users) in CRATES {
            let mentions = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            if mentions.clone().any(|line| uses_crate(line, name)) && !users.contains(&module) {
                wrong.push(format!("{} uses {name}", inside.display()));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert!(found.len() > 5, "found only {found:?}");
}

/// The words that follow `prefix`, outside comments.
fn uses(code: &str, prefix: &str) -> BTreeSet<String> {
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines
        .flat_map(|line| line.split(prefix).skip(1))
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>())
        .filter(|word| !word.is_empty())
        .collect()
}

fn uses_crate(line: &str, name: &str) -> bool {
    let path = format!("{name}::");
    line.match_indices(&path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        // `store::parquet::x` is ours, `::parquet::x` and `parquet::x` are the crate.
        let ours =
            line[..at].ends_with("store::") || line[..at].ends_with("super::") || line[..at].ends_with("crate::");
        !ours && !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}
