//! Removing near-duplicates: at insert.
mod trigger;
