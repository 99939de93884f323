//! True if libclang is there, looked for where the binding generator looks for it (the clang-sys
//! crate's `build/common.rs` documents the places and names).
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns whether libclang and the header files that come with it are installed.
pub fn is_installed() -> bool {
    let dirs = library_dirs();
    dirs.iter().any(|dir| holds_libclang(dir)) && has_builtin_headers(&dirs)
}

fn library_dirs() -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    if let Some(path) = std::env::var_os("LIBCLANG_PATH") {
        let path = PathBuf::from(path);
        // It may name the library itself.
        let parent = path.parent().filter(|_| path.is_file());
        dirs.push(parent.unwrap_or(&path).to_owned());
    }
    let llvm_config = std::env::var_os("LLVM_CONFIG_PATH").unwrap_or_else(|| "llvm-config".into());
    if let Ok(output) = Command::new(llvm_config).arg("--libdir").output() {
        let text = String::from_utf8_lossy(&output.stdout);
        if !text.trim().is_empty() {
            dirs.push(PathBuf::from(text.trim()));
        }
    }
    let loader = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    dirs.extend(std::env::split_paths(&loader));
    for fixed in [
        "/usr/local/llvm/lib",
        "/usr/local/lib",
        "/usr/local/lib64",
        "/usr/lib",
        "/usr/lib64",
        "/lib",
        "/lib64",
    ] {
        dirs.push(PathBuf::from(fixed));
    }
    for entry in children(Path::new("/usr/lib")) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("llvm") {
            dirs.push(entry.join("lib"));
        } else if name.contains("-linux-") {
            dirs.push(entry);
        }
    }
    dirs
}

fn holds_libclang(dir: &Path) -> bool {
    children(dir).iter().any(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        is_libclang(&name) && path.exists()
    })
}

/// libclang.so, libclang.so.1, libclang-14.so, libclang-14.so.1; not libclang-cpp.so.
fn is_libclang(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("libclang") else {
        return false;
    };
    let Some(at) = rest.find(".so") else {
        return rest == ".dylib";
    };
    let version = &rest[..at];
    version.is_empty()
        || version
            .strip_prefix('-')
            .is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()))
}

/// stddef.h and its like stand in `clang/<version>/include`, in a package apart on Debian.
fn has_builtin_headers(library_dirs: &[PathBuf]) -> bool {
    library_dirs
        .iter()
        .flat_map(|dir| children(&dir.join("clang")))
        .any(|version| version.join("include/stddef.h").is_file())
}

fn children(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_librarys_names() {
        for name in [
            "libclang.so",
            "libclang.so.1",
            "libclang-14.so",
            "libclang-14.so.14.0.6",
            "libclang.dylib",
        ] {
            assert!(is_libclang(name), "{name}");
        }
        for name in ["libclang-cpp.so.14", "libclangAST.a", "libc.so.6"] {
            assert!(!is_libclang(name), "{name}");
        }
    }
}
