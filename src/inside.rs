//! What the tests and benches of this repository look at, under the names of the rooms it lies in.
//!
//! The public face of the library is its command line; everything else is private, so that the compiler sees what is no
//! longer used. Whoever writes a test or a bench that needs more adds it here.

pub mod archive {
    pub use crate::archive::{Layout, SnapshotFolder};
}
pub mod config {
    pub use crate::config::Pipeline;
    pub mod schedule {
        pub use crate::config::schedule::ScheduleSettings;
    }
}
pub mod deltas {
    pub mod web {
        pub use crate::deltas::web::{Pair, TupleLinkRow, TupleNodeRow, WebTable};
    }
}
pub mod extract {
    pub use crate::extract::{Definition, Extractor, LabelColumn, Mention, Status};
    pub mod config {
        pub use crate::extract::config::ExtractorConfig;
    }
    pub mod reach {
        pub use crate::extract::reach::{Blocks, Cut};
    }
    pub mod units {
        pub use crate::extract::units::units;
    }
}
#[cfg(feature = "lab")]
pub mod lab {
    pub mod archives {
        pub mod samples {
            pub use crate::lab::archives::samples::{
                Packed, arc_record, arc_start, cached, conversion, gzip, http, noise, record, response, zip, zstd_file,
                zstd_frame,
            };
        }
    }
    pub mod coverage {
        pub use crate::lab::coverage::{forecasts, sources};
    }
    pub mod synth {
        pub use crate::lab::synth::{Params, Root, Sink, write_site};
    }
    pub mod update_logs {
        pub use crate::lab::update_logs::{cnn_like, datis_like, newsroom, poisson, quarter_bursts, uniform};
    }
}
pub mod manifests {
    pub use crate::manifests::{Changes, Ingested};
}
pub mod matching {
    pub use crate::matching::{MatcherKind, Scratch, automaton_regions};
}
pub mod model {
    pub use crate::model::{
        Body, Deletion, Digest, Fate, LinkElement, LinkKind, Loss, MentionChange, Method, NoText, NodeVersion, Period,
        RawCapture, Region, RegionChange, Reject, Rng, Snapshot, SnapshotId, StageId, Standing, Suspect, TimeSource,
        Timestamp, TupleChange, UpdatedAtSource, WebJoin,
    };
}
pub mod plan {
    pub use crate::plan::{AlternativeKind, Served};
}
pub mod recycle {
    pub use crate::recycle::{NoWorker, Old, recycle, scratch};
}
pub mod report {
    pub mod schedules {
        pub mod crontab {
            pub use crate::report::schedules::crontab::{CronClock, crontab};
        }
        pub mod figure {
            pub use crate::report::schedules::figure::svg;
        }
        pub mod timers {
            pub use crate::report::schedules::timers::systemd;
        }
    }
}
pub mod run {
    pub use crate::run::{Wanted, run};
    pub mod progress {
        pub use crate::run::progress::Progress;
    }
    pub mod stage {
        pub use crate::run::stage::{Asked, Context, Ran, Stage, Task};
    }
}
pub mod schedule {
    pub use crate::schedule::{Objective, Options, PollCommand, Schedule};
    pub mod assess {
        pub use crate::schedule::assess::{assess, assess_uniform};
    }
    pub mod evaluate {
        pub use crate::schedule::evaluate::Metrics;
    }
    pub mod figure {
        pub use crate::schedule::figure::panel;
    }
    pub mod gaps {
        pub use crate::schedule::gaps::PatternCost;
    }
    pub mod history {
        pub use crate::schedule::history::{History, Sequence};
    }
    pub mod kept {
        pub use crate::schedule::kept::KeptSource;
    }
    pub mod log {
        pub use crate::schedule::log::read;
    }
    pub mod optimal {
        pub use crate::schedule::optimal::{GapCost, curve, optimal, total_cost};
    }
    pub mod pattern {
        pub use crate::schedule::pattern::{Smoothing, learn};
    }
    pub mod signal {
        pub use crate::schedule::signal::measure;
    }
    pub mod source {
        pub use crate::schedule::source::plan;
    }
    pub mod water {
        pub use crate::schedule::water::{PoissonSource, fill, whole};
    }
    pub mod uniform {
        pub use crate::schedule::uniform::{any_phase, best_phase, even};
    }
}
pub mod stages {
    pub use crate::stages::graph;
    pub mod delta {
        pub use crate::stages::delta::Delta;
    }
    pub mod schedule {
        pub use crate::stages::schedule::planning::{FleetSource, Keep, plan_all, replan};
        pub use crate::stages::schedule::rows::{curve_rows, schedule_row};
    }
}
pub mod stats {
    pub use crate::stats::{Calendar, Evidence, Observation, Update, UrlState, summarise};
}
pub mod store {
    pub use crate::store::{DEFAULT_SHARDS, Store};
    pub mod index {
        pub use crate::store::index::{Cursor, Index, Kind, Moment};
    }
    pub mod manifest {
        pub use crate::store::manifest::Manifest;
    }
    pub mod parquet {
        pub use crate::store::parquet::{GROUP_BYTES, Partition};
    }
}
pub mod tables {
    pub use crate::tables::all;
    pub mod close {
        pub use crate::tables::close::SnapshotRow;
    }
    pub mod delta {
        pub use crate::tables::delta::{
            Alert, LinkDelta, PageDelta, RegionDelta, TupleDelta, TupleLinkDelta, WebJoinRow, WebLinkRow, WebSchemaRow,
            WebTupleRow,
        };
    }
    pub mod extract {
        pub use crate::tables::extract::{AnswerRow, Extraction, MentionDelta};
    }
    pub mod ingest {
        pub use crate::tables::ingest::{Capture, LinkRow, Page, RejectRow};
    }
    pub mod matching {
        pub use crate::tables::matching::RegionRow;
    }
    pub mod mentions {
        pub use crate::tables::mentions::{MentionRow, MentionSchema};
    }
    pub mod plan {
        pub use crate::tables::plan::{PlanCost, PlanRow};
    }
    pub mod record {
        pub use crate::tables::record::{Record, Table};
    }
    pub mod schedule {
        pub use crate::tables::schedule::{RecallCurveRow, ScheduleRow};
    }
    pub mod stats {
        pub use crate::tables::stats::{UpdateRow, UpdateStatsRow};
    }
}
pub mod text {
    pub mod encoding {
        pub use crate::text::encoding::decode_body;
    }
}
