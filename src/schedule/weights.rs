//! What sources count in a budget, by a list: `url,weight` or `pattern,weight`.
//!
//! A line with a `*` is a glob over the names of sources (`*` goes over slashes, case does not matter), any other is a
//! name. A name counts before a glob, an earlier glob before a later one; who is not named counts 1.

use std::collections::HashMap;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::log::{LogError, records};
use crate::model::Digest;

/// Weights by source.
#[derive(Clone, Debug)]
pub struct SourceWeights {
    names: HashMap<String, f64>,
    globs: GlobSet,
    /// In the order of the globs.
    glob_weights: Vec<f64>,
    digest: Digest,
}

impl SourceWeights {
    /// Reads a list as CSV; a first line without a number is its header. What is wrong is named by its line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut globs = GlobSetBuilder::new();
        let (mut names, mut glob_weights) = (HashMap::new(), Vec::new());
        let rows = records(text.as_bytes()).map_err(|error: LogError| error.to_string())?;
        for (i, (line, fields)) in rows.iter().enumerate() {
            let [source, weight, ..] = fields.as_slice() else {
                if fields.iter().all(|field| field.trim().is_empty()) {
                    continue;
                }
                return Err(format!("line {line}: expected a source and its weight, such as http://a.example/*,2"));
            };
            let (source, weight) = (source.trim(), weight.trim());
            let number: f64 = match weight.parse() {
                Ok(number) => number,
                Err(_) if i == 0 => continue,
                Err(_) => return Err(format!("line {line}: '{weight}' is no number")),
            };
            if !(number.is_finite() && number >= 0.0) {
                return Err(format!("line {line}: the weight {weight} is not 0 or more"));
            }
            if source.contains('*') {
                let glob = GlobBuilder::new(source).case_insensitive(true).literal_separator(false).build();
                globs.add(glob.map_err(|error| format!("line {line}: glob '{source}': {}", error.kind()))?);
                glob_weights.push(number);
            } else {
                names.insert(source.to_owned(), number);
            }
        }
        if names.is_empty() && glob_weights.is_empty() {
            return Err("no weight in it: write lines such as http://a.example/*,2".to_owned());
        }
        let globs = globs.build().map_err(|error| error.kind().to_string())?;
        Ok(Self { names, globs, glob_weights, digest: Digest::of(text.as_bytes()) })
    }

    #[must_use]
    pub fn of(&self, source: &str) -> f64 {
        if let Some(weight) = self.names.get(source) {
            return *weight;
        }
        self.globs.matches(source).into_iter().min().map_or(1.0, |i| self.glob_weights[i])
    }

    /// Identifies the list.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_before_globs_and_earlier_globs_first() {
        let text =
            "url,weight\nhttp://a.test/x?id=1,5\nhttp://a.test/news/*,3\nhttp://A.test/*,2\n\"http://b.test/a,b\",0\n";
        let weights = SourceWeights::parse(text).unwrap();
        let found = ["http://a.test/x?id=1", "http://a.test/news/1", "http://a.test/y", "http://b.test/a,b", "c"];
        assert_eq!(found.map(|source| weights.of(source)), [5.0, 3.0, 2.0, 0.0, 1.0]);
        assert_eq!(SourceWeights::parse("a,2\n\nb,3").unwrap().of("a"), 2.0);
    }

    #[test]
    fn mistakes_are_named_by_line() {
        let error = |text: &str| SourceWeights::parse(text).unwrap_err();
        assert!(error("a,1\nb,many\n").starts_with("line 2: 'many' is no number"));
        assert!(error("a,1\nb\n").starts_with("line 2: expected"));
        assert!(error("a,-1\n").contains("not 0 or more"));
        assert!(error("source,weight\n").contains("no weight in it"));
        assert!(error("http://[*,1\n").contains("glob"));
    }
}
