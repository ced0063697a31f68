//! `catalog.sql`, which gives the tables of a store to DuckDB.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::model::{SnapshotId, StageId};
use crate::report::catalog::{Catalog, Span, sql};
use crate::store::parquet::Written;
use crate::store::{Store, files};
use crate::tables::nature::Nature;

/// Where it lies in a store.
pub(crate) const FILE: &str = "catalog.sql";

/// Writes the catalog of a store, if it would say something else than the one that is there.
pub(crate) fn write(store: &Store) -> Result<()> {
    let text = sql(&catalog(store)?);
    let path = store.root().join(FILE);
    if files::read_to_string(&path).ok().as_ref() != Some(&text) {
        files::write_whole(&path, text.as_bytes())?;
    }
    Ok(())
}

fn catalog(store: &Store) -> Result<Catalog> {
    let mut tables = BTreeSet::new();
    let (mut extractors, mut whole) = (Spans::default(), Spans::default());
    for done in store.all_done()?.iter() {
        let id = &done.snapshot.id;
        let written = || done.stages.values().flat_map(|stage| stage.tables.iter());
        tables.extend(written().filter(|(_, written)| written.bytes > 0).map(|(table, _)| table.clone()));
        let is_whole = |(table, written): &(&String, &Written)| written.whole && Nature::of(table) == Nature::Tuples;
        whole.next(id, written().filter(is_whole).map(|(table, _)| table.as_str()).collect());
        // A snapshot that is not extracted yet says nothing of extractors.
        if let Some(extracted) = done.stages.get(&StageId::Extract) {
            extractors.next(id, extracted.tables.keys().filter_map(|table| table.strip_prefix("mentions/")).collect());
        }
    }
    Ok(Catalog { tables: tables.into_iter().collect(), extractors: extractors.all, whole: whole.all })
}

/// From where to where names stand in snapshots that follow each other.
#[derive(Default)]
struct Spans {
    all: Vec<Span>,
    /// The names of the snapshot before, each with the place of its span.
    open: BTreeMap<String, usize>,
    before: Option<SnapshotId>,
}

impl Spans {
    /// The next snapshot has these names.
    fn next(&mut self, id: &SnapshotId, names: BTreeSet<&str>) {
        self.open.retain(|name, place| {
            let stays = names.contains(name.as_str());
            if !stays {
                self.all[*place].2.clone_from(&self.before);
            }
            stays
        });
        for name in names {
            self.open.entry(name.to_owned()).or_insert_with(|| {
                self.all.push((name.to_owned(), id.clone(), None));
                self.all.len() - 1
            });
        }
        self.before = Some(id.clone());
    }
}
