//! Documents that every machine with cargo has: the licences and README files of the packages that
//! cargo has downloaded for this workspace, and the copyright files of Debian's packages.
use super::document::{Complaints, Take};
use super::folder::read_file;
use crate::cargo::metadata;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const DEBIAN: &str = "/usr/share/doc";

/// Reads them all, in the order of their names.
pub fn read(complaints: &mut Complaints, take: &mut Take) -> Result<()> {
    for dir in package_dirs(&resolved()?) {
        let package = name_of(&dir);
        for path in entries(&dir) {
            let name = name_of(&path);
            if is_document(&name) && path.is_file() {
                read_file(&path, format!("{package}/{name}"), complaints, take)?;
            }
        }
    }
    for dir in entries(Path::new(DEBIAN)) {
        // Packages share a folder by links; each file counts once.
        let path = dir.join("copyright");
        if !dir.is_symlink() && path.is_file() && !path.is_symlink() {
            let name = format!("doc/{}/copyright", name_of(&dir));
            read_file(&path, name, complaints, take)?;
        }
    }
    Ok(())
}

/// The workspace's dependencies on this platform: all that the build has downloaded. Others might
/// have to be downloaded first.
fn resolved() -> Result<Value> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    match host {
        Some(host) => metadata(&["--filter-platform", host]),
        None => metadata(&[]),
    }
}

/// The folders of the packages that come from a registry.
fn package_dirs(metadata: &Value) -> BTreeSet<PathBuf> {
    let packages = metadata["packages"].as_array();
    packages
        .into_iter()
        .flatten()
        .filter(|package| package["source"].is_string())
        .filter_map(|package| package["manifest_path"].as_str())
        .filter_map(|manifest| Some(Path::new(manifest).parent()?.to_owned()))
        .collect()
}

/// LICENSE-MIT, COPYING, README.md and the like.
fn is_document(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "license",
        "licence",
        "copying",
        "copyright",
        "notice",
        "unlicense",
        "readme",
    ]
    .iter()
    .any(|beginning| name.starts_with(beginning))
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// A folder's entries in the order of their names; none when it cannot be read.
fn entries(dir: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_from_a_registry_count() {
        let metadata = serde_json::json!({"packages": [
            {"source": null, "manifest_path": "/workspace/Cargo.toml"},
            {"source": "registry+x", "manifest_path": "/registry/serde-1.0.0/Cargo.toml"},
        ]});
        let dirs: Vec<_> = package_dirs(&metadata).into_iter().collect();
        assert_eq!(dirs, [Path::new("/registry/serde-1.0.0")]);
    }

    #[test]
    fn documents_are_told_by_their_names() {
        for name in ["LICENSE-MIT", "Readme.md", "COPYING", "UNLICENSE"] {
            assert!(is_document(name), "{name}");
        }
        for name in ["Cargo.toml", "src", "CHANGELOG.md"] {
            assert!(!is_document(name), "{name}");
        }
    }
}
