//! Tables that `cargo xtask eval` prints for a set: shares of pairs found, and precision and
//! recall.
use super::measure::{Distances, Quality, RADII};
use super::set::Set;
use std::fmt::Write;
use xtask::ui;

/// Similarity bands that are columns of the first table: lower bound, upper bound (exclusive) and
/// heading.
const COLUMNS: [(f32, f32, &str); 4] = [
    (0.95, f32::INFINITY, "J >= .95"),
    (0.9, 0.95, ".9 to .95"),
    (0.8, 0.9, ".8 to .9"),
    (0.6, 0.8, ".6 to .8"),
];
/// Shares of the dissimilar pairs that a search finds in error, in pairs per million. The first
/// table has a column for each of these shares. The column has the percentage of the similar pairs
/// that a search finds, if its radius is so large that it finds this share of the dissimilar pairs.
const FALSE_PAIRS_PER_MILLION: [f64; 2] = [1.0, 10.0];
/// Minimum Jaccard similarities of a duplicate, which are the columns of the second table.
const DUPLICATES: [f32; 5] = [0.5, 0.6, 0.7, 0.8, 0.9];
/// Width, in characters, of a column with shares.
const SHARES: usize = 19;
/// Width, in characters, of a column with pairs per million.
const COUNTS: usize = 24;

/// Returns the text above the tables of a set. It has the number of documents and the number of
/// pairs of each kind. It also has the mean difference between the similarities in `near.tsv` and
/// the similarities that neardup computes.
pub fn heading(set: &Set, measured: &Distances) -> String {
    let near = measured.between(0.0, f32::INFINITY).total();
    let (related, unrelated) = (measured.related.total(), measured.unrelated.total());
    let total = near + related + unrelated;
    let difference = set.mean_difference().map_or_else(String::new, |difference| {
        format!(
            "\nIts Jaccard similarities differ by {difference:.3} on average from those of three \
                words here"
        )
    });
    format!(
        "{}: {}, {} pairs; {} of known similarity, {} related less, {} unrelated{difference}",
        set.name,
        ui::plural(set.texts.len(), "document", "documents"),
        ui::number(total),
        ui::number(near),
        ui::number(related),
        ui::number(unrelated)
    )
}

/// Returns the first table of a set, with a line for each configuration. For each radius of
/// [`RADII`], a line has the percentage of the similar pairs that a search finds, and how many
/// unrelated and how many dissimilar pairs it finds per million. The last columns, one for each
/// number in [`FALSE_PAIRS_PER_MILLION`], compare configurations at the same rate of errors: they
/// have the percentage of the similar pairs at the radius that finds this number of dissimilar
/// pairs per million.
pub fn found(rows: &[(&str, &Distances)]) -> String {
    let name_width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut table = format!("{:name_width$}", "");
    let radii = RADII.map(|radius| radius.to_string()).join("/");
    let mut title = |text: &str, width| write!(table, "  {text:width$}").expect("to a string");
    for (_, _, name) in COLUMNS {
        title(name, SHARES);
    }
    title("unrelated", COUNTS);
    title("all not near", COUNTS);
    for wrong in FALSE_PAIRS_PER_MILLION {
        title(&format!("beside {wrong} ppm"), SHARES);
    }
    let _ = write!(table, "\n{:name_width$}", "");
    for _ in COLUMNS {
        let _ = write!(table, "  {:SHARES$}", format!("%, {radii}"));
    }
    for _ in 0..2 {
        let _ = write!(table, "  {:COUNTS$}", format!("ppm, {radii}"));
    }
    for _ in FALSE_PAIRS_PER_MILLION {
        let _ = write!(table, "  {:SHARES$}", "%, .95/.9/.8/.6");
    }
    for (name, measured) in rows {
        let _ = write!(table, "\n{name:name_width$}");
        let scaled = RADII.map(|radius| measured.scaled(radius));
        for (from, to, _) in COLUMNS {
            let pairs = measured.between(from, to);
            let share = |radius| percent(pairs.share_within(radius));
            let _ = write!(table, "  {:SHARES$}", scaled.map(share).join("/"));
        }
        for pairs in [measured.unrelated, measured.below()] {
            let _ = write!(
                table,
                "  {:COUNTS$}",
                scaled.map(|r| per_million(pairs.share_within(r))).join("/")
            );
        }
        for wrong in FALSE_PAIRS_PER_MILLION {
            let share = |(from, to, _)| percent(measured.found_beside(from, to, 1e-6 * wrong));
            let _ = write!(table, "  {:SHARES$}", COLUMNS.map(share).join("/"));
        }
    }
    trimmed(&table)
}

/// Returns the second table of a set. It has precision and recall for each minimum similarity in
/// [`DUPLICATES`], at the radius with the best F1. MinHash sketches estimate the similarity of two
/// texts. A configuration that makes them has a second line, with precision and recall at the
/// largest radius at which the estimate is at least the minimum similarity.
pub fn thresholds(rows: &[(&str, &Distances)]) -> String {
    const CELL: usize = 22;
    let estimated = "  as estimated";
    let names = rows.iter().map(|(name, _)| name.len());
    let name_width = names.max().unwrap_or(0).max(estimated.len());
    let mut table = format!("{:name_width$}", "");
    for duplicate in DUPLICATES {
        let _ = write!(table, "  {:CELL$}", format!("J >= {duplicate}"));
    }
    let _ = write!(table, "\n{:name_width$}", "");
    for _ in DUPLICATES {
        let _ = write!(table, "  {:CELL$}", "P/R = F1 at radius");
    }
    for (name, measured) in rows {
        let mut line = |name: &str, cells: [Option<(u32, Quality)>; DUPLICATES.len()]| {
            let _ = write!(table, "\n{name:name_width$}");
            for cell in cells {
                let text = cell.map_or_else(
                    || "-".to_owned(),
                    |(radius, q)| {
                        let (precision, recall) = (q.precision, q.recall);
                        format!("{precision:.2}/{recall:.2} = {:.3} at {radius}", q.f1())
                    },
                );
                let _ = write!(table, "  {text:CELL$}");
            }
        };
        line(name, DUPLICATES.map(|duplicate| measured.best(duplicate)));
        if measured.kind.radius_for_similarity(0.5).is_some() {
            let as_estimated = DUPLICATES.map(|duplicate| {
                let radius = measured.kind.radius_for_similarity(duplicate)?;
                Some((radius, measured.quality(duplicate, radius)?))
            });
            line(estimated, as_estimated);
        }
    }
    trimmed(&table)
}

/// Removes the spaces at the ends of the table's lines.
fn trimmed(table: &str) -> String {
    let lines = table.lines();
    lines
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// Returns a share as a percentage without decimals, or `-` for `None`.
fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.0}", 100.0 * share))
}

/// Returns a share in parts per million, with fewer decimals for larger numbers, or `-` for `None`.
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
    use super::super::configurations::{CONFIGURATIONS, Configuration};
    use super::*;
    use std::collections::{HashMap, HashSet};

    /// Set of two similar texts and an unrelated one.
    fn set() -> Set {
        Set {
            name: "tiny".to_owned(),
            texts: ["a b c d e f", "A, b c d e f!", "x y z u v w"]
                .map(str::to_owned)
                .to_vec(),
            near: HashMap::from([((0, 1), 1.0)]),
            ignored: HashSet::new(),
            listed: Vec::new(),
            cluster: vec![0, 0, 2],
        }
    }

    fn configuration(name: &str) -> &'static Configuration {
        let found = CONFIGURATIONS
            .iter()
            .find(|configuration| configuration.name == name);
        found.expect("a configuration of this name")
    }

    #[test]
    fn tables_say_what_was_found() {
        let set = set();
        let names = ["simhash word 2 sqrt", "minhash K=128 word 3"];
        let measured = names.map(|name| Distances::measure(&set, configuration(name)));
        let rows: Vec<_> = names.into_iter().zip(&measured).collect();
        assert_eq!(
            heading(&set, &measured[0]),
            "tiny: 3 documents, 3 pairs; 1 of known similarity, 0 related less, 2 unrelated\n\
             Its Jaccard similarities differ by 0.000 on average from those of three words here"
        );
        let words =
            |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
        let found = found(&rows);
        let lines: Vec<&str> = found.lines().collect();
        assert_eq!(lines.len(), 2 + names.len());
        let (none, zero) = ("-/-/-/-/-", "0/0/0/0/0");
        let all = "100/100/100/100/100";
        let beside = "100/-/-/-";
        for (line, name) in lines[2..].iter().zip(names) {
            let cells = words(line.strip_prefix(name).expect("its name"));
            assert_eq!(cells, [all, none, none, none, zero, zero, beside, beside]);
        }
        let thresholds = thresholds(&rows);
        let lines: Vec<&str> = thresholds.lines().collect();
        let found: Vec<_> = lines[2..].iter().map(|line| line.trim()).collect();
        let cell = |radius: u32| format!("1.00/1.00 = 1.000 at {radius}");
        let line = |name: &str, radii: [u32; 5]| {
            words(&(name.to_owned() + " " + &radii.map(cell).join(" ")))
        };
        assert_eq!(words(found[0]), line(names[0], [0; 5]));
        assert_eq!(words(found[1]), line(names[1], [0; 5]));
        assert_eq!(words(found[2]), line("as estimated", [64, 51, 38, 25, 12]));
        assert_eq!(found.len(), 3);
    }

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
