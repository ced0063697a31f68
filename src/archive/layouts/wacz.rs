//! WACZ: zip files with WARC files in their folder `archive`. Indexes and lists of pages beside it are not needed.
//!
//! A zip file is WACZ if it has such a folder, whatever its name. One that only claims to be by its name is rejected,
//! and if its directory is lost, as by an interrupted download, its entries are looked for.

use std::collections::BTreeSet;

use fs_err::File;

use crate::archive::detect::{Print, Search};
use crate::archive::records::RecordsPart;
use crate::archive::records::source::Source;
use crate::archive::sniff::{FileKind, sniff_bytes};
use crate::archive::walk::SourceFile;
use crate::archive::zip::{Directory, Entry, Names, leaves, list};

use super::record_files::{STILL_WRITTEN, is_first};
use super::{Layout, Rules, claim, first_with_ending};

pub(crate) struct Wacz;

impl Rules for Wacz {
    fn expected(&self) -> &'static str {
        "WACZ files"
    }

    fn evidence(&self, files: &[SourceFile]) -> String {
        format!("{} is a zip file with WARC files in archive/", first_with_ending(files, self.endings()))
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".wacz"]
    }

    fn without_status(&self) -> &'static str {
        "resource"
    }

    fn find(&self, search: &mut Search<'_>, archives: &[usize]) {
        let mut seen = BTreeSet::new();
        for &at in archives {
            let name = search.walk.files[at].name();
            let claims = claim(&name).is_some_and(|(claimed, _)| claimed == Layout::Wacz);
            match search.kind(at) {
                Ok(FileKind::Zip) if name.ends_with(".open") => search.reject(at, STILL_WRITTEN),
                Ok(FileKind::Zip) if is_first(search, at, &mut seen) => find_in_zip(search, at, claims),
                Ok(FileKind::Zip) | Err(_) => {}
                Ok(_) if claims => search.reject(at, "not a WACZ file: it is no zip file"),
                Ok(_) => {}
            }
        }
    }
}

/// Adds a zip file if it is WACZ.
fn find_in_zip(search: &mut Search<'_>, at: usize, claims: bool) {
    let directory = match File::open(search.path(at)).and_then(|opened| list(opened, claims, Names::Unique)) {
        Ok(directory) => directory,
        Err(error) => {
            if claims {
                search.reject(at, error.to_string());
            }
            return;
        }
    };
    if !claims && !directory.entries.iter().any(|entry| in_archive(&entry.name)) {
        return;
    }
    let parts = parts(search, at, directory);
    if parts.is_empty() {
        search.reject(at, "no archive in this WACZ file");
        return;
    }
    for part in parts {
        search.add(Layout::Wacz, part);
    }
    search.take(at, Print::Ends);
}

/// The archives in a WACZ file. The first of them stands for the rest of the file too.
fn parts(search: &mut Search<'_>, at: usize, directory: Directory) -> Vec<RecordsPart> {
    search.reject_faults(at, directory.faults);
    let mut rest = search.walk.files[at].bytes;
    let mut parts = Vec::new();
    for entry in directory.entries {
        if leaves(&entry.name) {
            search.reject_at(at, entry.offset, format!("entry '{}' leaves the archive", entry.name));
        } else if in_archive(&entry.name) {
            let (offset, packed) = (entry.offset, entry.packed_bytes);
            match part(search, at, entry) {
                Ok(Some(part)) => {
                    rest = rest.saturating_sub(packed);
                    parts.push(part);
                }
                Ok(None) => {}
                Err(reason) => search.reject_at(at, offset, reason),
            }
        }
    }
    if let Some(first) = parts.first_mut() {
        first.extra_bytes = rest;
    }
    parts
}

/// An entry as an archive; `None` if it is none and does not claim to be.
fn part(search: &Search<'_>, at: usize, entry: Entry) -> Result<Option<RecordsPart>, String> {
    let name = entry.name.clone();
    let source = Source::Entry(search.path(at), entry);
    let kind = source.open().and_then(sniff_bytes).map_err(|error| format!("entry '{name}': {error}"))?;
    let claims = claim(&name).is_some();
    let no_archive = |why: &str| format!("entry '{name}' is no archive: {why}");
    match kind {
        FileKind::Records(_, format) => {
            let name = format!("{}/{name}", search.walk.files[at].name());
            Ok(Some(RecordsPart { source, format, name, extra_bytes: 0 }))
        }
        FileKind::Empty => Ok(None),
        _ if !claims => Ok(None),
        FileKind::Other(why) => Err(no_archive(why)),
        FileKind::Markup | FileKind::Zip => Err(no_archive("it is something else")),
    }
}

/// Whether an entry lies in a folder `archive`.
fn in_archive(name: &str) -> bool {
    let folders = name.rsplit_once('/').map_or("", |(folders, file)| if file.is_empty() { "" } else { folders });
    folders.split('/').any(|folder| folder == "archive")
}

#[cfg(test)]
mod tests;
