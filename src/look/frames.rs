//! The tables of a store as polars frames, as SQL names them: what holds at a snapshot, and all there ever was.
//!
//! | name | rows |
//! |---|---|
//! | `pages`, `extractions`, `mentions_<extractor>`, `links`, `texts` | the state at the snapshot |
//! | `update_stats`, `schedules`, `recall_curves` | the newest of each source that is not gone |
//! | `web_tuples_<query>`, `web_links_<query>` | the tuples of a query and their links, as it was last asked |
//! | `web_joins_<query>`, `states_…` | those of the newest partition |
//! | all others: events | of the snapshot and all before it |
//! | `<table>_all` | of all snapshots |
//!
//! Only what is asked for is read: partitions of the tables that a question names, and of them the columns that it uses.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use anyhow::{Result, bail};
use polars::prelude::{
    Column, DataFrame, DataType, Field, IdxCa, IdxSize, NewChunkedArray as _, PlSmallStr, Schema, SchemaRef,
};

use crate::model::{SnapshotId, StageId};
use crate::run::inventory::known_snapshots;
use crate::store::Store;
use crate::store::frames::{Chosen, SNAPSHOT, declared, stacked};
use crate::tables::extract::Extraction;
use crate::tables::ingest::Page;
use crate::tables::mentions::{MENTIONS, mentions_of};
use crate::tables::nature::{DELETED, Gone, Nature, TEXTS, sql_name, tuples_of};
use crate::tables::record::Table as _;
use crate::tables::schedule::ScheduleRow;
use crate::tables::{self, TableInfo};

/// What a name ends with that stands for all snapshots.
const ALL: &str = "_all";

/// A table by the name that SQL has for it.
#[derive(Clone, Debug)]
struct Named {
    /// Its name in the store.
    table: String,
    all: bool,
}

/// The tables of a store at a snapshot.
pub(crate) struct Tables {
    store: Store,
    at: SnapshotId,
    /// Oldest first.
    snapshots: Vec<SnapshotId>,
    names: BTreeMap<String, Named>,
    pages: OnceLock<Vec<Chosen>>,
}

/// The newest snapshot with all that belongs to it; while the first one is under way, what there is of it.
pub(crate) fn newest(store: &Store) -> Result<SnapshotId> {
    let all = store.all_done()?;
    let closed = all.iter().rev().find(|done| done.stages.contains_key(&StageId::Close));
    match closed.or_else(|| all.last()) {
        Some(done) => Ok(done.snapshot.id.clone()),
        None => bail!("no snapshot is ingested yet in {}; `ratoon run` does it", store.root().display()),
    }
}

impl Tables {
    /// The tables at a snapshot, or at the newest one.
    pub(crate) fn at(store: &Store, at: Option<&SnapshotId>) -> Result<Self> {
        let at = match at {
            Some(id) => {
                known_snapshots(store, [id])?;
                id.clone()
            }
            None => newest(store)?,
        };
        let all = store.all_done()?;
        let mut tables: Vec<String> = vec![TEXTS.to_owned()];
        tables.extend(tables::all().iter().map(|table| table.name.to_owned()).filter(|name| !name.contains('<')));
        for done in all.iter() {
            tables.extend(done.stages.values().flat_map(|stage| stage.tables.keys().cloned()));
        }
        let mut names = BTreeMap::new();
        // A table of this name comes before all rows of another.
        for all in [false, true] {
            for table in &tables {
                let name = sql_name(table) + if all { ALL } else { "" };
                names.entry(name).or_insert_with(|| Named { table: table.clone(), all });
            }
        }
        let snapshots = all.iter().map(|done| done.snapshot.id.clone()).collect();
        Ok(Self { store: store.clone(), at, snapshots, names, pages: OnceLock::new() })
    }

    /// The names of all tables.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    fn named(&self, name: &str) -> Result<&Named> {
        match self.names.get(name) {
            Some(named) => Ok(named),
            None => bail!("no table {name}"),
        }
    }

    /// The columns of a table.
    pub(crate) fn columns(&self, name: &str) -> Result<SchemaRef> {
        let named = self.named(name)?;
        let mut columns = Schema::from_iter([Field::new(SNAPSHOT.into(), DataType::String)]);
        let fixed = tables::all().into_iter().find(|TableInfo { name, .. }| *name == named.table);
        if named.table == TEXTS {
            let text = |name: &str| Field::new(name.into(), DataType::String);
            columns.extend([text("url"), text("text_digest"), text("text")]);
        } else if let Some(fixed) = fixed {
            columns.extend(declared(&fixed.columns));
        } else {
            // What its files have: an extractor may have other attributes than it once had.
            let mut partitions: Vec<SnapshotId> = self.written(&named.table, named.all)?;
            partitions.reverse();
            for snapshot in partitions {
                for field in self.store.columns_of(&named.table, &snapshot)?.unwrap_or_default() {
                    if !columns.contains(field.name()) {
                        columns.extend([field]);
                    }
                }
            }
        }
        Ok(Arc::new(columns))
    }

    /// Some columns of a table, in this order; without names, all of them.
    pub(crate) fn frame(&self, name: &str, wanted: Option<&[&str]>) -> Result<DataFrame> {
        let all = self.columns(name)?;
        let wanted: SchemaRef = match wanted {
            Some(names) => Arc::new(all.try_project(names)?),
            None => all,
        };
        let named = self.named(name)?;
        let of_pages = matches!(Nature::of(&named.table), Nature::Pages | Nature::Texts);
        let stored = if of_pages { Page::NAME } else { &named.table };
        let with_text = of_pages && wanted.contains("text");
        let mut read = (*wanted).clone();
        if with_text {
            read.shift_remove("text");
            for pointer in ["url", "text_snapshot"] {
                if !read.contains(pointer) {
                    read.extend([Field::new(pointer.into(), DataType::String)]);
                }
            }
        }
        let frames = self.chosen(named)?.into_iter().map(|chosen| self.store.chosen_frame(stored, &chosen, &read));
        let frames = frames.collect::<Result<Vec<_>, _>>()?;
        let mut frame = stacked(frames, &Arc::new(read))?;
        if with_text {
            frame.with_column(self.texts(&frame)?)?;
            frame = frame.select(wanted.iter_names().cloned())?;
        }
        Ok(frame)
    }

    /// The texts of rows of `pages`, wherever they lie.
    fn texts(&self, pages: &DataFrame) -> Result<Column> {
        let (urls, pointers) = (pages.column("url")?.str()?, pages.column("text_snapshot")?.str()?);
        let columns =
            Arc::new(Schema::from_iter(["url", "text"].map(|name| Field::new(name.into(), DataType::String))));
        let (mut frames, mut starts, mut start): (Vec<DataFrame>, HashMap<&str, IdxSize>, IdxSize) = Default::default();
        for pointer in pointers.iter().flatten() {
            if starts.contains_key(pointer) {
                continue;
            }
            let frame = self.store.frame(Page::NAME, &SnapshotId::new(pointer)?, &columns)?;
            starts.insert(pointer, start);
            start += IdxSize::try_from(frame.height())?;
            frames.push(frame);
        }
        let stored = stacked(frames, &columns)?;
        let mut places: HashMap<(IdxSize, &str), IdxSize> = HashMap::with_capacity(stored.height());
        let mut starting: Vec<IdxSize> = starts.values().copied().collect();
        starting.sort_unstable();
        for (place, url) in (0..).zip(stored.column("url")?.str()?.iter()) {
            let start = starting[starting.partition_point(|&start| start <= place) - 1];
            places.insert((start, url.unwrap_or_default()), place);
        }
        let place = |(url, pointer): (Option<&str>, Option<&str>)| places.get(&(*starts.get(pointer?)?, url?)).copied();
        let found = IdxCa::from_iter_options(PlSmallStr::EMPTY, urls.iter().zip(pointers.iter()).map(place));
        Ok(stored.column("text")?.take(&found)?)
    }

    /// The snapshots that a table has rows in, oldest first: all of them, or those up to the one that is looked at.
    fn written(&self, table: &str, all: bool) -> Result<Vec<SnapshotId>> {
        let last = if all { self.snapshots.last() } else { Some(&self.at) };
        let upto = self.snapshots.iter().position(|id| Some(id) == last).map_or(0, |last| last + 1);
        let mut written = Vec::new();
        for id in &self.snapshots[..upto] {
            if self
                .store
                .snapshot_done(id)?
                .is_some_and(|done| done.table(table).is_some_and(|written| written.bytes > 0))
            {
                written.push(id.clone());
            }
        }
        Ok(written)
    }

    /// Which rows a table has.
    fn chosen(&self, named: &Named) -> Result<Vec<Chosen>> {
        let Named { table, all } = named;
        let table = table.as_str();
        let whole = |snapshot| Chosen { snapshot, rows: None };
        Ok(match Nature::of(table) {
            Nature::Texts if *all => self.written(Page::NAME, true)?.into_iter().map(whole).collect(),
            _ if *all => self.written(table, true)?.into_iter().map(whole).collect(),
            Nature::Events => self.written(table, false)?.into_iter().map(whole).collect(),
            Nature::Newest => self.written(table, false)?.pop().map(whole).into_iter().collect(),
            Nature::Pages | Nature::Texts => self.pages()?.to_vec(),
            Nature::Links => {
                self.followed(table, "url", &self.pointers(Page::NAME, self.pages()?, "content_snapshot")?)?
            }
            Nature::Extractions => self.extractions()?,
            Nature::Mentions => {
                let extractor = table.strip_prefix(MENTIONS).unwrap_or(table).trim_start_matches('/');
                let rows = self.extractions_of(extractor)?;
                self.followed(table, "url", &self.pointers(Extraction::NAME, &rows, "mentions_snapshot")?)?
            }
            Nature::Sources(gone) => self.sources(table, gone)?,
            Nature::Tuples => self.store.layers(table, &self.at)?.chosen(&self.store, "tuple", DELETED)?,
            Nature::Curves => self.beside(table, ScheduleRow::NAME, "source")?,
            Nature::TupleLinks => self.beside(table, &tuples_of(table), "tuple")?,
        })
    }

    fn pages(&self) -> Result<&[Chosen]> {
        if let Some(pages) = self.pages.get() {
            return Ok(pages);
        }
        let pages = self.store.pages_at(&self.at)?.chosen(&self.store, "url", DELETED)?;
        Ok(self.pages.get_or_init(|| pages))
    }

    fn sources(&self, table: &str, gone: Gone) -> Result<Vec<Chosen>> {
        Ok(self.store.layers(table, &self.at)?.chosen(&self.store, "source", gone)?)
    }

    /// The rows of a table that lie where those of another do that hold, and are of the same.
    fn beside(&self, table: &str, other: &str, key: &str) -> Result<Vec<Chosen>> {
        let columns = Schema::from_iter([Field::new(key.into(), DataType::String)]);
        let mut places: Pointers = BTreeMap::new();
        for chosen in self.chosen(&Named { table: other.to_owned(), all: false })? {
            let rows = self.store.chosen_frame(other, &chosen, &columns)?;
            let keys = rows.column(key)?.str()?.iter().flatten().map(str::to_owned);
            places.entry(chosen.snapshot).or_default().extend(keys);
        }
        self.followed(table, key, &places)
    }

    /// The extractions of an extractor's living pages, if it took part in the snapshot.
    fn extractions_of(&self, extractor: &str) -> Result<Vec<Chosen>> {
        let layers = self.store.layers(&mentions_of(extractor), &self.at)?;
        if layers.snapshots().first() != Some(&self.at) {
            return Ok(Vec::new());
        }
        let text = |name: &str| Field::new(name.into(), DataType::String);
        let mut living: HashSet<String> = HashSet::new();
        for chosen in self.pages()? {
            let pages = self.store.chosen_frame(Page::NAME, chosen, &Schema::from_iter([text("url")]))?;
            living.extend(pages.column("url")?.str()?.iter().flatten().map(str::to_owned));
        }
        let columns = Schema::from_iter([text("url"), text("extractor")]);
        let mut all = Vec::new();
        for snapshot in layers.snapshots() {
            let rows = self.store.frame(Extraction::NAME, snapshot, &columns)?;
            let (urls, extractors) = (rows.column("url")?.str()?, rows.column("extractor")?.str()?);
            let rows = (0..).zip(urls.iter().zip(extractors.iter()));
            // The newest row of a page counts.
            let newest =
                rows.filter(|(_, (url, by))| *by == Some(extractor) && url.is_some_and(|url| living.remove(url)));
            let rows = newest.map(|(place, _)| place).collect();
            all.push(Chosen { snapshot: snapshot.clone(), rows: Some(rows) });
        }
        Ok(all)
    }

    fn extractions(&self) -> Result<Vec<Chosen>> {
        let mut places: BTreeMap<SnapshotId, Vec<IdxSize>> = BTreeMap::new();
        let of_mentions = self.names.values().filter(|named| !named.all);
        for extractor in of_mentions.filter_map(|named| named.table.strip_prefix("mentions/")) {
            for Chosen { snapshot, rows } in self.extractions_of(extractor)? {
                places.entry(snapshot).or_default().extend(rows.unwrap_or_default());
            }
        }
        let chosen = places.into_iter().map(|(snapshot, mut rows)| {
            rows.sort_unstable();
            Chosen { snapshot, rows: Some(rows) }
        });
        Ok(chosen.collect())
    }

    /// Where rows point to: the URLs by the snapshot in column `pointer`.
    fn pointers(&self, table: &str, rows: &[Chosen], pointer: &str) -> Result<Pointers> {
        let columns = Schema::from_iter(["url", pointer].map(|name| Field::new(name.into(), DataType::String)));
        let mut places: Pointers = BTreeMap::new();
        for chosen in rows {
            let rows = self.store.chosen_frame(table, chosen, &columns)?;
            for (url, place) in rows.column("url")?.str()?.iter().zip(rows.column(pointer)?.str()?.iter()) {
                if let (Some(url), Some(place)) = (url, place) {
                    places.entry(SnapshotId::new(place)?).or_default().insert(url.to_owned());
                }
            }
        }
        Ok(places)
    }

    /// The rows of a table that pointers lead to.
    fn followed(&self, table: &str, key: &str, places: &Pointers) -> Result<Vec<Chosen>> {
        let columns = Schema::from_iter([Field::new(key.into(), DataType::String)]);
        let mut all = Vec::new();
        for (snapshot, keys) in places {
            let rows = self.store.frame(table, snapshot, &columns)?;
            let there = (0..).zip(rows.column(key)?.str()?.iter());
            let rows =
                there.filter(|(_, key)| key.is_some_and(|key| keys.contains(key))).map(|(place, _)| place).collect();
            all.push(Chosen { snapshot: snapshot.clone(), rows: Some(rows) });
        }
        Ok(all)
    }
}

/// What is wanted of a partition, by snapshot: the rows of these keys.
type Pointers = BTreeMap<SnapshotId, HashSet<String>>;
