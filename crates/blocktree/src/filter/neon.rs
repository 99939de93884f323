//! Kernels with NEON, which each 64-bit ARM processor has: the set bits of each byte are counted,
//! and neighbouring counts added until there is one for each key.

use super::push_rest;
use crate::key::Key;
use std::arch::aarch64::*;
use std::array::from_fn;

/// Keys of a step: a byte of a register tells whether a key is near.
const STEP: usize = 16;
/// Keys that are examined at once.
type Step<const N: usize> = [[Word; N]; STEP];
/// A word as it is on the page.
type Word = [u8; 8];

/// See [`super::within`]. False, with nothing done: not for this number of words.
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

/// Keys of which the last `W` words count.
#[target_feature(enable = "neon")]
fn of_words<const N: usize, const W: usize>(
    keys: &[u8],
    query: &Key<N>,
    radius: u32,
    found: &mut Vec<u16>,
) {
    // What the halves of a key of four words, or keys of fewer words, are compared with.
    let queries = [0, 2].map(|first| {
        let word = |i: usize| vcreate_u64(query[N - W + (first + i) % W]);
        vreinterpretq_u8_u64(vcombine_u64(word(0), word(1)))
    });
    each_step::<N>(
        keys,
        |keys| near::<N, W>(keys, queries, radius),
        |found| push_rest(keys, 0, query, N - W, radius, found),
        found,
    );
}

/// See [`super::with_prefix`]: keys of two words, of which the first is compared. `rest` does it
/// for fewer than 16.
#[target_feature(enable = "neon")]
pub(super) fn with_prefix(
    keys: &[u8],
    wanted: u64,
    mask: u64,
    rest: impl Fn(&mut Vec<u16>),
    found: &mut Vec<u16>,
) {
    let (wanted_words, masks) = (vdupq_n_u64(wanted), vdupq_n_u64(mask));
    let equal_of = |keys: &Step<2>| {
        let equal = |two: usize| {
            let key = |i: usize| load_u64(&keys[2 * two + i], 0);
            let words = vuzp1q_u64(key(0), key(1));
            vceqzq_u64(vandq_u64(veorq_u64(words, wanted_words), masks))
        };
        // All bytes of a word are alike, so that any of them may be kept.
        let of_4 = |i: usize| {
            let [a, b] = [equal(2 * i), equal(2 * i + 1)].map(|lanes| vreinterpretq_u32_u64(lanes));
            vreinterpretq_u16_u32(vuzp1q_u32(a, b))
        };
        let of_8 = |i: usize| vreinterpretq_u8_u16(vuzp1q_u16(of_4(2 * i), of_4(2 * i + 1)));
        vuzp1q_u8(of_8(0), of_8(1))
    };
    each_step::<2>(keys, equal_of, rest, found);
}

/// Has `matches_of` examine 16 keys of `N` words at a time, and the last of them once more in part
/// if their number is no multiple of 16. Fewer than 16 are left to `rest`.
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

/// Lanes of the 16 keys that are within the radius.
#[inline]
#[target_feature(enable = "neon")]
fn near<const N: usize, const W: usize>(
    keys: &Step<N>,
    queries: [uint8x16_t; 2],
    radius: u32,
) -> uint8x16_t {
    debug_assert!(N == W || N == W + 1);
    let words = keys.as_flattened();
    let count = |at: usize, query: uint8x16_t| vcntq_u8(veorq_u8(load(words, at), query));
    let first_word = |key: usize| N * key + N - W;
    match W {
        1 => {
            let counts = |two: usize| match N {
                1 => count(2 * two, queries[0]),
                // Two keys with their scopes, which are left out.
                _ => {
                    let key = |i: usize| load_u64(words, 2 * (2 * two + i));
                    let words = vreinterpretq_u8_u64(vuzp2q_u64(key(0), key(1)));
                    vcntq_u8(veorq_u8(words, queries[0]))
                }
            };
            vcleq_u8(sum_of_8(from_fn(counts)), vdupq_n_u8(radius.min(64) as u8))
        }
        2 => {
            let eight =
                |half: usize| sum_of_8(from_fn(|i| count(first_word(8 * half + i), queries[0])));
            let distances = vpaddq_u8(eight(0), eight(1));
            vcleq_u8(distances, vdupq_n_u8(radius.min(128) as u8))
        }
        _ => {
            let key = |key: usize| {
                let at = first_word(key);
                vaddq_u8(count(at, queries[0]), count(at + 2, queries[1]))
            };
            // 256 does not fit into a byte.
            let limit = vdupq_n_u16(radius.min(256) as u16);
            let eight = |half: usize| {
                let distances = vpaddlq_u8(sum_of_8(from_fn(|i| key(8 * half + i))));
                vreinterpretq_u8_u16(vcleq_u16(distances, limit))
            };
            vuzp1q_u8(eight(0), eight(1))
        }
    }
}

/// The sums of eight neighbouring bytes each of eight registers, in their order.
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

/// Loads the two words that begin at a place.
#[inline]
#[target_feature(enable = "neon")]
fn load(words: &[Word], at: usize) -> uint8x16_t {
    let bytes = words[at..at + 2].as_flattened();
    // SAFETY: these are the 16 bytes that it loads; it needs no alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// [`load`], as words.
#[inline]
#[target_feature(enable = "neon")]
fn load_u64(words: &[Word], at: usize) -> uint64x2_t {
    vreinterpretq_u64_u8(load(words, at))
}

/// Four bits for each byte, all of which are set or none.
#[inline]
#[target_feature(enable = "neon")]
fn lanes(bytes: uint8x16_t) -> u64 {
    let narrow = vshrn_n_u16::<4>(vreinterpretq_u16_u8(bytes));
    vget_lane_u64::<0>(vreinterpret_u64_u8(narrow))
}

/// Appends the places of the lanes that are set, counted from `base`.
#[inline]
#[target_feature(enable = "neon")]
fn push_lanes(lanes: u64, base: usize, found: &mut Vec<u16>) {
    let mut bits = lanes & 0x1111_1111_1111_1111;
    while bits != 0 {
        found.push((base + bits.trailing_zeros() as usize / 4) as u16);
        bits &= bits - 1;
    }
}
