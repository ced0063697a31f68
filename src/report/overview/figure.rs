//! Figures of the report as SVG: bars, lines, a map of the week, and how two shares stand to each other.
//!
//! Colours come from the style sheet, for light and dark. None stands alone: every series also has a pattern or dash and a
//! word in the legend, and every mark says its value.

use std::fmt::Write as _;

use crate::report::html::escape;

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 20.0;

/// One value for each place of the axis.
pub(super) struct Series<'a> {
    pub name: &'a str,
    pub values: Vec<f64>,
}

/// How values are written.
pub(super) type Written = fn(f64) -> String;

/// Bars over places, those of several series on top of each other.
pub(super) fn bars(title: &str, places: &[&str], series: &[Series<'_>], written: Written) -> String {
    let total = |i: usize| series.iter().map(|series| series.values[i]).sum::<f64>();
    let most = (0..places.len()).map(total).fold(0.0, f64::max);
    let scale = Scale::to(most);
    let step = (WIDTH - LEFT - RIGHT) / places.len().max(1) as f64;
    let mut marks = String::new();
    for (i, place) in places.iter().enumerate() {
        let x = LEFT + step * i as f64;
        let mut base = 0.0;
        let _ = write!(marks, "<g><title>{}: ", escape(place));
        let said: Vec<String> =
            series.iter().map(|series| format!("{} {}", series.name, written(series.values[i]))).collect();
        let _ = write!(marks, "{}</title>", escape(&said.join(", ")));
        for (number, series) in series.iter().enumerate() {
            let (top, bottom) = (scale.y(base + series.values[i]), scale.y(base));
            base += series.values[i];
            if bottom - top > 0.0 {
                let width = (step * 0.8).clamp(0.5, 40.0);
                let left = x + (step - width) / 2.0;
                let _ = write!(
                    marks,
                    "<rect class=\"s{number}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>",
                    bottom - top
                );
            }
        }
        marks.push_str("</g>\n");
    }
    chart(title, places, &scale, &marks, series, written, "bar")
}

/// Lines over places.
pub(super) fn lines(title: &str, places: &[&str], series: &[Series<'_>], written: Written) -> String {
    let most = series.iter().flat_map(|series| &series.values).copied().fold(0.0, f64::max);
    let scale = Scale::to(most);
    let step = (WIDTH - LEFT - RIGHT) / places.len().max(1) as f64;
    let x = |i: usize| LEFT + step * (i as f64 + 0.5);
    let mut marks = String::new();
    for (number, series) in series.iter().enumerate() {
        let points: Vec<String> =
            series.values.iter().enumerate().map(|(i, value)| format!("{:.1} {:.1}", x(i), scale.y(*value))).collect();
        let _ = write!(marks, "<path class=\"l{number}\" d=\"M{}\"/>", points.join("L"));
        for (i, value) in series.values.iter().enumerate() {
            let _ = write!(
                marks,
                "<circle class=\"p{number}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.4\"><title>{}: {} {}</title></circle>",
                x(i),
                scale.y(*value),
                escape(places[i]),
                series.name,
                written(*value)
            );
        }
        marks.push('\n');
    }
    chart(title, places, &scale, &marks, series, written, "line")
}

/// A scale from 0 to a round number.
struct Scale {
    top: f64,
}

impl Scale {
    fn to(most: f64) -> Self {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        let power = 10_f64.powf(most.log10().floor());
        let top =
            [1.0, 2.0, 2.5, 4.0, 5.0, 8.0, 10.0].map(|step| step * power).into_iter().find(|top| *top >= most * 0.999);
        Self { top: top.unwrap_or(most) }
    }

    fn y(&self, value: f64) -> f64 {
        let height = HEIGHT - TOP - BOTTOM;
        TOP + height * (1.0 - (value / self.top).clamp(0.0, 1.0))
    }
}

fn chart(
    title: &str,
    places: &[&str],
    scale: &Scale,
    marks: &str,
    series: &[Series<'_>],
    written: Written,
    kind: &str,
) -> String {
    let mut out = format!(
        "<figure class=\"chart\"><figcaption>{0}</figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"{0}\">",
        escape(title)
    );
    for part in [0.0, 0.5, 1.0] {
        let value = scale.top * part;
        let y = scale.y(value);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 5.0,
            y + 3.5,
            escape(&written(value))
        );
    }
    let step = (WIDTH - LEFT - RIGHT) / places.len().max(1) as f64;
    let longest = places.iter().map(|place| place.chars().count()).max().unwrap_or(0);
    // All names if there is room, else the first and the last.
    let room = longest as f64 * 6.2 <= step;
    for i in (0..places.len()).filter(|i| room || *i == 0 || i + 1 == places.len()) {
        let (x, class) = match i {
            _ if room => (LEFT + step * (i as f64 + 0.5), "middle"),
            0 => (LEFT, "start"),
            _ => (WIDTH - RIGHT, "end"),
        };
        let y = HEIGHT - 5.0;
        let _ = write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>", escape(places[i]));
    }
    let _ = write!(out, "{marks}</svg>");
    if series.len() > 1 {
        out.push_str("<ul class=\"legend\">");
        for (number, series) in series.iter().enumerate() {
            let key = match kind {
                "bar" => format!("<rect class=\"s{number}\" width=\"14\" height=\"10\"/>"),
                _ => format!("<path class=\"l{number}\" d=\"M0 5H14\"/>"),
            };
            let _ = write!(
                out,
                "<li><svg viewBox=\"0 0 14 10\" width=\"14\" height=\"10\" aria-hidden=\"true\">{key}</svg>{}</li>",
                escape(series.name)
            );
        }
        out.push_str("</ul>");
    }
    out.push_str("</figure>\n");
    out
}

/// The patterns that series are told apart by beside their colours: once in a file.
pub(super) const PATTERNS: &str = "<svg width=\"0\" height=\"0\" class=\"defs\" aria-hidden=\"true\"><defs>\
<pattern id=\"hatch\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
<rect class=\"h0\" width=\"4\" height=\"4\"/><path class=\"h1\" d=\"M0 0V4\"/></pattern>\
<pattern id=\"dots\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\">\
<rect class=\"d0\" width=\"4\" height=\"4\"/><circle class=\"d1\" cx=\"2\" cy=\"2\" r=\"0.9\"/></pattern></defs></svg>\n";

pub(super) const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Hours of the week: how much falls on each.
pub(super) fn week(title: &str, cells: &[Vec<f64>]) -> String {
    const CELL: f64 = 14.0;
    const LABEL: f64 = 30.0;
    let most = cells.iter().flatten().copied().fold(0.0, f64::max);
    let (width, height) = (LABEL + 24.0 * CELL, 7.0 * CELL + 16.0);
    let mut out = format!(
        "<figure class=\"chart week\"><figcaption>{0}</figcaption><svg viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"{0}\">",
        escape(title)
    );
    for (day, hours) in cells.iter().enumerate() {
        let y = day as f64 * CELL;
        let _ = write!(out, "<text x=\"{}\" y=\"{:.1}\" class=\"end\">{}</text>", LABEL - 5.0, y + 10.5, WEEKDAYS[day]);
        for (hour, value) in hours.iter().enumerate() {
            // Sixteen steps: enough to compare, and few enough to tell apart.
            let step = if most > 0.0 { (value / most * 16.0).ceil() } else { 0.0 };
            let _ = write!(
                out,
                "<rect class=\"w\" fill-opacity=\"{:.3}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"13\" height=\"13\" rx=\"2\">\
                 <title>{} {hour:02}:00: {value:.2}</title></rect>",
                0.06 + 0.94 * step / 16.0,
                LABEL + hour as f64 * CELL,
                WEEKDAYS[day]
            );
        }
        out.push('\n');
    }
    for hour in [0, 6, 12, 18] {
        let x = LABEL + f64::from(hour) * CELL;
        let _ = write!(out, "<text x=\"{x:.1}\" y=\"{:.1}\" class=\"start\">{hour:02}</text>", height - 4.0);
    }
    out.push_str("</svg></figure>\n");
    out
}

/// Two shares on one line: ours as a full mark, the other as a ring.
pub(super) fn pair(ours: Option<f64>, other: Option<f64>) -> String {
    let x = |share: f64| 5.0 + 90.0 * share.clamp(0.0, 1.0);
    let mut out = String::from(
        "<svg class=\"pair\" viewBox=\"0 0 100 12\" aria-hidden=\"true\"><path class=\"grid\" d=\"M5 6H95\"/>",
    );
    if let (Some(ours), Some(other)) = (ours, other) {
        let _ = write!(out, "<path class=\"gap\" d=\"M{:.1} 6H{:.1}\"/>", x(ours.min(other)), x(ours.max(other)));
    }
    if let Some(other) = other {
        let _ = write!(out, "<circle class=\"ring\" cx=\"{:.1}\" cy=\"6\" r=\"3.4\"/>", x(other));
    }
    if let Some(ours) = ours {
        let _ = write!(out, "<circle class=\"full\" cx=\"{:.1}\" cy=\"6\" r=\"3.4\"/>", x(ours));
    }
    out.push_str("</svg>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_whole_whatever_the_values() {
        let written: Written = |value| format!("{value:.1}");
        for values in [vec![], vec![0.0], vec![1.0, 0.0, 7.0], vec![1e12; 60]] {
            let names: Vec<String> = (0..values.len()).map(|i| format!("<{i}>")).collect();
            let places: Vec<&str> = names.iter().map(String::as_str).collect();
            let series =
                || [Series { name: "a", values: values.clone() }, Series { name: "b", values: values.clone() }];
            for figure in [bars("<t>", &places, &series(), written), lines("<t>", &places, &series(), written)] {
                assert!(figure.starts_with("<figure") && figure.ends_with("</figure>\n"));
                assert!(!figure.contains("NaN") && !figure.contains("inf") && !figure.contains("<t>"), "{figure}");
                assert_eq!(figure.matches("<svg").count(), figure.matches("</svg>").count());
            }
        }
        assert_eq!(week("w", &vec![vec![1.0; 24]; 7]).matches("<rect").count(), 168);
        assert!(!pair(None, None).contains("circle") && pair(Some(2.0), Some(-1.0)).matches("circle").count() == 2);
    }

    #[test]
    fn scales_end_at_round_numbers() {
        assert_eq!(
            [0.0, 1.0, 7.0, 66.0, 101.0, 0.03].map(|most| Scale::to(most).top),
            [1.0, 1.0, 8.0, 80.0, 200.0, 0.04]
        );
    }
}
