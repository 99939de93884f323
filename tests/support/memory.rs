//! Memory of a backend.
use super::table::value;
use anyhow::{Context, Result};
use postgres::Client;

/// Bytes of its own that the backend has taken at most. Pages of shared memory that it has used
/// count in what the system says, and are taken off: they only become more.
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
