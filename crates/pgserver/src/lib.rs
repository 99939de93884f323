//! Private PostgreSQL servers for the development commands and the tests.
//!
//! The server that stands on the machine is not touched: [`PrivateCopy`] mirrors its installed tree
//! with symbolic links under `target/`, the extension is put into the copy alone, and [`Server`]
//! runs instances of it over unix sockets that only their owner can reach.
//!
//! Nothing here speaks the wire protocol; [`Server::conninfo`] is what a client needs.
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
