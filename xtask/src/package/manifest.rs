//! List of the files of a release with their sizes, checksums, and what was tried with each.
use super::stage;
use crate::{program, ui};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Result of an attempt to install and use a file.
pub enum Outcome {
    /// The file was installed and used. The text says how.
    Used(&'static str),
    /// This machine cannot try the file. The text has the reason.
    Untried(String),
}

/// Entry of the manifest: a file of a release, or a file that could not be made.
pub struct Artefact {
    /// Path of the file. If the file could not be made, a description of it.
    path: PathBuf,
    state: String,
    /// False if the file could not be made, or did not work when it was used.
    is_good: bool,
}

impl Artefact {
    /// Creates the entry of a file that was made. `outcome` is the result of the attempt to use it.
    pub fn tried(path: PathBuf, outcome: Result<Outcome>) -> Self {
        let (state, is_good) = match outcome {
            Ok(Outcome::Used(how)) => (format!("installed and used: {how}"), true),
            Ok(Outcome::Untried(reason)) => (format!("built only: {reason}"), true),
            Err(error) => (format!("built, but could not be used: {error:#}"), false),
        };
        Self {
            path,
            state,
            is_good,
        }
    }

    /// Creates the entry of a file that was made but not tried. `reason` says why.
    pub fn built(path: PathBuf, reason: &str) -> Self {
        Self::tried(path, Ok(Outcome::Untried(reason.to_owned())))
    }

    /// Creates the entries of files that were made but not tried. `reason` says why.
    pub fn all_built(paths: Vec<PathBuf>, reason: &str) -> Vec<Self> {
        let entry = |path| Self::built(path, reason);
        paths.into_iter().map(entry).collect()
    }

    /// Creates the entry of a file that could not be made. `what` describes the file.
    pub fn missing(what: &str, error: &anyhow::Error) -> Self {
        Self {
            path: what.into(),
            state: format!("could not be made: {error:#}"),
            is_good: false,
        }
    }
}

/// Files of a release in the order in which they were made.
#[derive(Default)]
pub struct Manifest {
    artefacts: Vec<Artefact>,
}

impl Manifest {
    /// Calls `make`, which makes files, and records the entries that it returns. If `make` fails,
    /// records one missing file with the description `what` and the error. So the command continues
    /// with the next files. `what` is also printed as a heading.
    pub fn record(&mut self, what: &str, make: impl FnOnce() -> Result<Vec<Artefact>>) {
        ui::heading(what);
        let made = make().unwrap_or_else(|error| vec![Artefact::missing(what, &error)]);
        self.artefacts.extend(made);
    }

    /// Returns whether every file could be made, and every file that was used worked.
    pub fn is_complete(&self) -> bool {
        self.artefacts.iter().all(|artefact| artefact.is_good)
    }

    /// Writes two files to the folder `output`: the manifest, and the checksums in the form of
    /// `sha256sum`. Both names contain the name of the processor, because a release has files for
    /// several processors.
    ///
    /// # Errors
    /// If a file cannot be read, or sha256sum is missing.
    pub fn write(&self, output: &Path) -> Result<()> {
        let machine = std::env::consts::ARCH;
        let sums: Vec<String> = (self.rows()?.iter())
            .filter_map(|row| Some(format!("{}  {}\n", row.sum.as_ref()?, row.name)))
            .collect();
        stage::write(
            &output.join(format!("SHA256SUMS-{machine}")),
            sums.concat(),
            0o644,
        )?;
        let to = output.join(format!("manifest-{machine}.tsv"));
        stage::write(&to, self.text()?, 0o644)
    }

    /// Returns the manifest as lines of fields that are separated by tabs.
    ///
    /// # Errors
    /// See [`Manifest::write`].
    pub fn text(&self) -> Result<String> {
        let mut text = "file\tbytes\tsha256\tstate\n".to_owned();
        for row in self.rows()? {
            let sum = row.sum.as_deref().unwrap_or("-");
            let bytes = row.bytes.map_or("-".to_owned(), |bytes| bytes.to_string());
            // An error may have several lines.
            let state = row.state.split_whitespace().collect::<Vec<_>>().join(" ");
            text += &format!("{}\t{bytes}\t{sum}\t{state}\n", row.name);
        }
        Ok(text)
    }

    fn rows(&self) -> Result<Vec<Row<'_>>> {
        self.artefacts.iter().map(Row::new).collect()
    }
}

/// Line of the manifest.
struct Row<'a> {
    name: String,
    bytes: Option<u64>,
    sum: Option<String>,
    state: &'a str,
}

impl<'a> Row<'a> {
    fn new(artefact: &'a Artefact) -> Result<Self> {
        let path = &artefact.path;
        let name = path.file_name().unwrap_or_default().display().to_string();
        let exists = path.is_file();
        Ok(Self {
            name,
            bytes: exists
                .then(|| fs::metadata(path))
                .transpose()?
                .map(|it| it.len()),
            sum: exists.then(|| sha256(path)).transpose()?,
            state: &artefact.state,
        })
    }
}

fn sha256(path: &Path) -> Result<String> {
    let sum = program::output(Command::new("sha256sum").arg(path))?;
    let sum = sum.split_whitespace().next();
    // The line of a path with a backslash begins with one.
    Ok(sum
        .context("sha256sum")?
        .trim_start_matches('\\')
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn states_and_checksums_are_listed() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let file = |name: &str| {
            let path = dir.path().join(name);
            fs::write(&path, "abc").map(|()| path)
        };
        let (a, b) = (file("a.deb")?, file("b.zip")?);
        let mut manifest = Manifest::default();
        manifest.record("a", || {
            Ok(vec![Artefact::tried(a, Ok(Outcome::Used("by dpkg")))])
        });
        manifest.record("b", || Ok(Artefact::all_built(vec![b], "no rpmbuild")));
        assert!(manifest.is_complete());
        manifest.record("wheel", || bail!("no\n  zig"));
        assert!(!manifest.is_complete());
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let expected = format!(
            "file\tbytes\tsha256\tstate\n\
             a.deb\t3\t{sum}\tinstalled and used: by dpkg\n\
             b.zip\t3\t{sum}\tbuilt only: no rpmbuild\n\
             wheel\t-\t-\tcould not be made: no zig\n"
        );
        assert_eq!(manifest.text()?, expected);
        manifest.write(dir.path())?;
        let sums = format!("SHA256SUMS-{}", std::env::consts::ARCH);
        let mut check = Command::new("sha256sum");
        program::run(check.current_dir(&dir).args(["--check", "--quiet", &sums]))
    }

    #[test]
    fn a_file_that_does_not_work_is_not_complete() {
        let mut manifest = Manifest::default();
        let failed = Err(anyhow::anyhow!(
            "the index did not find the two equal texts"
        ));
        manifest.record("a", || Ok(vec![Artefact::tried("a".into(), failed)]));
        assert!(!manifest.is_complete());
    }
}
