//! Makes the source packages of the extension: an archive for PGXN, and a specification for
//! rpmbuild.
use super::licences::{Form, Licences};
use super::release::Release;
use super::stage;
use crate::cargo::workspace;
use crate::{program, ui};
use anyhow::{Context, Result};
use neardup_pgserver::SUPPORTED;
use std::path::{Path, PathBuf};
use std::process::Command;

const SPEC: &str = include_str!("templates/neardup.spec");

/// Packs the sources of the last commit into a zip archive in the folder `output`. Also writes the
/// specification for rpmbuild and the licence file there. Returns the paths of the three files.
///
/// # Errors
/// If the sources are not a git repository.
pub fn make(release: &Release, output: &Path) -> Result<Vec<PathBuf>> {
    let name = format!("neardup-{}", release.version);
    let archive = std::path::absolute(output.join(format!("{name}.zip")))?;
    let git = || {
        let mut git = Command::new("git");
        // A zip archive has local times, so the time zone is fixed.
        git.current_dir(workspace()).env("TZ", "UTC");
        git
    };
    if !program::output(git().args(["status", "--porcelain"]))?.is_empty() {
        ui::note("some changes are not committed, and not in the archive of the sources");
    }
    program::run(
        git()
            .args([
                "archive",
                "--format=zip",
                "-9",
                &format!("--prefix={name}/"),
            ])
            .arg("--output")
            .arg(&archive)
            .arg("HEAD"),
    )
    .context("cannot pack the sources")?;
    let spec = output.join("neardup.spec");
    // The extension links the same crates for every server version, so any version gives the
    // licences.
    let licences = Licences::from_extension(&format!("pg{}", SUPPORTED.start()))?;
    let specification = specification(release, &licences.expression());
    stage::write(&spec, specification, 0o644)?;
    let copyright = output.join("COPYRIGHT");
    stage::write(&copyright, licences.file(Form::Complete), 0o644)?;
    Ok(vec![archive, spec, copyright])
}

/// Returns the text of the specification for rpmbuild. `licences` is the package's licences as an
/// SPDX expression. Placeholders in the template are between two `@`, because rpm's own macros have
/// braces.
fn specification(release: &Release, licences: &str) -> String {
    let address = |address| format!("URL:            {address}\n");
    SPEC.replace("@version@", &release.version)
        .replace("@licences@", licences)
        .replace(
            "@url@\n",
            &release.repository.map_or(String::new(), address),
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::fs;

    #[test]
    fn pgxns_description_is_whole_and_of_this_version() -> Result<()> {
        let meta: Value = serde_json::from_slice(&fs::read(workspace().join("META.json"))?)?;
        for field in [
            "name",
            "abstract",
            "license",
            "maintainer",
            "provides",
            "meta-spec",
        ] {
            assert!(!meta[field].is_null(), "{field}");
        }
        assert_eq!(meta["meta-spec"]["version"], "1.0.0");
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(meta["version"], version);
        let extension = &meta["provides"]["neardup"];
        assert_eq!(extension["version"], version);
        for field in ["file", "docfile"] {
            let path = extension[field].as_str().unwrap_or("no path");
            assert!(workspace().join(path).is_file(), "{path}");
        }
        Ok(())
    }

    #[test]
    fn the_specification_states_version_licences_and_address() {
        let mut release = Release {
            version: "1.2.3".into(),
            epoch: 0,
            maintainer: None,
            repository: None,
        };
        let spec = specification(&release, "PostgreSQL AND MIT");
        assert!(!spec.contains("URL:") && !spec.contains("@url@"), "{spec}");
        assert!(spec.contains("\nVersion:        1.2.3\n"), "{spec}");
        assert!(
            spec.contains("\nLicense:        PostgreSQL AND MIT\n"),
            "{spec}"
        );
        assert!(spec.contains("neardup-%{version}.zip\n"), "{spec}");
        release.repository = Some("https://example.org/a");
        let spec = specification(&release, "MIT");
        assert!(
            spec.contains("\nURL:            https://example.org/a\n"),
            "{spec}"
        );
    }
}
