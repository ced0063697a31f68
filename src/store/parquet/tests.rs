use std::ops::Range;

use super::*;
use crate::model::{Change, Rng};
use crate::tables::ingest::{LinkRow, PageText};
use crate::tables::record::record;

fn row(i: usize) -> PageText {
    PageText { url: format!("u{i:05}"), text: (!i.is_multiple_of(3)).then(|| format!("t{i}").repeat(i % 50)) }
}

fn rows(range: Range<usize>) -> Vec<PageText> {
    range.map(row).collect()
}

#[test]
fn rows_come_back_by_shard_and_by_position() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let mut writer = PartitionWriter::<PageText>::create(&path).unwrap();
    writer.write(1, &rows(0..500)).unwrap();
    writer.write(1, &rows(500..510)).unwrap();
    writer.write(4, &rows(510..600)).unwrap();
    assert_eq!(writer.finish().unwrap().rows, 600);

    let partition = Partition::open(&path).unwrap();
    assert_eq!(partition.rows(), 600);
    assert_eq!(partition.shard::<PageText>(0).unwrap(), []);
    assert_eq!(partition.shard::<PageText>(4).unwrap(), rows(510..600));
    let part = partition.part(1);
    let positions = [0..1, 7..9, 499..501, 509..510];
    let read = partition.rows_at::<PageText>(&part, &positions).unwrap();
    assert_eq!(read, positions.iter().cloned().flatten().map(row).collect::<Vec<_>>());
    assert_eq!(partition.rows_at::<PageText>(&part, &[]).unwrap(), []);
}

#[test]
fn a_partition_without_rows_has_no_file_unless_it_is_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let written = PartitionWriter::<PageText>::create(&path).unwrap().finish().unwrap();
    assert_eq!((written.rows, written.bytes, path.exists()), (0, 0, false));
    assert_eq!(Partition::without_rows(&path).all_rows::<PageText>().unwrap(), []);
    let first = PartitionWriter::<PageText>::create(&path).unwrap().first_of_table(true).finish().unwrap();
    assert_eq!((first.rows, first.bytes), (0, fs_err::metadata(&path).unwrap().len()));
    let partition = Partition::open(&path).unwrap();
    assert!(partition.schema().unwrap().field_with_name("text").unwrap().is_nullable());
}

#[test]
fn a_file_has_the_digest_that_its_writer_says() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let mut writer = PartitionWriter::<PageText>::create(&path).unwrap();
    writer.write(2, &rows(0..50)).unwrap();
    let written = writer.finish().unwrap();
    assert_eq!(written.digest, crate::model::Digest::of(&fs_err::read(&path).unwrap()));
}

record! {
    /// A page that went.
    pub struct Gone {
        url: String = "",
        change: Change = "",
    }
}

record! {
    /// A page that may have gone.
    pub struct MayGo {
        url: String = "",
        text: Option<String> = "",
        change: Option<Change> = "",
    }
}

#[test]
fn deleted_rows_are_met_only_by_those_who_ask_for_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let mut writer = PartitionWriter::<MayGo>::create(&path).unwrap();
    let living = MayGo { url: "a".into(), text: Some("t".into()), change: None };
    writer.write_deleted(0, &[Gone { url: "b".into(), change: Change::Deleted }]);
    writer.write(0, std::slice::from_ref(&living)).unwrap();
    writer.write_deleted(3, &[Gone { url: "c".into(), change: Change::Deleted }]);
    assert_eq!(writer.finish().unwrap().rows, 3);
    let partition = Partition::open(&path).unwrap();
    assert_eq!(partition.all_rows::<MayGo>().unwrap(), [living]);
    assert_eq!(partition.read::<Gone>(&partition.deleted(3)).unwrap()[0].url, "c");
    let all = partition.read::<MayGo>(&partition.deleted(0)).unwrap();
    assert_eq!(all, [MayGo { url: "b".into(), text: None, change: Some(Change::Deleted) }]);
}

/// Files of many sizes, with shared and own row groups, with and without an index: what is found and read is what a
/// list of the rows says.
#[test]
fn urls_are_found_wherever_they_lie() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let mut rng = Rng::new(7);
    for size in [1, 40, 700, 9_000] {
        let mut writer = PartitionWriter::<PageText>::create(&path).unwrap();
        let mut shards: Vec<Vec<PageText>> = vec![Vec::new(); 4];
        for i in 0..size {
            // Some URLs have several rows.
            for _ in 0..1 + usize::from(rng.index(5) == 0) {
                shards[i % 4].push(row(i));
            }
        }
        for (shard, rows) in (0..).zip(&shards) {
            writer.write(shard, rows).unwrap();
        }
        writer.finish().unwrap();
        let partition = Partition::open(&path).unwrap();
        for (shard, rows) in (0..).zip(&shards) {
            let part = partition.part(shard);
            assert_eq!(part.rows(), rows.len());
            let mut wanted: Vec<String> = (0..20).map(|_| row(rng.index(size + 5)).url).collect();
            wanted.sort();
            wanted.dedup();
            let urls: Vec<&str> = wanted.iter().map(String::as_str).collect();
            let found = partition.find(&part, &urls).unwrap();
            for (url, range) in urls.iter().zip(&found) {
                let expected: Vec<usize> = (0..rows.len()).filter(|&i| rows[i].url == *url).collect();
                assert_eq!(range.clone().collect::<Vec<_>>(), expected, "{url} of {size}");
            }
            let ranges: Vec<Range<usize>> = found.into_iter().filter(|range| !range.is_empty()).collect();
            let read = partition.rows_at::<PageText>(&part, &ranges).unwrap();
            let expected: Vec<PageText> = ranges.iter().cloned().flatten().map(|i| rows[i].clone()).collect();
            assert_eq!(read, expected);
        }
    }
}

#[test]
fn lists_of_shards_are_read_as_they_were_written() {
    let shards = |pairs: &[(u32, usize)]| pairs.iter().map(|&(shard, rows)| ShardRows { shard, rows }).collect();
    let groups = vec![
        GroupShards { shards: shards(&[(0, 5), (1, 7)]), deleted: false },
        GroupShards { shards: shards(&[(3, 100)]), deleted: false },
        GroupShards { shards: shards(&[(2, 1)]), deleted: true },
    ];
    assert_eq!(listed(&groups), "0:5+1:7,3:100,-2:1");
    assert_eq!(parse_listed(&listed(&groups)), Some(groups));
    assert_eq!(parse_listed(""), Some(Vec::new()));
    for bad in ["0", "x:1", "0:", "0:1+", "--0:1"] {
        assert_eq!(parse_listed(bad), None, "{bad}");
    }
}

/// Rows are summed up; what says where they are and what they mean is not. This file of 200 links has one other byte there,
/// by which the reader panics.
#[test]
fn a_damaged_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    fs_err::write(&path, include_bytes!("damaged.parquet")).unwrap();
    let read = Partition::open(&path).and_then(|partition| partition.all_rows::<LinkRow>());
    assert!(read.is_err_and(|error| error.to_string().ends_with("its parts contradict each other")));
}
