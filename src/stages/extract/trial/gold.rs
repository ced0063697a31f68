//! What people say that pages have.

use std::collections::HashMap;

use anyhow::{Result, bail};
use serde::Deserialize;

use crate::model::SnapshotId;
use crate::recycle::trial::Gold;

/// A line of a gold file.
#[derive(Deserialize)]
struct GoldLine {
    url: String,
    text: Option<String>,
    start: Option<u32>,
    end: Option<u32>,
    extractor: Option<String>,
    snapshot: Option<String>,
}

/// By URL, what people say a page has. Lines of other snapshots are left out, and those of other extractors say only
/// that the page was looked at.
pub(super) fn gold(lines: &str, extractor: &str, snapshot: &SnapshotId) -> Result<HashMap<String, Vec<Gold>>> {
    let mut pages: HashMap<String, Vec<Gold>> = HashMap::new();
    for (i, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let told = |problem: String| {
            format!(
                "gold, line {}: {problem}; write {{\"url\": …, \"text\": …}} or {{\"url\": …, \"start\": …, \"end\": …}}",
                i + 1
            )
        };
        let line: GoldLine = serde_json::from_str(line).map_err(|error| anyhow::anyhow!(told(error.to_string())))?;
        if line.snapshot.is_some_and(|of| of != snapshot.as_str()) {
            continue;
        }
        let page = pages.entry(line.url).or_default();
        if line.extractor.is_some_and(|of| of != extractor) {
            continue;
        }
        let place = line.start.zip(line.end);
        match (line.text, place) {
            (None, None) => {}
            (text, place) => page.push(Gold { text: text.unwrap_or_default(), place }),
        }
    }
    if pages.is_empty() {
        bail!("the gold file says nothing of snapshot {snapshot}");
    }
    Ok(pages)
}

/// Reads a gold file as `trial` does, for the fuzzer: how many bytes it says.
#[cfg(any(test, feature = "lab"))]
pub(crate) fn gold_bytes(lines: &str) -> u64 {
    let snapshot = SnapshotId::new("n1").expect("a sound id");
    let pages = gold(lines, "x", &snapshot).unwrap_or_default();
    pages.iter().map(|(url, gold)| url.len() + gold.iter().map(|gold| gold.text.len()).sum::<usize>()).sum::<usize>()
        as u64
}
