//! The SQL reference has an entry for each function of the extension. `cargo xtask check` compares
//! its synopses and parameter tables with the SQL script.
use crate::support::Outcome;
use anyhow::ensure;
use neardup_tests::{Database, project_path};
use std::fs;

/// The public functions, each with true if all its parameters have names. Excludes casts,
/// functions behind operators and indexes, and functions with the name of a server's function.
const FUNCTIONS: &str = "SELECT p.proname::text, \
        bool_and(NOT EXISTS (SELECT FROM generate_series(1, p.pronargs) AS i \
            WHERE coalesce(p.proargnames[i], '') = '')) \
    FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid \
    JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid \
    WHERE e.extname = 'neardup' AND d.deptype = 'e' AND p.proname !~ '^_' \
    AND p.prorettype <> 'trigger'::regtype \
    AND NOT EXISTS (SELECT FROM pg_cast WHERE castfunc = p.oid) \
    AND NOT EXISTS (SELECT FROM pg_proc AS s WHERE s.proname = p.proname \
        AND s.pronamespace = 'pg_catalog'::regnamespace) \
    GROUP BY 1";

#[test]
fn every_public_function_is_documented() -> Outcome {
    let mut reference = String::new();
    for entry in fs::read_dir(project_path("docs/reference"))? {
        reference += &fs::read_to_string(entry?.path())?;
    }
    // A line of a synopsis starts with the name of its function.
    let is_documented = |name: &str| {
        let start = format!("{name}(");
        reference.lines().any(|line| line.starts_with(&start))
    };
    let database = Database::create()?;
    let functions = database.connect()?.query(FUNCTIONS, &[])?;
    ensure!(functions.len() > 50, "only {} functions", functions.len());
    for row in functions {
        let (name, has_parameter_names): (String, bool) = (row.get(0), row.get(1));
        ensure!(has_parameter_names, "{name} has a parameter without a name");
        ensure!(
            is_documented(&name),
            "{name} has no synopsis in the reference"
        );
    }
    Ok(())
}
