//! Earlier partitions of mentions, where an extractor has other columns than it had.

use anyhow::Result;

use crate::manifests::Extracted;
use crate::model::SnapshotId;
use crate::store::Store;
use crate::store::parquet::BatchWriter;
use crate::tables::mentions::{MentionSchema, mentions_of};

/// Gives earlier partitions of a mentions table the schema of today, because a table has one schema. Columns that they do
/// not have become NULL.
///
/// That may lose what another definition had found, so such a partition stops being a source of mentions: its manifest
/// forgets the extractor first.
pub(super) fn migrate(store: &Store, extractor: &str, schema: &MentionSchema, current: &SnapshotId) -> Result<()> {
    let table = mentions_of(extractor);
    let arrow = schema.arrow();
    for id in store.partitions(&table)?.into_iter().filter(|id| id != current) {
        // What went bad is left to its own repair.
        let Ok(partition) = store.partition(&table, &id) else { continue };
        if partition.schema().is_none_or(|there| MentionSchema::of(there) == *schema) {
            continue;
        }
        // A partition that no manifest names is about to be swept.
        let Some(mut manifest) = store.manifest::<Extracted>(&id)? else { continue };
        let Extracted { declared, fingerprints, lineage, built_on, .. } = &mut manifest.summary;
        for map in [declared, fingerprints, lineage, built_on] {
            map.remove(extractor);
        }
        let dir = store.scratch_dir("migrate")?;
        let file = dir.join("mentions.parquet");
        let mut writer = BatchWriter::create(&file, arrow.clone())?.first_of_table(true);
        for shard in 0..store.shards() {
            for batch in partition.batches(&partition.part(shard), None)? {
                writer.write(shard, schema.encode(&schema.decode(&batch)?))?;
            }
        }
        let whole = manifest.tables.get(&table).is_some_and(|written| written.whole);
        manifest.tables.insert(table.clone(), writer.finish()?.whole_if(whole));
        store.replace(&manifest, &[(file, table.clone())], &dir)?;
    }
    Ok(())
}
