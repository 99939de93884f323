//! Licences: which of a crate's count here, and their texts.
use super::linked::Crate;
use anyhow::{Context, Result};

/// A licence that may be in the library.
#[derive(Debug, PartialEq, Eq)]
pub struct Licence {
    /// Identifier of SPDX.
    pub spdx: &'static str,
    /// Short name in Debian's copyright files.
    pub debian: &'static str,
    /// Beginning of the text that grants it, in lower case; the notices stand above.
    grant: &'static str,
}

/// Known licences. Where a crate offers several, the first of them here is taken.
pub const KNOWN: [Licence; 6] = [
    Licence {
        spdx: "MIT",
        debian: "Expat",
        grant: "permission is hereby granted, free of charge, to any person obtaining a copy of \
                this software",
    },
    Licence {
        spdx: "Zlib",
        debian: "Zlib",
        grant: "this software is provided 'as-is'",
    },
    Licence {
        spdx: "BSD-3-Clause",
        debian: "BSD-3-clause",
        grant: "redistribution and use in source and binary forms",
    },
    Licence {
        spdx: "BSL-1.0",
        debian: "BSL-1.0",
        grant: "boost software license - version 1.0",
    },
    Licence {
        spdx: "Apache-2.0",
        debian: "Apache-2.0",
        grant: "apache license version 2.0, january 2004",
    },
    Licence {
        spdx: "Unicode-3.0",
        debian: "Unicode-3.0",
        grant: "notice to user: carefully read",
    },
];

/// A licence of a crate as one of its files states it.
#[derive(Debug, PartialEq, Eq)]
pub struct Grant {
    /// The licence.
    pub licence: &'static Licence,
    /// Lines on who holds the rights.
    pub notices: Vec<String>,
    /// The text below them; `None` if the crate has no file with it.
    pub body: Option<String>,
}

/// The licences of a crate that count here.
///
/// # Errors
/// If none of those offered is known: somebody has to read it first.
pub fn grants(item: &Crate) -> Result<Vec<Grant>> {
    let licences = elect(&item.expression).with_context(|| {
        format!(
            "the licence of {} {} is \"{}\": read it, and add it to KNOWN in \
             xtask/src/package/licences.rs if the library may contain it",
            item.name, item.version, item.expression
        )
    })?;
    let mut grants = Vec::new();
    for licence in licences {
        let before = grants.len();
        grants.extend(item.texts.iter().filter_map(|text| read(licence, text)));
        if grants.len() == before {
            grants.push(Grant {
                licence,
                notices: Vec::new(),
                body: None,
            });
        }
    }
    Ok(grants)
}

/// One licence for each part of an expression such as `(MIT OR Apache-2.0) AND Unicode-3.0`.
fn elect(expression: &str) -> Option<Vec<&'static Licence>> {
    let elect_one = |part: &str| {
        let part = part.trim().trim_matches(['(', ')']).replace('/', " OR ");
        let offered: Vec<&str> = part.split(" OR ").map(str::trim).collect();
        KNOWN.iter().find(|licence| offered.contains(&licence.spdx))
    };
    // No crate offers an OR of ANDs; the parentheses that would make one are refused.
    let nested = expression.split(" AND ").any(|part| {
        part.matches('(').count() != part.matches(')').count() || part.matches('(').count() > 1
    });
    if nested {
        return None;
    }
    expression.split(" AND ").map(elect_one).collect()
}

/// Reads a licence file, if it is of this licence.
fn read(licence: &'static Licence, text: &str) -> Option<Grant> {
    let lines: Vec<&str> = text.lines().collect();
    let start = (0..lines.len()).find(|at| starts_here(&lines[*at..], licence.grant))?;
    let is_notice = |line: &&str| {
        let line = line.to_lowercase();
        let says_so = ["copyright", "(c)", "©"]
            .iter()
            .any(|word| line.contains(word));
        says_so && line.contains(|c: char| c.is_ascii_digit() || c == ',')
    };
    let notices = lines[..start].iter().copied().filter(is_notice);
    let body = lines[start..].iter().map(|line| line.trim_end());
    Some(Grant {
        licence,
        notices: notices.map(|line| line.trim().to_owned()).collect(),
        body: Some(body.collect::<Vec<_>>().join("\n").trim_end().to_owned()),
    })
}

/// Returns whether the words of these lines begin so, wherever the lines are broken.
fn starts_here(lines: &[&str], beginning: &str) -> bool {
    if lines[0].trim().is_empty() {
        return false;
    }
    let begin = &lines[..lines.len().min(16)];
    let found = begin.iter().flat_map(|line| line.split_whitespace());
    let mut words = found.map(|word| word.to_lowercase().replace(['‘', '’'], "'"));
    beginning.split(' ').all(|word| {
        words
            .next()
            .is_some_and(|found| found.trim_end_matches(',') == word.trim_end_matches(','))
    })
}

/// The words of a text in lower case: equal for texts that differ in lines and quotes alone.
pub fn words(text: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric();
    let words = text.split(|c| !is_word(c)).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elected(expression: &str) -> Option<Vec<&'static str>> {
        Some(
            elect(expression)?
                .iter()
                .map(|licence| licence.spdx)
                .collect(),
        )
    }

    #[test]
    fn one_licence_is_taken_of_those_offered() {
        assert_eq!(elected("Apache-2.0 OR MIT"), Some(vec!["MIT"]));
        assert_eq!(elected("MIT/Apache-2.0"), Some(vec!["MIT"]));
        assert_eq!(elected("Unlicense OR Apache-2.0"), Some(vec!["Apache-2.0"]));
        let both = elected("(MIT OR Apache-2.0) AND Unicode-3.0");
        assert_eq!(both, Some(vec!["MIT", "Unicode-3.0"]));
        assert_eq!(elected("GPL-3.0-only"), None);
        assert_eq!(elected("MIT AND GPL-3.0-only"), None);
        assert_eq!(elected("(MIT AND GPL-3.0-only) OR Zlib"), None);
        assert_eq!(elected(""), None);
    }

    #[test]
    fn notices_and_text_are_told_apart() {
        let text = "The MIT License\n\nCopyright (c) 2016 A\n (C) 2017 B\nCopyright notice:\n\n\
                    Permission is hereby granted, free of\ncharge, to any person obtaining a copy\n\
                    of this software and so on\n\n";
        let grant = read(&KNOWN[0], text).expect("a grant");
        assert_eq!(grant.notices, ["Copyright (c) 2016 A", "(C) 2017 B"]);
        let body = grant.body.expect("a body");
        assert!(
            body.starts_with("Permission") && body.ends_with("so on"),
            "{body}"
        );
        assert_eq!(read(&KNOWN[1], text), None);
    }

    #[test]
    fn an_unknown_licence_stops_the_packaging() {
        let item = Crate {
            name: "a".into(),
            version: "1.0.0".into(),
            expression: "SSPL-1.0".into(),
            ..Crate::default()
        };
        let error = format!("{:#}", grants(&item).unwrap_err());
        assert!(
            error.contains("a 1.0.0") && error.contains("SSPL-1.0"),
            "{error}"
        );
    }
}
