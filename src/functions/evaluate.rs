//! `neardup_evaluate(distances, duplicates, weights, max_loss)`: precision and recall of each
//! radius, computed from labelled pairs.
use neardup_sketch::memory::GrowVec;
use pgrx::pg_sys::Datum;

use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::memory::check_interrupts;
use neardup_pg::srf::SetReturning;

/// Pair of documents that a user has labelled as duplicates or not.
#[derive(Clone, Copy)]
struct Pair {
    /// Distance of the pair, or infinity if it is not known.
    distance: f64,
    /// True if the pair is labelled as duplicates.
    duplicate: bool,
    /// Number of pairs that this pair represents.
    weight: f64,
}

/// Row of the result: the pairs within one radius.
struct Line {
    radius: f64,
    /// Number of labelled pairs within the radius.
    pairs: i64,
    /// Number of labelled pairs within the radius that are duplicates.
    duplicates: i64,
    /// Share of the pairs within the radius that are duplicates, by weight. `None` if the weights
    /// of the pairs within the radius add up to 0.
    precision: Option<f64>,
    /// Share of all duplicates that are within the radius, by weight. `None` if the weights of all
    /// duplicates add up to 0.
    recall: Option<f64>,
    /// Harmonic mean of precision and recall (F1). `None` if the weights of all duplicates and of
    /// all pairs within the radius are 0.
    f1: Option<f64>,
}

/// Allowance for rounding errors in a recall, which is a quotient of sums of weights. A recall is
/// sufficient if it is below the required recall by at most this number.
const ROUNDING: f64 = 1e-9;

/// `neardup_evaluate(distances, duplicates, weights, max_loss)`: one row for each radius, with its
/// precision and recall. If the array `weights` is NULL, all weights are 1. Ignores pairs without a
/// label. A pair without a distance is not within any radius. With `max_loss`, returns only the
/// smallest radius that misses at most this share of the duplicates.
fn evaluate(call: &mut Call) -> Datum {
    call.return_set(|call| {
        let max_loss = max_loss(call);
        let mut lines = lines(pairs(call));
        if let Some(max_loss) = max_loss {
            let min_recall = 1.0 - max_loss - ROUNDING;
            lines.retain(|line| line.recall.is_some_and(|recall| recall >= min_recall));
            lines.truncate(1);
        }
        Lines {
            lines: lines.into_iter(),
        }
    })
}

/// Returns the argument `max_loss`, or `None` if it is NULL. Raises an error unless it is between 0
/// and 1.
fn max_loss(call: &Call) -> Option<f64> {
    let given = (!call.is_null(3)).then(|| call.float8(3))?;
    if !(0.0..=1.0).contains(&given) {
        UserError::invalid_parameter("\"max_loss\" must be between 0 and 1")
            .detail(format!("The value is {given}."))
            .hint("To miss at most 1 % of the duplicates, pass max_loss => 0.01.")
            .raise();
    }
    Some(given)
}

struct Lines {
    lines: std::vec::IntoIter<Line>,
}

impl SetReturning for Lines {
    fn next(&mut self, columns: &mut Vec<Option<Datum>>) -> bool {
        let Some(line) = self.lines.next() else {
            return false;
        };
        let number = |number: f64| Datum::from(number.to_bits());
        columns.extend([
            Some(number(line.radius)),
            Some(Datum::from(line.pairs)),
            Some(Datum::from(line.duplicates)),
            line.precision.map(number),
            line.recall.map(number),
            line.f1.map(number),
        ]);
        true
    }
}

/// Reads the labelled pairs from the arguments. A pair without a distance gets an infinite
/// distance.
fn pairs(call: &Call) -> Vec<Pair> {
    for (n, name) in ["distances", "duplicates"].iter().enumerate() {
        if call.is_null(n) {
            UserError::null_not_allowed(format!("\"{name}\" must not be NULL")).raise();
        }
    }
    let distances = call.nullable_array::<f64>(0);
    let duplicates = call.nullable_array::<bool>(1);
    same_number("duplicates", distances.len(), duplicates.len());
    let weights = (!call.is_null(2)).then(|| call.array::<f64>(2, "weights"));
    if let Some(weights) = &weights {
        same_number("weights", distances.len(), weights.len());
    }
    let mut weights = weights.as_ref().map(|weights| weights.iter());
    let mut pairs = Vec::new();
    for (index, (distance, duplicate)) in distances.into_iter().zip(duplicates).enumerate() {
        let weight = weights.as_mut().and_then(Iterator::next).unwrap_or(1.0);
        if !(weight >= 0.0 && weight.is_finite()) {
            UserError::invalid_parameter("weights must be finite and not negative")
                .detail(format!("Weight {} is {weight}.", index + 1))
                .hint("A weight is the number of pairs that the labelled pair represents.")
                .raise();
        }
        let distance = distance.unwrap_or(f64::INFINITY);
        if distance.is_nan() {
            UserError::invalid_parameter("distances must not be NaN")
                .detail(format!("Distance {} is NaN.", index + 1))
                .raise();
        }
        if let Some(duplicate) = duplicate {
            pairs.grow_push(Pair {
                distance,
                duplicate,
                weight,
            });
        }
    }
    pairs
}

/// Raises an error unless two array arguments of the SQL function have the same number of elements.
/// `distances` is the number of elements of the array "distances", and `others` is that of the
/// array whose name is `name`.
fn same_number(name: &str, distances: usize, others: usize) {
    if distances != others {
        UserError::invalid_parameter(format!(
            "\"distances\" and \"{name}\" must have the same number of elements"
        ))
        .detail(format!(
            "The number of elements is {distances} in \"distances\" and {others} in \"{name}\"."
        ))
        .hint("Aggregate both from the same rows: array_agg(distance), array_agg(is_duplicate).")
        .raise();
    }
}

/// Number of comparisons between two checks for interrupts.
const CHECK_EVERY: usize = 1 << 16;

/// Returns one line for each distinct finite distance of the pairs, in ascending order. The
/// distance is the radius of the line.
fn lines(mut pairs: Vec<Pair>) -> Vec<Line> {
    let mut comparisons = 0;
    pairs.sort_unstable_by(|a, b| {
        comparisons += 1;
        if comparisons % CHECK_EVERY == 0 {
            check_interrupts();
        }
        a.distance.total_cmp(&b.distance)
    });
    let duplicates = pairs.iter().filter(|pair| pair.duplicate);
    let all: f64 = duplicates.map(|pair| pair.weight).sum();
    let (mut count, mut right) = (0, 0);
    let (mut found, mut found_right) = (0.0, 0.0);
    let same = |a: &Pair, b: &Pair| a.distance == b.distance;
    let near = pairs
        .chunk_by(same)
        .filter(|ring| ring[0].distance < f64::INFINITY);
    let mut lines = Vec::new();
    lines.grow_all(near.map(|ring| {
        let (these, of_them) = ring.iter().fold((0.0, 0.0), |(sum, right), pair| {
            let is_right = if pair.duplicate { pair.weight } else { 0.0 };
            (sum + pair.weight, right + is_right)
        });
        count += ring.len() as i64;
        right += ring.iter().filter(|pair| pair.duplicate).count() as i64;
        found += these;
        found_right += of_them;
        let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        Line {
            radius: ring[0].distance,
            pairs: count,
            duplicates: right,
            precision: share(found_right, found),
            recall: share(found_right, all),
            f1: share(2.0 * found_right, found + all),
        }
    }));
    lines
}

export! {
    guarded "neardup_evaluate" => evaluate;
}
