//! Violations that were there before their rule: a count for each rule and area, which only falls.
use super::Violation;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// File of the counts.
pub const FILE: &str = ".ci/known-violations.txt";
const HEAD: &str = "# Violations of the rules of `cargo xtask check` that are left: rule, area, \
                    number.\n# The numbers only fall: `cargo xtask check --lower`.\n";

/// Number of violations that are tolerated, by rule and area.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Known(BTreeMap<(String, String), usize>);

impl Known {
    /// Reads the counts; without the file none is tolerated.
    ///
    /// # Errors
    /// If a line has another form.
    pub fn read(root: &Path) -> Result<Self> {
        match fs::read_to_string(root.join(FILE)) {
            Ok(text) => Self::parse(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {FILE}")),
        }
    }

    fn parse(text: &str) -> Result<Self> {
        let mut known = Self::default();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        for line in lines.filter(|line| !line.is_empty()) {
            let mut words = line.split_whitespace();
            let entry = (|| {
                let (rule, area) = (words.next()?, words.next()?);
                let count = words.next()?.parse().ok().filter(|count| *count > 0)?;
                Some(((rule.to_owned(), area.to_owned()), count))
            })();
            let (key, count) =
                entry.with_context(|| format!("{FILE}: no rule, area and number: {line}"))?;
            known.0.insert(key, count);
        }
        Ok(known)
    }

    /// Writes the counts, or removes the file if none is left.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, root: &Path) -> Result<()> {
        let path = root.join(FILE);
        if self.0.is_empty() {
            return match fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
                _ => Ok(()),
            };
        }
        let lines = self.0.iter();
        let lines = lines.map(|((rule, area), count)| format!("{rule} {area} {count}\n"));
        fs::write(path, HEAD.to_owned() + &lines.collect::<String>())
            .with_context(|| format!("cannot write {FILE}"))
    }

    /// Sum of all counts.
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    /// Lowers the counts to those of `violations`. None is raised and none is added.
    pub fn lower(&mut self, violations: &[Violation]) {
        let counts = by_area(violations);
        self.0.retain(|key, known| {
            *known = (*known).min(counts.get(key).map_or(0, Vec::len));
            *known > 0
        });
    }

    /// Lines to print: all violations of a rule and area of which there are more than known, and
    /// the counts that are too high.
    pub fn complaints(&self, violations: &[Violation]) -> Vec<String> {
        let mut complaints = Vec::new();
        let counts = by_area(violations);
        for (key, found) in &counts {
            let known = self.0.get(key).copied().unwrap_or(0);
            if found.len() <= known {
                continue;
            }
            complaints.extend(found.iter().map(|violation| violation.to_string()));
            if known > 0 {
                let (rule, area) = key;
                complaints.push(format!(
                    "{rule}: {} in {area}, where {FILE} has {known}: mend the new ones",
                    found.len()
                ));
            }
        }
        for (key, &known) in &self.0 {
            let left = counts.get(key).map_or(0, Vec::len);
            if left < known {
                let (rule, area) = key;
                complaints.push(format!(
                    "{FILE}: {rule} {area} {known}, and {left} are left: run cargo xtask check \
                     --lower"
                ));
            }
        }
        complaints
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            rule,
            path,
            line,
            message,
        } = self;
        match line {
            0 => write!(f, "{path}: {rule}: {message}"),
            _ => write!(f, "{path}:{line}: {rule}: {message}"),
        }
    }
}

fn by_area(violations: &[Violation]) -> BTreeMap<(String, String), Vec<&Violation>> {
    let mut by_area: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for violation in violations {
        let key = (violation.rule.to_owned(), area(&violation.path).to_owned());
        by_area.entry(key).or_default().push(violation);
    }
    by_area
}

/// The package or folder of a path. Areas are wide, so that a renamed file changes no count.
fn area(path: &str) -> &str {
    let folders = match path.split('/').next() {
        Some("crates") => 2,
        _ => 1,
    };
    match path.match_indices('/').nth(folders - 1) {
        Some((end, _)) => &path[..end],
        None => ".",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(count: usize) -> Vec<Violation> {
        let violation = |line| Violation {
            rule: "rule",
            path: "src/am/a.rs".to_owned(),
            line,
            message: "message".to_owned(),
        };
        (1..=count).map(violation).collect()
    }

    #[test]
    fn counts_fall_and_do_not_rise() -> Result<()> {
        let mut known = Known::parse("# comment\n\nrule src 2\n")?;
        assert!(known.complaints(&violations(2)).is_empty());
        let more = known.complaints(&violations(3));
        assert_eq!(more.len(), 4, "all places and the count: {more:?}");
        assert_eq!(more[0], "src/am/a.rs:1: rule: message");
        let fewer = known.complaints(&violations(1));
        assert!(fewer[0].contains("rule src 2, and 1 are left"), "{fewer:?}");
        known.lower(&violations(3));
        assert_eq!(known.total(), 2);
        known.lower(&violations(1));
        assert_eq!(known.total(), 1);
        known.lower(&[]);
        assert_eq!(known, Known::default());
        assert_eq!(known.complaints(&violations(1)).len(), 1);
        Ok(())
    }

    #[test]
    fn a_count_wants_three_words() {
        for line in ["rule", "rule src", "rule src x", "rule src 0"] {
            assert!(Known::parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn areas_are_packages_and_folders() {
        let cases = [
            ("crates/sketch/src/a.rs", "crates/sketch"),
            ("src/am/a.rs", "src"),
            ("src", "."),
            ("README.md", "."),
        ];
        for (path, expected) in cases {
            assert_eq!(area(path), expected);
        }
    }
}
