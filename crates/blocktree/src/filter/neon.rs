//! Kernels with NEON, which each 64-bit ARM processor has. They compare keys with a query by
//! Hamming distance or by a prefix. For a distance, they compare only some words of a key, which
//! are called its compared words. They count the bits of each byte and add neighbouring counts
//! until there is one count for each key.

use super::packed_words::PackedWords;
use super::push_rest;
use crate::key::Key;
use std::arch::aarch64::*;
use std::array::from_fn;

/// Number of keys that one step compares. Each byte of a register is the result for one key.
const STEP: usize = 16;
/// Keys of `N` words that are compared in one step.
type Step<const N: usize> = [[Word; N]; STEP];
/// Bytes of a 64-bit word in the machine's byte order, as on a page.
type Word = [u8; 8];

/// NEON kernel of [`super::within`]: appends to `found` the positions of the keys within `radius`
/// bits of the query. The compared words of a key are the words behind its first `skipped` words.
/// Returns false, without a comparison, if there is no kernel for this number of compared words.
#[target_feature(enable = "neon")]
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
#[target_feature(enable = "neon")]
fn of_words<const N: usize, const W: usize>(
    keys: &[u8],
    query: &Key<N>,
    radius: u32,
    found: &mut Vec<u16>,
) {
    let queries = queries_of::<W>(from_fn(|word| query[N - W + word]));
    each_step::<N>(
        keys,
        |keys| {
            let words = keys.as_flattened();
            let first_word = |key: usize| N * key + N - W;
            let two_words = |i: usize| match (N, W) {
                (1, 1) => load(words, 2 * i),
                // Two keys, each with a scope and one compared word. The scopes are dropped.
                (_, 1) => {
                    let key = |number: usize| load_u64(words, 2 * (2 * i + number));
                    vreinterpretq_u8_u64(vuzp2q_u64(key(0), key(1)))
                }
                (_, 2) => load(words, first_word(i)),
                _ => load(words, first_word(i / 2) + i % 2 * 2),
            };
            near::<W>(two_words, queries, radius)
        },
        |found| push_rest(keys, 0, query, N - W, radius, found),
        found,
    );
}

/// NEON kernel of [`super::within_leaf`]: appends to `found` the indexes of the keys in `words`
/// within `radius` bits of the query. Each key has `W` compared words. `SPREAD` is true if the
/// bytes of a scope separate the compared words of two keys. The loads read beyond the keys.
/// Returns false, without a comparison, if too few bytes of the page follow the keys.
#[target_feature(enable = "neon")]
pub(super) fn within_packed<const W: usize, const SPREAD: bool>(
    words: PackedWords<'_>,
    query: &[u64; W],
    radius: u32,
    found: &mut Vec<u16>,
) -> bool {
    debug_assert!((W == 1 || W == 2 || W == 4) && SPREAD == words.is_spread(W));
    let (bytes, count, stride, cut) = (words.bytes, words.count, words.stride, words.cut);
    if count.next_multiple_of(STEP) * stride + 16 > bytes.len() {
        return false;
    }
    let mut query = *query;
    query[0] &= words.mask();
    let queries = queries_of::<W>(query);
    let indexes: [u8; 16] = from_fn(|at| match (at / 8, at % 8) {
        // The page omits this byte. An index out of range makes a zero byte.
        (word, byte) if (word == 0 || W == 1) && byte >= 8 - cut => u8::MAX,
        (word, byte) if W == 1 => (word * stride + byte) as u8,
        (word, byte) => (word * (8 - cut) + byte) as u8,
    });
    // SAFETY: the load reads 16 bytes, the size of `indexes`.
    let indexes = unsafe { vld1q_u8(indexes.as_ptr()) };
    for first in (0..count).step_by(STEP) {
        let two_words = |i: usize| {
            let within = match W {
                1 => 2 * i * stride,
                2 => i * stride,
                _ => i / 2 * stride + i % 2 * (16 - cut),
            };
            // SAFETY: key `first` exists, and each load begins within the step of keys that starts
            // with it. The check above ensures 16 more bytes behind the last step.
            unsafe {
                let at = bytes.as_ptr().add(stride * first + within);
                match (W, SPREAD) {
                    (1, true) => vcombine_u8(vld1_u8(at), vld1_u8(at.add(stride))),
                    (_, true) => vld1q_u8(at),
                    (4, _) if i % 2 == 1 => vld1q_u8(at),
                    _ => vqtbl1q_u8(vld1q_u8(at), indexes),
                }
            }
        };
        let near = lanes(near::<W>(two_words, queries, radius));
        push_lanes(near & first_lanes(count - first), first, found);
    }
    true
}

/// NEON kernel of [`super::with_prefix`] for keys of two words. Appends to `found` the positions of
/// the keys whose first word agrees with `wanted` in the bits of `mask`. If there are fewer than 16
/// keys, calls `rest` instead, which compares them.
#[target_feature(enable = "neon")]
pub(super) fn with_prefix(
    keys: &[u8],
    wanted: u64,
    mask: u64,
    rest: impl Fn(&mut Vec<u16>),
    found: &mut Vec<u16>,
) {
    let equal_of = |keys: &Step<2>| {
        let two = |i: usize| {
            let key = |number: usize| load_u64(&keys[2 * i + number], 0);
            vuzp1q_u64(key(0), key(1))
        };
        equal(two, wanted, mask)
    };
    each_step::<2>(keys, equal_of, rest, found);
}

/// NEON kernel of [`super::leaf_with_prefix`] for `count` keys at the start of `bytes`. Each key
/// starts `stride` bytes behind the start of the previous key. Appends to `found` the positions of
/// the keys whose first eight bytes agree with `wanted` in the bits of `mask`. The loads read
/// beyond the keys. Returns false, without a comparison, if too few bytes follow the keys.
#[target_feature(enable = "neon")]
pub(super) fn packed_with_prefix(
    bytes: &[u8],
    count: usize,
    stride: usize,
    (wanted, mask): (u64, u64),
    found: &mut Vec<u16>,
) -> bool {
    if count.next_multiple_of(STEP) * stride + 8 > bytes.len() {
        return false;
    }
    for first in (0..count).step_by(STEP) {
        let two = |i: usize| {
            // SAFETY: key `first` exists. The check above ensures eight bytes from the start of
            // each key in the step of keys that starts with it.
            unsafe {
                let at = bytes.as_ptr().add(stride * (first + 2 * i));
                let words = vcombine_u8(vld1_u8(at), vld1_u8(at.add(stride)));
                vreinterpretq_u64_u8(words)
            }
        };
        let equal = lanes(equal(two, wanted, mask));
        push_lanes(equal & first_lanes(count - first), first, found);
    }
    true
}

/// Compares 16 words with `wanted`. Returns a byte for each word: all ones if the word agrees with
/// `wanted` in the bits of `mask`, otherwise zero. `two(i)` loads the words `2 * i` and
/// `2 * i + 1`.
#[inline]
#[target_feature(enable = "neon")]
fn equal(two: impl Fn(usize) -> uint64x2_t, wanted: u64, mask: u64) -> uint8x16_t {
    let (wanted, mask) = (vdupq_n_u64(wanted), vdupq_n_u64(mask));
    let equal = |i: usize| vceqzq_u64(vandq_u64(veorq_u64(two(i), wanted), mask));
    // All bytes of a comparison result are equal, so any of them may be kept.
    let of_4 = |i: usize| {
        let [a, b] = [equal(2 * i), equal(2 * i + 1)].map(|lanes| vreinterpretq_u32_u64(lanes));
        vreinterpretq_u16_u32(vuzp1q_u32(a, b))
    };
    let of_8 = |i: usize| vreinterpretq_u8_u16(vuzp1q_u16(of_4(2 * i), of_4(2 * i + 1)));
    vuzp1q_u8(of_8(0), of_8(1))
}

/// Calls `matches_of` for each step of 16 keys of `N` words. The result of `matches_of` has a byte
/// for each key. Appends to `found` the positions of the keys whose byte is not zero. If the number
/// of keys is not a multiple of 16, calls `matches_of` again for the last 16 keys and appends only
/// the new positions. If there are fewer than 16 keys, calls `rest` instead.
#[inline]
#[target_feature(enable = "neon")]
fn each_step<const N: usize>(
    keys: &[u8],
    matches_of: impl Fn(&Step<N>) -> uint8x16_t,
    rest: impl Fn(&mut Vec<u16>),
    found: &mut Vec<u16>,
) {
    let (words, _) = keys.as_chunks();
    let (keys, _) = words.as_chunks();
    let (steps, left) = keys.as_chunks();
    let Some(last) = keys.last_chunk() else {
        return rest(found);
    };
    for (step, keys) in steps.iter().enumerate() {
        push_lanes(lanes(matches_of(keys)), STEP * step, found);
    }
    if !left.is_empty() {
        let from = keys.len() - STEP;
        let fresh = u64::MAX << (4 * (STEP - left.len()));
        push_lanes(lanes(matches_of(last)) & fresh, from, found);
    }
}

/// Returns the query in two registers of two words each. A query of four words has words 0 and 1 in
/// the first register, and words 2 and 3 in the second. A query of two words has words 0 and 1 in
/// both registers. A query of one word has this word twice in both registers.
#[inline]
#[target_feature(enable = "neon")]
fn queries_of<const W: usize>(query: [u64; W]) -> [uint8x16_t; 2] {
    [0, 2].map(|first| {
        let word = |i: usize| vcreate_u64(query[(first + i) % W]);
        vreinterpretq_u8_u64(vcombine_u64(word(0), word(1)))
    })
}

/// Compares 16 keys of `W` words with the query. Returns a byte for each key: all ones if the key
/// is within the radius, otherwise zero. The words of all keys are numbered one after the other,
/// and `two_words(i)` loads the words `2 * i` and `2 * i + 1`. `queries` is the result of
/// [`queries_of`].
#[inline]
#[target_feature(enable = "neon")]
fn near<const W: usize>(
    two_words: impl Fn(usize) -> uint8x16_t,
    queries: [uint8x16_t; 2],
    radius: u32,
) -> uint8x16_t {
    let count = |i: usize, query: usize| vcntq_u8(veorq_u8(two_words(i), queries[query]));
    match W {
        1 => {
            let distances = sum_of_8(from_fn(|i| count(i, 0)));
            vcleq_u8(distances, vdupq_n_u8(radius.min(64) as u8))
        }
        2 => {
            let eight = |half: usize| sum_of_8(from_fn(|i| count(8 * half + i, 0)));
            let distances = vpaddq_u8(eight(0), eight(1));
            vcleq_u8(distances, vdupq_n_u8(radius.min(128) as u8))
        }
        _ => {
            let key = |i: usize| vaddq_u8(count(2 * i, 0), count(2 * i + 1, 1));
            // A distance of 256 bits does not fit into a byte.
            let limit = vdupq_n_u16(radius.min(256) as u16);
            let eight = |half: usize| {
                let distances = vpaddlq_u8(sum_of_8(from_fn(|i| key(8 * half + i))));
                vreinterpretq_u8_u16(vcleq_u16(distances, limit))
            };
            vuzp1q_u8(eight(0), eight(1))
        }
    }
}

/// Adds each eight neighbouring bytes. Returns the 16 sums in the order of the registers, two for
/// each register.
#[inline]
#[target_feature(enable = "neon")]
fn sum_of_8(registers: [uint8x16_t; 8]) -> uint8x16_t {
    let [a, b, c, d, e, f, g, h] = registers;
    let (low, high) = (vpaddq_u8(a, b), vpaddq_u8(c, d));
    let (low, high) = (
        vpaddq_u8(low, high),
        vpaddq_u8(vpaddq_u8(e, f), vpaddq_u8(g, h)),
    );
    vpaddq_u8(low, high)
}

/// Loads two words, from the word at index `at` on, as bytes.
#[inline]
#[target_feature(enable = "neon")]
fn load(words: &[Word], at: usize) -> uint8x16_t {
    let bytes = words[at..at + 2].as_flattened();
    // SAFETY: the load reads the 16 bytes of `bytes`. It needs no alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// Loads two words, from the word at index `at` on.
#[inline]
#[target_feature(enable = "neon")]
fn load_u64(words: &[Word], at: usize) -> uint64x2_t {
    vreinterpretq_u64_u8(load(words, at))
}

/// Packs the results of 16 keys into a word. `bytes` has a byte for each key: all ones or zero. The
/// word has four bits for each key, which are equal to the bits of the key's byte.
#[inline]
#[target_feature(enable = "neon")]
fn lanes(bytes: uint8x16_t) -> u64 {
    let narrow = vshrn_n_u16::<4>(vreinterpretq_u16_u8(bytes));
    vget_lane_u64::<0>(vreinterpret_u64_u8(narrow))
}

/// Returns a mask that selects the first `keys` keys of a step. The mask has four bits for each
/// key.
#[inline]
fn first_lanes(keys: usize) -> u64 {
    match keys < STEP {
        true => (1 << (4 * keys)) - 1,
        false => u64::MAX,
    }
}

/// Appends the position of each key whose four bits in `lanes` are set, plus `base`, to `found`.
#[inline]
#[target_feature(enable = "neon")]
fn push_lanes(lanes: u64, base: usize, found: &mut Vec<u16>) {
    let mut bits = lanes & 0x1111_1111_1111_1111;
    while bits != 0 {
        found.push((base + bits.trailing_zeros() as usize / 4) as u16);
        bits &= bits - 1;
    }
}
