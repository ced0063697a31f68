//! What is said when nothing or too much matches.

use super::*;

fn why(text: &str, web: &Web) -> String {
    let yes_to_none = |questions: &[Question<'_>]| {
        Ok::<_, Never>(questions.iter().map(|question| vec![false; question.urls.len()]).collect())
    };
    let evaluation = query(text).evaluate(web, yes_to_none).unwrap();
    assert!(evaluation.table.is_empty());
    evaluation.empty.unwrap().to_string()
}

#[test]
fn a_query_without_matches_says_why() {
    let web = web("x>y=one y>z=two v");
    for (text, expected) in [
        ("nodes.a = { title = '*of x', url = 'y' }", "the only page left for 'a' does not have title = '*of x'"),
        ("nodes.a = { host = 'g' }", "none of the 4 pages left for 'a' has host = 'g'"),
        (
            "nodes.a = { url = 'http://www.x/' }",
            "none of the 4 pages left for 'a' has url = 'http://www.x/' (there is x)",
        ),
        (
            "nodes.a = { text = 'q', url = '[xy]' }\nlinks = ['a -> b']",
            "none of the 2 pages left for 'a' has text = 'q'",
        ),
        (
            "links = ['a -> b [label = \"three\"]']",
            "link `a -> b [label = 'three']`: none of the 4 pages left for 'a' leads to one of the 4 left for 'b'",
        ),
        (
            "nodes.a = { url = 'z' }\nlinks = ['a -> b']",
            "link `a -> b`: the only page left for 'a' does not lead to one of the 4 left for 'b'",
        ),
        (
            "nodes.b = { url = 'v' }\nlinks = ['a -{1,9}-> b']",
            "link `a -{1,9}-> b`: none of the 4 pages left for 'a' leads to the only one left for 'b'",
        ),
        ("links = ['a -> a']", "link `a -> a`: none of the 4 pages left for 'a' leads to itself"),
        (
            "links = ['a -> b', 'b -> c', 'c -> d']",
            "link `c -> d`: the only page left for 'c' does not lead to one of the 4 left for 'd'",
        ),
    ] {
        assert_eq!(why(text, &web), expected, "{text}");
    }
    assert_eq!(why("nodes.a = {}", &WebBuilder::new(vec![]).finish()), "the snapshot has no pages");
}

#[test]
fn links_that_fit_alone_but_not_together_are_named() {
    // Two rings of two, asked for a triangle.
    let rings = web("p>q q>p r>s s>r");
    let text = "links = ['a -> b', 'b -> c', 'c -> a']";
    assert_eq!(why(text, &rings), "link `c -> a` fits none of the 4 matches of `a -> b`, `b -> c` together");
    // A walk there and back is no path.
    let two = web("p>q q>p");
    assert_eq!(
        why("links = ['a -{2,3}-> b']", &two),
        "link `a -{2,3}-> b`: no path from any of the 2 pages left is simple"
    );
}

#[test]
fn too_many_are_counted_and_the_way_out_is_named() {
    let complete: String = ('a'..='h').flat_map(|from| ('a'..='h').map(move |to| format!("{from}>{to} "))).collect();
    let web = web(&complete);
    let said = |text: &str| query(text).evaluate(&web, no_questions).unwrap_err().to_string();
    assert_eq!(
        said("links = ['a -> b', 'b -> c', 'c -> d']\nmax_tuples = 1000"),
        "query 'q' has 4,096 tuples, 1,000 are allowed: narrow its nodes or paths, or raise max_tuples"
    );
    // 8 * 7 * 6 * 5 * 4 * 3 * 2 * 1 paths of seven links.
    assert_eq!(
        said("links = ['a -{7}-> b']\npaths = 'all'\nmax_tuples = 40_000"),
        "query 'q' has 40,320 tuples, 40,000 are allowed: narrow its nodes or paths, or raise max_tuples"
    );
    assert_eq!(
        said("nodes.a = { url = 'a' }\nlinks = ['a -{7}-> b']\npaths = 'all'\nmax_tuples = 5_000"),
        "query 'q': `a -{7,7}-> b` has 5,040 paths from a, 5,000 are allowed: shorten it, narrow the links it may take, \
         say paths = \"shortest\", or raise max_tuples"
    );
    assert_eq!(query("links = ['a -{7}-> b']").evaluate(&web, no_questions).unwrap().table.len(), 56);
}
