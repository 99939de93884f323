//! Flags for linking the extension.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The server's functions are found when the server loads the library. macOS wants to be told;
    // elsewhere a library may leave symbols open.
    if std::env::var_os("CARGO_CFG_TARGET_OS").is_some_and(|os| os == "macos") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-undefined,dynamic_lookup");
    }
}
