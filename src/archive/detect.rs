//! Which layout a folder has, and which of its files belong to it.
//!
//! A manifest is told by its name, which is part of its definition. WARC files are told by their bytes. What is left
//! is a mirror if its folders are named like hosts. WARC files below such a folder may be pages of a mirror or the
//! work of a crawler that names its folders so; a page among them decides for the mirror.

use std::collections::BTreeSet;
use std::path::Path;

use crate::model::Reject;

use super::manifest::MANIFEST;
use super::mirror::has_host;
use super::sniff::{Kind, sniff};
use super::walk::{SourceFile, Walk, reject, walk};
use super::{ArchiveError, Layout};

pub(super) struct Found {
    pub(super) layout: Layout,
    pub(super) files: Vec<SourceFile>,
    pub(super) rejects: Vec<Reject>,
}

pub(super) fn detect(root: &Path, real_root: &Path, layout: Layout) -> Result<Found, ArchiveError> {
    let walk = walk(root, real_root);
    let layout = match layout {
        Layout::Auto => tell(root, &walk),
        Layout::Warc | Layout::Manifest | Layout::Mirror => layout,
    };
    let found = match layout {
        Layout::Manifest => {
            let has_manifest = walk.files.iter().any(|file| file.path == Path::new(MANIFEST));
            let files = if has_manifest { walk.files } else { Vec::new() };
            Found { layout, files, rejects: walk.rejects }
        }
        Layout::Mirror => {
            // A folder with no name of a host may still be one where the user says so: `intranet/`.
            let any_host = walk.files.iter().any(|file| has_host(&file.path));
            let is_page = |file: &SourceFile| has_host(&file.path) || (!any_host && file.path.iter().count() > 1);
            let (files, others): (Vec<_>, Vec<_>) = walk.files.into_iter().partition(is_page);
            for file in others {
                log::debug!("{}: not below a host, ignored", root.join(file.path).display());
            }
            Found { layout, files, rejects: walk.rejects }
        }
        Layout::Warc | Layout::Auto => warc_files(root, walk),
    };
    if found.files.is_empty() {
        return Err(ArchiveError::NoCapture { path: root.to_path_buf(), hint: hint(layout, &found.rejects) });
    }
    Ok(found)
}

fn hint(layout: Layout, rejects: &[Reject]) -> String {
    if let Some(first) = rejects.first() {
        return format!("{}: {} ({} rejected)", first.source_file, first.reason, rejects.len());
    }
    let expected = match layout {
        Layout::Auto => "expected WARC files, a manifest.jsonl, or a wget mirror with a folder for each host",
        Layout::Warc => "expected WARC files, plain or gzip",
        Layout::Manifest => "expected a manifest.jsonl",
        Layout::Mirror => "expected a wget mirror with a folder for each host",
    };
    expected.to_owned()
}

/// `Auto` if nothing fits.
fn tell(root: &Path, walk: &Walk) -> Layout {
    if walk.files.iter().any(|file| file.path == Path::new(MANIFEST)) {
        return Layout::Manifest;
    }
    let kind = |file: &SourceFile| sniff(&root.join(&file.path)).ok();
    let (below_host, elsewhere): (Vec<_>, Vec<_>) = walk.files.iter().partition(|file| has_host(&file.path));
    if elsewhere.into_iter().any(|file| kind(file) == Some(Kind::Warc)) {
        return Layout::Warc;
    }
    let mut layout = if below_host.is_empty() { Layout::Auto } else { Layout::Mirror };
    for file in below_host {
        match kind(file) {
            Some(Kind::Markup) => return Layout::Mirror,
            Some(Kind::Warc) => layout = Layout::Warc,
            Some(Kind::Empty | Kind::Other(_)) | None => {}
        }
    }
    layout
}

fn warc_files(root: &Path, walk: Walk) -> Found {
    let mut found = Found { layout: Layout::Warc, files: Vec::new(), rejects: walk.rejects };
    let mut seen = BTreeSet::new();
    for file in walk.files {
        let path = root.join(&file.path);
        let name = file.name().to_ascii_lowercase();
        let ends_with = |end: &str| name.ends_with(end);
        let claims = [".warc", ".warc.gz", ".warc.zst"].into_iter().any(ends_with);
        let kind = match sniff(&path) {
            Ok(kind) => kind,
            Err(error) => {
                found.rejects.push(reject(&file.path, error.to_string()));
                continue;
            }
        };
        if ends_with(".open") && (kind == Kind::Warc || name.contains(".warc")) {
            found.rejects.push(reject(&file.path, "still being written; hint: it is read when it loses '.open'"));
            continue;
        }
        match kind {
            // With links in the folder a file may be met under several names; its records count once.
            Kind::Warc if !walk.linked || fs_err::canonicalize(&path).is_ok_and(|real| seen.insert(real)) => {
                found.files.push(file);
            }
            Kind::Warc => log::debug!("{}: read under another name, ignored", path.display()),
            Kind::Empty if claims => found.rejects.push(reject(&file.path, "not a WARC file: it is empty")),
            Kind::Markup if claims => found.rejects.push(reject(&file.path, "not a WARC file: it is a page")),
            Kind::Other(why) if claims => found.rejects.push(reject(&file.path, format!("not a WARC file: {why}"))),
            Kind::Empty | Kind::Markup | Kind::Other(_) => log::debug!("{}: not WARC, ignored", path.display()),
        }
    }
    found
}
