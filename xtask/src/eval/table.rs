//! The measurements as a table.
use super::measure::{Distances, RADII};
use super::set::Set;
use crate::ui;
use std::fmt::Write;

/// Bands of similarity as columns.
const COLUMNS: [(f32, f32, &str); 4] = [
    (0.95, f32::INFINITY, "J >= .95"),
    (0.9, 0.95, ".9 to .95"),
    (0.8, 0.9, ".8 to .9"),
    (0.6, 0.8, ".6 to .8"),
];
/// Width of a column of shares, and of numbers of pairs.
const SHARES: usize = 19;
const COUNTS: usize = 24;

/// A heading that says what the set has.
pub fn heading(set: &Set, measured: &Distances) -> String {
    let near = measured.between(0.0, f32::INFINITY).total();
    let (related, unrelated) = (measured.related.total(), measured.unrelated.total());
    let total = near + related + unrelated;
    format!(
        "{}: {}, {} pairs; {} of known similarity, {} related less, {} unrelated",
        set.name,
        ui::plural(set.texts.len(), "document", "documents"),
        ui::number(total),
        ui::number(near),
        ui::number(related),
        ui::number(unrelated)
    )
}

/// The table of a set: for each choice the share of pairs found, in percent, and what is found in
/// error, of a million pairs, within each of the radii.
pub fn table(duplicate: f32, rows: &[(&str, &Distances)]) -> String {
    let name_width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut table = format!("{:name_width$}", "");
    let radii = RADII.map(|radius| radius.to_string()).join("/");
    let mut title = |text: &str, width| write!(table, "  {text:width$}").expect("to a string");
    for (_, _, name) in COLUMNS {
        title(name, SHARES);
    }
    title("unrelated", COUNTS);
    title("all not near", COUNTS);
    title(&format!("best F1 for J >= {duplicate}"), 0);
    let _ = write!(table, "\n{:name_width$}", "");
    for _ in COLUMNS {
        let _ = write!(table, "  {:SHARES$}", format!("%, {radii}"));
    }
    for _ in 0..2 {
        let _ = write!(table, "  {:COUNTS$}", format!("ppm, {radii}"));
    }
    for (name, measured) in rows {
        let _ = write!(table, "\n{name:name_width$}");
        let scaled = RADII.map(|radius| measured.scaled(radius));
        for (from, to, _) in COLUMNS {
            let pairs = measured.between(from, to);
            let share = |radius| match pairs.share_within(radius) {
                Some(share) => format!("{:.0}", 100.0 * share),
                None => "-".to_owned(),
            };
            let _ = write!(table, "  {:SHARES$}", scaled.map(share).join("/"));
        }
        for pairs in [measured.unrelated, measured.below()] {
            let _ = write!(
                table,
                "  {:COUNTS$}",
                scaled.map(|r| per_million(pairs.share_within(r))).join("/")
            );
        }
        if let Some((radius, quality)) = measured.best(duplicate) {
            let _ = write!(
                table,
                "  {:.3} at {radius}: precision {:.3}, recall {:.3}",
                quality.f1(),
                quality.precision,
                quality.recall
            );
        }
    }
    table
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// A share as a number of a million, with as many digits as mean something.
fn per_million(share: Option<f64>) -> String {
    match share.map(|share| 1e6 * share) {
        None => "-".to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(many) if many >= 9.95 => format!("{many:.0}"),
        Some(some) if some >= 0.095 => format!("{some:.1}"),
        Some(some) if some >= 0.0095 => format!("{some:.2}"),
        Some(few) => format!("{few:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_keep_their_digits() {
        let shown = [
            None,
            Some(0.0),
            Some(4e-9),
            Some(2.34e-8),
            Some(1.26e-6),
            Some(3.14e-4),
        ];
        assert_eq!(
            shown.map(per_million),
            ["-", "0", "0.004", "0.02", "1.3", "314"]
        );
    }
}
