use proptest::prelude::*;

use super::*;
use crate::extract::schema::Attribute;

fn record(parts: &[(&str, &str, bool, bool)], scope: u32, pairing: Pairing, max_records: usize) -> Record {
    let mut schema = Schema::default();
    let mut list = Vec::new();
    for &(attribute, extractor, many, optional) in parts {
        schema.push(Attribute { name: attribute.into(), many }).unwrap();
        list.push(Part { attribute: attribute.into(), extractor: extractor.into(), many, optional });
    }
    Record::new(scope, list, 0, pairing, max_records, schema)
}

fn plain(spans: &[(u32, u32)]) -> Vec<Mention> {
    let mut mentions: Vec<_> = spans.iter().map(|&(start, end)| Mention::plain(start, end, 0)).collect();
    mentions.sort();
    mentions
}

/// The chosen mentions of each record, as spans in the page.
fn spans(join: &Join) -> Vec<Vec<Vec<(u32, u32)>>> {
    let of = |joined: &Joined| {
        let mention = &joined.mention;
        let span = |piece: &Piece| mention.locate(piece).map(|span| (span.start, span.end)).unwrap();
        mention.attributes.iter().map(|value| value.pieces().iter().map(span).collect()).collect()
    };
    join.records.iter().map(of).collect()
}

const TALK: &[(&str, &str, bool, bool)] =
    &[("speaker", "person", false, false), ("time", "time", false, false), ("topics", "topic", true, true)];

#[test]
fn each_key_takes_the_nearest() {
    // Ann 4pm {IR, CIM} … Bob 5pm {}
    let (people, times) = (plain(&[(0, 3), (100, 103)]), plain(&[(4, 7), (90, 93)]));
    let topics = plain(&[(10, 12), (20, 23)]);
    let join = record(TALK, 60, Pairing::Nearest, 10).join("", &[&people, &times, &topics]);
    let first = vec![vec![(0, 3)], vec![(4, 7)], vec![(10, 12), (20, 23)]];
    let second = vec![vec![(100, 103)], vec![(90, 93)], vec![]];
    assert_eq!(spans(&join), [first, second]);
    assert_eq!(join.records[0].mention.span(), Span::new(0, 23));
    assert_eq!(join.records[1].mention.attributes[2], Value::Many(vec![]));
}

#[test]
fn a_record_is_copied_iff_all_its_parts_are() {
    let (people, times) = (plain(&[(0, 3), (100, 103)]), plain(&[(4, 7), (90, 93)]));
    let join = record(&TALK[..2], 60, Pairing::Nearest, 10).join("", &[&people, &times]);
    let copied = [[true, true], [true, false]];
    let is_copied = |used: &Used| copied[used.extractor as usize][used.mention as usize];
    let origins: Vec<_> = join.records.iter().map(|joined| joined.origin(is_copied)).collect();
    assert_eq!(origins, [Origin::Copied, Origin::Extracted]);
}

/// Example 2 of the Cyclex paper, between other meetings: (CS 310, 4pm, {CIM, IR}). Without a side the topics at the end of
/// a line are nearer to the next room than to their own.
#[test]
fn the_meeting_of_the_paper_has_its_own_topics() {
    let text =
        "Meetings: CS 105 at 2pm about DB, ML.\nIn room CS 310 at 4pm with topics CIM, IR.\nCS 22 is free, 5pm to DL";
    let found = |pattern: &str| -> Vec<Mention> {
        let spans = regex::Regex::new(pattern).unwrap();
        spans
            .find_iter(text)
            .map(|m| {
                Mention::plain(crate::extract::mention::offset(m.start()), crate::extract::mention::offset(m.end()), 0)
            })
            .collect()
    };
    let (rooms, times, topics) = (found("CS [0-9]+"), found("[0-9]pm"), found(r"\b(?:DB|ML|CIM|IR|DL)\b"));
    let parts = &[("room", "room", false, false), ("time", "time", false, false), ("topics", "topic", true, true)];
    let meetings = |pairing, within, side| -> Vec<String> {
        let join = record(parts, 100, pairing, 10).keeping(within, side).join(text, &[&rooms, &times, &topics]);
        let words = |spans: &Vec<(u32, u32)>| {
            spans.iter().map(|&(start, end)| &text[start as usize..end as usize]).collect::<Vec<_>>().join(" ")
        };
        spans(&join).iter().map(|parts| parts.iter().map(words).collect::<Vec<_>>().join("|")).collect()
    };
    let right = ["CS 105|2pm|DB ML", "CS 310|4pm|CIM IR", "CS 22|5pm|DL"];
    for pairing in [Pairing::Nearest, Pairing::Once] {
        assert_ne!(meetings(pairing, None, None), right);
        assert_eq!(meetings(pairing, Some(Within::Line), None), right);
        assert_eq!(meetings(pairing, Some(Within::Sentence), None), right);
        assert_eq!(meetings(pairing, None, Some(Side::After)), right);
        assert_eq!(meetings(pairing, Some(Within::Sentence), Some(Side::After)), right);
        assert_eq!(meetings(pairing, Some(Within::Block), Some(Side::After)), right);
        assert_ne!(meetings(pairing, None, Some(Side::Before)), right);
    }
    assert_eq!(meetings(Pairing::All, Some(Within::Line), Some(Side::After)), right);
}

#[test]
fn once_gives_every_mention_to_one_record_only() {
    let (people, times) = (plain(&[(0, 3), (10, 13)]), plain(&[(4, 7)]));
    let shared = record(&TALK[..2], 60, Pairing::Nearest, 10).join("", &[&people, &times]);
    assert_eq!(shared.records.len(), 2);
    let once = record(&TALK[..2], 60, Pairing::Once, 10).join("", &[&people, &times]);
    assert_eq!(spans(&once), [vec![vec![(0, 3)], vec![(4, 7)]]]);
}

#[test]
fn a_required_part_out_of_scope_makes_no_record() {
    let (people, times) = (plain(&[(0, 3)]), plain(&[(58, 61)]));
    let of = |scope| record(&TALK[..2], scope, Pairing::Nearest, 10).join("", &[&people, &times]).records.len();
    assert_eq!((of(60), of(61)), (0, 1));
}

#[test]
fn no_mention_plays_two_parts() {
    let parts = &[("host", "person", false, false), ("guest", "person", false, false)];
    let people = plain(&[(0, 3), (10, 13)]);
    for pairing in [Pairing::Nearest, Pairing::All] {
        let join = record(parts, 50, pairing, 10).join("", &[&people]);
        let both = [vec![vec![(0, 3)], vec![(10, 13)]], vec![vec![(10, 13)], vec![(0, 3)]]];
        assert_eq!(spans(&join), both, "{pairing:?}");
    }
    assert_eq!(record(parts, 50, Pairing::Once, 10).join("", &[&people]).records.len(), 1);
}

#[test]
fn all_is_capped_and_says_so() {
    let many: Vec<(u32, u32)> = (0..60).map(|i| (i * 3, i * 3 + 2)).collect();
    let mentions = plain(&many);
    let parts = &[("a", "x", false, false), ("b", "y", false, false), ("c", "z", false, false)];
    let of = |most| record(parts, 1_000, Pairing::All, most).join("", &[&mentions, &mentions, &mentions]);
    let capped = of(500);
    assert!(capped.capped);
    assert_eq!(capped.records.len(), 500);
    assert_eq!(capped, of(500), "the same ones every time");
    let small = record(parts, 8, Pairing::All, 10_000).join("", &[&mentions, &mentions, &mentions]);
    assert!(!small.capped);
}

#[test]
fn what_reaches_over_the_end_of_a_line_is_in_no_record() {
    let (people, times) = (plain(&[(0, 3), (8, 13)]), plain(&[(4, 7), (14, 16)]));
    let parts = &[("a", "x", false, false), ("b", "y", false, true)];
    let of = |text: &str| {
        let record = record(parts, 60, Pairing::Nearest, 10).keeping(Some(Within::Line), None);
        spans(&record.join(text, &[&people, &times]))
    };
    assert_eq!(of("aaa bbb aaaaa bb").len(), 2);
    assert_eq!(of("aaa bbb aa\naa bb"), [vec![vec![(0, 3)], vec![(4, 7)]]]);
    assert_eq!(of("aaa b\nb aaaaa bb"), [vec![vec![(0, 3)], vec![]], vec![vec![(8, 13)], vec![(14, 16)]]]);
}

#[test]
fn thousands_of_mentions_in_reach_of_each_other_are_joined_in_a_moment() {
    let people = plain(&(0..30_000).map(|i| (i * 10, i * 10 + 3)).collect::<Vec<_>>());
    let times = plain(&(0..30_000).map(|i| (i * 10 + 4, i * 10 + 6)).collect::<Vec<_>>());
    for pairing in [Pairing::Nearest, Pairing::Once] {
        for (within, side) in [(None, None), (Some(Within::Line), None), (None, Some(Side::After))] {
            let record = record(TALK, 1_000_000, pairing, 10).keeping(within, side);
            let join = record.join(&"aaaaaaaaa\n".repeat(30_000), &[&people, &times, &times]);
            assert_eq!(join.records.len(), 30_000);
        }
    }
}

fn hull(spans: &[(u32, u32)]) -> (u32, u32) {
    (spans.iter().map(|s| s.0).min().unwrap(), spans.iter().map(|s| s.1).max().unwrap())
}

type Chosen = Vec<Vec<usize>>;

/// Where the places that `within` names begin, but for the first, read literally.
fn naive_starts(text: &str, within: Option<Within>, lists: &[Vec<Mention>]) -> Vec<u32> {
    let after = |pattern: &str| -> Vec<usize> {
        regex::Regex::new(pattern).unwrap().find_iter(text).map(|found| found.end()).collect()
    };
    let starts = match within {
        None => vec![],
        Some(Within::Line) => after(r"\n"),
        Some(Within::Block) => {
            crate::extract::units::blocks(text, 1200).into_iter().map(|block| block.start as usize).collect()
        }
        Some(Within::Sentence) => {
            let lines = after(r"\s*\n\s*");
            let stops = after(r#"[.!?][")]*\s+"#).into_iter().filter(|&at| !text[at..].starts_with(char::is_lowercase));
            let inside = |at: usize| {
                let at = u32::try_from(at).unwrap();
                lists.iter().flatten().any(|mention| mention.start < at && at < mention.end)
            };
            let starts: Vec<usize> = lines.into_iter().chain(stops).filter(|&at| !inside(at)).collect();
            // White space before the first sentence belongs to it.
            starts.into_iter().filter(|&at| !text[..at].trim().is_empty()).collect()
        }
    };
    starts.into_iter().map(|at| u32::try_from(at).unwrap()).collect()
}

/// Whether a mention may go with a key: nothing but the two of them and the text between.
fn naive_belongs(record: &Record, starts: &[u32], key: (u32, u32), mention: (u32, u32)) -> bool {
    let on_side = match record.side {
        None => true,
        Some(Side::After) => mention.0 >= key.1,
        Some(Side::Before) => mention.1 <= key.0,
    };
    on_side && naive_together(starts, &[key, mention])
}

/// Whether no place begins inside the hull of these spans.
fn naive_together(starts: &[u32], spans: &[(u32, u32)]) -> bool {
    let (start, end) = hull(spans);
    !starts.iter().any(|&at| start < at && at < end)
}

fn naive_is_short(record: &Record, spans: &[(u32, u32)]) -> bool {
    let (start, end) = hull(spans);
    end - start <= record.scope
}

/// The definition of `nearest` and `once`, read literally.
fn naive_by_key(record: &Record, text: &str, lists: &[Vec<Mention>]) -> Vec<Chosen> {
    let starts = naive_starts(text, record.within, lists);
    let once = record.pairing == Pairing::Once;
    let span = |part: usize, index: usize| {
        let mention = &lists[record.lists[part]][index];
        (mention.start, mention.end)
    };
    let spans = |chosen: &Chosen| -> Vec<(u32, u32)> {
        chosen.iter().enumerate().flat_map(|(p, c)| c.iter().map(move |&i| span(p, i))).collect()
    };
    let is_short = |spans: &[(u32, u32)]| naive_is_short(record, spans);
    let gap = |a: (u32, u32), b: (u32, u32)| b.0.saturating_sub(a.1).max(a.0.saturating_sub(b.1));
    let fits = |chosen: &Chosen, extra: (u32, u32)| {
        if !naive_belongs(record, &starts, span(record.key, chosen[record.key][0]), extra) {
            return false;
        }
        let mut all = spans(chosen);
        all.push(extra);
        is_short(&all)
    };
    let uses = |chosen: &Chosen, part: usize, index: usize| {
        chosen.iter().enumerate().any(|(p, c)| record.lists[p] == record.lists[part] && c.contains(&index))
    };
    let mut taken: Vec<(usize, usize)> = Vec::new();
    let mut records: Vec<Chosen> = Vec::new();
    'keys: for key in 0..lists[record.lists[record.key]].len() {
        let is_taken = once && taken.contains(&(record.lists[record.key], key));
        if is_taken || !naive_together(&starts, &[span(record.key, key)]) {
            continue;
        }
        let mut chosen: Chosen = vec![Vec::new(); record.parts.len()];
        chosen[record.key].push(key);
        for part in 0..record.parts.len() {
            if part == record.key || record.parts[part].many {
                continue;
            }
            let nearest = (0..lists[record.lists[part]].len())
                .filter(|&i| !(once && taken.contains(&(record.lists[part], i))))
                .filter(|&i| !uses(&chosen, part, i) && fits(&chosen, span(part, i)))
                .min_by_key(|&i| (gap(span(record.key, key), span(part, i)), i));
            match nearest {
                Some(index) => chosen[part].push(index),
                None if record.parts[part].optional => {}
                None => continue 'keys,
            }
        }
        if once {
            taken.extend(chosen.iter().enumerate().flat_map(|(p, c)| c.iter().map(move |&i| (record.lists[p], i))));
        }
        records.push(chosen);
    }
    for part in (0..record.parts.len()).filter(|&part| record.parts[part].many) {
        let mut offered: Vec<Vec<(u32, usize)>> = vec![Vec::new(); records.len()];
        for index in 0..lists[record.lists[part]].len() {
            if once && taken.contains(&(record.lists[part], index)) {
                continue;
            }
            let key = |r: usize| span(record.key, records[r][record.key][0]);
            let distance = |r: usize| gap(key(r), span(part, index));
            let nearest = (0..records.len())
                .filter(|&r| distance(r) <= record.scope)
                .filter(|&r| naive_belongs(record, &starts, key(r), span(part, index)))
                .min_by_key(|&r| (distance(r), r));
            if let Some(r) = nearest {
                offered[r].push((distance(r), index));
            }
        }
        for (chosen, mut offered) in records.iter_mut().zip(offered) {
            offered.sort_unstable();
            for (_, index) in offered {
                if !uses(chosen, part, index) && fits(chosen, span(part, index)) {
                    chosen[part].push(index);
                    taken.push((record.lists[part], index));
                }
            }
        }
    }
    records.retain(|chosen| (0..chosen.len()).all(|part| record.parts[part].optional || !chosen[part].is_empty()));
    records.retain(|chosen| is_short(&spans(chosen)));
    records
}

/// `all` for single required attributes: every combination.
fn naive_pairs(record: &Record, text: &str, lists: &[Vec<Mention>], scope: u32) -> Vec<Vec<(u32, u32)>> {
    let starts = naive_starts(text, record.within, lists);
    let mut out = Vec::new();
    for a in &lists[0] {
        for b in &lists[1] {
            let both = vec![(a.start, a.end), (b.start, b.end)];
            let (start, end) = hull(&both);
            if end - start <= scope && naive_belongs(record, &starts, both[0], both[1]) {
                out.push(both);
            }
        }
    }
    out.sort_unstable();
    out
}

fn mentions() -> impl Strategy<Value = Vec<Mention>> {
    prop::collection::vec((0u32..60, 1u32..9), 0..8).prop_map(|list| {
        let spans: Vec<_> = list.into_iter().map(|(start, len)| (start, start + len)).collect();
        plain(&spans)
    })
}

/// A page that all of these mentions lie in, with ends of lines and sentences.
fn page() -> impl Strategy<Value = String> {
    "([aB][aB .!?)\n\"]){35}"
}

fn keeps() -> impl Strategy<Value = (Option<Within>, Option<Side>)> {
    (prop::option::of(prop::sample::select(&Within::ALL[..])), prop::option::of(prop::sample::select(&Side::ALL[..])))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn nearest_and_once_mean_what_the_definition_says(
        lists in prop::collection::vec(mentions(), 3),
        scope in 1u32..60,
        shape in 0usize..4,
        once: bool,
        text in page(),
        (within, side) in keeps(),
    ) {
        let shapes: [&[(&str, &str, bool, bool)]; 4] = [
            &[("k", "a", false, false), ("x", "b", false, false), ("y", "c", false, true)],
            &[("k", "a", false, false), ("x", "b", false, true), ("s", "c", true, true)],
            &[("k", "a", false, false), ("x", "a", false, false), ("s", "b", true, false), ("t", "c", true, true)],
            &[("k", "a", false, false), ("s", "a", true, true), ("x", "b", false, true), ("y", "c", false, true)],
        ];
        let pairing = if once { Pairing::Once } else { Pairing::Nearest };
        let record = record(shapes[shape], scope, pairing, 10).keeping(within, side);
        let lists = &lists[..record.extractors().len()];
        let slices: Vec<&[Mention]> = lists.iter().map(Vec::as_slice).collect();
        let mut expected: Vec<Vec<Used>> = naive_by_key(&record, &text, lists)
            .iter()
            .map(|chosen| {
                let used = |(part, list): (usize, &Vec<usize>)| {
                    let extractor = u32::try_from(record.lists[part]).unwrap();
                    let of = |&index: &usize| Used { extractor, mention: u32::try_from(index).unwrap() };
                    list.iter().map(of).collect::<Vec<_>>()
                };
                let mut all: Vec<Used> = chosen.iter().enumerate().flat_map(used).collect();
                all.sort_unstable();
                all
            })
            .collect();
        let mut got: Vec<Vec<Used>> = record.join(&text, &slices).records.into_iter().map(|joined| joined.parts).collect();
        expected.sort_unstable();
        got.sort_unstable();
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn all_is_every_combination(
        lists in prop::collection::vec(mentions(), 2),
        scope in 1u32..60,
        text in page(),
        (within, side) in keeps(),
    ) {
        let parts = &[("k", "a", false, false), ("x", "b", false, false)];
        let record = record(parts, scope, Pairing::All, 1_000).keeping(within, side);
        let join = record.join(&text, &[&lists[0], &lists[1]]);
        prop_assert!(!join.capped);
        let mut got: Vec<Vec<(u32, u32)>> = spans(&join).into_iter().map(|parts| parts.concat()).collect();
        got.sort_unstable();
        prop_assert_eq!(got, naive_pairs(&record, &text, &lists, scope));
    }
}
