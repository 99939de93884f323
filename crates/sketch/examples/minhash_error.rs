//! Error of the estimates from MinHash signatures, by construction:
//!
//! ```sh
//! cargo run --release -p neardup-sketch --example minhash_error
//! ```
//!
//! Uses pairs of sets of random features with a known Jaccard similarity J. Prints two values for
//! each construction. The first is the root of the mean squared error, divided by sqrt(J(1-J)/K),
//! which is that of K independent draws. The second is the mean absolute error, divided by that of
//! K independent draws.

#[path = "../benches/minhash/constructions.rs"]
mod constructions;

use constructions::{Construction, all};
use neardup_sketch::minhash::matches;

const HASHES: usize = 128;

/// splitmix64, so that every run measures the same sets.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Returns the mean absolute deviation of a binomial share: sum over k of P(k) |k/n - p|.
fn binomial_deviation(n: usize, p: f64) -> f64 {
    let mut log_choose = 0.0_f64;
    let mut sum = 0.0;
    for k in 0..=n {
        let log = log_choose + k as f64 * p.ln() + (n - k) as f64 * (1.0 - p).ln();
        sum += log.exp() * (k as f64 / n as f64 - p).abs();
        log_choose += ((n - k) as f64 / (k + 1) as f64).ln();
    }
    sum
}

type Pair = [Vec<u64>; 2];

/// Returns pairs of sets of `size` random features with `common` shared features.
fn random_pairs(random: &mut Random, number: usize, size: usize, common: usize) -> Vec<Pair> {
    let pair = |_| {
        let shared: Vec<u64> = (0..common).map(|_| random.next()).collect();
        [(); 2].map(|()| {
            let own = (common..size).map(|_| random.next());
            shared.iter().copied().chain(own).collect()
        })
    };
    (0..number).map(pair).collect()
}

/// Prints the errors of a construction for pairs of a known similarity.
fn print_errors(construction: &mut dyn Construction, pairs: &[Pair], similarity: f64) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let (mut squares, mut absolute, mut sum) = (0.0, 0.0, 0.0);
    for [left, right] in pairs {
        construction.signature(left, &mut a);
        construction.signature(right, &mut b);
        let error = matches(&a, &b) as f64 / HASHES as f64 - similarity;
        squares += error * error;
        absolute += error.abs();
        sum += error;
    }
    let n = pairs.len() as f64;
    let theory = (similarity * (1.0 - similarity) / HASHES as f64).sqrt();
    print!(
        "  {:>7.3} {:>7.3} {:>8.4}",
        (squares / n).sqrt() / theory,
        absolute / n / binomial_deviation(HASHES, similarity),
        sum / n
    );
}

fn main() {
    println!(
        "K = {HASHES}; root mean square error / sqrt(J(1-J)/K), mean absolute error / binomial, \
         bias\n"
    );
    print!("{:>9} {:>5}", "features", "J");
    for construction in all(HASHES) {
        print!("  {:>24.24}", construction.name());
    }
    println!();
    let mut random = Random(2022);
    for (size, trials) in [
        (5, 40_000),
        (10, 40_000),
        (20, 40_000),
        (50, 20_000),
        (200, 10_000),
        (2_000, 2_000),
    ] {
        for target in [0.3, 0.5, 0.8, 0.95] {
            let common = (2.0 * size as f64 * target / (1.0 + target)).round() as usize;
            if common == 0 || common == size {
                continue;
            }
            let similarity = common as f64 / (2 * size - common) as f64;
            print!("{size:>9} {similarity:>5.3}");
            let pairs = random_pairs(&mut random, trials, size, common);
            for mut construction in all(HASHES) {
                // This construction is slow.
                let trials = match construction.name().contains("independent") {
                    true => trials / 8,
                    false => trials,
                };
                print_errors(construction.as_mut(), &pairs[..trials], similarity);
            }
            println!();
        }
    }
}
