//! Closed sets: enums whose members have one name each, the same in tables, JSON, pipeline files and on the command
//! line. [`closed_set!`] writes the enum and everything that follows from the names, so that no name is spelled twice.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, Unexpected};
use serde::ser::Serializer;

/// An enum that [`closed_set!`] wrote.
pub trait ClosedSet: Copy + Eq + 'static {
    /// What a member is called in messages.
    const WHAT: &'static str;
    const MEMBERS: &'static [Self];
    const NAMES: &'static [&'static str];

    fn name(self) -> &'static str;

    fn named(name: &str) -> Option<Self> {
        Self::MEMBERS.iter().copied().find(|member| member.name() == name)
    }
}

/// A name that no member of a closed set has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnknownName {
    name: String,
    what: &'static str,
    known: &'static [&'static str],
}

impl UnknownName {
    #[must_use]
    pub fn new<S: ClosedSet>(name: &str) -> Self {
        Self { name: name.to_owned(), what: S::WHAT, known: S::NAMES }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no {}: use ", self.name, self.what)?;
        match self.known {
            [others @ .., last] if !others.is_empty() => write!(f, "{} or {last}", others.join(", ")),
            known => f.write_str(&known.join(", ")),
        }
    }
}

/// Writes a member by its name. Formats that no person reads hold its number instead: they carry scratch data from one
/// part of a run to another, where the numbers cannot have changed.
pub(crate) fn serialize<C: ClosedSet, S: Serializer>(member: C, serializer: S) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        return serializer.serialize_str(member.name());
    }
    let number = C::MEMBERS.iter().position(|other| *other == member).expect("a member is in the list of members");
    serializer.serialize_u8(u8::try_from(number).expect("a closed set is small"))
}

/// Reads what [`serialize`] wrote.
pub(crate) fn deserialize<'de, C: ClosedSet, D: Deserializer<'de>>(deserializer: D) -> Result<C, D::Error> {
    if deserializer.is_human_readable() {
        let name = Cow::<'de, str>::deserialize(deserializer)?;
        return C::named(&name).ok_or_else(|| D::Error::unknown_variant(&name, C::NAMES));
    }
    let number = u8::deserialize(deserializer)?;
    let member = C::MEMBERS.get(usize::from(number)).copied();
    member.ok_or_else(|| D::Error::invalid_value(Unexpected::Unsigned(number.into()), &C::WHAT))
}

/// A name made of two others, put together by the compiler.
pub(crate) struct JoinedName {
    bytes: [u8; Self::MOST],
    len: usize,
}

impl JoinedName {
    const MOST: usize = 32;

    pub(crate) const fn new(prefix: &str, name: &str) -> Self {
        let (prefix, name) = (prefix.as_bytes(), name.as_bytes());
        let mut joined = Self { bytes: [0; Self::MOST], len: prefix.len() + name.len() };
        let mut at = 0;
        while at < joined.len {
            joined.bytes[at] = if at < prefix.len() { prefix[at] } else { name[at - prefix.len()] };
            at += 1;
        }
        joined
    }

    pub(crate) const fn as_str(&self) -> &str {
        match std::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(name) => name,
            Err(_) => panic!("two names put together are a name"),
        }
    }
}

/// Writes an enum, its list of members, their names, and the conversions from and to names.
///
/// A set may take in the members of others: `… or Inner(OtherSet)` under the names that they have there,
/// `… or Inner("prefix_" + OtherSet)` under names that begin with the prefix.
macro_rules! closed_set {
    (
        $(#[$about:meta])*
        $vis:vis enum $Set:ident: $what:literal {
            $($(#[$doc:meta])* $Member:ident = $name:literal,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis enum $Set {
            $($(#[$doc])* $Member,)+
        }

        impl $Set {
            /// All members, in order.
            $vis const ALL: [Self; [$($name),+].len()] = [$(Self::$Member),+];

            /// Its one name.
            #[must_use]
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Member => $name,)+
                }
            }
        }

        $crate::model::closed_set::by_name!($Set, $what);
    };
    (
        $(#[$about:meta])*
        $vis:vis enum $Set:ident: $what:literal {
            $($(#[$doc:meta])* $Member:ident = $name:literal,)+
        } $(or $(#[$inner_doc:meta])* $Inner:ident($($prefix:literal +)? $Other:ident))+
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis enum $Set {
            $($(#[$doc])* $Member,)+
            $($(#[$inner_doc])* $Inner($Other),)+
        }

        impl $Set {
            /// All members, those of the sets inside last.
            $vis const ALL: [Self; [$($name),+].len() $(+ $Other::ALL.len())+] = {
                let own = [$(Self::$Member),+];
                let mut all = [own[0]; [$($name),+].len() $(+ $Other::ALL.len())+];
                let mut at = 0;
                while at < own.len() {
                    all[at] = own[at];
                    at += 1;
                }
                $(
                    let mut inner = 0;
                    while inner < $Other::ALL.len() {
                        all[at] = Self::$Inner($Other::ALL[inner]);
                        inner += 1;
                        at += 1;
                    }
                )+
                assert!(at == all.len());
                all
            };

            /// Its one name.
            #[must_use]
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Member => $name,)+
                    $(Self::$Inner(inner) => $crate::model::closed_set::inner_name!(inner, $Other $(, $prefix)?),)+
                }
            }
        }

        $crate::model::closed_set::by_name!($Set, $what);
    };
}

/// The name of a member of a set inside another one.
macro_rules! inner_name {
    ($inner:ident, $Other:ident) => {
        $inner.as_str()
    };
    ($inner:ident, $Other:ident, $prefix:literal) => {{
        use $crate::model::closed_set::JoinedName;
        const JOINED: &[JoinedName; $Other::ALL.len()] = &{
            let mut joined = [const { JoinedName::new("", "") }; $Other::ALL.len()];
            let mut at = 0;
            while at < joined.len() {
                joined[at] = JoinedName::new($prefix, $Other::ALL[at].as_str());
                at += 1;
            }
            joined
        };
        // Members without contents are numbered in the order of the list.
        JOINED[$inner as usize].as_str()
    }};
}

/// What follows from the list of members and their names.
macro_rules! by_name {
    ($Set:ident, $what:literal) => {
        impl $crate::model::closed_set::ClosedSet for $Set {
            const WHAT: &'static str = $what;
            const MEMBERS: &'static [Self] = &Self::ALL;
            const NAMES: &'static [&'static str] = &{
                let mut names = [""; Self::ALL.len()];
                let mut i = 0;
                while i < names.len() {
                    names[i] = Self::ALL[i].as_str();
                    i += 1;
                }
                names
            };

            fn name(self) -> &'static str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $Set {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $Set {
            type Err = $crate::model::closed_set::UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                <Self as $crate::model::closed_set::ClosedSet>::named(name)
                    .ok_or_else(|| $crate::model::closed_set::UnknownName::new::<Self>(name))
            }
        }

        impl serde::Serialize for $Set {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::model::closed_set::serialize(*self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $Set {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::model::closed_set::deserialize(deserializer)
            }
        }
    };
}

pub(crate) use by_name;
pub(crate) use closed_set;
pub(crate) use inner_name;

#[cfg(test)]
mod tests {
    closed_set! {
        /// A set of two.
        enum Side: "side" {
            Left = "left",
            Right = "right",
        }
    }

    closed_set! {
        /// A set with another one inside.
        enum Turn: "turn" {
            Back = "back",
        } or Aside(Side)
    }

    closed_set! {
        /// A set with two others inside, under names of their own.
        enum Step: "step" {
            Stay = "stay",
            Jump = "jump",
        } or Walk("walk_" + Side) or Run("run_" + Side)
    }

    #[test]
    fn a_set_can_take_in_others() {
        assert_eq!(Turn::ALL.map(Turn::as_str), ["back", "left", "right"]);
        assert_eq!("right".parse::<Turn>().unwrap(), Turn::Aside(Side::Right));
        let names = ["stay", "jump", "walk_left", "walk_right", "run_left", "run_right"];
        assert_eq!(Step::ALL.map(Step::as_str), names);
        assert_eq!(names.map(|name| name.parse::<Step>().unwrap()), Step::ALL);
    }

    #[test]
    fn a_member_has_one_name_everywhere() {
        for side in Side::ALL {
            assert_eq!(side.as_str().parse::<Side>().unwrap(), side);
            let json = serde_json::to_string(&side).unwrap();
            assert_eq!(json, format!("\"{side}\""));
            assert_eq!(serde_json::from_str::<Side>(&json).unwrap(), side);
        }
        assert_eq!("up".parse::<Side>().unwrap_err().to_string(), "'up' is no side: use left or right");
        let error = serde_json::from_str::<Side>("\"up\"").unwrap_err().to_string();
        assert!(error.contains("unknown variant `up`") && error.contains("`right`"), "{error}");
    }

    #[test]
    fn scratch_data_holds_numbers() {
        for step in Step::ALL {
            let bytes = postcard::to_stdvec(&step).unwrap();
            assert_eq!(bytes.len(), 1);
            assert_eq!(postcard::from_bytes::<Step>(&bytes).unwrap(), step);
        }
        assert!(postcard::from_bytes::<Step>(&[6]).is_err());
    }
}
