//! Makes an archive of the built extension with an install script, for servers that were not
//! installed from Debian packages.
use super::Built;
use super::licences::Form;
use super::release::Release;
use super::stage;
use crate::cargo::workspace;
use crate::{documents, ui};
use anyhow::Result;
use std::path::{Path, PathBuf};

const INSTALL: &str = include_str!("templates/install.sh");

/// Makes the archive of `built` in the folder `output` and returns its path. `stage` is a folder
/// for temporary files.
pub fn make(built: &Built, release: &Release, stage: &Path, output: &Path) -> Result<PathBuf> {
    let machine = std::env::consts::ARCH;
    let name = format!(
        "neardup-{}-pg{}-linux-{machine}",
        release.version, built.major
    );
    let to = output.join(format!("{name}.tar.gz"));
    ui::step(format!("Packing {}", to.display()), || {
        let parent = stage.join("tarball");
        stage::empty(&parent)?;
        let folder = parent.join(&name);
        stage::copy(&built.library, &folder.join("neardup.so"), 0o755)?;
        for file in &built.share {
            stage::copy(
                file,
                &folder.join(file.file_name().unwrap_or_default()),
                0o644,
            )?;
        }
        for file in documents::list(workspace())? {
            stage::copy(&workspace().join(&file), &folder.join(&file), 0o644)?;
        }
        let copyright = built.licences.file(Form::Complete);
        stage::write(&folder.join("COPYRIGHT"), copyright, 0o644)?;
        let script = install_script(built.major, &release.version, machine);
        stage::write(&folder.join("install.sh"), script, 0o755)?;
        stage::archive(&parent, &name, release, &to)
    })?;
    Ok(to)
}

/// Returns the script that installs the extension of the version `version` into a PostgreSQL of the
/// major version `major`. `machine` is the processor that the library is built for.
fn install_script(major: u32, version: &str, machine: &str) -> String {
    INSTALL
        .replace("{major}", &major.to_string())
        .replace("{version}", version)
        .replace("{machine}", machine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::process::{Command, Output};

    /// Unpacked files of an archive for PostgreSQL 15, and a pg_config program that reports the
    /// version given to `new`.
    struct Trial {
        dir: tempfile::TempDir,
    }

    impl Trial {
        fn new(found: &str) -> Result<Self> {
            let dir = tempfile::tempdir()?;
            let at = |name: &str| dir.path().join(name);
            let script = install_script(15, "0.1.0", std::env::consts::ARCH);
            stage::write(&at("files/install.sh"), script, 0o755)?;
            for name in ["neardup.so", "neardup.control", "neardup--0.1.0.sql"] {
                stage::write(&at("files").join(name), name, 0o600)?;
            }
            let answers = format!(
                "#!/bin/sh\ncase $1 in --version) echo 'PostgreSQL {found}';; \
                 --pkglibdir) echo '/a b/lib';; --sharedir) echo /share;; \
                 --bindir) dirname \"$0\";; esac\n"
            );
            stage::write(&at("pg_config"), answers, 0o755)?;
            Ok(Self { dir })
        }

        fn run(&self) -> Result<Output> {
            let at = |name: &str| self.dir.path().join(name);
            let mut sh = Command::new("sh");
            sh.arg(at("files/install.sh"))
                .arg("--pg-config")
                .arg(at("pg_config"));
            Ok(sh.arg("--destdir").arg(at("root")).output()?)
        }
    }

    #[test]
    fn the_script_copies_with_the_right_modes() -> Result<()> {
        for version in ["15.20 (Debian 15.20-0+deb12u1)", "15beta1", "15"] {
            let trial = Trial::new(version)?;
            let output = trial.run()?;
            assert!(output.status.success(), "{output:?}");
            for (file, mode) in [
                ("a b/lib/neardup.so", 0o755),
                ("share/extension/neardup.control", 0o644),
                ("share/extension/neardup--0.1.0.sql", 0o644),
            ] {
                let path = trial.dir.path().join("root").join(file);
                assert_eq!(
                    fs::metadata(path)?.permissions().mode() & 0o777,
                    mode,
                    "{file}"
                );
            }
        }
        Ok(())
    }

    #[test]
    fn the_script_refuses_another_version() -> Result<()> {
        for version in ["16.1", "150.1", "9.15"] {
            let trial = Trial::new(version)?;
            let output = trial.run()?;
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                !output.status.success() && errors.contains("for PostgreSQL 15"),
                "{errors}"
            );
            assert!(errors.contains(version), "{errors}");
            assert!(!trial.dir.path().join("root").exists());
        }
        Ok(())
    }

    #[test]
    fn the_script_refuses_a_server_with_musl() -> Result<()> {
        for (linker, works) in [
            ("/lib64/ld-linux-x86-64.so.2", true),
            ("/lib/ld-musl-x86_64.so.1", false),
        ] {
            let trial = Trial::new("15.20")?;
            let server = format!("\x7fELF\0\u{ff}\0{linker}\0");
            stage::write(&trial.dir.path().join("postgres"), server, 0o755)?;
            let output = trial.run()?;
            assert_eq!(output.status.success(), works, "{output:?}");
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(errors.contains("uses musl"), !works, "{errors}");
            assert_eq!(trial.dir.path().join("root").exists(), works);
        }
        Ok(())
    }
}
