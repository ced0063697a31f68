//! Links of a page against those of its old version, as multisets by target.

use std::collections::{BTreeMap, HashMap};

/// A link that came, went, or has another label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LinkChange {
    /// Index of the new link.
    Added(usize),
    /// Index of the old link.
    Deleted(usize),
    /// Indices of the old and the new link.
    Modified(usize, usize),
}

/// Compares links, each a target and a label, in page order. Of the links to one target those with equal labels pair
/// up first, then the others in order; what is left came or went. Ordered by target, then as above.
#[must_use]
pub(crate) fn changes(old: &[(&str, &str)], new: &[(&str, &str)]) -> Vec<LinkChange> {
    if old == new {
        return Vec::new();
    }
    let mut targets: BTreeMap<&str, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    for (i, (target, _)) in old.iter().enumerate() {
        targets.entry(target).or_default().0.push(i);
    }
    for (i, (target, _)) in new.iter().enumerate() {
        targets.entry(target).or_default().1.push(i);
    }
    let mut changes = Vec::new();
    for (olds, news) in targets.into_values() {
        let mut labels: HashMap<&str, usize> = HashMap::new();
        for &i in &news {
            *labels.entry(new[i].1).or_default() += 1;
        }
        let mut kept: HashMap<&str, usize> = HashMap::new();
        let mut gone = Vec::new();
        for &i in &olds {
            match labels.get_mut(old[i].1).filter(|count| **count > 0) {
                Some(count) => {
                    *count -= 1;
                    *kept.entry(old[i].1).or_default() += 1;
                }
                None => gone.push(i),
            }
        }
        let mut came = Vec::new();
        for &i in &news {
            match kept.get_mut(new[i].1).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => came.push(i),
            }
        }
        let pairs = gone.len().min(came.len());
        changes.extend(gone.iter().zip(&came).map(|(&old, &new)| LinkChange::Modified(old, new)));
        changes.extend(came[pairs..].iter().map(|&i| LinkChange::Added(i)));
        changes.extend(gone[pairs..].iter().map(|&i| LinkChange::Deleted(i)));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::LinkChange::{Added, Deleted, Modified};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_links_pair_up_before_others() {
        let old = [("a", "x"), ("a", "y"), ("b", "z")];
        let new = [("c", "w"), ("a", "y"), ("a", "v"), ("a", "u")];
        assert_eq!(changes(&old, &new), [Modified(0, 2), Added(3), Deleted(2), Added(0)]);
        assert_eq!(changes(&old, &old), []);
        assert_eq!(changes(&[], &[("a", "x"), ("a", "x")]), [Added(0), Added(1)]);
    }

    proptest! {
        /// The old links with the changes applied are the new links, and no change could be left out.
        #[test]
        fn changes_lead_from_old_to_new(
            old in prop::collection::vec((0u8..3, 0u8..3), 0..8), new in prop::collection::vec((0u8..3, 0u8..3), 0..8)
        ) {
            let names = ["p", "q", "r"];
            let text = |links: &[(u8, u8)]| -> Vec<(&str, &str)> {
                links.iter().map(|&(t, l)| (names[usize::from(t)], names[usize::from(l)])).collect()
            };
            let (old, new) = (text(&old), text(&new));
            let mut links = old.clone();
            let mut drop = |link: (&str, &str)| links.iter().position(|l| *l == link).map(|at| links.remove(at));
            let mut more = Vec::new();
            let found = changes(&old, &new);
            for change in &found {
                match *change {
                    Added(i) => more.push(new[i]),
                    Deleted(i) => prop_assert!(drop(old[i]).is_some()),
                    Modified(i, k) => {
                        prop_assert_eq!(old[i].0, new[k].0);
                        prop_assert_ne!(old[i].1, new[k].1);
                        prop_assert!(drop(old[i]).is_some());
                        more.push(new[k]);
                    }
                }
            }
            links.extend(more);
            links.sort_unstable();
            let mut expected = new.clone();
            expected.sort_unstable();
            prop_assert_eq!(links, expected);
            for target in names {
                let of = |links: &[(&str, &str)]| links.iter().filter(|l| l.0 == target).count();
                let added = found.iter().filter(|c| matches!(c, Added(i) if new[*i].0 == target)).count();
                let deleted = found.iter().filter(|c| matches!(c, Deleted(i) if old[*i].0 == target)).count();
                prop_assert_eq!(added as i64 - deleted as i64, of(&new) as i64 - of(&old) as i64);
                prop_assert!(added == 0 || deleted == 0);
            }
        }
    }
}
