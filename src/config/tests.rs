use super::*;

fn parse(text: &str) -> Result<Pipeline, String> {
    Pipeline::parse(Path::new("dir/p.toml"), text).map_err(|error| error.to_string())
}

#[test]
fn paths_are_relative_to_the_file() {
    let pipeline = parse("[corpus]\nsnapshots = '../s'\nstore = 'o'\n").unwrap();
    assert_eq!(pipeline.corpus.snapshots, Path::new("s"));
    assert_eq!(pipeline.corpus.store, Path::new("dir/o"));
    assert_eq!(pipeline.guard, Guard::default());
    assert_eq!(pipeline.corpus.coverage, Coverage::Full);
}

#[test]
fn the_guard_has_defaults_and_its_old_place() {
    let head = "[corpus]\nsnapshots = 's'\nstore = 'o'\n";
    let guard = |text: &str| parse(&format!("{head}{text}")).unwrap().guard;
    assert_eq!(guard("max_reject_share = 0.5\n"), Guard { max_reject_share: 0.5, ..Guard::default() });
    let all = "[guard]\nmax_deleted_share = 0.1\nmax_suspect_share = 0.2\nmax_failed_share = 1\nmax_reject_share = 0\n";
    let expected =
        Guard { max_deleted_share: 0.1, max_suspect_share: 0.2, max_failed_share: 1.0, max_reject_share: 0.0 };
    assert_eq!(guard(all), expected);
}

fn two_of(table: &str, keys: &str, names: [&str; 2]) -> String {
    names.map(|name| format!("[[{table}]]\nname = '{name}'\n{keys}\n")).concat()
}

#[test]
fn values_of_the_wrong_kind_are_told_with_one_of_the_right_kind() {
    let head = "[corpus]\nsnapshots = 's'\nstore = 'o'\n";
    let cases = [
        (
            format!("{head}equate_schemes = 'yes'\n"),
            "dir/p.toml:4:18: invalid type: string \"yes\", expected true or false\nhint: write it like equate_schemes = true",
        ),
        (
            format!("{head}[schedule]\npolls = -1\n"),
            "5:9: invalid value: integer `-1`, expected a whole number, 0 or more\nhint: write it like polls = 10",
        ),
        (format!("{head}store = 'p'\n"), "4:1: `store` is written twice\nhint: keep one of the two"),
        (format!("{head}[guard]\n[guard]\n"), "`guard` is written twice\nhint: keep one of the two"),
        (
            two_of("extractor", "kind = 'command'\ncommand = 'python3 x.py'", ["a", "b"]) + head,
            "4:11: invalid type: string \"python3 x.py\", expected a list\nhint: write it like command = [\"python3\", \"x.py\"]",
        ),
        (
            head.to_owned() + &two_of("extractor", "kind = 'regex'\npattern = '(x'", ["a", "b"]),
            "7:1: extractor: `pattern`: cannot read the pattern '(x': unclosed group\nhint: ",
        ),
    ];
    for (text, said) in cases {
        let error = parse(&text).unwrap_err();
        assert!(error.contains(said), "{error}\n{said}");
    }
}

#[test]
fn every_error_names_line_and_fix() {
    let head = "[corpus]\nsnapshots = 's'\nstore = 'o'\n";
    let two = |table: &str, keys: &str, names: [&str; 2]| head.to_owned() + &two_of(table, keys, names);
    let cases = [
        (format!("{head}ignor = []\n"), "dir/p.toml:4:1: unknown key `ignor`\nhint: did you mean `ignore`?"),
        (format!("{head}zzz = 1\n"), "dir/p.toml:4:1: unknown key `zzz`\nhint: known here: snapshots, store, "),
        ("[corpus]\nstore = 'o'\n".into(), "missing key `snapshots`\nhint: add a line: snapshots = "),
        (String::new(), "dir/p.toml: no [corpus] table\nhint: "),
        (format!("{head}layout = 'wark'\n"), "4:10: unknown value `wark`\nhint: did you mean `warc`?"),
        (format!("{head}coverage = 'all'\n"), "4:12: unknown value `all`\nhint: known here: full, partial"),
        (format!("{head}ignore = ['a', '(']\n"), "4:16: `ignore` rule '(': unclosed group"),
        (format!("{head}ignore = ['a*']\n"), "matches the empty string"),
        (format!("{head}time_zone = 'Mars'\n"), "4:13: unknown time zone 'Mars'\nhint: "),
        (format!("{head}max_reject_share = 7.0\n"), "4:20: `max_reject_share` is not a share"),
        (format!("{head}[guard]\nmax_deleted_share = -1.0\n"), "5:21: `max_deleted_share` is not a share"),
        (format!("{head}[guard]\nmax_suspects = 1.0\n"), "5:1: unknown key `max_suspects`"),
        (
            format!("{head}max_reject_share = 0.5\n[guard]\nmax_reject_share = 0.5\n"),
            "4:20: `max_reject_share` stands in [corpus] and in [guard]\nhint: keep the one in [guard]",
        ),
        ("[corpus]\nsnapshots = 's'\nstore = 's/o'\n".into(), "3:9: `store` lies inside `snapshots`"),
        (format!("{head}[schedule]\npols = 1\n"), "5:1: unknown key `pols`\nhint: did you mean `polls`?"),
        (format!("{head}[schedule]\npolls = 1\nbudget = 2\n"), "6:10: `polls` and `budget` exclude each other"),
        (format!("{head}[schedule]\ngrain = '7m'\n"), "5:9: `schedule`: a grain of 420 s does not divide"),
        (format!("{head}[schedule]\nmin_gap = '10'\n"), "5:11: `min_gap` is no duration\nhint: write 90s, 5m"),
        (format!("{head}[schedule]\nperiod = 'year'\n"), "5:10: `period`: 'year' is no period"),
        (format!("{head}[schedule]\nby = '('\n"), "5:6: `by`: unclosed group"),
        (format!("{head}[schedule]\nobjective = {{ recal = 1 }}\n"), "unknown key `recal`"),
        ("[corpus\n".into(), "dir/p.toml:1:8: "),
        (
            format!("{head}[[extractor]]\nname = 'a'\nkind = 'regex'\npattern = 'x*'\n"),
            "dir/p.toml:7:1: extractor: `pattern`: ",
        ),
        (
            format!("{head}[[extractor]]\nname = 'a'\nkind = 'regexp'\n"),
            "6:8: unknown value `regexp`\nhint: did you mean `regex`?",
        ),
        (
            format!("{head}[[extractor]]\nname = 'a'\nkind = 'regex'\npatern = 'x'\n"),
            "7:1: unknown key `patern`\nhint: did you mean `pattern`?",
        ),
        (
            two("extractor", "kind = 'regex'\npattern = 'x'", ["a-b", "a_b"]),
            "extractor: `name`: 'a-b' and 'a_b' are both mentions_a_b in SQL\nhint: rename one of them",
        ),
        (
            two("extractor", "kind = 'regex'\npattern = 'x'", ["a-b", "a_b_all"]),
            "9:1: extractor: `name`: mentions_a_b_all is what SQL calls all mentions of 'a-b', of every snapshot\nhint: rename",
        ),
        (
            two("query", "links = ['x -> y']", ["a-b", "a_b_all"]),
            "8:8: query: `name`: web_tuples_a_b_all is what SQL calls all web_tuples of 'a-b', of every snapshot\nhint: rename",
        ),
        (
            format!("{head}[extractor]\nname = 'a'\nkind = 'regex'\npattern = 'x'\n"),
            "dir/p.toml:4:1: `[extractor]` is one of several\nhint: write [[extractor]]",
        ),
        (
            format!("{head}[plan]\nk = 3\n[watch]\nname = 'a'\n[guard]\n"),
            "dir/p.toml:6:1: `[watch]` is one of several\nhint: write [[watch]]",
        ),
        (
            format!("{head}[[extractor]]\nname = 'a'\nkind = 'regex'\npattern = \"\\bx\"\n"),
            "7:1: extractor: `pattern`: the pattern has a backspace in it, which is what TOML makes of \"\\b\"\nhint: write it between '…'",
        ),
        (
            format!("{head}[[extractor]]\nname = 'a'\nkind = 'regex'\npattern = \"\\d+\"\n"),
            "hint: between \"…\" a backslash has a meaning of its own",
        ),
        (format!("{head}ignore = [\"\\bx\"]\n"), "4:11: `ignore` rule with a backspace in it"),
        (
            format!("{head}[[extractor]]\nname = 'a'\nkind = 'dictionary'\nterms = 'none.txt'\n"),
            "dir/p.toml:7:1: `terms` of extractor 'a': dir/none.txt: ",
        ),
    ];
    for (text, expected) in cases {
        let error = parse(&text).unwrap_err();
        assert!(error.contains(expected), "{text}\n{error}\nnot {expected}");
    }
}

/// What decides a result is part of an identity, by its name and value and not by how it is written.
#[test]
fn identities_are_of_what_is_meant() {
    let head = "[corpus]\nsnapshots = 's'\nstore = 'o'\n";
    let schedule = |text: &str| parse(&format!("{head}[schedule]\n{text}")).unwrap().schedule.digest();
    let variants = ["", "polls = 5", "budget = 5", "budget = 5\nfloor = 5", "host_limit = 5", "period = 'day'"];
    let variants = variants.into_iter().chain(["min_gap = '5m'", "method = 'uniform'", "by = 'host'"]);
    let digests: Vec<_> = variants.map(schedule).collect();
    for (i, digest) in digests.iter().enumerate() {
        assert!(!digests[..i].contains(digest), "{i}");
    }
    assert_eq!(schedule("min_gap = '10m'"), schedule("min_gap = '600s'"));
    assert_eq!(schedule("polls = 4"), schedule(""), "the default");
    assert_eq!(schedule("command = 'x {url}'"), schedule(""), "a command decides nothing in tables");

    let watch = |on: &str| {
        let text = format!("{head}[[watch]]\nname = 'w'\non = {{ {on} }}\n");
        parse(&text).unwrap().watches[0].digest
    };
    assert_ne!(watch("changes = 5"), watch("share = 0.5"));
    assert_ne!(watch("changes = 5"), watch("changes = 6"));
    assert_ne!(watch("pages = 'a'"), watch("matching = 'a'"));
    assert_ne!(watch("change = 'added'"), watch("change = 'deleted'"));
    assert_eq!(watch("pages = 'a'"), watch("pages = ['a']"));
}
