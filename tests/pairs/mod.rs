//! Pairs, clusters and keys of whole tables.
mod by_table;
mod clusters;
mod confirm;
mod fingerprints;
mod keys;
mod whole_table;
mod windows;
mod workers;
