//! Address of the project, which the workspace's `Cargo.toml` states as `repository`.

/// Returns the address of the project's repository without a slash at the end; `None` as long as
/// `Cargo.toml` has an empty one.
pub fn repository() -> Option<&'static str> {
    let address = env!("CARGO_PKG_REPOSITORY");
    (!address.is_empty()).then_some(address)
}
