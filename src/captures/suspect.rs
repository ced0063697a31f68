//! Captures that are no pages though the server says so: challenges, block pages, login walls, soft 404s.
//!
//! Problem: a page that is told from its own words alone is easily an ordinary one (sites have pages about logging in, and
//! some a page for what is not found), and whoever takes a wall for a page loses the page that was there.
//!
//! Idea: three kinds of signs, the weaker of which need the history of the URL.
//! 1. What only walls have: headers and scripts of those who stand before servers, the words of their pages
//!    ([`Sign::Sure`]). Words that an ordinary page may have too count only where the URL had a page without them
//!    ([`Sign::Weak`]).
//! 2. One text that appears tonight on many URLs of a host whose texts differed before ([`of_group`]).
//! 3. Pages that shrank to one and the same stub (also there).
//!
//! Only short texts are looked at, so that ordinary pages cost nothing.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::model::maps::HashSet;
use crate::model::{Content, Digest, Suspect};

/// A wall says little: longer texts are not looked at.
const WALL_BYTES: usize = 3_000;
/// So many URLs of a host must have changed to one text.
const MANY: usize = 5;
/// So many, if all of them shrank to a stub.
const FEW: usize = 3;
/// A stub is at most so long, and at most this part of what was there.
const STUB_BYTES: i64 = 512;
const STUB_PART: i64 = 4;

/// What a capture shows on its face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// No ordinary page looks like that.
    Sure(Suspect),
    /// Suspect if the URL had a page that did not look like that.
    Weak(Suspect),
}

/// What stands in the markup of walls and nowhere else.
const MARKUP: [&str; 11] = [
    "_cf_chl_opt",
    "cf-browser-verification",
    "cf_captcha_kind",
    "/cdn-cgi/l/chk_",
    "captcha-delivery.com",
    "px-captcha",
    "sucuri_cloudproxy_js",
    "gokuProps",
    "anubis_challenge",
    "/.within.website/x/cmd/anubis",
    "slowAES.decrypt(",
];

static IN_MARKUP: LazyLock<AhoCorasick> = LazyLock::new(|| any_of(MARKUP));

/// Finds out whether one of a few words stands somewhere. Of this kind of match many bytes are looked at at once; which of
/// them is found does not matter.
fn any_of<'w>(words: impl IntoIterator<Item = &'w str>) -> AhoCorasick {
    let builder = AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(words);
    builder.expect("a few words make an automaton")
}

/// Titles that only challenges have, in lower case.
const CHALLENGE_TITLES: [&str; 10] = [
    "just a moment...",
    "please wait... | cloudflare",
    "attention required! | cloudflare",
    "ddos-guard",
    "pardon our interruption",
    "pardon our interruption...",
    "making sure you're not a bot!",
    "vercel security checkpoint",
    "checking your browser before accessing",
    "robot check",
];

/// What only challenges and block pages say, in lower case.
const SAID: [(&str, Suspect); 12] = [
    ("checking your browser before accessing", Suspect::Challenge),
    ("checking if the site connection is secure", Suspect::Challenge),
    ("verify you are human by completing the action below", Suspect::Challenge),
    ("verifying you are human. this may take a few seconds", Suspect::Challenge),
    ("press & hold to confirm you are a human", Suspect::Challenge),
    ("enable javascript and cookies to continue", Suspect::Challenge),
    ("incapsula incident id", Suspect::Block),
    ("sorry, you have been blocked", Suspect::Block),
    ("the requested url was rejected. please consult with your administrator", Suspect::Block),
    ("our systems have detected unusual traffic from your computer network", Suspect::Block),
    ("your ip address has been blocked", Suspect::Block),
    ("access to this page has been denied because we believe you are using automation tools", Suspect::Block),
];

/// What only servers say of themselves and networks before them, with both apostrophes.
const NO_PERMISSION: [&str; 2] = ["you don't have permission to access", "you don’t have permission to access"];

/// Whether a text in lower case may say one of these: a look that spares nearly all texts the closer one.
static MAY_SAY: LazyLock<AhoCorasick> =
    LazyLock::new(|| any_of(SAID.iter().map(|(said, _)| *said).chain(NO_PERMISSION)));

/// Titles and first lines of pages that servers out of order give with status 200, in lower case.
const OUT_OF_ORDER: [&str; 14] = [
    "access denied",
    "access to this page has been denied",
    "forbidden",
    "403 forbidden",
    "too many requests",
    "429 too many requests",
    "internal server error",
    "500 internal server error",
    "bad gateway",
    "502 bad gateway",
    "service unavailable",
    "503 service unavailable",
    "503 service temporarily unavailable",
    "504 gateway time-out",
];

const LOGIN: [&str; 12] = [
    "log in",
    "login",
    "log on",
    "sign in",
    "sign-in",
    "signin",
    "anmelden",
    "anmeldung",
    "connexion",
    "identifiez-vous",
    "iniciar sesión",
    "accedi",
];

const NOT_FOUND: [&str; 16] = [
    "not found",
    "404",
    "can't be found",
    "cannot be found",
    "could not be found",
    "couldn't find",
    "can't find",
    "could not find",
    "does not exist",
    "doesn't exist",
    "no longer exists",
    "no longer available",
    "nicht gefunden",
    "introuvable",
    "no encontrada",
    "non trovata",
];

/// Whether one of a list of words stands anywhere: so that each is not looked for in every title.
static IN_FACE: LazyLock<AhoCorasick> = LazyLock::new(|| any_of(NOT_FOUND.into_iter().chain(LOGIN)));

/// What a capture shows. `wall`: what its headers say; `body`: its markup.
#[must_use]
pub(crate) fn sign(wall: Option<Suspect>, body: &[u8], content: &Content) -> Option<Sign> {
    if let Some(wall) = wall {
        return Some(Sign::Sure(wall));
    }
    if content.text.len() > WALL_BYTES {
        return None;
    }
    if IN_MARKUP.is_match(body) {
        return Some(Sign::Sure(Suspect::Challenge));
    }
    let face = Face::of(content.title.as_deref(), &content.text);
    if CHALLENGE_TITLES.contains(&face.title.as_str()) {
        return Some(Sign::Sure(Suspect::Challenge));
    }
    if let Some(suspect) = said(&content.text) {
        return Some(Sign::Sure(suspect));
    }
    let weak = face.weak()?;
    (weak != Suspect::Login || asks_for_password(body)).then_some(Sign::Weak(weak))
}

/// What a text says that only challenges and block pages say.
fn said(text: &str) -> Option<Suspect> {
    if !MAY_SAY.is_match(&text.to_ascii_lowercase()) {
        return None;
    }
    let text = text.to_lowercase().replace('’', "'");
    if let Some((_, suspect)) = SAID.iter().find(|(said, _)| text.contains(said)) {
        return Some(*suspect);
    }
    // Servers say so of themselves, too; the reference is that of a network before them.
    (text.contains(NO_PERMISSION[0]) && text.contains("reference #")).then_some(Suspect::Block)
}

/// Whether a page that was there before had the weak sign too: then the URL is about that. Its markup is not kept, so
/// that words alone decide.
#[must_use]
pub(crate) fn was_like_that(sign: Suspect, title: Option<&str>, text: &str) -> bool {
    text.len() <= WALL_BYTES && Face::of(title, text).weak() == Some(sign)
}

/// What a reader sees first, in lower case.
struct Face {
    title: String,
    first_line: String,
}

impl Face {
    fn of(title: Option<&str>, text: &str) -> Self {
        let plain = |words: &str| words.trim().to_lowercase().replace('’', "'");
        let first_line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        Self { title: plain(title.unwrap_or_default()), first_line: plain(first_line) }
    }

    fn weak(&self) -> Option<Suspect> {
        let faces = || [self.title.as_str(), self.first_line.as_str()].into_iter().filter(|face| face.len() <= 120);
        let may_say = faces().any(|face| IN_FACE.is_match(face));
        let says = |words: &[&str]| may_say && faces().any(|face| words.iter().any(|words| has_words(face, words)));
        if faces().any(|face| OUT_OF_ORDER.contains(&face)) {
            Some(Suspect::Block)
        } else if says(&NOT_FOUND) {
            Some(Suspect::SoftNotFound)
        } else if says(&LOGIN) {
            Some(Suspect::Login)
        } else {
            None
        }
    }
}

/// Whether words stand in a text and are no part of longer ones.
fn has_words(text: &str, words: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(words)
        .any(|(at, _)| !is_part(text[..at].chars().next_back()) && !is_part(text[at + words.len()..].chars().next()))
}

fn asks_for_password(body: &[u8]) -> bool {
    static PASSWORD: LazyLock<regex::bytes::Regex> = LazyLock::new(|| {
        regex::bytes::Regex::new(r#"(?i)type\s*=\s*["']?password\b"#).expect("a pattern that compiles")
    });
    PASSWORD.is_match(body)
}

/// A URL that has tonight's text of its group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Digest and length of the text of its last page.
    pub(crate) old: Option<(Digest, i64)>,
}

/// What URLs of a host are suspected of that have one text tonight, of so many bytes. Those that had it before are not
/// meant: where two of them had, it is a text of the site.
#[must_use]
pub(crate) fn of_group(text: Digest, bytes: i64, members: &[Member]) -> Option<Suspect> {
    let had_it = |member: &&Member| member.old.is_some_and(|(old, _)| old == text);
    if members.iter().filter(had_it).count() > 1 {
        return None;
    }
    let changed = || members.iter().filter_map(|member| member.old).filter(|(old, _)| *old != text);
    let before: HashSet<Digest> = changed().map(|(old, _)| old).collect();
    let shrank = |(_, old): (Digest, i64)| old / STUB_PART >= bytes;
    if before.len() >= MANY {
        Some(Suspect::SameText)
    } else if before.len() >= FEW && bytes <= STUB_BYTES && changed().all(shrank) {
        Some(Suspect::Stub)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(title: &str, text: &str, body: &str) -> Option<Sign> {
        let content = Content { title: Some(title.to_owned()), text: text.to_owned(), ..Content::default() };
        sign(None, body.as_bytes(), &content)
    }

    #[test]
    fn walls_are_told_by_what_only_they_have() {
        use Suspect::{Block, Challenge};
        let sure = |suspect| Some(Sign::Sure(suspect));
        assert_eq!(seen("Just a moment...", "", "<html>"), sure(Challenge));
        assert_eq!(seen("x.org", "Please wait", "<script>window._cf_chl_opt={cvId:'3'}"), sure(Challenge));
        assert_eq!(seen("", "Request unsuccessful. Incapsula incident ID: 12-3", ""), sure(Block));
        assert_eq!(seen("Access Denied", "You don’t have permission to access /x\nReference #18.2", ""), sure(Block));
        let content = Content { text: "x".repeat(9_000), ..Content::default() };
        assert_eq!(sign(Some(Challenge), b"", &content), sure(Challenge), "headers count with any text");
        let long = "An article about _cf_chl_opt. ".repeat(200);
        assert_eq!(seen("Just a moment...", &long, &long), None);
    }

    /// The quick look never hides what the closer one finds: each phrase is found in any case, with either apostrophe.
    #[test]
    fn what_walls_say_is_found_in_any_case() {
        for (phrase, suspect) in SAID {
            for text in [phrase.to_owned(), phrase.to_uppercase(), format!("é\n{phrase}ß")] {
                assert_eq!(said(&text), Some(suspect), "{text}");
            }
        }
        for phrase in NO_PERMISSION {
            assert_eq!(said(&format!("{} Reference #7", phrase.to_uppercase())), Some(Suspect::Block), "{phrase}");
            assert_eq!(said(phrase), None, "no network is named");
        }
        assert_eq!(said("Dr. Fenn will speak at 7:00pm in Hall 97."), None);
    }

    #[test]
    fn words_of_ordinary_pages_are_weak_signs() {
        use Suspect::{Block, Login, SoftNotFound};
        let weak = |suspect| Some(Sign::Weak(suspect));
        let form = "<form><input name=p type='password'></form>";
        assert_eq!(seen("Sign in - Intranet", "User\nPassword", form), weak(Login));
        assert_eq!(seen("Sign in - Intranet", "How to sign in", "<p>"), None, "without a form it asks for nothing");
        assert_eq!(seen("ACME", "Page not found\nSorry.", ""), weak(SoftNotFound));
        assert_eq!(seen("404 | ACME", "Oops", ""), weak(SoftNotFound));
        assert_eq!(seen("503 Service Unavailable", "503 Service Unavailable\nnginx", ""), weak(Block));
        assert_eq!(seen("Highway 4041", "The road to nowhere", ""), None, "a number is a word");
        assert_eq!(seen("News", "Lost dog\nnot found yet", ""), None, "only title and first line count");
        assert!(was_like_that(SoftNotFound, Some("Not found"), "x"));
        assert!(!was_like_that(SoftNotFound, Some("People"), "Dr. Fenn"));
    }

    fn member(old: Option<(&str, i64)>) -> Member {
        Member { old: old.map(|(text, bytes)| (Digest::of(text.as_bytes()), bytes)) }
    }

    #[test]
    fn one_text_on_many_urls_is_suspect_if_they_had_others() {
        let now = Digest::of(b"now");
        let old: Vec<String> = (0..9).map(|i| format!("old {i}")).collect();
        let group = |changed: usize, same: usize, new: usize, bytes: i64| -> Vec<Member> {
            let changed = old[..changed].iter().map(|text| member(Some((text.as_str(), bytes))));
            let rest = (0..same).map(|_| member(Some(("now", bytes)))).chain((0..new).map(|_| member(None)));
            changed.chain(rest).collect()
        };
        assert_eq!(of_group(now, 900, &group(5, 1, 4, 900)), Some(Suspect::SameText));
        assert_eq!(of_group(now, 900, &group(5, 2, 0, 900)), None, "a text of the site");
        assert_eq!(of_group(now, 900, &group(4, 0, 9, 9_000)), None);
        assert_eq!(of_group(now, 100, &group(3, 0, 1, 400)), Some(Suspect::Stub));
        assert_eq!(of_group(now, 100, &group(3, 0, 1, 399)), None, "they did not shrink");
        assert_eq!(of_group(now, 600, &group(3, 0, 1, 9_000)), None, "no stub");
        let alike: Vec<Member> = (0..20).map(|_| member(Some(("one", 900)))).collect();
        assert_eq!(of_group(now, 900, &alike), None, "they had one text before too");
    }
}
