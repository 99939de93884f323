//! A private copy of an installed PostgreSQL: a tree of symbolic links with real files for three
//! programs.
//!
//! The server locates its other folders relative to its own program (`make_relative_path` in
//! PostgreSQL's `src/port/path.c`). It compares two compiled-in paths, for example of the program
//! and of the share folder, and removes their common prefix. If the folder of the running program
//! ends with the rest of the program's path, the server replaces the prefix. So the copy repeats
//! the original absolute paths below its root. This works for every layout, also for Debian's with
//! /usr/lib/postgresql/NN and /usr/share/postgresql/NN. The server resolves symbolic links in its
//! own path first. So `postgres`, `initdb` and `pg_ctl`, which look for folders or for each other,
//! must be real files.
use crate::{OsUser, PgConfig};
use anyhow::{Context, Result, bail};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Programs that must be real files in the copy. Each of them resolves the links in its own path,
/// and then looks for other files relative to that path. As a link, it would use the files of the
/// original installation.
const PROGRAMS: [&str; 3] = ["postgres", "initdb", "pg_ctl"];

/// Files of a built extension, ready to be installed.
#[derive(Debug, Clone)]
pub struct Artifacts {
    /// Name of the extension, for example `neardup`.
    pub name: String,
    /// Path of the built shared library. It is installed as `<name>.so`, or with another file name
    /// extension if the server expects one.
    pub library: PathBuf,
    /// Paths of the control file and the SQL scripts, which keep their names.
    pub share: Vec<PathBuf>,
}

/// A private copy of an installed PostgreSQL, into which extensions can be installed.
#[derive(Debug, Clone)]
pub struct PrivateCopy {
    root: PathBuf,
    bindir: PathBuf,
    pkglibdir: PathBuf,
    extension_dir: PathBuf,
    library_suffix: &'static str,
}

impl PrivateCopy {
    /// Creates or updates a private copy of the PostgreSQL that `config` describes. The copy is in
    /// the folder `preferred`. If `user` cannot run programs there, for example below /root, the
    /// copy is in a folder for temporary files.
    ///
    /// # Errors
    /// When no folder is both writable and accessible to `user`.
    pub fn make(config: &PgConfig, preferred: &Path, user: &OsUser) -> Result<Self> {
        let mut reasons = String::new();
        for root in candidate_dirs(preferred, &config.major.to_string()) {
            let attempt = Self::make_at(config, &root).and_then(|copy| {
                user.can_run(&copy.bindir.join("postgres"))?;
                Ok(copy)
            });
            match attempt {
                Ok(copy) => return Ok(copy),
                Err(error) => reasons += &format!("\n  {}: {error:#}", root.display()),
            }
        }
        bail!("found no folder for a private copy of the server:{reasons}")
    }

    /// Creates or updates the copy in the folder `root`.
    fn make_at(config: &PgConfig, root: &Path) -> Result<Self> {
        own_dir(root)?;
        // Resolve symbolic links, because the server also resolves them in its own path.
        let root = root.canonicalize()?;
        let below = |path: &Path| -> PathBuf { root.join(path.strip_prefix("/").unwrap_or(path)) };
        let copy = Self {
            bindir: below(config.bindir()),
            pkglibdir: below(config.pkglibdir()),
            extension_dir: below(config.sharedir()).join("extension"),
            library_suffix: config.library_suffix(),
            root: root.clone(),
        };
        mirror(&root, config.bindir(), &copy.bindir, &PROGRAMS)?;
        mirror(&root, config.pkglibdir(), &copy.pkglibdir, &[])?;
        mirror(
            &root,
            config.sharedir(),
            &below(config.sharedir()),
            &["extension"],
        )?;
        mirror(
            &root,
            &config.sharedir().join("extension"),
            &copy.extension_dir,
            &[],
        )?;
        link_libraries(&root, config.bindir())?;
        for name in PROGRAMS {
            refresh_file(&config.bindir().join(name), &copy.bindir.join(name))?;
        }
        Ok(copy)
    }

    /// Root folder of the copy. It may also contain the servers' folders.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Folder of the copy's programs (`BINDIR`).
    pub fn bindir(&self) -> &Path {
        &self.bindir
    }

    /// Replaces a client program of the copy by a link to `program`, which belongs to another
    /// installation. Callers use it if the copy's own program does not run.
    ///
    /// # Errors
    /// When the link cannot be created.
    pub fn replace_client(&self, program: &Path) -> Result<()> {
        let name = program.file_name().context("a program without a name")?;
        let link = self.bindir.join(name);
        fs::remove_file(&link).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        symlink(program, &link).with_context(|| format!("cannot make {}", link.display()))
    }

    /// Installs the files of an extension into the copy. Replaces the files of an earlier
    /// installation.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn install(&self, artifacts: &Artifacts) -> Result<()> {
        let name = &artifacts.name;
        let mut installed = HashSet::new();
        for file in &artifacts.share {
            let target = file.file_name().context("a script without a name")?;
            replace_file(file, &self.extension_dir.join(target), 0o644)?;
            installed.insert(target.to_owned());
        }
        // Remove old files last, so that a running server finds every file at any time.
        for old in entries(&self.extension_dir)? {
            let text = old.to_string_lossy();
            let ours = text == format!("{name}.control") || text.starts_with(&format!("{name}--"));
            if ours && !installed.contains(&old) {
                fs::remove_file(self.extension_dir.join(&old))?;
            }
        }
        let library = format!("{name}.{}", self.library_suffix);
        let library = self.pkglibdir.join(library);
        replace_file(&artifacts.library, &library, 0o755)
    }

    /// Returns whether CREATE EXTENSION would find the extension called `name` in this copy.
    pub fn has_extension(&self, name: &str) -> bool {
        (self.extension_dir.join(format!("{name}.control"))).is_file()
    }

    /// Links the files of other extensions into the copy. `root` is a folder into which `make
    /// install DESTDIR=...` has installed them. If `root` is `/`, links the files of all extensions
    /// of the original installation. The next call of [`PrivateCopy::make`] keeps only links to the
    /// original installation.
    ///
    /// # Errors
    /// When `root` has no folder for extensions of this server, or a link cannot be created.
    pub fn link_installed(&self, config: &PgConfig, root: &Path) -> Result<()> {
        // The links need an absolute path: a relative one would start at the folder of the link.
        let root = (root.canonicalize()).with_context(|| format!("no {}", root.display()))?;
        let below = |dir: &Path| root.join(dir.strip_prefix("/").unwrap_or(dir));
        let extensions = config.sharedir().join("extension");
        link_entries(&below(config.pkglibdir()), &self.pkglibdir)?;
        link_entries(&below(&extensions), &self.extension_dir)
    }
}

/// Returns candidates for a folder with files for the server. The server's user may have no access
/// to some of them, so the caller should try them in order. The first one is `preferred`. The
/// others are in the system's folders for temporary files, and their names end with `suffix`.
pub fn candidate_dirs(preferred: &Path, suffix: &str) -> Vec<PathBuf> {
    // The name contains a hash of the checkout's path, so that a later run finds the same folder.
    let owner = rustix::process::geteuid().as_raw();
    let name = format!("neardup-{owner}-{:016x}-{suffix}", fnv1a(preferred));
    [std::env::temp_dir(), PathBuf::from("/var/tmp")]
        .into_iter()
        .map(|dir| dir.join(&name))
        .fold(vec![preferred.to_owned()], |mut all, dir| {
            if !all.contains(&dir) {
                all.push(dir);
            }
            all
        })
}

/// Returns the 64-bit FNV-1a hash of a path. The standard library's hash could change with the
/// toolchain, and folder names must not.
fn fnv1a(path: &Path) -> u64 {
    path.as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}

/// Creates the folder `dir` if needed and checks that the current user owns it, because another
/// user could have created it earlier among the temporary files.
///
/// # Errors
/// When the folder cannot be created, or another user owns it.
pub fn own_dir(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let metadata = fs::symlink_metadata(dir)?;
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        bail!("the folder is not the current user's own");
    }
    fs::set_permissions(dir, PermissionsExt::from_mode(0o755))?;
    Ok(())
}

/// Links the shared libraries of a PostgreSQL that was installed from a Python wheel. `bindir` is
/// the folder of the installation's programs, and `root` is the root folder of the copy. The
/// libraries are in folders called `NAME.libs` next to the installation. Programs look for these
/// folders relative to their own path, so the copy has links to them at the same relative path.
/// Does nothing for other installations.
fn link_libraries(root: &Path, bindir: &Path) -> Result<()> {
    for dir in bindir.ancestors().skip(2).take(2) {
        for name in entries(dir)? {
            let source = dir.join(&name);
            let target = root.join(source.strip_prefix("/").unwrap_or(&source));
            let is_libraries = Path::new(&name).extension().is_some_and(|e| e == "libs");
            if is_libraries && fs::symlink_metadata(&target).is_err() {
                symlink(&source, &target)
                    .with_context(|| format!("cannot link {}", target.display()))?;
            }
        }
    }
    Ok(())
}

/// Makes the folder `target` of the copy, and links the entries of the folder `source` into it,
/// except the names in `except`. Removes outdated links. `target` is below `root`, the copy's root
/// folder.
fn mirror(root: &Path, source: &Path, target: &Path, except: &[&str]) -> Result<()> {
    make_dirs(root, target)?;
    let wanted: HashSet<OsString> = entries(source)?
        .into_iter()
        .filter(|name| !except.iter().any(|kept| OsStr::new(kept) == name))
        .collect();
    for old in entries(target)? {
        let path = target.join(&old);
        let is_link = fs::symlink_metadata(&path)?.is_symlink();
        let current = wanted.contains(&old) && fs::read_link(&path).ok() == Some(source.join(&old));
        if is_link && !current {
            fs::remove_file(&path)?;
        }
    }
    for name in wanted {
        let path = target.join(&name);
        // An existing real file belongs to the extension, and an existing folder is mirrored
        // separately.
        if fs::symlink_metadata(&path).is_err() {
            symlink(source.join(&name), &path)
                .with_context(|| format!("cannot make the link {}", path.display()))?;
        }
    }
    Ok(())
}

/// Creates links in `target` to all entries of the folder `source`. Replaces existing links, but
/// not real files.
fn link_entries(source: &Path, target: &Path) -> Result<()> {
    for name in entries(source)? {
        let (file, link) = (source.join(&name), target.join(&name));
        match fs::symlink_metadata(&link) {
            Ok(old) if !old.is_symlink() => continue,
            Ok(_) => fs::remove_file(&link)?,
            Err(_) => (),
        }
        symlink(&file, &link).with_context(|| format!("cannot make {}", link.display()))?;
    }
    Ok(())
}

/// Creates the folders on the path from `root` down to `target` with permissions 0755, whatever the
/// umask is, so that the server's user can enter them.
fn make_dirs(root: &Path, target: &Path) -> Result<()> {
    let mut dir = root.to_owned();
    for part in target.strip_prefix(root)? {
        dir.push(part);
        if !dir.is_dir() {
            fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
            fs::set_permissions(&dir, PermissionsExt::from_mode(0o755))?;
        }
    }
    Ok(())
}

/// Lists the names of the entries of a folder.
fn entries(dir: &Path) -> Result<Vec<OsString>> {
    let context = || format!("cannot read the folder {}", dir.display());
    fs::read_dir(dir)
        .with_context(context)?
        .map(|entry| Ok(entry.with_context(context)?.file_name()))
        .collect()
}

/// Copies the file `source` to `target`, unless `target` has the same size and modification time.
/// An update of PostgreSQL changes one of them.
fn refresh_file(source: &Path, target: &Path) -> Result<()> {
    let new = fs::metadata(source)?;
    if let Ok(old) = fs::symlink_metadata(target)
        && old.is_file()
        && old.len() == new.len()
        && old.mtime() == new.mtime()
    {
        return Ok(());
    }
    replace_file(source, target, 0o755)?;
    fs::File::options()
        .append(true)
        .open(target)?
        .set_modified(new.modified()?)?;
    Ok(())
}

/// Copies the file `source` to `target` with the permissions `mode`, by creating a new file and
/// renaming it. So a link at `target` is replaced instead of followed, and a running server keeps
/// the library that it has mapped.
fn replace_file(source: &Path, target: &Path, mode: u32) -> Result<()> {
    let context = || format!("cannot copy {} to {}", source.display(), target.display());
    let dir = target.parent().context("a target without a folder")?;
    let staged = tempfile::NamedTempFile::new_in(dir).with_context(context)?;
    fs::copy(source, staged.path()).with_context(context)?;
    fs::set_permissions(staged.path(), PermissionsExt::from_mode(mode)).with_context(context)?;
    staged.persist(target).with_context(context)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirror_follows_the_source() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let source = root.join("source");
        let target = root.join("a/b/target");
        fs::create_dir(&source).unwrap();
        for name in ["kept", "gone", "real"] {
            fs::write(source.join(name), name).unwrap();
        }
        mirror(&root, &source, &target, &["real"]).unwrap();
        assert_eq!(fs::read(target.join("gone")).unwrap(), b"gone");
        assert!(!target.join("real").exists());

        fs::remove_file(source.join("gone")).unwrap();
        fs::write(source.join("new"), "new").unwrap();
        mirror(&root, &source, &target, &["real"]).unwrap();
        let mut names = entries(&target).unwrap();
        names.sort();
        assert_eq!(names, ["kept", "new"]);
    }

    #[test]
    fn links_of_other_extensions_replace_links_and_leave_files() {
        let dir = tempfile::tempdir().unwrap();
        let (source, target) = (dir.path().join("source"), dir.path().join("target"));
        for folder in [&source, &target] {
            fs::create_dir(folder).unwrap();
        }
        for name in ["own", "old", "new"] {
            fs::write(source.join(name), "installed").unwrap();
        }
        fs::write(target.join("own"), "own").unwrap();
        symlink("/nowhere", target.join("old")).unwrap();
        link_entries(&source, &target).unwrap();
        for (name, expected) in [("own", "own"), ("old", "installed"), ("new", "installed")] {
            assert_eq!(
                fs::read_to_string(target.join(name)).unwrap(),
                expected,
                "{name}"
            );
        }
        assert!(link_entries(&dir.path().join("missing"), &target).is_err());
    }

    #[test]
    fn replacing_a_link_leaves_what_it_points_to() {
        let dir = tempfile::tempdir().unwrap();
        let system = dir.path().join("system.so");
        let built = dir.path().join("built.so");
        let installed = dir.path().join("installed.so");
        fs::write(&system, "system").unwrap();
        fs::write(&built, "built").unwrap();
        symlink(&system, &installed).unwrap();
        replace_file(&built, &installed, 0o755).unwrap();
        assert_eq!(fs::read_to_string(&system).unwrap(), "system");
        assert_eq!(fs::read_to_string(&installed).unwrap(), "built");
    }

    #[test]
    fn a_folder_of_someone_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        symlink(dir.path(), &link).unwrap();
        assert!(own_dir(&link).is_err());
        assert!(own_dir(&dir.path().join("new")).is_ok());
    }
}
