//! Archives by the programs that write them: wget, HTTrack, warcio and py-wacz fetch a site of awkward pages on loopback,
//! and the tables must hold what it served.
//!
//! `tests/python/writers` has the site (`site_server.py`, which is the truth), the cases, and the comparison. A case runs
//! alone with `make test-writers CASE=wget-warc`.

use std::process::Command;

use crate::workspace::{Ended, project};

#[track_caller]
fn as_served(case: &str) {
    let python = std::env::var("RATOON_PYTHON").expect("RATOON_PYTHON names a Python; make test sets it");
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(python)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(project().join("tests/python/writers/run.py"))
        .args([case, env!("CARGO_BIN_EXE_ratoon")])
        .arg(dir.path())
        .output()
        .unwrap();
    let ended = Ended::of(&output).expect(0);
    assert!(ended.stdout.contains("as served: "), "{}", ended.stdout);
}

macro_rules! cases {
    ($($test:ident: $case:literal,)*) => {
        $(
            #[test]
            #[ignore = "needs crawlers and their Python: make test provides both"]
            fn $test() {
                as_served($case);
            }
        )*

        /// A case that is not run here would never be run.
        #[test]
        #[ignore = "needs the Python of the crawlers: make test provides it"]
        fn every_case_is_run() {
            let python = std::env::var("RATOON_PYTHON").expect("RATOON_PYTHON names a Python; make test sets it");
            let list = "import cases; print('\\n'.join(sorted(cases.CASES)))";
            let folder = project().join("tests/python/writers");
            let output = Command::new(python)
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .args(["-c", list])
                .current_dir(folder)
                .output()
                .unwrap();
            let ended = Ended::of(&output).expect(0);
            let mut known = vec![$($case),*];
            known.sort_unstable();
            assert_eq!(ended.stdout.lines().collect::<Vec<_>>(), known);
        }
    };
}

cases! {
    wget_writes_gzip_warc: "wget-warc",
    wget_writes_plain_warc: "wget-warc-plain",
    warcio_writes_gzip_warc: "warcio-gzip",
    warcio_writes_plain_warc: "warcio-plain",
    wget_mirrors: "wget-mirror",
    wget_mirrors_with_requisites: "wget-mirror-p",
    wget_rewrites_links: "wget-mirror-k",
    wget_rewrites_links_and_keeps_originals: "wget-mirror-k-K",
    wget_renames_pages: "wget-mirror-E",
    wget_renames_and_rewrites: "wget-mirror-E-k-K",
    wget_saves_headers: "wget-mirror-headers",
    httrack_mirrors_and_updates: "httrack",
    httrack_trees_without_their_cache: "httrack-tree",
    py_wacz_packs_warc: "wacz",
}
