//! The table of directions: which folder of the extension imports which.

/// Root of the crate to which the table applies.
pub const ROOT: &str = "src/lib.rs";

/// Each folder or file of `src/`, with those that it may import. The pure crates come below all of
/// them: `types` and `functions` build on `sketch`, `storage` and `am` on `blocktree`.
pub const DIRECTIONS: [(&str, &[&str]); 9] = [
    // Server.
    ("pg", &[]),
    ("settings", &["pg"]),
    // Values.
    ("types", &["pg"]),
    ("registry", &["types", "pg"]),
    ("planner", &["types", "settings", "pg"]),
    // Index.
    ("storage", &["pg"]),
    (
        "am",
        &["storage", "registry", "planner", "types", "settings", "pg"],
    ),
    // Commands.
    (
        "functions",
        &["am", "storage", "registry", "types", "settings", "pg"],
    ),
    (
        "dedup",
        &[
            "am", "storage", "registry", "planner", "types", "settings", "pg",
        ],
    ),
];
