//! Links of the book's pages, as they were made.
use super::links::join;
use anyhow::{Context, Result};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use walkdir::WalkDir;

/// Pages that name others from the site's root, wherever that is going to be.
const UNPLACED: [&str; 1] = ["404.html"];

/// The number of pages below a folder, and the links that lead to no file or to no heading.
///
/// # Errors
/// If a page cannot be read.
pub fn check(folder: &Path) -> Result<(usize, Vec<String>)> {
    let mut pages: HashMap<String, String> = HashMap::new();
    for entry in WalkDir::new(folder) {
        let entry = entry?;
        let name = entry
            .path()
            .strip_prefix(folder)?
            .to_string_lossy()
            .replace('\\', "/");
        if name.ends_with(".html") && !UNPLACED.contains(&name.as_str()) {
            let text = fs::read_to_string(entry.path()).with_context(|| name.clone())?;
            pages.insert(name, text);
        }
    }
    let ids: HashMap<&str, HashSet<String>> = (pages.iter())
        .map(|(name, text)| (name.as_str(), attributes(text, "id").collect()))
        .collect();
    let mut broken = Vec::new();
    for (name, text) in &pages {
        for link in attributes(text, "href").chain(attributes(text, "src")) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            if path.contains(':') {
                continue;
            }
            let path = match path {
                "" => name.clone(),
                path => join(name, path),
            };
            let leads = match ids.get(path.as_str()) {
                Some(ids) => anchor.is_empty() || ids.contains(anchor),
                None => folder.join(&path).is_file(),
            };
            if !leads {
                broken.push(format!("{name}: {link}"));
            }
        }
    }
    broken.sort();
    broken.dedup();
    Ok((pages.len(), broken))
}

/// Values of an attribute in a page, as mdBook writes them: between double quotes.
fn attributes<'a>(html: &'a str, name: &str) -> impl Iterator<Item = String> + use<'a> {
    let opening = format!(" {name}=\"");
    let mut rest = html;
    std::iter::from_fn(move || {
        rest = &rest[rest.find(&opening)? + opening.len()..];
        let value = &rest[..rest.find('"')?];
        Some(unescaped(value))
    })
}

/// A value without the escapes of HTML and of addresses.
fn unescaped(value: &str) -> String {
    let value = value.replace("&amp;", "&");
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_nothing_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let page = "<h1 id=\"a-\u{e9}\"></h1><a class=\"x\" href=\"b.html#c\">\
                    <a href=\"#a-%C3%A9\"><a href=\"https://e.org\"><img src=\"p.svg\">\
                    <a href=\"b.html#no\"><a href=\"no.html\">";
        fs::write(folder.path().join("a.html"), page).unwrap();
        fs::write(folder.path().join("b.html"), "<h2 id=\"c\"></h2>").unwrap();
        fs::write(folder.path().join("404.html"), "<a href=\"/x.css\">").unwrap();
        let (pages, broken) = check(folder.path()).unwrap();
        assert_eq!(pages, 2);
        assert_eq!(
            broken,
            ["a.html: b.html#no", "a.html: no.html", "a.html: p.svg"]
        );
    }
}
