//! Near-duplicates of a whole table at once.
mod clusters;
mod column;
mod histogram;
mod nodes;
mod pairs;
mod scope;
