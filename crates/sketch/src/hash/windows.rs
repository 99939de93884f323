//! Hashes of many features at once. A feature is a window: some consecutive tokens in a buffer.
//! Windows are hashed in blocks of [`BLOCK`].
//!
//! If no window of a block is longer than 8 bytes, the code has no branches, and the compiler
//! vectorises it. Otherwise windows of similar length are hashed together ([`super::short`]),
//! because the length of the next window is hard to predict. The general implementation of XXH3
//! hashes windows of more than 32 bytes.

use super::FeatureHash;
use super::short::{hash_1_to_3, hash_4_to_8, hash_9_to_16, hash_17_to_32};
use crate::feature_sink::{Position, Windows};

/// Number of windows that are hashed together.
const BLOCK: usize = 64;
/// Number of bytes after the last window that the hash functions may read. The caller's buffer must
/// have these bytes, but their values do not matter.
pub(crate) const PAD: usize = 8;

/// Feature hash that can be computed for many windows at once.
pub(crate) trait WindowHash: FeatureHash {
    /// Appends the hash of every window to `out`, in the order of the windows.
    fn push_windows(windows: Windows<impl Position>, out: &mut Vec<Self>);
}

impl WindowHash for [u64; 1] {
    fn push_windows(windows: Windows<impl Position>, out: &mut Vec<Self>) {
        hash_windows(windows, out);
    }
}

impl WindowHash for [u64; 2] {
    fn push_windows(windows: Windows<impl Position>, out: &mut Vec<Self>) {
        for block in windows.pieces(BLOCK) {
            let mut hashes = [[0; 2]; BLOCK];
            // Windows of similar length are hashed together, because the hash function branches on
            // the length, which is hard to predict.
            for members in Spans::new(&block).members {
                each_member(members, |at| {
                    hashes[at] = Self::new(&block.bytes[block.range(at)]);
                });
            }
            out.extend_from_slice(&hashes[..block.len()]);
        }
    }
}

fn hash_windows(windows: Windows<impl Position>, out: &mut Vec<[u64; 1]>) {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the processor has the features that the functions are compiled for, as checked.
        #[allow(unsafe_code)]
        unsafe {
            if crate::simd::has_avx512() {
                return hash_windows_avx512(windows, out);
            }
            if crate::simd::has_avx2() {
                return hash_windows_avx2(windows, out);
            }
        }
    }
    hash_windows_portable(windows, out);
}

/// [`hash_windows_portable`], compiled for AVX-512, which multiplies 64-bit words in vectors of 64
/// bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi1,bmi2")]
fn hash_windows_avx512(windows: Windows<impl Position>, out: &mut Vec<[u64; 1]>) {
    hash_windows_portable(windows, out);
}

/// [`hash_windows_portable`], compiled for AVX2, which has vectors of 32 bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn hash_windows_avx2(windows: Windows<impl Position>, out: &mut Vec<[u64; 1]>) {
    hash_windows_portable(windows, out);
}

#[inline(always)]
fn hash_windows_portable(windows: Windows<impl Position>, out: &mut Vec<[u64; 1]>) {
    for block in windows.pieces(BLOCK) {
        let short = match (
            block.starts.first_chunk(),
            block.starts[block.width..].first_chunk(),
        ) {
            (Some(from), Some(to)) => hash_short(&block, from, to),
            _ => None,
        };
        match short {
            Some(hashes) => out.extend_from_slice(&hashes),
            None => hash_mixed(&block, out),
        }
    }
}

/// Returns the hashes of a block of windows of up to 8 bytes each, or `None` if a window is longer.
/// Window i starts at `starts[i]`. `ends[i]` is the offset after the separator that follows the
/// window, so the window ends `windows.gap` bytes earlier.
#[inline(always)]
fn hash_short<P: Position>(
    windows: &Windows<P>,
    starts: &[P; BLOCK],
    ends: &[P; BLOCK],
) -> Option<[[u64; 1]; BLOCK]> {
    let (bytes, gap) = (windows.bytes, windows.gap);
    let first = starts[0].index();
    let len = (ends[0].index() - gap - first) as u64;
    if len > 8 || ends[BLOCK - 1].index() - gap - starts[BLOCK - 1].index() > 8 {
        return None;
    }
    // All tokens have one byte, as in most texts with `tokens => 'char'`: all windows have the same
    // length.
    if starts[BLOCK - 1].index() - first == BLOCK - 1
        && ends[BLOCK - 1].index() - ends[0].index() == BLOCK - 1
        && let Some(bytes) = bytes[first..].first_chunk::<{ BLOCK + PAD }>()
    {
        let words: [u64; BLOCK] = std::array::from_fn(|n| word(bytes, n));
        return Some(match len {
            4.. => words.map(|word| [hash_4_to_8(word, len)]),
            _ => words.map(|word| [hash_1_to_3(word, len)]),
        });
    }
    let lens: [u64; BLOCK] =
        std::array::from_fn(|n| (ends[n].index() - gap - starts[n].index()) as u64);
    let (low, high) = lens.iter().fold((u64::MAX, 0), |(low, high), &len| {
        (low.min(len), high.max(len))
    });
    if high > 8 {
        return None;
    }
    // All tokens have three bytes and a separator, as in Chinese: the windows start every 4 bytes.
    let regular = (starts.iter().enumerate()).fold(low ^ high, |differ, (n, start)| {
        differ | ((start.index() - first) ^ (4 * n)) as u64
    });
    if regular == 0
        && low >= 4
        && let Some(bytes) = bytes[first..].first_chunk::<{ 4 * BLOCK + 4 }>()
    {
        let (halves, _) = bytes.as_chunks();
        let half = |n: usize| u64::from(u32::from_le_bytes(halves[n]));
        return Some(std::array::from_fn(|n| {
            [hash_4_to_8(half(n) | half(n + 1) << 32, len)]
        }));
    }
    let words: [u64; BLOCK] = std::array::from_fn(|n| word(bytes, starts[n].index()));
    let hash: [u64; BLOCK] = if low >= 4 {
        std::array::from_fn(|n| hash_4_to_8(words[n], lens[n]))
    } else if high <= 3 {
        std::array::from_fn(|n| hash_1_to_3(words[n], lens[n]))
    } else {
        std::array::from_fn(|n| {
            let short = hash_1_to_3(words[n], lens[n].min(3));
            let long = hash_4_to_8(words[n], lens[n].max(4));
            if lens[n] < 4 { short } else { long }
        })
    };
    Some(hash.map(|hash| [hash]))
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("padding"))
}

/// Starts and lengths of up to [`BLOCK`] windows, in bytes.
struct Spans {
    starts: [usize; BLOCK],
    lens: [usize; BLOCK],
    /// Bit masks of three groups of windows, with one bit for each window: up to 8 bytes, 9 to 16
    /// bytes, and more than 16 bytes.
    members: [u64; 3],
}

impl Spans {
    #[inline(always)]
    fn new(windows: &Windows<impl Position>) -> Self {
        let (mut starts, mut lens) = ([0; BLOCK], [0; BLOCK]);
        let each = windows.starts.iter().zip(&windows.starts[windows.width..]);
        for ((start, len), (from, to)) in starts.iter_mut().zip(&mut lens).zip(each) {
            *start = from.index();
            *len = to.index() - windows.gap - from.index();
        }
        let (mut above_8, mut above_16) = (0, 0);
        for (at, &len) in lens.iter().enumerate() {
            above_8 |= u64::from(len > 8) << at;
            above_16 |= u64::from(len > 16) << at;
        }
        let all = u64::MAX >> (BLOCK - windows.len());
        Self {
            starts,
            lens,
            members: [all & !above_8, above_8 & !above_16, above_16],
        }
    }

    /// Returns the start and the length of window `at`, in bytes.
    #[inline(always)]
    fn get(&self, at: usize) -> (usize, usize) {
        (self.starts[at % BLOCK], self.lens[at % BLOCK])
    }
}

/// Appends the hashes of up to [`BLOCK`] windows of any length to `out`.
#[inline(always)]
fn hash_mixed(windows: &Windows<impl Position>, out: &mut Vec<[u64; 1]>) {
    let bytes = windows.bytes;
    let spans = Spans::new(windows);
    let [short, to_16, longer] = spans.members;
    let mut hashes = [[0]; BLOCK];
    each_member(short, |at| {
        let (start, len) = spans.get(at);
        let (word, len) = (word(bytes, start), len as u64);
        hashes[at % BLOCK] = [if len < 4 {
            hash_1_to_3(word, len)
        } else {
            hash_4_to_8(word, len)
        }];
    });
    each_member(to_16, |at| {
        let (start, len) = spans.get(at);
        let (first, last) = (word(bytes, start), word(bytes, start + len - 8));
        hashes[at % BLOCK] = [hash_9_to_16(first, last, len as u64)];
    });
    each_member(longer, |at| {
        let (start, len) = spans.get(at);
        let two = |at| [word(bytes, at), word(bytes, at + 8)];
        hashes[at % BLOCK] = if len <= 32 {
            [hash_17_to_32(two(start), two(start + len - 16), len as u64)]
        } else {
            hash_long(&bytes[start..start + len])
        };
    });
    out.extend_from_slice(&hashes[..windows.len()]);
}

/// Returns the hash of a window of more than 32 bytes. The function is not inlined: compiled for
/// the vector instructions of the caller, it would be slower.
#[inline(never)]
fn hash_long(window: &[u8]) -> [u64; 1] {
    FeatureHash::new(window)
}

/// Calls `each` with the position of every set bit of the mask `members`, in ascending order.
#[inline(always)]
fn each_member(mut members: u64, mut each: impl FnMut(usize)) {
    while members != 0 {
        each(members.trailing_zeros() as usize);
        members &= members - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::feature_hash;
    use proptest::prelude::*;

    /// Checks all implementations on windows of `width` tokens. `gap` is the number of separator
    /// bytes after each token.
    fn assert_all_implementations(mut bytes: Vec<u8>, starts: &[u32], width: usize, gap: usize) {
        bytes.extend([0xA5; PAD]);
        let windows = Windows {
            bytes: &bytes,
            starts,
            width,
            gap,
        };
        let each = (0..windows.len()).map(|at| &bytes[windows.range(at)]);
        let expected: Vec<_> = each.clone().map(|window| [feature_hash(window)]).collect();
        let hashed = |how: &dyn Fn(&mut Vec<[u64; 1]>)| {
            let mut hashes = Vec::new();
            how(&mut hashes);
            hashes
        };
        assert_eq!(hashed(&|out| hash_windows(windows, out)), expected);
        assert_eq!(hashed(&|out| hash_windows_portable(windows, out)), expected);
        #[cfg(target_arch = "x86_64")]
        if crate::simd::has_avx2() {
            // SAFETY: the processor has the features, as checked above.
            #[allow(unsafe_code)]
            let avx2 = |out: &mut Vec<_>| unsafe { hash_windows_avx2(windows, out) };
            assert_eq!(hashed(&avx2), expected);
        }
        let mut wide = Vec::new();
        <[u64; 2]>::push_windows(windows, &mut wide);
        assert_eq!(wide, each.map(FeatureHash::new).collect::<Vec<[u64; 2]>>());
    }

    #[test]
    fn every_length() {
        let bytes: Vec<u8> = (0..400_u32).map(|n| (n * n + 7 * n) as u8).collect();
        let starts: Vec<u32> = (0..=400).collect();
        (1..=300).for_each(|width| assert_all_implementations(bytes.clone(), &starts, width, 0));
        let starts: Vec<u32> = (0..=200).map(|n| 2 * n).collect();
        (1..=150).for_each(|width| assert_all_implementations(bytes.clone(), &starts, width, 1));
    }

    /// All implementations give the same hashes if the tokens have three bytes, like Han
    /// characters, and a separator, except one token of another length. The test moves this token
    /// through many positions.
    #[test]
    fn regular_windows() {
        let bytes: Vec<u8> = (0..1500_u32).map(|n| (n * n + 7 * n) as u8).collect();
        for other in 0..200 {
            for len in [2, 3, 4, 6] {
                let lens = (0..300).map(|at| if at == other { len } else { 4 });
                let starts =
                    lens.scan(0, |start, len| Some(std::mem::replace(start, *start + len)));
                let starts: Vec<u32> = starts.collect();
                (1..4)
                    .for_each(|width| assert_all_implementations(bytes.clone(), &starts, width, 1));
            }
        }
    }

    proptest! {
        #[test]
        fn windows_of_characters(
            lens in prop::collection::vec(1_u32..5, 1..300),
            one in 0_u32..6,
            width in 1_usize..20,
            seed in any::<u64>(),
        ) {
            let mut starts = vec![0];
            for &len in &lens {
                // All characters have the same length, as in most texts, or lengths are mixed.
                starts.push(starts.last().unwrap() + if one == 0 || one == 5 { len } else { one });
            }
            prop_assume!(starts.len() > width);
            let bytes = (0..u64::from(*starts.last().unwrap()))
                .map(|n| (seed.wrapping_mul(n * 2 + 1) >> 32) as u8)
                .collect();
            assert_all_implementations(bytes, &starts, width, 0);
        }

        #[test]
        fn windows_of_words(
            lens in prop::collection::vec(prop_oneof![9 => 2_u32..13, 1 => 2_u32..60], 1..300),
            width in 1_usize..8,
            seed in any::<u64>(),
        ) {
            let mut starts = vec![0];
            for &len in &lens {
                starts.push(starts.last().unwrap() + len);
            }
            prop_assume!(starts.len() > width);
            let bytes = (0..u64::from(*starts.last().unwrap()))
                .map(|n| (seed.wrapping_mul(n * 2 + 1) >> 32) as u8)
                .collect();
            assert_all_implementations(bytes, &starts, width, 1);
        }
    }
}
