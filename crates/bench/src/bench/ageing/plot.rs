//! Draws the plot of `cargo xtask bench --ageing`: size, search time and insert time by month, with
//! a line for each simulation.
use super::{Month, Simulation};
use crate::colours::{COLOURS, slim};
use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;

/// Width and height of the plot in pixels.
const SIZE: (u32, u32) = (900, 620);

/// Title of a panel, function that returns its value for a month, and the first month to draw.
type Panel = (&'static str, fn(&Month) -> f64, usize);

/// Returns an SVG with four panels, whose x axis is the number of months.
pub fn draw(simulations: &[Simulation]) -> Result<String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        panels(&root, simulations).map_err(|error| anyhow!("cannot draw: {error}"))?;
    }
    Ok(slim(&svg))
}

fn panels(
    root: &DrawingArea<SVGBackend, Shift>,
    simulations: &[Simulation],
) -> Result<(), Box<dyn Error>> {
    root.fill(&WHITE)?;
    let areas = root.split_evenly((2, 2));
    let drawn: [Panel; 4] = [
        ("size, bytes per row", Month::bytes_per_row, 0),
        ("size, in relation to a new index", Month::size_ratio, 0),
        (
            "time of a search, in relation to a new index",
            Month::search_ratio,
            0,
        ),
        (
            "time of an insert, microseconds",
            |month| month.insert * 1e6,
            1,
        ),
    ];
    for (i, ((title, value, first), area)) in drawn.iter().zip(&areas).enumerate() {
        panel(title, simulations, *value, *first, i == 0, area)?;
    }
    root.present()?;
    Ok(())
}

/// Draws `value` of the months from `first` on. `with_legend` adds the names of the simulations.
fn panel(
    title: &str,
    simulations: &[Simulation],
    value: fn(&Month) -> f64,
    first: usize,
    with_legend: bool,
    area: &DrawingArea<SVGBackend, Shift>,
) -> Result<(), Box<dyn Error>> {
    let all = || {
        simulations
            .iter()
            .flat_map(|it| it.months.iter().skip(first).map(value))
    };
    let least = all().fold(f64::INFINITY, f64::min);
    let most = all().fold(0.0, f64::max);
    // The legend is above the lines.
    let above = if with_legend {
        0.18 * simulations.len() as f64
    } else {
        0.1
    };
    let margin = (most - least).max(0.05 * most);
    let last = simulations
        .iter()
        .map(|it| it.months.len() - 1)
        .max()
        .unwrap_or(1);
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(34)
        .y_label_area_size(48)
        .build_cartesian_2d(
            0.0..last as f64,
            (least - 0.1 * margin)..(most + above * margin),
        )?;
    chart
        .configure_mesh()
        .light_line_style(WHITE.mix(0.0))
        .bold_line_style(BLACK.mix(0.12))
        .x_desc("months")
        .x_label_formatter(&|months| format!("{months:.0}"))
        .draw()?;
    for (i, simulation) in simulations.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let points = (0..).zip(&simulation.months).skip(first);
        let line = points.map(|(month, it)| (f64::from(month), value(it)));
        let drawn = chart.draw_series(LineSeries::new(line, colour.stroke_width(2)))?;
        if with_legend {
            drawn
                .label(simulation.setup.label())
                .legend(move |(x, y)| Circle::new((x + 10, y), 4, colour.filled()));
        }
    }
    if with_legend {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .border_style(BLACK.mix(0.2))
            .background_style(WHITE.mix(0.8))
            .draw()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Setup};
    use super::*;

    #[test]
    fn a_picture_has_a_line_for_each_simulation() {
        let simulation = |fill| Simulation {
            setup: Setup {
                kind: Kind::Radius3,
                rows: 1000,
                turnover: 10,
                fill,
                months: 2,
            },
            months: (0..3)
                .map(|month| Month {
                    rows: 1000,
                    bytes: 50_000 + 1000 * month,
                    new_bytes: 50_000,
                    search: 4e-6,
                    new_search: 4e-6,
                    insert: 9e-6,
                    vacuum: 0.1,
                    vacuum_wal: 0,
                })
                .collect(),
        };
        let svg = draw(&[simulation(80), simulation(90)]).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for part in ["fillfactor 80", "fillfactor 90", "bytes per row", "months"] {
            assert!(svg.contains(part), "{part}");
        }
    }
}
