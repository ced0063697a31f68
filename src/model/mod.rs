//! The words of the design as types. No files, no clock, no threads; everything else may depend on this,
//! this depends on nothing of ours.

pub(crate) mod alert;
pub(crate) mod capture;
pub(crate) mod change;
pub(crate) mod closed_set;
pub(crate) mod digest;
pub(crate) mod key;
pub(crate) mod maps;
pub(crate) mod page;
pub(crate) mod polling;
pub(crate) mod problem;
pub(crate) mod region;
pub(crate) mod rng;
pub(crate) mod said;
pub(crate) mod snapshot;
pub(crate) mod span;
pub(crate) mod stage;
pub(crate) mod time;
pub(crate) mod tuple;
pub(crate) mod update;
pub(crate) mod window;

pub(crate) use alert::AlertKind;
pub use capture::{Body, Loss, NoText, RawCapture, Reject, Suspect, TimeSource};
pub(crate) use capture::{Coverage, Revisit};
pub(crate) use change::Change;
pub use change::{Deletion, Fate, MentionChange, RegionChange, Standing};
pub use digest::Digest;
pub(crate) use digest::DigestBuilder;
pub(crate) use key::KeyError;
pub(crate) use page::{Content, Link, content_digest};
pub use page::{LinkElement, LinkKind};
pub use polling::{Method, Period};
pub(crate) use problem::Problem;
pub use region::Region;
pub use rng::Rng;
pub use snapshot::{Snapshot, SnapshotId};
pub(crate) use span::Span;
pub use stage::StageId;
pub use time::Timestamp;
pub use tuple::{NodeVersion, TupleChange, WebJoin};
pub use update::UpdatedAtSource;
pub(crate) use update::{Estimator, Rhythm};
