use super::*;
use crate::model::SnapshotId;
use crate::model::maps::HashMap;

const A: SpilledAt = SpilledAt { shard: 0, offset: 1 };
const B: SpilledAt = SpilledAt { shard: 1, offset: 2 };
const C: SpilledAt = SpilledAt { shard: 1, offset: 3 };

#[test]
fn a_digest_leads_to_a_capture_of_tonight_before_a_stored_version() {
    let mut referable = Referable::new(HashMap::from_iter([("sha1:A".to_owned(), A)]));
    let version = |url: &str| StoredVersion { snapshot: SnapshotId::new("n1").unwrap(), url: url.to_owned() };
    referable.add_version("sha1:A".into(), version("http://b/"));
    referable.add_version("sha1:B".into(), version("http://c/"));
    let find = |digest| referable.find(&revisit(9, 200, Some(digest), None)).map(|found| format!("{found:?}"));
    assert_eq!(find("sha1:A"), Some(format!("{:?}", Elsewhere::Capture(A))));
    assert_eq!(find("sha1:B"), Some(format!("{:?}", Elsewhere::Version(&version("http://c/")))));
    assert_eq!(find("sha1:C"), None);
    assert!(["sha1:A", "sha1:B"].iter().all(|digest| referable.has_digest(digest)) && !referable.has_digest("sha1:C"));
}

#[test]
fn where_a_digest_is_found_the_named_url_is_not_looked_at() {
    let named = "http://b/";
    let mut alone = Referable::new(HashMap::from_iter([("sha1:A".to_owned(), A)]));
    let mut with_named = Referable::new(HashMap::from_iter([("sha1:A".to_owned(), A)]));
    let version = StoredVersion { snapshot: SnapshotId::new("n1").unwrap(), url: "http://c/".to_owned() };
    alone.add_version("sha1:B".into(), version.clone());
    with_named.add_version("sha1:B".into(), version);
    let capture = CaptureNote { url: named.into(), ..note(1, 200) };
    with_named.add_named_captures(vec![SpilledCapture { note: capture, at: C }]);
    with_named.add_named_page(named.into(), None);
    for digest in ["sha1:A", "sha1:B", "sha1:C"] {
        let asks = revisit(9, 200, Some(digest), Some(named));
        let same = alone.find(&asks) == with_named.find(&asks);
        assert_eq!(same, alone.has_digest(digest), "{digest}");
    }
}

#[test]
fn a_named_url_leads_to_its_capture_of_that_time() {
    let at = |minute: i64, at, digest: Option<&str>| SpilledCapture {
        note: CaptureNote {
            url: "http://b/".into(),
            archive_digest: digest.map(Into::into),
            ..note(minute * 60 * Timestamp::SECOND, 200)
        },
        at,
    };
    let mut referable = Referable::default();
    let failed = SpilledCapture { note: CaptureNote { status: Some(500), ..at(4, A, None).note }, at: A };
    referable.add_named_captures(vec![at(5, C, None), failed, at(3, B, Some("sha1:B"))]);
    referable.add_named_page("http://b/".into(), Some("sha1:L".into()));
    let asks = |minute: i64, digest: Option<&str>, date: Option<i64>| {
        let mut asks = revisit(minute * 60 * Timestamp::SECOND, 200, digest, Some("http://b/"));
        let date = date.map(|minute| Timestamp(minute * 60 * Timestamp::SECOND + 5));
        asks.revisit.as_mut().unwrap().refers_to_date = date;
        referable.find(&asks)
    };
    // At the time that it names; without one, the last before it.
    assert_eq!(asks(9, None, Some(3)), Some(Elsewhere::Capture(B)));
    assert_eq!(asks(4, None, None), Some(Elsewhere::Capture(B)));
    assert_eq!(asks(9, None, None), Some(Elsewhere::Capture(C)));
    // None of that time, or none so early: the last page, unless its digest is another.
    assert_eq!(asks(9, None, Some(4)), Some(Elsewhere::LastPageOf("http://b/")));
    assert_eq!(asks(1, Some("sha1:L"), None), Some(Elsewhere::LastPageOf("http://b/")));
    assert_eq!(asks(1, Some("sha1:X"), None), None);
    // A revisit that names its own URL refers to nothing elsewhere.
    assert_eq!(referable.find(&revisit(9, 200, None, Some("http://a/"))), None);
}
