//! Checks what a release needs and development does not: the project's address, and the date of the
//! version in the changelog.
use super::Violation;
use super::sources::Source;

const RULE: &str = "release";
const CHANGELOG: &str = "CHANGELOG.md";

/// Finds what a release of `version` lacks. `sources` are the files of the workspace, among them
/// the changelog. `repository` is the project's address, if there is one.
pub fn check(sources: &[Source], version: &str, repository: Option<&str>) -> Vec<Violation> {
    let address = match repository {
        None => Some("has no address: set `repository`, and run cargo xtask generate"),
        Some(address) => (!is_address(address))
            .then_some("`repository` is not an https address without a slash at the end"),
    };
    let changelog = sources.iter().find(|source| source.path == CHANGELOG);
    let dated = changelog.is_some_and(|changelog| has_date(&changelog.text, version));
    let date = (!dated).then_some("has no date for this version, as in ## [0.1.0] - 2026-11-26");
    let violation = |path: &str, message: &str| Violation {
        rule: RULE,
        path: path.to_owned(),
        line: 0,
        message: message.to_owned(),
    };
    let address = address.map(|message| violation("Cargo.toml", message));
    let date = date.map(|message| violation(CHANGELOG, message));
    address.into_iter().chain(date).collect()
}

fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").unwrap_or_default();
    let ends_well = !rest.ends_with('/') && !rest.ends_with(".git");
    ends_well && rest.split('/').count() > 1 && !rest.contains(char::is_whitespace)
}

/// Returns whether a changelog has the heading of `version` with a date of the form 2026-11-26.
fn has_date(changelog: &str, version: &str) -> bool {
    let heading = format!("## [{version}] - ");
    let date = changelog
        .lines()
        .find_map(|line| line.strip_prefix(&heading));
    date.is_some_and(|date| {
        let parts: Vec<&str> = date.split('-').collect();
        let digits = |part: &str, count| {
            part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        matches!(parts[..], [y, m, d] if digits(y, 4) && digits(m, 2) && digits(d, 2))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(changelog: &str, repository: Option<&str>) -> Vec<String> {
        let sources = [Source::new(CHANGELOG, changelog)];
        let violations = check(&sources, "0.1.0", repository);
        violations.into_iter().map(|found| found.path).collect()
    }

    #[test]
    fn a_release_needs_address_and_date() {
        let dated = "# Changelog\n\n## [0.1.0] - 2026-11-26\n";
        let address = Some("https://example.org/a/neardup");
        assert!(found(dated, address).is_empty());
        assert_eq!(found(dated, None), ["Cargo.toml"]);
        for wrong in [
            "example.org/a",
            "https://example.org/a/",
            "https://example.org",
        ] {
            assert_eq!(found(dated, Some(wrong)), ["Cargo.toml"], "{wrong}");
        }
        for open in [
            "## [0.1.0] - not released yet\n",
            "## [0.2.0] - 2026-11-26\n",
            "",
        ] {
            assert_eq!(found(open, address), [CHANGELOG], "{open}");
        }
    }
}
