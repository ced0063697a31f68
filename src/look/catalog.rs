//! `catalog.sql`, which gives the tables of a store to DuckDB.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::model::{SnapshotId, StageId};
use crate::report::catalog::{Catalog, sql};
use crate::store::{Store, files};

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
    let mut extractors: Vec<(String, SnapshotId, Option<SnapshotId>)> = Vec::new();
    // The extractors of the snapshot before, each with the place of its span in the list.
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    let mut before: Option<SnapshotId> = None;
    for done in store.all_done()?.iter() {
        for stage in done.stages.values() {
            tables.extend(stage.tables.iter().filter(|(_, written)| written.bytes > 0).map(|(table, _)| table.clone()));
        }
        // A snapshot that is not extracted yet says nothing of extractors.
        let Some(extracted) = done.stages.get(&StageId::Extract) else { continue };
        let here: BTreeSet<&str> =
            extracted.tables.keys().filter_map(|table| table.strip_prefix("mentions/")).collect();
        open.retain(|extractor, place| {
            let stays = here.contains(extractor.as_str());
            if !stays {
                extractors[*place].2.clone_from(&before);
            }
            stays
        });
        for extractor in here {
            open.entry(extractor.to_owned()).or_insert_with(|| {
                extractors.push((extractor.to_owned(), done.snapshot.id.clone(), None));
                extractors.len() - 1
            });
        }
        before = Some(done.snapshot.id.clone());
    }
    Ok(Catalog { tables: tables.into_iter().collect(), extractors })
}
