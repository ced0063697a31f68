//! ratoon keeps extracted information current over a corpus that is crawled again and again.
//!
//! ```text
//! snapshot folders ──ingest──► captures, pages (+text), links, rejects
//!         old + new pages ──plan──► plans ──match──► regions
//! old mentions + regions + new pages ──extract──► mentions/<extractor>, extractions, mention_deltas, plan_costs
//!   pages, links, old and new, queries ──delta──► page_deltas, link_deltas, region_deltas, web_tuples, tuple_deltas, alerts
//!                captures ──stats──► updates, update_stats ──schedule──► schedules, recall_curves
//! ```
//! Each stage is a subcommand, a make target and a module under [`stages`]; stages meet only through tables and through
//! what they leave in their manifests.
//!
//! # Rooms
//! A module may use those below it, never those above; `tests/it/layers.rs` reads all code and holds it to that.
//! ```text
//! cli         parses the command line, calls, prints
//! look        what commands read from a store without a run: a page, a plan, what is done
//! stages      what each stage does with a snapshot
//! report      all that is rendered for people and other programs: terminal, HTML, SVG, JSON, crontab, timers
//! run         one owner of a run: order, resume, what is out of date, shards, progress, pruning
//! config      the pipeline file: what was typed, what it means, where an error lies
//! manifests   what each stage leaves for later ones: a typed, versioned record per stage
//! archive     snapshot folders in ┐ the only
//! store       tables on disk      ┘ disk access
//! ─── the pure core: no files, no clock, no printing (but `extract::command` and `extract::llm::client`, which ask others) ───
//! schedule    when to poll;  stats: when pages change
//! deltas      what changed: texts, links, queries, watches
//! captures    a URL's night: which capture is its page, what revisits stand for, rows and next head
//! tables      rows and columns; cells are values of the rooms below
//! recycle     copying mentions where nothing changed, exactly;  extract: finding them
//! plan        which way a night is cheapest;  matching: old regions of a page
//! inspect     counting what an archive holds
//! text        bytes to text, title, links; URLs
//! model       words of the design as types
//! allocator   where memory comes from
//! bounds      how much is taken from foreign bytes at most, and at a time
//! ```
//! Beside all this stands `lab`, behind a feature that is on by default: what those who build ratoon test and measure it
//! with. Only `cli` and tests use it.
//!
//! A record of a WARC file goes this way: `archive` yields a `RawCapture`; `stages::ingest` decodes it (`text`), notes it
//! (`captures`) and spills it by shard; the shard is joined with what is known of its URLs and folded, URL by URL
//! (`captures`), to rows of `captures`, `pages` and `links`. `stages::plan` prices the ways to go on (`plan`),
//! `stages::matching` finds old regions (`matching`), `stages::extract` copies and extracts mentions (`recycle`, `extract`). `stages::delta` compares the page
//! with the one before (`deltas`). `stages::stats` learns from the captures of its URL when it changes (`stats`), and
//! `stages::schedule` plans its polls (`schedule`), which `report` renders for cron when asked.
//!
//! # Recipes
//! Where a stranger begins, and how many source files it takes (tests and docs aside):
//! * a matcher, 2: see [`matching`];
//! * an extractor kind, 3: see [`extract`];
//! * a layout of snapshot folders, 2: see [`archive`];
//! * a stage, 3: see [`stages`].
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
//! * **touched**: captured in a snapshot, or missing from a full crawl. **whole** partition: has rows of all URLs; **slim**:
//!   of those that the snapshot touched. **state** at a snapshot: what holds there, from the newest whole partition and
//!   the slim ones since (`store::state`).
//! * **base**: a whole snapshot that stores the texts and links of all pages, not only of changed ones, and what is known
//!   of all URLs.
//! * **index**: what stages need by URL or digest. It follows the tables and can always be made again
//!   (`store::index`, `stages::follow`).
//! * **pass**: a part of a night that other processes may work on, for the one that commits it (`run::hands`).
//!   **bucket**: a shard, as such a process is asked for it.
//! * **lineage**: identifies what a stage made and what of; where an upstream one has changed, a result is out of date.
//! * **manifest**: says that a stage is done for a snapshot, and what it leaves for later ones; written last.
//! * **closed set**: an enum whose members have one name each, everywhere.

mod allocator;
mod archive;
mod bounds;
mod captures;
mod cli;
mod config;
mod deltas;
mod extract;
#[doc(hidden)]
pub mod inside;
mod inspect;
#[cfg(any(test, feature = "lab"))]
mod lab;
mod look;
mod manifests;
mod matching;
mod model;
mod plan;
mod recycle;
mod report;
mod run;
mod schedule;
mod stages;
mod stats;
mod store;
mod tables;
mod text;

pub use allocator::Allocator;
pub use cli::main;
