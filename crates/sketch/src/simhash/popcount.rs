//! Positional population count: how often each bit position is set in a list of words.

/// Number of 64-bit words that have each bit set.
///
/// Words are added bit-sliced: a Harley-Seal tree of carry-save adders takes 16 words to one word
/// of sixteens (Mula, Kurz, Lemire, "Faster population counts using AVX2 instructions", 2018), and
/// only the sixteens are spread out to byte counters. Plain 64-bit operations throughout: the same
/// speed on any platform, some three cycles a word, so that no vector instructions need to be
/// chosen.
#[derive(Clone)]
pub(super) struct PositionalPopcount {
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
    pub len: u64,
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

impl PositionalPopcount {
    /// No words.
    pub const EMPTY: Self = Self {
        ones: 0,
        twos: 0,
        fours: 0,
        eights: 0,
        sixteens: [0; 8],
        sixteens_added: 0,
        wide: [0; 64],
        len: 0,
    };

    /// Adds one word of each hash; fastest for a multiple of 16 hashes.
    pub fn add<const W: usize>(&mut self, hashes: &[[u64; W]], word: usize) {
        self.len += hashes.len() as u64;
        let (sixteens, rest) = hashes.as_chunks::<16>();
        for sixteen in sixteens {
            self.add_sixteen(&sixteen.map(|hash| hash[word]));
        }
        if !rest.is_empty() {
            let word_of = |n| rest.get(n).map_or(0, |hash: &[u64; W]| hash[word]);
            self.add_sixteen(&std::array::from_fn(word_of));
        }
    }

    #[inline(always)]
    fn add_sixteen(&mut self, w: &[u64; 16]) {
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

    /// Adds the byte counters to the wide ones; to be called before [`PositionalPopcount::ones`].
    pub fn finish(&mut self) {
        if self.sixteens_added > 0 {
            self.widen();
        }
    }

    /// Number of words with each bit set, after [`PositionalPopcount::finish`].
    pub fn ones(&self) -> impl Iterator<Item = u64> {
        debug_assert!(self.sixteens_added == 0);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn positional_count_is_a_count_per_bit(
            words in prop::collection::vec(any::<[u64; 1]>(), 0..600),
            repeat in 1_usize..12,
        ) {
            let mut counted = PositionalPopcount::EMPTY;
            let mut expected = [0_u64; 64];
            for _ in 0..repeat {
                counted.add(&words, 0);
            }
            for &[word] in words.iter().cycle().take(words.len() * repeat) {
                for (bit, n) in expected.iter_mut().enumerate() {
                    *n += (word >> bit) & 1;
                }
            }
            counted.finish();
            prop_assert_eq!(counted.ones().collect::<Vec<_>>(), expected.to_vec());
            prop_assert_eq!(counted.len, (words.len() * repeat) as u64);
        }
    }

    #[test]
    fn byte_counters_do_not_overflow() {
        let mut counted = PositionalPopcount::EMPTY;
        counted.add(&[[u64::MAX]; 100_000], 0);
        counted.finish();
        assert!(counted.ones().all(|n| n == 100_000));
    }
}
