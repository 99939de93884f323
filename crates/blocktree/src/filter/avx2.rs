//! Kernels with AVX2 that measure Hamming distances of keys to a query. Only some words of a key
//! are compared, which are called its compared words. A scope's word in front of them is not
//! compared. The kernels process four words at a time. They count bits by a table of the counts of
//! half bytes (Muła, Kurz, Lemire, "Faster population counts using AVX2 instructions", 2018).

use super::packed_words::PackedWords;
use super::{push_bits, push_rest};
use crate::key::Key;
use std::arch::x86_64::*;

/// Number of keys that one step compares: a register holds four distances of 64 bits.
const STEP: usize = 4;
/// Number of steps whose results are examined together, so that there is one branch for several
/// steps.
const STEPS: usize = 4;

/// Returns whether the processor has the instructions that the kernels of this file need.
#[inline]
pub(super) fn is_there() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")
}

/// AVX2 kernel of [`super::within`]: appends to `found` the positions of the keys within `radius`
/// bits of the query. The compared words of a key are the words behind its first `skipped` words.
/// Returns false, without a comparison, if there is no kernel for this number of compared words.
#[target_feature(enable = "avx2,popcnt")]
pub(super) fn within<const N: usize>(
    keys: &[u8],
    query: &Key<N>,
    skipped: usize,
    radius: u32,
    found: &mut Vec<u16>,
) -> bool {
    match (N - skipped, skipped) {
        (1, 0 | 1) => of_words::<N, 1>(keys, query, radius, found),
        (2, 0 | 1) => of_words::<N, 2>(keys, query, radius, found),
        (4, 0 | 1) => of_words::<N, 4>(keys, query, radius, found),
        _ => return false,
    }
    true
}

/// Like [`within`], for keys of `N` words of which the last `W` words are compared.
#[target_feature(enable = "avx2,popcnt")]
fn of_words<const N: usize, const W: usize>(
    keys: &[u8],
    query: &Key<N>,
    radius: u32,
    found: &mut Vec<u16>,
) {
    let repeated: [u64; 4] = std::array::from_fn(|i| query[N - W + i % W]);
    // SAFETY: the load reads 32 bytes, the four words of `repeated`.
    let queries = unsafe { _mm256_loadu_si256(repeated.as_ptr().cast()) };
    let over = _mm256_set1_epi64x(i64::from(radius) + 1);
    let bytes = 8 * N * STEP;
    let looks = keys.chunks_exact(bytes * STEPS);
    let seen = looks.len() * STEP * STEPS;
    for (look, chunk) in looks.enumerate() {
        let near = |step: usize| {
            let keys = &chunk[bytes * step..bytes * (step + 1)];
            let differing =
                |part: usize| count(_mm256_xor_si256(words::<N, W>(keys, part), queries));
            let distances = match W {
                1 => differing(0),
                2 => pairs(differing(0), differing(1)),
                _ => pairs(
                    pairs(differing(0), differing(1)),
                    pairs(differing(2), differing(3)),
                ),
            };
            let within = _mm256_castsi256_pd(_mm256_cmpgt_epi64(over, distances));
            (_mm256_movemask_pd(within) as u32) << (STEP * step)
        };
        let near = near(0) | near(1) | near(2) | near(3);
        push_bits(near, STEP * STEPS * look, found);
    }
    push_rest(keys, seen, query, N - W, radius, found);
}

/// AVX2 kernel of [`super::within_leaf`]: appends to `found` the indexes of the keys in `words`
/// within `radius` bits of the query. Each key has `W` compared words. `SPREAD` is true if the
/// bytes of a scope separate the compared words of two keys. The loads read beyond the keys.
/// Returns false, without a comparison, if too few bytes of the page follow the keys.
#[target_feature(enable = "avx2,popcnt")]
pub(super) fn within_packed<const W: usize, const SPREAD: bool>(
    words: PackedWords<'_>,
    query: &[u64; W],
    radius: u32,
    found: &mut Vec<u16>,
) -> bool {
    debug_assert!((W == 1 || W == 2 || W == 4) && SPREAD == words.is_spread(W));
    let (bytes, keys, stride) = (words.bytes, words.count, words.stride);
    if keys.div_ceil(STEP) * STEP * stride + 16 > bytes.len() {
        return false;
    }
    let halves = byte_indexes::<W, SPREAD>(stride, words.cut);
    let repeated: [u64; 4] = std::array::from_fn(|i| match i % W {
        0 => query[0] & words.mask(),
        word => query[word],
    });
    // SAFETY: each load reads 32 bytes, the size of `halves` and of `repeated`.
    let (indexes, queries) = unsafe {
        (
            _mm256_loadu_si256(halves.as_ptr().cast()),
            _mm256_loadu_si256(repeated.as_ptr().cast()),
        )
    };
    let over = _mm256_set1_epi64x(i64::from(radius) + 1);
    let near_of = |first: usize| {
        let differing = |part: usize| {
            let half_of = |number: usize| {
                let within = match W {
                    1 => 2 * number * stride,
                    2 => number * stride,
                    _ => number / 2 * stride + number % 2 * (16 - words.cut),
                };
                // SAFETY: key `first` exists, and each half begins within the step of keys that
                // starts with it. The check above ensures 16 more bytes behind the last step.
                unsafe { half::<W, SPREAD>(bytes.as_ptr().add(stride * first + within), stride) }
            };
            let (low, high) = (half_of(2 * part), half_of(2 * part + 1));
            let packed = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
            count(_mm256_xor_si256(
                _mm256_shuffle_epi8(packed, indexes),
                queries,
            ))
        };
        let distances = match W {
            1 => differing(0),
            2 => pairs(differing(0), differing(1)),
            _ => pairs(
                pairs(differing(0), differing(1)),
                pairs(differing(2), differing(3)),
            ),
        };
        let within = _mm256_castsi256_pd(_mm256_cmpgt_epi64(over, distances));
        _mm256_movemask_pd(within) as u32
    };
    let mut first = 0;
    while first + STEPS * STEP <= keys {
        let near = |step: usize| near_of(first + STEP * step) << (STEP * step);
        push_bits(near(0) | near(1) | near(2) | near(3), first, found);
        first += STEPS * STEP;
    }
    while first < keys {
        let there = (1u32 << (keys - first).min(STEP)) - 1;
        push_bits(near_of(first) & there, first, found);
        first += STEP;
    }
    true
}

/// Returns two byte shuffles, one for each half of a register. A shuffle unpacks two compared words
/// from the 16 packed bytes that were loaded for its half. Its element `i` is the index of the
/// packed byte that becomes byte `i` of the words, or 0x80 for a zero byte. Each key has `W`
/// compared words. `stride` and `cut` are the fields of [`PackedWords`].
fn byte_indexes<const W: usize, const SPREAD: bool>(stride: usize, cut: usize) -> [[u8; 16]; 2] {
    [0, 1].map(|half| {
        std::array::from_fn(|at| match (at / 8, at % 8) {
            // No byte of these words is omitted.
            _ if SPREAD || W == 4 && half == 1 => at as u8,
            (word, byte) if word == 0 || W == 1 => match byte < 8 - cut {
                true => (word * stride + byte) as u8,
                false => 0x80,
            },
            (_, byte) => (8 - cut + byte) as u8,
        })
    })
}

/// Loads the packed bytes of two compared words, which fill half a register. `stride` is the number
/// of bytes from one key to the next.
///
/// # Safety
/// 16 bytes can be read at `at`. If `W` is 1 and `SPREAD` is true, 8 bytes can be read at `at` and
/// 8 bytes at `at + stride`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn half<const W: usize, const SPREAD: bool>(at: *const u8, stride: usize) -> __m128i {
    // SAFETY: the caller ensures that these bytes can be read. The loads need no alignment.
    unsafe {
        match SPREAD && W == 1 {
            true => {
                let [low, high] = [at, at.add(stride)].map(|at| _mm_loadl_epi64(at.cast()));
                _mm_unpacklo_epi64(low, high)
            }
            false => _mm_loadu_si128(at.cast()),
        }
    }
}

/// Returns the number of set bits of each 64-bit word.
#[inline]
#[target_feature(enable = "avx2")]
fn count(words: __m256i) -> __m256i {
    let half = _mm256_set1_epi8(0x0f);
    let counts = _mm256_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, //
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
    );
    let low = _mm256_and_si256(words, half);
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(words), half);
    let bytes = _mm256_add_epi8(
        _mm256_shuffle_epi8(counts, low),
        _mm256_shuffle_epi8(counts, high),
    );
    _mm256_sad_epu8(bytes, _mm256_setzero_si256())
}

/// Loads the compared words of `4 / W` keys into one register. A step has four keys. They are
/// divided into `W` parts, so that the compared words of each part fill a register. `keys` has the
/// bytes of all keys of the step, and `part` is the index of the part to load.
#[inline]
#[target_feature(enable = "avx2")]
fn words<const N: usize, const W: usize>(keys: &[u8], part: usize) -> __m256i {
    debug_assert!(keys.len() == 8 * N * STEP && part < W && (N == W || N == W + 1));
    // SAFETY: all loaded bytes are within the keys of the step, as each line says. The loads need
    // no alignment.
    unsafe {
        // First compared word of the first key of this part, behind the key's scope if it has one.
        let first = keys.as_ptr().add(8 * N * (4 / W) * part + 8 * (N - W));
        match (N - W, W) {
            // 32 bytes: 4 / W whole keys, or the four compared words of one key.
            (0, _) | (_, 4) => _mm256_loadu_si256(first.cast()),
            // 64 bytes: four scopes, each followed by one compared word.
            (_, 1) => {
                let scope = first.sub(8);
                let (low, high) = (
                    _mm256_loadu_si256(scope.cast()),
                    _mm256_loadu_si256(scope.add(32).cast()),
                );
                in_order(_mm256_unpackhi_epi64(low, high))
            }
            // The two compared words of two keys.
            _ => {
                let two = |i: usize| _mm_loadu_si128(first.add(8 * N * i).cast());
                _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(two(0)), two(1))
            }
        }
    }
}

/// Swaps the two middle words of a register. AVX2 instructions that combine two registers
/// interleave the halves of both. The swap puts the words of each register next to each other.
#[inline]
#[target_feature(enable = "avx2")]
fn in_order(words: __m256i) -> __m256i {
    _mm256_permute4x64_epi64::<0b11_01_10_00>(words)
}

/// Adds each two neighbouring words: word 0 and word 1, then word 2 and word 3. Returns the two
/// sums of `low`, then the two sums of `high`.
#[inline]
#[target_feature(enable = "avx2")]
fn pairs(low: __m256i, high: __m256i) -> __m256i {
    in_order(_mm256_add_epi64(
        _mm256_unpacklo_epi64(low, high),
        _mm256_unpackhi_epi64(low, high),
    ))
}
