//! Checks for the setting `old_snapshot_threshold`, which versions before 17 have. With it, VACUUM
//! and pruning may remove rows that an old snapshot still sees, and a reader with such a snapshot
//! must raise an error.
use pgrx::pg_sys;

/// Check that a reader makes of each page that it reads (`TestForOldSnapshot`). The check raises an
/// error if the page may have lost rows that the reader's snapshot sees.
///
/// It contains copies of the two needed fields of the snapshot, because a reader may outlive the
/// snapshot. Since version 17, which has no such setting, the check is empty.
#[derive(Clone, Copy)]
pub struct OldSnapshotCheck {
    /// Position in the write-ahead log when the snapshot was taken. A page whose last change has a
    /// later position may have lost rows since. The maximum value turns the check off.
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    lsn: pg_sys::XLogRecPtr,
    /// Time when the reader's snapshot was taken.
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    taken: pg_sys::TimestampTz,
}

#[cfg(any(feature = "pg15", feature = "pg16"))]
impl OldSnapshotCheck {
    /// Value that checks nothing, for readers that do not rely on a snapshot: writers, VACUUM and
    /// the planner.
    pub const NONE: Self = OldSnapshotCheck {
        lsn: pg_sys::XLogRecPtr::MAX,
        taken: 0,
    };

    /// Makes the check for a reader that must find all rows that `snapshot` sees. Only MVCC
    /// snapshots need a check: other snapshots see no row that could have been removed.
    pub fn new(snapshot: &pg_sys::SnapshotData) -> Self {
        // While the setting is off, the server records no log position in snapshots.
        match snapshot.snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC && snapshot.lsn != 0 {
            true => OldSnapshotCheck {
                lsn: snapshot.lsn,
                taken: snapshot.whenTaken,
            },
            false => Self::NONE,
        }
    }

    /// Returns whether pages must be checked. False for [`OldSnapshotCheck::NONE`].
    #[inline]
    pub fn is_active(self) -> bool {
        self.lsn != pg_sys::XLogRecPtr::MAX
    }

    /// Raises error 72000 ("snapshot too old") if rows that the snapshot sees may have been removed
    /// from a page of the relation. `lsn` is the log position of the page's last change.
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
            // SAFETY: the caller's promise; the server reads only `whenTaken`.
            unsafe { pg_sys::TestForOldSnapshot_impl(&raw mut snapshot, relation) }
        }
    }
}

#[cfg(not(any(feature = "pg15", feature = "pg16")))]
impl OldSnapshotCheck {
    /// Value for readers that do not rely on a snapshot.
    pub const NONE: Self = OldSnapshotCheck {};

    /// Makes the check for a reader that must find all rows that a snapshot sees. It checks
    /// nothing, because these versions never remove such rows.
    pub fn new(_snapshot: &pg_sys::SnapshotData) -> Self {
        Self::NONE
    }

    /// Returns false, because no page needs a check.
    #[inline]
    pub fn is_active(self) -> bool {
        false
    }

    /// Does nothing, because these versions never remove rows that a snapshot sees.
    ///
    /// # Safety
    /// The relation is open.
    #[inline]
    pub unsafe fn test(self, _relation: pg_sys::Relation, _lsn: pg_sys::XLogRecPtr) {}
}

impl OldSnapshotCheck {
    /// Makes the check for a function that must find all rows that the active snapshot sees.
    /// Without an active snapshot it checks nothing.
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
