//! Block-permutation keys (Manku, Jain, Das Sarma: "Detecting near-duplicates for web crawling",
//! WWW 2007) and the B-link tree of unordered buckets that indexes them.
//!
//! docs/architecture.md has the way of a search and an insert through these files.
//!
//! The modules, each built on those before it:
//! * [`key`]: row addresses, keys, and the total order of the tree;
//! * [`block_layout`]: the cut of a fingerprint into blocks, and the permutation of each table;
//! * [`bands`]: the same for MinHash signatures: their keys, and their search;
//! * [`plan`]: the tables that a query probes, and the distance around its own prefix in each;
//! * [`page`], [`leaf`], [`inner`], [`meta`]: the page formats;
//! * [`filter`]: the kernels that measure the distances of a whole leaf;
//! * [`store`]: the interface to the buffer manager (locks, logging, allocation);
//! * [`leaf_cache`]: the leaf of the last key in each table;
//! * [`tree`], [`insert`], [`level_cursor`], [`scan`], [`knn`], [`vacuum`], [`merge`], [`compact`],
//!   [`check`], [`info`]: the algorithms over a store;
//! * [`pairs`]: all pairs within a radius, a table at a time;
//! * [`clusters`], [`centers`]: clusters made of such pairs;
//! * [`sort`], [`paged`]: external sort, and arrays within a limit of memory;
//! * [`build`]: a new tree from sorted rows.
//!
//! Nothing here knows PostgreSQL, except that pages carry the header its buffer manager expects.

pub mod bands;
pub mod block_layout;
pub mod build;
pub mod centers;
pub mod check;
pub mod clusters;
pub mod compact;
pub mod filter;
pub mod info;
pub mod inner;
pub mod insert;
pub mod key;
pub mod knn;
pub mod leaf;
pub mod leaf_cache;
pub mod level_cursor;
pub mod merge;
pub mod meta;
pub mod page;
pub mod paged;
pub mod pairs;
pub mod plan;
pub mod scan;
pub mod sort;
pub mod store;
mod topk;
pub mod tree;
pub mod vacuum;
