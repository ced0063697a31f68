//! The layouts that a snapshot folder can have: one file for each, and the registry that lists them.
//!
//! The file of a layout says how the layout is told in a folder and beside others ([`Rules`]), and what its captures
//! are: the meaning of a WARC header, of a manifest's line, of a path in a mirror. How records are found in a file and
//! how bytes are unpacked is common to several and belongs to `records` and `zip`.

mod arc;
mod httrack;
mod manifest;
mod mirror;
mod record_files;
mod wacz;
mod warc;
mod wet;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ArchiveError;
use super::detect::Search;
use super::records::format::Format;
use super::walk::SourceFile;

pub(crate) use warc::{ENDING as WARC_ENDING, Warc};

/// What a layout says of itself.
pub(crate) trait Rules: Sync {
    /// What a folder of this layout holds, for the message that nothing was found: `expected …`.
    fn expected(&self) -> &'static str;

    /// What tells that a folder with these files has this layout, in words.
    fn evidence(&self, files: &[SourceFile]) -> String;

    /// The endings of names that claim to be a file of this layout, in lower case. Bytes decide what a file is, but one
    /// that is not what its name claims is worth a reject. A snapshot may be a single file with one of these endings.
    fn endings(&self) -> &'static [&'static str] {
        &[]
    }

    /// The format of its files, if they are sequences of records.
    fn format(&self) -> Option<&'static dyn Format> {
        None
    }

    /// What `inspect` calls a capture that has no status.
    fn without_status(&self) -> &'static str {
        "file"
    }

    /// Takes files out of `archives`, the indices of files that may be archives: those that are bodies or pages of this
    /// layout, whatever they look like.
    fn set_aside(&self, _search: &Search<'_>, _archives: &mut Vec<usize>) {}

    /// Looks for the layout and adds what it finds. `archives`: indices of the files that may be archives.
    fn find(&self, search: &mut Search<'_>, archives: &[usize]);
}

/// Makes the type [`Layout`] and the list of all rules from one line for each layout: `module: Type`. The module's
/// name is the layout's name everywhere: in the pipeline file, on the command line, in messages.
macro_rules! registry {
    ($($(#[$doc:meta])* $module:ident: $layout:ident,)+) => {
        /// How a snapshot folder holds its captures.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum Layout {
            /// Look at the folder.
            #[default]
            Auto,
            $($(#[$doc])* $layout,)+
        }

        impl Layout {
            pub const ALL: &'static [Self] = &[Self::Auto, $(Self::$layout,)+];

            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    Self::Auto => "auto",
                    $(Self::$layout => stringify!($module),)+
                }
            }
        }

        /// Every layout but `Auto`, the strongest first.
        const REGISTRY: &[(Layout, &dyn Rules)] = &[$((Layout::$layout, &$module::$layout),)+];
    };
}

// The order is that in which layouts are looked for and read. One crawl may leave the same captures in several forms
// (`wget --warc-file` also writes a tree, a WET file is made from a WARC file), and none may count twice. So:
//
// 1. Files of records (WARC, ARC) and WACZ are read wherever they lie, all of them.
// 2. A manifest is read too, and before them; it is looked for after them because all files that are left are its own.
// 3. HTTrack's cache is left out if HTTrack wrote WARC beside it.
// 4. WET files and mirrors say less of the same captures, so they are read only where nothing was found before them.
registry! {
    /// WARC files at any depth: plain, gzip or zstd, a member for each record or one for all.
    warc: Warc,
    /// ARC files, plain or gzip.
    arc: Arc,
    /// WACZ: zip files with WARC files in their folder `archive`.
    wacz: Wacz,
    /// `manifest.jsonl`, a line for each file.
    manifest: Manifest,
    /// `hts-cache/new.zip` and the tree beside it.
    httrack: Httrack,
    /// WET files: the texts of pages, without links.
    wet: Wet,
    /// A `wget --mirror` tree, `host[:port]/path`.
    mirror: Mirror,
}

impl Layout {
    /// The names of all layouts that can be found, so without `auto`, for messages.
    #[must_use]
    pub fn names() -> String {
        REGISTRY.iter().map(|(layout, _)| layout.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The layouts to look for if this one is asked for, with their rules, the strongest first.
    pub(crate) fn wanted(self) -> impl DoubleEndedIterator<Item = (Self, &'static dyn Rules)> {
        REGISTRY.iter().copied().filter(move |(layout, _)| self == Self::Auto || self == *layout)
    }

    /// Its own rules; `Auto` has none.
    pub(crate) fn rules(self) -> Option<&'static dyn Rules> {
        REGISTRY.iter().find(|(layout, _)| *layout == self).map(|(_, rules)| *rules)
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Layout {
    type Err = ArchiveError;

    fn from_str(name: &str) -> Result<Self, ArchiveError> {
        let known = Self::ALL.iter().copied().find(|layout| layout.as_str() == name);
        known.ok_or_else(|| ArchiveError::UnknownLayout { name: name.to_owned() })
    }
}

/// The layout that the name of a file claims, and the ending that claims it. A name may end in `.open` besides, while
/// the file is written.
pub(crate) fn claim(name: &str) -> Option<(Layout, &'static str)> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".open").unwrap_or(&name);
    let endings = |(layout, rules): &(Layout, &'static dyn Rules)| {
        let layout = *layout;
        rules.endings().iter().map(move |ending| (layout, *ending))
    };
    REGISTRY.iter().flat_map(endings).find(|(_, ending)| name.ends_with(ending))
}

/// The layout and format of a file of records that starts with these bytes.
pub(crate) fn format_of(text: &[u8]) -> Option<(Layout, &'static dyn Format)> {
    let formats = REGISTRY.iter().filter_map(|(layout, rules)| Some((*layout, rules.format()?)));
    formats.into_iter().find(|(_, format)| format.starts_file(text))
}

/// The name of the first file that has one of these endings; else of the first file.
fn first_with_ending(files: &[SourceFile], endings: &[&str]) -> String {
    let has_ending = |name: &String| {
        let name = name.to_ascii_lowercase();
        endings.iter().any(|ending| name.ends_with(ending))
    };
    let named = files.iter().map(SourceFile::name).find(has_ending);
    named.or_else(|| files.first().map(SourceFile::name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_have_one_name_everywhere() {
        for layout in Layout::ALL {
            assert_eq!(layout.as_str().parse::<Layout>().unwrap(), *layout);
            assert_eq!(serde_json::to_string(layout).unwrap(), format!("\"{layout}\""));
            assert_eq!(layout.rules().is_some(), *layout != Layout::Auto);
        }
        let error = "rar".parse::<Layout>().unwrap_err().to_string();
        assert!(error.contains("'rar'") && error.contains("manifest"), "{error}");
    }

    #[test]
    fn endings_claim_one_layout() {
        for (layout, rules) in REGISTRY {
            for ending in rules.endings() {
                assert_eq!(claim(&format!("X{}", ending.to_uppercase())), Some((*layout, *ending)));
                assert_eq!(claim(&format!("x{ending}.open")), Some((*layout, *ending)));
            }
        }
        assert_eq!(claim("x.gz"), None);
    }
}
