//! Checks that the files and folders that documents name exist.
use super::Violation;
use super::sources::Source;
use std::path::Path;

const RULE: &str = "paths";
/// Folders of the workspace's root. Quoted text in a document counts as a path if it begins with
/// one of these names.
const FOLDERS: [&str; 7] = ["src", "crates", "tests", "sql", "xtask", "docs", ".ci"];

/// Finds paths in backquotes that a document names but that do not exist in the workspace. Skips a
/// path with a placeholder in capitals, such as `tests/NAME.rs`. A path with `{a,b}` stands for two
/// paths.
pub fn check(root: &Path, source: &Source) -> Vec<Violation> {
    // Other folders have pages about external data, which name files of the data's source.
    let is_own = !source.path.contains('/') || source.path.starts_with("docs/");
    if !is_own || !source.path.ends_with(".md") {
        return Vec::new();
    }
    let mut violations = Vec::new();
    for (number, line) in (1..).zip(source.text.lines()) {
        let quoted = line.split('`').skip(1).step_by(2);
        for path in quoted.filter(|text| is_path(text)).flat_map(expanded) {
            if !root.join(&path).exists() {
                violations.push(Violation {
                    rule: RULE,
                    path: source.path.clone(),
                    line: number,
                    message: format!("there is no {path}: name the file that it became"),
                });
            }
        }
    }
    violations
}

/// Returns whether a text looks like the path of a file or folder of the workspace.
fn is_path(text: &str) -> bool {
    let Some((folder, rest)) = text.split_once('/') else {
        return false;
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || "/_-.{},".contains(c);
    let is_placeholder = |part: &str| {
        let stem = part.split('.').next().unwrap_or(part);
        stem.len() > 1 && stem.chars().all(|c| c.is_ascii_uppercase())
    };
    FOLDERS.contains(&folder) && rest.chars().all(is_part) && !rest.split('/').any(is_placeholder)
}

/// Returns the paths for which `path` stands: one for each alternative if it contains `{a,b}`,
/// otherwise `path` itself.
fn expanded(path: &str) -> Vec<String> {
    let Some((before, (parts, after))) = path
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return vec![path.to_owned()];
    };
    let joined = |part: &str| format!("{before}{part}{after}");
    parts.split(',').map(joined).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::workspace;

    fn missing(text: &str) -> Vec<String> {
        let root = workspace();
        let source = Source::new("docs/a.md", text);
        let found = check(root, &source);
        found.into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn paths_without_a_file_are_found() {
        assert_eq!(
            missing("`xtask/src/main.rs` and `xtask/src/nothing.rs`"),
            ["there is no xtask/src/nothing.rs: name the file that it became"]
        );
        assert_eq!(missing("`xtask/src/{main,nothing}.rs`").len(), 1);
    }

    #[test]
    fn other_code_and_placeholders_are_no_paths() {
        assert!(missing("`a/b`, `tests/NAME.rs`, `SELECT 1 / 2`, `xtask/src/`").is_empty());
        let source = Source::new("a.rs", "// `xtask/src/nothing.rs`");
        assert!(check(Path::new("/"), &source).is_empty());
    }
}
