//! What stages declare to read, against what they are seen to read on a store that gives each of them cause to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use super::{STAGES, graph};
use crate::config::Pipeline;
use crate::model::StageId;
use crate::run::progress::Progress;
use crate::run::stage::Asked;
use crate::run::{Wanted, run};
use crate::store::files;
use crate::store::view::Read;

/// So many extractors, none of them quick, that a night is worth planning by what earlier ones measured, and long enough
/// for a sample.
const EXTRACTORS: usize = 120;

fn pipeline_text() -> String {
    let mut text = String::from("[corpus]\nsnapshots = 'snapshots'\nstore = 'store'\n");
    // However quick the machine is, there is time for a sample: a night in which little of what changed is old.
    text.push_str("[plan]\nshare = 1.0\n");
    text.push_str("[schedule]\nsignal = { new_text = 'version', mention = 'line7' }\n");
    for i in 0..EXTRACTORS {
        let _ =
            write!(text, "[[extractor]]\nname = 'line{i}'\nkind = 'regex'\npattern = '(?i)line {i} of page [0-9]'\n");
    }
    text.push_str("[[query]]\nname = 'mentioning'\nnodes.a = { mention = 'line7' }\nlinks = ['a -> b']\n");
    text.push_str("[[watch]]\nname = 'new-lines'\non = { mentions = 'line7', change = 'added' }\n");
    text
}

/// Three nights: pages come, go, change, and lose links.
fn write_site(root: &Path) {
    for night in 1..=3_u32 {
        let mut manifest = String::new();
        for page in (0..6_u32).filter(|page| (page + night) % 5 != 0) {
            let lines: String = (0..9_000).fold(String::new(), |mut lines, line| {
                let other = if page % 2 == 0 { night } else { 0 };
                let _ = write!(lines, "<p>line {line} of page {page}, version {other}</p>");
                lines
            });
            let html = format!("<title>{page}</title>{lines}<a href='/{}'>next</a>", (page + night) % 6);
            let dir = root.join(format!("snapshots/2024-01-0{night}"));
            files::write(&dir.join(format!("{page}.html")), html.as_bytes()).unwrap();
            let _ = writeln!(manifest, r#"{{"url": "http://site.test/{page}", "file": "{page}.html"}}"#);
            files::write(&dir.join("manifest.jsonl"), manifest.as_bytes()).unwrap();
        }
    }
}

#[test]
fn stages_read_what_they_declare_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    write_site(dir.path());
    let pipeline = Pipeline::parse(&dir.path().join("p.toml"), &pipeline_text()).unwrap();
    let asked = Asked { plan: Some("anchor".parse().unwrap()), ..Asked::default() };
    let wanted = Wanted { asked, ..Wanted::default() };
    let mut seen: BTreeMap<StageId, BTreeSet<Read>> = BTreeMap::new();
    // The second run plans by what the first one measured.
    for wanted in
        [wanted.clone(), Wanted { stage: Some(StageId::Plan), force: true, asked: Asked::default(), ..wanted }]
    {
        let summary = run(graph(), &pipeline, &wanted, Progress::new(false)).unwrap();
        for (stage, reads) in summary.reads {
            seen.entry(stage).or_default().extend(reads);
        }
    }
    for stage in STAGES {
        let declared: BTreeSet<Read> = stage.reads().iter().copied().collect();
        let read = seen.remove(&stage.id()).unwrap_or_default();
        let unused: Vec<_> = declared.difference(&read).collect();
        assert!(unused.is_empty(), "{} declares what it was not seen to read: {unused:?}", stage.id());
    }
}

#[test]
fn reading_what_was_not_declared_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = crate::store::Store::open_or_create(dir.path()).unwrap();
    let view = store.for_stage(StageId::Stats, &[Read::Table("pages")], &["updates"]);
    let snapshot = crate::model::SnapshotId::new("n1").unwrap();
    let said = |error: crate::store::StoreError| error.to_string();
    assert!(said(view.partition("links", &snapshot).err().unwrap()).contains("without declaring it"));
    assert!(said(view.manifest::<crate::manifests::Ingested>(&snapshot).unwrap_err()).contains("manifest of ingest"));
    // What it declares, and what it writes itself, has no rows yet.
    for table in ["pages", "updates"] {
        assert_eq!(view.partition(table, &snapshot).unwrap().rows(), 0);
    }
}
