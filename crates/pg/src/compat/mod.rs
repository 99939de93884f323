//! Differences between PostgreSQL versions, one file per subject. Code in other folders does not
//! depend on the version.
//!
//! Functions of this module may take raw pointers of the server. The crate's handles wrap these
//! functions where a handle exists. `cfg` attributes name the old versions that lack something, so
//! that a future version counts as the newest.
mod buffers;
mod build;
mod catalog;
mod old_snapshot;
mod planner;
mod scan;
mod session;
mod settings;
mod shared_memory;
mod soft_error;
mod vacuum;
mod wal;

pub use buffers::{buf_file_read_exact, extend_relation, read_recent_buffer};
pub use build::{build_workers, offer_parallel_builds};
pub use catalog::{attribute, creation_xid, file_number, has_new_file, owns_relation};
pub use old_snapshot::OldSnapshotCheck;
pub use planner::{estimate_array_length, is_group, set_ascending};
pub use scan::{
    bitmap_scans_trust_visibility_map, count_index_scan, count_index_search, index_beginscan,
    is_dirty_snapshot, is_mvcc_snapshot,
};
pub use session::local_transaction;
pub use settings::{int_option, real_option, restrict_search_path};
pub use shared_memory::named_segment;
pub use soft_error::save_soft_error;
pub use vacuum::{in_vacuum, vacuum_delay_point, vacuum_may_truncate, vacuum_truncate_nap};
pub use wal::{RM_GENERIC_ID, log_new_pages, page_lsn, page_set_lsn, xlog_register_buffer_data};
