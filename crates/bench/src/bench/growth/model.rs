//! Cost model of `cargo xtask bench --growth`: computes the expected times of searches, pairs and
//! builds at any number of rows, from neardup's query plans.
use super::{Point, RADII};
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::pairs::PairPlan;
use neardup_blocktree::plan::Plan;

/// Numbers of rows at which the measured times determine the constants of the model. Times at other
/// numbers of rows check the model.
pub const FITTED: [u64; 2] = [1_000_000, 10_000_000];

/// Query plans of an index, and the constants that convert their costs to seconds.
pub struct Model {
    layout: BlockLayout<1>,
    /// Seconds that a search takes for each unit of its plan's cost. The cost is the number of leaf
    /// pages that the search reads, where a descent of the tree counts as several leaf pages.
    leaf: f64,
    /// Seconds that a search takes for each row that it finds.
    row: f64,
    /// Factor between the time of `neardup_pairs` and the time that its query plan estimates:
    /// measured seconds for each estimated second.
    pairs: f64,
    /// Average number of rows that a search finds, for each radius of [`RADII`].
    found: [f64; RADII.len()],
    /// Seconds that an index build takes for each row.
    build: f64,
}

impl Model {
    /// Fits the constants to the measurements in `points` whose number of rows is in [`FITTED`], or
    /// to all of `points` if none has such a number. Minimizes relative errors, so that short and
    /// long times have the same weight.
    ///
    /// # Panics
    ///
    /// If `points` is empty.
    pub fn fit(points: &[Point]) -> Self {
        let layout = measured_layout();
        let chosen: Vec<&Point> = points.iter().filter(|p| FITTED.contains(&p.rows)).collect();
        let chosen = match chosen.is_empty() {
            true => points.iter().collect(),
            false => chosen,
        };
        let searches = chosen.iter().flat_map(|point| {
            RADII.iter().enumerate().map(|(i, &radius)| {
                let cost = Plan::new(&layout, radius, point.rows as f64).cost();
                [cost, point.found[i], point.probes[i]]
            })
        });
        let (leaf, row) = fit_two(searches);
        let mean = |of: &dyn Fn(&Point) -> f64| {
            chosen.iter().map(|point| of(point)).sum::<f64>() / chosen.len() as f64
        };
        let pairs =
            mean(&|point| point.pairs / PairPlan::new(&layout, 3, point.rows as f64).cost * 1e9);
        let build = mean(&|point| point.build / point.rows as f64);
        Self {
            layout,
            leaf,
            row,
            pairs,
            found: chosen[0].found,
            build,
        }
    }

    /// Returns the expected seconds of one search within `radius` bits among `rows` rows. If the
    /// radius is not one of [`RADII`], does not include the time for the rows found, because their
    /// number is unknown.
    pub fn search(&self, rows: f64, radius: u32) -> f64 {
        let found = (RADII.iter().position(|&other| other == radius))
            .map_or(0.0, |radius| self.found[radius]);
        self.leaf * Plan::new(&self.layout, radius, rows).cost() + self.row * found
    }

    /// Returns the expected seconds of `neardup_pairs` within radius 3 over `rows` rows.
    pub fn pairs(&self, rows: f64) -> f64 {
        self.pairs * PairPlan::new(&self.layout, 3, rows).cost / 1e9
    }

    /// Returns the expected seconds of an index build over `rows` rows.
    pub fn build(&self, rows: f64) -> f64 {
        self.build * rows
    }

    /// Returns a sentence with the constants of the model, to be printed below the table.
    pub fn sentence(&self) -> String {
        format!(
            "Model, from 1 and 10 million rows: {:.2} us for each leaf of the plan, {:.2} us for \
             each row found; {:.2} of the estimate of pairs; {:.2} us a row to build.",
            self.leaf * 1e6,
            self.row * 1e6,
            self.pairs,
            self.build * 1e6
        )
    }
}

/// Returns the block layout of the measured index, which has radius 3 and four blocks.
pub fn measured_layout() -> BlockLayout<1> {
    BlockLayout::new(3, 4).unwrap_or_else(|_| unreachable!("four blocks are within all limits"))
}

/// Returns the factors `a` and `b`, at least 0, that minimize the sum of squared relative errors of
/// `a * x + b * y` as an estimate of `z`, over all `[x, y, z]`.
fn fit_two(all: impl Iterator<Item = [f64; 3]>) -> (f64, f64) {
    let (mut xx, mut xy, mut yy, mut x1, mut y1) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for [x, y, z] in all {
        let (x, y) = (x / z, y / z);
        xx += x * x;
        xy += x * y;
        yy += y * y;
        x1 += x;
        y1 += y;
    }
    let determinant = xx * yy - xy * xy;
    let (a, b) = (
        (x1 * yy - y1 * xy) / determinant,
        (y1 * xx - x1 * xy) / determinant,
    );
    // If a factor would be negative or cannot be determined, `z` is estimated from `x` alone.
    match determinant > f64::EPSILON * xx * yy && a >= 0.0 && b >= 0.0 {
        true => (a, b),
        false => (x1 / xx, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_factors_are_found_again() {
        let points = [[1.0, 4.0], [10.0, 6.0], [100.0, 5.0]];
        let (a, b) = fit_two(points.iter().map(|&[x, y]| [x, y, 0.5 * x + 0.25 * y]));
        assert!((a - 0.5).abs() < 1e-9 && (b - 0.25).abs() < 1e-9, "{a} {b}");
        // `z` grows with `x` and `y`, but less than in proportion.
        let (a, b) = fit_two([[1.0, 1.0, 1.0], [2.0, 4.0, 1.5]].into_iter());
        assert!(a >= 0.0 && b >= 0.0, "{a} {b}");
    }

    #[test]
    fn a_model_reproduces_times_of_its_own_kind() {
        let layout = measured_layout();
        let point = |rows: u64| {
            let rows_f = rows as f64;
            let found = [4.0, 6.0, 8.0];
            let search =
                |i: usize| 1e-7 * Plan::new(&layout, RADII[i], rows_f).cost() + 2e-7 * found[i];
            Point {
                rows,
                build: 4e-7 * rows_f,
                size: 63.0 * rows_f,
                probes: [search(0), search(1), search(2)],
                found,
                pairs: 1.5 * PairPlan::new(&layout, 3, rows_f).cost / 1e9,
                pairs_found: 1,
            }
        };
        let points = [100_000, 1_000_000, 10_000_000, 100_000_000].map(point);
        let model = Model::fit(&points);
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
        for point in &points {
            let rows = point.rows as f64;
            for (i, radius) in RADII.into_iter().enumerate() {
                assert!(near(model.search(rows, radius), point.probes[i]));
            }
            assert!(near(model.pairs(rows), point.pairs));
            assert!(near(model.build(rows), point.build));
        }
    }
}
