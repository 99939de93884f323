//! Kernels that find the keys of a leaf with a wanted prefix: the hash of a band, or an element of
//! a set.

use crate::key::word_at;
use crate::leaf::LeafKeys;

/// Appends to `found`, in ascending order, the indexes of the keys whose word at index `word`
/// agrees with `wanted` in its first `bits` bits (1 to 64). `keys` contains the bytes of whole keys
/// of `N` words, in the machine's byte order.
#[inline]
pub fn with_prefix<const N: usize>(
    keys: &[u8],
    word: usize,
    wanted: u64,
    bits: u32,
    found: &mut Vec<u16>,
) {
    let mask = u64::MAX << (64 - bits);
    #[cfg(target_arch = "x86_64")]
    if N == 2 && word == 0 && is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has AVX-512F: just checked.
        return unsafe { with_prefix_avx512(keys, wanted, mask, found) };
    }
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    if N == 2 && word == 0 {
        let rest = |found: &mut Vec<u16>| {
            with_prefix_portable::<2>(keys, 0, 0, wanted, mask, found);
        };
        // SAFETY: every 64-bit ARM processor has NEON.
        return unsafe { super::neon::with_prefix(keys, wanted, mask, rest, found) };
    }
    with_prefix_portable::<N>(keys, 0, word, wanted, mask, found);
}

/// Like [`with_prefix`], for the keys of a leaf, which may omit the bytes with which all its keys
/// begin.
#[inline]
pub fn leaf_with_prefix<const N: usize>(
    keys: &LeafKeys<'_, N>,
    word: usize,
    wanted: u64,
    bits: u32,
    found: &mut Vec<u16>,
) {
    let left_out = keys.shape.left_out();
    if left_out == 0 {
        return with_prefix::<N>(keys.bytes(), word, wanted, bits, found);
    }
    let mask = u64::MAX << (64 - bits);
    let there = keys.mask(word);
    // The omitted bits are the same in all keys. If they are not the wanted bits, no key matches.
    if (keys.low[word] ^ wanted) & mask & !there != 0 {
        return;
    }
    let mask = mask & there;
    #[cfg(target_arch = "x86_64")]
    if left_out >= 8 * word
        && N - word == 2
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512bw")
    {
        let stride = keys.shape.key_size();
        // SAFETY: the processor has AVX-512 VBMI and BW: just checked.
        return unsafe { packed_with_prefix_avx512(keys, stride, wanted, mask, found) };
    }
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    {
        let bytes = &keys.bytes_and_more()[(8 * word).saturating_sub(left_out)..];
        let (count, stride) = (keys.len(), keys.shape.key_size());
        // SAFETY: every 64-bit ARM processor has NEON.
        let is_done =
            unsafe { super::neon::packed_with_prefix(bytes, count, stride, (wanted, mask), found) };
        if is_done {
            return;
        }
    }
    if mask == 0 {
        found.extend(0..keys.len() as u16);
        return;
    }
    let equal = |i: &usize| (keys.word(*i, word) ^ wanted) & mask == 0;
    found.extend((0..keys.len()).filter(equal).map(|i| i as u16));
}

/// Portable kernel of [`with_prefix`]. Starts at the key at position `from`. `mask` selects the
/// compared bits of the word.
fn with_prefix_portable<const N: usize>(
    keys: &[u8],
    from: usize,
    word: usize,
    wanted: u64,
    mask: u64,
    found: &mut Vec<u16>,
) {
    for i in from..keys.len() / (8 * N) {
        if (word_at(keys, 8 * (N * i + word)) ^ wanted) & mask == 0 {
            found.push(i as u16);
        }
    }
}

/// AVX-512 kernel of [`with_prefix`] for keys of two words. Compares the first words of 16 keys at
/// a time. `mask` selects the compared bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn with_prefix_avx512(keys: &[u8], wanted: u64, mask: u64, found: &mut Vec<u16>) {
    use std::arch::x86_64::*;
    const STEP: usize = 16;
    let pairs = |word: u64| {
        let word = word as i64;
        _mm512_setr_epi64(word, 0, word, 0, word, 0, word, 0)
    };
    let (wanted_words, masks) = (pairs(wanted), pairs(mask));
    let (steps, _) = keys.as_chunks::<{ 16 * STEP }>();
    for (step, chunk) in steps.iter().enumerate() {
        let equal = |four: usize| {
            // SAFETY: the 64 bytes are within the chunk of 256 bytes. The load needs no alignment.
            let keys = unsafe { _mm512_loadu_si512(chunk.as_ptr().add(64 * four).cast()) };
            let differing = _mm512_xor_si512(keys, wanted_words);
            u32::from(_mm512_testn_epi64_mask(differing, masks)) << (8 * four)
        };
        // Every second bit belongs to the second word of a key and is ignored.
        let mut bits = (equal(0) | equal(1) | equal(2) | equal(3)) & 0x5555_5555;
        while bits != 0 {
            found.push((STEP * step) as u16 + bits.trailing_zeros() as u16 / 2);
            bits &= bits - 1;
        }
    }
    with_prefix_portable::<2>(keys, STEP * steps.len(), 0, wanted, mask, found);
}

/// AVX-512 kernel of [`leaf_with_prefix`] for keys that take at most 16 bytes on the page. Compares
/// eight keys at a time, each by the first word that the page stores. `stride` is the number of
/// bytes of a key. `mask` selects the compared bits, none of which the page omits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn packed_with_prefix_avx512<const N: usize>(
    keys: &LeafKeys<'_, N>,
    stride: usize,
    wanted: u64,
    mask: u64,
    found: &mut Vec<u16>,
) {
    use std::arch::x86_64::*;
    const STEP: usize = 8;
    let (bytes, count) = (keys.bytes_and_more(), keys.len());
    assert!(count.div_ceil(STEP) * STEP * stride + 64 <= bytes.len());
    // Copies the first eight bytes of each of four keys to two words of a register. The mask drops
    // the second words, and bytes that are not part of the compared word.
    let mut indexes = [0u8; 64];
    for (at, index) in indexes.iter_mut().enumerate() {
        *index = (at / 16 * stride + at % 8) as u8;
    }
    // SAFETY: the load reads 64 bytes, the size of `indexes`.
    let indexes = unsafe { _mm512_loadu_si512(indexes.as_ptr().cast()) };
    let pairs = |word: u64| {
        let word = word as i64;
        _mm512_setr_epi64(word, 0, word, 0, word, 0, word, 0)
    };
    let (wanted_words, masks) = (pairs(wanted), pairs(mask));
    for first in (0..count).step_by(STEP) {
        let equal = |four: usize| {
            let at = stride * (first + 4 * four);
            // SAFETY: key `first` exists. The assertion above ensures 64 bytes from the start of
            // each key in the step of keys that starts with it.
            let packed = unsafe { _mm512_loadu_si512(bytes.as_ptr().add(at).cast()) };
            let words = _mm512_permutexvar_epi8(indexes, packed);
            let differing = _mm512_xor_si512(words, wanted_words);
            u32::from(_mm512_testn_epi64_mask(differing, masks)) << (8 * four)
        };
        let there = (1u32 << (2 * (count - first).min(STEP))) - 1;
        let mut bits = (equal(0) | equal(1)) & 0x5555 & there;
        while bits != 0 {
            found.push(first as u16 + bits.trailing_zeros() as u16 / 2);
            bits &= bits - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{EntryKey, Tid};
    use crate::leaf::{LeafMut, LeafRef};
    use crate::page::PAGE_SIZE;
    use crate::shape::Shape;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_kernels_find_the_same_prefixes(
            wanted: u64, bits in 1..65_u32,
            keys in prop::collection::vec((any::<[u64; 2]>(), 0..70_u32), 0..400),
        ) {
            let bytes: Vec<u8> = keys
                .iter()
                .flat_map(|&([first, second], same)| {
                    let kept = u64::MAX.checked_shr(same).unwrap_or(0);
                    [(wanted & !kept) | (first & kept), second]
                })
                .flat_map(u64::to_ne_bytes)
                .collect();
            let mut expected = Vec::new();
            with_prefix_portable::<2>(&bytes, 0, 0, wanted, u64::MAX << (64 - bits), &mut expected);
            let mut found = Vec::new();
            with_prefix::<2>(&bytes, 0, wanted, bits, &mut found);
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn the_prefixes_of_a_leaf_are_those_of_its_keys(
            start: [u64; 3], alike in 0..13usize, other: bool, bits in 1..65_u32,
            keys in prop::collection::vec((any::<[u64; 3]>(), 0..70_u32), 0..200),
        ) {
            fn check<const N: usize>(
                start: [u64; N], alike: usize, word: usize, other: bool, bits: u32,
                keys: &[([u64; 3], u32)],
            ) {
                let fixed = |at: usize| {
                    let bits = (8 * alike).saturating_sub(64 * at).min(64) as u32;
                    !u64::MAX.checked_shr(bits).unwrap_or(0)
                };
                let (mut low, mut last) = ([0; N], [u64::MAX; N]);
                for at in 0..N {
                    low[at] = start[at] & fixed(at);
                    last[at] = start[at] | !fixed(at);
                }
                let low = EntryKey::before_key(0, low);
                let shape = Shape::between(&low, Some(&EntryKey::after_key(0, last)), true);
                let mut page = [0; PAGE_SIZE];
                let mut leaf = LeafMut::format_leaf(&mut page, &low, shape);
                let wanted = start[word] ^ (u64::from(other) << 60);
                let mut expected = Vec::new();
                for (i, (far, same)) in keys.iter().enumerate() {
                    let mut key: [u64; N] = std::array::from_fn(|at| {
                        start[at] & fixed(at) | far[at] & !fixed(at)
                    });
                    let kept = u64::MAX.checked_shr(*same).unwrap_or(0);
                    let near = wanted & !kept | key[word] & kept;
                    key[word] = start[word] & fixed(word) | near & !fixed(word);
                    if (key[word] ^ wanted) >> (64 - bits) == 0 {
                        expected.push(i as u16);
                    }
                    leaf.push(&key, Tid::new(1, 1));
                }
                let leaf = LeafRef::<N>::open(&page, 1).unwrap();
                let mut found = Vec::new();
                leaf_with_prefix(&leaf.keys(), word, wanted, bits, &mut found);
                assert_eq!(found, expected);
                let start = keys.len() / 3;
                let part = leaf.keys().part(start..keys.len() * 5 / 6);
                found.clear();
                leaf_with_prefix(&part, word, wanted, bits, &mut found);
                let indexes = found.iter().map(|index| index + start as u16);
                let there = start..start + part.len();
                let is_there = |index: &&u16| there.contains(&usize::from(**index));
                assert!(indexes.eq(expected.iter().filter(is_there).copied()));
            }
            let [a, b, _] = start;
            check([a, b], alike.min(12), 0, other, bits, &keys);
            check(start, alike.min(12), 1, other, bits, &keys);
        }
    }
}
