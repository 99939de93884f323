//! Finds the links of a Markdown document and the anchors of its headings, for the book and for
//! `cargo xtask check`.
use std::collections::HashMap;

/// Link or image in a Markdown document.
#[derive(Debug, PartialEq, Eq)]
pub struct Link<'a> {
    /// Byte offset of the link's target in the document.
    pub at: usize,
    /// Target as the document writes it, for example `../tuning.md#radius`.
    pub target: &'a str,
}

impl<'a> Link<'a> {
    /// Returns the target of the link: the path of the file from the workspace's root, and the
    /// anchor of the heading, which is empty if the link has none. `from` is the path of the
    /// document that contains the link. Returns `None` for a link to another site.
    pub fn within(&self, from: &str) -> Option<(String, &'a str)> {
        if self.target.contains("://") || self.target.starts_with("mailto:") {
            return None;
        }
        let (path, anchor) = self.target.split_once('#').unwrap_or((self.target, ""));
        let path = if path.is_empty() {
            from.to_owned()
        } else {
            join(from, path)
        };
        Some((path, anchor))
    }
}

/// Resolves the path `relative`, which the file at `from` mentions. Returns a path from the
/// workspace's root, or an empty path if `relative` leaves the root.
pub fn join(from: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "." => (),
            ".." if parts.pop().is_none() => return String::new(),
            ".." => (),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the links and images of a Markdown document in order. Skips code blocks and quoted code.
pub fn links(text: &str) -> Vec<Link<'_>> {
    let prose = without_code(text);
    let mut links = Vec::new();
    for (at, _) in prose.match_indices("](") {
        let start = at + 2;
        if let Some(length) = prose[start..].find(')') {
            links.push(Link {
                at: start,
                target: &text[start..start + length],
            });
        }
    }
    let mut start = 0;
    for line in prose.split_inclusive('\n') {
        // Definition of a link's target: `[name]: target`.
        if line.starts_with('[')
            && let Some((name, _)) = line.split_once("]: ")
            && !name.contains(']')
        {
            let at = start + name.len() + 3;
            links.push(Link {
                at,
                target: text[at..start + line.len()].trim_end(),
            });
        }
        start += line.len();
    }
    links.sort_by_key(|link| link.at);
    links
}

/// Returns a Markdown document in which blanks replace all bytes of code, so that byte offsets do
/// not change.
fn without_code(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    // Quoted code may continue on the next line, but not after its paragraph.
    let (mut fenced, mut quoted) = (false, false);
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        quoted &= !is_fence && !line.trim().is_empty();
        for c in line.chars() {
            quoted ^= c == '`' && !is_fence && !fenced;
            if c == '\n' || !(fenced || is_fence || quoted || c == '`') {
                prose.push(c);
            } else {
                prose.extend(std::iter::repeat_n(' ', c.len_utf8()));
            }
        }
        fenced ^= is_fence;
    }
    prose
}

/// Returns the anchors of a document's headings in order, as GitHub and mdBook create them.
pub fn slugs(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut times: HashMap<String, usize> = HashMap::new();
    let mut slugs = Vec::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        if fenced || is_fence || !(1..=6).contains(&level) || !title.starts_with(' ') {
            continue;
        }
        let slug = slug(title.trim());
        let time = times.entry(slug.clone()).or_default();
        slugs.push(match *time {
            0 => slug,
            number => format!("{slug}-{number}"),
        });
        *time += 1;
    }
    slugs
}

fn slug(title: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let lower = title.chars().filter(kept).flat_map(char::to_lowercase);
    lower.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "[a](x.md) `[b](y.md)` ![p\nq](z.svg)\n```\n[c](no.md)\n```\n\
                    [d]: https://e.org\n[`<~>`](o.md#h) costs `x\ny` ` 1\n\n[e](p.md)\n";
        let targets: Vec<&str> = links(text).iter().map(|link| link.target).collect();
        assert_eq!(
            targets,
            ["x.md", "z.svg", "https://e.org", "o.md#h", "p.md"]
        );
        assert!(
            links(text)
                .iter()
                .all(|link| text[link.at..].starts_with(link.target))
        );
    }

    #[test]
    fn targets_are_relative_to_their_document() {
        let link = |target| Link { at: 0, target };
        let within = |target| link(target).within("docs/a/b.md");
        assert_eq!(within("../c.md#d"), Some(("docs/c.md".to_owned(), "d")));
        assert_eq!(within("#d"), Some(("docs/a/b.md".to_owned(), "d")));
        assert_eq!(
            within("../../README.md"),
            Some(("README.md".to_owned(), ""))
        );
        assert_eq!(within("../../../x"), Some((String::new(), "")));
        assert_eq!(within("https://e.org/#d"), None);
    }

    #[test]
    fn headings_have_addresses() {
        let text = "# A `b_c(d)` \u{2192} e, F\n```\n# no\n```\n## A\n### A\n#no\n";
        assert_eq!(slugs(text), ["a-b_cd--e-f", "a", "a-1"]);
    }
}
