//! Folder of a private server's unix socket.
use crate::OsUser;
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};

/// Maximum length of a socket path, in bytes, that every operating system accepts (`sun_path` has
/// 104 to 108 bytes). If a path would be longer, the socket is in a temporary folder with a short
/// path.
const LONGEST_SOCKET: usize = 103;

/// Folder of a server's unix socket. Only the server's user can enter it, because the server
/// accepts every connection without a password.
#[derive(Debug)]
pub(crate) enum SocketDir {
    /// The server's own folder.
    Home(PathBuf),
    /// A temporary folder with a short path, used if the path of the server's folder is too long
    /// for a socket.
    Short(tempfile::TempDir),
}

impl SocketDir {
    /// Chooses the folder for the socket of a server, whose own folder is `home`. If the folder is
    /// temporary, only `user` can enter it.
    pub(crate) fn make(home: &Path, user: &OsUser) -> Result<Self> {
        if home.as_os_str().len() + "/.s.PGSQL.65535".len() <= LONGEST_SOCKET {
            return Ok(Self::Home(home.to_owned()));
        }
        let dir = tempfile::Builder::new().prefix("pg-").tempdir()?;
        user.private_dir(dir.path())?;
        ensure!(
            dir.path().as_os_str().len() + "/.s.PGSQL.65535".len() <= LONGEST_SOCKET,
            "the path {} is too long for a socket; set TMPDIR to a short one",
            dir.path().display()
        );
        Ok(Self::Short(dir))
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Home(path) => path,
            Self::Short(dir) => dir.path(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_gets_a_short_socket() {
        let user = OsUser::named("").unwrap();
        let short = SocketDir::make(Path::new("/srv/data"), &user).unwrap();
        assert_eq!(short.path(), Path::new("/srv/data"));
        let long = PathBuf::from(format!("/srv/{}", "x".repeat(LONGEST_SOCKET)));
        let dir = SocketDir::make(&long, &user).unwrap();
        assert!(dir.path().as_os_str().len() < LONGEST_SOCKET - 15);
    }
}
