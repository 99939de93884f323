//! What the conditions of a scan ask of an index.
use neardup_blocktree::key::{Key, distance};
use pgrx::pg_sys;

use super::keys::{self, Layout};
use super::validate;

/// A condition on the fingerprint: a ball, of which an equality is the smallest.
#[derive(Clone, Copy)]
pub struct Condition<const N: usize> {
    /// Without a scope.
    pub center: Key<N>,
    /// In bits.
    pub radius: u32,
}

/// What the conditions of a scan come to.
pub struct Conditions<const N: usize> {
    /// On the fingerprint.
    pub near: Vec<Condition<N>>,
    /// The scope, if all of its columns are given.
    pub scope: Option<u64>,
    /// Whether the index cannot be sure that a row fulfils them.
    pub recheck: bool,
}

impl<const N: usize> Conditions<N> {
    /// The conditions that scan keys make; `None` if nothing fulfils them.
    ///
    /// # Safety
    /// The keys are for operators of the operator classes of this index.
    pub unsafe fn of(
        index: pg_sys::Relation,
        layout: &Layout,
        keys: &[pg_sys::ScanKeyData],
    ) -> Option<Self> {
        let mut near = Vec::new();
        let mut hashes = vec![None; layout.scope_columns];
        // Another scope may have the same hash, and a ball's radius is not in the index.
        let recheck = layout.balls || layout.scope_columns > 0;
        for key in keys {
            if key.sk_flags as u32 & pg_sys::SK_ISNULL != 0 {
                return None;
            }
            let column = key.sk_attno as usize - 1;
            // SAFETY: the argument is of the type on the right side of the key's operator.
            unsafe {
                if column < layout.scope_columns {
                    let hash = scope_hash(index, column, key);
                    // Two values that a column is to be equal to: at most one is its own, which
                    // the recheck finds out.
                    hashes[column] = Some(hash);
                } else {
                    near.push(near_condition(layout, key)?);
                }
            }
        }
        let scope = (layout.scope_columns > 0 && hashes.iter().all(Option::is_some))
            .then(|| keys::scope(hashes.into_iter()));
        Some(Conditions {
            near,
            scope,
            recheck,
        })
    }
}

/// The hash of the value that a key asks of a scope column.
///
/// # Safety
/// The key is for an operator of the operator class of that column.
pub unsafe fn scope_hash(index: pg_sys::Relation, column: usize, key: &pg_sys::ScanKeyData) -> u64 {
    // An operator for any array, or any enumeration, tells nothing of the type.
    let given = key.sk_subtype;
    // SAFETY: a look-up in the catalogue; the argument is of the type on the right side of the
    // key's operator.
    unsafe {
        let is_type = given != pg_sys::InvalidOid
            && pg_sys::get_typtype(given) as u8 != pg_sys::TYPTYPE_PSEUDO;
        let value_type = match is_type {
            true => given,
            false => keys::attribute(index, column).atttypid,
        };
        keys::hash(index, column, value_type, key.sk_argument)
    }
}

/// The condition that a key on the fingerprint makes; `None` if nothing fulfils it.
unsafe fn near_condition<const N: usize>(
    layout: &Layout,
    key: &pg_sys::ScanKeyData,
) -> Option<Condition<N>> {
    let mut center = [0; N];
    // SAFETY: the caller's promise; the operators of strategy 1, and all those of classes for
    // balls, have a ball on their right side.
    let radius = unsafe {
        if layout.balls || key.sk_strategy == validate::WITHIN {
            layout.ball(&mut center, key.sk_argument)?
        } else {
            layout.put_fingerprint(&mut center, key.sk_argument);
            match key.sk_strategy {
                validate::NEAR => validate::near_radius(layout.fingerprint_words),
                _ => 0,
            }
        }
    };
    Some(Condition { center, radius })
}

/// Whether a row fulfils further conditions; `skipped` words of a key are its scope.
pub fn all_hold<const N: usize>(
    also: &[Condition<N>],
    fingerprint: &Key<N>,
    skipped: usize,
) -> bool {
    also.iter()
        .all(|other| distance(&other.center, fingerprint, skipped) <= other.radius)
}
