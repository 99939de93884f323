//! XXH3 of inputs of 1 to 32 bytes, with 64 bits and seed 0. The functions take the bytes of the
//! input as little-endian words. (The specification is doc/xxhash_spec.md of xxHash.)
//!
//! No function has a branch, so the compiler can compute several hashes at once.

/// First 32 bytes of the default secret of XXH3, as little-endian words.
const SECRET: [u64; 4] = [
    0xbe4b_a423_396c_feb8,
    0x1cad_21f7_2c81_017c,
    0xdb97_9083_e96d_d4de,
    0x1f67_b3b7_a4a4_4072,
];
/// Secret for inputs of 1 to 3 bytes: bytes 0 to 3 of the secret XOR bytes 4 to 7.
const MIX_1: u64 = 0x8727_5a9b;
/// Secret for inputs of 4 to 8 bytes.
const MIX_4: u64 = SECRET[1] ^ SECRET[2];
/// Secret for the first word of inputs of 9 to 16 bytes: bytes 24 to 31 of the secret XOR bytes 32
/// to 39.
const MIX_9_LOW: u64 = 0x6782_737b_ea42_39b9;
/// Secret for the last word of inputs of 9 to 16 bytes: bytes 40 to 47 of the secret XOR bytes 48
/// to 55.
const MIX_9_HIGH: u64 = 0xaf56_bc3b_0996_523a;

const PRIME_64_1: u64 = 0x9E37_79B1_85EB_CA87;
const PRIME_64_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const PRIME_64_3: u64 = 0x1656_67B1_9E37_79F9;
const PRIME_MX1: u64 = 0x1656_6791_9E37_79F9;
const PRIME_MX2: u64 = 0x9FB2_1C65_1E98_DF25;

/// Returns the hash of `len` bytes, 1 to 3. They are the lowest bytes of `word`.
#[inline(always)]
pub(super) const fn hash_1_to_3(word: u64, len: u64) -> u64 {
    let first = word & 0xFF;
    let middle = word >> (8 * (len >> 1)) & 0xFF;
    let last = word >> (8 * (len - 1)) & 0xFF;
    let mut hash = (first << 16 | middle << 24 | last | len << 8) ^ MIX_1;
    hash = (hash ^ hash >> 33).wrapping_mul(PRIME_64_2);
    hash = (hash ^ hash >> 29).wrapping_mul(PRIME_64_3);
    hash ^ hash >> 32
}

/// Returns the hash of `len` bytes, 4 to 8. They are the lowest bytes of `word`.
#[inline(always)]
pub(super) const fn hash_4_to_8(word: u64, len: u64) -> u64 {
    let last = word >> (8 * (len - 4)) & 0xFFFF_FFFF;
    let mut hash = last.wrapping_add(word << 32) ^ MIX_4;
    hash ^= hash.rotate_left(49) ^ hash.rotate_left(24);
    hash = hash.wrapping_mul(PRIME_MX2);
    hash = (hash ^ (hash >> 35).wrapping_add(len)).wrapping_mul(PRIME_MX2);
    hash ^ hash >> 28
}

/// Returns the hash of `len` bytes, 9 to 16. `first` holds the first eight bytes, and `last` the
/// last eight. The words overlap if `len` is less than 16.
#[inline(always)]
pub(super) const fn hash_9_to_16(first: u64, last: u64, len: u64) -> u64 {
    let (low, high) = (first ^ MIX_9_LOW, last ^ MIX_9_HIGH);
    let hash = len
        .wrapping_add(low.swap_bytes())
        .wrapping_add(high)
        .wrapping_add(folded_product(low, high));
    avalanche(hash)
}

/// Returns the hash of `len` bytes, 17 to 32. `first` holds the first sixteen bytes, and `last` the
/// last sixteen. They overlap if `len` is less than 32.
#[inline(always)]
pub(super) const fn hash_17_to_32(first: [u64; 2], last: [u64; 2], len: u64) -> u64 {
    let hash = len
        .wrapping_mul(PRIME_64_1)
        .wrapping_add(folded_product(first[0] ^ SECRET[0], first[1] ^ SECRET[1]))
        .wrapping_add(folded_product(last[0] ^ SECRET[2], last[1] ^ SECRET[3]));
    avalanche(hash)
}

#[inline(always)]
const fn folded_product(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
const fn avalanche(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 37).wrapping_mul(PRIME_MX1);
    hash ^ hash >> 32
}
