//! The crates that are linked into the library.
use crate::cargo::{cargo, metadata};
use crate::program;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A crate, and its texts that concern licences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Crate {
    /// Name, as on crates.io.
    pub name: String,
    /// Version.
    pub version: String,
    /// The licence field of its manifest, an SPDX expression.
    pub expression: String,
    /// The authors of its manifest.
    pub authors: Vec<String>,
    /// The licence files, in the order of their names.
    pub texts: Vec<String>,
}

/// The crates in the extension's library for the version of the server that this feature names, as
/// [`crates`] says.
pub fn in_extension(feature: &str) -> Result<Vec<Crate>> {
    crates(&[
        "--package",
        "neardup",
        "--no-default-features",
        "--features",
        feature,
    ])
}

/// The crates in the module of the package for Python, as [`crates`] says.
pub fn in_python_package() -> Result<Vec<Crate>> {
    crates(&["--package", "neardup-python"])
}

/// The crates from registries that are linked into the library that cargo's `selection` names, in
/// the order of their names. Those that only build it (build scripts, procedural macros) and those
/// of tests are not among them.
fn crates(selection: &[&str]) -> Result<Vec<Crate>> {
    let linked = names(selection)?;
    let packages = metadata(&["--locked"])?["packages"].take();
    let mut crates = Vec::new();
    for package in packages.as_array().into_iter().flatten() {
        let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
        let (name, version) = (text("name"), text("version"));
        if package["source"].is_null() || !linked.contains(&(name.clone(), version.clone())) {
            continue;
        }
        let manifest = text("manifest_path");
        let folder = Path::new(&manifest).parent().unwrap_or(Path::new("/"));
        let authors = package["authors"].as_array().into_iter().flatten();
        crates.push(Crate {
            texts: licence_files(folder)
                .with_context(|| format!("cannot read the licences of {name}"))?,
            name,
            version,
            expression: text("license"),
            authors: authors
                .filter_map(|a| Some(a.as_str()?.to_owned()))
                .collect(),
        });
    }
    crates.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    ensure!(!crates.is_empty(), "no crate is linked into the library");
    Ok(crates)
}

/// Names and versions of the linked crates, those of this workspace among them.
fn names(selection: &[&str]) -> Result<BTreeSet<(String, String)>> {
    let tree = program::output(
        cargo()
            .args(["tree", "--locked"])
            .args(selection)
            .args(["--edges", "normal,no-proc-macro"])
            .args(["--prefix", "none", "--no-dedupe", "--format", "{p}"]),
    )?;
    let mut names = BTreeSet::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            let version = version.trim_start_matches('v');
            names.insert((name.to_owned(), version.to_owned()));
        }
    }
    Ok(names)
}

/// The texts of a crate's files and folders that are named after licences.
fn licence_files(folder: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_lowercase();
        if !["licen", "copying", "copyright", "notice"]
            .iter()
            .any(|part| name.starts_with(part))
        {
            continue;
        }
        if path.is_dir() {
            for entry in fs::read_dir(&path)? {
                paths.push(entry?.path());
            }
        } else {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path| Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned());
    paths.iter().map(read).collect()
}
