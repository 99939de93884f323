//! `cargo xtask`: set-up, demo, tests, installation and benchmarks.
fn main() {}
