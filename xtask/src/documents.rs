//! Lists the project's documents, for the book and for packages.
use anyhow::Result;
use std::path::Path;
use walkdir::WalkDir;

/// Licence of the project, to which documents link.
pub const LICENCE: &str = "LICENSE";
/// Extensions of the files in `docs` that belong to the documents: pages, images, and code to which
/// pages link.
const ENDINGS: [&str; 5] = ["md", "png", "svg", "py", "sql"];

/// Returns the documents of the workspace at `root`: the pages of the root folder, the licence, and
/// the pages, images and code of `docs`. The paths are relative to the root, with slashes, and
/// sorted. The documents link only to each other and to other sites, which a test checks. So a copy
/// of all of them has no broken link.
///
/// # Errors
/// If a folder cannot be read.
pub fn list(root: &Path) -> Result<Vec<String>> {
    let root_files = WalkDir::new(root).min_depth(1).max_depth(1).into_iter();
    let mut paths = Vec::new();
    for entry in root_files.chain(WalkDir::new(root.join("docs"))) {
        let entry = entry?;
        let path = entry
            .path()
            .strip_prefix(root)?
            .to_string_lossy()
            .into_owned();
        if entry.file_type().is_file() && is_document(&path) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn is_document(path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let in_docs = path.starts_with("docs/") && ENDINGS.contains(&ending);
    path == LICENCE || ending == "md" || in_docs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::links::links;
    use crate::cargo::workspace;

    #[test]
    fn links_lead_to_documents() -> Result<()> {
        let documents = list(workspace())?;
        for path in documents.iter().filter(|path| path.ends_with(".md")) {
            let text = std::fs::read_to_string(workspace().join(path))?;
            for link in links(&text) {
                let Some((target, _)) = link.within(path) else {
                    continue;
                };
                assert!(documents.contains(&target), "{path} links to {target}");
            }
        }
        for path in [
            "README.md",
            LICENCE,
            "docs/install.md",
            "docs/quality/f1.svg",
        ] {
            assert!(documents.iter().any(|found| found == path), "{path}");
        }
        Ok(())
    }
}
