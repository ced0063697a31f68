//! One value for each matcher, found by the matcher and never by a position in a list.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::MatcherKind;

/// Written as an object with the matchers' names as keys; reading wants each of them once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PerMatcher<T>([T; MatcherKind::ALL.len()]);

impl<T> PerMatcher<T> {
    pub(crate) fn from_fn(mut of: impl FnMut(MatcherKind) -> T) -> Self {
        Self(MatcherKind::ALL.map(&mut of))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (MatcherKind, &T)> {
        MatcherKind::ALL.into_iter().zip(&self.0)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (MatcherKind, &mut T)> {
        MatcherKind::ALL.into_iter().zip(&mut self.0)
    }
}

impl<T> Index<MatcherKind> for PerMatcher<T> {
    type Output = T;

    fn index(&self, kind: MatcherKind) -> &T {
        &self.0[kind as usize]
    }
}

impl<T> IndexMut<MatcherKind> for PerMatcher<T> {
    fn index_mut(&mut self, kind: MatcherKind) -> &mut T {
        &mut self.0[kind as usize]
    }
}

impl<T: Serialize> Serialize for PerMatcher<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (kind, value) in self.iter() {
            map.serialize_entry(&kind, value)?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for PerMatcher<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ByName<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ByName<T> {
            type Value = PerMatcher<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a key for each matcher")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PerMatcher<T>, A::Error> {
                let mut values: PerMatcher<Option<T>> = PerMatcher::from_fn(|_| None);
                while let Some((kind, value)) = map.next_entry::<MatcherKind, T>()? {
                    if values[kind].replace(value).is_some() {
                        return Err(A::Error::duplicate_field(kind.as_str()));
                    }
                }
                if let Some((missing, _)) = values.iter().find(|(_, value)| value.is_none()) {
                    return Err(A::Error::missing_field(missing.as_str()));
                }
                Ok(PerMatcher::from_fn(|kind| values[kind].take().expect("none is missing")))
            }
        }
        deserializer.deserialize_map(ByName(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_matcher_and_written_by_name() {
        let lengths = PerMatcher::from_fn(|kind| kind.as_str().len());
        assert!(MatcherKind::ALL.into_iter().all(|kind| lengths[kind] == kind.as_str().len()));
        let json = serde_json::to_string(&lengths).unwrap();
        assert_eq!(json, r#"{"edges":5,"diff":4,"suffix-tree":11,"anchor":6}"#);
        assert_eq!(serde_json::from_str::<PerMatcher<usize>>(&json).unwrap(), lengths);
        for (bad, said) in [
            (r#"{"edges":5,"diff":4,"anchor":6}"#, "missing field `suffix-tree`"),
            (r#"{"edges":5,"edges":5}"#, "duplicate field `edges`"),
            (r#"{"hash":5}"#, "unknown variant `hash`"),
        ] {
            let error = serde_json::from_str::<PerMatcher<usize>>(bad).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
