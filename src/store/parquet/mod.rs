//! Partitions as Parquet files: rows by shard, within a shard by URL.
//!
//! Which rows of which row group belong to which shard stands in the file's metadata. Rows of deleted pages are in row
//! groups of their own, so that whoever reads pages never meets them.

mod pack;
mod read;
mod recent;
mod sums;
mod write;

pub use read::Partition;
pub(crate) use recent::Shelf;
#[cfg(test)]
pub(crate) use sums::Tail;
pub use write::GROUP_BYTES;
pub(crate) use write::{BatchWriter, EncodedGroup, Encoder, GROUP_ROWS, PartitionWriter, Written, write_table};

use std::fmt::Write as _;

const SHARDS_KEY: &str = "ratoon.shards";

/// A run of rows of one shard within a row group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ShardRows {
    shard: u32,
    rows: usize,
}

/// What a row group holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct GroupShards {
    shards: Vec<ShardRows>,
    /// Its rows are of deleted pages.
    deleted: bool,
}

/// Row groups as the metadata has them: `0:5+1:7,3:100,-2:1` are two shards in one row group, one in the next, and the
/// rows of one deleted page.
fn listed(groups: &[GroupShards]) -> String {
    let mut text = String::new();
    for (i, group) in groups.iter().enumerate() {
        text.push_str(if i > 0 { "," } else { "" });
        text.push_str(if group.deleted { "-" } else { "" });
        for (k, ShardRows { shard, rows }) in group.shards.iter().enumerate() {
            let plus = if k > 0 { "+" } else { "" };
            write!(text, "{plus}{shard}:{rows}").expect("a string takes all that is written to it");
        }
    }
    text
}

fn parse_listed(text: &str) -> Option<Vec<GroupShards>> {
    let shard_rows = |part: &str| {
        let (shard, rows) = part.split_once(':')?;
        Some(ShardRows { shard: shard.parse().ok()?, rows: rows.parse().ok()? })
    };
    let group = |part: &str| {
        let (deleted, part) = part.strip_prefix('-').map_or((false, part), |part| (true, part));
        Some(GroupShards { shards: part.split('+').map(shard_rows).collect::<Option<_>>()?, deleted })
    };
    text.split(',').filter(|part| !part.is_empty()).map(group).collect()
}

#[cfg(test)]
mod tests;
