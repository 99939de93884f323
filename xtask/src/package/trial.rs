//! Installs and uses the files of a release: packages of the extension in a private copy of a
//! server, the Python package in a virtual environment, and the crate in a new program.
use super::image::Unpacked;
use super::manifest::Outcome;
use super::release::Release;
use super::stage;
use crate::cargo::workspace;
use crate::private::{ensure_psql, reserve_server_names};
use crate::program::{output, run};
use anyhow::{Context, Result, ensure};
use neardup_pgserver::{Instance, Lock, OsUser, PgConfig, PrivateCopy, Server, Settings, is_root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use walkdir::WalkDir;

/// SQL script that uses the extension. The last line of its output must be [`EXPECTED`].
const STATEMENTS: &str = "xtask/src/package/try.sql";
const EXPECTED: &str = "7 1001";
const SERVER: &str = "release";
/// Folder in the copy of the server for rpm's list of installed packages.
const RPM_DATABASE: &str = "rpm-database";
/// Folder beside the copy of the server for the files of an unpacked image.
const IMAGE: &str = "image";
const PYTHON: &str = "import neardup
a = neardup.minhash64('The library reopens on Monday after two years.')
b = neardup.minhash64('The LIBRARY reopens on Monday, after two years!')
assert neardup.hamming_distance(a, b) == 0";
const RUST: &str = "use neardup_sketch::{Sketcher, TextOptions, hamming64};
fn main() {
    let mut sketcher = Sketcher::new(TextOptions::SET);
    let mut minhash64 = |text: &str| sketcher.minhash64(text, &mut || ()).unwrap();
    let a = minhash64(\"The library reopens on Monday after two years.\");
    let b = minhash64(\"The LIBRARY reopens on Monday, after two years!\");
    assert_eq!(hamming64(a, b), 0);
}
";

/// Private copy of a server into which the packages of a release are installed, one after the
/// other.
pub struct Trial<'a> {
    pg: &'a PgConfig,
    root: PathBuf,
    instance: Instance,
    _lock: Lock,
}

impl<'a> Trial<'a> {
    /// Makes a private copy of the server `pg` in the folder `dir`, or in another folder if the
    /// server's user cannot reach `dir`.
    pub fn new(pg: &'a PgConfig, dir: &Path) -> Result<Self> {
        let user = OsUser::for_server()?;
        let copy = PrivateCopy::make(pg, dir, &user)?;
        ensure_psql(&copy)?;
        let lock = reserve_server_names(copy.root(), SERVER)?;
        Ok(Self {
            pg,
            root: copy.root().to_owned(),
            instance: Instance::new(&copy, user),
            _lock: lock,
        })
    }

    /// Tries an archive with the built extension: unpacks it into a folder below `stage`, installs
    /// the extension by the archive's script, and uses the extension.
    pub fn archive(&self, archive: &Path, stage: &Path) -> Result<Outcome> {
        self.remove_extension()?;
        let folder = stage.join("unpacked");
        stage::empty(&folder)?;
        run(Command::new("tar")
            .arg("-xzf")
            .arg(archive)
            .arg("-C")
            .arg(&folder))?;
        let name = archive.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".tar.gz").context("an archive")?;
        let mut install = Command::new("sh");
        install.arg(folder.join(name).join("install.sh"));
        install.arg("--pg-config").arg(&self.pg.program);
        run(install.arg("--destdir").arg(&self.root))?;
        self.use_extension()?;
        Ok(Outcome::Used("its script, in a copy of the server"))
    }

    /// Tries a Debian package: installs it by dpkg, uses the extension, and removes the package.
    /// dpkg's list of installed packages is in a folder below `stage`.
    pub fn debian(&self, package: &Path, stage: &Path) -> Result<Outcome> {
        let layout = format!("/usr/lib/postgresql/{}/bin", self.pg.major);
        let bin = self.pg.bindir().to_string_lossy();
        let Some(above) = bin.strip_suffix(&layout) else {
            return Ok(Outcome::Untried(format!("the server is not in {layout}")));
        };
        if !is_root() {
            return Ok(Outcome::Untried("dpkg needs root".to_owned()));
        }
        self.remove_extension()?;
        let admin = stage.join("dpkg");
        for folder in ["info", "updates", "triggers"] {
            fs::create_dir_all(admin.join(folder))?;
        }
        fs::write(admin.join("status"), "")?;
        let dpkg = || {
            let mut dpkg = Command::new("dpkg");
            dpkg.arg("--instdir")
                .arg(self.root.join(above.trim_start_matches('/')))
                .arg("--admindir")
                .arg(&admin)
                // Without these, dpkg would write to the machine's log and look for the packages
                // that this one depends on.
                .arg("--log=/dev/null")
                .arg("--force-depends");
            dpkg
        };
        run(dpkg().arg("--install").arg(package))?;
        self.use_extension()?;
        let name = format!("postgresql-{}-neardup", self.pg.major);
        run(dpkg().args(["--remove", &name]))?;
        self.ensure_removed()?;
        Ok(Outcome::Used(
            "by dpkg, in a copy of the server, and removed",
        ))
    }

    /// Tries a package for rpm: installs it by rpm, uses the extension, and removes the package.
    pub fn rpm(&self, package: &Path) -> Result<Outcome> {
        if !is_root() {
            return Ok(Outcome::Untried("rpm needs root".to_owned()));
        }
        self.remove_extension()?;
        stage::empty(&self.root.join(RPM_DATABASE))?;
        let rpm = || {
            let mut rpm = Command::new("rpm");
            rpm.arg("--root").arg(&self.root);
            rpm.arg("--dbpath").arg(format!("/{RPM_DATABASE}"));
            rpm
        };
        // On Debian, rpm installs packages only with this option.
        let is_debian = Path::new("/etc/debian_version").exists();
        let options: &[&str] = if is_debian {
            &["--nodeps", "--force-debian"]
        } else {
            &["--nodeps"]
        };
        run(rpm().arg("--initdb"))?;
        run(rpm().arg("--install").args(options).arg(package))?;
        self.use_extension()?;
        let name = format!("postgresql{}-neardup", self.pg.major);
        run(rpm().arg("--erase").args(options).arg(name))?;
        self.ensure_removed()?;
        Ok(Outcome::Used(
            "by rpm, in a copy of the server, and removed",
        ))
    }

    /// Tries an image of the extension: unpacks it into a folder of its own, and uses the extension
    /// in a server whose settings name this folder.
    pub fn image(&self, image: &Path) -> Result<Outcome> {
        self.remove_extension()?;
        // The server's user can read files below the root of the copy.
        let image = Unpacked::new(image, &self.root.join(IMAGE))?;
        image.ensure_valid(self.pg.major)?;
        let settings = image.settings();
        let settings = settings
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        self.use_extension_with(&settings)?;
        Ok(Outcome::Used("unpacked beside a copy of the server"))
    }

    fn use_extension(&self) -> Result<()> {
        self.use_extension_with(&[])
    }

    /// Starts a server from the copy with these settings, runs the statements that use the
    /// extension ([`STATEMENTS`]), and checks their output.
    fn use_extension_with(&self, settings: Settings) -> Result<()> {
        let server = Server::temporary(&self.instance, SERVER, settings)?;
        let mut psql = server.psql("postgres");
        psql.args(["-tA", "-f"]).arg(workspace().join(STATEMENTS));
        let found = output(&mut psql)?;
        ensure!(
            found.lines().last() == Some(EXPECTED),
            "the index did not find the two equal texts: {found}"
        );
        Ok(())
    }

    fn remove_extension(&self) -> Result<()> {
        for file in self.installed_files()? {
            fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
        }
        Ok(())
    }

    fn ensure_removed(&self) -> Result<()> {
        let files = self.installed_files()?;
        ensure!(files.is_empty(), "not removed: {files:?}");
        Ok(())
    }

    /// Returns the paths of the extension's files that are installed in the copy.
    fn installed_files(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for folder in [self.pg.pkglibdir(), self.pg.sharedir()] {
            let folder = self.root.join(folder.strip_prefix("/").unwrap_or(folder));
            for entry in WalkDir::new(folder) {
                let entry = entry?;
                let is_own = entry.file_name().to_string_lossy().starts_with("neardup");
                if is_own && !entry.file_type().is_dir() {
                    files.push(entry.into_path());
                }
            }
        }
        Ok(files)
    }
}

/// Installs the Python package from `file`, a wheel or an archive of sources, into a new virtual
/// environment in `folder`. Then uses the package.
pub fn python(file: &Path, folder: &Path) -> Result<Outcome> {
    run(Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(folder))?;
    let python = folder.join("bin/python");
    let pip = ["-m", "pip", "install", "--quiet", "--no-deps"];
    run(Command::new(&python).args(pip).arg(file))?;
    run(Command::new(&python).args(["-c", PYTHON]))?;
    Ok(Outcome::Used("by pip, in a virtual environment"))
}

/// Compiles and runs a program that uses the packed crate in the archive `file`. `work` is the
/// folder for the program and its build.
pub fn rust(file: &Path, release: &Release, work: &Path) -> Result<Outcome> {
    let folder = work.join("trial-crate");
    stage::empty(&folder)?;
    run(Command::new("tar")
        .arg("-xzf")
        .arg(file)
        .arg("-C")
        .arg(&folder))?;
    let manifest = format!(
        "[package]\nname = \"trial\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nneardup-sketch = {{ path = \"neardup-sketch-{}\" }}\n",
        release.version
    );
    stage::write(&folder.join("Cargo.toml"), manifest, 0o644)?;
    stage::write(&folder.join("src/main.rs"), RUST, 0o644)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(&folder).args(["run", "--quiet"]);
    run(command.arg("--target-dir").arg(work.join("crate")))?;
    Ok(Outcome::Used("by cargo, in a program that depends on it"))
}
