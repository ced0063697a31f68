//! Closed sets: enums whose members have one name each, the same in tables, JSON, pipeline files and on the command
//! line. [`closed_set!`] writes the enum and everything that follows from the names, so that no name is spelled twice.

use std::fmt;

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
        write!(f, "no {} is called '{}'; there are {}", self.what, self.name, self.known.join(", "))
    }
}

/// Writes an enum, its list of members, their names, and the conversions from and to names. A set may take in the
/// members of another one: `… or Inner(OtherSet)`.
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
        } or $(#[$inner_doc:meta])* $Inner:ident($Other:ident)
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis enum $Set {
            $($(#[$doc])* $Member,)+
            $(#[$inner_doc])* $Inner($Other),
        }

        impl $Set {
            /// All members, those of the set inside last.
            $vis const ALL: [Self; [$($name),+].len() + $Other::ALL.len()] = {
                let own = [$(Self::$Member),+];
                let mut all = [own[0]; [$($name),+].len() + $Other::ALL.len()];
                let mut i = 0;
                while i < all.len() {
                    all[i] = if i < own.len() { own[i] } else { Self::$Inner($Other::ALL[i - own.len()]) };
                    i += 1;
                }
                all
            };

            /// Its one name.
            #[must_use]
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Member => $name,)+
                    Self::$Inner(inner) => inner.as_str(),
                }
            }
        }

        $crate::model::closed_set::by_name!($Set, $what);
    };
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
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $Set {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use $crate::model::closed_set::ClosedSet;
                let name = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                Self::named(&name)
                    .ok_or_else(|| <D::Error as serde::de::Error>::unknown_variant(&name, <Self as ClosedSet>::NAMES))
            }
        }
    };
}

pub(crate) use by_name;
pub(crate) use closed_set;

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

    #[test]
    fn a_set_can_take_in_another() {
        assert_eq!(Turn::ALL.map(Turn::as_str), ["back", "left", "right"]);
        assert_eq!("right".parse::<Turn>().unwrap(), Turn::Aside(Side::Right));
    }

    #[test]
    fn a_member_has_one_name_everywhere() {
        for side in Side::ALL {
            assert_eq!(side.as_str().parse::<Side>().unwrap(), side);
            let json = serde_json::to_string(&side).unwrap();
            assert_eq!(json, format!("\"{side}\""));
            assert_eq!(serde_json::from_str::<Side>(&json).unwrap(), side);
        }
        assert_eq!("up".parse::<Side>().unwrap_err().to_string(), "no side is called 'up'; there are left, right");
        let error = serde_json::from_str::<Side>("\"up\"").unwrap_err().to_string();
        assert!(error.contains("unknown variant `up`") && error.contains("`right`"), "{error}");
    }
}
