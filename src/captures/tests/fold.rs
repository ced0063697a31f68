use proptest::prelude::*;

use super::super::fold::Dangling;
use super::*;
use crate::model::maps::HashSet;
use crate::model::{Change, Content, Coverage, Link, LinkKind, SnapshotId, Standing};
use crate::tables::ingest::Head;
use crate::text::mask::Mask;

/// Reading a content costs, so tests say which ones are to be read.
#[derive(Debug, PartialEq)]
enum Wrong {
    Dangling,
    Unexpected(String),
}

impl From<Dangling> for Wrong {
    fn from(_: Dangling) -> Self {
        Self::Dangling
    }
}

struct Night {
    snapshot: SnapshotId,
    base: bool,
    whole: bool,
    coverage: Coverage,
    others: Others,
    mask: Mask,
    none: (HashSet<String>, HashSet<Digest>),
}

impl Night {
    fn new(snapshot: &str) -> Self {
        Self {
            snapshot: SnapshotId::new(snapshot).unwrap(),
            base: false,
            whole: true,
            coverage: Coverage::Full,
            others: Others::default(),
            mask: Mask::default(),
            none: Default::default(),
        }
    }

    fn tonight(&self) -> Tonight<'_> {
        Tonight {
            snapshot: &self.snapshot,
            base: self.base,
            whole: self.whole,
            absent_is_gone: self.coverage == Coverage::Full,
            rejected: &self.none.0,
            coverage: self.coverage,
            seen_before: &self.none.1,
            mask: &self.mask,
            ignore_digest: Digest::of(b"rules"),
        }
    }

    /// Folds a URL; `contents` is what may be read, by `spilled` or `stored`.
    fn fold(&self, head: Option<Head>, notes: &[CaptureNote], contents: &[(&str, &str)]) -> Result<UrlRows, Wrong> {
        let spilled = |(i, note): (u64, &CaptureNote)| SpilledCapture {
            note: note.clone(),
            at: SpilledAt { shard: 0, offset: i },
        };
        let captures: Vec<SpilledCapture> = (0..).zip(notes).map(spilled).collect();
        let last = head.as_ref().map(|head| head.page.archive_digest.clone());
        let last = last.as_ref().map(Option::as_deref);
        let resolved = resolve(notes, last, |_| None);
        let url = UrlTonight { head, captures: &captures, resolved };
        self.tonight().fold(url, &self.others, &mut |at| {
            let (from, place) = match at {
                ContentAt::Spilled(at) => ("spilled", at.offset.to_string()),
                ContentAt::Stored { text_snapshot, .. } => ("stored", text_snapshot.to_string()),
            };
            let known = contents.iter().find(|(known, _)| *known == from);
            let (_, text) = known.ok_or(Wrong::Unexpected(format!("{from} {place}")))?;
            let link = Link {
                target: "http://a/x".into(),
                label: "x".into(),
                kind: LinkKind::Local,
                element: None,
                dated: None,
            };
            Ok(Content { text: (*text).to_owned(), links: vec![link], ..Content::default() })
        })
    }
}

/// A capture whose digests are those of a text.
fn says(minute: i64, text: &str) -> CaptureNote {
    let digest = Digest::of(text.as_bytes());
    CaptureNote {
        text: NotedText::Parsed(ContentFacts {
            title: None,
            charset: Some("UTF-8".into()),
            text_digest: digest,
            text_bytes: i64::try_from(text.len()).unwrap(),
            content_digest: digest,
            change_digest: digest,
            masked_text_digest: digest,
            canonical: None,
            structure_digest: None,
            elements_digest: None,
        }),
        ..note(minute, 200)
    }
}

/// The head that the first night leaves.
fn first_head(text: &str) -> Head {
    Night::new("n1").fold(None, &[says(1, text)], &[("spilled", text)]).unwrap().head.unwrap()
}

fn standing(rows: &UrlRows) -> Option<(Standing, Option<&str>, &str)> {
    rows.page.as_ref().map(|page| (page.change, page.text.as_deref(), page.text_snapshot.as_str()))
}

#[test]
fn a_new_url_is_stored_whole() {
    let rows = Night::new("n1").fold(None, &[says(1, "one"), note(2, 404)], &[("spilled", "one")]).unwrap();
    assert_eq!(standing(&rows), Some((Standing::Added, Some("one"), "n1")));
    assert_eq!((rows.captures.len(), rows.links.len(), rows.went), (2, 1, false));
    let (page, head) = (rows.page.unwrap(), rows.head.unwrap());
    assert_eq!((page.host.as_str(), page.old_snapshot), ("a", None));
    assert!(head.alive && head.page_snapshot.as_str() == "n1" && head.page.content.text_digest == page.text_digest);
}

#[test]
fn what_is_as_before_is_not_read_again() {
    let head = first_head("one");
    for note in [says(2, "one"), CaptureNote { text: NotedText::AsLast, ..note(2, 200) }, revisit(2, 304, None, None)] {
        let rows = Night::new("n2").fold(Some(head.clone()), &[note], &[]).unwrap();
        assert_eq!(standing(&rows), Some((Standing::Unchanged, None, "n1")));
        assert_eq!((rows.links.len(), rows.captures[0].text_digest), (0, Some(Digest::of(b"one"))));
        assert_eq!(rows.page.unwrap().old_snapshot.unwrap().as_str(), "n1");
        assert_eq!(rows.head.unwrap().page.text_snapshot.as_str(), "n1");
    }
}

#[test]
fn a_change_and_a_base_store_the_text() {
    let head = first_head("one");
    let rows = Night::new("n2").fold(Some(head.clone()), &[says(2, "two")], &[("spilled", "two")]).unwrap();
    assert_eq!(standing(&rows), Some((Standing::Modified, Some("two"), "n2")));
    let base = Night { base: true, ..Night::new("n2") };
    let rows = base.fold(Some(head), &[revisit(2, 304, None, None)], &[("stored", "one")]).unwrap();
    assert_eq!(standing(&rows), Some((Standing::Unchanged, Some("one"), "n2")));
}

#[test]
fn other_rules_look_at_the_old_page_again() {
    let mut old_rules = first_head("one");
    old_rules.page.ignore_digest = Digest::of(b"other rules");
    let read = [("stored", "one"), ("spilled", "two")];
    let rows = Night::new("n2").fold(Some(old_rules.clone()), &[says(2, "two")], &read).unwrap();
    assert_eq!(standing(&rows).unwrap().0, Standing::Modified);
    assert_eq!(rows.head.unwrap().page.ignore_digest, Digest::of(b"rules"));
    // Equal contents need no rules.
    let rows = Night::new("n2").fold(Some(old_rules), &[says(2, "one")], &[]).unwrap();
    assert_eq!(standing(&rows).unwrap().0, Standing::Unchanged);
}

#[test]
fn a_url_without_a_page_goes_or_is_carried() {
    let head = first_head("one");
    let full = Night::new("n2").fold(Some(head.clone()), &[], &[]).unwrap();
    assert!(full.page.is_none() && full.went && !full.head.unwrap().alive);
    let partial = Night { coverage: Coverage::Partial, ..Night::new("n2") };
    let carried = partial.fold(Some(head.clone()), &[note(2, 503)], &[]).unwrap();
    assert_eq!(standing(&carried), Some((Standing::Carried, None, "n1")));
    assert_eq!((carried.went, carried.captures.len()), (false, 1));
    let gone = partial.fold(Some(head.clone()), &[note(2, 410)], &[]).unwrap();
    assert!(gone.page.is_none() && gone.went && gone.tombstone.is_none(), "its absence tells it");
    // Where not all pages have a row, one that went has a row that says so.
    let slim = Night { whole: false, coverage: Coverage::Partial, ..Night::new("n2") };
    let gone = slim.fold(Some(head.clone()), &[note(2, 410)], &[]).unwrap();
    let tombstone = gone.tombstone.unwrap();
    assert!(gone.page.is_none() && gone.went && !gone.head.unwrap().alive);
    assert_eq!((tombstone.change, tombstone.old_snapshot.unwrap().as_str()), (Change::Deleted, "n1"));
    // What is gone already does not go again, and is not carried.
    let dead = Head { alive: false, ..head.clone() };
    let rows = slim.fold(Some(dead.clone()), &[note(2, 404)], &[]).unwrap();
    assert!(rows.page.is_none() && !rows.went && rows.head.is_none() && rows.tombstone.is_none());
    // What returns is stored again, even if it is as it was.
    let rows = slim.fold(Some(dead), &[says(2, "one")], &[("spilled", "one")]).unwrap();
    assert_eq!(standing(&rows), Some((Standing::Unchanged, Some("one"), "n2")));
    assert!(rows.came && rows.page.unwrap().returned);
    let base = Night { base: true, ..partial };
    let rows = base.fold(Some(head), &[], &[("stored", "one")]).unwrap();
    assert_eq!(standing(&rows), Some((Standing::Carried, Some("one"), "n2")));
    assert_eq!(rows.page.unwrap().old_text_snapshot.unwrap().as_str(), "n1");
}

#[test]
fn a_long_text_of_one_other_url_tells_where_a_page_came_from() {
    let text = "a long enough text ".repeat(5);
    let digest = Digest::of(text.as_bytes());
    let id = |name: &str| SnapshotId::new(name).unwrap();
    let last = |url: &str| LastPage { url: url.into(), snapshot: id("n2"), text_snapshot: id("n1") };
    let mut night = Night::new("n3");
    let moved_from = |night: &Night| {
        let rows = night.fold(None, &[says(3, &text)], &[("spilled", text.as_str())]).unwrap();
        let page = rows.page.unwrap();
        page.moved_from.map(|url| (url, page.old_snapshot.unwrap().to_string()))
    };
    night.others.last_pages.add(digest, 63, last("http://short/"));
    assert_eq!(moved_from(&night), None, "short texts are equal by chance");
    night.others.last_pages.add(digest, 64, last("http://b/"));
    assert_eq!(moved_from(&night), Some(("http://b/".into(), "n2".into())));
    night.others.last_pages.add(digest, 64, last("http://c/"));
    assert_eq!(moved_from(&night), None, "two have it");
}

#[test]
fn what_is_not_handed_over_is_an_error() {
    let as_last = CaptureNote { text: NotedText::AsLast, ..note(1, 200) };
    assert_eq!(Night::new("n1").fold(None, &[as_last], &[]).unwrap_err(), Wrong::Dangling);
}

/// Where a stored content lies: its URL and two snapshots.
type Place = (String, String, String);

fn place(at: ContentAt<'_>) -> Option<Place> {
    match at {
        ContentAt::Spilled(_) => None,
        ContentAt::Stored { url, text_snapshot, content_snapshot } => {
            Some((url.to_owned(), text_snapshot.to_string(), content_snapshot.to_string()))
        }
    }
}

/// A head by the text it has; `rules` are those of its digests.
fn any_head() -> impl Strategy<Value = Head> {
    (0..3_usize, any::<bool>(), any::<bool>()).prop_map(|(text, alive, same_rules)| {
        let mut head = Head { alive, ..first_head(["one", "two", "three"][text]) };
        head.page.archive_digest = Some(["sha1:1", "sha1:2", "sha1:3"][text].into());
        if !same_rules {
            head.page.ignore_digest = Digest::of(b"other rules");
        }
        head
    })
}

/// A capture of any kind: with a text, as last, a revisit by digest or by URL, failed, gone.
fn any_note(minute: i64) -> impl Strategy<Value = CaptureNote> {
    (0..8_usize, 0..3_usize).prop_map(move |(kind, text)| {
        let digest = ["sha1:1", "sha1:2", "sha1:3"][text];
        match kind {
            0 => CaptureNote { archive_digest: Some(digest.into()), ..says(minute, ["one", "two", "three"][text]) },
            1 => CaptureNote { text: NotedText::AsLast, ..note(minute, 200) },
            2 => revisit(minute, 304, None, None),
            3 => revisit(minute, 200, Some(digest), None),
            4 | 5 => revisit(minute, 200, Some(digest), Some("http://b/")),
            6 => note(minute, 503),
            _ => note(minute, 410),
        }
    })
}

proptest! {
    /// What is read ahead of a night is what the night reads of earlier snapshots, no more and no less.
    #[test]
    fn what_will_be_read_is_what_is_read(
        base: bool,
        full: bool,
        whole: bool,
        head in proptest::option::of(any_head()),
        notes in (any_note(1), any_note(2), 0..3_usize).prop_map(|(a, b, n)| [a, b].into_iter().take(n).collect::<Vec<_>>()),
        other in any_head(),
        by in 0..4_usize,
    ) {
        let coverage = if full { Coverage::Full } else { Coverage::Partial };
        let night = Night { base, whole, coverage, ..Night::new("n2") };
        let mut other = other;
        other.page.url = "http://b/".into();
        let at = SpilledAt { shard: 1, offset: 7 };
        let version = StoredVersion { url: "http://b/".into(), snapshot: night.snapshot.clone() };
        let captured = match by {
            2 => CaptureNote { text: NotedText::AsLast, ..note(0, 200) },
            _ => says(0, "two"),
        };
        let others = Others {
            captures: [(at, CaptureNote { url: "http://b/".into(), ..captured })].into_iter().collect(),
            heads: [("http://b/".to_owned(), other.clone())].into_iter().collect(),
            versions: [(version.clone(), other.page)].into_iter().collect(),
            last_pages: Default::default(),
        };
        let elsewhere = || match by {
            0 => Elsewhere::LastPageOf("http://b/"),
            1 => Elsewhere::Version(&version),
            _ => Elsewhere::Capture(at),
        };
        let captures: Vec<SpilledCapture> = (0..).zip(&notes)
            .map(|(i, note)| SpilledCapture { note: note.clone(), at: SpilledAt { shard: 0, offset: i } }).collect();
        let last = head.as_ref().map(|head| head.page.archive_digest.clone());
        let resolved = resolve(&notes, last.as_ref().map(Option::as_deref), |_| Some(elsewhere()));
        let url = UrlTonight { head, captures: &captures, resolved };
        let ahead: Vec<Place> =
            night.tonight().will_read(&url, &others).into_iter().filter_map(|(at, _)| place(at)).collect();
        let mut read = Vec::new();
        let folded = night.tonight().fold(url, &others, &mut |at| -> Result<Content, Wrong> {
            read.extend(place(at));
            Ok(Content { text: "one".into(), ..Content::default() })
        });
        // A capture that is as the last of a URL without one is an error, and then nothing is read.
        prop_assert!(folded.is_err() || ahead == read, "{ahead:?} is not {read:?}");
    }
}
