//! Input that is made to hurt: it gets no more memory than it is worth, and commands no terminal.

use std::fs;
use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use ratoon::inside::lab::archives::samples::{gzip, http, record, response};
use ratoon::inside::tables::ingest::{LinkRow, Page, RejectRow};

use crate::workspace::{Ended, Workspace};

const NIGHT: &str = "2024-03-01";
/// What a run of nothing much takes, with room for allocators.
const LITTLE: u64 = 400;

fn with_warc(file: &[u8]) -> Workspace {
    let w = Workspace::new("max_reject_share = 1.0");
    fs::write(w.snapshot_dir(NIGHT).join("x.warc.gz"), file).unwrap();
    w
}

fn reasons(w: &Workspace) -> Vec<String> {
    w.rows::<RejectRow>(NIGHT).into_iter().map(|reject| reject.reason).collect()
}

/// F2: every link of a page repeats its base, so that 400 kilobytes could become 25 gigabytes.
#[test]
fn a_huge_base_makes_no_gigabytes_of_links() {
    let links = "<a href=x>y</a>".repeat(25_000);
    for (bytes, kept) in [(1 << 20, 0), (60_000, 105), (1_000, 5_000)] {
        let base = format!("http://site.test/{}/", "b".repeat(bytes));
        let page = format!("<base href='{base}'><a href='http://other.test/'>z</a>{links}");
        let good = response("http://site.test/good", b"<p>good<a href='x'>x</a>");
        let w = with_warc(&[gzip(&response("http://site.test/", page.as_bytes())), gzip(&good)].concat());
        let (code, peak) = w.measured(&["run", "p.toml", "-q", "--threads", "2"]);
        assert_eq!((code, w.rows::<Page>(NIGHT).len()), (0, 2), "{:?}", reasons(&w));
        assert!(peak < LITTLE, "a base of {bytes} bytes: {peak} MB");
        let links = w.rows::<LinkRow>(NIGHT).into_iter().filter(|link| &*link.url == "http://site.test/").count();
        assert!(links > kept && (kept == 0 || links < 2 * kept), "{bytes}: {links}");
        let told = reasons(&w);
        let left_out = format!("{} links are left out", 25_001 - links);
        assert!(told.len() == 1 && told[0].starts_with(&left_out), "{told:?}");
    }
}

/// F8: small records that unpack to as much as they may, many at once, on several threads.
#[test]
fn several_bombs_at_once_take_the_memory_of_one() {
    let zeros = |bytes: usize| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let piece = vec![b' '; 1 << 20];
        (0..bytes >> 20).for_each(|_| encoder.write_all(&piece).unwrap());
        encoder.finish().unwrap()
    };
    let bomb = |i: usize, coding: &str, body: &[u8]| {
        let fields = [("WARC-Target-URI", &*format!("http://site.test/{i}")), ("WARC-Date", "2024-03-01T12:00:00Z")];
        let headers = [("Content-Type", "text/plain"), ("Content-Encoding", coding)];
        gzip(&record("response", &fields, &http("200 OK", &headers, body)))
    };
    // Twice packed, ten gigabytes fit into some kilobytes: it is the size as sent that counts.
    let twice = gzip(&zeros(1 << 30));
    assert!(twice.len() < 20_000);
    let file: Vec<u8> = (0..12).flat_map(|i| bomb(i, "gzip, gzip", &twice)).collect();
    let w = with_warc(&file);
    let (_, peak) = w.measured(&["run", "p.toml", "-q", "--threads", "4"]);
    assert!(peak < LITTLE, "{peak} MB");
    assert!(reasons(&w).len() == 12 && reasons(&w).iter().all(|reason| reason.contains("longer than")));
    // As large as a body may be: what is large comes one at a time.
    let once = zeros(500 << 20);
    let one = with_warc(&bomb(0, "gzip", &once));
    let (_, of_one) = one.measured(&["ingest", "p.toml", "-q", "--threads", "4"]);
    let file: Vec<u8> = (0..4).flat_map(|i| bomb(i, "gzip", &once)).collect();
    let w = with_warc(&file);
    let (_, of_four) = w.measured(&["ingest", "p.toml", "-q", "--threads", "4"]);
    assert!(of_four < of_one + of_one / 2, "one: {of_one} MB, four: {of_four} MB");
}

/// F9: what a worker writes is read up to a bound, on each of several threads.
#[test]
fn floods_from_workers_take_bounded_memory() {
    for flood in ["head -c 3000000000 /dev/zero | tr '\\0' x", "head -c 3000000000 /dev/zero | tr '\\0' x >&2; exit 3"]
    {
        let script = format!("read -r hello; echo '{{\"name\":\"x\"}}'; while read -r line; do {flood}; done");
        let w = Workspace::new(
            "[[extractor]]\nname = 'x'\nkind = 'command'\ncommand = ['sh', 'worker.sh']\nunit = 'page'\ntimeout = '2m'\n",
        );
        fs::write(w.path("worker.sh"), script).unwrap();
        w.snapshot(NIGHT, &[("a", "<p>a"), ("b", "<p>b")]);
        let (code, peak) = w.measured(&["run", "p.toml", "-q", "--threads", "2"]);
        assert_eq!(code, 3);
        assert!(peak < LITTLE + 2 * 2 * 64, "{flood}: {peak} MB");
    }
}

/// F15: a log of updates that unpacks to one line without end.
#[test]
fn an_endless_line_in_a_log_takes_little() {
    let w = Workspace::new("");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(b"source,updated_at\n").unwrap();
    let piece = vec![b'x'; 1 << 20];
    (0..2048).for_each(|_| encoder.write_all(&piece).unwrap());
    fs::write(w.path("log.csv.gz"), encoder.finish().unwrap()).unwrap();
    let args = ["schedule", "--updates", "log.csv.gz"];
    let (code, peak) = w.measured(&args);
    assert_eq!(code, 1);
    assert!(peak < LITTLE, "{peak} MB");
    w.ratoon(&args).expect(1).says("line 2: a record of more than 1048576 bytes");
}

/// Absurd lengths: of URLs, of header lines, of names in a manifest.
#[test]
fn absurd_lengths_are_rejects() {
    let long = format!("http://site.test/{}", "u".repeat(200_000));
    let header = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n<p>x", "h".repeat(10 << 20));
    let fields = [("WARC-Target-URI", "http://site.test/h"), ("WARC-Date", "2024-03-01T12:00:00Z")];
    let file = [
        gzip(&response(&long, b"<p>long")),
        gzip(&record("response", &fields, header.as_bytes())),
        gzip(&response("http://site.test/good", b"<p>good")),
    ];
    let w = with_warc(&file.concat());
    let (code, peak) = w.measured(&["run", "p.toml", "-q"]);
    assert_eq!((code, w.rows::<Page>(NIGHT).len()), (0, 1), "{:?}", reasons(&w));
    assert!(peak < LITTLE, "{peak} MB");
    assert!(reasons(&w).iter().any(|reason| reason.contains("more than 65536")), "{:?}", reasons(&w));
}

/// What never ends or never answers is not opened: pipes, devices, sockets, loops of links.
#[test]
fn devices_and_pipes_in_a_folder_hold_up_nothing() {
    for layout in ["mirror", "manifest", "warc"] {
        let w = Workspace::new(&format!("max_reject_share = 1.0\nlayout = '{layout}'"));
        let dir = w.snapshot_dir(NIGHT);
        let site = dir.join("site.test");
        fs::create_dir(&site).unwrap();
        fs::write(site.join("good.html"), "<p>good").unwrap();
        let make = |args: &[&str]| {
            assert!(Command::new(args[0]).args(&args[1..]).current_dir(&site).status().unwrap().success());
        };
        make(&["mkfifo", "pipe.html", "pipe.warc"]);
        make(&["ln", "-s", "/dev/zero", "zero.html"]);
        make(&["ln", "-s", "/dev/zero", "zero.warc.gz"]);
        make(&["ln", "-s", "loop.html", "loop.html"]);
        make(&["ln", "-s", "..", "up"]);
        let _socket = std::os::unix::net::UnixListener::bind(site.join("s.html")).unwrap();
        match layout {
            "manifest" => {
                let names = ["good.html", "pipe.html", "zero.html", "loop.html", "s.html", "../../../../etc/passwd"];
                let line = |name: &str| {
                    format!("{{\"url\":\"http://site.test/{name}\",\"file\":\"site.test/{name}\",\"status\":200}}\n")
                };
                fs::write(dir.join("manifest.jsonl"), names.map(line).concat()).unwrap();
            }
            "warc" => fs::write(site.join("good.warc"), response("http://site.test/good.html", b"<p>good")).unwrap(),
            _ => {}
        }
        let (code, peak) = w.measured(&["run", "p.toml", "-q"]);
        assert!(matches!(code, 0 | 3), "{layout}: {code}");
        assert!(peak < LITTLE, "{layout}: {peak} MB");
        let pages: Vec<_> = w.rows::<Page>(NIGHT).into_iter().map(|page| page.url).collect();
        assert_eq!(pages, ["http://site.test/good.html"], "{layout}: {:?}", reasons(&w));
    }
}

/// Commands to a terminal, and characters that make text look like another.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\r\u{8}\u{202e}evil\u{2066}\u{200f}";

fn is_hostile(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whatever a crawl brings stands in what every command prints, and none of it commands the terminal.
#[test]
fn no_command_prints_what_commands_a_terminal() {
    let worker = r#"read -r hello; echo '{"name":"x"}'
        while read -r line; do
          id=${line#*\"id\":}; id=${id%%,*}
          case $line in
          *POISON*) printf '{"id":%s,"error":"\\u001b[2J\\u202eevil"}\n' "$id"; printf '\033[2Jwords\n' >&2 ;;
          *) echo "{\"id\":$id,\"mentions\":[{\"start\":0,\"end\":3}]}" ;; esac
        done"#;
    let w = Workspace::new(
        "max_reject_share = 1.0\n[[extractor]]\nname = 'x'\nkind = 'command'\ncommand = ['sh', 'worker.sh']\nunit = 'page'\n\
         [[extractor]]\nname = 'word'\nkind = 'regex'\npattern = 'e.{0,3}'\n\
         [[watch]]\nname = 'news'\non = { share = 0.1 }\n[[watch]]\nname = 'words'\non = { mentions = 'word' }\n",
    );
    fs::write(w.path("worker.sh"), worker).unwrap();
    let other = fs::read_to_string(w.path("p.toml")).unwrap();
    fs::write(w.path("q.toml"), other.replace("e.{0,3}", "e.{0,5}").replace("'page'", "'block'")).unwrap();
    for night in 1..=2 {
        let page = |text: &str| {
            format!(
                "<title>t {HOSTILE} &lt;script>alert(1)&lt;/script> t</title><p>{text} {HOSTILE} {night}</p><a href='http://x.test/{HOSTILE}'>l {HOSTILE}</a>"
            )
        };
        let url = format!("a{HOSTILE}");
        w.snapshot(&format!("2024-03-0{night}"), &[(&url, &page("one")), ("b", &page("POISON"))]);
        let manifest = w.snapshot_dir(&format!("2024-03-0{night}")).join("manifest.jsonl");
        let lines = fs::read_to_string(&manifest).unwrap();
        let bad = serde_json::json!({"url": format!("gopher://{HOSTILE}"), "file": HOSTILE, "status": 200});
        fs::write(&manifest, format!("{lines}{bad}\n{{\"{HOSTILE}\n")).unwrap();
        let odd = w.snapshot_dir(&format!("2024-03-0{night}")).join(format!("x{}", HOSTILE.replace('/', "")));
        fs::write(odd, "x").unwrap();
    }
    let mut seen = 0;
    let mut plain = |ended: &Ended, args: &[&str]| {
        for text in [&ended.stdout, &ended.stderr] {
            assert!(!text.contains(is_hostile), "{args:?}: {text:?}");
            seen += text.matches("evil").count();
        }
    };
    let page = "http://site.test/b";
    let commands: &[&[&str]] = &[
        &["inspect", "snapshots", "-v"],
        &["inspect", "snapshots/2024-03-01", "-v"],
        &["run", "p.toml", "-vv"],
        &["run", "p.toml", "-vv", "--force"],
        &["status", "p.toml"],
        &["status", "p.toml", "--check"],
        &["urls", "p.toml", "-v"],
        &["show", "p.toml", page],
        &["show", "p.toml", page, "--whole"],
        &["try", "p.toml", page],
        &["try", "p.toml", page, "--raw"],
        &["delta", "p.toml"],
        &["delta", "p.toml", "--from", "2024-03-01", "--to", "2024-03-02"],
        &["plan", "p.toml", "--explain", "-v"],
        &["stats", "p.toml"],
        &["schedule", "p.toml", "-v"],
        &["due", "p.toml", "--at", "2030-01-01T00:00:00Z", "--since", "2024-01-01T00:00:00Z"],
        &["verify", "p.toml", "--all"],
        &["audit", "p.toml"],
        &["trial", "p.toml", "--candidate", "q.toml"],
        &["trial", "p.toml", "--candidate", "q.toml", "--extractor", "word", "-v"],
        &["check", "p.toml"],
        &["triage", "p.toml"],
        &["sql", "p.toml", "select url, title, text from pages"],
        &["report", "p.toml", "--out", "report.html"],
        &["show", "p.toml", "http://site.test/nowhere\u{1b}[2J"],
        &["run", "\u{1b}[2J\u{202e}evil.toml"],
    ];
    for args in commands {
        for json in [false, true] {
            let args: Vec<&str> = args.iter().copied().chain(json.then_some("--json")).collect();
            plain(&w.ratoon(&args), &args);
        }
    }
    assert!(seen > 20, "what is hostile is shown, made harmless: {seen}");
    w.ratoon(&["show", "p.toml", page, "--html", "page.html"]).expect(0);
    for page in ["page.html", "report.html"] {
        let html = fs::read_to_string(w.path(page)).unwrap();
        assert!(!html.contains(is_hostile) && html.contains("evil"), "{page}");
        assert!(!html.contains("<script>alert"), "{page}: what a page says is no markup");
    }
}

/// However deep or wide a page is, reading it takes the time that its bytes are worth.
#[test]
fn pages_of_one_kind_of_thing_end() {
    let n = 300_000;
    let pages: Vec<String> = vec![
        "<div>".repeat(n),
        "<svg><foreignObject>".repeat(n / 3),
        "<template>".repeat(n / 2),
        "<a href=x>".repeat(n / 2),
        "<!--".repeat(n),
        "&amp".repeat(n),
        "<a href='".repeat(n / 2),
        "<base href='//".repeat(n / 3),
        "<![CDATA[".repeat(n / 2),
        "<title>".repeat(n / 2),
        "<script><!--<script>".repeat(n / 5),
        "<p a=".repeat(n),
        format!("<p {}>", "a=b ".repeat(n)),
        "\u{0}".repeat(n * 3),
        "<math><annotation-xml><svg>".repeat(n / 6),
    ];
    let w = Workspace::new("max_reject_share = 1.0");
    let named: Vec<(String, String)> = pages.into_iter().enumerate().map(|(i, page)| (format!("p{i}"), page)).collect();
    let named: Vec<(&str, &str)> = named.iter().map(|(path, page)| (path.as_str(), page.as_str())).collect();
    w.snapshot(NIGHT, &named);
    let started = std::time::Instant::now();
    let (code, peak) = w.measured(&["run", "p.toml", "-q"]);
    assert!(matches!(code, 0 | 3), "{code}");
    assert!(peak < 2 * LITTLE, "{peak} MB");
    assert_eq!(w.rows::<Page>(NIGHT).len(), named.len());
    assert!(started.elapsed() < Duration::from_mins(4), "it is not linear");
}
