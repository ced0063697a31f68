//! The subcommands of stages that have no arguments of their own: made from the list of stages, so that a new stage is a
//! subcommand without a line here.

use clap::error::ErrorKind;
use clap::{ArgMatches, Args as _, Command, Error, FromArgMatches, Subcommand};

use super::{PlannedArgs, StageArgs};
use crate::model::StageId;
use crate::run::stage::Stage;
use crate::stages::STAGES;
use crate::store::view::Read;

/// Stages whose subcommands can do more than run them.
const WITH_MORE: [StageId; 3] = [StageId::Plan, StageId::Delta, StageId::Schedule];

/// A stage to be run.
#[derive(Debug)]
pub(super) struct StageCommand {
    pub(super) id: StageId,
    pub(super) args: StageArgs,
    /// For stages that follow the plan.
    pub(super) planned: Option<PlannedArgs>,
}

fn plain() -> impl Iterator<Item = &'static &'static dyn Stage> {
    STAGES.iter().filter(|stage| !WITH_MORE.contains(&stage.id()))
}

fn follows_the_plan(stage: &dyn Stage) -> bool {
    stage.reads().contains(&Read::Manifest(StageId::Plan))
}

impl FromArgMatches for StageCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let (name, matches) = matches.subcommand().ok_or_else(|| Error::new(ErrorKind::MissingSubcommand))?;
        let stage = plain().find(|stage| stage.id().as_str() == name);
        let stage = stage.ok_or_else(|| Error::new(ErrorKind::InvalidSubcommand))?;
        let planned = follows_the_plan(*stage).then(|| PlannedArgs::from_arg_matches(matches)).transpose()?;
        Ok(Self { id: stage.id(), args: StageArgs::from_arg_matches(matches)?, planned })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for StageCommand {
    fn augment_subcommands(command: Command) -> Command {
        plain().fold(command, |command, stage| {
            let subcommand = Command::new(stage.id().as_str()).about(stage.about());
            command.subcommand(match follows_the_plan(*stage) {
                true => PlannedArgs::augment_args(subcommand),
                false => StageArgs::augment_args(subcommand),
            })
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        plain().any(|stage| stage.id().as_str() == name)
    }
}
