//! The table of directions: which folder of the extension imports which.

/// Root of the crate to which the table applies.
pub const ROOT: &str = "src/lib.rs";

/// Each folder or file of `src/`, with those that it may import. All of them may import the other
/// crates: the compiler checks those directions.
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
