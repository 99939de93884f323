//! The sums of weights behind the bits of a simhash, in exact integer arithmetic.
//!
//! With S the weight of all features and `set[i]` the weight of those whose hash has bit i, the sum
//! of +w and -w is `set[i] - (S - set[i])`, so bit i is 1 iff `2 * set[i] > S`.

use crate::weight::ExactWeight;

/// Weight per bit position of `W` words, and in all.
#[derive(Clone)]
pub(crate) struct BitSums<const W: usize> {
    set: [[u64; 64]; W],
    total: u64,
}

impl<const W: usize> Default for BitSums<W> {
    fn default() -> Self {
        Self {
            set: [[0; 64]; W],
            total: 0,
        }
    }
}

impl<const W: usize> BitSums<W> {
    /// Adds one feature.
    pub fn add(&mut self, hash: [u64; W], weight: u64) {
        self.total += weight;
        for (set, word) in self.set.iter_mut().zip(hash) {
            // No branch: the compiler turns this into vector code.
            for (bit, set) in set.iter_mut().enumerate() {
                *set += weight & ((word >> bit) & 1).wrapping_neg();
            }
        }
    }

    /// Adds features of one weight, given how many of them have each bit, word for word.
    pub fn add_group(&mut self, group: &[PositionalCount; W], weight: u64) {
        self.total += group[0].len * weight;
        for (set, counted) in self.set.iter_mut().zip(group) {
            for (set, ones) in set.iter_mut().zip(counted.ones()) {
                *set += ones * weight;
            }
        }
    }

    /// The simhash, ties to 0; `None` if nothing with a weight was added.
    pub fn simhash(&self) -> Option<[u64; W]> {
        (self.total > 0).then(|| words(|word, bit| 2 * self.set[word][bit] > self.total))
    }

    /// Sum of +w and -w at a bit position of a word.
    fn signed(&self, word: usize, bit: usize) -> i128 {
        2 * i128::from(self.set[word][bit]) - i128::from(self.total)
    }
}

/// The words whose bits are what `is_set(word, bit)` says.
fn words<const W: usize>(is_set: impl Fn(usize, usize) -> bool) -> [u64; W] {
    std::array::from_fn(|word| {
        (0..64).fold(0, |all, bit| all | (u64::from(is_set(word, bit)) << bit))
    })
}

/// Sums of floating-point weights: one set of integer sums for each binary exponent that occurs, so
/// that nothing is ever rounded and the order of the features cannot matter.
#[derive(Default)]
pub(crate) struct ExactSums<const W: usize> {
    by_exponent: std::collections::BTreeMap<u16, Box<BitSums<W>>>,
}

impl<const W: usize> ExactSums<W> {
    /// Adds a part of the weight of a feature. Mantissas are below 2^27, so 2^36 features fit.
    pub fn add(&mut self, hash: [u64; W], weight: ExactWeight) {
        self.by_exponent
            .entry(weight.exponent)
            .or_default()
            .add(hash, u64::from(weight.mantissa));
    }

    /// The simhash, ties to 0; `None` if nothing was added.
    pub fn simhash(&self) -> Option<[u64; W]> {
        (!self.by_exponent.is_empty()).then(|| words(|word, bit| self.is_positive(word, bit)))
    }

    /// Whether the exact sum at a bit position is above zero.
    fn is_positive(&self, word: usize, bit: usize) -> bool {
        // The sum so far, in units of 2^above.
        let mut sum = 0_i128;
        let mut above = 0_u32;
        for (&exponent, sums) in self.by_exponent.iter().rev() {
            let exponent = u32::from(exponent);
            if sum != 0 {
                let gap = above - exponent;
                // Each signed sum is below 2^63 in size, so all that is still to come is below
                // 2^64 units of 2^exponent. What has grown to that size keeps its sign.
                if sum.unsigned_abs().ilog2() + gap >= 64 {
                    return sum > 0;
                }
                sum <<= gap;
            }
            above = exponent;
            sum += sums.signed(word, bit);
        }
        sum > 0
    }
}

/// How many of a number of 64-bit words have each bit set.
///
/// Words are added bit-sliced: a Harley-Seal tree of carry-save adders takes 16 words to one word of
/// sixteens (Mula, Kurz, Lemire, "Faster population counts using AVX2 instructions", 2018), and only
/// the sixteens are spread out to byte counters. Plain 64-bit operations throughout: the same speed
/// on any platform, some three cycles a word, so that no vector instructions need to be chosen.
#[derive(Clone)]
pub(crate) struct PositionalCount {
    pending: [u64; 16],
    pending_len: usize,
    ones: u64,
    twos: u64,
    fours: u64,
    eights: u64,
    /// Counts of sixteens, a byte each, for the eight bits of each byte of the word.
    sixteens: [u64; 8],
    /// Additions to `sixteens` since it was last emptied; at most 255.
    sixteens_added: u32,
    /// Counts of sixteens that no longer fit a byte.
    wide: [u64; 64],
    len: u64,
}

/// Bit j of a byte, moved to byte j of a word.
const SPREAD: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte] |= ((byte as u64 >> bit) & 1) << (8 * bit);
            bit += 1;
        }
        byte += 1;
    }
    table
};

/// Carry-save adder: three bits of one value in, a bit of the same value and a carry out.
#[inline(always)]
const fn add3(a: u64, b: u64, c: u64) -> (u64, u64) {
    let half = a ^ b;
    (half ^ c, (a & b) | (half & c))
}

impl PositionalCount {
    /// No words.
    const EMPTY: Self = Self {
        pending: [0; 16],
        pending_len: 0,
        ones: 0,
        twos: 0,
        fours: 0,
        eights: 0,
        sixteens: [0; 8],
        sixteens_added: 0,
        wide: [0; 64],
        len: 0,
    };

    /// Adds one word.
    #[inline]
    pub fn add(&mut self, word: u64) {
        self.pending[self.pending_len] = word;
        self.pending_len += 1;
        if self.pending_len == 16 {
            self.add_pending();
        }
    }

    fn add_pending(&mut self) {
        let w = &self.pending;
        let quarter = |ones, twos, at: usize| {
            let (ones, a) = add3(ones, w[at], w[at + 1]);
            let (ones, b) = add3(ones, w[at + 2], w[at + 3]);
            let (twos, fours) = add3(twos, a, b);
            (ones, twos, fours)
        };
        let (ones, twos, a) = quarter(self.ones, self.twos, 0);
        let (ones, twos, b) = quarter(ones, twos, 4);
        let (fours, c) = add3(self.fours, a, b);
        let (ones, twos, a) = quarter(ones, twos, 8);
        let (ones, twos, b) = quarter(ones, twos, 12);
        let (fours, d) = add3(fours, a, b);
        let (eights, sixteens) = add3(self.eights, c, d);
        (self.ones, self.twos, self.fours, self.eights) = (ones, twos, fours, eights);
        for (counters, byte) in self.sixteens.iter_mut().zip(sixteens.to_le_bytes()) {
            *counters += SPREAD[usize::from(byte)];
        }
        self.sixteens_added += 1;
        if self.sixteens_added == 255 {
            self.widen();
        }
        self.len += self.pending_len as u64;
        self.pending_len = 0;
    }

    fn widen(&mut self) {
        for (byte, counters) in self.sixteens.iter_mut().enumerate() {
            for (bit, count) in counters.to_le_bytes().into_iter().enumerate() {
                self.wide[8 * byte + bit] += u64::from(count);
            }
            *counters = 0;
        }
        self.sixteens_added = 0;
    }

    /// Takes in the words that still wait; call it before [`BitSums::add_group`].
    pub fn finish(&mut self) {
        if self.pending_len > 0 {
            self.pending[self.pending_len..].fill(0);
            self.add_pending();
        }
        if self.sixteens_added > 0 {
            self.widen();
        }
    }

    /// Number of words with each bit set, after [`PositionalCount::finish`].
    fn ones(&self) -> impl Iterator<Item = u64> {
        debug_assert!(self.pending_len == 0 && self.sixteens_added == 0);
        (0..64).map(|bit| {
            let at = |plane: u64| (plane >> bit) & 1;
            16 * self.wide[bit]
                + 8 * at(self.eights)
                + 4 * at(self.fours)
                + 2 * at(self.twos)
                + at(self.ones)
        })
    }
}

/// Sums of features whose weights come from small integer counts, as most do: groups of equal weight
/// are counted bit-sliced, the rest is added one by one.
pub(crate) struct GroupedSums<const W: usize> {
    /// `groups[i]` holds the features that occur i + 1 times, word for word.
    groups: [[PositionalCount; W]; GROUPS],
    rest: BitSums<W>,
    weight: fn(u64) -> u64,
}

const GROUPS: usize = 4;

impl<const W: usize> GroupedSums<W> {
    /// `weight`: from a number of occurrences, at least 1.
    pub fn new(weight: fn(u64) -> u64) -> Self {
        Self {
            groups: [const { [PositionalCount::EMPTY; W] }; GROUPS],
            rest: BitSums::default(),
            weight,
        }
    }

    /// Adds one distinct feature.
    #[inline]
    pub fn add(&mut self, hash: [u64; W], count: u64) {
        match self.groups.get_mut(count as usize - 1) {
            Some(group) => {
                for (counted, word) in group.iter_mut().zip(hash) {
                    counted.add(word);
                }
            }
            None => self.rest.add(hash, (self.weight)(count)),
        }
    }

    /// The simhash, ties to 0; `None` if nothing was added.
    pub fn simhash(mut self) -> Option<[u64; W]> {
        for (count, group) in (1..).zip(&mut self.groups) {
            group.iter_mut().for_each(PositionalCount::finish);
            if group[0].len > 0 {
                self.rest.add_group(group, (self.weight)(count));
            }
        }
        self.rest.simhash()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weight::sqrt_weight;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn positional_count_is_a_count_per_bit(
            words in prop::collection::vec(any::<u64>(), 0..600),
            repeat in 1_usize..12,
        ) {
            let mut counted = PositionalCount::EMPTY;
            let mut expected = [0_u64; 64];
            for &word in words.iter().cycle().take(words.len() * repeat) {
                counted.add(word);
                for (bit, n) in expected.iter_mut().enumerate() {
                    *n += (word >> bit) & 1;
                }
            }
            counted.finish();
            prop_assert_eq!(counted.ones().collect::<Vec<_>>(), expected.to_vec());
            prop_assert_eq!(counted.len, (words.len() * repeat) as u64);
        }

        #[test]
        fn grouped_sums_equal_plain_sums(
            features in prop::collection::vec((any::<[u64; 2]>(), 1_u64..12), 0..200),
        ) {
            let mut grouped = GroupedSums::new(sqrt_weight);
            let mut plain = BitSums::default();
            let mut narrow = GroupedSums::new(sqrt_weight);
            for &(hash, count) in &features {
                grouped.add(hash, count);
                plain.add(hash, sqrt_weight(count));
                narrow.add([hash[1]], count);
            }
            let grouped = grouped.simhash();
            prop_assert_eq!(grouped, plain.simhash());
            // Each word for itself.
            prop_assert_eq!(grouped.map(|[_, low]| [low]), narrow.simhash());
        }
    }

    #[test]
    fn byte_counters_do_not_overflow() {
        let mut counted = PositionalCount::EMPTY;
        for _ in 0..100_000 {
            counted.add(u64::MAX);
        }
        counted.finish();
        assert!(counted.ones().all(|n| n == 100_000));
    }
}
