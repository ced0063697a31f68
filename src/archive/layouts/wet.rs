//! WET files: WARC whose `conversion` records are all there is. They hold the texts of pages that somebody extracted,
//! without status and links.

use crate::archive::detect::Search;
use crate::archive::records::format::Format;
use crate::archive::records::{Record, Records};
use crate::archive::walk::SourceFile;

use super::{Layout, Rules, Warc, first_with_ending, record_files};

#[derive(Debug)]
pub(crate) struct Wet;

impl Rules for Wet {
    fn expected(&self) -> &'static str {
        "WET files: WARC whose records are conversions"
    }

    fn evidence(&self, files: &[SourceFile]) -> String {
        format!("{} starts with WARC records of extracted text", first_with_ending(files, self.endings()))
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".wet", ".wet.gz", ".wet.zst"]
    }

    fn format(&self) -> Option<&'static dyn Format> {
        Some(&Self)
    }

    fn without_status(&self) -> &'static str {
        "conversion"
    }

    fn find(&self, search: &mut Search<'_>, archives: &[usize]) {
        let left_out = search.auto && !search.is_empty();
        record_files::find(search, archives, Layout::Wet, left_out);
    }
}

impl Format for Wet {
    fn name(&self) -> &'static str {
        Warc.name()
    }

    fn starts_file(&self, text: &[u8]) -> bool {
        Warc.starts_member(text) && super::warc::holds_conversions(text)
    }

    fn starts_member(&self, bytes: &[u8]) -> bool {
        Warc.starts_member(bytes)
    }

    fn member_bytes(&self) -> usize {
        Warc.member_bytes()
    }

    fn is_first_line(&self, line: &[u8]) -> bool {
        Warc.is_first_line(line)
    }

    fn line_bytes(&self) -> usize {
        Warc.line_bytes()
    }

    fn needle(&self) -> &'static [u8] {
        Warc.needle()
    }

    fn read_record(&self, records: &mut Records, record: Record) {
        records.read_warc(record, true);
    }
}
