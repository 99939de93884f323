//! Debian's package, put together by dpkg-deb from a tree of files.
use super::Built;
use super::release::Release;
use super::stage;
use crate::cargo::workspace;
use crate::{program, ui};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use walkdir::WalkDir;

const CONTROL: &str = include_str!("templates/control");
const CHANGELOG: &str = include_str!("templates/changelog");

/// Checks that Debian's tools are here.
///
/// # Errors
/// If they are not; the message names the package that has them.
pub fn require_tools() -> Result<()> {
    for tool in ["dpkg-deb", "dpkg-shlibdeps"] {
        program::output(Command::new(tool).arg("--version")).with_context(|| {
            format!(
                "packages for Debian need {tool}, which Debian's package dpkg-dev has; \
                 `--format tarball,source` makes the others"
            )
        })?;
    }
    Ok(())
}

/// Makes the package and returns its path.
pub fn make(built: &Built, release: &Release, dir: &Path, output: &Path) -> Result<PathBuf> {
    let architecture = program::output(Command::new("dpkg").arg("--print-architecture"))?;
    let name = format!("postgresql-{}-neardup", built.major);
    let to = output.join(format!(
        "{name}_{}_{architecture}.deb",
        release.debian_version()
    ));
    ui::step(format!("Packing {}", to.display()), || {
        stage::empty(dir)?;
        let tree = dir.join("tree");
        put_files(built, release, &tree.join("usr"), &name)?;
        let values = Values {
            architecture: &architecture,
            size: installed_size(&tree)?,
            libraries: &libraries(built, dir)?,
        };
        let sums = sums(&tree)?;
        let control = tree.join("DEBIAN/control");
        stage::write(&control, values.control(built.major, release), 0o644)?;
        stage::write(&tree.join("DEBIAN/md5sums"), sums, 0o644)?;
        stage::open_folders(&tree)?;

        let mut dpkg = Command::new("dpkg-deb");
        dpkg.env("SOURCE_DATE_EPOCH", release.epoch.to_string());
        // The compressed bytes depend on whether several threads made them.
        dpkg.env("DPKG_DEB_THREADS_MAX", "1")
            .args(["--root-owner-group", "-Zxz", "--build"]);
        program::run(dpkg.arg(&tree).arg(&to)).context("dpkg-deb failed")
    })?;
    Ok(to)
}

/// Puts the files where Debian's and PostgreSQL's own packages look for them.
fn put_files(built: &Built, release: &Release, usr: &Path, name: &str) -> Result<()> {
    let major = built.major;
    let library = usr.join(format!("lib/postgresql/{major}/lib/neardup.so"));
    stage::copy(&built.library, &library, 0o644)?;
    for file in &built.share {
        let folder = usr.join(format!("share/postgresql/{major}/extension"));
        stage::copy(
            file,
            &folder.join(file.file_name().unwrap_or_default()),
            0o644,
        )?;
    }
    // The package is not made for Debian's archive, where a first upload closes a bug report.
    let overrides = format!("{name}: initial-upload-closes-no-bugs *\n");
    stage::write(
        &usr.join("share/lintian/overrides").join(name),
        overrides,
        0o644,
    )?;
    let documents = usr.join("share/doc").join(name);
    stage::write(&documents.join("copyright"), &built.debian_copyright, 0o644)?;
    let changes = fs::read(workspace().join("CHANGELOG.md")).context("cannot read CHANGELOG.md")?;
    stage::write(
        &documents.join("changelog.gz"),
        stage::gzip(&changes)?,
        0o644,
    )?;
    let packaging = stage::gzip(changelog(major, release).as_bytes())?;
    stage::write(&documents.join("changelog.Debian.gz"), packaging, 0o644)
}

fn changelog(major: u32, release: &Release) -> String {
    CHANGELOG
        .replace("{major}", &major.to_string())
        .replace("{version}", &release.debian_version())
        .replace("{upstream}", &release.version)
        .replace("{maintainer}", &release.maintainer)
        .replace("{date}", &release.rfc_date())
}

/// Fields of the control file that come from the built files.
struct Values<'a> {
    architecture: &'a str,
    /// In KiB.
    size: u64,
    libraries: &'a str,
}

impl Values<'_> {
    fn control(&self, major: u32, release: &Release) -> String {
        CONTROL
            .replace("{major}", &major.to_string())
            .replace("{version}", &release.debian_version())
            .replace("{architecture}", self.architecture)
            .replace("{maintainer}", &release.maintainer)
            .replace("{size}", &self.size.to_string())
            .replace("{libraries}", self.libraries)
    }
}

/// The installed size as dpkg-gencontrol reckons it: files in whole KiB, and one for the rest.
fn installed_size(tree: &Path) -> Result<u64> {
    let mut size = 0;
    for entry in WalkDir::new(tree) {
        let entry = entry?;
        size += match entry.file_type().is_file() {
            true => entry.metadata()?.len().div_ceil(1024),
            false => 1,
        };
    }
    Ok(size)
}

/// The packages of the shared libraries that the extension needs.
fn libraries(built: &Built, dir: &Path) -> Result<String> {
    // The tool wants to stand in the folder of a source package.
    let source = "Source: neardup\n\nPackage: neardup\nArchitecture: any\n";
    stage::write(&dir.join("debian/control"), source, 0o644)?;
    let mut command = Command::new("dpkg-shlibdeps");
    command.current_dir(dir).arg("-O").arg(&built.library);
    let answer = program::output(&mut command)?;
    let depends = answer
        .lines()
        .find_map(|line| line.strip_prefix("shlibs:Depends="));
    let depends = depends.context("dpkg-shlibdeps names no library")?;
    ensure!(
        depends.contains("libc6"),
        "dpkg-shlibdeps names no C library: {depends}"
    );
    Ok(depends.to_owned())
}

/// The MD5 sums of all files, for `dpkg --verify`.
fn sums(tree: &Path) -> Result<String> {
    let mut files = Vec::new();
    for entry in WalkDir::new(tree).sort_by_file_name() {
        let entry = entry?;
        if entry.file_type().is_file() {
            files.push(entry.path().strip_prefix(tree)?.to_owned());
        }
    }
    let sums = program::output(Command::new("md5sum").current_dir(tree).args(&files))?;
    Ok(sums + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release() -> Release {
        Release {
            version: "1.2.3".into(),
            epoch: 0,
            maintainer: "A B <a@b.de>".into(),
        }
    }

    #[test]
    fn control_has_its_fields() {
        let values = Values {
            architecture: "arm64",
            size: 17,
            libraries: "libc6 (>= 2.34)",
        };
        let control = values.control(16, &release());
        for line in [
            "Package: postgresql-16-neardup",
            "Version: 1.2.3-1",
            "Architecture: arm64",
            "Maintainer: A B <a@b.de>",
            "Installed-Size: 17",
            "Depends: postgresql-16, libc6 (>= 2.34)",
        ] {
            assert!(
                control.lines().any(|found| found == line),
                "{line} in\n{control}"
            );
        }
        assert!(!control.contains(['{', '}']), "{control}");
        assert!(control.ends_with('\n') && control.is_ascii() && !control.contains("\n\n"));
    }

    #[test]
    fn changelog_is_in_debians_format() {
        let text = changelog(16, &release());
        assert!(
            text.starts_with("postgresql-16-neardup (1.2.3-1) unstable; urgency="),
            "{text}"
        );
        let signed = "\n -- A B <a@b.de>  Thu, 01 Jan 1970 00:00:00 +0000\n";
        assert!(text.ends_with(signed), "{text}");
        assert!(!text.contains(['{', '}']), "{text}");
    }
}
