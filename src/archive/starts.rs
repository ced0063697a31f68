//! How records of a format start: what reading goes on at behind damage, and what a file can be split at.

use super::arc_line::ArcLine;

/// How every WARC record starts.
pub(super) const WARC_START: &[u8] = b"WARC/";
/// Longest first line of an ARC record: its URL and a few words.
pub(super) const MAX_ARC_LINE: usize = 16 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Starts {
    Warc,
    Arc,
}

impl Starts {
    /// Do these bytes, the first of a compressed member, start a record?
    pub(super) fn member(self, bytes: &[u8]) -> bool {
        match self {
            Self::Warc => bytes.starts_with(WARC_START),
            Self::Arc => first_line(bytes).is_some_and(|line| ArcLine::parse(line).is_some()),
        }
    }

    /// Is this line, with or without its end, the first of a record?
    pub(super) fn line(self, line: &[u8]) -> bool {
        match self {
            Self::Warc => is_version_line(line),
            Self::Arc => ArcLine::parse(line).is_some(),
        }
    }

    /// How many bytes of a member decide [`Self::member`].
    pub(super) fn member_bytes(self) -> usize {
        match self {
            Self::Warc => WARC_START.len(),
            Self::Arc => MAX_ARC_LINE,
        }
    }

    /// What stands where a line in a plain file may start a record: a line feed and the first bytes of the line.
    pub(super) fn needle(self) -> &'static [u8] {
        match self {
            Self::Warc => b"\nWARC/",
            Self::Arc => b"\nhttp",
        }
    }

    /// The longest first line.
    pub(super) fn line_bytes(self) -> usize {
        match self {
            Self::Warc => 256,
            Self::Arc => MAX_ARC_LINE,
        }
    }
}

/// `WARC/1.0` and its like, with or without its line end.
fn is_version_line(line: &[u8]) -> bool {
    line.trim_ascii_end().strip_prefix(WARC_START).is_some_and(|version| {
        (3..=5).contains(&version.len()) && version.iter().all(|&byte| byte.is_ascii_digit() || byte == b'.')
    })
}

/// Up to and with the line feed, if there is one.
pub(super) fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    let window = &bytes[..bytes.len().min(MAX_ARC_LINE)];
    memchr::memchr(b'\n', window).map(|feed| &bytes[..=feed])
}
