//! Collects the licences of everything that a built library contains. cargo-about finds the
//! licences of crates.
use crate::cargo::{cargo, workspace};
use crate::program::{output, run};
use crate::tools::Tool;
use crate::ui;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

const ABOUT: Tool = Tool {
    name: "cargo-about",
    version: "0.9.3",
    options: &["--features", "cli"],
};
const SETTINGS: &str = "xtask/src/package/about.toml";
/// Text with the copyright holders of neardup itself, its data and Rust's standard library.
const HEAD: &str = include_str!("templates/copyright");
const OWN: &str = include_str!("../../../LICENSE");
/// Licence of the Unicode tables in neardup's sources.
const UNICODE: &str = include_str!("../../../crates/sketch/LICENSE-unicode");
const APACHE_NOTICE: &str = include_str!("templates/apache-2.0");
const APACHE: &str = "Apache-2.0";
const RULE: &str = "--------------------------------------------------------------------------";

/// How the licence texts appear in a licence file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The file refers to the Apache licence in /usr/share/common-licenses, as Debian requires.
    Debian,
    /// The file contains all licence texts.
    Complete,
}

/// Licences of the crates that are compiled into a library.
pub struct Licences {
    /// Output of cargo-about, which lists licences with their texts and crates.
    about: Value,
}

impl Licences {
    /// Collects the licences of the crates in the extension. `feature` is the cargo feature for the
    /// server's version, such as `pg17`.
    pub fn from_extension(feature: &str) -> Result<Self> {
        let manifest = ["--manifest-path", "Cargo.toml"];
        let features = ["--no-default-features", "--features", feature];
        Self::collect(&[&manifest[..], &features].concat())
    }

    /// Collects the licences of the crates in the native module of the Python package.
    pub fn from_python_package() -> Result<Self> {
        Self::collect(&["--manifest-path", "python/Cargo.toml"])
    }

    fn collect(selection: &[&str]) -> Result<Self> {
        let program = ABOUT.provide()?;
        ui::step("Collecting the licences of crates", || {
            run(cargo().args(["fetch", "--quiet", "--locked"]))?;
            let mut about = Command::new(&program);
            about.current_dir(workspace());
            about.args([
                "about", "generate", "--format", "json", "--config", SETTINGS,
            ]);
            about
                .args(["--locked", "--offline", "--fail"])
                .args(selection);
            let json = output(&mut about).context("cargo-about rejects a licence")?;
            let about = serde_json::from_str(&json).context("cannot read cargo-about's output")?;
            Ok(Self { about })
        })
    }

    /// Returns the text of the licence file: copyright holders, and the licence text of each crate.
    pub fn file(&self, form: Form) -> String {
        let mut file = HEAD.to_owned();
        let mut add = |title: &str, text: &str| {
            file += &format!("\n{RULE}\n{title}\n\n{}\n", text.trim_end());
        };
        add("neardup", OWN);
        add("Tables of Unicode", UNICODE);
        let mut apache = match form {
            Form::Debian => APACHE_NOTICE,
            Form::Complete => "",
        };
        for licence in list(&self.about["licenses"]) {
            let name = text(&licence["id"]);
            let crates: BTreeSet<String> = list(&licence["used_by"]).map(described).collect();
            let crates = Vec::from_iter(crates).join("\n");
            let mut body = text(&licence["text"]);
            // cargo-about lists the Apache licence with and without its appendix. The file has the
            // text once.
            if name == APACHE {
                match apache {
                    "" => apache = "The text is above.",
                    notice => body = notice,
                }
            }
            add(&format!("{crates}\nLicence: {name}"), body);
        }
        file
    }

    /// Returns all licences of the library as an SPDX expression.
    pub fn expression(&self) -> String {
        // Licences of the data and the standard library, which `HEAD` describes.
        let mut names = BTreeSet::from(["MIT", "Unicode-3.0"]);
        names.extend(list(&self.about["licenses"]).map(|licence| text(&licence["id"])));
        let names: Vec<&str> = names.into_iter().collect();
        format!("PostgreSQL AND {}", names.join(" AND "))
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the name, the version and the authors of a crate. `user` is an entry of cargo-about for
/// a crate that uses a licence. The authors are included because some licence texts do not name the
/// copyright holder.
fn described(user: &Value) -> String {
    let package = &user["crate"];
    let authors: Vec<&str> = list(&package["authors"]).map(text).collect();
    let by = if authors.is_empty() { "" } else { ", by " };
    let (name, version) = (text(&package["name"]), text(&package["version"]));
    format!("{name} {version}{by}{}", authors.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn licences() -> Licences {
        let licence = |id: &str, text: &str, name: &str, authors: &[&str]| {
            let package = json!({"name": name, "version": "1.0.0", "authors": authors});
            json!({"id": id, "text": text, "used_by": [{"crate": package}]})
        };
        let licences = [
            licence(APACHE, "1. Definitions", "a", &[]),
            licence(APACHE, "1. Definitions, appendix", "b", &[]),
            licence("MIT", "Copyright <holders>", "c", &["B <b@c.de>"]),
        ];
        Licences {
            about: json!({"licenses": licences}),
        }
    }

    #[test]
    fn every_crate_has_a_text() {
        let file = licences().file(Form::Complete);
        for part in [
            "\na 1.0.0\nLicence: Apache-2.0\n\n1. Definitions\n",
            "\nb 1.0.0\nLicence: Apache-2.0\n\nThe text is above.\n",
            "\nc 1.0.0, by B <b@c.de>\nLicence: MIT\n\nCopyright <holders>\n",
        ] {
            assert!(file.contains(part), "{part}\nis not in\n{file}");
        }
    }

    #[test]
    fn debian_has_the_apache_licence_in_a_common_place() {
        let file = licences().file(Form::Debian);
        assert!(file.contains("common-licenses/Apache-2.0") && !file.contains("1. Definitions"));
    }

    #[test]
    fn licences_are_an_expression() {
        let expected = "PostgreSQL AND Apache-2.0 AND MIT AND Unicode-3.0";
        assert_eq!(licences().expression(), expected);
    }
}
