//! Estimates the Jaccard similarity from the distance of two MinHash fingerprints, and finds the
//! radius for a similarity.
//!
//! The estimate is not rounded, because the number of bits is a power of two. The radius is found
//! by comparing estimates, so `similarity(d) >= s` and `d <= radius(s)` always agree.

/// Estimates the Jaccard similarity of two sets whose fingerprints of `bits` bits differ in
/// `distance` bits: `1 - 2 * distance / bits`, and 0 for half of the bits or more.
///
/// ```
/// use neardup_sketch::minhash_fingerprint::similarity;
///
/// assert_eq!(similarity(0, 64), 1.0);
/// assert_eq!(similarity(6, 64), 0.8125);
/// assert_eq!(similarity(40, 64), 0.0);
/// ```
#[must_use]
pub fn similarity(distance: u32, bits: u32) -> f64 {
    (1.0 - 2.0 * f64::from(distance) / f64::from(bits)).max(0.0)
}

/// Returns the maximum distance of two fingerprints of `bits` bits at which their estimated
/// similarity is `bound` or more; -1 if there is none. A bound of 0 or less admits all distances. A
/// bound above 1, or NaN, admits none.
///
/// ```
/// use neardup_sketch::minhash_fingerprint::radius;
///
/// assert_eq!((radius(0.8, 64), radius(0.8, 128)), (6, 12));
/// assert_eq!((radius(0.0, 64), radius(1.5, 64)), (64, -1));
/// ```
#[must_use]
pub fn radius(bound: f64, bits: u32) -> i32 {
    greatest(bits, |similarity| similarity >= bound)
}

/// Returns the maximum distance of two fingerprints of `bits` bits at which their estimated
/// similarity is above `bound`; -1 if there is none or `bound` is NaN.
#[must_use]
pub fn radius_above(bound: f64, bits: u32) -> i32 {
    greatest(bits, |similarity| similarity > bound)
}

/// Returns the maximum distance of two fingerprints of `bits` bits whose estimated similarity
/// satisfies `admits`; -1 if there is none. If `admits` accepts an estimate, it must also accept
/// all greater estimates.
fn greatest(bits: u32, admits: impl Fn(f64) -> bool) -> i32 {
    let (mut within, mut beyond) = (-1, bits as i32 + 1);
    while beyond - within > 1 {
        let middle = (within + beyond) / 2;
        match admits(similarity(middle as u32, bits)) {
            true => within = middle,
            false => beyond = middle,
        }
    }
    within
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates bounds of all kinds. Many are equal to an estimate or next to one.
    fn bounds() -> impl Strategy<Value = f64> {
        let beside = (0..=256_u32, 0..3_usize).prop_map(|(distance, step)| {
            let exact = similarity(distance, 256);
            [exact.next_down(), exact, exact.next_up()][step]
        });
        prop_oneof![any::<f64>(), -0.5..1.5, beside]
    }

    proptest! {
        #[test]
        fn a_radius_admits_what_the_bound_admits(
            bound in bounds(), bits in prop::sample::select(vec![64_u32, 128, 256]),
        ) {
            for distance in 0..=bits {
                let estimate = similarity(distance, bits);
                prop_assert_eq!(estimate >= bound, distance as i32 <= radius(bound, bits));
                prop_assert_eq!(estimate > bound, distance as i32 <= radius_above(bound, bits));
            }
        }
    }

    #[test]
    fn estimates_have_no_rounding() {
        for bits in [64, 128, 256] {
            for distance in 0..=bits / 2 {
                let shared = similarity(distance, bits) * f64::from(bits / 2);
                assert_eq!(shared, f64::from(bits / 2 - distance));
            }
        }
    }

    #[test]
    fn radii_at_the_ends() {
        for bits in [64_u32, 128, 256] {
            let all = bits as i32;
            assert_eq!((radius(0.0, bits), radius(-1.0, bits)), (all, all));
            assert_eq!(
                (radius_above(0.0, bits), radius_above(-0.1, bits)),
                (all / 2 - 1, all)
            );
            assert_eq!((radius(1.0, bits), radius_above(1.0, bits)), (0, -1));
            assert_eq!(
                (radius(f64::NAN, bits), radius_above(f64::NAN, bits)),
                (-1, -1)
            );
            let infinite = [f64::INFINITY, f64::NEG_INFINITY].map(|bound| radius(bound, bits));
            assert_eq!(infinite, [-1, all]);
        }
    }
}
