//! Finds libclang. The build of the extension needs it to read PostgreSQL's header files and
//! generate Rust bindings.
use std::path::{Path, PathBuf};

/// Returns whether libclang and its own header files are installed. Searches libclang in the same
/// way as the generator of the bindings, by the crate clang-sys.
pub fn is_installed() -> bool {
    clang_sys::load().is_ok() && has_builtin_headers()
}

/// Returns whether libclang's own header files (`clang/<version>/include` with stddef.h) are in a
/// folder of LLVM or near the library that was found. On Debian, they are in a separate package.
fn has_builtin_headers() -> bool {
    let library = clang_sys::get_library();
    let beside = library.and_then(|library| Some(library.path().parent()?.to_owned()));
    let llvm = children(Path::new("/usr/lib"))
        .into_iter()
        .map(|folder| folder.join("lib"));
    llvm.chain(beside)
        .chain([PathBuf::from("/usr/lib"), PathBuf::from("/usr/lib64")])
        .flat_map(|folder| children(&folder.join("clang")))
        .any(|version| version.join("include/stddef.h").is_file())
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}
