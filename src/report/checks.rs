//! Fresh looks at what is stored and declared: `verify` and `audit`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::model::SnapshotId;
use crate::recycle::audit::Audited;
use crate::recycle::verify::Verified;

/// Mentions extracted anew and compared with those of a snapshot.
pub(crate) struct Verification {
    pub snapshot: SnapshotId,
    /// By extractor, in the order of the pipeline file.
    pub extractors: Vec<(String, Verified)>,
    /// Whether all pages were looked at, not a sample.
    pub every_page: bool,
}

impl Verification {
    /// Whether nothing differs.
    #[must_use]
    pub(crate) fn is_clean(&self) -> bool {
        self.extractors.iter().all(|(_, verified)| verified.is_clean())
    }

    #[must_use]
    pub(crate) fn json(&self) -> Value {
        let extractor = |(name, v): &(String, Verified)| {
            let first: Vec<_> =
                v.first.iter().map(|(url, d)| json!({"url": url, "difference": d.to_string()})).collect();
            let mut extractor = json!({"extractor": name, "pages": v.pages, "mentions": v.mentions, "failed": v.failed,
                   "different": v.different, "bound": if self.every_page { 0.0 } else { v.bound() }, "first": first});
            if v.older > 0 {
                extractor["older"] = json!(v.older);
            }
            extractor
        };
        let extractors: Vec<Value> = self.extractors.iter().map(extractor).collect();
        json!({"snapshot": self.snapshot, "clean": self.is_clean(), "extractors": extractors})
    }

    #[must_use]
    pub(crate) fn text(&self) -> String {
        let mut text = format!("snapshot {}\n", self.snapshot);
        for (name, v) in &self.extractors {
            let mut failed = String::new();
            if v.failed > 0 {
                let _ = write!(failed, ", {} could not be extracted anew", v.failed);
            }
            if v.older > 0 {
                let _ = write!(failed, ", {} have what an earlier definition found", v.older);
            }
            if v.is_clean() {
                let (pages, mentions, bound) = (v.pages, v.mentions, v.bound() * 100.0);
                let _ = if self.every_page {
                    let all = if v.older > 0 { "" } else { "all " };
                    writeln!(text, "{name}: 0 wrong in {all}{pages} pages ({mentions} mentions){failed}")
                } else {
                    writeln!(
                        text,
                        "{name}: 0 wrong in {pages} pages ({mentions} mentions){failed}: at most {bound:.2} % of all, at 95 %"
                    )
                };
            } else {
                let _ = writeln!(text, "{name}: {} wrong in {} pages{failed}", v.different, v.pages);
                for (url, difference) in &v.first {
                    let _ = writeln!(text, "  {url}: {difference}");
                }
            }
        }
        if self.extractors.is_empty() {
            text.push_str("the pipeline file declares no extractor\n");
        }
        text
    }
}

#[must_use]
pub(crate) fn audit_json(snapshot: &SnapshotId, audited: &[Audited]) -> Value {
    let extractor = |a: &Audited| {
        let (scope, left, right) = a.declared.map_or((None, None, None), |(s, l, r)| (Some(s), Some(l), Some(r)));
        json!({"extractor": a.extractor, "scope": scope, "context": [left, right], "trials": a.audit.trials,
               "wrong": a.audit.wrong, "too_long": a.audit.too_long, "passes": a.audit.passes(),
               "bound": a.audit.bound(), "smallest_context": a.smallest_context})
    };
    let passes = audited.iter().all(|audited| audited.audit.passes());
    let extractors: Vec<Value> = audited.iter().map(extractor).collect();
    json!({"snapshot": snapshot, "passes": passes, "extractors": extractors})
}

#[must_use]
pub(crate) fn audit(audited: &[Audited]) -> String {
    if audited.is_empty() {
        return "there is no command extractor: nothing to audit\n".to_owned();
    }
    let mut text = String::new();
    for a in audited {
        let _ = match a.declared {
            Some((scope, left, right)) => {
                write!(text, "{}: scope {scope}, context {left} and {right}: ", a.extractor)
            }
            None => write!(text, "{}: units, each for itself: ", a.extractor),
        };
        if a.audit.passes() {
            let bound = a.audit.bound() * 100.0;
            let _ = write!(text, "holds in {} trials (fails in at most {bound:.2} %, at 95 %)", a.audit.trials);
        } else {
            let _ = write!(text, "WRONG in {} of {} trials", a.audit.wrong, a.audit.trials);
            if a.audit.too_long > 0 {
                let _ = write!(text, ", {} mentions longer than the scope", a.audit.too_long);
            }
            if let Some(first) = a.audit.violations.first() {
                let _ = write!(text, ", first with {}", first.fill.as_str());
            }
        }
        if a.declared.is_none() {
            text.push('\n');
            continue;
        }
        let _ = match a.smallest_context {
            Some(context) => writeln!(text, "; smallest context that passes: {context}"),
            None => writeln!(text, "; no context tried passes: use unit = \"paragraph\" or \"page\""),
        };
    }
    text
}
