//! Builds, changes and checks of indexes.
mod bloat;
mod builds;
mod concurrency;
mod corruption;
mod dml;
mod dumps;
mod formats;
mod indexes;
mod inspect;
mod options;
mod parallel_builds;
mod parallel_loads;
mod recompute;
mod relations;
mod server_commands;
mod usual_radius;
mod vacuums;
