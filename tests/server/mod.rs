//! The extension in a server: crashes, standbys, memory, rights, settings and upgrades.
mod backtraces;
mod cancels;
mod crash;
mod dictionary;
mod encodings;
mod fuzz;
mod languages;
mod load;
mod memory;
mod old_snapshots;
mod order_memory;
mod privileges;
mod replication;
mod servers;
pub mod standby;
mod torture;
mod trusted;
mod upgrades;
