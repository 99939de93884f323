//! Draws tables of the page of benchmarks as bar plots, so that each plot has the numbers of its
//! table.
use anyhow::{Context, Result, ensure};
use std::fmt::Write;
use std::fs;
use std::path::Path;

const PAGE: &str = "docs/benchmarks.md";
// Sizes in pixels. The plots are narrow, so that their text is legible on a phone.
const WIDTH: f64 = 540.0;
/// Left edge of the bars. Labels are left of it.
const LEFT: f64 = 184.0;
const RIGHT: f64 = WIDTH - 70.0;
/// Lower edge of the title.
const TOP: f64 = 32.0;
const LINE_HEIGHT: f64 = 18.0;
/// Colours of neardup's bars and of other bars, on a white background.
const COLOURS: [&str; 2] = ["#0072b2", "#a4a9af"];

/// Bar plot of a table.
struct Plot {
    /// Path of the SVG file from the workspace's root.
    file: &'static str,
    title: &'static str,
    /// First line of the table. It determines the cells that `bars` uses.
    head: &'static str,
    /// Returns the bars of a row. The arguments are the cells of the table's head and of the row.
    bars: fn(&[String], &[String]) -> Vec<Bar>,
    logarithmic: bool,
}

struct Bar {
    /// Heading above the bars with the same group.
    group: String,
    label: String,
    /// Number as the table shows it, empty if there is none.
    value: String,
    is_neardup: bool,
}

const PLOTS: [Plot; 3] = [
    Plot {
        file: "docs/images/search-times.svg",
        title: "Time of a search in microseconds (lines: powers of ten)",
        head: "| rows | radius | neardup | 4 btree, OR | 4 btree, permuted | one btree | scan |",
        bars: |heads, row| {
            let bars = [2, 3, 4, 6].map(|column| Bar {
                group: format!("{} rows, radius {}", row[0], row[1]),
                label: heads[column].clone(),
                value: row[column].clone(),
                is_neardup: column == 2,
            });
            bars.into()
        },
        logarithmic: true,
    },
    Plot {
        file: "docs/images/text-speeds.svg",
        title: "From text to fingerprints: MB per second of CPU time",
        head: "| features | neardup | 3.9 kB | ClickHouse | 1.2 kB | ClickHouse | 0.55 kB | \
               ClickHouse |",
        bars: |heads, row| {
            let compared = [2, 4, 6].into_iter().filter(|at| !row[at + 1].is_empty());
            let bars = compared.flat_map(|at| {
                [("neardup", at), ("ClickHouse", at + 1)].map(|(label, column)| Bar {
                    group: format!("{}, texts of {}", row[0], heads[at]),
                    label: label.to_owned(),
                    value: row[column].clone(),
                    is_neardup: column == at,
                })
            });
            bars.collect()
        },
        logarithmic: false,
    },
    Plot {
        file: "docs/images/cluster-speeds.svg",
        title: "From text to clusters: documents per second of CPU time",
        head: "| documents | by | time | documents/s | ratio | recall | precision |",
        bars: |_, row| {
            vec![Bar {
                group: format!("{} documents", row[0]),
                label: row[1].replace('`', ""),
                value: row[3].clone(),
                is_neardup: row[1].contains("(body)"),
            }]
        },
        logarithmic: false,
    },
];

/// Returns the path of each plot with the SVG text that it should have.
///
/// # Errors
/// If the page lacks a table, or a cell that should contain a number does not.
pub fn files(root: &Path) -> Result<Vec<(String, String)>> {
    let page = fs::read_to_string(root.join(PAGE)).with_context(|| PAGE.to_owned())?;
    let drawn = PLOTS.iter().map(|plot| {
        let svg = draw(plot, &page).with_context(|| format!("{PAGE}: {}", plot.file))?;
        Ok((plot.file.to_owned(), svg))
    });
    drawn.collect()
}

/// Returns the SVG text of a plot. `page` is the Markdown text that contains its table.
fn draw(plot: &Plot, page: &str) -> Result<String> {
    let bars = bars(plot, page)?;
    let numbers = bars.iter().map(number).collect::<Result<Vec<f64>>>()?;
    let scale = Scale {
        maximum: numbers.iter().copied().fold(1.0, f64::max),
        logarithmic: plot.logarithmic,
    };
    let (mut description, mut body) = (String::new(), String::new());
    let mut y = TOP;
    let mut group = "";
    for (bar, number) in bars.iter().zip(numbers) {
        if bar.group != group {
            group = &bar.group;
            y += 1.4 * LINE_HEIGHT;
            let baseline = y - 5.0;
            writeln!(
                body,
                "<text x=\"12\" y=\"{baseline:.1}\" font-weight=\"bold\">{group}</text>"
            )?;
            write!(description, "\n{group}: ")?;
        } else {
            description += ", ";
        }
        write!(description, "{} {}", bar.label, bar.value)?;
        push_bar(&mut body, bar, y, scale.length(number))?;
        y += LINE_HEIGHT;
    }
    let (title, height) = (plot.title, y + 14.0);
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
         width=\"{WIDTH}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"13\" \
         fill=\"#333333\" role=\"img\" aria-labelledby=\"title desc\">\n\
         <title id=\"title\">{title}</title>\n<desc id=\"desc\">{description}\n</desc>\n\
         <rect width=\"{WIDTH}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n\
         <text x=\"12\" y=\"22\" font-size=\"15\">{title}</text>\n{}{body}</svg>\n",
        scale.grid(y)
    ))
}

/// Appends a bar between its label and its number. `y` is the top of the bar's line.
fn push_bar(svg: &mut String, bar: &Bar, y: f64, length: f64) -> Result<()> {
    let colour = COLOURS[usize::from(!bar.is_neardup)];
    let Bar { label, value, .. } = bar;
    writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{baseline:.1}\" text-anchor=\"end\">{label}</text>\n\
         <rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{:.1}\" \
         fill=\"{colour}\"/>\n\
         <text x=\"{:.1}\" y=\"{baseline:.1}\">{value}</text>",
        LEFT - 8.0,
        y + 2.0,
        LINE_HEIGHT - 4.0,
        LEFT + length + 6.0,
        baseline = y + 13.0,
    )?;
    Ok(())
}

/// Horizontal scale of a plot. A logarithmic scale begins at 1.
struct Scale {
    maximum: f64,
    logarithmic: bool,
}

impl Scale {
    fn length(&self, number: f64) -> f64 {
        let share = match self.logarithmic {
            true => number.log10() / self.maximum.log10(),
            false => number / self.maximum,
        };
        share * (RIGHT - LEFT)
    }

    /// Returns a line at each power of ten if the scale is logarithmic. `base` is the lower end of
    /// the lines.
    fn grid(&self, base: f64) -> String {
        let powers = std::iter::successors(Some(1.0), |power| Some(power * 10.0));
        let shown = powers.take_while(|power| self.logarithmic && *power <= self.maximum);
        let lines = shown.map(|power| {
            let x = LEFT + self.length(power);
            format!("<path d=\"M{x:.1} {TOP}V{base:.1}\" stroke=\"#dddddd\"/>\n")
        });
        lines.collect()
    }
}

/// Returns the bars of a plot in the order of the table.
fn bars(plot: &Plot, page: &str) -> Result<Vec<Bar>> {
    let mut lines = page.lines().skip_while(|line| *line != plot.head);
    let heads = cells(
        lines
            .next()
            .with_context(|| format!("no table {}", plot.head))?,
    );
    let mut bars = Vec::new();
    let mut first = String::new();
    for line in lines.skip(1).take_while(|line| line.starts_with('|')) {
        let mut row = cells(line);
        ensure!(row.len() == heads.len(), "wrong number of cells: {line}");
        // An empty first cell stands for the cell above it.
        if row[0].is_empty() {
            row[0].clone_from(&first);
        }
        first.clone_from(&row[0]);
        bars.extend((plot.bars)(&heads, &row));
    }
    bars.retain(|bar| !bar.value.is_empty());
    Ok(bars)
}

/// Returns the cells of a line of a table as XML text.
fn cells(line: &str) -> Vec<String> {
    let text = line.replace('&', "&amp;").replace('<', "&lt;");
    let cells = text.trim_matches('|').split('|');
    cells.map(|cell| cell.trim().to_owned()).collect()
}

/// Returns the length of a bar in the unit of the plot.
fn number(bar: &Bar) -> Result<f64> {
    let value = &bar.value;
    let number = value.replace(',', "").parse();
    let number: f64 = number.with_context(|| format!("{value:?} is not a number"))?;
    ensure!(number >= 1.0, "no bar for a value below 1: {value}");
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\n|---|---|---:|---:|---:|---:|---:|\n\
        | 1M | 3 | 10 | 100 | | 7 | 1,000 |\n| | 6 | 31.6 | | | | 900 |\n\nText.\n| 2M | 3 |\n";

    #[test]
    fn bars_have_the_numbers_of_the_table() -> Result<()> {
        let plot = &PLOTS[0];
        let page = format!("# Page\n\n{}{TABLE}", plot.head);
        let svg = draw(plot, &page)?;
        let description = "\n1M rows, radius 3: neardup 10, 4 btree, OR 100, scan 1,000\n\
                           1M rows, radius 6: neardup 31.6, scan 900\n";
        assert!(svg.contains(description), "{svg}");
        assert!(svg.contains(">31.6</text>"), "{svg}");
        // The axis is logarithmic, and 1,000 is the maximum.
        let full = RIGHT - LEFT;
        for width in [full / 3.0, full * 2.0 / 3.0, full] {
            assert!(
                svg.contains(&format!(" width=\"{width:.1}\" height")),
                "{width} {svg}"
            );
        }
        assert!(!svg.contains("2M"), "{svg}");
        Ok(())
    }

    #[test]
    fn a_table_that_cannot_be_drawn_is_an_error() {
        let plot = &PLOTS[0];
        let page = format!("{}{TABLE}", plot.head);
        for (from, to) in [
            ("| rows |", "| lines |"),
            ("| 10 |", "| ten |"),
            ("| 10 |", "| 0.5 |"),
            ("| 10 |", "|"),
        ] {
            assert!(draw(plot, &page.replace(from, to)).is_err(), "{to}");
        }
        assert!(draw(plot, &page).is_ok());
    }
}
