//! The cut of a fingerprint into blocks, and the permutations of an index.
//!
//! A fingerprint of `64 * N` bits is cut into `b` blocks. For a guaranteed radius `k < b` each of
//! the C(b, b-k) choices of b-k blocks gives a permutation, whose keys have the chosen blocks in
//! front: two fingerprints within `k` bits spoil at most `k` blocks, so that in at least one
//! permutation all of the leading bits agree (Manku, Jain, Das Sarma, WWW 2007, section 3).

use crate::key::Key;
use crate::metric::near_duplicate_bits;
use crate::sets;

/// The most permutations an index may have. Each costs its share of space and of every insert.
pub const MAX_PERMUTATIONS: usize = 64;

/// Cost of a descent from the root to a leaf, relative to reading on to the next leaf.
pub(crate) const DESCENT: f64 = 3.0;

/// The largest guaranteed radius. It grows with the width: blocks of fewer than about seven bits
/// would tell no leaves apart.
pub const MAX_RADIUS: u32 = 31;

/// The largest guaranteed radius of fingerprints of `bits` bits.
pub fn max_radius(bits: u32) -> u32 {
    (bits / 8).min(MAX_RADIUS)
}

/// Default radius if it is unknown how the fingerprints were made.
pub fn default_radius(bits: u32) -> u32 {
    near_duplicate_bits(bits)
}

/// Reason why a radius and a number of blocks make no block layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockLayoutError {
    /// The radius is over this one, [`max_radius`].
    RadiusTooLarge(u32),
    /// The number of blocks must exceed the radius and not exceed the number of bits.
    BlocksOutOfRange,
    /// C(blocks, radius) is over [`MAX_PERMUTATIONS`].
    TooManyPermutations(u64),
}

/// A run of bits that a permutation moves: `out[to] |= (in[from] & mask).rotate_left(turn)`.
#[derive(Clone, Copy, Debug)]
struct Segment {
    from: usize,
    to: usize,
    mask: u64,
    turn: u32,
}

impl Segment {
    /// Bits of a word that stay where they are.
    fn in_place(word: usize, mask: u64) -> Self {
        let (from, to, turn) = (word, word, 0);
        Segment {
            from,
            to,
            mask,
            turn,
        }
    }
}

/// One permutation: maps fingerprints to keys, and keys back to fingerprints.
#[derive(Clone, Debug)]
pub struct Permutation<const N: usize> {
    /// Words in front of the fingerprint.
    scope_words: usize,
    segments: Vec<Segment>,
    /// The blocks in front, in their order.
    leading: Vec<usize>,
}

impl<const N: usize> Permutation<N> {
    /// Fingerprint to key.
    #[inline]
    pub fn permute(&self, fingerprint: &Key<N>) -> Key<N> {
        let mut key = [0; N];
        for s in &self.segments {
            key[s.to] |= (fingerprint[s.from] & s.mask).rotate_left(s.turn);
        }
        key
    }

    /// Key to fingerprint.
    #[inline]
    pub fn restore(&self, key: &Key<N>) -> Key<N> {
        let mut fingerprint = [0; N];
        for s in &self.segments {
            fingerprint[s.from] |= key[s.to].rotate_right(s.turn) & s.mask;
        }
        fingerprint
    }

    /// The blocks in front, in their order.
    pub fn leading(&self) -> &[usize] {
        &self.leading
    }

    /// The bits of the fingerprint that the first `bits` bits of the key, behind a scope, hold.
    pub fn leading_mask(&self, bits: u32) -> Key<N> {
        let mut key = [0; N];
        for (word, slot) in key[self.scope_words..].iter_mut().enumerate() {
            let within = bits.saturating_sub(64 * word as u32).min(64);
            *slot = if within == 0 {
                0
            } else {
                u64::MAX << (64 - within)
            };
        }
        self.restore(&key)
    }
}

/// The blocks and permutations of one index.
///
/// ```
/// use neardup_blocktree::block_layout::BlockLayout;
///
/// // All fingerprints of 64 bits within 3 bits of a query, by 6 blocks: C(6, 3) permutations.
/// let layout = BlockLayout::<1>::new(3, 6)?;
/// assert_eq!(layout.permutations().len(), 20);
///
/// // Two fingerprints that differ in 3 bits agree in the leading bits of at least one permutation.
/// let (a, b) = ([0x0123_4567_89ab_cdef], [0x0123_4567_89ab_cdef ^ 1 << 60 ^ 1 << 30 ^ 1]);
/// let agree = layout.permutations().iter().enumerate().any(|(i, permutation)| {
///     let differing = permutation.permute(&a)[0] ^ permutation.permute(&b)[0];
///     differing.leading_zeros() >= layout.leading_bits(i)
/// });
/// assert!(agree);
/// # Ok::<(), neardup_blocktree::block_layout::BlockLayoutError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BlockLayout<const N: usize> {
    /// Words of a key, in front, that hold a scope: 0 or 1.
    scope_words: usize,
    radius: u32,
    /// Bits of each block, first block first.
    blocks: Vec<u32>,
    permutations: Vec<Permutation<N>>,
    /// Bits in front of a key that are a band's hash or an element, and no bits of a fingerprint.
    hash_bits: u32,
    /// Permutations, from the first on, that searches do not probe.
    unprobed: usize,
}

/// C(n, k), or the largest number if it is beyond 32 bits.
fn choose(n: u64, k: u64) -> u64 {
    (0..k.min(n - k))
        // Ever larger on the way, as `k` stays below half of `n`.
        .try_fold(1u64, |product, i| {
            u32::try_from(product)
                .ok()
                .map(|product| u64::from(product) * (n - i) / (i + 1))
        })
        .unwrap_or(u64::MAX)
}

impl<const N: usize> BlockLayout<N> {
    /// The block layout for a guaranteed radius and a number of blocks.
    pub fn new(radius: u32, blocks: u32) -> Result<Self, BlockLayoutError> {
        Self::in_scope(false, radius, blocks)
    }

    /// The block layout for a guaranteed radius and a number of blocks. With `scope`, the first
    /// word of each key is the scope's hash: entries of one scope are next to each other in each
    /// permutation, and no permutation moves that word.
    pub fn in_scope(scope: bool, radius: u32, blocks: u32) -> Result<Self, BlockLayoutError> {
        let scope_words = usize::from(scope);
        let bits = 64 * (N - scope_words) as u32;
        let most = max_radius(bits);
        if radius > most {
            return Err(BlockLayoutError::RadiusTooLarge(most));
        }
        if blocks <= radius || blocks > bits {
            return Err(BlockLayoutError::BlocksOutOfRange);
        }
        let count = choose(u64::from(blocks), u64::from(radius));
        if count > MAX_PERMUTATIONS as u64 {
            return Err(BlockLayoutError::TooManyPermutations(count));
        }
        let sizes: Vec<u32> = (0..blocks)
            .map(|i| bits / blocks + u32::from(i < bits % blocks))
            .collect();
        let mut led = vec![0; blocks as usize];
        let permutations = combinations(blocks as usize, (blocks - radius) as usize)
            .into_iter()
            .map(|mut leading| {
                // Each block should lead some permutation: queries beyond the guaranteed radius
                // search for neighbours of the first block alone.
                let first = (0..leading.len())
                    .min_by_key(|&i| led[leading[i]])
                    .unwrap_or(0);
                leading.rotate_left(first);
                led[leading[0]] += 1;
                permutation(scope_words, &sizes, leading)
            })
            .collect();
        Ok(BlockLayout {
            scope_words,
            radius,
            blocks: sizes,
            permutations,
            hash_bits: 0,
            unprobed: 0,
        })
    }

    /// The layout of an index over bands ([`crate::bands`]): `count` permutations whose keys come
    /// as they are. Undone, a key is its row: its first word behind a scope keeps the bits `row`
    /// only.
    pub(crate) fn with_bands(scope: bool, count: usize, row: u64) -> Self {
        let scope_words = usize::from(scope);
        let segments: Vec<Segment> = (0..N)
            .map(|word| Segment::in_place(word, if word == scope_words { row } else { u64::MAX }))
            .collect();
        let permutation = Permutation {
            scope_words,
            segments,
            leading: Vec::new(),
        };
        BlockLayout {
            scope_words,
            radius: 0,
            blocks: Vec::new(),
            permutations: vec![permutation; count],
            hash_bits: row.leading_zeros(),
            unprobed: 0,
        }
    }

    /// The layout of an index over sets ([`crate::sets`]): one permutation with an entry for each
    /// row, and one with an entry for each element, whose keys come as they are.
    pub fn with_sets(scope: bool) -> Self {
        BlockLayout {
            hash_bits: sets::BITS,
            unprobed: usize::from(sets::ELEMENT_PERMUTATION),
            ..Self::with_bands(scope, sets::PERMUTATIONS, u64::MAX)
        }
    }

    /// Returns whether rows have an entry for each element in the permutations that are probed, and
    /// not one in each permutation.
    pub fn has_elements(&self) -> bool {
        self.unprobed > 0
    }

    /// Returns whether searches within the guaranteed radius probe a permutation.
    pub fn is_probed(&self, permutation: u16) -> bool {
        permutation < self.null_permutation() && usize::from(permutation) >= self.unprobed
    }

    /// Words of a key, in front, that hold a scope: 0 or 1.
    pub fn scope_words(&self) -> usize {
        self.scope_words
    }

    /// Bits of a fingerprint.
    pub fn bits(&self) -> u32 {
        self.blocks.iter().sum()
    }

    /// The guaranteed radius.
    pub fn radius(&self) -> u32 {
        self.radius
    }

    /// Bits of each block, first block first.
    pub fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    /// The permutations, by number.
    pub fn permutations(&self) -> &[Permutation<N>] {
        &self.permutations
    }

    /// The number of the permutation that holds the rows without a fingerprint, which follows the
    /// others.
    pub fn null_permutation(&self) -> u16 {
        self.permutations.len() as u16
    }

    /// Bits of all the leading blocks of a permutation.
    pub fn leading_bits(&self, permutation: usize) -> u32 {
        let blocks = self.permutations[permutation].leading.iter();
        self.hash_bits + blocks.map(|&block| self.blocks[block]).sum::<u32>()
    }

    /// Bits of the leading blocks of the permutation that has the fewest.
    pub fn fewest_leading_bits(&self) -> u32 {
        let permutations = 0..self.permutations.len();
        permutations
            .map(|permutation| self.leading_bits(permutation))
            .min()
            .unwrap_or(0)
    }
}

/// All choices of `k` of the numbers below `n`, in lexicographic order.
pub(crate) fn combinations(n: usize, k: usize) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    let mut chosen: Vec<usize> = (0..k).collect();
    loop {
        all.push(chosen.clone());
        let Some(i) = (0..k).rev().find(|&i| chosen[i] < n - k + i) else {
            return all;
        };
        chosen[i] += 1;
        for j in i + 1..k {
            chosen[j] = chosen[j - 1] + 1;
        }
    }
}

/// The permutation that puts the leading blocks in front and keeps the others in their order.
fn permutation<const N: usize>(
    scope_words: usize,
    sizes: &[u32],
    leading: Vec<usize>,
) -> Permutation<N> {
    let scope_bits = 64 * scope_words as u32;
    let start = |block: usize| scope_bits + sizes[..block].iter().sum::<u32>();
    let rest = (0..sizes.len()).filter(|block| !leading.contains(block));
    let mut segments: Vec<Segment> = (0..scope_words)
        .map(|word| Segment::in_place(word, u64::MAX))
        .collect();
    let mut to = scope_bits;
    for block in leading.iter().copied().chain(rest) {
        let mut from = start(block);
        let end = from + sizes[block];
        while from < end {
            // A segment stays within one word on both sides.
            let length = (end - from).min(64 - from % 64).min(64 - to % 64);
            let mask = (u64::MAX << (64 - length)) >> (from % 64);
            let turn = (64 + from % 64 - to % 64) % 64;
            let segment = Segment {
                from: (from / 64) as usize,
                to: (to / 64) as usize,
                mask,
                turn,
            };
            match segments.last_mut() {
                Some(last)
                    if (last.from, last.to, last.turn)
                        == (segment.from, segment.to, segment.turn) =>
                {
                    last.mask |= segment.mask;
                }
                _ => segments.push(segment),
            }
            from += length;
            to += length;
        }
    }
    Permutation {
        scope_words,
        segments,
        leading,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_permutations_that_the_paper_gives() {
        let permutations = |blocks| {
            BlockLayout::<1>::new(3, blocks)
                .unwrap()
                .permutations()
                .len()
        };
        assert_eq!(
            (permutations(4), permutations(5), permutations(6)),
            (4, 10, 20)
        );
        let five = BlockLayout::<1>::new(3, 5).unwrap();
        assert_eq!(five.blocks(), [13, 13, 13, 13, 12]);
        let bits: Vec<u32> = (0..10)
            .map(|permutation| five.leading_bits(permutation))
            .collect();
        assert!(bits.iter().all(|&bits| bits == 25 || bits == 26));
    }

    #[test]
    fn what_is_no_design() {
        assert_eq!(
            BlockLayout::<1>::new(9, 10).unwrap_err(),
            BlockLayoutError::RadiusTooLarge(8)
        );
        assert_eq!(
            BlockLayout::<5>::in_scope(true, 32, 33).unwrap_err(),
            BlockLayoutError::RadiusTooLarge(31)
        );
        assert_eq!(
            BlockLayout::<1>::new(3, 3).unwrap_err(),
            BlockLayoutError::BlocksOutOfRange
        );
        assert_eq!(
            BlockLayout::<1>::new(3, 65).unwrap_err(),
            BlockLayoutError::BlocksOutOfRange
        );
        assert_eq!(
            BlockLayout::<1>::new(3, 9).unwrap_err(),
            BlockLayoutError::TooManyPermutations(84)
        );
        assert_eq!(
            BlockLayout::<4>::new(31, 256).unwrap_err(),
            BlockLayoutError::TooManyPermutations(u64::MAX)
        );
    }

    #[test]
    fn every_block_leads_some_permutation() {
        every_block_leads_a_permutation::<1>();
        every_block_leads_a_permutation::<2>();
        every_block_leads_a_permutation::<4>();
    }

    fn every_block_leads_a_permutation<const N: usize>() {
        for radius in 0..=max_radius(64 * N as u32) {
            for blocks in radius + 1..=radius + 12 {
                let Ok(layout) = BlockLayout::<N>::new(radius, blocks) else {
                    continue;
                };
                if radius > 0 {
                    for block in 0..blocks as usize {
                        assert!(
                            layout
                                .permutations()
                                .iter()
                                .any(|t| t.leading()[0] == block)
                        );
                    }
                }
            }
        }
    }

    fn any_layout<const N: usize>() -> impl Strategy<Value = BlockLayout<N>> {
        let most = max_radius(64 * N as u32);
        (0..=most, 1..5u32).prop_filter_map("no layout", |(radius, more)| {
            BlockLayout::new(radius, radius + more).ok()
        })
    }

    proptest! {
        #[test]
        fn permuting_is_undone_and_keeps_distances(
            layout in any_layout::<1>(), a: [u64; 1], b: [u64; 1],
            wide in any_layout::<4>(), c: [u64; 4], d: [u64; 4],
        ) {
            for permutation in layout.permutations() {
                prop_assert_eq!(permutation.restore(&permutation.permute(&a)), a);
                prop_assert_eq!(
                    crate::key::distance(&permutation.permute(&a), &permutation.permute(&b), 0),
                    crate::key::distance(&a, &b, 0)
                );
            }
            for permutation in wide.permutations() {
                prop_assert_eq!(permutation.restore(&permutation.permute(&c)), c);
                prop_assert_eq!(
                    crate::key::distance(&permutation.permute(&c), &permutation.permute(&d), 0),
                    crate::key::distance(&c, &d, 0)
                );
            }
        }

        #[test]
        fn a_scope_stays_in_front_and_takes_no_part(
            radius in 0..=4u32, more in 1..=2u32, a: [u64; 3], b: [u64; 2],
        ) {
            let scoped = BlockLayout::<3>::in_scope(true, radius, radius + more).unwrap();
            let plain = BlockLayout::<2>::new(radius, radius + more).unwrap();
            prop_assert_eq!(scoped.bits(), 128);
            let both = scoped.permutations().iter().zip(plain.permutations());
            for (i, (permutation, same)) in both.enumerate() {
                let key = permutation.permute(&[a[0], b[0], b[1]]);
                prop_assert_eq!(key[0], a[0]);
                prop_assert_eq!([key[1], key[2]], same.permute(&b));
                prop_assert_eq!(permutation.restore(&permutation.permute(&a)), a);
                let mask = same.leading_mask(plain.leading_bits(i));
                let expected = [0, mask[0], mask[1]];
                prop_assert_eq!(permutation.leading_mask(scoped.leading_bits(i)), expected);
            }
        }

        #[test]
        fn within_the_radius_some_permutation_agrees_on_all_leading_bits(
            layout in any_layout::<2>(), a: [u64; 2],
            flips in prop::collection::vec(0..128u32, 0..17),
        ) {
            let mut b = a;
            for &bit in flips.iter().take(layout.radius() as usize) {
                b[bit as usize / 64] ^= 1 << (bit % 64);
            }
            let agrees = (0..layout.permutations().len()).any(|i| {
                let mask = layout.permutations()[i].leading_mask(layout.leading_bits(i));
                (0..2).all(|w| (a[w] ^ b[w]) & mask[w] == 0)
            });
            prop_assert!(agrees);
        }
    }
}
