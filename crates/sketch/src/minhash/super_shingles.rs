//! Super-shingles: hashes of groups of positions. Near-duplicates share at least one or two of
//! them, so that an ordinary index on equality finds them (Broder, "Identifying and filtering
//! near-duplicate documents", CPM 2000: 84 positions in 6 groups of 14, duplicates share 2).

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Hashes of `groups` groups of equal size; positions left over at the end are ignored. The number
/// of the group is hashed too, so that only groups at the same position have equal hashes.
///
/// # Panics
///
/// If there are no groups, or more than positions.
#[must_use]
pub fn super_shingles(signature: &[u32], groups: usize) -> Vec<u64> {
    assert!(
        (1..=signature.len()).contains(&groups),
        "groups of at least one position"
    );
    let size = signature.len() / groups;
    (signature.chunks_exact(size).take(groups).enumerate())
        .map(|(number, part)| {
            let bytes: Vec<u8> = part.iter().flat_map(|value| value.to_le_bytes()).collect();
            xxh3_64_with_seed(&bytes, number as u64)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super_shingles;

    #[test]
    fn a_changed_position_changes_its_group() {
        let signature: Vec<u32> = (0..84).collect();
        let before = super_shingles(&signature, 6);
        assert_eq!(before.len(), 6);
        for position in 0..84 {
            let mut changed = signature.clone();
            changed[position] = 1000;
            let after = super_shingles(&changed, 6);
            let differing: Vec<usize> = (0..6).filter(|&i| before[i] != after[i]).collect();
            assert_eq!(differing, [position / 14]);
        }
    }

    #[test]
    fn equal_groups_at_different_positions_differ() {
        let hashes = super_shingles(&[7; 128], 6);
        assert!((1..6).all(|i| hashes[i] != hashes[0]));
    }

    /// Golden values: they may be stored.
    #[test]
    fn golden() {
        let signature: Vec<u32> = (0..16).collect();
        let expected = [4_892_726_792_138_317_937, 734_486_248_368_345_437];
        assert_eq!(super_shingles(&signature, 2), expected);
    }
}
