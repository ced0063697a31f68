//! Differences of multisets.

use std::collections::HashMap;
use std::hash::Hash;

/// How far beyond two elements that differ equal ones are looked for.
const AHEAD: usize = 8;

/// Indices of the elements of `new` that `old` lacks, and of those of `old` that `new` lacks. Equal elements pair up in
/// order, so that of several the last ones are left over.
///
/// Most elements are equal and come in the same order. Those that meet on a walk through both change no count, wherever
/// they stand; only the others are counted.
pub(crate) fn difference<K: Eq + Hash>(
    old: impl IntoIterator<Item = K>,
    new: impl IntoIterator<Item = K>,
) -> (Vec<usize>, Vec<usize>) {
    let (old, new): (Vec<K>, Vec<K>) = (old.into_iter().collect(), new.into_iter().collect());
    let (mut i, mut j) = (0, 0);
    let (mut only_old, mut only_new) = (Vec::new(), Vec::new());
    while let (Some(a), Some(b)) = (old.get(i), new.get(j)) {
        if a == b {
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let meeting = |d: usize| match (old.get(i + d), new.get(j + d)) {
            (Some(later), _) if later == b => Some((d, 0)),
            (_, Some(later)) if later == a => Some((0, d)),
            (Some(later_old), Some(later_new)) if later_old == later_new => Some((d, d)),
            _ => None,
        };
        let (skip_old, skip_new) = (1..=AHEAD).find_map(meeting).unwrap_or((1, 1));
        only_old.extend(&old[i..i + skip_old]);
        only_new.extend(&new[j..j + skip_new]);
        (i, j) = (i + skip_old, j + skip_new);
    }
    only_old.extend(&old[i..]);
    only_new.extend(&new[j..]);
    let mut excess: HashMap<&K, isize> = HashMap::new();
    only_new.into_iter().for_each(|key| *excess.entry(key).or_default() += 1);
    only_old.into_iter().for_each(|key| *excess.entry(key).or_default() -= 1);
    let lacking =
        excess.iter().filter(|(_, count)| **count < 0).map(|(key, count)| (*key, count.unsigned_abs())).collect();
    let left =
        excess.into_iter().filter(|(_, count)| *count > 0).map(|(key, count)| (key, count.unsigned_abs())).collect();
    (last_of(&new, left), last_of(&old, lacking))
}

/// The indices of the last elements that are wanted, so many of each.
fn last_of<K: Eq + Hash>(elements: &[K], mut wanted: HashMap<&K, usize>) -> Vec<usize> {
    let mut missing: usize = wanted.values().sum();
    let mut found = Vec::with_capacity(missing);
    for (i, key) in elements.iter().enumerate().rev() {
        if missing == 0 {
            break;
        }
        if let Some(count) = wanted.get_mut(key).filter(|count| **count > 0) {
            *count -= 1;
            missing -= 1;
            found.push(i);
        }
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::difference;

    /// The definition: each element of `new` takes the first of its equals in `old` that is left.
    fn by_definition(old: &[u8], new: &[u8]) -> (Vec<usize>, Vec<usize>) {
        let mut left: HashMap<u8, Vec<usize>> = HashMap::new();
        old.iter().enumerate().rev().for_each(|(i, key)| left.entry(*key).or_default().push(i));
        let is_added = |key: &u8| left.get_mut(key).is_none_or(|left| left.pop().is_none());
        let added: Vec<bool> = new.iter().map(is_added).collect();
        let mut deleted: Vec<usize> = left.into_values().flatten().collect();
        deleted.sort_unstable();
        ((0..new.len()).filter(|&i| added[i]).collect(), deleted)
    }

    #[test]
    fn equal_elements_pair_up() {
        assert_eq!(difference(["a", "b", "a"], ["b", "a", "c"]), (vec![2], vec![2]));
        assert_eq!(difference(["a"], ["a", "a"]), (vec![1], vec![]));
        assert_eq!(difference::<u8>([], []), (vec![], vec![]));
        assert_eq!(difference(["x", "y"], []), (vec![], vec![0, 1]));
    }

    proptest! {
        #[test]
        fn differences_are_those_of_the_definition(
            old in prop::collection::vec(0u8..6, 0..60),
            edits in prop::collection::vec((0usize..60, 0u8..9), 0..8),
        ) {
            let mut new = old.clone();
            for (at, key) in edits {
                let at = at.min(new.len());
                match key {
                    0..6 => new.insert(at, key),
                    6 => new.truncate(at),
                    7 => new.rotate_left(at),
                    _ if at < new.len() => _ = new.remove(at),
                    _ => {}
                }
            }
            let expected = by_definition(&old, &new);
            prop_assert_eq!(difference(old, new), expected);
        }
    }
}
