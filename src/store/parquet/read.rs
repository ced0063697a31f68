//! Reading partitions.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelectionPolicy,
};
use ::parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, RowGroupMetaData};
use ::parquet::file::page_index::column_index::ColumnIndexMetaData;
use ::parquet::file::reader::ChunkReader as _;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use fs_err as fs;

use super::recent::RecentRows;
use super::sums::{SUMS_KEY, SharedFile, Sums};
use super::{SHARDS_KEY, Written, parse_listed};
use crate::store::{Result, StoreError, guarded};
use crate::tables::ingest::UrlOnly;
use crate::tables::record::{Record, View, text_cell, text_column};

fn lies_in_file(column: &ColumnChunkMetaData) -> bool {
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    start >= 0 && column.compressed_size() >= 0
}

/// A partition opened for reading. Cheap to share between threads.
#[derive(Clone)]
pub struct Partition {
    path: PathBuf,
    /// `None` if it has no rows and so no file.
    opened: Option<Arc<Opened>>,
}

struct Opened {
    file: SharedFile,
    metadata: ArrowReaderMetadata,
    /// Rows by shard, in file order.
    spans: Vec<ShardSpan>,
    /// What is in memory of them.
    recent: Option<Arc<RecentRows>>,
}

struct ShardSpan {
    shard: u32,
    deleted: bool,
    span: Span,
}

/// A run of rows within a row group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    group: usize,
    /// Rows of the group before it.
    skip: usize,
    rows: usize,
}

/// Some rows of a partition, in file order. Positions in a part are counted over its rows.
#[derive(Clone, Debug, Default)]
pub struct Part {
    spans: Vec<Span>,
}

impl Part {
    #[must_use]
    pub fn rows(&self) -> usize {
        self.spans.iter().map(|span| span.rows).sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Its rows, cut where row groups end: what is read at a time has bounded size.
    pub fn pieces(&self) -> impl Iterator<Item = Self> + '_ {
        self.spans.iter().map(|span| Self { spans: vec![*span] })
    }
}

impl Partition {
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, None, None)
    }

    /// Opens a partition whose manifest says what was written, and of which some rows may be in memory.
    pub(crate) fn open_with(path: &Path, written: Option<&Written>, recent: Option<Arc<RecentRows>>) -> Result<Self> {
        let fail = |source| StoreError::Parquet { path: path.to_owned(), source };
        let file = fs::File::open(path)?.into_parts().0;
        let len = file.metadata()?.len();
        // Before anything is made of it: a footer that went bad can say anything.
        if let Some(written) = written
            && (len != written.bytes || !written.tail.holds(&file, len)?)
        {
            return Err(StoreError::WentBad { path: path.to_owned() });
        }
        let file = SharedFile::new(file, len);
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load(&file, options).map_err(fail)?;
        let pairs = metadata.metadata().file_metadata().key_value_metadata();
        let listed = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == SHARDS_KEY));
        let damaged = |problem: &str| StoreError::Damaged { path: path.to_owned(), problem: problem.into() };
        let sums = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == SUMS_KEY));
        let sums = sums
            .and_then(|pair| pair.value.as_deref())
            .map(|sums| Sums::parse(sums).ok_or_else(|| damaged("bad list of sums")));
        let file = file.with_sums(sums.transpose()?);
        let listed = listed.and_then(|pair| pair.value.as_deref()).ok_or_else(|| damaged("no list of shards"))?;
        let groups = parse_listed(listed).ok_or_else(|| damaged("bad list of shards"))?;
        let row_groups = metadata.metadata().row_groups();
        if groups.len() != row_groups.len() {
            return Err(damaged("the list of shards does not fit the row groups"));
        }
        let mut spans = Vec::new();
        for (group, (listed, row_group)) in groups.iter().zip(row_groups).enumerate() {
            // The reader panics where a column lies before the file.
            if !row_group.columns().iter().all(lies_in_file) {
                return Err(damaged("its footer places a column outside of it"));
            }
            let mut skip = 0;
            for part in &listed.shards {
                let span = Span { group, skip, rows: part.rows };
                spans.push(ShardSpan { shard: part.shard, deleted: listed.deleted, span });
                skip += part.rows;
            }
            if i64::try_from(skip) != Ok(row_group.num_rows()) {
                return Err(damaged("the list of shards does not fit the rows"));
            }
        }
        Ok(Self { path: path.to_owned(), opened: Some(Arc::new(Opened { file, metadata, spans, recent })) })
    }

    /// A partition without rows, which has no file.
    #[must_use]
    pub fn without_rows(path: &Path) -> Self {
        Self { path: path.to_owned(), opened: None }
    }

    fn spans(&self) -> &[ShardSpan] {
        self.opened.as_ref().map_or(&[], |opened| &opened.spans)
    }

    fn select(&self, wanted: impl Fn(&ShardSpan) -> bool) -> Part {
        Part { spans: self.spans().iter().filter(|span| wanted(span)).map(|span| span.span).collect() }
    }

    /// The rows of a shard.
    #[must_use]
    pub fn part(&self, shard: u32) -> Part {
        self.select(|span| span.shard == shard && !span.deleted)
    }

    /// The rows of a shard that are of deleted pages.
    #[must_use]
    pub fn deleted(&self, shard: u32) -> Part {
        self.select(|span| span.shard == shard && span.deleted)
    }

    /// All rows but those of deleted pages.
    #[must_use]
    pub fn all(&self) -> Part {
        self.select(|span| !span.deleted)
    }

    #[must_use]
    pub fn rows(&self) -> u64 {
        self.spans().iter().map(|span| span.span.rows as u64).sum()
    }

    /// Compares the bytes of columns with their sums, for a reader that does not.
    pub(in crate::store) fn compare(&self, names: &[String]) -> Result<()> {
        let Some(opened) = &self.opened else { return Ok(()) };
        let groups = opened.metadata.metadata().row_groups().iter();
        for column in groups.flat_map(RowGroupMetaData::columns) {
            let name = column.column_path().parts().first();
            if name.is_some_and(|name| names.contains(name)) {
                let (start, length) = column.byte_range();
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if opened.file.get_bytes(start, length).is_err() {
                    return Err(StoreError::WentBad { path: self.path.clone() });
                }
            }
        }
        Ok(())
    }

    /// The first URLs and the shards that their rows lie in.
    pub(in crate::store) fn placed_urls(&self, most: usize) -> Result<Vec<(u32, String)>> {
        let mut placed = Vec::new();
        for span in self.spans().iter().filter(|span| !span.deleted) {
            let part = Part { spans: vec![span.span] };
            self.visit::<UrlOnly<'_>>(&part, |row| placed.push((span.shard, row.url.to_owned())))?;
            if placed.len() >= most {
                break;
            }
        }
        Ok(placed)
    }

    /// All rows of a shard, in order, with the columns of `R`.
    pub fn shard<R: Record>(&self, shard: u32) -> Result<Vec<R>> {
        self.read(&self.part(shard))
    }

    /// All rows of all shards.
    pub fn all_rows<R: Record>(&self) -> Result<Vec<R>> {
        self.read(&self.all())
    }

    /// All rows of a part.
    pub fn read<R: Record>(&self, part: &Part) -> Result<Vec<R>> {
        self.decode(part, None)
    }

    /// The rows at ascending `ranges` of positions.
    pub fn rows_at<R: Record>(&self, part: &Part, ranges: &[Range<usize>]) -> Result<Vec<R>> {
        self.decode(part, Some(ranges))
    }

    /// Shows all rows of a part to `visit`, without copying their texts.
    pub fn visit<V: View>(&self, part: &Part, visit: impl FnMut(V::Row<'_>)) -> Result<()> {
        self.visit_at::<V>(part, None, visit)
    }

    fn visit_at<V: View>(
        &self,
        part: &Part,
        ranges: Option<&[Range<usize>]>,
        mut visit: impl FnMut(V::Row<'_>),
    ) -> Result<()> {
        for batch in self.read_batches(part, Some(V::COLUMNS), ranges)? {
            V::visit(&batch, &mut visit).map_err(|source| StoreError::Column { path: self.path.clone(), source })?;
        }
        Ok(())
    }

    /// The schema of the file; `None` if there is none.
    #[must_use]
    pub fn schema(&self) -> Option<&SchemaRef> {
        self.opened.as_ref().map(|opened| opened.metadata.schema())
    }

    /// All columns of a part, as batches; with `ranges` only the rows at these ascending positions.
    pub fn batches(&self, part: &Part, ranges: Option<&[Range<usize>]>) -> Result<Vec<RecordBatch>> {
        self.read_batches(part, None, ranges)
    }

    /// Some columns of a part, likewise.
    pub fn columns(&self, part: &Part, columns: &[&str], ranges: Option<&[Range<usize>]>) -> Result<Vec<RecordBatch>> {
        self.read_batches(part, Some(columns), ranges)
    }

    /// Some columns of texts of a part.
    pub(crate) fn text_cells<const N: usize>(&self, part: &Part, names: [&'static str; N]) -> Result<TextCells<N>> {
        Ok(TextCells { path: self.path.clone(), names, batches: self.columns(part, &names, None)? })
    }

    /// Where the rows of URLs lie in a part whose rows are ordered by URL. `urls` are ascending; one that has no rows gets an
    /// empty range. Only the data pages that may hold one of them are read.
    pub fn find(&self, part: &Part, urls: &[&str]) -> Result<Vec<Range<usize>>> {
        let mut found = vec![0..0; urls.len()];
        let ranges = self.candidates(part, urls);
        let mut positions = ranges.iter().cloned().flatten();
        // Rows and URLs are in the same order.
        let mut next = 0;
        self.visit_at::<UrlOnly<'_>>(part, Some(&ranges), |row| {
            let Some(position) = positions.next() else { return };
            next += urls[next..].iter().take_while(|url| **url < row.url).count();
            if urls.get(next) == Some(&row.url) {
                let range: &mut Range<usize> = &mut found[next];
                if range.start == range.end {
                    range.start = position;
                }
                range.end = position + 1;
            }
        })?;
        Ok(found)
    }

    /// The positions at which rows of these URLs may be.
    fn candidates(&self, part: &Part, urls: &[&str]) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut add = |range: Range<usize>| match ranges.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => ranges.push(range),
        };
        let mut before = 0;
        for span in &part.spans {
            // Positions of rows of the group, which may begin before the span.
            let position = |row: usize| before + row.clamp(span.skip, span.skip + span.rows) - span.skip;
            match self.url_pages(span.group) {
                None => add(before..before + span.rows),
                Some(pages) => {
                    for page in pages {
                        let first = urls.partition_point(|url| url.as_bytes() < page.min);
                        if urls.get(first).is_some_and(|url| url.as_bytes() <= page.max) {
                            add(position(page.rows.start)..position(page.rows.end));
                        }
                    }
                }
            }
            before += span.rows;
        }
        ranges
    }

    /// The data pages of the URL column of a row group; `None` if the file has no index of them.
    fn url_pages(&self, group: usize) -> Option<Vec<UrlPage<'_>>> {
        let metadata = self.opened.as_ref()?.metadata.metadata();
        let column = metadata.row_group(group).columns().iter().position(|c| c.column_path().string() == "url")?;
        let index = metadata.page_index()?;
        let Some(ColumnIndexMetaData::BYTE_ARRAY(limits)) = index.column_index(group, column) else { return None };
        let locations = index.page_locations(group, column)?;
        let rows = usize::try_from(metadata.row_group(group).num_rows()).ok()?;
        let starts = locations.iter().map(|location| usize::try_from(location.first_row_index).ok());
        let starts = starts.collect::<Option<Vec<usize>>>()?;
        let ends = starts.iter().skip(1).copied().chain([rows]);
        let page = |(i, (start, end)): (usize, (usize, usize))| {
            Some(UrlPage { min: limits.min_value(i)?, max: limits.max_value(i)?, rows: start..end })
        };
        starts.iter().copied().zip(ends).enumerate().map(page).collect()
    }

    fn decode<R: Record>(&self, part: &Part, ranges: Option<&[Range<usize>]>) -> Result<Vec<R>> {
        let columns: Vec<&str> = R::columns().iter().map(|column| column.name).collect();
        let chosen = self.read_chosen(part, Some(&columns), ranges)?;
        // Rows are large: to make room for them again and again would be felt.
        let mut rows = Vec::with_capacity(chosen.iter().flat_map(|(_, ranges)| ranges).map(Range::len).sum());
        for (batch, ranges) in chosen {
            let more = R::decode_at(&batch, &ranges);
            rows.extend(more.map_err(|source| StoreError::Column { path: self.path.clone(), source })?);
        }
        Ok(rows)
    }

    fn read_batches(
        &self,
        part: &Part,
        columns: Option<&[&str]>,
        ranges: Option<&[Range<usize>]>,
    ) -> Result<Vec<RecordBatch>> {
        let chosen = self.read_chosen(part, columns, ranges)?.into_iter();
        let slices = |(batch, ranges): (RecordBatch, Vec<Range<usize>>)| {
            ranges.into_iter().map(move |range| batch.slice(range.start, range.len()))
        };
        Ok(chosen.flat_map(slices).collect())
    }

    /// Batches, and which of their rows are meant.
    fn read_chosen(
        &self,
        part: &Part,
        columns: Option<&[&str]>,
        ranges: Option<&[Range<usize>]>,
    ) -> Result<Vec<(RecordBatch, Vec<Range<usize>>)>> {
        let Some(opened) = &self.opened else { return Ok(Vec::new()) };
        let (groups, rows) = opened.locate(part, ranges);
        if rows.iter().all(Range::is_empty) {
            return Ok(Vec::new());
        }
        if let Some(chosen) = opened.recent.as_ref().and_then(|recent| recent.rows(&groups, &rows, columns)) {
            return Ok(chosen);
        }
        let all = |batch: RecordBatch| {
            let rows = 0..batch.num_rows();
            (batch, vec![rows])
        };
        Ok(self.read_file(opened, groups, rows, columns)?.into_iter().map(all).collect())
    }

    /// Rows of row groups from the file.
    fn read_file(
        &self,
        opened: &Opened,
        groups: Vec<usize>,
        rows: Vec<Range<usize>>,
        columns: Option<&[&str]>,
    ) -> Result<Vec<RecordBatch>> {
        let fail = |source| StoreError::Parquet { path: self.path.clone(), source };
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(opened.file.clone(), opened.metadata.clone());
        let mask = match columns {
            Some(columns) => ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied()),
            None => ProjectionMask::all(),
        };
        let total = groups.iter().map(|&group| opened.group_rows(group)).sum();
        let mut builder = builder.with_projection(mask).with_row_groups(groups).with_batch_size(8192);
        let all = rows.first().is_some_and(|range| *range == (0..total));
        if !all {
            // Left to itself the reader unpacks all rows where few in a row are wanted, and picks those: that pays for small
            // values, not for texts.
            if columns.is_some_and(|columns| columns.contains(&"text")) {
                builder = builder.with_row_selection_policy(RowSelectionPolicy::Selectors);
            }
            builder = builder.with_row_selection(RowSelection::from_consecutive_ranges(rows.into_iter(), total));
        }
        guarded(&self.path, || {
            let batches = builder.build().map_err(fail)?;
            batches.map(|batch| batch.map_err(|source| fail(source.into()))).collect()
        })
    }
}

/// Some columns of texts as they were read, to be looked at without copying the texts.
pub(crate) struct TextCells<const N: usize> {
    path: PathBuf,
    names: [&'static str; N],
    batches: Vec<RecordBatch>,
}

impl<const N: usize> TextCells<N> {
    /// Row by row.
    pub(crate) fn rows(&self) -> Result<Vec<[&str; N]>> {
        let fail = |source| StoreError::Column { path: self.path.clone(), source };
        let mut rows = Vec::with_capacity(self.batches.iter().map(RecordBatch::num_rows).sum());
        for batch in &self.batches {
            let arrays = self.names.iter().map(|name| text_column(batch, name)).collect::<Result<Vec<_>, _>>();
            let arrays = arrays.map_err(fail)?;
            for i in 0..batch.num_rows() {
                let mut row = [""; N];
                for ((cell, array), name) in row.iter_mut().zip(&arrays).zip(self.names) {
                    *cell = text_cell(array, name, i).map_err(fail)?;
                }
                rows.push(row);
            }
        }
        Ok(rows)
    }
}

/// A data page of the URL column: limits of its URLs, and its rows within the row group.
struct UrlPage<'a> {
    min: &'a [u8],
    max: &'a [u8],
    rows: Range<usize>,
}

impl Opened {
    fn group_rows(&self, group: usize) -> usize {
        usize::try_from(self.metadata.metadata().row_group(group).num_rows()).unwrap_or(0)
    }

    /// The row groups that hold a part, and the rows of it (those at `ranges` of its positions, or all), counted over
    /// these groups.
    fn locate(&self, part: &Part, ranges: Option<&[Range<usize>]>) -> (Vec<usize>, Vec<Range<usize>>) {
        let mut groups: Vec<usize> = Vec::new();
        let mut rows: Vec<Range<usize>> = Vec::new();
        let mut add = |range: Range<usize>| match rows.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => rows.push(range),
        };
        // Rows of the chosen groups before the present one, and positions in the part before the present span.
        let (mut group_start, mut before) = (0, 0);
        let mut wanted = ranges.map(|ranges| ranges.iter().filter(|range| !range.is_empty()).peekable());
        for span in &part.spans {
            let end = before + span.rows;
            let mut inside: Vec<Range<usize>> = Vec::new();
            match &mut wanted {
                None => inside.push(before..end),
                Some(wanted) => {
                    while let Some(range) = wanted.peek().filter(|range| range.start < end) {
                        inside.push(range.start.max(before)..range.end.min(end));
                        if range.end > end {
                            break;
                        }
                        wanted.next();
                    }
                }
            }
            if !inside.is_empty() {
                if groups.last() != Some(&span.group) {
                    group_start += groups.last().map_or(0, |&last| self.group_rows(last));
                    groups.push(span.group);
                }
                let offset = group_start + span.skip;
                inside.into_iter().for_each(|range| add(range.start - before + offset..range.end - before + offset));
            }
            before = end;
        }
        (groups, rows)
    }
}
