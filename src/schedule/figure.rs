//! The paper's Figure 5: recall against polls, for every method, as SVG.

use std::fmt::Write as _;

use super::assess::{assess, assess_uniform, ceiling};
use super::fit::SlotFitter;
use super::history::History;
use super::options::Options;
use crate::model::{Method, Period};

/// A line of the figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub name: &'static str,
    /// Polls and held-out recall.
    pub points: Vec<(usize, f64)>,
}

/// One source's chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    pub title: String,
    pub period: Period,
    pub series: Vec<Series>,
    pub ceiling: Option<f64>,
}

/// Held-out recall of every method for every number of polls, learned on the training part.
#[must_use]
pub fn panel(history: &History, options: &Options, period: Period, polls: &[usize]) -> Panel {
    let (train, test) = history.split(options.holdout);
    let fitter = SlotFitter::new(&train, options, period, options.grain_s);
    let of_method = |method: Method| {
        let recall = |n: usize| {
            let times = fitter.times(&fitter.slots(method, n));
            assess(&test, &options.calendar, period, &times).expected.recall
        };
        polls.iter().filter_map(|n| Some((*n, recall(*n)?))).collect::<Vec<_>>()
    };
    let mean = polls.iter().filter_map(|n| Some((*n, assess_uniform(&test, period, *n).recall?))).collect();
    let series = vec![
        Series { name: Method::Optimal.as_str(), points: of_method(Method::Optimal) },
        Series { name: Method::Theoretical.as_str(), points: of_method(Method::Theoretical) },
        Series { name: "uniform, best phase", points: of_method(Method::Uniform) },
        Series { name: "poisson (even, any phase)", points: of_method(Method::Poisson) },
        Series { name: "uniform, mean of phases", points: mean },
    ];
    let ceiling = ceiling(&test, &options.calendar, options.grain_s);
    Panel { title: history.source.clone(), period, series, ceiling }
}

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

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn chart(panel: &Panel, text: &mut String) {
    let counts: Vec<usize> = panel.series.iter().flat_map(|s| s.points.iter().map(|p| p.0)).collect();
    let (least, most) = (counts.iter().min().copied().unwrap_or(1), counts.iter().max().copied().unwrap_or(1));
    let (inner_width, inner_height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let x = |polls: usize| LEFT + inner_width * (polls - least) as f64 / (most - least).max(1) as f64;
    let y = |recall: f64| TOP + inner_height * (1.0 - recall.clamp(0.0, 1.0));
    let mut title: String = panel.title.chars().take(58).collect();
    if title.len() < panel.title.len() {
        title.push('…');
    }
    let _ = writeln!(text, "<text x=\"{LEFT}\" y=\"20\" font-weight=\"bold\">{}</text>", escape(&title));
    for step in 0..=5 {
        let recall = f64::from(step) / 5.0;
        let at = y(recall);
        let _ = writeln!(
            text,
            "<path d=\"M{LEFT} {at:.1}H{:.1}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{recall:.1}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0
        );
    }
    let mut ticks = counts;
    ticks.sort_unstable();
    ticks.dedup();
    let mut last = f64::NEG_INFINITY;
    for polls in ticks {
        if x(polls) - last > 18.0 {
            last = x(polls);
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
        LEFT + inner_width / 2.0,
        HEIGHT - 8.0,
        panel.period.each(),
        TOP + inner_height / 2.0
    );
    if let Some(ceiling) = panel.ceiling {
        let _ = writeln!(
            text,
            "<path d=\"M{LEFT} {:.1}H{:.1}\" stroke=\"#999\" stroke-width=\"0.8\"/>",
            y(ceiling),
            WIDTH - RIGHT
        );
    }
    // The first series last, so that it lies on top.
    for (series, (colour, dash)) in panel.series.iter().zip(STYLES).rev() {
        let path: Vec<String> = series.points.iter().map(|(n, r)| format!("{:.1} {:.1}", x(*n), y(*r))).collect();
        let _ = writeln!(
            text,
            "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\" stroke-dasharray=\"{dash}\"/>",
            path.join("L")
        );
        for (n, r) in &series.points {
            let _ = writeln!(text, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\" fill=\"{colour}\"/>", x(*n), y(*r));
        }
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
    use crate::lab::update_logs;

    #[test]
    fn figure_5_has_the_papers_shape() {
        let options = Options { grain_s: 60, min_gap_s: 0, ..Options::default() };
        let panel = panel(&update_logs::datis_like(24 * 40, 1), &options, Period::Hour, &[1, 2, 3, 4, 6]);
        let recall = |name: &str, polls: usize| {
            let series = panel.series.iter().find(|s| s.name == name).unwrap();
            series.points.iter().find(|p| p.0 == polls).unwrap().1
        };
        assert!(recall("optimal", 2) > 0.97 && recall("theoretical", 2) > 0.97);
        assert!(recall("uniform, mean of phases", 2) < 0.7);
        assert!((recall("optimal", 1) - 0.5).abs() < 0.02);
        let text = svg(&[panel]);
        assert!(text.starts_with("<svg") && text.ends_with("</svg>\n"));
        assert_eq!(text.matches("<g ").count(), text.matches("</g>").count());
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn titles_cannot_break_the_figure() {
        let panel = Panel { title: "<a & \"b\">".to_owned(), period: Period::Day, series: Vec::new(), ceiling: None };
        let text = svg(&[panel.clone(), panel.clone(), panel.clone(), panel]);
        assert!(text.contains("&lt;a &amp; &quot;b&quot;>"));
        assert!(svg(&[]).ends_with("</svg>\n"));
    }
}
