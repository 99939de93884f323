//! Table of the imports that are allowed between the folders of the extension's crate.

/// Root file of the extension's crate, to which the table applies.
pub const ROOT: &str = "src/lib.rs";

/// Folders and files of `src/`, each with the folders that it may import. Every folder may import
/// the other crates of the workspace; cargo rejects cycles among crates.
pub const DIRECTIONS: [(&str, &[&str]); 6] = [
    ("settings", &[]),
    // SQL types and the planner's support for them.
    ("types", &[]),
    ("planner", &["types", "settings"]),
    // The index access method.
    ("am", &["planner", "types", "settings"]),
    // SQL functions, and jobs over whole tables.
    ("functions", &["am", "types", "settings"]),
    (
        "dedup",
        &["functions", "am", "planner", "types", "settings"],
    ),
];
