//! Colours of the plots that the benchmark and the evaluation draw, and compact SVG output.
use plotters::style::RGBColor;

/// Colours of the curves. Most people can tell them apart (Okabe, Ito, 2008), also on white and on
/// grey paper.
pub const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];

/// Returns `svg` without attributes that state a default value. They are a sixth of the file.
pub fn slim(svg: &str) -> String {
    svg.replace(" opacity=\"1\"", "")
        .replace(" stroke=\"none\"", "")
}
