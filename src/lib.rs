//! ratoon keeps extracted information current over a corpus that is crawled again and again.
//!
//! ```text
//! snapshot folders ──ingest──► captures, pages (+text), links, rejects
//!         old + new pages ──plan──► plans ──match──► regions
//! old mentions + regions + new pages ──extract──► mentions/<extractor>, extractions, mention_deltas, plan_costs
//!   pages, links, old and new, queries ──delta──► page_deltas, link_deltas, region_deltas, web_tuples, tuple_deltas, alerts
//!                captures ──stats──► updates, update_stats ──schedule──► schedules, recall_curves, crontab, timers
//! ```
//! Each stage is a subcommand, a make target and a module under [`stages`]; stages meet only through tables on disk.
//!
//! # Layers
//! A module may use those below it; `tests/it/layers.rs` holds it to that.
//! ```text
//! cli ► pipeline ► stages ► archive (snapshot folders in), store (tables out): the only disk access
//!                           pure core, no files, clock or printing (but `extract::command`, which runs programs):
//!                           recycle ► extract; plan ► matching; schedule ► stats; deltas, corpus, text, report, synth
//!                           tables ► model
//! ```
//!
//! # Words
//! * **snapshot**: one folder of the archive. **capture**: one retrieval of a URL.
//! * **page**: the last good capture of a URL in a snapshot, with its text. **head**: what is known of a URL so far.
//! * **shard**: a part of all URLs, by hash; old and new page of a URL are in the same one.
//! * **old page** q, **new page** p: the last good page of a URL in an earlier snapshot, and its page now.
//! * **region**: a part of p that stands in q. **matcher**: finds regions.
//! * **extractor**: finds mentions in text; its *reach* is how far it looks. **mention**: a span of a page with
//!   attributes. **recycle**: copy mentions from the old page where a region allows it, extract the rest.
//! * **plan**: which matcher a snapshot's pages get and which extractors recycle; chosen by cost.
//! * **delta**: what was added, deleted or modified between two snapshots. **query**: a small graph pattern over pages and
//!   links; **web tuple**: one match of it. **watch**: what of the deltas somebody wants to be told.
//! * **update**: a change of a page, in the interval `(after, before]`. **source**: what is polled, one URL or several.
//! * **schedule**: a period and the poll times within it.
//! * **base**: a snapshot that stores the texts and links of all pages, not only of changed ones.

pub mod archive;
pub mod captures;
pub mod cli;
pub mod config;
pub mod deltas;
pub mod extract;
pub mod inspect;
pub mod manifests;
pub mod matching;
pub mod model;
pub mod plan;
pub mod recycle;
pub mod report;
pub mod run;
pub mod schedule;
pub mod stages;
pub mod stats;
pub mod store;
pub mod synth;
pub mod tables;
pub mod text;
