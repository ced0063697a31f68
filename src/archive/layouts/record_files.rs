//! What WARC, ARC and WET have in common: files of records, wherever they lie in the folder.

use std::collections::BTreeSet;

use crate::archive::detect::{Print, Search};
use crate::archive::records::RecordsPart;
use crate::archive::records::source::Source;
use crate::archive::sniff::FileKind;

use super::{Layout, claim};

/// Why a file that ends in `.open` is not read: crawlers name files so until they are done.
pub(super) const STILL_WRITTEN: &str = "still being written; hint: it is read when it loses '.open'";

/// Adds all files of a layout among `files`, and says which only claim to be. `left_out`: captures of these files are
/// read from elsewhere, so remark it instead.
pub(super) fn find(search: &mut Search<'_>, files: &[usize], layout: Layout, left_out: bool) {
    let walk = search.walk;
    // Rejects that concern no layout in particular are made once, by the layout that is looked for first.
    let says_all = layout == Layout::Warc;
    let mut seen = BTreeSet::new();
    for &at in files {
        let name = walk.files[at].name();
        let claims = claim(&name).is_some_and(|(claimed, _)| claimed == layout);
        let kind = match search.kind(at) {
            Ok(kind) => *kind,
            Err(error) => {
                let reason = error.clone();
                if says_all {
                    search.reject(at, reason);
                }
                continue;
            }
        };
        let is_of_layout = matches!(kind, FileKind::Records(of, _) if of == layout);
        if name.ends_with(".open") && (is_of_layout || (claims && says_all)) {
            search.reject(at, STILL_WRITTEN);
            continue;
        }
        let not = |why: &str| format!("not a {} file: {why}", layout.as_str().to_uppercase());
        match kind {
            FileKind::Records(..) if !is_of_layout => {}
            FileKind::Records(..) if left_out => {
                search.remark(format!("{name}: left out, what it was made from is there"));
            }
            // With links in the folder a file may be met under several names; its records count once.
            FileKind::Records(..) if !is_first(search, at, &mut seen) => {
                log::debug!("{}: read under another name, ignored", search.path(at).display());
            }
            FileKind::Records(_, format) => {
                let source = Source::File(search.path(at));
                search.add(layout, RecordsPart { source, format, name, extra_bytes: 0 });
                search.take(at, Print::Ends);
            }
            _ if !claims => {}
            FileKind::Empty => search.reject(at, not("it is empty")),
            FileKind::Markup => search.reject(at, not("it is a page")),
            FileKind::Zip => search.reject(at, not("it is a zip file")),
            FileKind::Other(why) => search.reject(at, not(why)),
        }
    }
}

/// Whether a file was not met before under another name.
pub(super) fn is_first(search: &Search<'_>, at: usize, seen: &mut BTreeSet<std::path::PathBuf>) -> bool {
    !search.walk.linked || fs_err::canonicalize(search.path(at)).is_ok_and(|real| seen.insert(real))
}
