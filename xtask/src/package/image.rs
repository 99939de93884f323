//! Folders from which container images are built.
use super::Built;
use super::release::Release;
use super::stage;
use crate::ui;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

const DEBIAN: &str = include_str!("templates/Dockerfile.debian");
const SCRATCH: &str = include_str!("templates/Dockerfile.scratch");
/// The first version that finds extensions in folders of a setting.
const FIRST_WITH_CONTROL_PATH: u32 = 18;

/// Makes a folder for an image with server and extension, and, where the server can mount it, one
/// for an image with the extension's files alone. Returns their paths.
pub fn make(
    built: &Built,
    release: &Release,
    package: &Path,
    output: &Path,
) -> Result<Vec<PathBuf>> {
    let name = package.file_name().unwrap_or_default();
    let text = fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
    let codename = codename(&text).context("/etc/os-release states no VERSION_CODENAME")?;
    let fill = |template: &str| {
        template
            .replace("{major}", &built.major.to_string())
            .replace("{version}", &release.version)
            .replace("{codename}", codename)
            .replace("{package}", &name.to_string_lossy())
    };
    let folder = |kind: &str| {
        let name = format!("neardup-{}-pg{}-{kind}", release.version, built.major);
        output.join(name)
    };

    let server = folder("image");
    stage::empty(&server)?;
    stage::copy(package, &server.join(name), 0o644)?;
    stage::write(&server.join("Dockerfile"), fill(DEBIAN), 0o644)?;
    let mut made = vec![server];

    if built.major >= FIRST_WITH_CONTROL_PATH {
        let files = folder("extension-image");
        stage::empty(&files)?;
        stage::copy(&built.library, &files.join("lib/neardup.so"), 0o755)?;
        for file in &built.share {
            let name = file.file_name().unwrap_or_default();
            stage::copy(file, &files.join("share/extension").join(name), 0o644)?;
        }
        stage::write(&files.join("licenses/COPYRIGHT"), &built.copyright, 0o644)?;
        stage::write(&files.join("Dockerfile"), fill(SCRATCH), 0o644)?;
        stage::open_folders(&files)?;
        made.push(files);
    }
    for folder in &made {
        ui::note(format!(
            "{}: for an image, written but not built",
            folder.display()
        ));
    }
    Ok(made)
}

/// The name of the distribution's release, as in `bookworm`.
fn codename(os_release: &str) -> Option<&str> {
    let value = os_release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))?;
    Some(value.trim_matches('"')).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_name_of_the_release() {
        assert_eq!(
            codename("ID=debian\nVERSION_CODENAME=bookworm\n"),
            Some("bookworm")
        );
        assert_eq!(codename("VERSION_CODENAME=\"noble\"\n"), Some("noble"));
        assert_eq!(codename("ID=debian\nVERSION_CODENAME=\n"), None);
        assert_eq!(codename("ID=arch\n"), None);
    }
}
