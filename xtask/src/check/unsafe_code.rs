//! `unsafe` stays where the server's pointers are.
use super::Violation;
use super::sources::{Source, line_of};

const FREE: &str = "unsafe-free";
const TOTAL: &str = "unsafe-total";
/// Folders without any unsafe code.
const FREE_FOLDERS: [&str; 2] = ["src/functions/", "src/dedup/"];
/// Largest number of unsafe blocks in the extension, `src/`. Lower it with the count.
const MOST_BLOCKS: usize = 312;

/// Uses of `unsafe` in a folder that has to do without.
pub fn check_free(source: &Source) -> Vec<Violation> {
    if !source.is_rust()
        || !FREE_FOLDERS
            .iter()
            .any(|folder| source.path.starts_with(folder))
    {
        return Vec::new();
    }
    let found = uses(&source.code).map(|at| Violation {
        rule: FREE,
        path: source.path.clone(),
        line: line_of(&source.code, at),
        message: "unsafe code: use a safe handle of src/pg, or add one there".to_owned(),
    });
    found.collect()
}

/// A violation if the extension has more unsafe blocks than it may.
pub fn check_total(sources: &[Source]) -> Option<Violation> {
    let blocks: usize = (sources.iter())
        .filter(|source| source.is_rust() && source.path.starts_with("src/"))
        .map(|source| blocks(&source.code))
        .sum();
    (blocks > MOST_BLOCKS).then(|| Violation {
        rule: TOTAL,
        path: "src".to_owned(),
        line: 0,
        message: format!(
            "{blocks} unsafe blocks, more than {MOST_BLOCKS}: use the safe handles of src/pg"
        ),
    })
}

fn blocks(code: &str) -> usize {
    uses(code)
        .filter(|at| code[at + "unsafe".len()..].trim_start().starts_with('{'))
        .count()
}

/// Places of the keyword in code without comments and literals.
fn uses(code: &str) -> impl Iterator<Item = usize> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices("unsafe")
        .map(|(at, _)| at)
        .filter(move |&at| {
            let (before, after) = (&code[..at], &code[at + "unsafe".len()..]);
            !before.ends_with(is_name) && !after.starts_with(is_name)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_of_the_keyword_are_found() {
        let text =
            "// unsafe\n#![deny(unsafe_code)]\nunsafe fn f() {}\nfn g() { unsafe { f() } }\n";
        let lines = |path| -> Vec<usize> {
            let source = Source::new(path, text);
            check_free(&source).iter().map(|found| found.line).collect()
        };
        assert_eq!(lines("src/dedup/a.rs"), [3, 4]);
        assert_eq!(lines("src/am/a.rs"), [0; 0]);
        assert_eq!(blocks(&Source::new("a.rs", text).code), 1);
    }

    #[test]
    fn the_total_has_a_limit() {
        let text = "unsafe {}\n".repeat(MOST_BLOCKS);
        let source = |path| Source::new(path, &text);
        let elsewhere = Source::new("tests/a.rs", "unsafe {}");
        assert_eq!(check_total(&[source("src/a.rs"), elsewhere]), None);
        let more = [source("src/a.rs"), Source::new("src/b.rs", "unsafe {}")];
        assert!(check_total(&more).is_some());
    }
}
