//! Safe handles around the server's C interface: relations, rows, values, memory, functions,
//! errors.
//!
//! docs/architecture.md, "Code map", has the invariant that these handles keep.
pub mod acl;
pub mod aggregate;
mod allocator;
pub mod arguments;
pub mod arrays;
pub mod backend;
pub mod buffer_strategy;
pub mod caller_sql;
pub mod catalog;
pub mod column_statistics;
pub mod compat;
pub mod cursor;
pub mod datum_sort;
pub mod equality;
pub mod errors;
pub mod expr;
pub mod fmgr;
pub mod generated;
pub mod guc_text;
pub mod hashing;
mod held_back;
pub mod index_columns;

pub mod index_row;
pub mod index_vacuum;
pub mod jsonb;
pub mod kept_argument;
pub mod local_rows;
pub mod locked_index;
pub mod memory;
pub mod memory_context;
pub mod new_row;
pub mod order_by;
pub mod panics;
pub mod planned_conditions;
pub mod planner;
pub mod planner_request;
pub mod rel;
pub mod row_lock;
pub mod scan_desc;
pub mod scan_path;
pub mod security_context;
pub mod server;
pub mod slot;
mod soft_error;
pub mod spi;
pub mod srf;
pub mod text;
pub mod tid;
pub mod trigger;
pub mod tsvector;
pub mod unique_keys;
pub mod value;
pub mod varlena;
