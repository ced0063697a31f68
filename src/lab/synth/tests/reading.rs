//! A small reader of pages, independent of the generator and of the project's own: bytes to text, links, mentions.

use std::sync::LazyLock;

use regex::Regex;

use crate::lab::synth::site::SynthPage;

fn decoded(page: &SynthPage) -> String {
    let head = String::from_utf8_lossy(&page.body[..page.body.len().min(200)]).into_owned();
    let label = page
        .content_type
        .split_once("charset=")
        .map(|(_, label)| label.to_owned())
        .or_else(|| head.split_once("<meta charset=\"").and_then(|(_, rest)| rest.split('"').next().map(str::to_owned)))
        .unwrap_or_else(|| "utf-8".to_owned());
    let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
    let (text, _, broken) = encoding.decode(&page.body);
    assert!(!broken, "{} is not {label}", page.url);
    text.into_owned()
}

static DROPPED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?s)<(script|style|title)>.*?</(script|style|title)>").unwrap());
static BLOCKS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"</?(p|h1|h2|h3|li|ul|tr|table|nav|main|footer|body|head|html)( [^>]*)?>").unwrap());
static TAG: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"<[^>]*>").unwrap());
static LINK: LazyLock<Regex> = LazyLock::new(|| Regex::new("<a href=\"([^\"]*)\"").unwrap());

/// What a reader sees: a line per block, blanks folded.
pub(super) fn text_of(page: &SynthPage) -> String {
    let html = decoded(page);
    if !page.content_type.starts_with("text/html") {
        return html;
    }
    let html = DROPPED.replace_all(&html, "").replace('\n', " ");
    let html = BLOCKS.replace_all(&html, "\n");
    let html = TAG.replace_all(&html, "").into_owned();
    let text = htmlize::unescape(html.as_str());
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Absolute targets of the links of a page.
pub(super) fn links(page: &SynthPage) -> Vec<String> {
    let base = url::Url::parse(&page.url).unwrap();
    let html = decoded(page);
    LINK.captures_iter(&html).map(|found| base.join(&htmlize::unescape(&found[1])).unwrap().to_string()).collect()
}

type Found = (&'static str, String, Vec<String>);

const NAME: &str = r"(?P<first>\p{Lu}[\p{L}'-]+) (?:(?P<mid>\p{Lu}\.) )?(?P<last>\p{Lu}[\p{L}'-]+)";

/// The six extractors of the Cyclex paper as patterns that fit this site.
static EXTRACTORS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let plain_name = NAME.replace("?P<first>", "?:").replace("?P<mid>", "?:").replace("?P<last>", "?:");
    let researcher = format!(r"(?:Dr|Prof)\. {plain_name}");
    let time = "[0-9]{1,2}(?::[0-9]{2})?[ap]m";
    let place = "(?:Room|Hall) [A-D]?[0-9]{1,3}";
    let patterns: [(&'static str, String); 7] = [
        ("researcher", format!(r"(?:Dr|Prof)\. {NAME}")),
        (
            "affiliation",
            format!(
                r"(?P<researcher>{researcher})(?: of the | joined the | \()(?P<organization>(?:Department|Institute|School|Centre) of [A-Z][a-z]+(?: [A-Z][a-z]+)?)"
            ),
        ),
        (
            "talk",
            format!(
                r"Talk: (?P<speaker>{researcher}), (?P<time>{time}), (?P<place>{place})\. Topics: (?P<topics>[a-z]+(?: [a-z]+)*(?:, [a-z]+(?: [a-z]+)*)*)"
            ),
        ),
        (
            "talk",
            format!(
                r"(?P<speaker>{researcher}) will speak at (?P<time>{time}) in (?P<place>{place}) on (?P<topics>[a-z, ]+)"
            ),
        ),
        ("actor", format!("(?:actor|actress) {NAME}")),
        ("play", format!("(?P<actor>{plain_name}) (?:starred in|appeared in|had the lead in) \"(?P<movie>[^\"]+)\"")),
        (
            "award",
            format!(
                "(?P<actor>{plain_name}) (?:won|received) the (?P<award>[A-Z][A-Za-z ]+?) for the role of (?P<role>[A-Z][a-z]+ [A-Z][a-z]+) in \"(?P<movie>[^\"]+)\""
            ),
        ),
    ];
    patterns.into_iter().map(|(extractor, pattern)| (extractor, Regex::new(&pattern).unwrap())).collect()
});

pub(super) fn extract(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    for (extractor, regex) in EXTRACTORS.iter() {
        for captures in regex.captures_iter(text) {
            let whole = captures.get(0).unwrap().as_str();
            let mut attributes = Vec::new();
            for name in regex.capture_names().flatten() {
                let Some(value) = captures.name(name).map(|m| m.as_str()) else {
                    continue;
                };
                if name == "topics" {
                    let value = value.replace(" and ", ", ");
                    attributes.extend(value.split(", ").map(|topic| format!("topics={topic}")));
                } else {
                    attributes.push(format!("{name}={value}"));
                }
            }
            // A talk runs from its speaker on.
            found.push((*extractor, whole.strip_prefix("Talk: ").unwrap_or(whole).to_owned(), attributes));
        }
    }
    found
}
