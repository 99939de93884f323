//! The sums of weights behind the bits of a simhash, in exact integer arithmetic.
//!
//! With S the weight of all features and `set[i]` the weight of those whose hash has bit i, the sum
//! of +w and -w is `set[i] - (S - set[i])`, so bit i is 1 iff `2 * set[i] > S`.

use crate::counts::Counted;

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

/// Adds a weight to the sums of those bits that the hash has set.
#[inline(always)]
pub(crate) fn add_where_set<const W: usize>(
    sums: &mut [[u64; 64]; W],
    hash: [u64; W],
    weight: u64,
) {
    for (set, word) in sums.iter_mut().zip(hash) {
        // No branch: the compiler turns this into vector code.
        for (bit, set) in set.iter_mut().enumerate() {
            *set += weight & ((word >> bit) & 1).wrapping_neg();
        }
    }
}

/// The words whose bits are what `is_set(word, bit)` says.
pub(crate) fn words<const W: usize>(is_set: impl Fn(usize, usize) -> bool) -> [u64; W] {
    std::array::from_fn(|word| {
        (0..64).fold(0, |all, bit| all | (u64::from(is_set(word, bit)) << bit))
    })
}

impl<const W: usize> BitSums<W> {
    /// Adds one feature.
    #[inline(always)]
    pub fn add(&mut self, hash: [u64; W], weight: u64) {
        self.total += weight;
        add_where_set(&mut self.set, hash, weight);
    }

    /// Adds features with their weights.
    pub fn add_all(&mut self, features: impl Iterator<Item = ([u64; W], u64)>) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 is there, as just seen.
            #[allow(unsafe_code)]
            unsafe {
                self.add_all_avx2(features);
            }
            return;
        }
        self.add_all_portable(features);
    }

    /// The same code, compiled for vectors of 32 bytes.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn add_all_avx2(&mut self, features: impl Iterator<Item = ([u64; W], u64)>) {
        self.add_all_portable(features);
    }

    #[inline(always)]
    fn add_all_portable(&mut self, features: impl Iterator<Item = ([u64; W], u64)>) {
        for (hash, weight) in features {
            self.add(hash, weight);
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
}

/// How many of a number of 64-bit words have each bit set.
///
/// Words are added bit-sliced: a Harley-Seal tree of carry-save adders takes 16 words to one word of
/// sixteens (Mula, Kurz, Lemire, "Faster population counts using AVX2 instructions", 2018), and only
/// the sixteens are spread out to byte counters. Plain 64-bit operations throughout: the same speed
/// on any platform, some three cycles a word, so that no vector instructions need to be chosen.
#[derive(Clone)]
pub(crate) struct PositionalCount {
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
        ones: 0,
        twos: 0,
        fours: 0,
        eights: 0,
        sixteens: [0; 8],
        sixteens_added: 0,
        wide: [0; 64],
        len: 0,
    };

    /// Adds one word of each hash; costs least if there are a multiple of 16.
    fn add<const W: usize>(&mut self, hashes: &[[u64; W]], word: usize) {
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

    /// Takes in the counts that still wait; call it before [`BitSums::add_group`].
    fn finish(&mut self) {
        if self.sixteens_added > 0 {
            self.widen();
        }
    }

    /// Number of words with each bit set, after [`PositionalCount::finish`].
    fn ones(&self) -> impl Iterator<Item = u64> {
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

/// Sums of features whose weights come from small integer counts, as most do. Reusable.
///
/// Every feature counts with the weight of a single occurrence, bit-sliced; those that occur more
/// often, the fewest, then with what they weigh more: groups of equal weight bit-sliced again, the
/// rest one by one.
pub(crate) struct GroupedSums<const W: usize> {
    all: Group<W>,
    /// `groups[i]` holds the features that occur i + 2 times.
    groups: [Group<W>; GROUPS],
    rest: BitSums<W>,
    waiting_rest: Waiting<Counted<W>>,
    weight: fn(u64) -> u64,
}

/// Features of one weight.
struct Group<const W: usize> {
    /// Word for word.
    counted: [PositionalCount; W],
    waiting: Waiting<[u64; W]>,
}

const GROUPS: usize = 3;
/// Features that are sorted in one go.
const BATCH: usize = 64;
/// Features that make no group at the end.
const HANDFUL: usize = 8;

/// Features that are sorted or counted later, many at once.
struct Waiting<T> {
    features: [T; BATCH],
    len: usize,
}

impl<T: Copy> Waiting<T> {
    const fn new(none: T) -> Self {
        Self {
            features: [none; BATCH],
            len: 0,
        }
    }

    /// Adds one; returns whether there is no room for another.
    #[inline(always)]
    fn push(&mut self, feature: T) -> bool {
        self.features[self.len] = feature;
        self.len += 1;
        self.len == BATCH
    }

    fn take(&mut self) -> &[T] {
        &self.features[..std::mem::take(&mut self.len)]
    }
}

impl<const W: usize> Group<W> {
    const EMPTY: Self = Self {
        counted: [PositionalCount::EMPTY; W],
        waiting: Waiting::new([0; W]),
    };

    fn begin(&mut self) {
        self.waiting.len = 0;
        if self.counted[0].len > 0 {
            self.counted = [PositionalCount::EMPTY; W];
        }
    }

    fn add(&mut self, hashes: &[[u64; W]]) {
        for (word, counted) in self.counted.iter_mut().enumerate() {
            counted.add(hashes, word);
        }
    }

    #[inline(always)]
    fn push(&mut self, hash: [u64; W]) {
        if self.waiting.push(hash) {
            self.take_in();
        }
    }

    fn take_in(&mut self) {
        for (word, counted) in self.counted.iter_mut().enumerate() {
            counted.add(&self.waiting.features[..self.waiting.len], word);
        }
        self.waiting.len = 0;
    }

    /// Adds all features with their weight to `sums`.
    fn finish(&mut self, weight: u64, sums: &mut BitSums<W>) {
        // A handful is sooner added than counted.
        if self.waiting.len <= HANDFUL {
            let hashes = self.waiting.take().iter();
            sums.add_all(hashes.map(|&hash| (hash, weight)));
        } else {
            self.take_in();
        }
        if self.counted[0].len > 0 {
            self.counted.iter_mut().for_each(PositionalCount::finish);
            sums.add_group(&self.counted, weight);
        }
    }
}

impl<const W: usize> Default for GroupedSums<W> {
    fn default() -> Self {
        Self {
            all: Group::EMPTY,
            groups: [const { Group::EMPTY }; GROUPS],
            rest: BitSums::default(),
            waiting_rest: Waiting::new(Counted::NONE),
            weight: |count| count,
        }
    }
}

impl<const W: usize> GroupedSums<W> {
    /// Begins anew. `weight`: from a number of occurrences, at least 1; never less for more.
    pub fn begin(&mut self, weight: fn(u64) -> u64) {
        self.weight = weight;
        self.rest = BitSums::default();
        self.waiting_rest.len = 0;
        self.all.begin();
        self.groups.iter_mut().for_each(Group::begin);
    }

    /// Adds distinct features.
    pub fn add(&mut self, features: &[Counted<W>]) {
        let (batches, last) = features.as_chunks::<BATCH>();
        for batch in batches {
            self.all.add(&batch.map(|feature| feature.hash));
            // Which ones occur more often is hard to predict, so that it must not be a branch.
            let mut more = [Counted::NONE; BATCH];
            let mut len = 0;
            for feature in batch {
                more[len % BATCH] = *feature;
                len += usize::from(feature.count > 1);
            }
            more[..len]
                .iter()
                .for_each(|feature| self.add_more(feature));
        }
        for feature in last {
            self.all.push(feature.hash);
            if feature.count > 1 {
                self.add_more(feature);
            }
        }
    }

    /// Adds what a feature weighs more because it occurs more than once.
    #[inline(always)]
    fn add_more(&mut self, feature: &Counted<W>) {
        match self.groups.get_mut(feature.count as usize - 2) {
            Some(group) => group.push(feature.hash),
            None => {
                if self.waiting_rest.push(*feature) {
                    self.take_in_rest();
                }
            }
        }
    }

    fn take_in_rest(&mut self) {
        let features = self.waiting_rest.take().iter();
        let once = (self.weight)(1);
        self.rest
            .add_all(features.map(|feature| (feature.hash, (self.weight)(feature.count) - once)));
    }

    /// The simhash, ties to 0; `None` if nothing was added.
    pub fn simhash(&mut self) -> Option<[u64; W]> {
        self.take_in_rest();
        let once = (self.weight)(1);
        self.all.finish(once, &mut self.rest);
        for (count, group) in (2..).zip(&mut self.groups) {
            group.finish((self.weight)(count) - once, &mut self.rest);
        }
        self.rest.simhash()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weight::sqrt_weight;
    use proptest::prelude::*;

    fn counted<const W: usize>(hash: [u64; W], count: u64) -> Counted<W> {
        Counted { hash, count }
    }

    proptest! {
        #[test]
        fn positional_count_is_a_count_per_bit(
            words in prop::collection::vec(any::<[u64; 1]>(), 0..600),
            repeat in 1_usize..12,
        ) {
            let mut counted = PositionalCount::EMPTY;
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

        #[test]
        fn grouped_sums_equal_plain_sums(
            features in prop::collection::vec((any::<[u64; 2]>(), 1_u64..12), 0..1000),
            before in 0_u64..500,
            piece in 1_usize..1000,
        ) {
            let (mut grouped, mut narrow) = (GroupedSums::default(), GroupedSums::default());
            // What came before does not matter.
            grouped.begin(|_| 1);
            for n in 0..before {
                grouped.add(&[counted([n, n], n % 6 + 1)]);
            }
            grouped.begin(sqrt_weight);
            narrow.begin(sqrt_weight);
            let mut plain = BitSums::default();
            for &(hash, count) in &features {
                plain.add(hash, sqrt_weight(count));
                narrow.add(&[counted([hash[1]], count)]);
            }
            let features: Vec<_> = features.iter().map(|f| counted(f.0, f.1)).collect();
            features.chunks(piece).for_each(|piece| grouped.add(piece));
            let grouped = grouped.simhash();
            prop_assert_eq!(grouped, plain.simhash());
            // Each word for itself.
            prop_assert_eq!(grouped.map(|[_, low]| [low]), narrow.simhash());
        }
    }

    proptest! {
        #[test]
        fn ways_to_add_agree(
            features in prop::collection::vec((any::<[u64; 2]>(), 0_u64..1 << 40), 0..100),
        ) {
            let (mut chosen, mut portable) = (BitSums::default(), BitSums::default());
            chosen.add_all(features.iter().copied());
            portable.add_all_portable(features.iter().copied());
            prop_assert_eq!(chosen.set, portable.set);
            prop_assert_eq!(chosen.total, portable.total);
        }
    }

    #[test]
    fn byte_counters_do_not_overflow() {
        let mut counted = PositionalCount::EMPTY;
        counted.add(&[[u64::MAX]; 100_000], 0);
        counted.finish();
        assert!(counted.ones().all(|n| n == 100_000));
    }
}
