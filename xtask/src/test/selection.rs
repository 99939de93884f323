//! Selection of packages with Rust tests by filters.
use crate::cargo::workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use walkdir::WalkDir;

/// Package with Rust tests.
#[derive(Debug, PartialEq, Eq)]
pub struct Package {
    pub name: &'static str,
    /// Folder in the workspace.
    pub folder: &'static str,
    /// True if its documentation has examples, which rustdoc runs.
    pub has_examples: bool,
}

/// Package of the tests over a connection.
pub const SERVER_TESTS: &str = "neardup-tests";

/// All packages with tests except the benchmarks, which have many additional dependencies.
const PACKAGES: [Package; 7] = [
    package("neardup-sketch", "crates/sketch", true),
    package("neardup-blocktree", "crates/blocktree", true),
    package("neardup-textdiff", "crates/textdiff", true),
    package("neardup-report", "crates/report", false),
    package("neardup-pgserver", "crates/pgserver", false),
    package("xtask", "xtask", false),
    package(SERVER_TESTS, "tests", false),
];

const fn package(name: &'static str, folder: &'static str, has_examples: bool) -> Package {
    Package {
        name,
        folder,
        has_examples,
    }
}

/// Package whose tests run, all or some.
#[derive(Debug, PartialEq, Eq)]
pub struct Selected {
    pub package: &'static Package,
    /// Parts of the names of the tests to run. Empty if all tests run.
    pub filters: Vec<String>,
}

/// Returns each package whose name contains a filter, with all its tests, and each package in
/// which a test may match a filter. Without filters returns all packages. Unless `pure`, returns
/// only the package with tests over a connection.
///
/// # Errors
///
/// If the sources cannot be read.
pub fn packages(filters: &[String], pure: bool) -> Result<Vec<Selected>> {
    // Rust test names do not contain a slash. Golden files do: regress/dedup.
    let names: Vec<String> = (filters.iter())
        .filter(|filter| !filter.contains('/'))
        .cloned()
        .collect();
    let mut selected = Vec::new();
    for package in PACKAGES.iter().filter(|it| pure || it.name == SERVER_TESTS) {
        let is_named = names
            .iter()
            .any(|name| package.name.contains(name.as_str()));
        if filters.is_empty() || is_named {
            selected.push(Selected {
                package,
                filters: Vec::new(),
            });
        } else if may_contain(&workspace().join(package.folder), &names)? {
            selected.push(Selected {
                package,
                filters: names.clone(),
            });
        }
    }
    Ok(selected)
}

/// Returns whether a test in this folder may have a name that contains one of the filters. Test
/// names consist of names of modules and functions. May return true by mistake, but not false.
fn may_contain(folder: &Path, filters: &[String]) -> Result<bool> {
    if filters.is_empty() {
        return Ok(false);
    }
    let names = names(folder)?;
    let occurs = |part: &str| names.iter().any(|name| name.contains(part));
    let occurs_whole = |filter: &String| filter.split("::").all(occurs);
    Ok(filters.iter().any(occurs_whole))
}

/// Returns the names of the modules and functions in the Rust files below a folder.
fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in WalkDir::new(folder) {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let inside = path.strip_prefix(folder)?.with_extension("");
        names.extend(
            inside
                .iter()
                .map(|part| part.to_string_lossy().into_owned()),
        );
        let source =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut words = source.split(|c: char| !c.is_alphanumeric() && c != '_');
        while let Some(word) = words.next() {
            if word == "fn" || word == "mod" {
                names.extend(words.next().map(str::to_owned));
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(filters: &[&str]) -> Vec<(&'static str, bool)> {
        let filters: Vec<String> = filters.iter().map(|&filter| filter.to_owned()).collect();
        let selected = packages(&filters, true).unwrap();
        let outline = |it: Selected| (it.package.name, it.filters.is_empty());
        selected.into_iter().map(outline).collect()
    }

    #[test]
    fn a_filter_selects_packages_by_their_names() {
        assert!(selected(&["sketch"]).contains(&("neardup-sketch", true)));
        assert!(!selected(&["sketch"]).contains(&("neardup-report", true)));
        assert_eq!(selected(&[]).len(), PACKAGES.len());
    }

    #[test]
    fn a_filter_selects_packages_by_names_of_tests() {
        let name = concat!(
            "selection::tests::",
            "a_filter_selects_packages_by_names_of_tests"
        );
        assert_eq!(selected(&[name]), [("xtask", false)]);
        assert_eq!(selected(&["no_test_has::this_name"]), []);
        assert_eq!(selected(&["regress/hamming"]), []);
    }
}
