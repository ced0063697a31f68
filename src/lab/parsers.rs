//! Damaged input without end for everything that reads what others wrote, apart from archives: pages, bodies, addresses,
//! dates, pipeline files, lines of workers, answers of models, logs, and the files of a store.
//!
//! As with `archives`, sound samples are made and then broken, and everything follows from a seed. A round fails if
//! reading panics, takes long, gives far more than it was given, or breaks what the parser promises.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::config::Pipeline;
use crate::extract::command::{Offsets, Ready, protocol};
use crate::extract::llm::{ModelAttribute, answer};
use crate::extract::schema::{Attribute, Schema};
use crate::lab::archives::damage::change;
use crate::model::time::parse_duration;
use crate::model::{Digest, Rng, SnapshotId, Timestamp};
use crate::schedule::simulate::{PollPlan, read_plans};
use crate::schedule::weights::SourceWeights;
use crate::schedule::{PollCommand, log};
use crate::stages::extract::trial;
use crate::stages::schedule::frontier::Frontier;
use crate::stages::stats;
use crate::stats::Calendar;
use crate::store::index::{Index, Kind};
use crate::store::parquet::{Partition, write_table};
use crate::store::passes::Parcel;
use crate::store::{PART, Store};
use crate::tables::ingest::LinkRow;
use crate::tables::record::Table as _;
use crate::text::{TextOptions, TextReader, encoding, url};

/// Input of some kilobytes that takes longer than this is a way to stop a run.
const MAX_TIME: Duration = Duration::from_secs(10);
/// What comes out may be so many times as large as what went in, and some more.
const MAX_GROWTH: u64 = 64;
const FREE: u64 = 32 << 20;

/// Something that reads foreign bytes.
pub(crate) struct Parser {
    pub name: &'static str,
    samples: fn(&Path) -> Vec<Vec<u8>>,
    /// What has a meaning in the language.
    words: &'static [&'static str],
    /// Reads input, in a folder that it may use; gives the bytes that came out, or what promise is broken.
    read: fn(&[u8], &Path) -> Result<u64, String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub inputs: u64,
    pub bytes: u64,
    /// Of what was read.
    pub out: u64,
    pub slowest: Duration,
    /// Round and what went wrong; the run stops there.
    pub broken: Option<(u64, String)>,
}

const TAGS: &[&str] = &[
    "<a href='",
    "<base href=",
    "<title>",
    "</title>",
    "<svg>",
    "<foreignObject>",
    "<math>",
    "<template>",
    "<script>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "&amp;",
    "&#x110000;",
    "&notin",
    "<pre>",
    "<textarea>",
    "<plaintext>",
    "<frameset>",
    "<iframe",
    "<area alt=",
    "/>",
    "'",
    "\"",
    "\u{0}",
    "é",
    "\u{202e}",
    "<meta charset=utf-16>",
    "<?xml encoding='latin1'?>",
];

pub(crate) const PARSERS: [Parser; 19] = [
    Parser { name: "html", samples: pages, words: TAGS, read: |bytes, _| page(bytes, "text/html") },
    Parser { name: "xhtml", samples: pages, words: TAGS, read: |bytes, _| page(bytes, "application/xhtml+xml") },
    Parser { name: "xml", samples: pages, words: TAGS, read: |bytes, _| page(bytes, "application/xml") },
    Parser {
        name: "text",
        samples: pages,
        words: &["\u{feff}", "\u{fffd}", "é"],
        read: |bytes, _| {
            let types = [
                "",
                "text/plain; charset=shift_jis",
                "text/html; charset=utf-16",
                "application/json",
                "x",
                "image/png",
            ];
            page(bytes, types[bytes.len() % types.len()])
        },
    },
    Parser { name: "body", samples: bodies, words: &["\r\n", "0\r\n\r\n", "ffffffff\r\n", "\u{1f}"], read: body },
    Parser {
        name: "url",
        samples: |_| {
            lines(&["http://user:pw@a.org:81/a/../b%2e?q=1#f", "https://[::1]/", "http://xn--a.é/\u{1f600}", "HTTP:a"])
        },
        words: &["http://", "//", "..", "%2e", "@", ":", "[", "]", "\\", "#", "?", "é", "\u{0}", "xn--", "%"],
        read: address,
    },
    Parser {
        name: "date",
        samples: |_| {
            lines(&[
                "2024-03-01T12:00:00Z",
                "Fri, 01 Mar 2024 12:00:00 GMT",
                "Friday, 01-Mar-24 12:00:00 GMT",
                "20240301120000",
                "2024-03-01T23-05",
                "1h 30m",
                "PT90S",
                "90s",
                "Fri Mar  1 12:00:00 2024",
            ])
        },
        words: &["-", "+99:99", "T", "Z", "99999999", "PT", "d", "Feb 30", "60", "\u{663}"],
        read: date,
    },
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
        name: "worker",
        samples: |_| {
            lines(&[
                r#"{"name": "x", "version": "1", "attributes": ["a", {"name": "b", "many": true}], "offsets": "char", "unit": "window", "scope": 9, "context": [1, 2]}"#,
                r#"{"id": 0, "mentions": [{"start": 0, "end": 3, "text": "One", "attrs": {"a": [0, 1], "b": ["x", [1, 2]]}}]}"#,
                r#"{"id": 0, "error": "no"}"#,
            ])
        },
        words: JSON,
        read: worker,
    },
    Parser {
        name: "model",
        samples: |_| {
            lines(&[
                r#"{"mentions": [{"quote": "One two", "a": "One", "b": ["two"]}, {"quote": "é"}]}"#,
                "<think>{}</think>```json\n[{\"quote\": \"One\"}]\n```",
            ])
        },
        words: JSON,
        read: model,
    },
    Parser {
        name: "log",
        samples: |_| {
            vec![b"source,updated_at,after,before,signal\n\"a,\"\"b\",2024-03-01T00:00:00Z,,,1\nb,,2024-03-01,2024-03-02,no\n".into()]
        },
        words: &["\"", ",", ";", "\n", "\r\n", "\u{feff}", "source", "updated_at", "2024-03-01T00:00:00Z"],
        read: |bytes, _| {
            let calendar = Calendar::utc();
            Ok(log::read(bytes, &calendar).map_or(0, |log| log.bad.iter().map(|bad| bad.problem.len() as u64).sum()))
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
        name: "evidence",
        samples: |_| stats::state_samples(),
        words: JSON,
        read: |bytes, _| stats::read_state(bytes),
    },
    Parser { name: "parcel", samples: parcels, words: &["values", "links", "ARROW1"], read: parcel },
    Parser { name: "parquet", samples: parquet_files, words: &["PAR1"], read: parquet },
    Parser { name: "store", samples: store_files, words: &["\"sum\"", "null", "{}", "-1", "1e400"], read: store },
];

/// Names that weights are asked for.
const SOURCES: [&str; 4] = ["http://a.org/x,y", "http://a.org/news/1", "b.org", ""];

fn weights(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let Ok(weights) = SourceWeights::parse(&String::from_utf8_lossy(bytes)) else { return Ok(0) };
    match SOURCES.iter().map(|source| weights.of(source)).find(|weight| !(weight.is_finite() && *weight >= 0.0)) {
        Some(weight) => Err(format!("a weight of {weight}")),
        None => Ok(0),
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
        _ => Ok(0),
    }
}

/// What workers of other machines send: links as Arrow, and the bytes around them.
fn parcels(_: &Path) -> Vec<Vec<u8>> {
    let mut parcel = Parcel::default();
    let filled =
        parcel.put(LinkRow::NAME, &some_links()).and_then(|()| parcel.put_values(&vec!["value".to_owned(); 9]));
    let sections = filled.is_ok().then(|| parcel.into_sections()).into_iter().flatten();
    vec![
        sections
            .flat_map(|section| [Parcel::frame(&section.table, section.rows.len()), section.rows].concat())
            .collect(),
    ]
}

fn parcel(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let Some(mut parcel) = Parcel::unframed(bytes) else { return Ok(0) };
    let rows = parcel.take::<LinkRow>(LinkRow::NAME).unwrap_or_default();
    let values: Vec<String> = parcel.take_values().unwrap_or_default();
    Ok((rows.iter().map(|row| row.target.len()).sum::<usize>() + values.iter().map(String::len).sum::<usize>()) as u64)
}

const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "null",
    "-1",
    "1e999",
    "\\ud800",
    "\\u0000",
    "\"start\"",
    "\"id\"",
    "4294967296",
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

/// Runs rounds 0, 1, … as long as `go_on(round)` says so, in the folder `scratch`, which is made and removed.
pub(crate) fn fuzz(parser: &Parser, seed: u64, scratch: &Path, mut go_on: impl FnMut(u64) -> bool) -> Report {
    let mut report = Report::default();
    let prepared = fs_err::create_dir_all(scratch);
    let samples = (parser.samples)(scratch);
    let mut round = 0;
    while prepared.is_ok() && go_on(round) {
        let mut rng = Rng::of_round(seed ^ Digest::of(parser.name.as_bytes()).low64(), round);
        let input = damaged(&samples, parser.words, &mut rng);
        report.inputs += 1;
        report.bytes += input.len() as u64;
        let started = Instant::now();
        let reading = catch_unwind(AssertUnwindSafe(|| (parser.read)(&input, scratch)));
        let took = started.elapsed();
        report.slowest = report.slowest.max(took);
        let outcome = match reading {
            _ if took > MAX_TIME => Err(format!("it took {took:?}")),
            Err(_) => Err("a panic".to_owned()),
            Ok(Ok(out)) if out > FREE + MAX_GROWTH * input.len() as u64 => {
                Err(format!("{out} bytes of {}", input.len()))
            }
            Ok(outcome) => outcome,
        };
        match outcome {
            Ok(out) => report.out += out,
            Err(why) => {
                report.broken = Some((round, format!("{why}; input {:?}", String::from_utf8_lossy(&input))));
                break;
            }
        }
        round += 1;
    }
    let _ = fs_err::remove_dir_all(scratch);
    report
}

fn damaged(samples: &[Vec<u8>], words: &[&str], rng: &mut Rng) -> Vec<u8> {
    let mut input = rng.choose(samples).clone();
    for _ in 0..rng.index(8) {
        if rng.index(2) == 0 {
            let at = rng.index(input.len() + 1);
            let times = if rng.index(8) == 0 { rng.index(300) } else { 1 };
            input.splice(at..at, rng.choose(words).repeat(times).into_bytes());
        } else {
            let donor = rng.choose(samples);
            change(&mut input, donor, rng);
        }
    }
    input
}

fn lines(lines: &[&str]) -> Vec<Vec<u8>> {
    lines.iter().map(|line| line.as_bytes().to_vec()).collect()
}

fn pages(_: &Path) -> Vec<Vec<u8>> {
    lines(&[
        "<!doctype html><title>A &amp; B</title><base href='/x/'><p>One <a href='y'>two</a><pre>\n a\n</pre><table><td>1<td>2</table>",
        "<html><svg><title>t</title><text>x</text><foreignObject><p>y</foreignObject></svg><math><mi>z</math>é &eacute; &#233;",
        "<?xml version='1.0'?><feed><entry xlink:href='a'><![CDATA[ <b> ]]></entry></feed>",
        "<script>if (a < b) { '</script>' }</script><style>p{}</style><noscript>n</noscript><textarea>t</textarea>",
    ])
}

fn page(bytes: &[u8], content_type: &str) -> Result<u64, String> {
    let even = bytes.len().is_multiple_of(2);
    let mut reader = TextReader::new(TextOptions { equate_schemes: even, keep_elements: even });
    let own = "http://a.org/b/c?d";
    let first = reader.read(bytes, Some(content_type), own);
    let again = reader.read(bytes, Some(content_type), own);
    if first.content != again.content {
        return Err("read twice, it says two things".to_owned());
    }
    let Some(content) = first.content else { return Ok(0) };
    let links = content.links.iter().map(|link| link.target.len() + link.label.len()).sum::<usize>();
    if let Some(link) = content.links.iter().find(|link| !link.target.starts_with("http")) {
        return Err(format!("a link to {}", link.target));
    }
    Ok((content.text.len() + links) as u64)
}

fn bodies(_: &Path) -> Vec<Vec<u8>> {
    use std::io::Write as _;
    let text = "<p>some text that is here more than once, here more than once</p>".repeat(20);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    let mut brotli = Vec::new();
    // Writing to memory does not fail.
    let _ = gzip.write_all(text.as_bytes());
    let _ = zlib.write_all(text.as_bytes());
    let _ = brotli::CompressorWriter::new(&mut brotli, 4096, 5, 20).write_all(text.as_bytes());
    let chunked = format!("{:x}\r\n{text}\r\n0\r\n\r\n", text.len());
    let zstd = zstd::encode_all(text.as_bytes(), 3).unwrap_or_default();
    vec![gzip.finish().unwrap_or_default(), zlib.finish().unwrap_or_default(), brotli, zstd, chunked.into_bytes()]
}

fn body(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let mut most = 0;
    for content in ["gzip", "deflate", "br", "zstd", "gzip, gzip", "br, deflate, identity, x"] {
        for transfer in [None, Some("chunked")] {
            let decoded = encoding::decode_body(bytes.to_vec(), transfer, Some(content), 64 << 20);
            most = most.max(decoded.map_or(0, |decoded| decoded.bytes.len() as u64));
        }
    }
    Ok(most)
}

fn address(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let Ok(normal) = url::normalise(&String::from_utf8_lossy(bytes), bytes.len().is_multiple_of(2)) else {
        return Ok(0);
    };
    let again = url::normalise(&normal, bytes.len().is_multiple_of(2)).map_err(|error| format!("{normal}: {error}"))?;
    if again != normal
        || normal.contains(|c: char| c.is_control() || c.is_whitespace())
        || url::host(&normal).is_empty()
    {
        return Err(format!("{normal} is not in normal form: {again}"));
    }
    Ok(normal.len() as u64)
}

fn date(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let text = String::from_utf8_lossy(bytes);
    for time in [Timestamp::parse_rfc3339(&text), Timestamp::parse_http(&text)].into_iter().flatten() {
        let again = Timestamp::parse_rfc3339(&time.to_string());
        if again.is_some_and(|again| again != time) {
            return Err(format!("{time} is read as {again:?}"));
        }
    }
    let _ = parse_duration(&text);
    let id = SnapshotId::new(&*text);
    let _ = id.map(|id| id.stated_time(&jiff::tz::TimeZone::UTC));
    Ok(0)
}

fn pipeline(bytes: &[u8], folder: &Path) -> Result<u64, String> {
    let text = String::from_utf8_lossy(bytes);
    match Pipeline::parse(&folder.join("p.toml"), &text) {
        Err(error) if error.to_string().trim().is_empty() => Err("an error that says nothing".to_owned()),
        _ => Ok(0),
    }
}

fn worker(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let line = String::from_utf8_lossy(bytes);
    let _ = serde_json::from_str::<Ready>(&line).map(|ready| ready.attributes().count());
    let mut schema = Schema::default();
    for (name, many) in [("a", false), ("b", true)] {
        schema.push(Attribute { name: name.into(), many }).map_err(|error| error.to_string())?;
    }
    let text = "One \u{1f600} two é three";
    for offsets in [Offsets::Byte, Offsets::Char, Offsets::Utf16] {
        for mention in protocol::read_line(&line, text, offsets, &schema).unwrap_or_default() {
            if text.get(mention.span().range()).is_none_or(str::is_empty) {
                return Err(format!("a mention that is no part of the text: {mention:?}"));
            }
        }
    }
    Ok(0)
}

fn model(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let attributes = ["a", "b"].map(|name| ModelAttribute { name: name.into(), optional: true, many: name == "b" });
    let unit = "One  two é three, One two";
    let Ok(read) = answer::read(&String::from_utf8_lossy(bytes), unit, &attributes) else { return Ok(0) };
    match read.mentions.iter().find(|mention| unit.get(mention.span().range()).is_none_or(str::is_empty)) {
        Some(mention) => Err(format!("a mention that is no part of the unit: {mention:?}")),
        None => Ok(0),
    }
}

fn some_links() -> Vec<LinkRow> {
    let row = |i: i64| LinkRow {
        url: format!("http://a.org/{}", i / 3).into(),
        target: format!("http://a.org/{i}"),
        label: "label".repeat(usize::try_from(i % 5).unwrap_or(0)),
        kind: crate::model::LinkKind::Local,
        ordinal: i,
        element: None,
        dated: None,
    };
    (0..200).map(row).collect()
}

fn parquet_files(folder: &Path) -> Vec<Vec<u8>> {
    let rows = some_links();
    let dir = folder.join("sample");
    let read = || -> std::io::Result<Vec<u8>> {
        fs_err::create_dir_all(&dir)?;
        write_table(&dir, &rows).map_err(std::io::Error::other)?;
        fs_err::read(dir.join(LinkRow::NAME).join(PART))
    };
    vec![read().unwrap_or_else(|_| b"PAR1".to_vec())]
}

/// As a table of a store is read by whoever has no manifest for it, such as an update log.
fn parquet(bytes: &[u8], folder: &Path) -> Result<u64, String> {
    let file = folder.join("x.parquet");
    fs_err::write(&file, bytes).map_err(|error| error.to_string())?;
    let rows = Partition::open(&file).and_then(|partition| partition.all_rows::<LinkRow>());
    Ok(rows.map_or(0, |rows| rows.iter().map(|row| row.target.len() as u64).sum()))
}

/// Files below `_meta`: `NAME\n` and what the file holds.
fn store_files(folder: &Path) -> Vec<Vec<u8>> {
    let root = folder.join("sound");
    let mut samples = lines(&[
        "snapshots/n1.json\n{\"snapshot\":\"n1\",\"time\":\"2024-03-01T00:00:00Z\",\"stages\":{}}",
        "store.json\n{\"format\": 5, \"shards\": 16}",
        "accepted\n[\"n1\"]",
        "runs.jsonl\n{\"start\":\"2024-03-01T00:00:00Z\",\"exit_code\":0}\n{\"verified\":{\"credit\":1.5}}\n",
        "answers/x.log\nA 00000000000000000000000000000000 00000000000000000000000000000000 {}\n",
        "frontier.json\n{\"snapshot\":\"n1\",\"lineage\":\"00000000000000000000000000000000\",\"scope\":\"host\",\"links\":{\"http://a.org/\":{\"pages\":1,\"seen\":0,\"tried\":null}}}",
        "batches/x/1.json\n{\"number\":1,\"state\":\"Sealed\",\"requests\":[]}",
        "batches/x/waiting.jsonl\n{\"key\":\"00000000000000000000000000000000\",\"url\":\"http://a.org/\",\"text\":\"t\",\"body\":\"{}\"}\n",
        "intent.json\n{\"moves\":[],\"writes\":[],\"removals\":[],\"staging\":\".staging/x\"}",
    ]);
    let made = || -> crate::store::Result<()> {
        let store = Store::open_or_create(&root)?;
        let index = Index::open(&store.index_folder())?;
        for i in 0..50u32 {
            index.put(Kind::Heads, i.to_be_bytes().to_vec(), vec![7; i as usize])?;
        }
        index.flush()
    };
    if made().is_ok() {
        for entry in fs_err::read_dir(root.join("_meta/index")).into_iter().flatten().filter_map(Result::ok) {
            let name = format!("index/{}\n", entry.file_name().display());
            samples.extend(fs_err::read(entry.path()).ok().map(|bytes| [name.into_bytes(), bytes].concat()));
        }
    }
    samples
}

fn store(bytes: &[u8], folder: &Path) -> Result<u64, String> {
    let Some(line) = bytes.iter().position(|byte| *byte == b'\n') else { return Ok(0) };
    let (name, content) = (String::from_utf8_lossy(&bytes[..line]), &bytes[line + 1..]);
    let known = [
        "snapshots/n1.json",
        "store.json",
        "accepted",
        "runs.jsonl",
        "answers/x.log",
        "frontier.json",
        "batches/x/1.json",
        "batches/x/waiting.jsonl",
    ];
    // Damage to the name itself is no file of a store.
    let is_index = name.strip_prefix("index/").is_some_and(|name| {
        name.len() < 64
            && name.starts_with(char::is_alphanumeric)
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '.')
    });
    if !known.contains(&&*name) && !is_index || name.contains("..") {
        return Ok(0);
    }
    let root = folder.join("store");
    let _ = fs_err::remove_dir_all(&root);
    let placed = || -> std::io::Result<()> {
        let file = root.join("_meta").join(&*name);
        if is_index {
            fs_err::create_dir_all(root.join("_meta/index"))?;
            for entry in fs_err::read_dir(folder.join("sound/_meta/index"))? {
                let entry = entry?;
                fs_err::copy(entry.path(), root.join("_meta/index").join(entry.file_name()))?;
            }
        }
        fs_err::create_dir_all(file.parent().unwrap_or(&root))?;
        fs_err::write(file, content)
    };
    placed().map_err(|error| error.to_string())?;
    if is_index {
        let mut found = 0;
        if let Ok(index) = Index::open(&root.join("_meta/index")) {
            let _ = index.scan(Kind::Heads, b"", &mut |_, value| {
                found += value.len() as u64;
                Ok(true)
            });
        }
        return Ok(found);
    }
    let Ok(Some(store)) = Store::open(&root) else { return Ok(0) };
    let _ = store.all_done();
    let _ = store.accepted();
    let _ = store.last_run(Some);
    let _ = store.answers_to_read("x");
    let _ = store.meta_file::<Frontier>("frontier.json");
    let _ = store.outbox("x");
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_parser_is_broken_by_damage() {
        let dir = tempfile::tempdir().unwrap();
        for parser in &PARSERS {
            let report = fuzz(parser, 1, &dir.path().join("x"), |round| round < 150);
            assert!(report.broken.is_none(), "{} {:?}", parser.name, report.broken);
            assert_eq!(report.inputs, 150, "{}", parser.name);
        }
    }

    /// The fuzzer must be able to find something.
    #[test]
    fn a_parser_that_breaks_is_named() {
        let weak = Parser {
            name: "weak",
            samples: |_| lines(&["abc"]),
            words: &["x"],
            read: |bytes, _| match bytes {
                [b'x', ..] => panic!("a test"),
                [.., b'x'] => Err("it ends in x".to_owned()),
                _ => Ok(0),
            },
        };
        let dir = tempfile::tempdir().unwrap();
        let (round, why) = fuzz(&weak, 1, &dir.path().join("x"), |round| round < 1000).broken.unwrap();
        assert!(why.contains("panic") || why.contains("ends in x"), "{why}");
        let again = fuzz(&weak, 1, &dir.path().join("x"), |round| round < 1000).broken.unwrap();
        assert_eq!(again, (round, why), "its round shows it again");
    }
}
