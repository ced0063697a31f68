//! `ratoon web PIPELINE QUERY`: the web table of a query, or what changed in it.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::outcome::{Outcome, Usage, refuse_used};
use super::{Options, output, snapshot_id};
use crate::config::Pipeline;
use crate::look::open_store;
use crate::model::SnapshotId;
use crate::report::webs::{index, picture};
use crate::stages::delta::webs::{AskedWeb, Condition, UnknownName, web as look_at};
use crate::store::files;

/// Tuples that are printed or drawn unless more are asked for.
const PRINTED: usize = 20;
const DRAWN: usize = 500;

#[derive(Debug, Args)]
pub(super) struct WebArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// The query, by its name
    query: String,
    /// The snapshot to look at [default: the newest]
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    at: Option<SnapshotId>,
    /// What came, went and changed there, against the query's table before
    #[arg(long, conflicts_with = "anew")]
    delta: bool,
    /// Ask the query of the pages at the snapshot, instead of reading its table
    #[arg(long)]
    anew: bool,
    /// Only tuples of which this holds: NODE.FIELD = 'GLOB'; fields are url, title, host, content_type; may be repeated
    #[arg(long = "where", value_name = "CONDITION")]
    conditions: Vec<String>,
    /// Only these nodes and the links between them, such as a,d; tuples that are then equal are one
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    nodes: Vec<String>,
    /// Draw each tuple as a graph into this folder, with a page that shows them all
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

pub(super) fn web(args: &WebArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let store = open_store(&pipeline)?;
    let conditions = args.conditions.iter().map(|text| text.parse::<Condition>()).collect::<Result<Vec<_>, _>>();
    let conditions = conditions.map_err(|problem| Usage(format!("--where: {problem}")))?;
    let nodes: Vec<String> = args.nodes.iter().map(|node| node.trim().to_owned()).collect();
    let asked = AskedWeb {
        query: &args.query,
        at: args.at.as_ref(),
        delta: args.delta,
        anew: args.anew,
        conditions: &conditions,
        nodes: &nodes,
    };
    let view = look_at(&pipeline, &store, &asked).map_err(|error| match error.downcast::<UnknownName>() {
        Ok(unknown) => Usage(unknown.to_string()).into(),
        Err(error) => error,
    })?;
    let all = options.verbose > 0;
    if let Some(dir) = &args.svg {
        refuse_used(dir, options)?;
        if options.dry_run {
            return output::text(&format!("dry run: would draw {} tuples\n", view.tuples.len()));
        }
        let drawn = if all { view.tuples.len() } else { view.tuples.len().min(DRAWN) };
        for tuple in view.tuples.iter().take(drawn) {
            let file = dir.join(tuple.file_name());
            files::write(&file, picture(&view, tuple).as_bytes())
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        let page = dir.join("index.html");
        files::write(&page, index(&view, drawn).as_bytes())
            .with_context(|| format!("cannot write {}", page.display()))?;
        if !options.json {
            return match options.quiet {
                true => Ok(Outcome::Done),
                false => output::text(&format!("{}\n{}\n", view.headline(), page.display())),
            };
        }
    }
    if options.json {
        return output::json(&view.json());
    }
    output::text(&view.text(if all { usize::MAX } else { PRINTED }))
}
