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

    /// Whoever takes the signs of a comment away has a pipeline too.
    #[test]
    fn what_is_commented_out_is_understood() {
        let text = super::template("snapshots", "store");
        // A model has a prompt and a list has terms, which are files of their own.
        let examples = text.split("# [[extractor]]").skip(1).filter(|example| {
            ["\"regex\"", "\"command\""].iter().any(|kind| example.contains(&format!("kind = {kind}")))
        });
        let mut seen = 0;
        for example in examples {
            let lines = example.lines().skip(1).take_while(|line| line.starts_with("# "));
            let uncommented: Vec<&str> = lines.map(|line| &line[2..]).collect();
            let pipeline = format!("{text}\n[[extractor]]\n{}\n", uncommented.join("\n"));
            Pipeline::parse(Path::new("p.toml"), &pipeline).unwrap();
            seen += 1;
        }
        assert_eq!(seen, 2);
    }

    #[test]
    fn the_template_is_a_pipeline() {
        let text = super::template("a \"b\"", "store = \"store\"");
        let pipeline = Pipeline::parse(Path::new("p.toml"), &text).unwrap();
        assert_eq!(pipeline.corpus.snapshots, Path::new("a \"b\""));
        assert_eq!(pipeline.corpus.store, Path::new("store = \"store\""));
        assert!(text.contains("Or warc, "), "{text}");
    }
}
