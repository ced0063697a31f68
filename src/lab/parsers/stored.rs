//! What lies in a store, and what machines that share a night send each other.

use std::cell::Cell;
use std::path::Path;

use super::{JSON, Parser, lines};
use crate::model::Timestamp;
use crate::stages::schedule::frontier::Frontier;
use crate::stages::stats;
use crate::store::index::{Index, Kind};
use crate::store::lock::StoreLock;
use crate::store::parquet::{Partition, write_table};
use crate::store::passes::{BucketRow, Parcel, PassFolder, RowReader, RowWriter};
use crate::store::sums::with_right_sum;
use crate::store::{PART, Store};
use crate::tables::ingest::LinkRow;
use crate::tables::record::Table;
use crate::tables::stats::UpdateRow;
use crate::text::elements::any_element;

pub(super) const PARSERS: [Parser; 6] = [
    Parser {
        name: "evidence",
        samples: |_| stats::state_samples(),
        words: JSON,
        read: |bytes, _| stats::read_state(bytes),
    },
    Parser { name: "parcel", samples: parcels, words: &["values", "links", "ARROW1"], read: parcel },
    Parser { name: "parquet", samples: parquet_files, words: &["PAR1"], read: parquet },
    Parser { name: "store", samples: store_files, words: &["\"sum\"", "null", "{}", "-1", "1e400"], read: store },
    Parser { name: "rows", samples: worker_rows, words: &["captures", "read", "spilled", "../", "bucket"], read: rows },
    Parser {
        name: "elements",
        samples: |_| lines(&["h1(12)p(3b(5))\nSide effects An itch", "~&5=3a(&10(2)b(=4))\n<a>x &amp; y</a>"]),
        words: &["(", ")", "~", "&", "=", "9", "18446744073709551615", "p", "\n", "é", "&amp;", "<![CDATA["],
        read: elements,
    },
];

/// What workers of other machines send: links as Arrow, and the bytes around them.
fn parcels(_: &Path) -> Vec<Vec<u8>> {
    let mut parcel = Parcel::default();
    let filled =
        parcel.put(LinkRow::NAME, &some_links()).and_then(|()| parcel.put_values(&vec!["value".to_owned(); 9]));
    let sections = filled.is_ok().then(|| parcel.into_sections()).into_iter().flatten();
    vec![
        sections
            .flat_map(|section| [Parcel::frame(&section.table, section.rows.len()), section.rows].concat())
            .collect(),
    ]
}

fn parcel(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let Some(mut parcel) = Parcel::unframed(bytes) else { return Ok(0) };
    let rows = parcel.take::<LinkRow>(LinkRow::NAME).unwrap_or_default();
    let values: Vec<String> = parcel.take_values().unwrap_or_default();
    Ok((rows.iter().map(|row| row.target.len()).sum::<usize>() + values.iter().map(String::len).sum::<usize>()) as u64)
}

fn some_links() -> Vec<LinkRow> {
    let row = |i: i64| LinkRow {
        url: format!("http://a.org/{}", i / 3).into(),
        target: format!("http://a.org/{i}"),
        label: "label".repeat(usize::try_from(i % 5).unwrap_or(0)),
        kind: crate::model::LinkKind::Local,
        ordinal: i,
        element: None,
        dated: None,
    };
    (0..200).map(row).collect()
}

/// The file of a table with these rows.
fn written<T: Table>(dir: &Path, rows: &[T]) -> Vec<u8> {
    let read = || -> std::io::Result<Vec<u8>> {
        fs_err::create_dir_all(dir)?;
        write_table(dir, rows).map_err(std::io::Error::other)?;
        fs_err::read(dir.join(T::NAME).join(PART))
    };
    read().unwrap_or_else(|_| b"PAR1".to_vec())
}

/// The second without sums: they would keep all damage from what reads the columns.
fn parquet_files(folder: &Path) -> Vec<Vec<u8>> {
    let file = written(&folder.join("sample"), &some_links());
    let mut without = file.clone();
    for at in memchr::memmem::find_iter(&file, b"ratoon.sums") {
        without[at] = b'R';
    }
    vec![file, without]
}

/// As a table of a store is read by whoever has no manifest for it, such as an update log.
fn parquet(bytes: &[u8], folder: &Path) -> Result<u64, String> {
    let file = folder.join("x.parquet");
    fs_err::write(&file, bytes).map_err(|error| error.to_string())?;
    let rows = Partition::open(&file).and_then(|partition| partition.all_rows::<LinkRow>());
    Ok(rows.map_or(0, |rows| rows.iter().map(|row| row.target.len() as u64).sum()))
}

/// Files below `_meta`: `NAME\n` and what the file holds.
fn store_files(folder: &Path) -> Vec<Vec<u8>> {
    let root = folder.join("sound");
    let mut samples = lines(&[
        "snapshots/n1.json\n{\"snapshot\":\"n1\",\"time\":\"2024-03-01T00:00:00Z\",\"stages\":{},\"sum\":\"\"}",
        "accepted\n{\"said\":[\"n1\"],\"sum\":\"\"}",
        "accepted\n[\"n1\"]\n",
        "runs.jsonl\n{\"start\":\"2024-03-01T00:00:00Z\",\"exit_code\":0}\n{\"verified\":{\"credit\":1.5}}\n",
        "answers/x.log\nA 00000000000000000000000000000000 00000000000000000000000000000000 {}\n",
        "frontier.json\n{\"snapshot\":\"n1\",\"lineage\":\"00000000000000000000000000000000\",\"scope\":\"host\",\"links\":{\"http://a.org/\":{\"pages\":1,\"seen\":0,\"tried\":null}}}",
        "batches/x/1.json\n{\"number\":1,\"state\":\"Sealed\",\"requests\":[]}",
        "batches/x/waiting.jsonl\n{\"key\":\"00000000000000000000000000000000\",\"url\":\"http://a.org/\",\"text\":\"t\",\"body\":\"{}\"}\n",
        "intent.json\n{\"said\":{\"moves\":[[\".staging/x/a\",\"a/snapshot=n1/part-00000.parquet\"]],\"writes\":[[\"_meta/x.json\",\"{}\"]],\"removals\":[\"b/snapshot=n1/part-00000.parquet\"],\"staging\":\".staging/x\"},\"sum\":\"\"}",
        "dropped\n{\"said\":[\"n1\",\"n2\"],\"sum\":\"\"}",
        "pruned.json\n{\"said\":{\"time\":\"2024-03-01T00:00:00Z\",\"snapshot\":\"n1\"},\"sum\":\"\"}",
        "lock\nprocess 17: run\n",
    ]);
    let mut made = || -> crate::store::Result<()> {
        let store = Store::open_or_create(&root)?;
        samples.push([b"store.json\n".to_vec(), fs_err::read(root.join("_meta/store.json"))?].concat());
        let index = Index::open(&store.index_folder())?;
        for i in 0..50u32 {
            index.put(Kind::Heads, i.to_be_bytes().to_vec(), vec![7; i as usize])?;
        }
        index.flush()
    };
    if made().is_ok() {
        for entry in fs_err::read_dir(root.join("_meta/index")).into_iter().flatten().filter_map(Result::ok) {
            let name = format!("index/{}\n", entry.file_name().display());
            samples.extend(fs_err::read(entry.path()).ok().map(|bytes| [name.into_bytes(), bytes].concat()));
        }
    }
    samples
}

fn store(bytes: &[u8], folder: &Path) -> Result<u64, String> {
    let Some(line) = bytes.iter().position(|byte| *byte == b'\n') else { return Ok(0) };
    let name = String::from_utf8_lossy(&bytes[..line]);
    // A checksum keeps all damage from what reads the rest, unless it fits.
    let content = match bytes.len() % 2 {
        0 => with_right_sum(&bytes[line + 1..]),
        _ => bytes[line + 1..].to_vec(),
    };
    let known = [
        "snapshots/n1.json",
        "store.json",
        "accepted",
        "runs.jsonl",
        "answers/x.log",
        "frontier.json",
        "batches/x/1.json",
        "batches/x/waiting.jsonl",
        "intent.json",
        "dropped",
        "pruned.json",
        "lock",
    ];
    // Damage to the name itself is no file of a store.
    let is_index = name.strip_prefix("index/").is_some_and(|name| {
        name.len() < 64
            && name.starts_with(char::is_alphanumeric)
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '.')
    });
    if !known.contains(&&*name) && !is_index || name.contains("..") {
        return Ok(0);
    }
    let root = folder.join("store");
    let _ = fs_err::remove_dir_all(&root);
    let placed = || -> std::io::Result<()> {
        let file = root.join("_meta").join(&*name);
        if is_index {
            fs_err::create_dir_all(root.join("_meta/index"))?;
            for entry in fs_err::read_dir(folder.join("sound/_meta/index"))? {
                let entry = entry?;
                fs_err::copy(entry.path(), root.join("_meta/index").join(entry.file_name()))?;
            }
        }
        fs_err::create_dir_all(file.parent().unwrap_or(&root))?;
        // Without it there is no store.
        fs_err::copy(folder.join("sound/_meta/store.json"), root.join("_meta/store.json"))?;
        fs_err::write(file, content)
    };
    placed().map_err(|error| error.to_string())?;
    if is_index {
        let mut found = 0;
        if let Ok(index) = Index::open(&root.join("_meta/index")) {
            let _ = index.scan(Kind::Heads, b"", &mut |_, value| {
                found += value.len() as u64;
                Ok(true)
            });
        }
        return Ok(found);
    }
    let Ok(Some(store)) = Store::open(&root) else { return Ok(0) };
    let taken = match &*name {
        "snapshots/n1.json" => store.all_done().is_ok(),
        "accepted" => store.accepted().is_ok(),
        "runs.jsonl" => store.last_run(Some).is_ok_and(|run| run.is_some()),
        "answers/x.log" => store.answers_to_read("x").is_ok(),
        "frontier.json" => store.meta_file::<Frontier>("frontier.json").is_ok(),
        "batches/x/1.json" | "batches/x/waiting.jsonl" => store.outbox("x").is_ok(),
        "dropped" => store.dropped().is_ok(),
        "pruned.json" => store.first_kept().is_ok(),
        _ => store.settled().is_ok(),
    };
    let held = StoreLock::take(&root, "fuzz");
    if let Err(error) = StoreLock::take(&root, "fuzz").map(drop)
        && held.is_ok()
        && !error.to_string().contains("in use")
    {
        return Err(format!("a lock that is held is told as {error}"));
    }
    let beside = folder.join("beside");
    fs_err::write(&beside, "").map_err(|error| error.to_string())?;
    let _ = store.recover();
    if !beside.exists() {
        return Err("what lies beside the store is gone".to_owned());
    }
    Ok(u64::from(taken))
}

/// Updates as a store has them, to be read as a log.
pub(super) fn log_table(folder: &Path) -> Vec<u8> {
    let row = |i: i64| UpdateRow {
        url: format!("http://a.org/{}", i / 3),
        source: "a.org".into(),
        after: Timestamp(i * Timestamp::SECOND),
        before: Timestamp((i + 9) * Timestamp::SECOND),
        updated_at: (i % 2 == 0).then_some(Timestamp((i + 1) * Timestamp::SECOND)),
        updated_at_source: None,
        new_text_share: Some(0.5),
        signal: None,
    };
    written(&folder.join("updates"), &(0..100).map(row).collect::<Vec<_>>())
}

/// What workers of other machines answer.
fn worker_rows(_: &Path) -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut made = || -> crate::store::Result<()> {
        let mut writer = RowWriter::new(&mut bytes)?;
        for (bucket, table) in [(0, "spilled"), (0, "pages"), (1, "read"), (1, "links"), (7, "values")] {
            writer.write(BucketRow { bucket, table, rows: b"some bytes of rows" })?;
        }
        writer.finish()
    };
    let _ = made();
    vec![bytes]
}

fn rows(bytes: &[u8], folder: &Path) -> Result<u64, String> {
    let dir = folder.join("pass");
    let _ = fs_err::remove_dir_all(&dir);
    fs_err::create_dir_all(&dir).map_err(|error| error.to_string())?;
    let _ = RowReader::new(bytes).and_then(|mut rows| PassFolder::open(&dir).keep(&mut rows));
    let _ = RowReader::new(bytes).and_then(|rows| rows.numbers(|_| crate::store::Result::Ok(())));
    let beside = |entry: &fs_err::DirEntry| entry.file_name().to_string_lossy().starts_with("captures");
    if fs_err::read_dir(folder).into_iter().flatten().filter_map(Result::ok).any(|entry| beside(&entry)) {
        return Err("rows were kept outside of their folder".to_owned());
    }
    let sizes = fs_err::read_dir(&dir).into_iter().flatten().filter_map(|entry| entry.ok()?.metadata().ok());
    Ok(sizes.map(|file| file.len()).sum())
}

/// The element line of a page, and its text.
fn elements(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let input = String::from_utf8_lossy(bytes);
    let (line, text) = input.split_once('\n').unwrap_or((&input, ""));
    let seen = Cell::new(0);
    let named = |names: &[&str]| names.len() % 2 == 1;
    let _ = any_element(line, text, named, |text| {
        seen.set(seen.get() + 1);
        text.len() > 1_000_000
    });
    Ok(seen.get())
}
