//! The conditions of a scan, from its scan keys.
use neardup_blocktree::key::{Key, distance};
use pgrx::pg_sys;

use super::keys::{self, Layout};
use super::strategies;
use crate::pg::rel::Rel;

/// A condition on the fingerprint: a ball, of which an equality is the smallest.
#[derive(Clone, Copy)]
pub struct BallQual<const N: usize> {
    /// Without a scope.
    pub center: Key<N>,
    /// In bits.
    pub radius: u32,
}

/// The rows that conditions admit by having a fingerprint or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Rows with and without one.
    Any,
    /// `IS NULL`.
    Null,
    /// `IS NOT NULL`.
    NotNull,
}

impl Presence {
    /// Both this and the condition that a key makes, if it is `IS NULL` or `IS NOT NULL`. The
    /// inner `None`: no row fulfils both.
    pub fn and(self, key: &pg_sys::ScanKeyData) -> Option<Option<Self>> {
        let flags = key.sk_flags as u32;
        let asked = if flags & pg_sys::SK_SEARCHNULL != 0 {
            Presence::Null
        } else if flags & pg_sys::SK_SEARCHNOTNULL != 0 {
            Presence::NotNull
        } else {
            return None;
        };
        Some((self == Presence::Any || self == asked).then_some(asked))
    }
}

/// The conditions of a scan.
pub struct ScanQuals<const N: usize> {
    /// On the fingerprint.
    pub near: Vec<BallQual<N>>,
    /// On there being one.
    pub presence: Presence,
    /// The scope, if all of its columns are given.
    pub scope: Option<u64>,
    /// Whether the index cannot be sure that a row fulfils them.
    pub recheck: bool,
}

impl<const N: usize> ScanQuals<N> {
    /// The conditions that scan keys make; `None` if nothing fulfils them.
    ///
    /// # Safety
    /// The keys are for operators of the operator classes of this index.
    pub unsafe fn of(index: Rel, layout: &Layout, keys: &[pg_sys::ScanKeyData]) -> Option<Self> {
        let mut near = Vec::new();
        let mut scope = ScopeQuals::new(layout.scope_columns);
        let mut presence = Presence::Any;
        // Another scope may have the same hash, and a ball's radius is not in the index.
        let recheck = layout.balls || layout.scope_columns > 0;
        for key in keys {
            // SAFETY: the argument is of the type on the right side of the key's operator.
            unsafe {
                if scope.take(index, key)? {
                    continue;
                }
                match presence.and(key) {
                    Some(both) => presence = both?,
                    None if key.sk_flags as u32 & pg_sys::SK_ISNULL != 0 => return None,
                    None => near.push(near_condition(layout, key)?),
                }
            }
        }
        // No distance of NULL is within a radius.
        if presence == Presence::Null && !near.is_empty() {
            return None;
        }
        Some(ScanQuals {
            near,
            presence,
            scope: scope.word(),
            recheck,
        })
    }
}

/// The values that conditions ask of the columns of a scope.
pub struct ScopeQuals {
    /// For each column: not given, NULL, or the hash of a value.
    columns: Vec<Option<Option<u64>>>,
}

impl ScopeQuals {
    /// None of so many columns is given.
    pub fn new(columns: usize) -> Self {
        ScopeQuals {
            columns: vec![None; columns],
        }
    }

    /// Takes in a key if it is for a column of the scope, and says whether it is. `None` if no row
    /// fulfils the condition.
    ///
    /// # Safety
    /// The key is for an operator of an operator class of the index.
    pub unsafe fn take(&mut self, index: Rel, key: &pg_sys::ScanKeyData) -> Option<bool> {
        let number = key.sk_attno as usize - 1;
        let Some(column) = self.columns.get_mut(number) else {
            return Some(false);
        };
        match Presence::Any.and(key) {
            Some(Some(Presence::Null)) => *column = Some(None),
            // The recheck sees to it: rows of a scope without values stand among others.
            Some(_) => (),
            None if key.sk_flags as u32 & pg_sys::SK_ISNULL != 0 => return None,
            // Two values that a column is to be equal to: at most one is its own, which the
            // recheck finds out.
            // SAFETY: as the caller promises.
            None => *column = Some(Some(unsafe { scope_hash(index, number, key) })),
        }
        Some(true)
    }

    /// The word that stands for the scope, if there is one and all its columns are given.
    pub fn word(self) -> Option<u64> {
        if self.columns.is_empty() {
            return None;
        }
        let hashes: Option<Vec<Option<u64>>> = self.columns.into_iter().collect();
        hashes.map(|hashes| keys::scope(hashes.into_iter()))
    }
}

/// The hash of the value that a key asks of a scope column.
///
/// # Safety
/// The key is for an operator of the operator class of that column.
unsafe fn scope_hash(index: Rel, column: usize, key: &pg_sys::ScanKeyData) -> u64 {
    // An operator for any array, or any enumeration, tells nothing of the type.
    let given = key.sk_subtype;
    // SAFETY: a look-up in the catalogue; the argument is of the type on the right side of the
    // key's operator.
    unsafe {
        let is_type = given != pg_sys::InvalidOid
            && pg_sys::get_typtype(given) as u8 != pg_sys::TYPTYPE_PSEUDO;
        let value_type = match is_type {
            true => given,
            false => index.attribute(column as i16 + 1).atttypid,
        };
        keys::hash(index, column, value_type, key.sk_argument)
    }
}

/// The condition that a key on the fingerprint makes; `None` if nothing fulfils it.
unsafe fn near_condition<const N: usize>(
    layout: &Layout,
    key: &pg_sys::ScanKeyData,
) -> Option<BallQual<N>> {
    let mut center = [0; N];
    // SAFETY: the caller's promise; the operators of strategy 1, and all those of classes for
    // balls, have a ball on their right side.
    let radius = unsafe {
        if layout.balls || key.sk_strategy == strategies::WITHIN {
            layout.ball(&mut center, key.sk_argument)?
        } else {
            // Shorter integers that a bigint is to be equal to.
            let value = key.sk_argument;
            let value = match key.sk_subtype {
                pg_sys::INT2OID => pg_sys::Datum::from(i64::from(value.value() as i16)),
                pg_sys::INT4OID => pg_sys::Datum::from(i64::from(value.value() as i32)),
                _ => value,
            };
            layout.put_fingerprint(&mut center, value);
            match key.sk_strategy {
                strategies::NEAR => strategies::near_radius(layout.fingerprint_words),
                _ => 0,
            }
        }
    };
    Some(BallQual { center, radius })
}

/// Whether a row fulfils further conditions; `skipped` words of a key are its scope.
pub fn all_hold<const N: usize>(
    also: &[BallQual<N>],
    fingerprint: &Key<N>,
    skipped: usize,
) -> bool {
    also.iter()
        .all(|other| distance(&other.center, fingerprint, skipped) <= other.radius)
}
