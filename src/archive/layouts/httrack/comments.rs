//! The comments that HTTrack adds to pages, each on a line of its own.

use memchr::memmem;

/// A page without these comments and their lines.
pub(crate) fn without_comments(page: Vec<u8>) -> Vec<u8> {
    const START: &[u8] = b"<!-- Mirrored from ";
    const NAME: &[u8] = b" by HTTrack Website Copier";
    let (mut kept, mut kept_to, mut from) = (Vec::new(), 0, 0);
    while let Some(found) = memmem::find(&page[from..], START) {
        let start = from + found;
        let Some(length) = memmem::find(&page[start..], b"-->") else { break };
        from = start + length + 3;
        if memmem::find(&page[start..from], NAME).is_none() {
            continue;
        }
        let before = &page[kept_to..start];
        let before = before.strip_suffix(b"\n").unwrap_or(before);
        kept.extend_from_slice(before.strip_suffix(b"\r").unwrap_or(before));
        from += usize::from(page[from..].starts_with(b"\r"));
        from += usize::from(page[from..].starts_with(b"\n"));
        kept_to = from;
    }
    if kept_to == 0 {
        return page;
    }
    kept.extend_from_slice(&page[kept_to..]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_of_the_crawl_are_dropped() {
        let comment =
            "<!-- Mirrored from a.org/ by HTTrack Website Copier/3.x [XR&CO'2014], Mon, 16 Nov 2026 08:01:59 GMT -->";
        let page =
            format!("<html>\n{comment}\n<head><!-- kept --></head>\r\n{comment}\r\n<!-- Mirrored from b --></html>");
        let expected = "<html><head><!-- kept --></head><!-- Mirrored from b --></html>";
        assert_eq!(String::from_utf8(without_comments(page.into_bytes())).unwrap(), expected);
        for page in ["", "<!-- Mirrored from ", comment.trim_end_matches("-->")] {
            assert_eq!(without_comments(page.as_bytes().to_vec()), page.as_bytes());
        }
        assert_eq!(without_comments(comment.as_bytes().to_vec()), b"");
    }

    #[test]
    fn a_page_of_comments_takes_no_time() {
        let page = b"<!-- Mirrored from x -->".repeat(200_000);
        assert_eq!(without_comments(page.clone()), page);
        let page = b"x<!-- Mirrored from x by HTTrack Website Copier -->".repeat(200_000);
        assert_eq!(without_comments(page), b"x".repeat(200_000));
    }
}
