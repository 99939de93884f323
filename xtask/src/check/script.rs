//! The committed SQL script is what its sections give.
use super::Violation;
use super::sources::Source;
use crate::sql;
use std::path::Path;

const RULE: &str = "sql";

/// A violation if the script among `sources` is not the one that the sections below `root` give.
pub fn check(root: &Path, sources: &[Source]) -> Option<Violation> {
    let violation = |path: &str, line, message| Violation {
        rule: RULE,
        path: path.to_owned(),
        line,
        message,
    };
    match sql::expected(root) {
        Ok((path, expected)) => {
            let script = sources.iter().find(|source| source.path == path);
            let line = first_difference(&expected, script.map_or("", |script| &script.text))?;
            let message = "not what sql/sections gives: run cargo xtask sql".to_owned();
            Some(violation(path, line, message))
        }
        Err(error) => Some(violation("sql/sections", 0, format!("{error:#}"))),
    }
}

/// The first line, from 1, in which two texts differ.
fn first_difference(a: &str, b: &str) -> Option<usize> {
    let same = a.split('\n').zip(b.split('\n')).take_while(|(a, b)| a == b);
    (a != b).then(|| 1 + same.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_found() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_difference("a\nb\n", "a\nb\nc\n"), Some(3));
        assert_eq!(first_difference("a\n", ""), Some(1));
    }
}
