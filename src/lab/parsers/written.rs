//! What people write: pipeline files and those they name, and arguments of commands.

use std::io::Read as _;
use std::path::Path;

use super::{JSON, Parser, lines};
use crate::archive::Layout;
use crate::config::Pipeline;
use crate::config::schedule::{parse_period, parse_seconds};
use crate::extract::dictionary::{Dictionary, Options};
use crate::extract::reach::Declared;
use crate::look::sql;
use crate::look::urls::Wanted;
use crate::model::Timestamp;
use crate::model::time::parse_duration;
use crate::model::window::Every;
use crate::schedule::objective::Objective;
use crate::schedule::simulate::{PollPlan, read_plans};
use crate::schedule::weights::SourceWeights;
use crate::schedule::{PollCommand, log};
use crate::stages::delta::webs::Condition;
use crate::stages::extract::trial;
use crate::stats::Calendar;
use crate::store::integrity::Subset;
use crate::store::logs::{self, LogFile};

pub(super) const PARSERS: [Parser; 10] = [
    Parser {
        name: "pipeline",
        samples: |_| vec![PIPELINE.into()],
        words: &[
            "[[extractor]]",
            "kind = 'llm'",
            "= { ",
            "[schedule]",
            "'(?P<x>a{0,999})'",
            "'(((((('",
            "999999999999",
            "-1",
            "nan",
            "true",
            "[[query]]",
            "nodes.x = ",
            "links = ['a -> b -> ']",
            "every = '0s'",
            "unit = 'block'",
            "\u{0}",
        ],
        read: pipeline,
    },
    Parser {
        name: "log",
        samples: |_| {
            vec![b"source,updated_at,after,before,signal\n\"a,\"\"b\",2024-03-01T00:00:00Z,,,1\nb,,2024-03-01,2024-03-02,no\n".into()]
        },
        words: &["\"", ",", ";", "\n", "\r\n", "\u{feff}", "source", "updated_at", "2024-03-01T00:00:00Z"],
        read: |bytes, _| {
            let read = log::read(bytes, &Calendar::utc());
            Ok(read.map_or(0, |log| 1 + log.bad.iter().map(|bad| bad.problem.len() as u64).sum::<u64>()))
        },
    },
    Parser {
        name: "weights",
        samples: |_| vec![b"url,weight\nhttp://a.org/*,2\n\"http://a.org/x,y\",0.5\nb.org,1e3\n".into()],
        words: &["\"", ",", "\n", "*", "[", "{", "**", "\\", "nan", "inf", "-1", "1e400", "\u{feff}"],
        read: weights,
    },
    Parser {
        name: "schedule",
        samples: |_| {
            lines(&[
                r#"{"schedules": [{"source": "a", "period": "day", "time_zone": "Europe/Berlin", "poll_times": [0, 3600, "07:30"]}]}"#,
                r#"[{"period": "week", "poll_times": ["Mon 07:30", 604799]}, {"period": "month", "poll_times": ["31 23:59:59"]}]"#,
            ])
        },
        words: JSON,
        read: schedules,
    },
    Parser {
        name: "poll-command",
        samples: |_| lines(&["wget -q {url}", "curl -s \"$HOST\" -- '{source}'", "fetch `date +%s` {url} >> log"]),
        words: &["{url}", "{source}", "'", "\"", "`", "$(", ")", "\\", "%", "#", "\n", "é", "{", "}"],
        read: poll_command,
    },
    Parser {
        name: "gold",
        samples: |_| {
            vec![
                br#"{"url": "http://a.org/", "text": "One", "extractor": "x", "snapshot": "n1"}
{"url": "http://a.org/", "start": 0, "end": 3}
{"url": "http://b.org/"}
"#
                .into(),
            ]
        },
        words: JSON,
        read: |bytes, _| Ok(trial::gold_bytes(&String::from_utf8_lossy(bytes))),
    },
    Parser {
        name: "log-file",
        samples: log_files,
        words: &["PAR1", "\u{1f}", ",", "source", "updated_at"],
        read: log_file,
    },
    Parser {
        name: "terms",
        samples: |_| vec!["\u{feff}aspirin\nside effects\r\n\n  Ünfug \nİstanbul\nß\nﬁt\n".into()],
        words: &["\n", "ß", "İ", "ﬁ", "\u{301}", " ", "\t", "\u{0}", "\u{200d}", "-", "aspirin", "\r"],
        read: terms,
    },
    Parser {
        name: "argument",
        samples: |_| {
            lines(&[
                "http://a.org/*/{news,talk}?[0-9]",
                "d.title = 'side effects*'",
                "a>u.2.url=\"*\"",
                "3/30",
                "recall=1,freshness=0.3,staleness=2",
                "1h 30m",
                "5m",
                "week",
                "2024-03-01",
                "2024-03-31T02:30:00",
                "warc",
            ])
        },
        words: &[
            "*",
            "**",
            "{",
            "}",
            ",",
            "[",
            "]",
            "[!",
            "?",
            "\\",
            "=",
            ".",
            "'",
            "title",
            "/",
            "nan",
            "inf",
            "1e308",
            "18446744073709551615",
            "d",
            "auto",
            "é",
            "\u{130}",
            "-",
            "T",
        ],
        read: argument,
    },
    Parser {
        name: "sql",
        samples: |_| lines(&QUERIES),
        words: &[
            "select ",
            "(",
            ")",
            ",",
            " from ",
            " join ",
            " left join ",
            " on ",
            " and ",
            " where ",
            "with x as (",
            " union all ",
            " end ",
            " case when ",
            "slice_bytes(",
            "'",
            "\"",
            "`",
            "--",
            "/*",
            "*/",
            ";",
            " in (",
            "m.",
            " using (u) ",
            " order by ",
            " as ",
            "é",
            "$$",
            " lateral ",
        ],
        read: query,
    },
];

const PIPELINE: &str = "[corpus]
snapshots = 's'
store = 't'
coverage = 'partial'
ignore = ['Visitors: [0-9]+']
every = '1h'
time_zone = 'Europe/Berlin'
[guard]
max_deleted_share = 0.3
[plan]
choose = 'auto'
[[extractor]]
name = 'room'
kind = 'regex'
pattern = '(?:Room|Hall) (?P<n>[A-D]?[0-9]{1,3})'
[[extractor]]
name = 'talk'
kind = 'record'
scope = 160
within = 'sentence'
attributes = { place = 'room', more = { extractor = 'room', many = true, optional = true } }
[[extractor]]
name = 'c'
kind = 'command'
command = ['python3', 'x.py']
unit = 'block'
timeout = '30s'
[[query]]
name = 'q'
nodes.x = { title = 'a' }
links = ['x -> y']
[[watch]]
name = 'w'
on = { mentions = 'room' }
[schedule]
polls = 7
[notify]
on = ['problem']
[verify]
nightly = '1/30'
";

/// Names that weights are asked for.
const SOURCES: [&str; 4] = ["http://a.org/x,y", "http://a.org/news/1", "b.org", ""];

fn pipeline(bytes: &[u8], folder: &Path) -> Result<u64, String> {
    let text = String::from_utf8_lossy(bytes);
    match Pipeline::parse(&folder.join("p.toml"), &text) {
        Err(error) if error.to_string().trim().is_empty() => Err("an error that says nothing".to_owned()),
        Err(_) => Ok(0),
        Ok(_) => Ok(1),
    }
}

fn weights(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let Ok(weights) = SourceWeights::parse(&String::from_utf8_lossy(bytes)) else { return Ok(0) };
    match SOURCES.iter().map(|source| weights.of(source)).find(|weight| !(weight.is_finite() && *weight >= 0.0)) {
        Some(weight) => Err(format!("a weight of {weight}")),
        None => Ok(1),
    }
}

fn schedules(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let Ok(plans) = read_plans(&String::from_utf8_lossy(bytes)) else { return Ok(0) };
    let within = |plan: &PollPlan| {
        plan.poll_times.is_sorted() && plan.poll_times.iter().all(|time| (0..plan.period.seconds()).contains(time))
    };
    match plans.iter().find(|plan| !within(plan)) {
        Some(plan) => Err(format!("polls at {:?} of a {}", plan.poll_times, plan.period)),
        None => Ok(plans.iter().map(|plan| 8 * plan.poll_times.len() as u64).sum()),
    }
}

fn poll_command(bytes: &[u8], _: &Path) -> Result<u64, String> {
    match PollCommand::parse(&String::from_utf8_lossy(bytes)) {
        Err(error) if error.to_string().is_empty() => Err("an error that says nothing".to_owned()),
        Err(_) => Ok(0),
        Ok(_) => Ok(1),
    }
}

const QUERIES: [&str; 8] = [
    "select m.a, end from m join n on m.u = n.u and n.s - m.end < 20 where m.a > 1",
    "select slice_bytes(p.text, m.start, m.end) as t from m join p on m.u = p.u order by t limit 3",
    "with w(x) as (select slice_bytes(a, 0, 1) from m), v as (select * from w) select * from v where x in (select u from n)",
    "select slice_bytes(a, 0, 2) as x from m union all select b from n except select c from o order by x",
    "select * from m, n join o on o.u = n.u where m.u = n.u and n.s - m.s > m.e",
    "select case when a > 1 then 'x' else 'y' end, count(*) from (select * from m) z group by 1 having count(*) > 1",
    "select * from m left join n using (u) -- a comment\n where exists (select 1 from o where o.u = m.u)",
    "describe pages",
];

/// However a query is written, whatever becomes of it is a query where it was one.
fn query(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let query = String::from_utf8_lossy(bytes);
    let was_sound = sql::is_sound(&query);
    let broken = |asked: &&String| was_sound && !sql::is_sound(asked);
    match sql::rewritten(&query) {
        Err(why) if why.trim().is_empty() => Err("a refusal that says nothing".to_owned()),
        Err(_) => Ok(0),
        Ok(asked) => match asked.iter().find(broken) {
            Some(asked) => Err(format!("{asked:?} is asked, which is no query")),
            None => Ok(asked.iter().map(|asked| asked.len() as u64).sum()),
        },
    }
}

/// What commands take as patterns, conditions, parts, weights, durations and moments.
fn argument(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let text = String::from_utf8_lossy(bytes);
    let silent = |error: &String| error.trim().is_empty().then(|| "an error that says nothing".to_owned());
    let mut out = 0;
    for url in ["http://a.org/news/talk?1", "http://é.org/\u{130}", ""] {
        match Wanted::parse(&text) {
            Ok(wanted) => _ = wanted.has(url),
            Err(error) => silent(&error).map_or(Ok(()), Err)?,
        }
    }
    match text.parse::<Condition>() {
        Ok(_) => out += 1,
        Err(error) => silent(&error).map_or(Ok(()), Err)?,
    }
    if let Some(subset) = Subset::parse(&text) {
        let _ = subset.has("a");
        out += 1;
    }
    if let Ok(objective) = text.parse::<Objective>() {
        if objective.to_string().parse() != Ok(objective) {
            return Err(format!("{objective} is read as another objective"));
        }
        out += 1;
    }
    if let Some(every) = parse_seconds(&text).and_then(Every::new) {
        let now = Timestamp(1_709_294_400 * Timestamp::SECOND);
        if every.end_of(now).is_some_and(|end| end < now) {
            return Err(format!("a window that ends before {now}"));
        }
        let _ = every.has_passed(now, now);
        out += 1;
    }
    out += u64::from(parse_period(&text).is_ok()) + u64::from(parse_duration(&text).is_some());
    out += u64::from(text.parse::<Layout>().is_ok());
    for zone in [jiff::tz::TimeZone::UTC, jiff::tz::TimeZone::fixed(jiff::tz::offset(-12))] {
        out += u64::from(Timestamp::parse_in(&text, &zone).is_some());
    }
    Ok(out)
}

/// A file of terms finds what it names and nothing else.
fn terms(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let file = String::from_utf8_lossy(bytes);
    let page = format!("Aspirin, İSTANBUL and STRASSE: side  effects, {file} fit");
    let mut out = 0;
    for (whole_word, ignore_case) in [(false, false), (true, false), (false, true), (true, true)] {
        let options = Options { whole_word, ignore_case, declared: Declared::default() };
        let Ok(dictionary) = Dictionary::new(Dictionary::terms_of(&file), options) else { continue };
        for mention in dictionary.extract(&page) {
            let found = page.get(mention.span().range()).filter(|found| !found.is_empty());
            let term = dictionary.term(mention.label).ok_or("a mention of no term")?;
            if found.is_none_or(|found| !ignore_case && found != term) {
                return Err(format!("{found:?} is found for {term:?}"));
            }
            out += 1;
        }
    }
    Ok(out)
}

/// Logs as they are opened: plain, packed, and as a table.
fn log_files(folder: &Path) -> Vec<Vec<u8>> {
    use std::io::Write as _;
    let plain = b"source,updated_at\na,2024-03-01T00:00:00Z\nb,2024-03-02T00:00:00Z\n".repeat(20);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    // Writing to memory does not fail.
    let _ = gzip.write_all(&plain);
    let zstd = zstd::encode_all(plain.as_slice(), 3).unwrap_or_default();
    let table = super::stored::log_table(folder);
    vec![plain, gzip.finish().unwrap_or_default(), zstd, table, logs::foreign_log()]
}

fn log_file(bytes: &[u8], folder: &Path) -> Result<u64, String> {
    let file = folder.join("log");
    fs_err::write(&file, bytes).map_err(|error| error.to_string())?;
    match logs::open(&file) {
        Err(error) if error.to_string().trim().is_empty() => Err("an error that says nothing".to_owned()),
        Err(_) => Ok(0),
        Ok(LogFile::Rows { rows, .. }) => Ok(rows.iter().flatten().map(|cell| cell.len() as u64).sum()),
        // What is packed may well be much larger: it is read as it comes, here up to some bytes.
        Ok(LogFile::Text(text)) => {
            let read = log::read(text.take(1 << 20), &Calendar::utc());
            Ok(read.map_or(0, |log| 1 + log.bad.iter().map(|bad| bad.problem.len() as u64).sum::<u64>()))
        }
    }
}
