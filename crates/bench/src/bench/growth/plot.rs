//! Draws the plot of `cargo xtask bench --growth`: measurements as points, the cost model as lines,
//! on logarithmic axes.
use super::model::Model;
use super::{Point, RADII};
use crate::colours::{COLOURS, slim};
use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;

/// Width and height of the plot in pixels.
const SIZE: (u32, u32) = (900, 680);
/// Number of straight sections by which the line of the cost model is drawn.
const STEPS: u32 = 60;

/// Curve of one colour: a measured point for each number of rows (`points`), and a line through the
/// values that the cost model expects (`model`, a function of the number of rows). `name` is the
/// label in the legend, empty if the panel has only this curve.
struct Curve<'a> {
    name: String,
    points: Vec<f64>,
    model: Box<dyn Fn(f64) -> f64 + 'a>,
}

/// Returns an SVG with four panels, whose x axis is the number of rows: searches, build, size and
/// pairs.
pub fn draw(points: &[Point], model: &Model) -> Result<String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        panels(&root, points, model).map_err(|error| anyhow!("cannot draw: {error}"))?;
    }
    Ok(slim(&svg))
}

fn panels(
    root: &DrawingArea<SVGBackend, Shift>,
    points: &[Point],
    model: &Model,
) -> Result<(), Box<dyn Error>> {
    root.fill(&WHITE)?;
    let title = "Growth: points were measured, lines are the model's";
    let areas = root.titled(title, ("sans-serif", 18))?.split_evenly((2, 2));
    let of = |value: fn(&Point) -> f64| points.iter().map(value).collect::<Vec<f64>>();
    let searches = RADII.into_iter().enumerate().map(|(i, radius)| Curve {
        name: format!("radius {radius}"),
        points: points.iter().map(|point| point.probes[i] * 1e6).collect(),
        model: Box::new(move |rows| model.search(rows, radius) * 1e6),
    });
    let bytes_a_row = points
        .last()
        .map_or(0.0, |last| last.size / last.rows as f64);
    let one = |points, model| {
        let name = String::new();
        vec![Curve {
            name,
            points,
            model,
        }]
    };
    let drawn: [(&str, Vec<Curve>); 4] = [
        ("a search, microseconds", searches.collect()),
        (
            "CREATE INDEX, seconds",
            one(of(|point| point.build), Box::new(|rows| model.build(rows))),
        ),
        (
            "size of the index, MB",
            one(
                of(|point| point.size / 1e6),
                Box::new(move |rows| rows * bytes_a_row / 1e6),
            ),
        ),
        (
            "all pairs within radius 3, seconds",
            one(of(|point| point.pairs), Box::new(|rows| model.pairs(rows))),
        ),
    ];
    let rows = of(|point| point.rows as f64);
    for ((title, curves), area) in drawn.iter().zip(&areas) {
        panel(title, &rows, curves, area)?;
    }
    root.present()?;
    Ok(())
}

fn panel(
    title: &str,
    rows: &[f64],
    curves: &[Curve],
    area: &DrawingArea<SVGBackend, Shift>,
) -> Result<(), Box<dyn Error>> {
    let (from, to) = (rows[0] / 1.5, rows[rows.len() - 1] * 1.5);
    let lines: Vec<Vec<(f64, f64)>> = (curves.iter())
        .map(|curve| {
            let step = |i| from * (to / from).powf(f64::from(i) / f64::from(STEPS));
            let points = (0..=STEPS).map(step).map(|x| (x, (curve.model)(x)));
            points.collect()
        })
        .collect();
    let heights = || {
        let measured = curves.iter().flat_map(|curve| curve.points.iter().copied());
        measured.chain(lines.iter().flatten().map(|point| point.1))
    };
    let least = heights().fold(f64::INFINITY, f64::min) / 1.3;
    let most = heights().fold(0.0, f64::max) * 1.3;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(34)
        .y_label_area_size(52)
        .build_cartesian_2d((from..to).log_scale(), (least..most).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE.mix(0.0))
        .bold_line_style(BLACK.mix(0.12))
        .x_desc("rows")
        .x_label_formatter(&|rows| format!("{}M", rows / 1e6))
        .y_label_formatter(&|value| format!("{value}"))
        .draw()?;
    for (i, (curve, line)) in curves.iter().zip(lines).enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let drawn = chart.draw_series(LineSeries::new(line, colour.stroke_width(1)))?;
        if !curve.name.is_empty() {
            drawn
                .label(curve.name.clone())
                .legend(move |(x, y)| Circle::new((x + 10, y), 4, colour.filled()));
        }
        let points = rows.iter().copied().zip(curve.points.iter().copied());
        chart.draw_series(points.map(|point| Circle::new(point, 4, colour.filled())))?;
    }
    if curves.len() > 1 {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .border_style(BLACK.mix(0.2))
            .background_style(WHITE)
            .draw()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_all_points_and_lines() {
        let point = |rows: u64| Point {
            rows,
            build: rows as f64 * 1e-6,
            size: rows as f64 * 63.0,
            probes: [4e-6, 7e-5, 3e-4],
            found: [4.0, 6.0, 8.0],
            pairs: rows as f64 * 1e-7,
            pairs_found: 1,
        };
        let points = [100_000, 1_000_000, 10_000_000].map(point);
        let svg = draw(&points, &Model::fit(&points)).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        // Each of six curves has three points. The legend has three more.
        assert_eq!(svg.matches("<circle").count(), 3 * 6 + 3);
        for part in ["radius 12", "CREATE INDEX, seconds", "10M"] {
            assert!(svg.contains(part), "{part}");
        }
    }
}
