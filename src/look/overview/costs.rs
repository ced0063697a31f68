//! What the last snapshots cost and saved.

use std::collections::BTreeMap;

use anyhow::Result;

use super::Look;
use crate::model::SnapshotId;
use crate::report::overview::{Alternative, Costs, ExtractorCost, Measured, NightCost};
use crate::tables::plan::{PlanCost, PlanRow};
use crate::tables::record::Table as _;

pub(super) fn costs(look: &Look<'_>) -> Result<Costs> {
    let mut costs = Costs::default();
    for (night, past) in look.nights.iter().zip(&look.past) {
        let Some(saved) = past.saved else { continue };
        costs.nights.push(NightCost {
            snapshot: night.snapshot.clone(),
            predicted_s: past.predicted_s,
            measured_s: past.measured_s,
            saved_bytes: saved.bytes,
            of_bytes: saved.of_bytes,
            price: night.row.price,
        });
        if Some(&night.snapshot) == look.newest() {
            let rows: Vec<PlanCost> = look.rows(PlanCost::NAME, &night.snapshot)?;
            costs.snapshot = Some(night.snapshot.clone());
            costs.alternatives = plans(look, &night.snapshot)?;
            costs.measured = measured(&rows);
            costs.saved = Some(saved);
            costs.extractors = extractors(&rows);
        }
    }
    Ok(costs)
}

/// The ways to do a snapshot as a whole.
fn plans(look: &Look<'_>, snapshot: &SnapshotId) -> Result<Vec<Alternative>> {
    let rows: Vec<PlanRow> = look.rows(PlanRow::NAME, snapshot)?;
    let whole = rows.into_iter().filter(|row| row.extractor.is_none());
    let alternative = |row: PlanRow| Alternative {
        alternative: row.alternative.to_string(),
        chosen: row.chosen,
        predicted_s: row.predicted_s,
        predicted_price: row.predicted_price,
        bytes_matched: row.bytes_matched,
        bytes_extracted: row.bytes_extracted,
    };
    Ok(whole.map(alternative).collect())
}

/// Not `sum`: of nothing that is -0.
fn sum(values: impl Iterator<Item = Option<f64>>) -> f64 {
    values.flatten().fold(0.0, |sum, more| sum + more)
}

pub(super) fn measured(rows: &[PlanCost]) -> Measured {
    let priced = rows.iter().any(|row| row.price.is_some());
    Measured {
        match_s: sum(rows.iter().map(|row| row.match_s)),
        extract_s: sum(rows.iter().map(|row| row.extract_s)),
        copy_s: sum(rows.iter().map(|row| row.copy_s)),
        choose_s: sum(rows.iter().map(|row| row.choose_s)),
        bytes_extracted: rows.iter().filter_map(|row| row.bytes_extracted).sum(),
        price: priced.then(|| sum(rows.iter().map(|row| row.price))),
    }
}

fn extractors(rows: &[PlanCost]) -> Vec<ExtractorCost> {
    let mut lines: BTreeMap<&str, ExtractorCost> = BTreeMap::new();
    for row in rows {
        let Some(name) = &row.extractor else { continue };
        let line =
            lines.entry(name).or_insert_with(|| ExtractorCost { name: name.clone(), ..ExtractorCost::default() });
        line.bytes_extracted += row.bytes_extracted.unwrap_or(0);
        line.mentions_copied += row.mentions_copied.unwrap_or(0);
        line.mentions_extracted += row.mentions_extracted.unwrap_or(0);
        line.requests += row.requests.unwrap_or(0);
        line.input_tokens += row.input_tokens.unwrap_or(0);
        line.output_tokens += row.output_tokens.unwrap_or(0);
        line.price = row.price.map_or(line.price, |price| Some(line.price.unwrap_or(0.0) + price));
        line.seconds += row.extract_s.unwrap_or(0.0) + row.copy_s.unwrap_or(0.0);
    }
    lines.into_values().collect()
}
