//! Differences of multisets.

use std::collections::HashMap;
use std::hash::Hash;

/// Indices of the elements of `new` that `old` lacks, and of those of `old` that `new` lacks. Equal elements pair up in
/// order, so that of several the last ones are left over.
pub(crate) fn difference<K: Eq + Hash>(
    old: impl IntoIterator<Item = K>,
    new: impl IntoIterator<Item = K>,
) -> (Vec<usize>, Vec<usize>) {
    let mut counts: HashMap<K, Vec<usize>> = HashMap::new();
    for (i, key) in old.into_iter().enumerate() {
        counts.entry(key).or_default().push(i);
    }
    // Reversed, so that `pop` gives the first of equal elements.
    counts.values_mut().for_each(|indices| indices.reverse());
    let mut added = Vec::new();
    for (i, key) in new.into_iter().enumerate() {
        if counts.get_mut(&key).is_none_or(|indices| indices.pop().is_none()) {
            added.push(i);
        }
    }
    let mut deleted: Vec<usize> = counts.into_values().flatten().collect();
    deleted.sort_unstable();
    (added, deleted)
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn equal_elements_pair_up() {
        assert_eq!(difference(["a", "b", "a"], ["b", "a", "c"]), (vec![2], vec![2]));
        assert_eq!(difference(["a"], ["a", "a"]), (vec![1], vec![]));
        assert_eq!(difference::<u8>([], []), (vec![], vec![]));
        assert_eq!(difference(["x", "y"], []), (vec![], vec![0, 1]));
    }
}
