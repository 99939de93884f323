//! Hamming distances of the keys of a leaf to a query, computed from the packed keys on the page: a
//! leaf omits the bytes with which all its keys begin ([`Shape`](crate::shape::Shape)).

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use super::neon;
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
))]
use super::packed_words::PackedWords;
use super::within;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::key::{Key, distance};
use crate::leaf::LeafKeys;

/// Like [`within`], for the keys of a leaf: appends to `found`, in ascending order, the indexes of
/// the keys within `radius` bits of the query. The first `skipped` words of keys do not count.
#[inline]
pub fn within_leaf<const N: usize>(
    keys: &LeafKeys<'_, N>,
    query: &Key<N>,
    skipped: usize,
    radius: u32,
    found: &mut Vec<u16>,
) {
    let left_out = keys.shape.left_out();
    if left_out == 0 {
        return within(keys.bytes(), query, skipped, radius, found);
    }
    // The omitted bits are the same in all keys, so they add the same to all distances.
    let differing = |word: usize| (keys.low[word] ^ query[word]) & !keys.mask(word);
    let words = skipped..N.min(left_out.div_ceil(8));
    let of_all: u32 = words.map(|word| differing(word).count_ones()).sum();
    let Some(rest) = radius.checked_sub(of_all) else {
        return;
    };
    #[cfg(any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    ))]
    {
        let (words, compared) = (PackedWords::new(keys, skipped), skipped.max(left_out / 8));
        if within_compared(words, &query[compared..], rest, found) {
            return;
        }
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("popcnt") {
        // SAFETY: the processor has POPCNT: just checked.
        return unsafe { within_words_popcnt(keys, query, skipped, rest, found) };
    }
    within_words(keys, query, skipped, rest, found);
}

/// Calls the fastest kernel that the processor supports. Appends to `found` the indexes of the keys
/// whose compared `words` are within `radius` bits of `query`, the compared words of the query.
/// Returns false, without a comparison, if no kernel is available.
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
))]
#[inline]
fn within_compared(
    words: PackedWords<'_>,
    query: &[u64],
    radius: u32,
    found: &mut Vec<u16>,
) -> bool {
    match *query {
        [a] => within_packed(words, &[a], radius, found),
        [a, b] => within_packed(words, &[a, b], radius, found),
        [a, b, c, d] => within_packed(words, &[a, b, c, d], radius, found),
        _ => false,
    }
}

/// Like [`within_compared`], for keys with `W` compared words.
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
))]
#[inline]
fn within_packed<const W: usize>(
    words: PackedWords<'_>,
    query: &[u64; W],
    radius: u32,
    found: &mut Vec<u16>,
) -> bool {
    let is_spread = words.is_spread(W);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: each kernel is called only after a check that the processor has its features.
    unsafe {
        if avx512::packed_is_there() {
            return match is_spread {
                false => avx512::within_packed::<W, false>(words, query, radius, found),
                true => avx512::within_packed::<W, true>(words, query, radius, found),
            };
        }
        if avx2::is_there() {
            return match is_spread {
                false => avx2::within_packed::<W, false>(words, query, radius, found),
                true => avx2::within_packed::<W, true>(words, query, radius, found),
            };
        }
    }
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    // SAFETY: every 64-bit ARM processor has NEON.
    unsafe {
        match is_spread {
            false => neon::within_packed::<W, false>(words, query, radius, found),
            true => neon::within_packed::<W, true>(words, query, radius, found),
        }
    }
    #[cfg(target_arch = "x86_64")]
    false
}

/// Portable kernel of [`within_leaf`]. It compares only the bits that the page stores. `radius` is
/// the maximum distance in these bits: the caller has subtracted from the search's radius the
/// number of omitted bits in which the keys differ from the query.
#[inline(always)]
fn within_words<const N: usize>(
    keys: &LeafKeys<'_, N>,
    query: &Key<N>,
    skipped: usize,
    radius: u32,
    found: &mut Vec<u16>,
) {
    let first = skipped.max(keys.shape.left_out() / 8);
    let mask = keys.mask(first);
    for i in 0..keys.len() {
        let mut distance = ((keys.word(i, first) ^ query[first]) & mask).count_ones();
        for (word, wanted) in query.iter().enumerate().skip(first + 1) {
            distance += (keys.word(i, word) ^ wanted).count_ones();
        }
        if distance <= radius {
            found.push(i as u16);
        }
    }
}

/// Does the same as [`within_words`], compiled with the POPCNT instruction of x86-64.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn within_words_popcnt<const N: usize>(
    keys: &LeafKeys<'_, N>,
    query: &Key<N>,
    skipped: usize,
    radius: u32,
    found: &mut Vec<u16>,
) {
    within_words(keys, query, skipped, radius, found);
}

/// Reference implementation of [`within_leaf`], which restores each whole key. Tests compare the
/// kernels with it.
pub fn within_leaf_portable<const N: usize>(
    keys: &LeafKeys<'_, N>,
    query: &Key<N>,
    skipped: usize,
    radius: u32,
    found: &mut Vec<u16>,
) {
    let near = |i: &usize| distance(&keys.get(*i), query, skipped) <= radius;
    found.extend((0..keys.len()).filter(near).map(|i| i as u16));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{EntryKey, Tid};
    use crate::leaf::{LeafMut, LeafRef};
    use crate::page::{PAGE_SIZE, Page};
    use crate::shape::Shape;
    use proptest::prelude::*;

    /// Returns a leaf whose keys all begin with the same `alike` bytes, which the leaf omits. They
    /// are the first bytes of the query, or other bytes if `other` is true. Each element of `keys`
    /// makes one key of the leaf. It has a key, bits to flip, and a flag. If the flag is true, the
    /// key of the leaf is the query with these bits flipped. Otherwise it is the element's key with
    /// these bits flipped. Then its first bytes are replaced by the common bytes.
    fn leaf_of<const N: usize>(
        query: &Key<N>,
        alike: usize,
        other: bool,
        keys: &[([u64; N], Vec<u32>, bool)],
    ) -> Box<Page> {
        let mut start = *query;
        if other {
            start[0] ^= 1 << 57;
        }
        let fixed = |word: usize| {
            let bits = (8 * alike).saturating_sub(64 * word).min(64) as u32;
            !u64::MAX.checked_shr(bits).unwrap_or(0)
        };
        let mut low = [0; N];
        let mut last = [u64::MAX; N];
        for word in 0..N {
            low[word] = start[word] & fixed(word);
            last[word] = start[word] | !fixed(word);
        }
        let low = EntryKey::before_key(0, low);
        let shape = Shape::between(&low, Some(&EntryKey::after_key(0, last)), true);
        assert_eq!(shape.left_out(), alike);
        let mut page = Box::new([0; PAGE_SIZE]);
        let mut leaf = LeafMut::format_leaf(&mut *page, &low, shape);
        for (far, flips, near) in keys {
            let mut key = if *near { *query } else { *far };
            for flip in flips {
                let bit = *flip as usize % (64 * N);
                key[bit / 64] ^= 1 << (bit % 64);
            }
            for word in 0..N {
                key[word] = start[word] & fixed(word) | key[word] & !fixed(word);
            }
            leaf.push(&key, Tid::new(1, 1));
        }
        page
    }

    fn assert_all_find_the_same<const N: usize>(
        query: [u64; N],
        radius: u32,
        keys: &[([u64; N], Vec<u32>, bool)],
        (alike, other): (usize, bool),
        skipped: usize,
    ) {
        let alike = alike.min(Shape::<N>::MOST_LEFT_OUT);
        let page = leaf_of(&query, alike, other, keys);
        let leaf = LeafRef::<N>::open(&page, 1).unwrap();
        let keys = leaf.keys();
        let mut expected = Vec::new();
        within_leaf_portable(&keys, &query, skipped, radius, &mut expected);
        let mut found = vec![7];
        within_leaf(&keys, &query, skipped, radius, &mut found);
        assert_eq!(found[1..], expected, "chosen");
        // Parts of the keys, which start at various offsets of the page.
        for start in [keys.len() / 3, keys.len() * 6 / 7] {
            let part = start..start + (keys.len() - start) * 2 / 3;
            let mut indexes: Vec<u16> = Vec::new();
            within_leaf(
                &keys.part(part.clone()),
                &query,
                skipped,
                radius,
                &mut indexes,
            );
            let wanted = expected
                .iter()
                .filter(|index| part.contains(&usize::from(**index)));
            assert!(
                indexes
                    .iter()
                    .map(|index| index + start as u16)
                    .eq(wanted.copied()),
                "part"
            );
        }
        let left_out = leaf.shape().left_out();
        let of_left_out: u32 = (skipped..N.min(left_out.div_ceil(8)))
            .map(|word| ((keys.low[word] ^ query[word]) & !keys.mask(word)).count_ones())
            .sum();
        let Some(rest) = radius.checked_sub(of_left_out) else {
            return assert!(expected.is_empty());
        };
        found.clear();
        within_words(&keys, &query, skipped, rest, &mut found);
        assert_eq!(found, expected, "word by word");
        let compared = &query[skipped.max(left_out / 8)..];
        // There is no vector kernel for three compared words.
        if compared.len() == 3 {
            return;
        }
        found.clear();
        #[cfg(target_arch = "x86_64")]
        if avx2::is_there() {
            let words = PackedWords::new(&keys, skipped);
            assert!(with_avx2(words, compared, rest, &mut found));
            assert_eq!(found, expected, "AVX2");
        }
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        {
            let words = PackedWords::new(&keys, skipped);
            assert!(within_compared(words, compared, rest, &mut found));
            assert_eq!(found, expected, "NEON");
        }
    }

    /// Calls the AVX2 kernel directly, for tests on a processor with AVX-512. There
    /// `within_compared` never uses this kernel.
    #[cfg(target_arch = "x86_64")]
    fn with_avx2(words: PackedWords<'_>, query: &[u64], radius: u32, found: &mut Vec<u16>) -> bool {
        fn of<const W: usize>(
            words: PackedWords<'_>,
            query: [u64; W],
            radius: u32,
            found: &mut Vec<u16>,
        ) -> bool {
            // SAFETY: the caller has checked that the processor has AVX2.
            unsafe {
                match words.is_spread(W) {
                    false => avx2::within_packed::<W, false>(words, &query, radius, found),
                    true => avx2::within_packed::<W, true>(words, &query, radius, found),
                }
            }
        }
        match *query {
            [a] => of(words, [a], radius, found),
            [a, b] => of(words, [a, b], radius, found),
            [a, b, c, d] => of(words, [a, b, c, d], radius, found),
            _ => unreachable!("no kernel for so many words"),
        }
    }

    macro_rules! all_find_the_same {
        ($($name:ident: $words:literal words, $skipped:literal skipped;)*) => {
            proptest! {
                $(#[test]
                fn $name(
                    query: [u64; $words], radius in 0..64u32 * $words + 2,
                    small in 0..12u32, wide: bool, range in (0..13usize, any::<bool>()),
                    keys in prop::collection::vec((
                        any::<[u64; $words]>(), prop::collection::vec(any::<u32>(), 0..8),
                        any::<bool>(),
                    ), 0..150),
                ) {
                    let radius = if wide { radius } else { small };
                    assert_all_find_the_same(query, radius, &keys, range, $skipped);
                })*
            }
        };
    }

    all_find_the_same! {
        on_64_bits: 1 words, 0 skipped;
        on_64_bits_with_a_scope: 2 words, 1 skipped;
        on_128_bits: 2 words, 0 skipped;
        on_128_bits_with_a_scope: 3 words, 1 skipped;
        on_256_bits: 4 words, 0 skipped;
        on_256_bits_with_a_scope: 5 words, 1 skipped;
    }

    #[test]
    fn all_kernels_read_a_full_leaf() {
        fn full<const N: usize>(skipped: usize) {
            // Miri takes seconds for each leaf, so it tests fewer shapes.
            let step = if cfg!(miri) { 5 } else { 1 };
            for alike in (0..=Shape::<N>::MOST_LEFT_OUT).step_by(step) {
                let query: Key<N> = std::array::from_fn(|i| 0x9e37_79b9_7f4a_7c15 << i);
                let keys: Vec<_> = (0..2000u32).map(|i| (query, vec![i; 1], true)).collect();
                let mut capacity = 0;
                for count in [1, 2000] {
                    // The page with one key shows how many keys fit on a page.
                    let count = if capacity == 0 { count } else { capacity };
                    let page = leaf_of(&query, alike, false, &keys[..count]);
                    capacity = LeafRef::<N>::open(&page, 1).unwrap().shape().capacity();
                }
                assert_all_find_the_same(query, 0, &keys[..capacity], (alike, false), skipped);
                assert_all_find_the_same(query, 1, &keys[..capacity - 1], (alike, true), skipped);
            }
        }
        full::<1>(0);
        full::<2>(0);
        full::<2>(1);
        full::<4>(0);
        full::<5>(1);
    }
}
