//! Several servers: foreign tables, Citus and other engines.
pub mod citus;
pub mod engines;
pub mod foreign;
pub mod foreign_jobs;
mod node_failures;
pub mod statements;
mod times;
