//! Examples at the end of each command's help, all in one place.

use clap::Command;

/// By command: lines as one would type them, each with what it does.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "run",
        &[
            ("ratoon run my.toml", "whatever is not yet done"),
            ("ratoon run -q my.toml", "the same from cron: prints only errors and problems"),
            ("ratoon run my.toml --dry-run", "only say what would be done"),
            ("ratoon run my.toml --backfill 2024-03-01", "new extractors on earlier snapshots too"),
        ],
    ),
    (
        "commit",
        &[
            ("ratoon commit my.toml --work /shared/work --json", "what workers have to do next, or what was done"),
            ("ratoon commit my.toml --work /shared/work --parts 64", "archives are read in so many parts"),
        ],
    ),
    (
        "worker",
        &[
            ("ratoon worker read my.toml --pass FOLDER < parts > captures", "Arrow streams; FOLDER as commit names it"),
            ("ratoon worker night my.toml --pass FOLDER < buckets > rows", ""),
            ("ratoon worker keep my.toml --pass FOLDER < rows", "sorted by bucket"),
        ],
    ),
    (
        "ingest",
        &[("ratoon ingest my.toml", ""), ("ratoon ingest my.toml --snapshot 2024-03-02", "not further than that")],
    ),
    (
        "plan",
        &[
            ("ratoon plan my.toml --explain", "what each way would have cost, and why one was taken"),
            ("ratoon plan my.toml --explain -v", "the same for each extractor"),
        ],
    ),
    (
        "match",
        &[("ratoon match my.toml", ""), ("ratoon match my.toml --plan anchor", "with this matcher for all pages")],
    ),
    (
        "extract",
        &[
            ("ratoon extract my.toml", ""),
            ("ratoon extract my.toml --force --snapshot 2024-03-07", "again, from that snapshot on"),
        ],
    ),
    (
        "delta",
        &[
            ("ratoon delta my.toml", "what the newest snapshot changed"),
            ("ratoon delta my.toml --from 2024-03-01 --to 2024-03-07", "what changed in between"),
            ("ratoon delta my.toml --from 2024-03-01 --to 2024-03-07 --out DIR", "the same as tables"),
        ],
    ),
    (
        "stats",
        &[("ratoon stats my.toml", "which sources change, how often"), ("ratoon stats my.toml -v", "all of them")],
    ),
    (
        "schedule",
        &[
            ("ratoon schedule my.toml", "when to poll each source"),
            ("ratoon schedule my.toml --crontab polls.cron", "the same for cron"),
            ("ratoon schedule --updates log.csv --period day --polls 4 --out plan", "from any update log"),
        ],
    ),
    (
        "due",
        &[
            ("ratoon due my.toml", "what to fetch now"),
            ("ratoon due my.toml --limit 100 --format urls", "the hundred that gain most, one URL a line"),
        ],
    ),
    ("close", &[("ratoon close my.toml", "")]),
    (
        "verify",
        &[
            ("ratoon verify my.toml", "a sample of pages, from scratch"),
            ("ratoon verify my.toml --all", "every page of the newest snapshot"),
        ],
    ),
    ("audit", &[("ratoon audit my.toml", "does every worker keep its word?")]),
    (
        "simulate",
        &[
            ("ratoon simulate --schedule plan/schedule.json --updates log.csv", "what these polls would have seen"),
            ("ratoon simulate --compare --updates log.csv --polls 4", "all methods on time that they have not seen"),
        ],
    ),
    (
        "web",
        &[
            ("ratoon web my.toml drugs", "the matches of a query in the newest snapshot"),
            ("ratoon web my.toml drugs --delta --svg pictures", "what changed in them, drawn"),
            (
                "ratoon web my.toml drugs --at 2001-01-15 --where \"d.title = '*of ritonavir'\" --nodes u,d",
                "some of them, and of these two nodes",
            ),
        ],
    ),
    (
        "show",
        &[
            ("ratoon show my.toml http://www.example.org/", "against its old version"),
            ("ratoon show my.toml http://www.example.org/ --html page.html", "side by side, with mentions"),
            ("ratoon show my.toml http://www.example.org/ --snapshot 2024-03-02 --against 2024-03-01", ""),
        ],
    ),
    (
        "urls",
        &[
            ("ratoon urls my.toml", "every page of the newest snapshot"),
            ("ratoon urls my.toml people", "those with these letters in their URL"),
            ("ratoon urls my.toml '*/people/*.html' -v", "by a glob, with titles"),
        ],
    ),
    (
        "report",
        &[
            ("ratoon report my.toml", "report.html in the store"),
            ("ratoon report my.toml --out night.html --pages", "elsewhere, with pages against their old versions"),
        ],
    ),
    (
        "triage",
        &[
            ("ratoon triage my.toml", "what of the last night to read first"),
            ("ratoon triage my.toml --since 2024-03-01 --limit 50", "of all nights since then"),
        ],
    ),
    (
        "try",
        &[
            ("ratoon try my.toml http://www.example.org/", "all extractors on one page; nothing is written"),
            ("ratoon try my.toml http://www.example.org/ --extractor event --raw", "what is sent, word for word"),
        ],
    ),
    (
        "trial",
        &[
            ("ratoon trial my.toml --candidate new.toml", "every extractor that differs, on 100 pages"),
            (
                "ratoon trial my.toml --candidate new.toml --extractor event --pages 300 --budget 0.50",
                "for at most so much",
            ),
            ("ratoon trial my.toml --candidate new.toml --gold truth.jsonl", "also precision and recall"),
        ],
    ),
    (
        "sql",
        &[
            ("ratoon sql my.toml 'show tables'", "the tables; `describe pages` shows the columns of one"),
            (
                "ratoon sql my.toml 'select change, count(*) from pages group by change'",
                "the pages as they stand after the newest snapshot",
            ),
            (
                "ratoon sql my.toml --at 2024-03-02 'select url, text from mentions_talk'",
                "what an extractor had found by then",
            ),
            (
                "ratoon sql my.toml 'select snapshot, count(*) as n from alerts group by snapshot order by n desc'",
                "events: of all snapshots",
            ),
            (
                "ratoon sql my.toml 'select snapshot, url from pages_all where moved_from is not null'",
                "with _all: rows of every snapshot",
            ),
            (
                "ratoon sql my.toml --format csv 'select slice_bytes(p.text, m.start - 40, m.end + 40) as around from mentions_talk m join pages p on m.url = p.url'",
                "mentions with the text around them; `start` and `end` count bytes",
            ),
            ("ratoon sql my.toml --format parquet --out talks.parquet - < talks.sql", "a query from a file"),
        ],
    ),
    (
        "status",
        &[
            ("ratoon status my.toml", "what each snapshot brought"),
            ("ratoon status my.toml --check --max-age 26h", "for monitoring: exit 1 if something is wrong or late"),
        ],
    ),
    (
        "check",
        &[
            ("ratoon check my.toml", "all files of the store"),
            ("ratoon check my.toml --subset 3/30", "a part of them"),
            ("ratoon check my.toml --repair", "and make again what is damaged"),
        ],
    ),
    (
        "export",
        &[
            ("ratoon export my.toml --snapshot 2024-03-07 DIR", "one file a page, with a manifest"),
            ("ratoon export my.toml --snapshot 2024-03-07 DIR --parquet", "one file for all"),
        ],
    ),
    (
        "inspect",
        &[
            ("ratoon inspect crawl", "all snapshots of a folder"),
            ("ratoon inspect crawl/2024-03-01 -v", "one of them, with every reject"),
        ],
    ),
    ("drop", &[("ratoon drop my.toml --snapshot 2024-03-07", "that snapshot and all later ones")]),
    ("prune", &[("ratoon prune my.toml --before 2024-03-01", "")]),
    (
        "synth",
        &[
            ("ratoon synth site", "a small site over some nights"),
            ("ratoon synth site --help", "how large, how lively"),
        ],
    ),
    ("tables", &[("ratoon tables | less", "")]),
    ("init", &[("ratoon init my.toml --snapshots crawl --store tables", "")]),
    ("completions", &[("ratoon completions bash > /etc/bash_completion.d/ratoon", "")]),
    (
        "man",
        &[
            ("ratoon man | man -l -", "all pages, one after the other"),
            ("ratoon man show | man -l -", "that of one command"),
            ("ratoon man --out ~/.local/share/man/man1", "a file for each"),
        ],
    ),
];

/// The command line with examples behind the help of its commands.
pub(super) fn with_examples(command: Command) -> Command {
    let there: Vec<&(&str, &[(&str, &str)])> =
        EXAMPLES.iter().filter(|(name, _)| command.find_subcommand(name).is_some()).collect();
    there.into_iter().fold(command, |command, (name, lines)| {
        command.mut_subcommand(name, |subcommand| subcommand.after_help(text(lines)))
    })
}

fn text(lines: &[(&str, &str)]) -> String {
    let mut text = String::from("Examples:");
    for (line, about) in lines {
        text.push_str(&format!("\n  {line}"));
        if !about.is_empty() {
            text.push_str(&format!("\n      {about}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::Cli;
    use super::*;

    /// The words of a command line as a shell sees them.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quote) = (vec![String::new()], None);
        for c in line.chars() {
            match (c, quote) {
                ('\'' | '"', None) => quote = Some(c),
                (c, Some(open)) if c == open => quote = None,
                (' ', None) => words.push(String::new()),
                (c, _) => words.last_mut().unwrap().push(c),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    /// A command without examples is not done. An example must be a command line that is understood.
    #[test]
    fn every_command_has_examples_that_are_understood() {
        let cli = with_examples(Cli::command());
        for command in cli.get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(command.get_after_help().is_some(), "`{}` has no examples: cli/examples.rs", command.get_name());
        }
        for (name, lines) in EXAMPLES {
            for (line, _) in *lines {
                let typed = line.split(['|', '>', '<']).next().unwrap();
                assert!(typed.starts_with(&format!("ratoon {name}")), "{line} is no example of {name}");
                if typed.contains("--help") || cli.find_subcommand(name).is_none() {
                    continue;
                }
                let parsed = Cli::command().try_get_matches_from(words(typed));
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }
}
