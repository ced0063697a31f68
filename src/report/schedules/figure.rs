//! The paper's Figure 5 as SVG: recall against polls, a chart for each source, a line for each method.

use std::fmt::Write as _;

use crate::report::html::escape_in_svg;
use crate::schedule::figure::{Panel, Series};

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 40.0;
/// Colours that stay apart for the colour-blind (Okabe and Ito), and a dash for print.
const STYLES: [(&str, &str); 5] =
    [("#0072b2", ""), ("#d55e00", "6 3"), ("#009e73", "2 3"), ("#cc79a7", "8 3 2 3"), ("#555555", "4 4")];

/// Charts next to each other, up to three in a row, with one legend.
#[must_use]
pub fn svg(panels: &[Panel]) -> String {
    let columns = panels.len().clamp(1, 3);
    let rows = panels.len().div_ceil(columns).max(1);
    let (width, height) = (WIDTH * columns as f64, HEIGHT * rows as f64 + 60.0);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\" role=\"img\" aria-label=\"Recall against polls\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (i, panel) in panels.iter().enumerate() {
        let (x, y) = ((i % columns) as f64 * WIDTH, (i / columns) as f64 * HEIGHT);
        let _ = writeln!(text, "<g transform=\"translate({x} {y})\">");
        chart(panel, &mut text);
        text.push_str("</g>\n");
    }
    legend(panels, HEIGHT * rows as f64 + 18.0, width, &mut text);
    text.push_str("</svg>\n");
    text
}

/// Where recall and polls lie in a chart.
struct Axes {
    least_polls: usize,
    most_polls: usize,
}

impl Axes {
    const WIDTH: f64 = WIDTH - LEFT - RIGHT;
    const HEIGHT: f64 = HEIGHT - TOP - BOTTOM;

    fn x(&self, polls: usize) -> f64 {
        let range = (self.most_polls - self.least_polls).max(1) as f64;
        LEFT + Self::WIDTH * (polls - self.least_polls) as f64 / range
    }

    fn y(recall: f64) -> f64 {
        TOP + Self::HEIGHT * (1.0 - recall.clamp(0.0, 1.0))
    }
}

fn chart(panel: &Panel, text: &mut String) {
    let mut polls: Vec<usize> = panel.series.iter().flat_map(|s| s.points.iter().map(|p| p.0)).collect();
    polls.sort_unstable();
    polls.dedup();
    let axes =
        Axes { least_polls: polls.first().copied().unwrap_or(1), most_polls: polls.last().copied().unwrap_or(1) };
    let mut title: String = panel.title.chars().take(58).collect();
    if title.len() < panel.title.len() {
        title.push('…');
    }
    let _ = writeln!(text, "<text x=\"{LEFT}\" y=\"20\" font-weight=\"bold\">{}</text>", escape_in_svg(&title));
    scales(panel, &polls, &axes, text);
    if let Some(ceiling) = panel.ceiling {
        let _ = writeln!(
            text,
            "<path d=\"M{LEFT} {:.1}H{:.1}\" stroke=\"#999\" stroke-width=\"0.8\"/>",
            Axes::y(ceiling),
            WIDTH - RIGHT
        );
    }
    // The first series last, so that it lies on top.
    for (series, style) in panel.series.iter().zip(STYLES).rev() {
        line(series, style, &axes, text);
    }
}

/// Lines for recall, numbers for polls, and what both are.
fn scales(panel: &Panel, polls: &[usize], axes: &Axes, text: &mut String) {
    for step in 0..=5 {
        let recall = f64::from(step) / 5.0;
        let at = Axes::y(recall);
        let _ = writeln!(
            text,
            "<path d=\"M{LEFT} {at:.1}H{:.1}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{recall:.1}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0
        );
    }
    // Numbers that would touch the one before are left out.
    let mut last = f64::NEG_INFINITY;
    for polls in polls {
        if axes.x(*polls) - last > 18.0 {
            last = axes.x(*polls);
            let _ = writeln!(
                text,
                "<text x=\"{last:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{polls}</text>",
                HEIGHT - BOTTOM + 16.0
            );
        }
    }
    let _ = writeln!(
        text,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">polls {}</text>\
         <text transform=\"translate(12 {:.1}) rotate(-90)\" text-anchor=\"middle\">recall on held-out time</text>",
        LEFT + Axes::WIDTH / 2.0,
        HEIGHT - 8.0,
        panel.period.each(),
        TOP + Axes::HEIGHT / 2.0
    );
}

fn line(series: &Series, (colour, dash): (&str, &str), axes: &Axes, text: &mut String) {
    let place = |(polls, recall): &(usize, f64)| (axes.x(*polls), Axes::y(*recall));
    let places: Vec<(f64, f64)> = series.points.iter().map(place).collect();
    let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    let _ = writeln!(
        text,
        "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\" stroke-dasharray=\"{dash}\"/>",
        path.join("L")
    );
    for (x, y) in places {
        let _ = writeln!(text, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\" fill=\"{colour}\"/>");
    }
}

fn legend(panels: &[Panel], top: f64, width: f64, text: &mut String) {
    let names: Vec<&str> = panels.first().map_or(Vec::new(), |p| p.series.iter().map(|s| s.name).collect());
    let (mut x, mut y) = (16.0, top);
    for (name, (colour, dash)) in names.into_iter().zip(STYLES) {
        let room = 44.0 + 6.5 * name.len() as f64;
        if x + room > width {
            (x, y) = (16.0, y + 18.0);
        }
        let _ = writeln!(
            text,
            "<path d=\"M{x} {y}h24\" stroke=\"{colour}\" stroke-width=\"1.8\" stroke-dasharray=\"{dash}\"/>\
             <text x=\"{}\" y=\"{}\">{name}</text>",
            x + 30.0,
            y + 4.0
        );
        x += room;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Period;

    fn panel(title: &str, points: &[(usize, f64)]) -> Panel {
        let series = vec![Series { name: "optimal", points: points.to_vec() }];
        Panel { title: title.to_owned(), period: Period::Day, series, ceiling: Some(0.9) }
    }

    #[test]
    fn a_figure_is_whole() {
        let text = svg(&[panel("a", &[(1, 0.5), (2, 0.97), (6, 1.0)]), panel("b", &[(1, 0.0)])]);
        assert!(text.starts_with("<svg") && text.ends_with("</svg>\n"));
        assert_eq!(text.matches("<g ").count(), text.matches("</g>").count());
        assert_eq!(text.matches("<circle ").count(), 4);
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn titles_cannot_break_the_figure() {
        let panel = Panel { series: Vec::new(), ..panel("<a & \"b\">]]>", &[]) };
        let text = svg(&[panel.clone(), panel.clone(), panel.clone(), panel]);
        assert!(text.contains("&lt;a &amp; &quot;b&quot;&gt;]]&gt;"));
        assert!(svg(&[]).ends_with("</svg>\n"));
    }
}
