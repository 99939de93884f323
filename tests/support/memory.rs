//! Memory of a backend.
use super::table::value;
use anyhow::{Context, Result};
use postgres::Client;

/// Returns the peak of the backend's own memory, in bytes. Subtracts pages of shared memory, which
/// the system includes; their number only grows.
pub fn most_memory(client: &mut Client) -> Result<u64> {
    let pid: i32 = value(client, "SELECT pg_backend_pid()")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let bytes = |name: &str| -> Result<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        Ok(1024 * number.with_context(|| name.to_owned())?.parse::<u64>()?)
    };
    Ok(bytes("VmHWM:")?.saturating_sub(bytes("RssShmem:")?))
}
