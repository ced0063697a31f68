//! What a night came to, and what recycling saved of it.

use std::collections::BTreeMap;

use super::live::Live;
use crate::config::Pipeline;
use crate::extract::{Declaration, Definition};
use crate::manifests::{Costs, Matched, Planned, Saved};
use crate::plan::model::{Speed, Spent};
use crate::plan::{Costed, Served};
use crate::tables::plan::PlanCost;

/// What an extractor cost, by how its pages were served.
pub(super) type CostsBy = BTreeMap<Served, Costs>;

/// What an extractor cost on all pages.
pub(super) fn total(costs: &CostsBy) -> Costs {
    costs.values().fold(Costs::default(), |mut sum, more| {
        sum += *more;
        sum
    })
}

/// Whether an extractor failed on every page that it was tried on, `anew` of them for the first time. A page that fails
/// every night is no outage.
pub(super) fn is_outage(costs: &CostsBy, anew: u64) -> bool {
    let tried = costs.iter().filter(|(served, _)| **served != Served::Equal).map(|(_, costs)| costs.pages).sum::<u64>();
    anew > 0 && total(costs).failed == tried
}

/// What an extractor cost, as the cost model remembers it.
pub(super) fn spent(costs: &CostsBy) -> Spent {
    let mut spent = Spent::default();
    for (served, costs) in costs {
        let speed = Speed { bytes: costs.bytes_extracted, seconds: costs.extract_s };
        match served {
            Served::None => spent.scratch.add(speed),
            Served::Equal => {}
            Served::Units | Served::Matcher(_) => {
                spent.recycled.add(speed);
                spent.recycled_pages += costs.pages;
            }
        }
        spent.copied += costs.copied;
        spent.copy_s += costs.copy_s;
    }
    spent
}

/// Bytes of text that must have been extracted to tell an extractor's speed from.
const LEAST: u64 = 32 << 10;
const MEGABYTE: f64 = 1e6;

/// What extraction from scratch would have cost beyond this: in bytes, in seconds of work and in price.
pub(super) fn saved(
    pipeline: &Pipeline,
    planned: &Planned,
    matched: &Matched,
    costs: &BTreeMap<String, Costs>,
    spent: &BTreeMap<String, Spent>,
) -> Saved {
    let (mut bytes, mut of_bytes, mut seconds, mut price) = (0, 0, 0.0, 0.0);
    let mut has_price = false;
    for declared in &pipeline.extractors {
        let name = declared.config.name.as_str();
        let (Some(costs), Some(spent)) = (costs.get(name), spent.get(name)) else { continue };
        // A record is joined on every plan, so recycling saves nothing of it.
        if matches!(declared.declaration, Declaration::Complete(Definition::Joins(_))) {
            continue;
        }
        let left = costs.text_bytes.saturating_sub(costs.bytes_extracted);
        bytes += left;
        of_bytes += costs.text_bytes;
        #[expect(clippy::cast_precision_loss, reason = "sizes of texts")]
        let left = left as f64;
        let expected = || planned.seconds_a_byte.get(name).copied().unwrap_or(0.0);
        seconds += spent.scratch.per_byte(LEAST).unwrap_or_else(expected) * left - costs.copy_s;
        let per_mb = match declared.declaration.model() {
            // What this night's requests cost tells what others would have.
            _ if costs.bytes_extracted > 0 && costs.price > 0.0 => {
                #[expect(clippy::cast_precision_loss, reason = "a size of text")]
                let sent = costs.bytes_extracted as f64;
                Some(costs.price / sent * MEGABYTE)
            }
            Some(model) => Some(model.expected_price_per_mb()),
            None => declared.config.price_per_mb,
        };
        if let Some(per_mb) = per_mb.filter(|per_mb| *per_mb > 0.0) {
            has_price = true;
            price += per_mb * left / MEGABYTE;
        }
    }
    if bytes > 0 {
        seconds -= matched.match_s + matched.read_s + planned.choose_s;
    }
    Saved { bytes, of_bytes, seconds, price: has_price.then_some(price) }
}

/// The table `plan_costs`.
pub(super) fn cost_rows(live: &Live, costs: &[CostsBy], planned: &Planned, matched: &Matched) -> Vec<PlanCost> {
    let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let empty = PlanCost {
        extractor: None,
        matcher: Costed::Plan,
        pages: 0,
        bytes_matched: None,
        bytes_extracted: None,
        lower_bound_bytes: None,
        mentions_copied: None,
        mentions_extracted: None,
        requests: None,
        input_tokens: None,
        output_tokens: None,
        price: None,
        match_s: None,
        extract_s: None,
        copy_s: None,
        choose_s: None,
    };
    let mut rows = vec![PlanCost { choose_s: Some(planned.choose_s), ..empty.clone() }];
    for (kind, cost) in matched.matchers.iter() {
        if cost.pages > 0 || cost.seconds > 0.0 {
            rows.push(PlanCost {
                matcher: Costed::Pages(Served::Matcher(kind)),
                pages: count(cost.pages),
                bytes_matched: Some(count(cost.bytes)),
                match_s: Some(cost.seconds),
                ..empty.clone()
            });
        }
    }
    for (live, costs) in live.all.iter().zip(costs) {
        for (&served, costs) in costs {
            let complete = matches!(served, Served::Matcher(kind) if kind.facts().complete);
            rows.push(PlanCost {
                extractor: Some(live.name.to_string()),
                matcher: Costed::Pages(served),
                pages: count(costs.pages),
                bytes_extracted: Some(count(costs.bytes_extracted)),
                lower_bound_bytes: complete.then(|| count(costs.lower_bound)),
                mentions_copied: Some(count(costs.copied)),
                mentions_extracted: Some(count(costs.extracted)),
                requests: Some(count(costs.requests)).filter(|_| live.answers().is_some()),
                input_tokens: Some(count(costs.input_tokens)).filter(|used| live.model().is_some() || *used > 0),
                output_tokens: Some(count(costs.output_tokens)).filter(|used| live.model().is_some() || *used > 0),
                price: Some(costs.price).filter(|paid| live.is_priced() || *paid > 0.0),
                extract_s: Some(costs.extract_s + costs.failed_s),
                copy_s: Some(if served == Served::None { 0.0 } else { costs.copy_s }),
                ..empty.clone()
            });
        }
    }
    rows
}
