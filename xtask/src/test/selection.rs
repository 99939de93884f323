//! Selects the packages with Rust tests by the user's filters, so that only packages with a
//! matching test are built. A filter is a part of the name of a test or package.
use crate::cargo::workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use walkdir::WalkDir;

/// Package of the workspace with Rust tests.
#[derive(Debug, PartialEq, Eq)]
pub struct Package {
    /// Name of the package in cargo.
    pub name: &'static str,
    /// Path of the package's folder from the workspace's root.
    pub folder: &'static str,
    /// True if the package's documentation has examples, which rustdoc runs as tests.
    pub has_examples: bool,
}

/// Name of the package with the tests over a connection, which need a server. The tests of all
/// other packages need none.
pub const SERVER_TESTS: &str = "neardup-tests";

/// All packages with tests, except the benchmarks, whose many dependencies take long to build.
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

/// Package that has tests to run.
#[derive(Debug, PartialEq, Eq)]
pub struct Selected {
    /// The selected package.
    pub package: &'static Package,
    /// Parts of the names of the tests to run. If it is empty, all tests of the package run.
    pub filters: Vec<String>,
}

/// Returns the packages that `filters` select; all packages if there are no filters. If a filter is
/// part of the name of a package, all tests of the package are selected. Otherwise a package is
/// selected if it may have a test whose name contains a filter. If `pure` is false, considers only
/// the package [`SERVER_TESTS`].
///
/// # Errors
///
/// If the sources cannot be read.
pub fn packages(filters: &[String], pure: bool) -> Result<Vec<Selected>> {
    // Filters with a slash select golden files such as regress/dedup. Names of Rust tests have no
    // slash.
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

/// Returns whether a test in this folder may have a name that contains one of the filters. The name
/// of a test consists of the names of modules and of a function. The result may be true although
/// there is no such test, but is never false if there is one.
fn may_contain(folder: &Path, filters: &[String]) -> Result<bool> {
    if filters.is_empty() {
        return Ok(false);
    }
    let names = names(folder)?;
    let occurs = |part: &str| names.iter().any(|name| name.contains(part));
    let occurs_whole = |filter: &String| filter.split("::").all(occurs);
    Ok(filters.iter().any(occurs_whole))
}

/// Returns the names of the modules, files and functions in the Rust files below a folder.
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

/// Returns whether the filters select the test `test`, for example `regress/types`. Without
/// filters, all tests are selected.
pub fn is_selected(test: &str, filters: &[String]) -> bool {
    filters.is_empty() || filters.iter().any(|filter| test.contains(filter.as_str()))
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

    #[test]
    fn filters_select_by_suite_and_by_name() {
        let filters = ["regress/ty".to_owned()];
        assert!(is_selected("regress/types", &filters));
        assert!(!is_selected("isolation/types", &filters));
    }
}
