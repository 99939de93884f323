//! Table of allowed imports between the folders of the extension.

/// Root of the crate to which the table applies.
pub const ROOT: &str = "src/lib.rs";

/// Folders and files of `src/`, and the folders that each may import. All of them may import the
/// other crates, because the compiler checks those directions.
pub const DIRECTIONS: [(&str, &[&str]); 6] = [
    ("settings", &[]),
    // Values.
    ("types", &[]),
    ("planner", &["types", "settings"]),
    // Index.
    ("am", &["planner", "types", "settings"]),
    // Commands.
    ("functions", &["am", "types", "settings"]),
    ("dedup", &["am", "planner", "types", "settings"]),
];
