//! What a format of records is: how its records start, and how one is read.
//!
//! Starts matter at three places: files are told by them, reading goes on at one behind damage, and large files are
//! split at them. The formats themselves are those of the layouts `warc`, `wet` and `arc`.

use std::fmt::Debug;

use super::{Record, Records};

/// A format of files that are a sequence of records.
pub(crate) trait Format: Debug + Sync {
    /// As messages call it.
    fn name(&self) -> &'static str;

    /// Do these bytes, the decoded start of a file without white space before it, belong to a file of this format?
    fn starts_file(&self, text: &[u8]) -> bool;

    /// Do these bytes, the first of a compressed member, start a record?
    fn starts_member(&self, bytes: &[u8]) -> bool;

    /// How many bytes of a member decide [`starts_member`](Self::starts_member).
    fn member_bytes(&self) -> usize;

    /// Is this line, with or without its end, the first of a record?
    fn is_first_line(&self, line: &[u8]) -> bool;

    /// The longest first line.
    fn line_bytes(&self) -> usize;

    /// What is searched for to find the next record of a plain file: a line feed, and the bytes that the first line
    /// of a record starts with.
    fn needle(&self) -> &'static [u8];

    /// Reads the record whose first line was just read into `records.line`, up to
    /// [`close_record`](Records::close_record).
    fn read_record(&self, records: &mut Records, record: Record);
}
