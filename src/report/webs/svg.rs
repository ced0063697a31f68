//! A web tuple as a graph, as the WHOWEDA paper draws it: boxes for pages, arrows for links, from left to right.
//!
//! What became of a page or link is told by form and by word, not by colour alone: black boxes came, grey dashed ones
//! went, thick ones changed; links that came are thick, those that went dashed, those with another label dotted. Of a
//! long path the pages in its middle are folded into one box, unless one of them changed.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{ShownNode, ShownTuple, WebView};
use crate::model::{Change, Fate};
use crate::report::html::escape_in_svg as escape;

const WIDTH: f64 = 216.0;
const HEIGHT: f64 = 58.0;
const GAP_X: f64 = 168.0;
const GAP_Y: f64 = 30.0;
const MARGIN: f64 = 18.0;
/// Space above the graph, for its title.
const HEAD: f64 = 34.0;
/// Space below it, for the legend.
const FOOT: f64 = 40.0;
/// Space for arrows that pass above or beneath boxes.
const ARC: f64 = 44.0;
/// Inner pages of a path that are drawn one by one.
const PATH: usize = 3;
/// Characters of a title, a URL and a label that fit.
const TITLE: usize = 30;
const URL: usize = 36;
const LABEL: usize = 25;

/// A box of the picture: a page, or the folded pages of a path.
struct Drawn<'a> {
    nodes: Vec<&'a ShownNode>,
    column: usize,
    x: f64,
    y: f64,
}

/// At most so many characters. What is left out is in the middle of a URL, whose end tells most, else at the end.
fn short(text: &str, most: usize, middle: bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= most {
        return text.to_owned();
    }
    let (head, tail) = if middle { (most / 3, most - most / 3 - 1) } else { (most - 1, 0) };
    let start: String = chars[..head].iter().collect();
    let end: String = chars[chars.len() - tail..].iter().collect();
    format!("{start}…{end}")
}

fn word(change: Fate) -> &'static str {
    match change {
        Fate::Unchanged => "",
        Fate::Changed(Change::Added) => "added",
        Fate::Changed(Change::Deleted) => "deleted",
        Fate::Changed(Change::Modified) => "modified",
    }
}

/// Fill, ink, width and dashes of a box.
fn box_style(change: Fate) -> (&'static str, &'static str, f64, &'static str) {
    match change {
        Fate::Unchanged => ("#ffffff", "#111111", 1.0, ""),
        Fate::Changed(Change::Added) => ("#111111", "#ffffff", 1.0, ""),
        Fate::Changed(Change::Deleted) => ("#d6d6d6", "#333333", 1.2, "5 3"),
        Fate::Changed(Change::Modified) => ("#ffffff", "#111111", 3.6, ""),
    }
}

/// Width and dashes of an arrow.
fn arrow_style(change: Fate) -> (f64, &'static str) {
    match change {
        Fate::Unchanged => (1.0, ""),
        Fate::Changed(Change::Added) => (2.6, ""),
        Fate::Changed(Change::Deleted) => (1.4, "7 4"),
        Fate::Changed(Change::Modified) => (1.8, "1 3"),
    }
}

/// The picture of a tuple.
#[must_use]
pub(crate) fn picture(view: &WebView, tuple: &ShownTuple) -> String {
    let (mut boxes, of_node) = lay_out(tuple);
    let skips =
        |up: bool| tuple.links.iter().any(|link| skips(&boxes, of_node[link.from], of_node[link.to]) == Some(up));
    let (above, beneath) = (skips(true), skips(false));
    if above {
        boxes.iter_mut().for_each(|drawn| drawn.y += ARC);
    }
    let right = boxes.iter().map(|drawn| drawn.x + WIDTH).fold(0.0, f64::max);
    let below = boxes.iter().map(|drawn| drawn.y + HEIGHT).fold(0.0, f64::max);
    let back = tuple.links.iter().filter(|link| !goes_right(&boxes, of_node[link.from], of_node[link.to])).count();
    let under = if beneath { ARC } else { 0.0 };
    let (width, height) = ((right + MARGIN).max(620.0), below + under + FOOT + 26.0 * back.min(6) as f64);
    let kind = tuple.delta.map(|delta| format!("{delta} ")).unwrap_or_default();
    let since = view.before.as_ref().map(|before| format!("{before} to ")).unwrap_or_default();
    let title =
        format!("{}: {kind}tuple {}, {since}{}", view.query, short(&tuple.tuple.to_string(), 9, false), view.snapshot);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"11\" role=\"img\" aria-label=\"{0}\">\n\
         <title>{0}</title>\n<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"9\" \
         markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#111111\"/>\
         </marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"21\" font-size=\"13\" font-weight=\"bold\">{0}</text>\n",
        escape(&title)
    );
    arrows(&mut out, tuple, &boxes, &of_node, below);
    boxes.iter().for_each(|drawn| draw_box(&mut out, drawn));
    if tuple.delta.is_some() {
        legend(&mut out, height - 14.0);
    }
    out.push_str("</svg>\n");
    out
}

fn goes_right(boxes: &[Drawn<'_>], from: usize, to: usize) -> bool {
    boxes[from].column < boxes[to].column
}

/// Whether a link passes columns between its ends, and if so, above them or beneath.
fn skips(boxes: &[Drawn<'_>], from: usize, to: usize) -> Option<bool> {
    let (a, b) = (&boxes[from], &boxes[to]);
    let between = boxes.iter().any(|drawn| a.column < drawn.column && drawn.column < b.column);
    between.then_some(b.y <= a.y)
}

/// An arrow around the boxes between its ends, and where its label stands.
fn around(boxes: &[Drawn<'_>], a: &Drawn<'_>, b: &Drawn<'_>, (start, end): (f64, f64), up: bool) -> (String, f64, f64) {
    let between = boxes.iter().filter(|drawn| a.column < drawn.column && drawn.column < b.column);
    let tops = between.map(|drawn| if up { drawn.y } else { drawn.y + HEIGHT });
    let passed = if up { tops.fold(f64::MAX, f64::min) - 14.0 } else { tops.fold(0.0, f64::max) + 14.0 };
    // A curve reaches three quarters of the way to where it is drawn.
    let pull = (8.0 * passed - start - end) / 6.0;
    let (x1, x2) = (a.x + WIDTH, b.x);
    let reach = (x2 - x1) / 4.0;
    let path = format!("M{x1:.0} {start:.0}C{:.0} {pull:.0} {:.0} {pull:.0} {x2:.0} {end:.0}", x1 + reach, x2 - reach);
    (path, (x1 + x2) / 2.0, if up { passed - 16.0 } else { passed + 12.0 })
}

/// Boxes in columns by how many links lead to them, and for each node the number of its box.
fn lay_out(tuple: &ShownTuple) -> (Vec<Drawn<'_>>, Vec<usize>) {
    let depths = depths(tuple);
    let mut boxes: Vec<Drawn<'_>> = Vec::new();
    let mut of_node = vec![0; tuple.nodes.len()];
    let mut folds: HashMap<&str, usize> = HashMap::new();
    let mut order: Vec<usize> = (0..tuple.nodes.len()).collect();
    order.sort_by_key(|&node| depths[node]);
    for node in order {
        let shown = &tuple.nodes[node];
        let path = folded_path(tuple, shown);
        if let Some(&there) = path.and_then(|path| folds.get(path)) {
            boxes[there].nodes.push(shown);
            of_node[node] = there;
            continue;
        }
        of_node[node] = boxes.len();
        if let Some(path) = path {
            folds.insert(path, boxes.len());
        }
        boxes.push(Drawn { nodes: vec![shown], column: depths[node], x: 0.0, y: 0.0 });
    }
    place(&mut boxes);
    (boxes, of_node)
}

/// The path that a node is folded into, if it is.
fn folded_path<'a>(tuple: &'a ShownTuple, node: &'a ShownNode) -> Option<&'a str> {
    let number = |name: &'a str| {
        let (path, number) = name.rsplit_once('.')?;
        (path.contains('>')).then_some((path, number.parse::<usize>().ok()?))
    };
    let (path, at) = number(&node.node)?;
    let inner = tuple.nodes.iter().filter_map(|other| Some((number(&other.node)?, other.change)));
    let on_path: Vec<(usize, Fate)> =
        inner.filter(|((other, _), _)| *other == path).map(|((_, n), change)| (n, change)).collect();
    let last = on_path.iter().map(|(n, _)| *n).max()?;
    let is_inside = |n: usize| n > 1 && n < last;
    let quiet = on_path.iter().filter(|(n, _)| is_inside(*n)).all(|(_, change)| *change == Fate::Unchanged);
    (last > PATH && quiet && is_inside(at)).then_some(path)
}

/// How many links at most lead to each node from those that no link leads to, circles aside.
fn depths(tuple: &ShownTuple) -> Vec<usize> {
    let forward = forward_links(tuple);
    let mut depths = vec![0; tuple.nodes.len()];
    for _ in 0..tuple.nodes.len() {
        let mut deeper = false;
        for &(from, to) in &forward {
            if depths[to] <= depths[from] {
                depths[to] = depths[from] + 1;
                deeper = true;
            }
        }
        if !deeper {
            break;
        }
    }
    depths
}

/// The links without those that lead back to where a walk along them came from.
fn forward_links(tuple: &ShownTuple) -> Vec<(usize, usize)> {
    let count = tuple.nodes.len();
    let mut targets: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut led_to = vec![false; count];
    for link in tuple.links.iter().filter(|link| link.from != link.to) {
        targets[link.from].push(link.to);
        led_to[link.to] = true;
    }
    let mut starts: Vec<usize> = (0..count).collect();
    starts.sort_by_key(|&node| led_to[node]);
    let (mut seen, mut on_way) = (vec![false; count], vec![false; count]);
    let mut forward = Vec::new();
    for start in starts {
        // Each step of the walk: a node, and how many of its links were looked at.
        let mut walk = vec![(start, 0)];
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        on_way[start] = true;
        while let Some((node, next)) = walk.last_mut() {
            let Some(&target) = targets[*node].get(*next) else {
                on_way[*node] = false;
                walk.pop();
                continue;
            };
            *next += 1;
            if !on_way[target] {
                forward.push((*node, target));
            }
            if !std::mem::replace(&mut seen[target], true) {
                on_way[target] = true;
                walk.push((target, 0));
            }
        }
    }
    forward
}

/// Gives the boxes their places: columns from left to right, each in the middle of the picture. Columns that folding
/// has emptied are left out.
fn place(boxes: &mut [Drawn<'_>]) {
    let mut columns: Vec<usize> = boxes.iter().map(|drawn| drawn.column).collect();
    columns.sort_unstable();
    columns.dedup();
    let rows = |column: usize, boxes: &[Drawn<'_>]| boxes.iter().filter(|drawn| drawn.column == column).count();
    let most = columns.iter().map(|&column| rows(column, boxes)).max().unwrap_or(1);
    for (rank, &column) in columns.iter().enumerate() {
        let lead = (most - rows(column, boxes)) as f64 / 2.0;
        let own = boxes.iter_mut().filter(|drawn| drawn.column == column);
        for (row, drawn) in own.enumerate() {
            drawn.x = MARGIN + rank as f64 * (WIDTH + GAP_X);
            drawn.y = HEAD + (lead + row as f64) * (HEIGHT + GAP_Y);
        }
    }
}

fn draw_box(out: &mut String, drawn: &Drawn<'_>) {
    let Drawn { x, y, nodes, .. } = drawn;
    let (first, last) = (nodes[0], nodes[nodes.len() - 1]);
    let (fill, ink, width, dashes) = box_style(first.change);
    let _ = writeln!(out, "<g>");
    if nodes.len() > 1 {
        let pages: Vec<String> = nodes.iter().map(|node| format!("{} {}", node.node, node.url)).collect();
        let _ = writeln!(
            out,
            "<title>{}</title><rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"14\" \
             fill=\"{fill}\" stroke=\"#111111\" stroke-dasharray=\"2 2\"/>\n\
             <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">… {} pages, {} to {} …</text>\n</g>",
            escape(&pages.join("\n")),
            x + WIDTH / 2.0,
            y + HEIGHT / 2.0 + 4.0,
            nodes.len(),
            escape(&first.node),
            escape(&last.node)
        );
        return;
    }
    let told = word(first.change);
    let title = first.title.as_deref().filter(|title| !title.trim().is_empty()).unwrap_or("(no title)");
    let struck = if told == "deleted" { " text-decoration=\"line-through\"" } else { "" };
    let _ = writeln!(
        out,
        "<title>{}</title><rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"3\" fill=\"{fill}\" \
         stroke=\"#111111\" stroke-width=\"{width}\" stroke-dasharray=\"{dashes}\"/>\n\
         <g fill=\"{ink}\"><text x=\"{:.0}\" y=\"{:.0}\" font-weight=\"bold\">{}</text>\
         <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\" font-style=\"italic\">{told}</text>\
         <text x=\"{:.0}\" y=\"{:.0}\" font-size=\"12\"{struck}>{}</text>\
         <text x=\"{:.0}\" y=\"{:.0}\" font-size=\"10\">{}</text></g>\n</g>",
        escape(&format!("{}\n{title}", first.url)),
        x + 8.0,
        y + 16.0,
        escape(&first.node),
        x + WIDTH - 8.0,
        y + 16.0,
        x + 8.0,
        y + 33.0,
        escape(&short(title, TITLE, false)),
        x + 8.0,
        y + 48.0,
        escape(&short(&first.url, URL, true)),
    );
}

fn arrows(out: &mut String, tuple: &ShownTuple, boxes: &[Drawn<'_>], of_node: &[usize], below: f64) {
    // Links that leave a box, or come to one, side by side.
    let mut used: HashMap<(usize, usize), usize> = HashMap::new();
    let mut labels = String::new();
    let mut back = 0;
    for link in &tuple.links {
        let (from, to) = (of_node[link.from], of_node[link.to]);
        if from == to && link.from != link.to {
            continue;
        }
        let side = used.entry((from, to)).or_default();
        let shift = 13.0 * *side as f64;
        *side += 1;
        let (a, b) = (&boxes[from], &boxes[to]);
        let (start, end) = (a.y + HEIGHT / 2.0 + shift, b.y + HEIGHT / 2.0 + shift);
        let (path, label_x, label_y) = if let Some(up) = skips(boxes, from, to) {
            around(boxes, a, b, (start, end), up)
        } else if goes_right(boxes, from, to) {
            let (x1, x2) = (a.x + WIDTH, b.x);
            let middle = (x1 + x2) / 2.0;
            // Beside the arrow's end, so that the labels of links that leave one box stand apart.
            (
                format!("M{x1:.0} {start:.0}C{middle:.0} {start:.0} {middle:.0} {end:.0} {x2:.0} {end:.0}"),
                x2 - GAP_X / 2.0,
                end - 5.0,
            )
        } else {
            back += 1;
            let depth = below + 14.0 + 26.0 * f64::from(back.min(6) - 1);
            let (x1, x2) = (a.x + WIDTH * 0.6, b.x + WIDTH * 0.4);
            let (y1, y2) = (a.y + HEIGHT, b.y + HEIGHT);
            (
                format!("M{x1:.0} {y1:.0}C{x1:.0} {depth:.0} {x2:.0} {depth:.0} {x2:.0} {y2:.0}"),
                (x1 + x2) / 2.0,
                depth - 4.0,
            )
        };
        let (width, dashes) = arrow_style(link.change);
        let told = word(link.change);
        let told = if told.is_empty() { String::new() } else { format!(", {told}") };
        let was = link.old_label.as_deref().map(|old| format!(", before: {old}")).unwrap_or_default();
        let label = if link.label.is_empty() { "(no label)" } else { &link.label };
        let title = escape(&format!("{label} ({}{told}{was})", link.kind));
        let _ = writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"#111111\" stroke-width=\"{width}\" stroke-dasharray=\"{dashes}\" \
             marker-end=\"url(#head)\"><title>{title}</title></path>"
        );
        // Labels come last: no arrow goes through one.
        let _ = writeln!(
            labels,
            "<g><title>{title}</title><text x=\"{label_x:.0}\" y=\"{label_y:.0}\" text-anchor=\"middle\" font-size=\"10\" stroke=\"white\" \
             stroke-width=\"4\" paint-order=\"stroke\">{}</text>\n\
             <text x=\"{label_x:.0}\" y=\"{:.0}\" text-anchor=\"middle\" font-size=\"9\" font-style=\"italic\" stroke=\"white\" \
             stroke-width=\"4\" paint-order=\"stroke\">{}{told}</text></g>",
            escape(&short(label, LABEL, false)),
            label_y + 14.0,
            link.kind,
        );
    }
    out.push_str(&labels);
}

fn legend(out: &mut String, y: f64) {
    let _ = writeln!(out, "<g font-size=\"10\">");
    let changes = [
        Fate::Changed(Change::Added),
        Fate::Changed(Change::Deleted),
        Fate::Changed(Change::Modified),
        Fate::Unchanged,
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let x = MARGIN + 145.0 * i as f64;
        let (fill, _, box_width, box_dashes) = box_style(change);
        let (width, dashes) = arrow_style(change);
        let told = if change == Fate::Unchanged { "unchanged" } else { word(change) };
        let _ = writeln!(
            out,
            "<rect x=\"{x:.0}\" y=\"{:.0}\" width=\"22\" height=\"12\" fill=\"{fill}\" stroke=\"#111111\" \
             stroke-width=\"{box_width}\" stroke-dasharray=\"{box_dashes}\"/><path d=\"M{:.0} {:.0}h34\" stroke=\"#111111\" \
             stroke-width=\"{width}\" stroke-dasharray=\"{dashes}\" marker-end=\"url(#head)\"/>\
             <text x=\"{:.0}\" y=\"{y:.0}\">{told}</text>",
            y - 10.0,
            x + 28.0,
            y - 4.0,
            x + 70.0,
        );
    }
    let _ = writeln!(out, "</g>");
}

/// A page with the pictures of all tuples, which lie beside it.
#[must_use]
pub(crate) fn index(view: &WebView, drawn: usize) -> String {
    let headline = escape(&view.headline());
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{headline}</title>\
         <style>body{{font:14px sans-serif;margin:2em}}figure{{margin:0 0 1.2em;overflow-x:auto}}\
         img{{border:1px solid #ccc;display:block}}</style></head>\n<body><h1>{headline}</h1>\n"
    );
    for tuple in view.tuples.iter().take(drawn) {
        let nodes: Vec<&str> = tuple.nodes.iter().map(|node| node.url.as_str()).collect();
        let (file, nodes) = (escape(&tuple.file_name()), escape(&nodes.join(", ")));
        // A wide picture is moved to and fro, not made too small to read.
        let _ = writeln!(out, "<figure tabindex=\"0\"><img src=\"{file}\" alt=\"{nodes}\"></figure>");
    }
    if drawn < view.tuples.len() {
        let _ = writeln!(out, "<p>and {} more tuples, which were not drawn</p>", view.tuples.len() - drawn);
    }
    out.push_str("</body></html>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Digest, LinkKind, SnapshotId, TupleChange};
    use crate::report::webs::ShownLink;

    fn node(name: &str, title: &str, change: Fate) -> ShownNode {
        ShownNode { node: name.into(), url: format!("http://site.test/{name}"), title: Some(title.into()), change }
    }

    fn link(from: usize, to: usize, label: &str, change: Fate) -> ShownLink {
        ShownLink { from, to, label: label.into(), old_label: None, kind: LinkKind::Local, change }
    }

    fn view(tuple: ShownTuple) -> WebView {
        let snapshot = SnapshotId::new("2024-01-02").unwrap();
        WebView { query: "q".into(), snapshot, before: None, is_delta: tuple.delta.is_some(), tuples: vec![tuple] }
    }

    fn tuple(nodes: Vec<ShownNode>, links: Vec<ShownLink>, delta: Option<TupleChange>) -> ShownTuple {
        ShownTuple { tuple: Digest::of(b"t"), delta, old_tuple: None, schema: String::new(), nodes, links }
    }

    fn drawn(tuple: ShownTuple) -> String {
        let view = view(tuple);
        picture(&view, &view.tuples[0])
    }

    #[test]
    fn changes_are_told_by_form_and_word() {
        let [added, deleted, modified] = [Change::Added, Change::Deleted, Change::Modified].map(Fate::Changed);
        let nodes = vec![
            node("a", "A", modified),
            node("b", "B", added),
            node("c", "C", deleted),
            node("d", "D", Fate::Unchanged),
        ];
        let links = vec![link(0, 1, "one", added), link(0, 2, "two", deleted), link(0, 3, "three", modified)];
        let svg = drawn(tuple(nodes, links, Some(TupleChange::Modified)));
        for told in [
            "added",
            "deleted",
            "modified",
            "unchanged",
            "fill=\"#111111\"",
            "stroke-dasharray=\"5 3\"",
            "stroke-width=\"3.6\"",
        ] {
            assert!(svg.contains(told), "{told}");
        }
    }

    #[test]
    fn what_pages_say_is_shown_and_not_obeyed() {
        let hostile = "</text><script>alert('x')</script>&amp; \u{202E}\"\u{0} ]]>";
        let nodes = vec![node("a", hostile, Fate::Unchanged), node("b", "B", Fate::Unchanged)];
        let mut told = tuple(nodes, vec![link(0, 1, hostile, Fate::Unchanged)], None);
        told.nodes[1].url = format!("http://site.test/\"><svg onload='x'>{}", "long".repeat(900));
        let view = view(told);
        for text in [picture(&view, &view.tuples[0]), index(&view, 1)] {
            assert!(
                !text.contains("<script")
                    && !text.contains("onload='")
                    && !text.contains('\u{202E}')
                    && !text.contains('\0')
            );
        }
    }

    #[test]
    fn long_paths_are_folded_unless_something_changed_in_them() {
        let path = |changed: Option<usize>| {
            let mut nodes = vec![node("a", "A", Fate::Unchanged)];
            for n in 1..=9 {
                let change = if changed == Some(n) { Fate::Changed(Change::Modified) } else { Fate::Unchanged };
                nodes.push(node(&format!("a>u.{n}"), "inner", change));
            }
            nodes.push(node("u", "U", Fate::Unchanged));
            let links = (0..10).map(|n| link(n, n + 1, "next", Fate::Unchanged)).collect();
            drawn(tuple(nodes, links, None))
        };
        assert!(path(None).contains("… 7 pages, a&gt;u.2 to a&gt;u.8 …"), "{}", path(None));
        assert!(!path(Some(5)).contains("pages,"));
    }

    #[test]
    fn circles_and_loops_are_drawn() {
        let nodes =
            vec![node("a", "A", Fate::Unchanged), node("b", "B", Fate::Unchanged), node("c", "C", Fate::Unchanged)];
        let links = [(0, 1), (1, 0), (1, 1), (2, 2)].map(|(from, to)| link(from, to, "x", Fate::Unchanged)).to_vec();
        let svg = drawn(tuple(nodes, links, None));
        assert_eq!(svg.matches("marker-end").count(), 4);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}
