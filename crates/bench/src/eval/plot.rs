//! Draws the measurements of `cargo xtask eval` as curves, one SVG file per question and one panel
//! per set of documents.
use super::Measured;
use super::configurations::Configuration;
use super::measure::{BANDS, Distances, RADII};
use crate::colours::{COLOURS, slim};
use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Axes = Cartesian2d<RangedCoordf64, RangedCoordf64>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Axes>;

/// Width and height, in pixels, of the panel with the curves of one set.
const PANEL: (u32, u32) = (360, 300);
/// Number of panels in a row of a picture.
const ACROSS: u32 = 3;
/// Start of the logarithmic axis of `false.svg`, in pairs per million. Smaller values, and zero,
/// are drawn at this position, because a logarithmic axis has no zero.
const FEWEST: f64 = 1e-3;

/// Curve of a panel, with the name that the legend shows.
struct Curve {
    name: String,
    /// Index of the curve's colour in [`COLOURS`].
    colour: usize,
    points: Vec<(f64, f64)>,
    /// Points of the curve that are drawn as dots.
    marks: Vec<(f64, f64)>,
}

/// SVG file with one panel for each set, all with the same axes.
struct Picture {
    file: &'static str,
    title: String,
    x: Axis,
    y: Axis,
    curves: Curves,
}

/// Function that returns the curves of one set. The arguments are the distances of each
/// configuration on this set, and the minimum Jaccard similarity of a duplicate.
type Curves = fn(&[(&Configuration, &Distances)], f32) -> Vec<Curve>;

struct Axis {
    title: &'static str,
    from: f64,
    to: f64,
    /// True if the axis shows powers of ten, and the values are their exponents.
    logarithmic: bool,
}

/// Draws all pictures. Returns pairs of a file name and its SVG text. `duplicate` is the minimum
/// Jaccard similarity of a duplicate in the curves of precision and recall.
pub fn plots(all: &[Measured], duplicate: f32) -> Result<Vec<(&'static str, String)>> {
    let share = |title, from| Axis {
        title,
        from,
        to: 1.0,
        logarithmic: false,
    };
    let pictures = [
        Picture {
            file: "found.svg",
            title: "Share of pairs found within 3, 6 and 10 of 64 bits, by their similarity"
                .to_owned(),
            x: share("Jaccard similarity", 0.4),
            y: share("found", 0.0),
            curves: found,
        },
        Picture {
            file: "precision-recall.svg",
            title: format!("Precision and recall of pairs with J >= {duplicate}, over all radii"),
            x: share("recall", 0.0),
            y: share("precision", 0.0),
            curves: precision_recall,
        },
        Picture {
            file: "f1.svg",
            title: "Best F1 that any radius reaches, by the similarity that makes a duplicate"
                .to_owned(),
            x: share("a duplicate from this Jaccard similarity on", 0.45),
            y: share("F1", 0.0),
            curves: best_f1,
        },
        Picture {
            file: "false.svg",
            title: "Pairs with J from .8 to .9 found, and pairs below .4 found with them"
                .to_owned(),
            x: Axis {
                title: "pairs below .4 found, of a million",
                from: FEWEST.log10(),
                to: 4.0,
                logarithmic: true,
            },
            y: share("found", 0.0),
            curves: false_pairs,
        },
    ];
    let drawn = pictures.iter().map(|picture| {
        let svg = draw(picture, all, duplicate).map_err(|e| anyhow!("{}: {e}", picture.file))?;
        Ok((picture.file, svg))
    });
    drawn.collect()
}

fn draw(
    picture: &Picture,
    all: &[Measured],
    duplicate: f32,
) -> Result<String, Box<dyn std::error::Error>> {
    let panels = all.len() as u32 + 1;
    let rows = panels.div_ceil(ACROSS);
    let size = (PANEL.0 * ACROSS.min(panels), PANEL.1 * rows + 30);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE)?;
        let root = root.titled(&picture.title, ("sans-serif", 18))?;
        let areas = root.split_evenly((rows as usize, ACROSS.min(panels) as usize));
        let mut names: Vec<(String, usize)> = Vec::new();
        for (measured, area) in all.iter().zip(&areas) {
            let plotted = measured
                .rows
                .iter()
                .filter(|(configuration, _)| configuration.plotted);
            let rows: Vec<(&Configuration, &Distances)> = plotted.map(|(c, d)| (*c, d)).collect();
            let curves = (picture.curves)(&rows, duplicate);
            panel(picture, &measured.name, &curves, area)?;
            for curve in curves {
                if !names.iter().any(|(name, _)| *name == curve.name) {
                    names.push((curve.name, curve.colour));
                }
            }
        }
        legend(&names, &areas[all.len()])?;
        root.present()?;
    }
    Ok(slim(&svg))
}

fn panel(
    picture: &Picture,
    name: &str,
    curves: &[Curve],
    area: &Area,
) -> Result<(), Box<dyn std::error::Error>> {
    let (x, y) = (&picture.x, &picture.y);
    let mut chart: Chart = ChartBuilder::on(area)
        .caption(name, ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(34)
        .y_label_area_size(42)
        .build_cartesian_2d(x.from..x.to, y.from..y.to)?;
    let label = |axis: &Axis| {
        let logarithmic = axis.logarithmic;
        move |value: &f64| match (logarithmic, *value) {
            (true, power) => format!("{}", 10f64.powf(power.round())),
            (false, value) => format!("{value:.1}"),
        }
    };
    chart
        .configure_mesh()
        .light_line_style(WHITE.mix(0.0))
        .bold_line_style(BLACK.mix(0.12))
        .x_labels(if x.logarithmic { 8 } else { 6 })
        .y_labels(6)
        .x_desc(x.title)
        .y_desc(y.title)
        .x_label_formatter(&label(x))
        .y_label_formatter(&label(y))
        .draw()?;
    for curve in curves {
        let colour = COLOURS[curve.colour % COLOURS.len()];
        let inside = |point: &&(f64, f64)| point.0 >= x.from && point.0 <= x.to;
        let points = curve.points.iter().filter(inside).copied();
        chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
        let marks = curve.marks.iter().filter(inside);
        chart.draw_series(marks.map(|point| Circle::new(*point, 3, colour.filled())))?;
    }
    Ok(())
}

fn legend(names: &[(String, usize)], area: &Area) -> Result<(), Box<dyn std::error::Error>> {
    for (row, (name, colour)) in names.iter().enumerate() {
        let y = 60 + 24 * row as i32;
        let colour = COLOURS[colour % COLOURS.len()];
        area.draw(&PathElement::new(
            [(30, y), (70, y)],
            colour.stroke_width(3),
        ))?;
        area.draw(&Text::new(name.clone(), (80, y - 7), ("sans-serif", 14)))?;
    }
    Ok(())
}

/// Returns the curves of `found.svg`: the share of pairs found, by similarity. There is a curve for
/// each of two configurations and each of three radii: 3, 6 and 10 bits of 64.
fn found(rows: &[(&Configuration, &Distances)], _: f32) -> Vec<Curve> {
    let shown = rows.iter().filter(|(configuration, _)| {
        ["simhash word 2 sqrt", "minhash64 word 3"].contains(&configuration.name)
    });
    let mut curves = Vec::new();
    for (configuration, measured) in shown {
        for radius in [RADII[0], RADII[1], RADII[3]] {
            let bands = BANDS.iter().zip(&measured.bands).rev().skip(1);
            let points = bands.filter_map(|(bound, pairs)| {
                let share = pairs.share_within(measured.scaled(radius))?;
                Some((f64::from(*bound) + 0.025, share))
            });
            let points: Vec<_> = points.collect();
            curves.push(Curve {
                name: format!("{}, {radius} bits", configuration.name),
                colour: curves.len(),
                marks: points.clone(),
                points,
            });
        }
    }
    curves
}

fn best_f1(rows: &[(&Configuration, &Distances)], _: f32) -> Vec<Curve> {
    let curves = rows
        .iter()
        .enumerate()
        .map(|(colour, (configuration, measured))| {
            let bounds = BANDS[..BANDS.len() - 1].iter();
            let points = bounds.filter_map(|bound| {
                let (_, quality) = measured.best(*bound)?;
                Some((f64::from(*bound), quality.f1()))
            });
            let points: Vec<_> = points.collect();
            Curve {
                name: configuration.name.to_owned(),
                colour,
                marks: points.clone(),
                points,
            }
        });
    curves.collect()
}

fn precision_recall(rows: &[(&Configuration, &Distances)], duplicate: f32) -> Vec<Curve> {
    let point = |measured: &Distances, radius| {
        let quality = measured.quality(duplicate, radius)?;
        Some((quality.recall, quality.precision))
    };
    over_radii(rows, point)
}

fn false_pairs(rows: &[(&Configuration, &Distances)], _: f32) -> Vec<Curve> {
    let point = |measured: &Distances, radius| {
        let found = measured.between(0.8, 0.9).share_within(radius)?;
        let wrong = 1e6 * measured.below().share_within(radius)?;
        Some((wrong.max(FEWEST).log10(), found))
    };
    over_radii(rows, point)
}

/// Returns a curve for each configuration, with one point for each possible radius. `point` returns
/// the coordinates of the point for a radius, or `None` if there is no such point. Dots mark the
/// radii of [`RADII`].
fn over_radii(
    rows: &[(&Configuration, &Distances)],
    point: impl Fn(&Distances, u32) -> Option<(f64, f64)>,
) -> Vec<Curve> {
    let curves = rows
        .iter()
        .enumerate()
        .map(|(colour, (configuration, measured))| Curve {
            name: configuration.name.to_owned(),
            colour,
            points: (0..=measured.kind.width())
                .filter_map(|radius| point(measured, radius))
                .collect(),
            marks: RADII
                .iter()
                .filter_map(|radius| point(measured, measured.scaled(*radius)))
                .collect(),
        });
    curves.collect()
}

#[cfg(test)]
mod tests {
    use super::super::configurations::CONFIGURATIONS;
    use super::super::set::Set;
    use super::*;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn pictures_show_every_set_and_configuration() {
        let set = Set {
            name: "tiny".to_owned(),
            texts: ["a b c d e f", "a b c d e g", "x y z"]
                .map(str::to_owned)
                .to_vec(),
            near: HashMap::from([((0, 1), 0.85)]),
            ignored: HashSet::new(),
            listed: Vec::new(),
            cluster: vec![0, 0, 2],
        };
        let rows = CONFIGURATIONS
            .iter()
            .map(|configuration| (configuration, Distances::measure(&set, configuration)));
        let measured = Measured {
            name: set.name.clone(),
            rows: rows.collect(),
        };
        let plots = plots(&[measured], 0.8).unwrap();
        assert_eq!(plots.len(), 4);
        for (file, svg) in plots {
            assert!(
                svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
                "{file}"
            );
            for part in ["tiny", "minhash64 word 3", "<polyline", "<circle"] {
                assert!(svg.contains(part), "{file} lacks {part}");
            }
        }
    }
}
