//! Kernels with AVX-512 that measure Hamming distances of keys to a query. Only some words of a key
//! are compared, which are called its compared words. A scope's word in front of them is not
//! compared. The kernels process eight words at a time and count bits by VPOPCNTDQ.

use super::packed_words::PackedWords;
use super::{push_bits, push_rest};
use crate::key::Key;
use std::arch::x86_64::*;

/// Number of keys that one step compares: a register holds eight distances of 64 bits.
const STEP: usize = 8;

/// Returns whether the processor has the instructions that [`within`] needs.
#[inline]
pub(super) fn is_there() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vpopcntdq")
        && is_x86_feature_detected!("popcnt")
}

/// AVX-512 kernel of [`super::within`]: appends to `found` the positions of the keys within
/// `radius` bits of the query. The compared words of a key are the words behind its first `skipped`
/// words. Returns false, without a comparison, if there is no kernel for this number of compared
/// words.
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
pub(super) fn within<const N: usize>(
    keys: &[u8],
    query: &Key<N>,
    skipped: usize,
    radius: u32,
    found: &mut Vec<u16>,
) -> bool {
    match (N - skipped, skipped) {
        (1, 0 | 1) => of_words::<N, 1, 4>(keys, query, radius, found),
        (2, 0 | 1) => of_words::<N, 2, 2>(keys, query, radius, found),
        (4, 0 | 1) => of_words::<N, 4, 1>(keys, query, radius, found),
        _ => return false,
    }
    true
}

/// Like [`within`], for keys of `N` words of which the last `W` words are compared. A step compares
/// eight keys. The results of `STEPS` steps are collected in one mask, which is then examined once.
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
fn of_words<const N: usize, const W: usize, const STEPS: usize>(
    keys: &[u8],
    query: &Key<N>,
    radius: u32,
    found: &mut Vec<u16>,
) {
    let repeated: [u64; 8] = std::array::from_fn(|i| query[N - W + i % W]);
    // SAFETY: the load reads 64 bytes, the eight words of `repeated`.
    let queries = unsafe { _mm512_loadu_si512(repeated.as_ptr().cast()) };
    let limit = _mm512_set1_epi64(i64::from(radius));
    let bytes = 8 * N * STEP;
    let near_of = |keys: &[u8]| {
        let differing = |part: usize| {
            let words = words::<N, W>(keys, part);
            _mm512_popcnt_epi64(_mm512_xor_si512(words, queries))
        };
        let distances = match W {
            1 => differing(0),
            2 => pairs(differing(0), differing(1)),
            _ => pairs(
                pairs(differing(0), differing(1)),
                pairs(differing(2), differing(3)),
            ),
        };
        u32::from(_mm512_cmple_epu64_mask(distances, limit))
    };
    let looks = keys.chunks_exact(bytes * STEPS);
    let rest = looks.remainder();
    let mut seen = 0;
    for look in looks {
        let near = |step: usize| near_of(&look[bytes * step..bytes * (step + 1)]) << (STEP * step);
        // Unrolled by hand, because the compiler does not unroll a loop here.
        let near = match STEPS {
            1 => near(0),
            2 => near(0) | near(1),
            _ => near(0) | near(1) | near(2) | near(3),
        };
        push_bits(near, seen, found);
        seen += STEP * STEPS;
    }
    // The keys left over are compared by single steps, not one by one. They matter, because groups
    // of few keys are compared as often as whole leaves.
    let steps = rest.chunks_exact(bytes);
    let rest = steps.remainder();
    for keys in steps {
        push_bits(near_of(keys), seen, found);
        seen += STEP;
    }
    if rest.is_empty() {
        return;
    }
    if N == 1 {
        let there = (1u8 << (rest.len() / 8)) - 1;
        // SAFETY: the masked load reads only the words of `rest`, which are fewer than eight.
        let keys = unsafe { _mm512_maskz_loadu_epi64(there, rest.as_ptr().cast()) };
        let distances = _mm512_popcnt_epi64(_mm512_xor_si512(keys, queries));
        let near = _mm512_mask_cmple_epu64_mask(there, distances, limit);
        push_bits(u32::from(near), seen, found);
    } else {
        push_rest(keys, seen, query, N - W, radius, found);
    }
}

/// Returns whether the processor has the instructions that [`within_packed`] needs.
#[inline]
pub(super) fn packed_is_there() -> bool {
    is_there() && is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vbmi")
}

/// Returns a byte shuffle and a byte mask, which unpack eight compared words (64 bytes) from packed
/// keys. Element `i` of the shuffle is the index of the packed byte that becomes byte `i` of the
/// words. Bit `i` of the mask is set if the packed keys contain that byte, and clear if the page
/// omits it. Each key has `W` compared words. `stride` and `cut` are the fields of [`PackedWords`].
const fn byte_indexes<const W: usize>(stride: usize, cut: usize) -> ([u8; 64], u64) {
    let (mut indexes, mut there) = ([0; 64], 0);
    let mut at = 0;
    while at < 64 {
        let (key, word, byte) = (at / (8 * W), at / 8 % W, at % 8);
        let before = if word == 0 { 0 } else { 8 * word - cut };
        indexes[at] = (key * stride + before + byte) as u8;
        if word > 0 || byte < 8 - cut {
            there |= 1 << at;
        }
        at += 1;
    }
    (indexes, there)
}

/// Returns the results of [`byte_indexes`] for keys whose compared words follow each other without
/// a gap. The index in the array is the number of omitted bytes, from 0 to 7.
const fn dense_byte_indexes<const W: usize>() -> [([u8; 64], u64); 8] {
    let mut all = [([0; 64], 0); 8];
    let mut cut = 0;
    while cut < 8 {
        all[cut] = byte_indexes::<W>(8 * W - cut, cut);
        cut += 1;
    }
    all
}

/// AVX-512 kernel of [`super::within_leaf`]: appends to `found` the indexes of the keys in `words`
/// within `radius` bits of the query. Each key has `W` compared words. `SPREAD` is true if the
/// bytes of a scope separate the compared words of two keys. The loads read beyond the keys.
/// Returns false, without a comparison, if too few bytes of the page follow the keys.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vpopcntdq,popcnt")]
pub(super) fn within_packed<const W: usize, const SPREAD: bool>(
    words: PackedWords<'_>,
    query: &[u64; W],
    radius: u32,
    found: &mut Vec<u16>,
) -> bool {
    /// Number of steps whose results are examined together, so that there is one branch for several
    /// steps.
    const STEPS: usize = 4;
    debug_assert!((W == 1 || W == 2 || W == 4) && SPREAD == words.is_spread(W));
    let (bytes, count, stride) = (words.bytes, words.count, words.stride);
    // Number of bytes that are loaded for eight compared words: one register, or two registers if
    // there are scopes between the words.
    let reach = if SPREAD { 128 } else { 64 };
    if count.div_ceil(STEP) * STEP * stride + reach > bytes.len() {
        return false;
    }
    let dense = const { &dense_byte_indexes::<W>() };
    let (indexes, there) = match SPREAD {
        false => dense[words.cut],
        true => byte_indexes::<W>(stride, words.cut),
    };
    let repeated: [u64; 8] = std::array::from_fn(|i| match i % W {
        0 => query[0] & words.mask(),
        word => query[word],
    });
    // SAFETY: each load reads 64 bytes, the size of `indexes` and of `repeated`.
    let (indexes, queries) = unsafe {
        (
            _mm512_loadu_si512(indexes.as_ptr().cast()),
            _mm512_loadu_si512(repeated.as_ptr().cast()),
        )
    };
    let limit = _mm512_set1_epi64(i64::from(radius));
    let near_of = |first: usize| {
        let differing = |part: usize| {
            let at = stride * (first + STEP / W * part);
            // SAFETY: key `first` exists, and each part begins within the step of keys that starts
            // with it. The check above ensures `reach` more bytes behind the last step.
            let words = unsafe { unpack::<SPREAD>(bytes.as_ptr().add(at), indexes, there) };
            _mm512_popcnt_epi64(_mm512_xor_si512(words, queries))
        };
        let distances = match W {
            1 => differing(0),
            2 => pairs(differing(0), differing(1)),
            _ => pairs(
                pairs(differing(0), differing(1)),
                pairs(differing(2), differing(3)),
            ),
        };
        u32::from(_mm512_cmple_epu64_mask(distances, limit))
    };
    let mut first = 0;
    while first + STEPS * STEP <= count {
        let near = |step: usize| near_of(first + STEP * step) << (STEP * step);
        push_bits(near(0) | near(1) | near(2) | near(3), first, found);
        first += STEPS * STEP;
    }
    while first < count {
        let there = (1u32 << (count - first).min(STEP)) - 1;
        push_bits(near_of(first) & there, first, found);
        first += STEP;
    }
    true
}

/// Returns eight words, unpacked from the bytes at `at`. `indexes` and `there` are the shuffle and
/// the mask that [`byte_indexes`] returns. If `SPREAD` is false, bytes whose bit in `there` is
/// clear become zero.
///
/// # Safety
/// 64 bytes can be read at `at`, or 128 if `SPREAD` is true.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn unpack<const SPREAD: bool>(at: *const u8, indexes: __m512i, there: u64) -> __m512i {
    // SAFETY: the caller ensures that these bytes can be read. The loads need no alignment.
    unsafe {
        let low = _mm512_loadu_si512(at.cast());
        match SPREAD {
            false => _mm512_maskz_permutexvar_epi8(there, indexes, low),
            true => {
                let high = _mm512_loadu_si512(at.add(64).cast());
                _mm512_permutex2var_epi8(low, indexes, high)
            }
        }
    }
}

/// Loads the compared words of `8 / W` keys into one register. A step has eight keys. They are
/// divided into `W` parts, so that the compared words of each part fill a register. `keys` has the
/// bytes of all keys of the step, and `part` is the index of the part to load.
#[inline]
#[target_feature(enable = "avx512f")]
fn words<const N: usize, const W: usize>(keys: &[u8], part: usize) -> __m512i {
    debug_assert!(keys.len() == 8 * N * STEP && part < W && (N == W || N == W + 1));
    // SAFETY: all loaded bytes are within the keys of the step, as each line says. The loads need
    // no alignment.
    unsafe {
        // First compared word of the first key of this part, behind the key's scope if it has one.
        let first = keys.as_ptr().add(8 * N * (8 / W) * part + 8 * (N - W));
        let key = |i: usize| first.add(8 * N * i);
        match (N - W, W) {
            // 64 bytes: 8 / W whole keys.
            (0, _) => _mm512_loadu_si512(first.cast()),
            // 128 bytes: eight scopes, each followed by one compared word.
            (_, 1) => {
                let scope = first.sub(8);
                let (low, high) = (
                    _mm512_loadu_si512(scope.cast()),
                    _mm512_loadu_si512(scope.add(64).cast()),
                );
                _mm512_permutex2var_epi64(low, odd(), high)
            }
            // The two compared words of four keys.
            (_, 2) => {
                let two = |i: usize| _mm_loadu_si128(key(i).cast());
                let low = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(two(0)), two(1));
                let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(two(2)), two(3));
                _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
            }
            // The four compared words of two keys.
            _ => {
                let four = |i: usize| _mm256_loadu_si256(key(i).cast());
                _mm512_inserti64x4::<1>(_mm512_castsi256_si512(four(0)), four(1))
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn even() -> __m512i {
    _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn odd() -> __m512i {
    _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15)
}

/// Adds each two neighbouring words: word 0 and word 1, word 2 and word 3, and so on. Returns the
/// four sums of `low`, then the four sums of `high`.
#[inline]
#[target_feature(enable = "avx512f")]
fn pairs(low: __m512i, high: __m512i) -> __m512i {
    _mm512_add_epi64(
        _mm512_permutex2var_epi64(low, even(), high),
        _mm512_permutex2var_epi64(low, odd(), high),
    )
}
