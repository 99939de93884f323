//! Makes the Debian package of the extension: writes a file tree, which cargo-deb packs.
use super::Built;
use super::licences::Form;
use super::release::Release;
use super::stage;
use crate::cargo::workspace;
use crate::documents::{self, LICENCE};
use crate::tools::Tool;
use crate::{program, ui};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CARGO_DEB: Tool = Tool {
    name: "cargo-deb",
    version: "3.8.0",
    options: &[],
};
const MANIFEST: &str = include_str!("templates/deb.toml");
const CHANGELOG: &str = include_str!("templates/changelog");

/// Checks that the Debian programs for packaging are installed.
///
/// # Errors
/// If they are missing. The error names the Debian package that contains them.
pub fn require_tools() -> Result<()> {
    program::output(Command::new("dpkg-shlibdeps").arg("--version")).context(
        "packages for Debian need dpkg-shlibdeps, which Debian's package dpkg-dev has; \
         `--format tarball,source,wheel` makes the others",
    )?;
    Ok(())
}

/// Makes the Debian package of `built` in the folder `output` and returns its path. `dir` is the
/// folder for the file tree.
pub fn make(built: &Built, release: &Release, dir: &Path, output: &Path) -> Result<PathBuf> {
    let maintainer = release.maintainer()?;
    let cargo_deb = CARGO_DEB.provide()?;
    let name = format!("postgresql-{}-neardup", built.major);
    let fill = |template: &str| {
        template
            .replace("{major}", &built.major.to_string())
            .replace("{version}", &release.version)
            .replace("{maintainer}", maintainer)
    };
    let path = ui::step(format!("Packing {name}"), || {
        stage::empty(dir)?;
        put_files(built, &dir.join("usr"), &name)?;
        stage::write(
            &dir.join("copyright"),
            built.licences.file(Form::Debian),
            0o644,
        )?;
        stage::write(
            &dir.join("Cargo.toml"),
            with_homepage(fill(MANIFEST), release),
            0o644,
        )?;
        let changelog = fill(CHANGELOG).replace("{date}", &release.rfc_date()?);
        stage::write(&dir.join("changelog"), changelog, 0o644)?;
        let mut deb = Command::new(&cargo_deb);
        deb.current_dir(dir)
            .args(["deb", "--no-build", "--no-strip", "--output"])
            .arg(std::path::absolute(output)?)
            .env("CARGO_TARGET_DIR", dir.join("target"))
            .env("SOURCE_DATE_EPOCH", release.epoch.to_string());
        program::output(&mut deb).context("cargo-deb failed")
    })?;
    let path = PathBuf::from(path.lines().last().unwrap_or_default());
    let depends = ["--field", "Depends"].map(Path::new);
    let mut dpkg = Command::new("dpkg-deb");
    let depends = program::output(dpkg.args([depends[0], &path, depends[1]]))?;
    // If dpkg-shlibdeps fails, cargo-deb only warns, and the package lacks its dependencies.
    ensure!(
        depends.contains("libc6"),
        "the package does not depend on libc6: {depends}"
    );
    Ok(path)
}

/// Copies the extension's files into the folder `usr`, which becomes `/usr`. The paths of the
/// copies are those that Debian's PostgreSQL packages use for extensions. `name` is the name of the
/// package.
fn put_files(built: &Built, usr: &Path, name: &str) -> Result<()> {
    let major = built.major;
    let library = usr.join(format!("lib/postgresql/{major}/lib/neardup.so"));
    stage::copy(&built.library, &library, 0o644)?;
    let share = usr.join(format!("share/postgresql/{major}/extension"));
    for file in &built.share {
        stage::copy(
            file,
            &share.join(file.file_name().unwrap_or_default()),
            0o644,
        )?;
    }
    // lintian expects that a first upload to Debian's archive closes a bug report. This package is
    // not for that archive.
    let overrides = format!("{name}: initial-upload-closes-no-bugs *\n");
    stage::write(
        &usr.join("share/lintian/overrides").join(name),
        overrides,
        0o644,
    )?;
    put_documents(&usr.join("share/doc").join(name))
}

/// Copies the project's documents to `folder`. Copies the changelog also to `changelog.gz`, where
/// Debian expects it. Omits the licence, which Debian expects in the file `copyright`.
fn put_documents(folder: &Path) -> Result<()> {
    for path in documents::list(workspace())? {
        let mut content = fs::read(workspace().join(&path))?;
        match path.as_str() {
            LICENCE => continue,
            "README.md" => {
                let text = String::from_utf8(content).context("README.md")?;
                content = text.replace("](LICENSE)", "](copyright)").into_bytes();
            }
            "CHANGELOG.md" => {
                stage::write(&folder.join("changelog.gz"), stage::gzip(&content)?, 0o644)?;
            }
            _ => (),
        }
        stage::write(&folder.join(path), content, 0o644)?;
    }
    Ok(())
}

/// Adds the project's address to the manifest of the package, if the project has one.
fn with_homepage(manifest: String, release: &Release) -> String {
    let Some(address) = release.repository else {
        return manifest;
    };
    let section = "[package]\n";
    manifest.replacen(section, &format!("{section}homepage = \"{address}\"\n"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::links::links;

    #[test]
    fn the_package_has_the_documents_and_no_dead_link() -> Result<()> {
        let dir = tempfile::tempdir()?;
        put_documents(dir.path())?;
        let readme = fs::read_to_string(dir.path().join("README.md"))?;
        let mut checked = 0;
        for link in links(&readme) {
            if let Some((path, _)) = link.within("README.md") {
                // Debian's tools write the file copyright.
                assert!(
                    path == "copyright" || dir.path().join(&path).is_file(),
                    "{path}"
                );
                checked += 1;
            }
        }
        assert!(checked > 20 && dir.path().join("changelog.gz").is_file());
        Ok(())
    }

    #[test]
    fn the_manifest_has_the_address_if_there_is_one() {
        let mut release = Release {
            version: "0.1.0".into(),
            epoch: 0,
            maintainer: None,
            repository: None,
        };
        assert_eq!(with_homepage(MANIFEST.to_owned(), &release), MANIFEST);
        release.repository = Some("https://example.org/a");
        let with = with_homepage(MANIFEST.to_owned(), &release);
        assert!(with.contains("[package]\nhomepage = \"https://example.org/a\"\n"));
    }
}
