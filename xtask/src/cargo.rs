//! Calls of cargo, and the folders of the workspace and of its build.
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Returns the root folder of the workspace from which cargo runs this program. The folder in which
/// the program was compiled may be a different one, because the checkout may have been copied.
pub fn workspace() -> &'static Path {
    static WORKSPACE: OnceLock<PathBuf> = OnceLock::new();
    WORKSPACE.get_or_init(|| {
        let package = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let mut folders = package.ancestors();
        let workspace = folders.find(|folder| folder.join("neardup.control").is_file());
        workspace.unwrap_or(&package).to_owned()
    })
}

/// Returns a command that calls cargo in the workspace's root folder. It is the same cargo that
/// runs this program.
pub fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(workspace());
    command
}

/// Returns the JSON that `cargo metadata` prints when called with these `arguments`.
pub fn metadata(arguments: &[&str]) -> Result<Value> {
    let output = cargo()
        .args(["metadata", "--format-version=1"])
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("cargo metadata failed ({})", output.status);
    }
    serde_json::from_slice(&output.stdout).context("cannot read what cargo metadata says")
}

/// Returns cargo's target folder, which the user's cargo settings may change.
pub fn target_dir() -> Result<PathBuf> {
    let metadata = metadata(&["--no-deps", "--offline"])?;
    let dir = metadata["target_directory"].as_str();
    Ok(PathBuf::from(
        dir.context("cargo metadata states no target folder")?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks what crates.io requires of `neardup-sketch`: the fields that a package must have, and
    /// no path dependencies.
    #[test]
    fn sketch_can_be_published() -> Result<()> {
        let metadata = metadata(&["--no-deps", "--offline"])?;
        let mut packages = metadata["packages"].as_array().into_iter().flatten();
        let sketch = packages.find(|package| package["name"] == "neardup-sketch");
        let sketch = sketch.context("no such package")?;
        for field in ["description", "license", "readme", "rust_version"] {
            assert!(sketch[field].is_string(), "{field}");
        }
        let number = |field: &str| sketch[field].as_array().map_or(0, Vec::len);
        assert!((1..=5).contains(&number("keywords")) && number("categories") >= 1);
        for dependency in sketch["dependencies"].as_array().into_iter().flatten() {
            assert!(dependency["path"].is_null(), "{dependency}");
        }
        let list = [
            "package",
            "--package",
            "neardup-sketch",
            "--list",
            "--allow-dirty",
        ];
        let output = cargo().args(list).arg("--offline").output()?;
        let files = String::from_utf8(output.stdout)?;
        for file in [
            "LICENSE",
            "LICENSE-unicode",
            "README.md",
            "data/README.md",
            "data/jieba_idf.bin",
            "tests/golden_minhash.tsv",
        ] {
            assert!(files.lines().any(|line| line == file), "{file}: {files}");
        }
        Ok(())
    }
}
