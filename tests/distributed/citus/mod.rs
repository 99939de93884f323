//! A cluster of Citus: three private servers. The first is the coordinator. Only `cargo xtask test
//! --citus PATH` has a cluster.
mod documents;
mod jobs;
mod tables;

use crate::support::skip::skip_optional;
use crate::support::table::value;
use anyhow::Result;
use neardup_pgserver::Server;
use neardup_tests::{connect, own_server};
use postgres::Client;

/// Set by `cargo xtask test --citus PATH`.
const CITUS: &str = "NEARDUP_TEST_CITUS";

/// A coordinator, which has no shards, and two workers.
pub struct Cluster {
    pub nodes: Vec<Server>,
}

impl Cluster {
    /// Starts the servers of the test `name` with these settings, and makes them a cluster.
    /// Without Citus, reports a skip and returns `None`.
    ///
    /// # Errors
    /// When a server does not start or cannot join the cluster.
    pub fn create(name: &str, settings: &[(&str, &str)]) -> Result<Option<Self>> {
        if std::env::var_os(CITUS).is_none() {
            skip_optional("no Citus; cargo xtask test --citus PATH runs it")?;
            return Ok(None);
        }
        let mut all = vec![
            ("shared_preload_libraries", "citus"),
            ("wal_level", "logical"),
            // The test kills the server, not the operating system.
            ("fsync", "off"),
        ];
        all.extend(settings);
        let mut nodes = Vec::new();
        for number in 0..3 {
            let node = own_server(&format!("citus-{name}-{number}"), &all)?;
            let mut client = connect(&node.conninfo("postgres"))?;
            client.batch_execute("CREATE EXTENSION citus")?;
            // The host name by which a node connects to itself.
            client.batch_execute(&format!(
                "ALTER SYSTEM SET citus.local_hostname = {}",
                host(&node)
            ))?;
            client.batch_execute("SELECT pg_reload_conf()")?;
            nodes.push(node);
        }
        let cluster = Cluster { nodes };
        let mut client = cluster.connect()?;
        for (number, node) in cluster.nodes.iter().enumerate() {
            let function = match number {
                0 => "citus_set_coordinator_host",
                _ => "citus_add_node",
            };
            let (host, port) = (host(node), node.port());
            client.batch_execute(&format!("SELECT {function}({host}, {port})"))?;
        }
        Ok(Some(cluster))
    }

    /// Calls [`Cluster::create`] and creates the extension neardup.
    ///
    /// # Errors
    /// Same as [`Cluster::create`], and when CREATE EXTENSION fails.
    pub fn with_neardup(name: &str, settings: &[(&str, &str)]) -> Result<Option<Self>> {
        let cluster = Self::create(name, settings)?;
        if let Some(cluster) = &cluster {
            cluster
                .connect()?
                .batch_execute("CREATE EXTENSION neardup")?;
        }
        Ok(cluster)
    }

    /// Opens a connection to the coordinator.
    ///
    /// # Errors
    /// When it refuses.
    pub fn connect(&self) -> Result<Client> {
        connect(&self.conninfo())
    }

    /// Connection string of the coordinator.
    pub fn conninfo(&self) -> String {
        self.nodes[0].conninfo("postgres")
    }
}

/// Returns the folder of a server's socket, which libpq accepts as a host, as an SQL literal.
fn host(server: &Server) -> String {
    let socket = server.socket_dir().display().to_string();
    format!("'{}'", socket.replace('\'', "''"))
}

/// Makes a table, and distributes it by a column.
pub fn distributed(client: &mut Client, table: &str, columns: &str, column: &str) -> Result<()> {
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS {table}; CREATE TABLE {table} ({columns}); \
         SELECT create_distributed_table('{table}', '{column}')"
    ))?;
    Ok(())
}

/// Runs statements one by one; none may contain a semicolon. For some commands, Citus sends the
/// whole text of a query to its nodes.
pub fn each(client: &mut Client, statements: &str) -> Result<()> {
    for statement in statements.split(';') {
        client.batch_execute(statement)?;
    }
    Ok(())
}

/// The number of tasks in the plan of a query.
pub fn tasks(client: &mut Client, query: &str) -> Result<usize> {
    let plan: Vec<String> = (client
        .query(&format!("EXPLAIN (COSTS OFF) {query}"), &[])?
        .iter())
    .map(|row| row.get(0))
    .collect();
    let count = (plan.iter()).find_map(|line| line.trim().strip_prefix("Task Count: "));
    let Some(count) = count else {
        anyhow::bail!("no tasks in the plan of {query}:\n{}", plan.join("\n"));
    };
    Ok(count.parse()?)
}

/// Asserts that a statement returns true on each of the three nodes.
pub fn holds_on_all(client: &mut Client, condition: &str) -> Result<()> {
    let nodes: i64 = value(
        client,
        &format!(
            "SELECT count(*) FROM run_command_on_all_nodes($cmd$SELECT {condition}$cmd$) \
             WHERE success AND result = 't'"
        ),
    )?;
    anyhow::ensure!(nodes == 3, "{condition} holds on {nodes} nodes");
    Ok(())
}
