//! Private PostgreSQL servers for the development commands and the tests.
//!
//! The installed PostgreSQL stays unchanged. [`PrivateCopy`] mirrors its folders with symbolic
//! links under `target/`, and only the copy gets the extension. [`Server`] runs servers from the
//! copy. They listen on unix sockets that only their owner can reach.
//!
//! This crate has no database client. [`Server::conninfo`] returns the connection string for one.
mod config;
mod copy;
mod crash;
mod process;
mod server;
mod socket;
mod stale_servers;
mod user;

pub use config::{PgConfig, SUPPORTED};
pub use copy::{Artifacts, PrivateCopy, candidate_dirs, own_dir};
pub use process::{interrupted, stop_all};
pub use server::{Instance, Server, Settings};
pub use stale_servers::{Lock, stop_leftovers};
pub use user::{OsUser, is_root};
