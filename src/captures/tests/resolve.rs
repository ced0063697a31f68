use super::super::resolve::Resolved;
use super::*;

fn nowhere(_: &CaptureNote) -> Option<u8> {
    None
}

#[test]
fn the_last_good_capture_is_the_page() {
    let notes = [note(1, 200), note(2, 200), note(3, 503), note(4, 404)];
    let resolved = resolve(&notes, None, nowhere);
    assert_eq!(resolved.page, Some(1));
    assert_eq!(resolved.contents[1], Some(ContentOf::Capture(1)));
}

#[test]
fn an_unknown_status_is_good() {
    let notes = [CaptureNote { status: None, ..note(1, 200) }];
    assert_eq!(resolve(&notes, None, nowhere).page, Some(0));
}

#[test]
fn a_broken_capture_is_never_the_page() {
    let notes = [note(1, 200), CaptureNote { broken: true, ..note(2, 200) }];
    let resolved = resolve(&notes, None, nowhere);
    assert_eq!((resolved.page, &resolved.contents[1]), (Some(0), &None));
}

#[test]
fn a_304_stands_for_what_the_url_held_before_it() {
    let notes = [revisit(1, 304, None, None)];
    assert_eq!(resolve(&notes, None, nowhere), Resolved { contents: vec![None], page: None });
    let known = resolve(&notes, Some(Some("sha1:A")), nowhere);
    assert_eq!(known, Resolved { contents: vec![Some(ContentOf::LastPage)], page: Some(0) });
    let notes = [note(1, 200), revisit(2, 304, None, None)];
    assert_eq!(resolve(&notes, Some(None), nowhere).contents[1], Some(ContentOf::Capture(0)));
}

#[test]
fn a_revisit_by_digest_goes_to_the_capture_with_that_digest() {
    let notes = [revisit(1, 200, Some("sha1:A"), None)];
    assert_eq!(resolve(&notes, Some(Some("sha1:A")), nowhere).contents[0], Some(ContentOf::LastPage));
    // The last page is another one, and the digest is known elsewhere.
    let found = resolve(&notes, Some(Some("sha1:B")), |_| Some(7));
    assert_eq!(found, Resolved { contents: vec![Some(ContentOf::Elsewhere(7))], page: Some(0) });
    // Known nowhere: unresolved, no page.
    assert_eq!(resolve(&notes, Some(Some("sha1:B")), nowhere).page, None);
    // No digest was stated last time: the URL decides.
    assert_eq!(resolve(&notes, Some(None), nowhere).contents[0], Some(ContentOf::LastPage));
    // ... unless the revisit names another URL.
    let notes = [revisit(1, 200, Some("sha1:A"), Some("http://b/"))];
    assert_eq!(resolve(&notes, Some(None), nowhere).page, None);
}

#[test]
fn a_revisit_of_an_error_page_makes_no_page() {
    let notes = [revisit(1, 404, Some("sha1:A"), None)];
    let resolved = resolve(&notes, Some(Some("sha1:A")), nowhere);
    assert_eq!((resolved.page, &resolved.contents[0]), (None, &Some(ContentOf::LastPage)));
}

#[test]
fn what_is_held_follows_the_captures() {
    let first = CaptureNote { archive_digest: Some("sha1:A".into()), ..note(1, 200) };
    let second = CaptureNote { archive_digest: Some("sha1:B".into()), ..note(2, 200) };
    let notes = [first, revisit(2, 200, Some("sha1:A"), None), second, revisit(3, 200, Some("sha1:B"), None)];
    let resolved = resolve(&notes, None, nowhere);
    assert_eq!(resolved.contents[1], Some(ContentOf::Capture(0)));
    assert_eq!(resolved.contents[3], Some(ContentOf::Capture(2)));
    assert_eq!(resolved.page, Some(3));
}
