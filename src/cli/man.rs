//! `ratoon man`: the manual, a page for the program and one for each of its commands.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Command};

use super::outcome::{Outcome, Usage};
use super::output;
use crate::store::files;

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Only the page of this command
    command: Option<String>,
    /// Write each page to a file here instead, such as ratoon-run.1
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

pub(super) fn man(args: &ManArgs, cli: Command) -> anyhow::Result<Outcome> {
    let pages = pages(cli)?;
    if let Some(dir) = &args.out {
        for (name, page) in &pages {
            files::write(&dir.join(format!("{name}.1")), page)?;
        }
        return Ok(Outcome::Done);
    }
    let wanted = args.command.as_ref().map(|command| format!("ratoon-{command}"));
    let shown: Vec<&(String, Vec<u8>)> =
        pages.iter().filter(|(name, _)| wanted.as_ref().is_none_or(|wanted| wanted == name)).collect();
    if shown.is_empty() {
        bail!(Usage(format!(
            "there is no command '{}'; see ratoon --help",
            args.command.as_deref().unwrap_or_default()
        )));
    }
    output::bytes(&shown.into_iter().flat_map(|(_, page)| page.clone()).collect::<Vec<u8>>())
}

/// All pages by name, that of the program first: it names the others.
fn pages(mut cli: Command) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    cli.build();
    let commands = cli.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut pages = Vec::new();
    for command in std::iter::once(cli.clone()).chain(commands) {
        let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
        let mut page = Vec::new();
        clap_mangen::Man::new(command).title(&name).render(&mut page)?;
        pages.push((name, page));
    }
    Ok(pages)
}
