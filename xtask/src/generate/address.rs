//! Writes the project's address into the files that need it for packages: `META.json` for PGXN, the
//! settings of the Python package, and the control file. The control file has no field for an
//! address, so it gets a comment.
use crate::project;
use anyhow::{Context, Result};
use serde_json::json;
use std::fs;
use std::path::Path;

const META: &str = "META.json";
const PYTHON: &str = "python/pyproject.toml";
const CONTROL: &str = "neardup.control";
/// Beginnings of two lines of `META.json`: the line with the address, and the next line.
const RESOURCES: [&str; 2] = ["   \"resources\": ", "   \"generated_by\": "];
/// Beginnings of two lines of `pyproject.toml`: the line with the address, and the next line.
const URLS: [&str; 2] = ["urls = ", "dynamic = "];
/// Start of the comment with the address in the control file.
const COMMENT: &str = "# Project: ";

/// Returns the path of each file that contains the project's address, with the text that the file
/// should have.
///
/// # Errors
/// If a file cannot be read, or lacks the line before which the address is written.
pub fn files(root: &Path) -> Result<Vec<(String, String)>> {
    let read =
        |path| fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"));
    let repository = project::repository();
    Ok(vec![
        (META.to_owned(), meta(&read(META)?, repository)?),
        (PYTHON.to_owned(), python(&read(PYTHON)?, repository)?),
        (CONTROL.to_owned(), control(&read(CONTROL)?, repository)),
    ])
}

fn meta(text: &str, repository: Option<&str>) -> Result<String> {
    let resources = repository.map(|address| {
        let resources = json!({
            "homepage": address,
            "bugtracker": { "web": format!("{address}/issues") },
            "repository": { "type": "git", "url": format!("{address}.git"), "web": address },
        });
        format!("{resources},")
    });
    with_line(text, RESOURCES, resources)
}

fn python(text: &str, repository: Option<&str>) -> Result<String> {
    let urls = repository.map(|address| format!("{{ Repository = \"{address}\" }}"));
    with_line(text, URLS, urls)
}

/// Removes the line that begins with `start` from `text`, if there is one. If `value` is given,
/// inserts a new line, `start` followed by `value`, before the line that begins with `next`.
/// Returns the changed text.
fn with_line(text: &str, [start, next]: [&str; 2], value: Option<String>) -> Result<String> {
    let mut lines = lines_without(text, start);
    if let Some(value) = value {
        let at = lines.iter().position(|line| line.starts_with(next));
        let at = at.with_context(|| format!("no line begins with {next:?}"))?;
        lines.insert(at, format!("{start}{value}"));
    }
    Ok(lines.join("\n") + "\n")
}

fn control(text: &str, repository: Option<&str>) -> String {
    let mut lines = lines_without(text, COMMENT);
    if let Some(address) = repository {
        lines.insert(0, format!("{COMMENT}{address}"));
    }
    lines.join("\n") + "\n"
}

fn lines_without(text: &str, start: &str) -> Vec<String> {
    let others = text.lines().filter(|line| !line.starts_with(start));
    others.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::workspace;
    use serde_json::Value;

    const ADDRESS: Option<&str> = Some("https://example.org/a/neardup");

    #[test]
    fn pgxn_gets_the_address_once() -> Result<()> {
        let committed = fs::read_to_string(workspace().join(META))?;
        let with = meta(&committed, ADDRESS)?;
        let parsed: Value = serde_json::from_str(&with)?;
        let resources = &parsed["resources"];
        assert_eq!(resources["homepage"], "https://example.org/a/neardup");
        assert_eq!(
            resources["repository"]["url"],
            "https://example.org/a/neardup.git"
        );
        assert_eq!(meta(&with, ADDRESS)?, with);
        let without = meta(&with, None)?;
        assert!(serde_json::from_str::<Value>(&without)?["resources"].is_null());
        Ok(())
    }

    #[test]
    fn the_python_package_gets_the_address_once() -> Result<()> {
        let committed = fs::read_to_string(workspace().join(PYTHON))?;
        let with = python(&committed, ADDRESS)?;
        let line = "\nurls = { Repository = \"https://example.org/a/neardup\" }\ndynamic = ";
        assert!(with.contains(line), "{with}");
        assert_eq!(python(&with, ADDRESS)?, with);
        assert!(!python(&with, None)?.contains("urls"));
        Ok(())
    }

    #[test]
    fn the_control_file_gets_a_comment() {
        let with = control("default_version = '0.1.0'\n", ADDRESS);
        let expected = "# Project: https://example.org/a/neardup\ndefault_version = '0.1.0'\n";
        assert_eq!(with, expected);
        assert_eq!(control(&with, ADDRESS), with);
        assert_eq!(control(&with, None), "default_version = '0.1.0'\n");
    }
}
