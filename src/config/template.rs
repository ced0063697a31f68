//! The pipeline file that `ratoon init` writes: commented, and a pipeline file itself.

use crate::archive::Layout;

/// A test holds it to what the program reads.
const TEMPLATE: &str = include_str!("template.toml");

/// A pipeline file to start from, for these folders.
#[must_use]
pub(crate) fn template(snapshots: &str, store: &str) -> String {
    let line = |line: &str| match line {
        "# LAYOUTS" => format!("# How a snapshot folder holds its captures: auto looks. Or {}.\n", Layout::names()),
        r#"snapshots = "snapshots""# => format!("snapshots = {}\n", toml::Value::from(snapshots)),
        r#"store = "store""# => format!("store = {}\n", toml::Value::from(store)),
        line => format!("{line}\n"),
    };
    TEMPLATE.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::Pipeline;

    #[test]
    fn the_template_is_a_pipeline() {
        let text = super::template("a \"b\"", "store = \"store\"");
        let pipeline = Pipeline::parse(Path::new("p.toml"), &text).unwrap();
        assert_eq!(pipeline.corpus.snapshots, Path::new("a \"b\""));
        assert_eq!(pipeline.corpus.store, Path::new("store = \"store\""));
        assert!(text.contains("Or warc, "), "{text}");
    }
}
