//! Histogram of the report page: pairs of rows by distance, as bars in SVG and as a table.
use std::fmt::Write;

use crate::data::{Bar, Measure, Report};
use crate::numbers::{
    count, counted, distance, distance_cells, distance_with_unit, estimate, within as within_radius,
};

// Size of the drawing and edges of its plot area, in units of the SVG drawing.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 46.0;
const TOP: f64 = 12.0;
const PLOT_RIGHT: f64 = WIDTH - 8.0;
const PLOT_BASE: f64 = HEIGHT - 44.0;
/// Maximum number of distances that are written below the bars. If there are more bars, the chart
/// shows the distance of only every second bar, or every third, and so on.
const MAX_LABELS: usize = 17;

/// Appends the chart of the report's histogram, and a table of the histogram's numbers, to the page
/// `html`.
pub fn push(html: &mut String, report: &Report) {
    html.push_str("<div class=\"chart-and-table\">\n<figure class=\"chart\">\n");
    push_svg(html, report);
    push_caption(html, report);
    html.push_str("</figure>\n");
    push_table(html, report);
    html.push_str("</div>\n");
}

/// Vertical scale of the chart. It is logarithmic, because the number of pairs grows exponentially
/// with the distance.
struct Scale {
    /// Exponent at the top of the scale: a bar of full height stands for 10^`tens` pairs.
    tens: u32,
}

impl Scale {
    fn new(bars: &[Bar]) -> Self {
        let most = bars.iter().map(|bar| bar.pairs).max().unwrap_or(0);
        let mut tens = 1;
        while tens < 19 && 10u64.pow(tens) < most {
            tens += 1;
        }
        Scale { tens }
    }

    /// Returns the vertical position of the top of a bar of `pairs` pairs.
    fn y(&self, pairs: u64) -> f64 {
        let share = match pairs {
            0 => 0.0,
            // A bar of one pair has half the height between two powers of ten.
            pairs => (0.5 + (pairs as f64).log10()) / (0.5 + f64::from(self.tens)),
        };
        PLOT_BASE - share.min(1.0) * (PLOT_BASE - TOP)
    }
}

fn push_svg(html: &mut String, report: &Report) {
    let scale = Scale::new(&report.histogram.bars);
    let _ = writeln!(
        html,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-labelledby=\"chart-title chart-desc\">\n\
         <title id=\"chart-title\">Pairs of rows by distance</title>\n\
         <desc id=\"chart-desc\">{}</desc>",
        description(report)
    );
    push_grid(html, &scale);
    push_bars(html, report, &scale);
    let _ = writeln!(
        html,
        "<path class=\"axis\" d=\"M{LEFT} {PLOT_BASE}H{PLOT_RIGHT}\"/>\n\
         <text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n</svg>",
        (LEFT + PLOT_RIGHT) / 2.0,
        HEIGHT - 6.0,
        unit(report.measure)
    );
}

/// Appends a grid line and a label for each power of ten. If there are many powers, appends a line
/// and a label only for every second or third power, and so on.
fn push_grid(html: &mut String, scale: &Scale) {
    let step = scale.tens.div_ceil(6);
    for tens in (0..=scale.tens).step_by(step as usize) {
        let y = scale.y(10u64.pow(tens));
        let _ = writeln!(
            html,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{PLOT_RIGHT}\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            y + 4.0,
            short(10u64.pow(tens))
        );
    }
}

/// Appends the bars with their margins of error, and the distances below some of them.
fn push_bars(html: &mut String, report: &Report, scale: &Scale) {
    let bars = &report.histogram.bars;
    let room = (PLOT_RIGHT - LEFT) / bars.len().max(1) as f64;
    let gap = (room * 0.2).min(6.0);
    let labels = bars.len().div_ceil(MAX_LABELS).max(1);
    for (index, bar) in bars.iter().enumerate() {
        let (x, y) = (LEFT + room * index as f64, scale.y(bar.pairs));
        if bar.pairs > 0 {
            let _ = writeln!(
                html,
                "<rect class=\"bar{}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" \
                 height=\"{:.1}\"/>",
                css_classes(report, bar),
                x + gap / 2.0,
                room - gap,
                PLOT_BASE - y
            );
        }
        if bar.margin > 0 {
            let [low, high] = [bar.pairs.saturating_sub(bar.margin), bar.pairs + bar.margin];
            let _ = writeln!(
                html,
                "<path class=\"range\" d=\"M{:.1} {:.1}V{:.1}\"/>",
                x + room / 2.0,
                scale.y(low),
                scale.y(high)
            );
        }
        if index % labels == 0 {
            let _ = writeln!(
                html,
                "<text class=\"tick{}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                if index / labels % 2 == 1 { " odd" } else { "" },
                x + room / 2.0,
                PLOT_BASE + 16.0,
                distance(report.measure, bar.distance)
            );
        }
    }
}

/// Returns the CSS classes of a bar. The class `within-N` means that the pairs of the bar are
/// within the radius `report.radii[N]`, so a bar can have several classes of this kind. The class
/// `chosen` means that they are within the radius that the page shows at first.
fn css_classes(report: &Report, bar: &Bar) -> String {
    let mut classes = String::new();
    for (number, radius) in report.radii.iter().enumerate() {
        if bar.distance <= radius.value + 1e-9 {
            let _ = write!(classes, " within-{number}");
        }
    }
    if bar.distance <= report.chosen_radius().value + 1e-9 {
        classes.push_str(" chosen");
    }
    classes
}

/// Returns `n`, a power of ten, as a label of the vertical axis, such as `10k`.
fn short(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{}k", n / 1_000),
        1_000_000..1_000_000_000 => format!("{}M", n / 1_000_000),
        n => format!("{}G", count(n / 1_000_000_000)),
    }
}

fn unit(measure: Measure) -> String {
    match measure {
        Measure::Bits(bits) => format!("bits of {bits} in which two fingerprints differ"),
        Measure::Estimated(bits) => {
            format!("estimated similarity in percent; a bar is one of {bits} bits")
        }
        Measure::Signatures => "estimated similarity of two signatures in percent".to_owned(),
    }
}

/// Returns the chart's description in words, for users of screen readers.
fn description(report: &Report) -> String {
    let bars = &report.histogram.bars;
    let radius = report.chosen_radius().value + 1e-9;
    let down_to = match report.measure {
        Measure::Bits(_) => "up to a distance of",
        Measure::Estimated(_) | Measure::Signatures => "down to",
    };
    format!(
        "{} pairs {down_to} {}, {} of them {}. The table beside it has all numbers.",
        sum(bars.iter()),
        bars.last().map_or_else(String::new, |bar| {
            distance_with_unit(report.measure, bar.distance)
        }),
        sum(bars.iter().filter(|bar| bar.distance <= radius)),
        within_radius(report.measure, report.chosen_radius().value)
    )
}

/// Returns the total number of pairs of some bars as text. A total that is an estimate has its
/// margin of error.
fn sum<'a>(bars: impl Iterator<Item = &'a Bar> + Clone) -> String {
    let pairs = bars.clone().map(|bar| bar.pairs).sum();
    // The errors of the bars are nearly independent, so their squares are added.
    let squares: f64 = bars.map(|bar| (bar.margin as f64).powi(2)).sum();
    estimate(pairs, squares.sqrt().ceil() as u64)
}

fn push_caption(html: &mut String, report: &Report) {
    html.push_str(
        "<figcaption>Pairs at each distance, on a logarithmic scale. <span class=\"key\">Coloured: \
         within the radius.</span>",
    );
    let histogram = &report.histogram;
    if histogram.has_estimates() {
        let counted = histogram.counted_up_to().map_or_else(String::new, |last| {
            let last = distance_with_unit(report.measure, last);
            format!(" All pairs are counted as far as {last}. Beyond that they are")
        });
        let estimated = match counted.is_empty() {
            true => " <strong>Estimated</strong>",
            false => " <strong>estimated</strong>",
        };
        let _ = write!(
            html,
            "{counted}{estimated} from a sample: {} were compared with all {}. The lines, and \
             \u{b1}, are the range that holds the true number in 95 cases of 100.",
            counted_rows(histogram.sample_rows.min(report.rows)),
            count(report.rows)
        );
    }
    html.push_str("</figcaption>\n");
}

fn counted_rows(rows: u64) -> String {
    counted(rows, "row", "rows")
}

fn push_table(html: &mut String, report: &Report) {
    let name = match report.measure {
        Measure::Bits(_) => "Distance",
        Measure::Estimated(_) => "Similarity</th><th scope=\"col\">Bits",
        Measure::Signatures => "Similarity",
    };
    let _ = writeln!(
        html,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Pairs by distance, \
         table\">\n<table>\n<caption>Pairs by distance</caption>\n<thead><tr>\
         <th scope=\"col\">{name}</th><th scope=\"col\">Pairs</th></tr></thead>\n<tbody>"
    );
    for bar in &report.histogram.bars {
        let _ = writeln!(
            html,
            "<tr class=\"row{}\">{}<td>{}</td></tr>",
            css_classes(report, bar),
            distance_cells(report.measure, bar.distance),
            estimate(bar.pairs, bar.margin)
        );
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
}
