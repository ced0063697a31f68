//! Maps and sets whose keys are looked up for every page of a night. Their hash is keyed at random, as that of the standard
//! library is, so that pages cannot choose keys that collide, and it takes a fraction of the time.

pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, ahash::RandomState>;
pub(crate) type HashSet<T> = std::collections::HashSet<T, ahash::RandomState>;

/// A map with room for so many entries.
#[must_use]
pub(crate) fn with_room<K, V>(entries: usize) -> HashMap<K, V> {
    HashMap::with_capacity_and_hasher(entries, ahash::RandomState::default())
}
