//! Both sides together: what differs, how sure that is, and how each stands against what people say.

use std::collections::{BTreeMap, HashMap};

use super::looker::Side;
use super::sample::Sample;
use crate::config::Pipeline;
use crate::model::SnapshotId;
use crate::recycle::shares::{PageCount, Share, share};
use crate::recycle::trial::{Gold, Placed, Tally, compare, right};
use crate::report::trial::{Example, Trial, TrialSide};

/// Mentions shown of each kind of difference.
const SHOWN: usize = 50;

impl Sample {
    /// Puts two sides together.
    pub(super) fn judge(
        &self,
        name: &str,
        candidate: &Pipeline,
        snapshot: &SnapshotId,
        here: Side,
        there: Side,
        gold: Option<&HashMap<String, Vec<Gold>>>,
    ) -> Trial {
        let mut tally = Tally::default();
        let (mut counts, mut examples) = (Vec::new(), Vec::new());
        for (page, (a, b)) in self.pages.iter().zip(here.found.iter().zip(&there.found)) {
            let (Some(a), Some(b)) = (a, b) else { continue };
            let more = compare(a, b, |only, mention| {
                examples.push(Example {
                    only,
                    url: page.url.clone(),
                    text: mention.text.clone(),
                    start: mention.start,
                });
            });
            tally.add(more);
            counts.push(PageCount { stratum: page.stratum, part: more.both, whole: more.either() });
        }
        let mut shown: BTreeMap<u8, usize> = BTreeMap::new();
        examples.retain(|example: &Example| {
            let count = shown.entry(example.only as u8).or_default();
            *count += 1;
            *count <= SHOWN
        });
        let every_page = self.pages.len() as u64 == self.of && counts.len() == self.pages.len();
        let sure = |found: Option<Share>, exact: bool| {
            found.map(|found| if every_page && exact { Share::exact(found.share) } else { found })
        };
        let agreement = sure(share(&counts, &self.sizes), here.is_sure && there.is_sure);
        let compared = counts.len() as u64;
        let told = |side: Side| {
            let [precision, recall] = gold.map_or([None, None], |gold| self.against(gold, &side.found));
            TrialSide {
                kind: side.kind,
                mentions: side.found.iter().flatten().map(|mentions| mentions.len() as u64).sum(),
                precision: sure(precision, side.is_sure),
                recall: sure(recall, side.is_sure),
                again: side.again.map(|again| again.told(&self.sizes)),
                failed: side.failed,
                deferred: side.deferred,
                error: side.error,
                spent: side.spent,
            }
        };
        let adoption = there.adoption;
        Trial {
            extractor: name.to_owned(),
            candidate: candidate.path.display().to_string(),
            snapshot: snapshot.clone(),
            pages: self.pages.len() as u64,
            compared,
            of: self.of,
            strata: self.sizes.iter().filter(|&&size| size > 0).count() as u64,
            has_gold: gold.is_some(),
            tally,
            agreement,
            present: told(here),
            there: told(there),
            examples,
            adoption,
        }
    }

    /// Precision and recall.
    fn against(&self, gold: &HashMap<String, Vec<Gold>>, found: &[Option<Vec<Placed>>]) -> [Option<Share>; 2] {
        let mut counts: [Vec<PageCount>; 2] = [Vec::new(), Vec::new()];
        for (page, found) in self.pages.iter().zip(found) {
            let (Some(gold), Some(found)) = (gold.get(&page.url), found) else { continue };
            let part = right(found, gold);
            for (counts, whole) in counts.iter_mut().zip([found.len(), gold.len()]) {
                counts.push(PageCount { stratum: page.stratum, part, whole: whole as u64 });
            }
        }
        counts.map(|counts| share(&counts, &self.sizes))
    }
}
