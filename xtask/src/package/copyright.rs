//! The licences of everything in the library, in Debian's machine-readable format.
use super::licences::{self, KNOWN};
use super::linked::Crate;
use anyhow::{Result, ensure};
use std::collections::BTreeMap;

/// Stanzas of what is no crate: neardup itself, its data, and Rust's standard library.
const HEAD: &str = include_str!("templates/copyright");
const OWN: &str = include_str!("../../../LICENSE");
/// The licence of the tables in neardup's own sources that are Unicode's.
const UNICODE: &str = include_str!("../../../crates/sketch/LICENSE-unicode");
const APACHE_NOTICE: &str = include_str!("templates/apache-2.0");

/// The form in which long texts appear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Debian has the Apache licence in a common place.
    Debian,
    /// All texts are in the file.
    Complete,
}

/// Makes the file for a library with these crates.
///
/// # Errors
/// If a crate's licence is not known, or no crate has its text.
pub fn file(crates: &[Crate], form: Form) -> Result<String> {
    let mut texts = Texts::of_head();
    let mut stanzas = String::new();
    for item in crates {
        stanzas.push('\n');
        stanzas += &stanza(item, &mut texts)?;
    }
    for name in names(&(HEAD.to_owned() + &stanzas)) {
        let is_there = name == "PostgreSQL" || texts.by_name.contains_key(&name);
        ensure!(is_there, "no crate has the text of the licence {name}");
    }

    let mut file = HEAD.to_owned() + &stanzas;
    let own = OWN.trim_start_matches("PostgreSQL License").trim_start();
    file += &licence("PostgreSQL", own);
    for (name, body) in &texts.by_name {
        let is_apache = name == "Apache-2.0" && form == Form::Debian;
        file += &licence(name, if is_apache { APACHE_NOTICE } else { body });
    }
    Ok(file)
}

/// The licences of a library with these crates, as an SPDX expression.
///
/// # Errors
/// If a crate's licence is not known.
pub fn expression(crates: &[Crate]) -> Result<String> {
    // Those of the head.
    let mut elected = vec!["MIT", "Unicode-3.0"];
    for item in crates {
        let grants = licences::grants(item)?;
        elected.extend(grants.iter().map(|grant| grant.licence.spdx));
    }
    let known = KNOWN.iter().map(|licence| licence.spdx);
    let names: Vec<&str> = std::iter::once("PostgreSQL")
        .chain(known.filter(|name| elected.contains(name)))
        .collect();
    Ok(names.join(" AND "))
}

/// The texts of licences by their short names. A second text of a licence has its own name.
#[derive(Default)]
struct Texts {
    by_name: BTreeMap<String, String>,
}

impl Texts {
    /// The texts of licences in the head that are no crate's.
    fn of_head() -> Self {
        let start = UNICODE.find("NOTICE TO USER").unwrap_or_default();
        let unicode = ("Unicode-3.0".to_owned(), UNICODE[start..].to_owned());
        Self {
            by_name: BTreeMap::from([unicode]),
        }
    }

    /// The name of a text of this licence; a new one if the words differ from those so far.
    fn name(&mut self, licence: &str, body: &str) -> String {
        let words = licences::words(body);
        let mut name = licence.to_owned();
        let mut number = 1;
        while let Some(known) = self.by_name.get(&name)
            && licences::words(known) != words
        {
            number += 1;
            name = format!("{licence}-variant-{number}");
        }
        let text = self.by_name.entry(name.clone());
        text.or_insert_with(|| body.to_owned());
        name
    }
}

fn stanza(item: &Crate, texts: &mut Texts) -> Result<String> {
    let mut notices: Vec<String> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for grant in licences::grants(item)? {
        // The same Apache licence is printed with and without its appendix.
        let is_apache = grant.licence.spdx == "Apache-2.0";
        let name = match &grant.body {
            Some(body) if !is_apache || !texts.by_name.contains_key("Apache-2.0") => {
                texts.name(grant.licence.debian, body)
            }
            _ => grant.licence.debian.to_owned(),
        };
        names.push(name);
        notices.extend(grant.notices.iter().map(|notice| holder(notice, item)));
    }
    if notices.is_empty() {
        notices.clone_from(&item.authors);
    }
    if notices.is_empty() {
        notices.push(format!("the authors of the crate {}", item.name));
    }
    for list in [&mut notices, &mut names] {
        let mut seen = Vec::new();
        list.retain(|text| {
            !seen.contains(text) && {
                seen.push(text.clone());
                true
            }
        });
    }
    let Crate {
        name,
        version,
        expression,
        ..
    } = item;
    let mut stanza = format!(
        "Files: crates/{name}-{version}/*\nCopyright: {}\nLicense: {}\n",
        notices.join("\n "),
        names.join(" and ")
    );
    if !KNOWN.iter().any(|known| known.spdx == expression) {
        stanza += &format!("Comment: offered as {expression}\n");
    }
    Ok(stanza)
}

/// A notice without the words that the field's name says. Some state a year alone.
fn holder(notice: &str, item: &Crate) -> String {
    let mut rest = notice;
    for prefix in ["Copyright", "copyright", "(c)", "(C)", "©", ":"] {
        rest = rest.trim_start().trim_start_matches(prefix);
    }
    let rest = rest.trim();
    if rest.contains(char::is_alphabetic) {
        return rest.to_owned();
    }
    match item.authors.is_empty() {
        true => format!("{rest} the authors of the crate {}", item.name),
        false => format!("{rest} {}", item.authors.join(", ")),
    }
}

/// The short names in the licence fields of these stanzas.
fn names(stanzas: &str) -> Vec<String> {
    let fields = stanzas
        .lines()
        .filter_map(|line| line.strip_prefix("License: "));
    fields
        .flat_map(|field| field.split(" and "))
        .map(str::to_owned)
        .collect()
}

/// A stanza with the text of a licence.
fn licence(name: &str, body: &str) -> String {
    let mut stanza = format!("\nLicense: {name}\n");
    for line in body.trim_end().lines() {
        stanza += &match line.trim() {
            "" => " .\n".to_owned(),
            _ => format!(" {}\n", line.trim_end()),
        };
    }
    stanza
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIT: &str = "Copyright (c) 2016 A\n\nPermission is hereby granted, free of charge, to \
                       any person obtaining a copy of this software and so on.\n\nMore.\n";
    const APACHE: &str = "Apache License\nVersion 2.0, January 2004\n\n1. Definitions.\n";

    fn item(name: &str, expression: &str, texts: &[&str]) -> Crate {
        Crate {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            expression: expression.to_owned(),
            authors: vec!["B <b@c.de>".to_owned()],
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    fn crates() -> Vec<Crate> {
        vec![
            item(
                "a",
                "(MIT OR Apache-2.0) AND Unicode-3.0",
                &[APACHE, MIT, UNICODE],
            ),
            item("b", "MIT", &[]),
            item(
                "c",
                "MIT",
                &[&MIT
                    .replace("2016 A", "2020 D")
                    .replace(", to any", ",\nto any")],
            ),
            item("d", "MIT", &[&MIT.replace("More", "Another")]),
            item("e", "Apache-2.0", &[APACHE]),
            item("f", "MIT", &[&MIT.replace("2016 A", "2016--2023")]),
        ]
    }

    #[test]
    fn each_crate_has_holders_and_a_licence() -> Result<()> {
        let file = file(&crates(), Form::Debian)?;
        for stanza in [
            "\nFiles: crates/a-1.0.0/*\nCopyright: 2016 A\n 1991-2023 Unicode, Inc.\n\
             License: Expat and Unicode-3.0\n\
             Comment: offered as (MIT OR Apache-2.0) AND Unicode-3.0\n\n",
            "\nFiles: crates/b-1.0.0/*\nCopyright: B <b@c.de>\nLicense: Expat\n\n",
            "\nFiles: crates/c-1.0.0/*\nCopyright: 2020 D\nLicense: Expat\n\n",
            "\nFiles: crates/d-1.0.0/*\nCopyright: 2016 A\nLicense: Expat-variant-2\n\n",
            "\nFiles: crates/f-1.0.0/*\nCopyright: 2016--2023 B <b@c.de>\nLicense: Expat\n\n",
            "\nLicense: Expat-variant-2\n Permission",
            "of this software and so on.\n .\n More.\n",
        ] {
            assert!(file.contains(stanza), "{stanza}\nis not in\n{file}");
        }
        assert_eq!(
            file.matches("\nLicense: Expat\n Permission").count(),
            1,
            "{file}"
        );
        Ok(())
    }

    #[test]
    fn debian_has_the_apache_licence_in_a_common_place() -> Result<()> {
        let debian = file(&crates(), Form::Debian)?;
        assert!(debian.contains("common-licenses/Apache-2.0") && !debian.contains("1. Defin"));
        let complete = file(&crates(), Form::Complete)?;
        assert!(!complete.contains("common-licenses") && complete.contains("1. Defin"));
        Ok(())
    }

    #[test]
    fn licences_are_an_expression() -> Result<()> {
        assert_eq!(expression(&[])?, "PostgreSQL AND MIT AND Unicode-3.0");
        let all = "PostgreSQL AND MIT AND Apache-2.0 AND Unicode-3.0";
        assert_eq!(expression(&crates())?, all);
        Ok(())
    }

    #[test]
    fn a_licence_without_its_text_is_an_error() {
        let error = file(&[item("b", "MIT", &[])], Form::Complete)
            .unwrap_err()
            .to_string();
        assert!(error.contains("text of the licence"), "{error}");
    }
}
