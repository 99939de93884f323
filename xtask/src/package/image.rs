//! Makes an image (OCI) that contains only the extension. PostgreSQL 18 or later loads the
//! extension from a folder where the image is mounted, as CloudNativePG does.
use super::Built;
use super::release::Release;
use super::stage;
use crate::cargo::workspace;
use crate::setup::os_release;
use crate::{program, ui};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const DOCKERFILE: &str = "xtask/src/package/images/extension.Dockerfile";
/// First version of the server that has the setting `extension_control_path`.
const MIN_MAJOR: u32 = 18;

/// Settings by which a server finds the extension in an image that is mounted at [`MOUNT`].
const SETTINGS: [(&str, &str); 2] = [
    (
        "extension_control_path",
        "$system:/extensions/neardup/share",
    ),
    ("dynamic_library_path", "$libdir:/extensions/neardup/lib"),
];
const MOUNT: &str = "/extensions/neardup";

/// Returns whether servers of the major version `major` can load the extension from an image.
pub fn is_for(major: u32) -> bool {
    major >= MIN_MAJOR
}

/// Makes the image in the folder `output` and returns its path. The image has the files of
/// `archive`, the binary archive of `built`. `stage` is a folder for temporary files.
///
/// # Errors
/// If buildah is missing or fails, or this system is not Debian.
pub fn make(
    built: &Built,
    archive: &Path,
    release: &Release,
    stage: &Path,
    output: &Path,
) -> Result<PathBuf> {
    program::output(Command::new("buildah").arg("--version"))
        .context("needs buildah, which Debian's package buildah has")?;
    // CloudNativePG's servers run on Debian. The label names the release with this C library.
    let suite = os_release::debian_suite().context("the system is not Debian")?;
    let (version, major) = (&release.version, built.major);
    let machine = std::env::consts::ARCH;
    let to = output.join(format!("neardup-{version}-pg{major}-image-{machine}.tar"));
    ui::step(format!("Packing {}", to.display()), || {
        let folder = stage.join("image");
        stage::empty(&folder)?;
        let context = folder.join("context");
        fs::create_dir(&context)?;
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--strip-components=1", "--file"]);
        program::run(tar.arg(archive).arg("--directory").arg(&context))?;

        let name = format!("neardup:{version}-{major}-{suite}");
        let mut build = buildah(&folder, "build");
        build.args(["--isolation=chroot", "--identity-label=false", "--quiet"]);
        build.arg(format!("--timestamp={}", release.epoch));
        for (argument, value) in [
            ("VERSION", version),
            ("PG", &major.to_string()),
            ("DISTRO", &suite),
            ("LICENCES", &built.licences.expression()),
        ] {
            build.arg("--build-arg").arg(format!("{argument}={value}"));
        }
        for (label, value) in origin(release) {
            let label = format!("org.opencontainers.image.{label}={value}");
            build.args(["--label", &label]);
        }
        build.arg("--file").arg(workspace().join(DOCKERFILE));
        program::run(build.args(["--tag", &name]).arg(&context)).context("buildah build")?;

        let layout = folder.join("layout");
        let mut push = buildah(&folder, "push");
        let destination = format!("oci:{}:{name}", layout.display());
        program::run(push.args(["--quiet", &name, &destination])).context("buildah push")?;
        // buildah can also write an archive itself. That archive would contain the present time.
        stage::tar(
            &layout,
            &["blobs", "index.json", "oci-layout"],
            release,
            &to,
        )
    })?;
    Ok(to)
}

/// Returns a call of buildah that keeps images in `folder`, not among the images of the user.
fn buildah(folder: &Path, command: &str) -> Command {
    let mut buildah = Command::new("buildah");
    buildah.args(["--storage-driver", "vfs", "--root"]);
    buildah.arg(folder.join("storage"));
    buildah.arg("--runroot").arg(folder.join("run"));
    buildah.arg(command);
    buildah
}

/// Returns labels that state where the sources are, as far as this is known.
fn origin(release: &Release) -> Vec<(&'static str, String)> {
    let mut git = Command::new("git");
    git.current_dir(workspace()).args(["rev-parse", "HEAD"]);
    let revision = program::output(&mut git).ok();
    let mut labels = Vec::from_iter(revision.map(|revision| ("revision", revision)));
    if let Some(address) = release.repository {
        labels.push(("source", address.to_owned()));
        labels.push(("url", address.to_owned()));
    }
    labels
}

/// Image whose files were unpacked into a folder.
pub struct Unpacked {
    folder: PathBuf,
    labels: Value,
}

impl Unpacked {
    /// Unpacks the files of the image in `archive` into `folder`, which is emptied first. The image
    /// must have one platform, and no layer may remove files of an earlier layer.
    ///
    /// # Errors
    /// If the archive is not an image in OCI's format, or `tar` fails.
    pub fn new(archive: &Path, folder: &Path) -> Result<Self> {
        stage::empty(folder)?;
        let layout = tempfile::tempdir()?;
        let unpack = |archive: &Path, to: &Path| {
            let mut tar = Command::new("tar");
            tar.args(["--extract", "--no-same-owner", "--file"]);
            program::run(tar.arg(archive).arg("--directory").arg(to))
        };
        unpack(archive, layout.path())?;
        let blob = |descriptor: &Value| -> Result<PathBuf> {
            let digest = descriptor["digest"].as_str().context("no digest")?;
            let (algorithm, hash) = digest.split_once(':').context("a digest")?;
            Ok(layout.path().join("blobs").join(algorithm).join(hash))
        };
        let index = read_json(&layout.path().join("index.json"))?;
        let manifest = read_json(&blob(&index["manifests"][0])?)?;
        let layers = manifest["layers"].as_array().context("no layers")?;
        for layer in layers {
            unpack(&blob(layer)?, folder)?;
        }
        let mut config = read_json(&blob(&manifest["config"])?)?;
        Ok(Self {
            folder: folder.to_owned(),
            labels: config["config"]["Labels"].take(),
        })
    }

    /// Checks that the image is for servers of the version `major`, and states licences.
    ///
    /// # Errors
    /// If a label is wrong or a folder lacks a file.
    pub fn ensure_valid(&self, major: u32) -> Result<()> {
        let label = |name: &str| self.labels[name].as_str().unwrap_or_default();
        let stated = label("io.cloudnativepg.image.base.pgmajor");
        ensure!(
            stated == major.to_string(),
            "the image is for PostgreSQL {stated:?}"
        );
        let version = label("io.cloudnativepg.image.sql.version");
        for file in [
            "lib/neardup.so",
            "share/extension/neardup.control",
            &format!("share/extension/neardup--{version}.sql"),
            "licenses/LICENSE",
            "licenses/COPYRIGHT",
        ] {
            ensure!(self.folder.join(file).is_file(), "the image has no {file}");
        }
        Ok(())
    }

    /// Returns settings by which a server finds the extension in the folder of the unpacked image.
    pub fn settings(&self) -> [(&'static str, String); 2] {
        let folder = self.folder.to_string_lossy();
        SETTINGS.map(|(name, value)| (name, value.replace(MOUNT, &folder)))
    }
}

fn read_json(path: &Path) -> Result<Value> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is not JSON", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Writes an image with the label `major` and the given files, each in its own layer. Returns
    /// the path of the archive, which is in `folder`.
    fn image(folder: &Path, major: &str, files: &[&str]) -> Result<PathBuf> {
        let release = Release {
            version: "0.1.0".into(),
            epoch: 1_000_000_000,
            maintainer: None,
            repository: None,
        };
        let layout = folder.join("layout");
        let put = |name: &str, content: &[u8]| {
            stage::write(&layout.join("blobs/sha256").join(name), content, 0o600)?;
            Ok::<_, anyhow::Error>(json!({ "digest": format!("sha256:{name}") }))
        };
        let mut layers = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let content = folder.join(format!("content{number}"));
            stage::write(&content.join(file), file, 0o644)?;
            let layer = folder.join(format!("layer{number}"));
            stage::tar(&content, &["."], &release, &layer)?;
            layers.push(put(
                &format!("f{number}"),
                &stage::gzip(&fs::read(layer)?)?,
            )?);
        }
        let labels = json!({
            "io.cloudnativepg.image.base.pgmajor": major,
            "io.cloudnativepg.image.sql.version": "0.1.0",
        });
        let config = json!({ "config": { "Labels": labels } });
        let config = put("c", config.to_string().as_bytes())?;
        let manifest = json!({ "config": config, "layers": layers });
        let manifest = put("a", manifest.to_string().as_bytes())?;
        let index = json!({ "manifests": [manifest] }).to_string();
        stage::write(&layout.join("index.json"), index, 0o644)?;
        let to = folder.join("image.tar");
        stage::tar(&layout, &["blobs", "index.json"], &release, &to)?;
        Ok(to)
    }

    const FILES: [&str; 5] = [
        "lib/neardup.so",
        "share/extension/neardup.control",
        "share/extension/neardup--0.1.0.sql",
        "licenses/LICENSE",
        "licenses/COPYRIGHT",
    ];

    #[test]
    fn an_image_must_have_all_files_and_the_servers_version() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let to = dir.path().join("unpacked");
        let found = |major: &str, files: &[&str]| -> Result<()> {
            let folder = tempfile::tempdir()?;
            let archive = image(folder.path(), major, files)?;
            Unpacked::new(&archive, &to)?.ensure_valid(18)
        };
        found("18", &FILES)?;
        let error = found("17", &FILES).unwrap_err().to_string();
        assert!(error.contains("PostgreSQL \"17\""), "{error}");
        for (index, missing) in FILES.iter().enumerate() {
            let mut files = FILES.to_vec();
            files.remove(index);
            let error = found("18", &files).unwrap_err().to_string();
            assert!(error.ends_with(missing), "{error}");
        }
        Ok(())
    }

    #[test]
    fn settings_are_those_of_the_documents() -> Result<()> {
        let page = fs::read_to_string(workspace().join("docs/install.md"))?;
        for (name, value) in SETTINGS {
            assert!(value.contains(MOUNT), "{value}");
            assert!(page.contains(&format!("{name} = '{value}'\n")), "{name}");
        }
        let image = Unpacked {
            folder: "/a".into(),
            labels: Value::Null,
        };
        let [(_, control), (_, library)] = image.settings();
        assert_eq!(control, "$system:/a/share");
        assert_eq!(library, "$libdir:/a/lib");
        Ok(())
    }
}
