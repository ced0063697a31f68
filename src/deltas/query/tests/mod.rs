//! Queries against a naive evaluator, what is refused, and what is said when nothing or too much matches.

mod around;
mod compile;
mod explain;
mod naive;
mod random;

use jiff::tz::TimeZone;
use serde::Deserialize;

use super::evaluate::TooMany;
use super::schema::QuerySchema;
use super::*;
use crate::model::{Digest, LinkKind};

#[derive(Deserialize)]
struct File {
    query: Vec<QueryConfig>,
}

/// The first query of a pipeline file.
fn config(text: &str) -> QueryConfig {
    let file: File = toml::from_str(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    file.query.into_iter().next().unwrap()
}

fn query(text: &str) -> Query {
    let text = format!("[[query]]\nname = 'q'\n{text}");
    config(&text).compile(&TimeZone::UTC, &["talk"]).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn page(url: &str) -> WebPage {
    WebPage {
        url: url.into(),
        title: Some(format!("Title of {url}")),
        host: "h".into(),
        content_type: Some("text/html".into()),
        last_modified: None,
        bytes: 10,
        version: Digest::of(url.as_bytes()),
    }
}

/// Pages and links such as `a>b`, with labels `a>b=label`; urls are single words.
fn web(links: &str) -> Web {
    let mut pages = std::collections::BTreeSet::new();
    let mut parsed = Vec::new();
    for word in links.split_whitespace() {
        let (link, label) = word.split_once('=').unwrap_or((word, ""));
        match link.split_once('>') {
            Some((from, to)) => {
                pages.extend([from, to]);
                parsed.push((from, to, label));
            }
            None => drop(pages.insert(link)),
        }
    }
    let mut builder = WebBuilder::new(pages.into_iter().map(page).collect());
    for (from, to, label) in parsed {
        builder.link(from, to, label, if from == to { LinkKind::Interior } else { LinkKind::Local });
    }
    builder.finish()
}

type Never = std::convert::Infallible;

fn no_questions(questions: &[Question<'_>]) -> Result<Vec<Vec<bool>>, Never> {
    panic!("nothing was to be asked, but {questions:?}")
}

/// Tuples as text: `a=x u=y`, sorted.
fn tuples(query: &Query, web: &Web) -> Vec<String> {
    let table = query.evaluate(web, no_questions).unwrap().table;
    let mut tuples: Vec<String> = Vec::new();
    let mut last = None;
    for row in table.node_rows() {
        let node = format!("{}={}", row.node, row.url);
        if last.replace(row.tuple) == Some(row.tuple) {
            let tuple = tuples.last_mut().unwrap();
            *tuple = format!("{tuple} {node}");
        } else {
            tuples.push(node);
        }
    }
    tuples.sort();
    tuples
}

#[test]
fn one_link_may_lead_to_its_own_page_and_a_path_may_not() {
    let web = web("x>x x>y y>x");
    assert_eq!(tuples(&query("links = ['a -> b']"), &web), ["a=x b=x", "a=x b=y", "a=y b=x"]);
    assert_eq!(tuples(&query("links = ['a -> a']"), &web), ["a=x"]);
    assert_eq!(tuples(&query("links = ['a -{1,3}-> b']"), &web), ["a=x b=y", "a=y b=x"]);
    assert_eq!(tuples(&query("links = ['a -{0,3}-> b']"), &web), ["a=x b=x", "a=x b=y", "a=y b=x", "a=y b=y"]);
}

#[test]
fn of_paths_of_equal_length_the_first_by_url_is_taken() {
    let web = web("s>m s>b s>c m>a a>t b>z z>t c>a c>t b>y y>t");
    let shortest = query("nodes.x = { url = 's' }\nnodes.y = { url = 't' }\nlinks = ['x -{1,4}-> y']");
    assert_eq!(tuples(&shortest, &web), ["x=s x>y.1=c y=t"]);
    let longer = query("nodes.x = { url = 's' }\nnodes.y = { url = 't' }\nlinks = ['x -{3,4}-> y']");
    assert_eq!(tuples(&longer, &web), ["x=s x>y.1=b x>y.2=y y=t"]);
    let all = query("nodes.x = { url = 's' }\nnodes.y = { url = 't' }\nlinks = ['x -{1,4}-> y']\npaths = 'all'");
    let expected = [
        "x=s x>y.1=b x>y.2=y y=t",
        "x=s x>y.1=b x>y.2=z y=t",
        "x=s x>y.1=c x>y.2=a y=t",
        "x=s x>y.1=c y=t",
        "x=s x>y.1=m x>y.2=a y=t",
    ];
    assert_eq!(tuples(&all, &web), expected);
}

#[test]
fn parallel_links_make_one_tuple_that_shows_them_all() {
    let web = web("x>y=one x>y=two x>y=three x>y=one");
    let query = query("links = ['a -> b [label = \"t*\"]']");
    let table = query.evaluate(&web, no_questions).unwrap().table;
    assert_eq!(table.len(), 1);
    let links: Vec<_> = table.link_rows().map(|row| (row.from_node, row.to_node, row.label)).collect();
    assert_eq!(links, [("a", "b", "three"), ("a", "b", "two")]);
}

#[test]
fn targets_lose_their_fragment_and_must_be_pages() {
    let mut builder = WebBuilder::new(vec![page("http://h/b"), page("http://h/a")]);
    builder.link("http://h/a", "http://h/b#part", "", LinkKind::Local);
    builder.link("http://h/a", "http://h/c", "", LinkKind::Local);
    builder.link("http://h/c", "http://h/a", "", LinkKind::Local);
    let web = builder.finish();
    assert_eq!(web.links(), 1);
    assert_eq!(tuples(&query("links = ['a -> b']"), &web), ["a=http://h/a b=http://h/b"]);
}

#[test]
fn schemas_name_the_lengths_of_paths() {
    let web = web("x>y y>z z>w");
    let query = query("nodes.a = { url = 'x' }\nlinks = ['a -{0,2}-> b', 'b -> c', 'c -{1,1}-> d']");
    let table = query.evaluate(&web, no_questions).unwrap().table;
    let schemas: Vec<_> = table.schemas().into_iter().collect();
    assert_eq!(schemas, [("a>b=0,c>d=1", 1), ("a>b=1,c>d=1", 1)]);
    let schema = query.schema();
    let again: QuerySchema = serde_json::from_str(&serde_json::to_string(&schema).unwrap()).unwrap();
    assert_eq!(again, schema);
    assert_eq!((schema.links[0].min, schema.links[0].max), (0, 2));
    assert_eq!(schema.nodes[0].predicates, ["url = 'x'"]);
}

#[test]
fn texts_are_asked_for_once_and_only_where_it_matters() {
    let web = web("x>y x>z w>v y>x");
    let query = query(
        "nodes.a = { text = 'T', url = '[xw]' }\nnodes.b = { text = 'U', mention = 'talk' }\nlinks = ['a -> b', 'b -> a']",
    );
    assert!(query.needs_text());
    assert_eq!(query.mentions(), ["talk"]);
    let mut asked = Vec::new();
    let evaluation = query.evaluate(&web, |questions| {
        for question in questions {
            let what = match question.what {
                LookFor::Text(regex) => regex.to_string(),
                LookFor::Mention(extractor) => extractor.to_owned(),
                LookFor::Element(element) => element.to_string(),
            };
            asked.push(format!("{what} {}", question.urls.join(" ")));
        }
        Ok::<_, Never>(questions.iter().map(|question| vec![true; question.urls.len()]).collect())
    });
    assert_eq!(evaluation.unwrap().table.len(), 1);
    // z leads nowhere, w and v not back.
    assert_eq!(asked, ["T x", "talk y", "U y"]);
    let failure = query.evaluate(&web, |_| Err("cannot read")).unwrap_err();
    assert_eq!(failure.to_string(), "cannot read");
}

#[test]
fn predicates_look_at_what_they_name() {
    let mut pages = vec![page("http://h/1"), page("http://h/2")];
    pages[0].title = Some("News of the day".into());
    pages[0].content_type = Some("text/plain".into());
    pages[0].host = "Example.org".into();
    pages[0].bytes = 100;
    pages[0].last_modified = crate::model::Timestamp::parse_rfc3339("2001-02-15T00:00:00Z");
    pages[1].title = None;
    let web = WebBuilder::new(pages).finish();
    for (predicate, matches) in [
        ("title = 'news*'", true),
        ("title = 'day'", false),
        ("content_type = 'text/plain'", true),
        ("host = '*.ORG'", true),
        ("bytes = { min = 100 }", true),
        ("bytes = { min = 11, max = 99 }", false),
        ("bytes = { max = 100, min = 50 }", true),
        ("last_modified = { after = 2001-02-15 }", true),
        ("last_modified = { before = '2001-02-15' }", false),
        ("last_modified = { after = '2001-02-14T23:59:59Z', before = 2001-02-15T00:00:01Z }", true),
        ("last_modified = { after = 2001-02-15T01:00:00+01:00 }", true),
        ("last_modified = { after = 2001-02-15T00:00:01 }", false),
        ("url = 'HTTP://H/1'", true),
    ] {
        let expected = if matches { vec!["a=http://h/1"] } else { vec![] };
        assert_eq!(tuples(&query(&format!("nodes.a = {{ {predicate} }}")), &web), expected, "{predicate}");
    }
    let query = query("nodes.a = { last_modified = { after = 2001-02-15 } }");
    assert_eq!(query.schema().nodes[0].predicates, ["last_modified = { after = '2001-02-15T00:00:00Z' }"]);
}

#[test]
fn the_order_of_pages_and_links_does_not_matter() {
    let names = ["c", "a", "d", "b"];
    let links = [("a", "b", "l"), ("b", "c", "k"), ("a", "c", "l"), ("c", "d", "m"), ("a", "b", "k"), ("d", "a", "")];
    let table = |pages: &mut dyn Iterator<Item = &&'static str>,
                 links: &mut dyn Iterator<Item = &(&str, &str, &str)>| {
        let mut builder = WebBuilder::new(pages.map(|url| page(url)).collect());
        links.for_each(|(from, to, label)| builder.link(from, to, label, LinkKind::Local));
        let table =
            query("links = ['x -> y', 'y -{1,2}-> z']").evaluate(&builder.finish(), no_questions).unwrap().table;
        let nodes: Vec<_> = table.node_rows().map(|row| format!("{row:?}")).collect();
        let links: Vec<_> = table.link_rows().map(|row| format!("{row:?}")).collect();
        (nodes, links)
    };
    let forth = table(&mut names.iter(), &mut links.iter());
    let back = table(&mut names.iter().rev(), &mut links.iter().rev());
    assert!(forth.0.len() > 10);
    assert_eq!(forth, back);
}
