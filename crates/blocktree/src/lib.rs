//! Block-permutation keys (Manku, Jain, Das Sarma: "Detecting near-duplicates for web crawling",
//! WWW 2007) and the B-link tree of unordered buckets that indexes them.
//!
//! The parts, each standing on those before it:
//! * [`key`]: row addresses, keys, and the total order of the tree;
//! * [`block_layout`]: how a fingerprint is cut into blocks, and the permutation of each table;
//! * [`bands`]: how signatures of symbols are indexed instead, and their search;
//! * [`plan`]: which tables a query of some radius probes, and how far around its own prefix;
//! * [`page`], [`leaf`], [`inner`], [`meta`]: the page formats;
//! * [`filter`]: the kernels that measure the distances of a whole leaf;
//! * [`store`]: what the tree asks of the pages' keeper (locks, logging, allocation);
//! * [`leaf_cache`]: where a key's leaves were found last;
//! * [`tree`], [`insert`], [`level_cursor`], [`scan`], [`knn`], [`vacuum`], [`merge`], [`compact`],
//!   [`check`], [`info`]: the algorithms over a store;
//! * [`pairs`]: all pairs within a radius, a table at a time;
//! * [`clusters`]: groups made of such pairs;
//! * [`paged`]: arrays within a limit of memory, for them;
//! * [`build`]: sorting rows into a new tree.
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
