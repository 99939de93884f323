//! The section "Citus" of docs/distributed.md, run on a cluster.
use super::Cluster;
use crate::clients::documents::{differences, examples_marked};
use crate::support::Outcome;
use anyhow::{Context, ensure};
use neardup_tests::project_path;

#[test]
fn examples_of_the_document_on_citus() -> Outcome {
    const PAGE: &str = "docs/distributed.md";
    let Some(cluster) = Cluster::create("document", &[])? else {
        return Ok(());
    };
    let text = std::fs::read_to_string(project_path(PAGE)).context(PAGE)?;
    let examples = examples_marked(&text, "## Citus", "sql citus");
    ensure!(examples.len() == 2, "{} examples", examples.len());
    let names: Vec<(String, String)> = (cluster.nodes.iter().enumerate())
        .map(|(number, node)| {
            let socket = node.socket_dir().display().to_string();
            (socket, format!("node-{number}"))
        })
        .collect();
    let wrong = differences(PAGE, &cluster.conninfo(), &examples, &names)?;
    assert!(wrong.is_empty(), "{wrong}");
    Ok(())
}
