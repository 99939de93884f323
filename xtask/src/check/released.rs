//! Scripts of released versions stay as they were, and lead to the version in development.
//!
//! `sql/released.sha256` has a line for each release, in the format of `sha256sum`. A database that
//! was made by a released script must be one that this script still describes, or an upgrade from
//! it is tested in vain.
use super::Violation;
use super::sources::Source;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const RULE: &str = "released";
const SUMS: &str = "sql/released.sha256";
const CURRENT: &str = env!("CARGO_PKG_VERSION");

/// The lines of `sql/released.sha256` below `root`; none before the first release.
pub fn read_sums(root: &Path) -> String {
    fs::read_to_string(root.join(SUMS)).unwrap_or_default()
}

/// Violations by the scripts among `sources`, by the sums of those that are released.
pub fn check(sources: &[Source], sums: &str) -> Vec<Violation> {
    check_for(CURRENT, sources, sums)
}

fn check_for(current: &str, sources: &[Source], sums: &str) -> Vec<Violation> {
    let sums: BTreeMap<&str, &str> = (sums.lines())
        .filter_map(|line| line.split_once("  "))
        .map(|(sum, name)| (name, sum))
        .collect();
    let scripts: BTreeMap<&str, &Source> = (sources.iter())
        .filter_map(|source| Some((source.path.strip_prefix("sql/neardup--")?, source)))
        .filter_map(|(name, source)| Some((name.strip_suffix(".sql")?, source)))
        .collect();
    let upgrades: Vec<(&str, &str)> = (scripts.keys())
        .filter_map(|versions| versions.split_once("--"))
        .collect();
    let violation = |path: &str, message: String| Violation {
        rule: RULE,
        path: path.to_owned(),
        line: 0,
        message,
    };

    let mut violations = Vec::new();
    for (versions, source) in &scripts {
        let name = format!("neardup--{versions}.sql");
        let is_current = versions.rsplit("--").next() == Some(current);
        match sums.get(name.as_str()) {
            Some(sum) if **sum != sum_of(&source.text) => violations.push(violation(
                &source.path,
                "a released script has been changed: write an upgrade script instead".into(),
            )),
            None if !is_current => violations.push(violation(
                &source.path,
                format!("a released script without its sum in {SUMS}"),
            )),
            _ => (),
        }
        if !versions.contains("--") && !leads_to(versions, current, &upgrades) {
            violations.push(violation(
                &source.path,
                format!("no upgrade script leads from {versions} to {current}"),
            ));
        }
    }
    for name in sums.keys() {
        if !sources
            .iter()
            .any(|source| source.path == format!("sql/{name}"))
        {
            violations.push(violation(SUMS, format!("{name} is released, and gone")));
        }
    }
    violations
}

/// Returns whether upgrade scripts lead from one version to another.
fn leads_to(from: &str, to: &str, upgrades: &[(&str, &str)]) -> bool {
    let mut reached = BTreeSet::from([from]);
    loop {
        let next: Vec<&str> = (upgrades.iter())
            .filter(|(a, b)| reached.contains(a) && !reached.contains(b))
            .map(|(_, b)| *b)
            .collect();
        if next.is_empty() {
            return reached.contains(to);
        }
        reached.extend(next);
    }
}

/// The SHA-256 of a text, in hexadecimal digits.
fn sum_of(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(versions: &str) -> Source {
        Source::new(&format!("sql/neardup--{versions}.sql"), versions)
    }

    fn line(versions: &str) -> String {
        format!("{}  neardup--{versions}.sql\n", sum_of(versions))
    }

    /// The messages for these scripts, of which those in `released` have sums.
    fn messages(scripts: &[&str], released: &[&str]) -> Vec<String> {
        let sources: Vec<Source> = scripts.iter().map(|versions| script(versions)).collect();
        let sums: String = released.iter().map(|versions| line(versions)).collect();
        check_for("3", &sources, &sums)
            .into_iter()
            .map(|violation| format!("{}: {}", violation.path, violation.message))
            .collect()
    }

    #[test]
    fn the_sum_is_that_of_sha256sum() {
        assert_eq!(
            sum_of("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn the_version_in_development_alone_breaks_nothing() {
        assert!(messages(&["3"], &[]).is_empty());
        assert!(messages(&["1", "1--2", "2--3", "3"], &["1", "1--2"]).is_empty());
    }

    #[test]
    fn releases_keep_their_scripts_and_lead_on() {
        let found = messages(&["1", "2", "1--2", "3"], &["1", "2", "1--2", "0"]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("from 1 to 3"), "{found:?}");
        assert!(found[1].contains("from 2 to 3"), "{found:?}");
        assert!(found[2].contains("neardup--0.sql is released"), "{found:?}");

        let found = messages(&["1", "1--3", "3"], &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("without its sum"), "{found:?}");

        let changed = [
            script("3"),
            Source::new("sql/neardup--1.sql", "edited"),
            script("1--3"),
        ];
        let found = check_for("3", &changed, &line("1"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.contains("has been changed"), "{found:?}");
    }
}
