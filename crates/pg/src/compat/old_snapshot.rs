//! `old_snapshot_threshold`, which versions before 17 have: VACUUM and pruning may remove rows
//! that an old snapshot still sees, and a reader with that snapshot has to notice.
use pgrx::pg_sys;

/// Check that pages are not too new for the snapshot of a reader (`TestForOldSnapshot`).
///
/// It needs two fields of the snapshot, which it copies: a reader may outlive the snapshot.
#[derive(Clone, Copy)]
pub struct OldSnapshotCheck {
    /// Log position when the snapshot was taken. A page with a later position has been changed
    /// since. The largest number if the check is off.
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    lsn: pg_sys::XLogRecPtr,
    /// Time when the snapshot was taken.
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    taken: pg_sys::TimestampTz,
}

#[cfg(any(feature = "pg15", feature = "pg16"))]
impl OldSnapshotCheck {
    /// For readers that do not rely on a snapshot: writers, VACUUM, the planner.
    pub const NONE: Self = OldSnapshotCheck {
        lsn: pg_sys::XLogRecPtr::MAX,
        taken: 0,
    };

    /// For a reader that must find all rows which a snapshot sees. Snapshots other than MVCC
    /// snapshots see no row that could have been removed.
    pub fn new(snapshot: &pg_sys::SnapshotData) -> Self {
        // Without the setting the server records no position.
        match snapshot.snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC && snapshot.lsn != 0 {
            true => OldSnapshotCheck {
                lsn: snapshot.lsn,
                taken: snapshot.whenTaken,
            },
            false => Self::NONE,
        }
    }

    /// Returns whether there is anything to check.
    #[inline]
    pub fn is_active(self) -> bool {
        self.lsn != pg_sys::XLogRecPtr::MAX
    }

    /// Raises error 72000 ("snapshot too old") if rows that the snapshot sees may have been
    /// removed from a page whose last change has this log position.
    ///
    /// # Safety
    /// The relation is open.
    #[cold]
    #[inline(never)]
    pub unsafe fn test(self, relation: pg_sys::Relation, lsn: pg_sys::XLogRecPtr) {
        if lsn > self.lsn {
            let mut snapshot = pg_sys::SnapshotData {
                whenTaken: self.taken,
                ..Default::default()
            };
            // SAFETY: the caller's promise; the server reads this field alone.
            unsafe { pg_sys::TestForOldSnapshot_impl(&raw mut snapshot, relation) }
        }
    }
}

#[cfg(not(any(feature = "pg15", feature = "pg16")))]
impl OldSnapshotCheck {
    /// For readers that do not rely on a snapshot.
    pub const NONE: Self = OldSnapshotCheck {};

    /// For a reader that must find all rows which a snapshot sees: nothing removes any of them.
    pub fn new(_snapshot: &pg_sys::SnapshotData) -> Self {
        Self::NONE
    }

    /// Returns whether there is anything to check.
    #[inline]
    pub fn is_active(self) -> bool {
        false
    }

    /// Does nothing.
    ///
    /// # Safety
    /// The relation is open.
    #[inline]
    pub unsafe fn test(self, _relation: pg_sys::Relation, _lsn: pg_sys::XLogRecPtr) {}
}

impl OldSnapshotCheck {
    /// For a function that must find all rows which the active snapshot sees.
    pub fn from_active() -> Self {
        // SAFETY: null, or a snapshot that lives during this call.
        let snapshot = unsafe {
            match pg_sys::ActiveSnapshotSet() {
                true => pg_sys::GetActiveSnapshot().as_ref(),
                false => None,
            }
        };
        snapshot.map_or(Self::NONE, Self::new)
    }
}
