//! Bob Jenkins' hash function lookup3, which `yanyiwu/simhash` uses.

/// Returns the 64-bit hash of `key`: `hashlittle2` of lookup3.c (2006, public domain) with both
/// seeds 0. The upper half is the primary hash of `hashlittle2`, the lower half the secondary one.
pub(super) fn lookup3(key: &[u8]) -> u64 {
    let start = 0xDEAD_BEEF_u32.wrapping_add(key.len() as u32);
    let mut state = [start; 3];
    let mut rest = key;
    // The last block, of one to twelve bytes, is mixed differently.
    while rest.len() > 12 {
        let (block, after) = rest.split_at(12);
        add(&mut state, block);
        mix(&mut state);
        rest = after;
    }
    if !rest.is_empty() {
        add(&mut state, rest);
        finish(&mut state);
    }
    let [_, b, c] = state;
    u64::from(c) << 32 | u64::from(b)
}

/// Adds a block of up to twelve bytes to the state: four bytes to each word, in little-endian
/// order.
fn add(state: &mut [u32; 3], block: &[u8]) {
    for (at, &byte) in block.iter().enumerate() {
        let word = &mut state[at / 4];
        *word = word.wrapping_add(u32::from(byte) << (8 * (at % 4)));
    }
}

fn mix([a, b, c]: &mut [u32; 3]) {
    for (bits, rotated) in [4, 6, 8, 16, 19, 4].into_iter().enumerate() {
        let (x, y, z) = match bits % 3 {
            0 => (&mut *a, &mut *b, &mut *c),
            1 => (&mut *b, &mut *c, &mut *a),
            _ => (&mut *c, &mut *a, &mut *b),
        };
        *x = x.wrapping_sub(*z) ^ z.rotate_left(rotated);
        *z = z.wrapping_add(*y);
    }
}

fn finish([a, b, c]: &mut [u32; 3]) {
    for (round, rotated) in [14, 11, 25, 16, 4, 14, 24].into_iter().enumerate() {
        let (x, y) = match round % 3 {
            0 => (&mut *c, &*b),
            1 => (&mut *a, &*c),
            _ => (&mut *b, &*a),
        };
        *x = (*x ^ *y).wrapping_sub(y.rotate_left(rotated));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the README of yanyiwu/simhash and from lookup3.c (driver5: no bytes, no seed).
    /// `tests/schemes.rs` has one for each length of the last block.
    #[test]
    fn published_lookup3() {
        assert_eq!(lookup3("你好".as_bytes()), 17_676_873_585_679_812_141);
        assert_eq!(lookup3(b""), 0xDEAD_BEEF_DEAD_BEEF);
    }
}
