//! Block layouts: how a fingerprint is cut into blocks, and the permutations of an index that
//! follow from the cut. A permutation is an ordered copy of all keys, in which some blocks are
//! moved to the front (leading blocks). A search looks up the leading blocks of each permutation.
//! In this way it finds all fingerprints up to a distance that is called the guaranteed radius. If
//! the index has scopes (groups of rows that are searched separately), each key begins with a word
//! that has the scope's hash.
//!
//! A fingerprint of `64 * N` bits is cut into `b` blocks. For a guaranteed radius `k < b`, each of
//! the C(b, b-k) choices of b-k blocks gives one permutation, whose keys have the chosen blocks in
//! front. Two fingerprints within `k` bits differ in at most `k` blocks. So in at least one
//! permutation, all leading bits of their keys agree (Manku, Jain, Das Sarma, WWW 2007, section 3).

use crate::key::Key;
use crate::metric::near_duplicate_bits;
use crate::sets;

/// Maximum number of permutations of an index. Each permutation adds an entry for each row to the
/// size of the index and to the cost of an insert.
pub const MAX_PERMUTATIONS: usize = 64;

/// Cost of a descent from the root to a leaf, as a multiple of the cost of reading one more
/// adjacent leaf.
pub(crate) const DESCENT: f64 = 3.0;

/// Largest guaranteed radius of fingerprints of any width, in bits.
pub const MAX_RADIUS: u32 = 31;

/// Returns the largest guaranteed radius of fingerprints of `bits` bits, in bits. With a larger
/// radius, a permutation would have fewer than about seven leading bits, too few to narrow a search
/// to few leaves.
pub fn max_radius(bits: u32) -> u32 {
    (bits / 8).min(MAX_RADIUS)
}

/// Returns the default radius, in bits, of an index on fingerprints of `bits` bits, for
/// fingerprints of unknown origin.
pub fn default_radius(bits: u32) -> u32 {
    near_duplicate_bits(bits)
}

/// Reason why [`BlockLayout::in_scope`] rejects a radius and a number of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockLayoutError {
    /// The radius exceeds the largest guaranteed radius of this width. The value is that largest
    /// radius.
    RadiusTooLarge(u32),
    /// The number of blocks must exceed the radius and not exceed the number of bits.
    BlocksOutOfRange,
    /// The number of permutations, C(blocks, radius), exceeds [`MAX_PERMUTATIONS`]. The value is
    /// that number.
    TooManyPermutations(u64),
}

/// Consecutive bits of one word that a permutation moves together:
/// `out[to] |= (in[from] & mask).rotate_left(turn)`. `from` and `to` are indexes of words.
#[derive(Clone, Copy, Debug)]
struct Segment {
    from: usize,
    to: usize,
    mask: u64,
    turn: u32,
}

impl Segment {
    /// Creates a segment for bits of a word that the permutation does not move.
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

/// One permutation of an index: maps fingerprints to keys, and keys back to fingerprints.
#[derive(Clone, Debug)]
pub struct Permutation<const N: usize> {
    /// Number of words in front of the fingerprint that hold the scope's hash: 0 or 1.
    scope_words: usize,
    segments: Vec<Segment>,
    /// Numbers of the blocks whose bits are at the front of the key, in the order in the key.
    leading: Vec<usize>,
}

impl<const N: usize> Permutation<N> {
    /// Returns the key of a fingerprint in this permutation. The scope's word, if there is one,
    /// stays the first word.
    #[inline]
    pub fn permute(&self, fingerprint: &Key<N>) -> Key<N> {
        let mut key = [0; N];
        for s in &self.segments {
            key[s.to] |= (fingerprint[s.from] & s.mask).rotate_left(s.turn);
        }
        key
    }

    /// Returns the fingerprint of a key in this permutation. In an index over bands
    /// ([`crate::bands`]), returns the key without the bits of the band's hash.
    #[inline]
    pub fn restore(&self, key: &Key<N>) -> Key<N> {
        let mut fingerprint = [0; N];
        for s in &self.segments {
            fingerprint[s.from] |= key[s.to].rotate_right(s.turn) & s.mask;
        }
        fingerprint
    }

    /// Returns the numbers of the blocks whose bits are at the front of the key, in the order in
    /// the key.
    pub fn leading(&self) -> &[usize] {
        &self.leading
    }

    /// Returns a mask of the fingerprint's bits that are among the first `bits` bits of the key,
    /// counted behind the scope's word.
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

/// Blocks and permutations of one index.
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
    /// Number of words at the front of a key that hold the scope's hash: 0 or 1.
    scope_words: usize,
    /// Guaranteed radius, in bits.
    radius: u32,
    /// Width of each block in bits, in the order of the blocks in the fingerprint.
    blocks: Vec<u32>,
    permutations: Vec<Permutation<N>>,
    /// Number of bits at the front of a key, behind the scope, that are a band's hash or an element
    /// of a set. 0 for fingerprints.
    hash_bits: u32,
    /// Number of permutations that searches within the guaranteed radius do not probe (look up).
    /// They are the first permutations. 1 for an index over sets, otherwise 0.
    unprobed: usize,
}

/// Returns C(n, k), or `u64::MAX` if an intermediate result exceeds 32 bits.
fn choose(n: u64, k: u64) -> u64 {
    (0..k.min(n - k))
        // The intermediate results never shrink, because `i + 1` is at most `n / 2`.
        .try_fold(1u64, |product, i| {
            u32::try_from(product)
                .ok()
                .map(|product| u64::from(product) * (n - i) / (i + 1))
        })
        .unwrap_or(u64::MAX)
}

impl<const N: usize> BlockLayout<N> {
    /// Makes the block layout for fingerprints without a scope. `radius` is the guaranteed radius
    /// in bits, and `blocks` the number of blocks.
    pub fn new(radius: u32, blocks: u32) -> Result<Self, BlockLayoutError> {
        Self::in_scope(false, radius, blocks)
    }

    /// Makes the block layout for fingerprints. `radius` is the guaranteed radius in bits, and
    /// `blocks` the number of blocks. With `scope`, the first word of each key is the scope's hash,
    /// which no permutation moves. So entries of one scope are next to each other in each
    /// permutation.
    pub fn in_scope(scope: bool, radius: u32, blocks: u32) -> Result<Self, BlockLayoutError> {
        Self::with_interleaved(1, scope, radius, blocks)
    }

    /// Makes the block layout of an index, like [`BlockLayout::in_scope`]. The words of
    /// fingerprints are interleaved before they are cut into blocks. Neighbouring bits of an image
    /// hash depend on each other: a flat area of the image makes a run of equal bits. Blocks of
    /// neighbouring bits would then be equal in many rows.
    pub fn for_index(scope: bool, radius: u32, blocks: u32) -> Result<Self, BlockLayoutError> {
        Self::with_interleaved(N - usize::from(scope), scope, radius, blocks)
    }

    /// Makes a block layout like [`BlockLayout::in_scope`]. `interleaved` is the number of words of
    /// a fingerprint if these words are to be interleaved before they are cut into blocks, and 1 if
    /// not ([`permutation`]).
    fn with_interleaved(
        interleaved: usize,
        scope: bool,
        radius: u32,
        blocks: u32,
    ) -> Result<Self, BlockLayoutError> {
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
                // Each block should be the first block of some permutation, because searches beyond
                // the guaranteed radius look up prefixes near the first block alone.
                let first = (0..leading.len())
                    .min_by_key(|&i| led[leading[i]])
                    .unwrap_or(0);
                leading.rotate_left(first);
                led[leading[0]] += 1;
                permutation(scope_words, interleaved, &sizes, leading)
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

    /// Makes the layout of an index over bands ([`crate::bands`]): `count` permutations, one for
    /// each band, that store keys unchanged. The first word of a key behind the scope has a band's
    /// hash and bits of the sketch. `row` is a mask of the bits of the sketch, which are the same
    /// in all permutations. [`Permutation::restore`] keeps only these bits, so it returns the same
    /// key for all entries of a row.
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

    /// Makes the layout of an index over sets ([`crate::sets`]): one permutation with an entry for
    /// each row, and one with an entry for each element of each row. Both store keys unchanged.
    pub fn with_sets(scope: bool) -> Self {
        BlockLayout {
            hash_bits: sets::BITS,
            unprobed: usize::from(sets::ELEMENT_PERMUTATION),
            ..Self::with_bands(scope, sets::PERMUTATIONS, u64::MAX)
        }
    }

    /// Returns whether the index is over sets. Searches of such an index probe a permutation with
    /// an entry for each element of each row. In other indexes, each permutation has one entry for
    /// each row.
    pub fn has_elements(&self) -> bool {
        self.unprobed > 0
    }

    /// Returns whether searches within the guaranteed radius probe the permutation with this
    /// number.
    pub fn is_probed(&self, permutation: u16) -> bool {
        permutation < self.null_permutation() && usize::from(permutation) >= self.unprobed
    }

    /// Returns the number of words at the front of a key that hold the scope's hash: 0 or 1.
    pub fn scope_words(&self) -> usize {
        self.scope_words
    }

    /// Returns the width of a fingerprint in bits. 0 for indexes over bands or sets.
    pub fn bits(&self) -> u32 {
        self.blocks.iter().sum()
    }

    /// Returns the guaranteed radius, in bits. 0 for indexes over bands or sets.
    pub fn radius(&self) -> u32 {
        self.radius
    }

    /// Returns the width of each block in bits, in the order of the blocks in the fingerprint.
    pub fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    /// Returns the permutations of fingerprints, bands or sets, indexed by their numbers.
    pub fn permutations(&self) -> &[Permutation<N>] {
        &self.permutations
    }

    /// Returns the number of the additional permutation that holds the rows without a fingerprint
    /// (NULL). It follows all other permutations.
    pub fn null_permutation(&self) -> u16 {
        self.permutations.len() as u16
    }

    /// Returns the number of bits at the front of a permutation's keys, behind the scope, that a
    /// search within the guaranteed radius can look up. They are the bits of the leading blocks, of
    /// the band's hash, or of the element.
    pub fn leading_bits(&self, permutation: usize) -> u32 {
        let blocks = self.permutations[permutation].leading.iter();
        self.hash_bits + blocks.map(|&block| self.blocks[block]).sum::<u32>()
    }

    /// Returns the smallest [`BlockLayout::leading_bits`] of all permutations.
    pub fn fewest_leading_bits(&self) -> u32 {
        let permutations = 0..self.permutations.len();
        permutations
            .map(|permutation| self.leading_bits(permutation))
            .min()
            .unwrap_or(0)
    }
}

/// Returns all choices of `k` of the numbers from 0 to `n - 1`, in lexicographic order.
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

/// Makes the permutation whose keys start with the blocks `leading`, followed by the other blocks
/// in their original order. `sizes` has the width of each block in bits. `scope_words` is the
/// number of words in front of the fingerprint that the permutation does not move: 0 or 1.
///
/// `interleaved` is 1, or the number of words of a fingerprint. If it is 1, blocks are cut from the
/// fingerprint itself. Otherwise they are cut from interleaved words: bit `p` of word `s`, counted
/// from the most significant bit, is bit `p - p % interleaved + s` of the interleaved word
/// `p % interleaved`.
fn permutation<const N: usize>(
    scope_words: usize,
    interleaved: usize,
    sizes: &[u32],
    leading: Vec<usize>,
) -> Permutation<N> {
    let start = |block: usize| sizes[..block].iter().sum::<u32>();
    let rest = (0..sizes.len()).filter(|block| !leading.contains(block));
    let mut segments: Vec<Segment> = (0..scope_words)
        .map(|word| Segment::in_place(word, u64::MAX))
        .collect();
    let multiples = (0..64).step_by(interleaved);
    let multiples = multiples.fold(0u64, |mask, position| mask | 1 << (63 - position));
    let mut to = 0;
    for block in leading.iter().copied().chain(rest) {
        let mut from = start(block);
        let end = from + sizes[block];
        while from < end {
            // A segment must not cross a word boundary, neither in the fingerprint nor in the key.
            let length = (end - from).min(64 - from % 64).min(64 - to % 64);
            let mask = (u64::MAX << (64 - length)) >> (from % 64);
            let word = (from / 64) as usize;
            for residue in 0..interleaved {
                let (source, shift) = match interleaved {
                    1 => (word, 0),
                    _ => (residue, word as u32 + 64 - residue as u32),
                };
                let mask = (mask & (multiples >> residue)).rotate_right(shift % 64);
                let segment = Segment {
                    from: scope_words + source,
                    to: scope_words + (to / 64) as usize,
                    mask,
                    turn: (64 + from % 64 - to % 64 + shift) % 64,
                };
                let is_same = |other: &&mut Segment| {
                    (other.from, other.to, other.turn) == (segment.from, segment.to, segment.turn)
                };
                match segments[scope_words..].iter_mut().find(is_same) {
                    Some(other) => other.mask |= mask,
                    None if mask != 0 => segments.push(segment),
                    None => (),
                }
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
        fn words_of_an_index_are_interleaved(
            radius in 0..=16u32, more in 1..=3u32, a: [u64; 5], b: [u64; 4],
            bit in 0..256usize,
        ) {
            let Ok(scoped) = BlockLayout::<5>::for_index(true, radius, radius + more) else {
                return Ok(());
            };
            let plain = BlockLayout::<4>::for_index(false, radius, radius + more).unwrap();
            for (permutation, same) in scoped.permutations().iter().zip(plain.permutations()) {
                prop_assert_eq!(permutation.restore(&permutation.permute(&a)), a);
                prop_assert_eq!(same.restore(&same.permute(&b)), b);
                let key = permutation.permute(&[a[0], b[0], b[1], b[2], b[3]]);
                prop_assert_eq!(key[0], a[0]);
                prop_assert_eq!(&key[1..], &same.permute(&b)[..]);
            }
            // The first permutation begins with the first block, and has all blocks in order.
            let (word, position) = (bit / 64, bit % 64);
            let mut one = [0; 4];
            one[word] = 1 << (63 - position);
            let mut expected = [0; 4];
            expected[position % 4] = 1 << (63 - (position - position % 4 + word));
            let whole = BlockLayout::<4>::for_index(false, 0, 1).unwrap();
            prop_assert_eq!(whole.permutations()[0].permute(&one), expected);
            let narrow = BlockLayout::<1>::for_index(false, 3, 4).unwrap();
            let same = BlockLayout::<1>::new(3, 4).unwrap();
            for (narrow, same) in narrow.permutations().iter().zip(same.permutations()) {
                prop_assert_eq!(narrow.permute(&[a[0]]), same.permute(&[a[0]]));
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
