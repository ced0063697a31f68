//! Which of the common options a command has: the others are not in its help, and refused.

use clap::{Arg, ArgAction, Command};

/// Options that only some commands have: their ids, how they are written, and these commands.
const SOME: [(&str, &str, &[&str]); 3] = [
    ("force", "force", &["run", STAGES, "export", "init", "synth", "web"]),
    ("dry_run", "dry-run", &["run", STAGES, "check", "drop", "export", "init", "prune", "report", "synth", "web"]),
    ("strict", "strict", &["run", STAGES, "inspect"]),
];

/// Stands for the commands of the stages.
const STAGES: &str = "ingest plan match extract delta stats schedule close";

fn applies(commands: &[&str], command: &str) -> bool {
    commands.iter().flat_map(|names| names.split(' ')).any(|name| name == command)
}

/// The command line with options hidden where they mean nothing.
pub(super) fn with_what_applies(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    SOME.iter().fold(command, |command, (id, long, commands)| {
        let others = names.iter().filter(|name| !applies(commands, name));
        others.fold(command, |command, name| {
            // One of the same name takes the place of the option that all commands have.
            let hidden = Arg::new(*id).long(*long).action(ArgAction::SetTrue).hide(true);
            command.mut_subcommand(name, |subcommand| subcommand.arg(hidden))
        })
    })
}

/// Says what is wrong if an option was given that the command does not have. `given`: whether an option was, by its id.
pub(super) fn refused(command: &str, given: impl Fn(&str) -> bool) -> Option<String> {
    let wrong = SOME.iter().find(|(id, _, commands)| given(id) && !applies(commands, command))?;
    Some(format!("`ratoon {command}` has no --{}; see ratoon help {command}", wrong.1))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::Cli;
    use super::*;

    #[test]
    fn a_command_has_the_options_that_apply_and_no_others() {
        let mut cli = with_what_applies(Cli::command());
        cli.build();
        let shown = |command: &str, id: &str| {
            let command = cli.find_subcommand(command).unwrap();
            command.get_arguments().any(|arg| arg.get_id() == id && !arg.is_hide_set())
        };
        assert!(shown("run", "force") && shown("extract", "dry_run") && shown("inspect", "strict"));
        assert!(!shown("sql", "force") && !shown("urls", "dry_run") && !shown("show", "strict"));
        assert!(shown("sql", "json") && shown("urls", "verbose"));
        assert!(
            SOME.iter()
                .flat_map(|(_, _, all)| *all)
                .flat_map(|all| all.split(' '))
                .all(|name| cli.find_subcommand(name).is_some())
        );
        assert_eq!(
            refused("urls", |id| id == "dry_run").unwrap(),
            "`ratoon urls` has no --dry-run; see ratoon help urls"
        );
        assert_eq!(refused("run", |_| true), None);
    }
}
