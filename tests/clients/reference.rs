//! The SQL reference names the functions and parameters that the extension declares.
use crate::support::Outcome;
use anyhow::{Result, ensure};
use neardup_tests::Database;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The public functions, each with its argument names; '' for an unnamed one. Excludes casts,
/// functions behind operators and indexes, and functions with the name of a server's function.
const FUNCTIONS: &str = "SELECT p.proname::text, \
        ARRAY(SELECT coalesce(p.proargnames[i], '') FROM generate_series(1, p.pronargs) AS i) \
    FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid \
    JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid \
    WHERE e.extname = 'neardup' AND d.deptype = 'e' AND p.proname !~ '^_' \
    AND p.prorettype <> 'trigger'::regtype \
    AND NOT EXISTS (SELECT FROM pg_cast WHERE castfunc = p.oid) \
    AND NOT EXISTS (SELECT FROM pg_proc AS s WHERE s.proname = p.proname \
        AND s.pronamespace = 'pg_catalog'::regnamespace)";

/// Declared parameters by function.
fn declared() -> Result<BTreeMap<String, BTreeSet<String>>> {
    let database = Database::create()?;
    let mut declared: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in database.connect()?.query(FUNCTIONS, &[])? {
        let (name, parameters): (String, Vec<String>) = (row.get(0), row.get(1));
        ensure!(
            !parameters.iter().any(String::is_empty),
            "{name} has a parameter without a name: {parameters:?}"
        );
        declared.entry(name).or_default().extend(parameters);
    }
    Ok(declared)
}

/// Names of the parameters in a synopsis: the first word of each part between commas.
fn parameters(synopsis: &str) -> impl Iterator<Item = &str> {
    (synopsis.split([',', '[', ']']))
        .filter_map(|part| part.split_whitespace().next())
        .filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase()))
}

/// Parameters by function, from the headings of the reference.
fn documented(reference: &str) -> Vec<(&str, Vec<&str>)> {
    let synopses = (reference.lines())
        .filter(|line| line.starts_with("### "))
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    let function = |synopsis: &'_ str| -> Option<(usize, usize)> {
        let open = synopsis.find('(')?;
        Some((open, synopsis.rfind(')')?))
    };
    synopses
        .filter_map(|synopsis| {
            let (open, close) = function(synopsis)?;
            let name = &synopsis[..open];
            let is_name = name
                .chars()
                .all(|it| it.is_ascii_alphanumeric() || it == '_');
            is_name.then(|| (name, parameters(&synopsis[open + 1..close]).collect()))
        })
        .collect()
}

fn reference() -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sql-reference.md");
    Ok(fs::read_to_string(path)?)
}

#[test]
fn documented_parameters_are_declared() -> Outcome {
    let (declared, reference) = (declared()?, reference()?);
    let mut compared = 0;
    for (name, parameters) in documented(&reference) {
        let Some(declared) = declared.get(name) else {
            continue;
        };
        for parameter in parameters {
            ensure!(
                declared.contains(parameter),
                "{name} is documented with {parameter}, and has {declared:?}"
            );
            compared += 1;
        }
    }
    ensure!(
        compared > 100,
        "only {compared} parameters in the reference"
    );
    Ok(())
}

#[test]
fn every_public_function_is_documented() -> Outcome {
    let reference = reference()?;
    let headings: Vec<&str> = (reference.lines())
        .filter(|line| line.starts_with("### "))
        .collect();
    for name in declared()?.keys() {
        let is_documented = headings.iter().any(|heading| {
            let mut words = heading.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
            words.any(|word| word == name)
        });
        ensure!(is_documented, "{name} has no heading in the reference");
    }
    Ok(())
}
