//! Hashes of sliding windows over a byte slice, many at a time.
//!
//! The functions are those of XXH3 with 64 bits and seed 0 for inputs of up to 16 bytes (the
//! specification is doc/xxhash_spec.md of xxHash), written without branches so that the compiler
//! vectorises them. Longer windows are hashed by the general implementation.

use super::feature_hash;

/// Windows that are hashed at once.
const BLOCK: usize = 64;
/// Bytes after the last window that are read.
pub(crate) const PAD: usize = 8;

/// Words of the default secret of XXH3, combined as short inputs use them.
const MIX_1: u64 = 0x8727_5a9b;
const MIX_4: u64 = 0xc73a_b174_c5ec_d5a2;
const MIX_9_LOW: u64 = 0x6782_737b_ea42_39b9;
const MIX_9_HIGH: u64 = 0xaf56_bc3b_0996_523a;

const PRIME_64_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const PRIME_64_3: u64 = 0x1656_67B1_9E37_79F9;
const PRIME_MX1: u64 = 0x1656_6791_9E37_79F9;
const PRIME_MX2: u64 = 0x9FB2_1C65_1E98_DF25;

/// Appends the hash of every window of `width` consecutive starts: the bytes from one start to the
/// one `width` later. `bytes` has [`PAD`] more bytes after the last start.
pub(super) fn hash_windows(bytes: &[u8], starts: &[u32], width: usize, out: &mut Vec<[u64; 1]>) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        // SAFETY: the processor has the features that the functions are compiled for.
        #[allow(unsafe_code)]
        unsafe {
            if has!("avx512f") && has!("avx512dq") && has!("avx512vl") {
                return hash_windows_avx512(bytes, starts, width, out);
            }
            if has!("avx2") {
                return hash_windows_avx2(bytes, starts, width, out);
            }
        }
    }
    hash_windows_portable(bytes, starts, width, out);
}

/// [`hash_windows_portable`], compiled for vectors of 64 bytes with multiplication.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn hash_windows_avx512(bytes: &[u8], starts: &[u32], width: usize, out: &mut Vec<[u64; 1]>) {
    hash_windows_portable(bytes, starts, width, out);
}

/// [`hash_windows_portable`], compiled for vectors of 32 bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn hash_windows_avx2(bytes: &[u8], starts: &[u32], width: usize, out: &mut Vec<[u64; 1]>) {
    hash_windows_portable(bytes, starts, width, out);
}

#[inline(always)]
fn hash_windows_portable(bytes: &[u8], starts: &[u32], width: usize, out: &mut Vec<[u64; 1]>) {
    let count = starts.len() - width;
    let mut at = 0;
    while at < count {
        if let (Some(from), Some(to)) = (
            starts[at..count].first_chunk::<BLOCK>(),
            starts[at + width..].first_chunk::<BLOCK>(),
        ) && let Some(hashes) = hash_block(bytes, from, to)
        {
            out.extend_from_slice(&hashes);
            at += BLOCK;
            continue;
        }
        let until = count.min(at + BLOCK);
        out.extend((at..until).map(|at| {
            [hash_window(
                bytes,
                starts[at] as usize,
                starts[at + width] as usize,
            )]
        }));
        at = until;
    }
}

/// The hashes of windows of up to 8 bytes; `None` if one is longer.
#[inline(always)]
fn hash_block(
    bytes: &[u8],
    starts: &[u32; BLOCK],
    ends: &[u32; BLOCK],
) -> Option<[[u64; 1]; BLOCK]> {
    let first = starts[0] as usize;
    let len = u64::from(ends[0] - starts[0]);
    // Characters of one byte each, as in most texts: all windows have the same length.
    if starts[BLOCK - 1] - starts[0] == BLOCK as u32 - 1
        && ends[BLOCK - 1] - ends[0] == BLOCK as u32 - 1
        && let Some(bytes) = bytes[first..].first_chunk::<{ BLOCK + PAD }>()
    {
        let words: [u64; BLOCK] = std::array::from_fn(|n| word(bytes, n));
        return match len {
            4..=8 => Some(words.map(|word| [hash_4_to_8(word, len)])),
            1..=3 => Some(words.map(|word| [hash_1_to_3(word, len)])),
            _ => None,
        };
    }
    let lens: [u64; BLOCK] = std::array::from_fn(|n| u64::from(ends[n] - starts[n]));
    let (low, high) = lens.iter().fold((u64::MAX, 0), |(low, high), &len| {
        (low.min(len), high.max(len))
    });
    if high > 8 {
        return None;
    }
    let words: [u64; BLOCK] = std::array::from_fn(|n| word(bytes, starts[n] as usize));
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

#[inline(always)]
fn hash_window(bytes: &[u8], start: usize, end: usize) -> u64 {
    let len = (end - start) as u64;
    match len {
        1..=3 => hash_1_to_3(word(bytes, start), len),
        4..=8 => hash_4_to_8(word(bytes, start), len),
        9..=16 => hash_9_to_16(word(bytes, start), word(bytes, end - 8), len),
        _ => feature_hash(&bytes[start..end]),
    }
}

/// Hashes the first `len` bytes of `word`, 1 to 3.
#[inline(always)]
const fn hash_1_to_3(word: u64, len: u64) -> u64 {
    let first = word & 0xFF;
    let middle = word >> (8 * (len >> 1)) & 0xFF;
    let last = word >> (8 * (len - 1)) & 0xFF;
    let mut hash = (first << 16 | middle << 24 | last | len << 8) ^ MIX_1;
    hash = (hash ^ hash >> 33).wrapping_mul(PRIME_64_2);
    hash = (hash ^ hash >> 29).wrapping_mul(PRIME_64_3);
    hash ^ hash >> 32
}

/// Hashes the first `len` bytes of `word`, 4 to 8.
#[inline(always)]
const fn hash_4_to_8(word: u64, len: u64) -> u64 {
    let last = word >> (8 * (len - 4)) & 0xFFFF_FFFF;
    let mut hash = last.wrapping_add(word << 32) ^ MIX_4;
    hash ^= hash.rotate_left(49) ^ hash.rotate_left(24);
    hash = hash.wrapping_mul(PRIME_MX2);
    hash = (hash ^ (hash >> 35).wrapping_add(len)).wrapping_mul(PRIME_MX2);
    hash ^ hash >> 28
}

/// Hashes `len` bytes, 9 to 16, given the first and the last eight.
#[inline(always)]
const fn hash_9_to_16(first: u64, last: u64, len: u64) -> u64 {
    let (low, high) = (first ^ MIX_9_LOW, last ^ MIX_9_HIGH);
    let product = low as u128 * high as u128;
    let hash = len
        .wrapping_add(low.swap_bytes())
        .wrapping_add(high)
        .wrapping_add(product as u64 ^ (product >> 64) as u64);
    let hash = (hash ^ hash >> 37).wrapping_mul(PRIME_MX1);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An implementation: bytes, starts, width, hashes.
    type Implementation<'a> = &'a dyn Fn(&[u8], &[u32], usize, &mut Vec<[u64; 1]>);

    fn assert_all_implementations(mut bytes: Vec<u8>, starts: &[u32], width: usize) {
        bytes.extend([0xA5; PAD]);
        let expected: Vec<_> = starts
            .windows(width + 1)
            .map(|w| [feature_hash(&bytes[w[0] as usize..w[width] as usize])])
            .collect();
        let hashed = |how: Implementation| {
            let mut hashes = Vec::new();
            how(&bytes, starts, width, &mut hashes);
            hashes
        };
        assert_eq!(hashed(&hash_windows), expected);
        assert_eq!(
            hashed(&|b, s, w, out| hash_windows_portable(b, s, w, out)),
            expected
        );
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, as checked above.
            #[allow(unsafe_code)]
            let avx2 =
                |b: &[u8], s: &[u32], w, out: &mut _| unsafe { hash_windows_avx2(b, s, w, out) };
            assert_eq!(hashed(&avx2), expected);
        }
    }

    #[test]
    fn every_length() {
        let bytes: Vec<u8> = (0..400_u32).map(|n| (n * n + 7 * n) as u8).collect();
        let starts: Vec<u32> = (0..=400).collect();
        (1..=300).for_each(|width| assert_all_implementations(bytes.clone(), &starts, width));
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
                // All of one length, as in most texts, or mixed.
                starts.push(starts.last().unwrap() + if one == 0 || one == 5 { len } else { one });
            }
            prop_assume!(starts.len() > width);
            let bytes = (0..u64::from(*starts.last().unwrap()))
                .map(|n| (seed.wrapping_mul(n * 2 + 1) >> 32) as u8)
                .collect();
            assert_all_implementations(bytes, &starts, width);
        }
    }
}
