//! Lower bounds of neardup's times, from what this machine can do: a btree lookup, reads of cache
//! lines in a random order, and a sequential read of the index.
use super::measure::{Measured, OF_PAIRS, WIDER};
use neardup_blocktree::layout_choice::best_layout;
use neardup_blocktree::plan::Plan;
use std::hint::black_box;
use std::time::Instant;

/// Guaranteed radius of the measured index, in bits.
const RADIUS: u32 = 3;
/// Size of a word in bytes: memory is read in words, and a fingerprint of 64 bits is one word.
const WORD: usize = size_of::<u64>();
/// Number of reads in a random order that are measured at once.
const RANDOM_READS: u64 = 1 << 22;
/// Number of measurements, of which the fastest counts.
const ROUNDS: usize = 3;

/// Speed of this machine's memory, measured in an area as large as the index.
struct Memory {
    /// Seconds for each read of a cache line. The reads are in a random order and independent of
    /// each other, so their cache misses overlap.
    line_seconds: f64,
    /// Seconds for each byte of a sequential read.
    byte_seconds: f64,
}

impl Memory {
    /// Measures an area of `bytes` bytes by one thread.
    fn measure(bytes: usize) -> Self {
        let words: Vec<u64> = (0..(bytes / WORD).max(1) as u64).collect();
        Self {
            line_seconds: fastest(|| random_sum(&words)) / RANDOM_READS as f64,
            byte_seconds: fastest(|| sequential_sum(&words)) / (words.len() * WORD) as f64,
        }
    }
}

/// Runs `work` [`ROUNDS`] times. Returns the seconds of the fastest run.
fn fastest(work: impl Fn() -> u64) -> f64 {
    let seconds = |()| {
        let start = Instant::now();
        black_box(work());
        start.elapsed().as_secs_f64()
    };
    [(); ROUNDS]
        .map(seconds)
        .into_iter()
        .fold(f64::INFINITY, f64::min)
}

/// Reads [`RANDOM_READS`] words in a random order. No address depends on an earlier read.
fn random_sum(words: &[u64]) -> u64 {
    let mut sum = 0u64;
    for i in 0..RANDOM_READS {
        // The high bits of the product are distributed evenly (Fibonacci hashing).
        let hash = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let index = (u128::from(hash) * words.len() as u128) >> 64;
        sum = sum.wrapping_add(words[index as usize]);
    }
    sum
}

fn sequential_sum(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, &word| sum.wrapping_add(word))
}

/// Returns the time in seconds that a search within `radius` bits must spend on reading memory, in
/// an index of `rows` rows: a random read for each probe of its plan, and a sequential read of the
/// fingerprints that it compares.
fn read_seconds(memory: &Memory, radius: u32, rows: f64) -> f64 {
    let layout = best_layout::<1>(false, RADIUS, rows);
    let plan = Plan::new(&layout, radius, rows);
    let compared = plan.candidates(rows) * WORD as f64;
    plan.probes.len() as f64 * memory.line_seconds + compared * memory.byte_seconds
}

/// Adds lower bounds of neardup's times to `measured.limits`, for searches and for searches for all
/// pairs. Adds none if the size of the index or the lookups in a btree were not measured.
///
/// - Search: one btree lookup, which takes about as long as the executor's part of a search, plus
///   the reads of the plan ([`read_seconds`]).
/// - All pairs: one sequential read of the index.
pub fn add(measured: &mut Measured) {
    let (Some(bytes), Some(found), Some(absent)) = (
        measured.least("size/neardup"),
        measured.least("probe/plain"),
        measured.least("probe/plain absent"),
    ) else {
        return;
    };
    let rows = measured.rows as f64;
    let memory = Memory::measure(bytes as usize);
    let search = |lookup, radius| lookup + read_seconds(&memory, radius, rows);
    let limits = &mut measured.limits;
    limits.insert("probe/neardup".to_owned(), search(found, RADIUS));
    limits.insert("probe/neardup absent".to_owned(), search(absent, RADIUS));
    for radius in WIDER {
        limits.insert(format!("probe/neardup {radius}"), search(found, radius));
    }
    for radius in OF_PAIRS {
        let name = format!("pairs/neardup {radius}");
        limits.insert(name, bytes * memory.byte_seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_need_the_times_of_a_btree() {
        let mut measured = Measured {
            rows: 1_000_000,
            ..Measured::default()
        };
        let mut sample = |name: &str, value| {
            measured.samples.insert(name.to_owned(), vec![value]);
        };
        sample("size/neardup", 50e6);
        sample("probe/plain", 1.2e-6);
        let mut complete = Measured {
            samples: measured.samples.clone(),
            ..Measured::default()
        };
        add(&mut measured);
        assert!(measured.limits.is_empty());

        complete.rows = 1_000_000;
        (complete.samples).insert("probe/plain absent".to_owned(), vec![1.1e-6]);
        add(&mut complete);
        let limit = |name: &str| complete.limits[name];
        assert!(limit("probe/neardup") > 1.2e-6);
        assert!(limit("probe/neardup 6") > limit("probe/neardup"));
        assert!(limit("probe/neardup 12") > limit("probe/neardup 6"));
        assert!(limit("pairs/neardup 3") > 0.0);
    }

    #[test]
    fn each_probe_reads_a_line() {
        let memory = Memory {
            line_seconds: 1.0,
            byte_seconds: 0.0,
        };
        assert!(read_seconds(&memory, RADIUS, 1e6) >= 4.0);
    }

    /// With a radius of 40 bits, a search reads all keys of a permutation: 8 bytes for each of a
    /// million rows. At one second a byte, it takes at least 8 million seconds.
    #[test]
    fn a_wide_search_reads_all_keys() {
        let memory = Memory {
            line_seconds: 0.0,
            byte_seconds: 1.0,
        };
        assert!(read_seconds(&memory, 40, 1e6) >= 8e6);
    }
}
