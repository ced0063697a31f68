//! `show --html`: both versions of a page in one file.

use std::fs;
use std::process::Command;

use crate::workspace::Workspace;

const SAME: &str = "A paragraph that is long enough to be found again wherever it goes, and goes again.";
const HOSTILE: &str = "&lt;/script&gt;&lt;script&gt;document.title='owned'&lt;/script&gt; \" ' &amp;amp; \u{202e}gnp.exe &lt;/style&gt;&lt;img src=x onerror=alert(1)&gt;";

fn hostile() -> Workspace {
    let w = Workspace::new("[[extractor]]\nname = 'who'\nkind = 'regex'\npattern = 'Dr\\. [A-Z][a-z]{1,9}'\n");
    let page = |doctor: &str, more: &str| {
        format!("<title>{HOSTILE}</title><p>{SAME}</p><p>{doctor} was here.</p><p>{more}</p>")
    };
    w.snapshot("2024-01-01", &[("p", &page("Dr. No", "gone"))]);
    w.snapshot("2024-01-02", &[("p", &page("Dr. Who", HOSTILE))]);
    w.run();
    w
}

#[test]
fn both_versions_stand_side_by_side_and_hostile_text_is_harmless() {
    let w = hostile();
    let ended = w.ratoon(&["show", "http://site.test/p", "p.toml", "--html", "out/page.html"]).expect(0);
    assert_eq!(ended.stdout, "out/page.html\n");
    let html = fs::read_to_string(w.path("out/page.html")).unwrap();
    for tag in ["<script", "</script", "<img", "\u{202e}"] {
        assert!(!html.contains(tag), "{tag}");
    }
    assert_eq!((html.matches("<a ").count(), html.matches("<a href=\"../store/report.html\">").count()), (1, 1));
    assert_eq!(html.matches("</style>").count(), 1);
    assert!(html.contains("Content-Security-Policy") && html.contains("default-src 'none'"));
    for words in ["Dr. Who", "Dr. No", "1 mentions, 1 new, 1 gone", "2024-01-01", "text digest", "⟨U+202E⟩gnp.exe"]
    {
        assert!(html.contains(words), "{words}");
    }
    let first =
        w.ratoon(&["show", "http://site.test/p", "p.toml", "--snapshot", "2024-01-01", "--html", "1.html", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&first.expect(0).stdout).unwrap();
    assert_eq!(json["html"], "1.html");
    assert!(fs::read_to_string(w.path("1.html")).unwrap().contains("no earlier version"));
    w.ratoon(&["show", "http://site.test/p", "p.toml", "--html", "/proc/no/such/file"]).expect(1).says("cannot write");
}

/// A title is the page's own, and a terminal is ours.
#[test]
fn titles_do_not_command_the_terminal() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("p", "<title>a&#x9b;2Jb\u{1b}[2Jc</title><p>text \u{1b}[31m")]);
    w.run();
    for args in [&["show", "p.toml", "http://site.test/p"][..], &["urls", "p.toml", "-v"]] {
        let shown = w.ratoon(args).expect(0).stdout;
        assert!(shown.contains("[2J") && !shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    }
}

/// What a browser makes of it: the text is there, nothing ran.
#[test]
#[ignore = "needs a browser: make test provides one"]
fn a_browser_shows_it() {
    let browser = std::env::var("RATOON_BROWSER").expect("RATOON_BROWSER names a Chromium; make test sets it");
    let w = hostile();
    w.ratoon(&["show", "http://site.test/p", "p.toml", "--html", "page.html"]).expect(0);
    let page = format!("file://{}", w.path("page.html").display());
    let profile = format!("--user-data-dir={}", w.path("profile").display());
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", &profile, &page])
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(dom.contains("⟨U+202E⟩gnp.exe"), "{dom}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(!dom.contains("<title>owned") && !dom.contains("<img"));
}

#[test]
fn changes_are_whole_words() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("p", &format!("<p>{SAME}</p><p>It costs €27.00 in all</p>"))]);
    w.snapshot("2024-01-02", &[("p", &format!("<p>{SAME}</p><p>It costs €24.00 in all</p>"))]);
    w.run();
    let shown = w.ratoon(&["show", "p.toml", "http://site.test/p"]).expect(0).stdout;
    assert!(shown.contains("It costs {+€24.00+}[-€27.00-] in all"), "{shown}");
    w.ratoon(&["show", "p.toml", "http://site.test/p", "--html", "p.html"]).expect(0);
    let html = fs::read_to_string(w.path("p.html")).unwrap();
    assert!(
        html.contains("It costs <del>€27.00</del> in all") && html.contains("It costs <ins>€24.00</ins> in all"),
        "{html}"
    );
}
