//! The words of the design as types. No files, no clock, no threads; everything else may depend on this,
//! this depends on nothing of ours.

pub mod alert;
pub mod capture;
pub mod change;
pub mod closed_set;
pub mod digest;
pub mod key;
pub mod page;
pub mod polling;
pub mod region;
pub mod rng;
pub mod snapshot;
pub mod span;
pub mod stage;
pub mod time;
pub mod tuple;
pub mod update;

pub use alert::AlertKind;
pub use capture::{Body, Coverage, RawCapture, Reject, Revisit, TimeSource};
pub use change::{Change, Deletion, Fate, MentionChange, RegionChange, Standing};
pub use digest::{Digest, DigestBuilder};
pub use key::KeyError;
pub use page::{Content, Link, LinkKind};
pub use polling::{Method, Period};
pub use region::Region;
pub use rng::Rng;
pub use snapshot::{Snapshot, SnapshotId};
pub use span::Span;
pub use stage::StageId;
pub use time::Timestamp;
pub use tuple::{NodeVersion, TupleChange, WebJoin};
pub use update::{Estimator, Rhythm, UpdatedAtSource};
