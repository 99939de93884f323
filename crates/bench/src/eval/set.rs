//! Reads a set of documents with the exact Jaccard similarity of its similar pairs, on which
//! `cargo xtask eval` measures.
use crate::lines::each_line;
use anyhow::{Context, Result, ensure};
use neardup_sketch::{Sketcher, TextOptions};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use xtask::ui;

/// Numbers of two documents of a set, the smaller number first.
pub type Pair = (u32, u32);

/// Set of documents with its similar pairs (`near.tsv`) and its listed pairs (`pairs.tsv`).
pub struct Set {
    /// Name of the folder that the set was read from.
    pub name: String,
    /// Texts of the documents, by document number.
    pub texts: Vec<String>,
    /// Similar pairs with their exact Jaccard similarity. All pairs of the set that are not in
    /// `near.tsv` are less similar than these pairs.
    pub near: HashMap<Pair, f32>,
    /// Similar pairs that the evaluation skips: they count neither as found nor as found in error.
    pub ignored: HashSet<Pair>,
    /// Pairs from `pairs.tsv`, regardless of their similarity.
    pub listed: Vec<Pair>,
    /// For each document number, the identifier of the document's cluster: its connected component
    /// in the graph of the pairs in `near` and `listed`. Documents in different clusters are
    /// unrelated.
    pub cluster: Vec<u32>,
}

/// Texts of a set by document number, and the document number of each identifier.
struct Documents {
    texts: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Documents {
    fn read(dir: &Path) -> Result<Self> {
        let (mut texts, mut numbers) = (Vec::new(), HashMap::new());
        let path = required(dir, "docs", "identifier, tab, text")?;
        each_line(&path, |columns| {
            let [id, text] = columns else {
                return Err(expected("identifier, tab, text", columns));
            };
            let number = texts.len() as u32;
            if let Some(before) = numbers.insert((*id).to_owned(), number) {
                return Err(format!(
                    "the identifier {id:?} is that of document {before} too"
                ));
            }
            texts.push(unescape(text));
            Ok(())
        })?;
        ensure!(texts.len() > 1, "{} has no two documents", path.display());
        Ok(Documents { texts, numbers })
    }
}

/// Reads `near.tsv` in `dir`: pairs of documents and their Jaccard similarity. `pair` turns two
/// identifiers into document numbers.
fn read_near(
    dir: &Path,
    pair: impl Fn(&str, &str) -> Result<(u32, u32), String>,
) -> Result<HashMap<(u32, u32), f32>> {
    let mut near = HashMap::new();
    let what = "identifier, tab, identifier, tab, Jaccard similarity";
    each_line(&required(dir, "near", what)?, |columns| {
        let [a, b, similarity] = columns else {
            return Err(expected(what, columns));
        };
        let parsed = similarity.parse().ok().filter(|j| (0.0..=1.0).contains(j));
        let Some(similarity) = parsed else {
            return Err(format!("{similarity:?} is not a number from 0 to 1"));
        };
        if near.insert(pair(a, b)?, similarity).is_some() {
            return Err(format!("the pair {a:?}, {b:?} was there before"));
        }
        Ok(())
    })?;
    Ok(near)
}

impl Set {
    /// Reads a set from the folder `dir`: `docs.tsv` (identifier, text), `near.tsv` (two
    /// identifiers, Jaccard similarity) and, if it exists, `pairs.tsv` (two identifiers, anything).
    /// Each file is plain or ends in `.gz`.
    ///
    /// # Errors
    /// When a required file is missing or a line is malformed. The error names the file or line.
    pub fn read(dir: &Path) -> Result<Self> {
        let name = dir.canonicalize().ok();
        let name = name.as_deref().unwrap_or(dir).file_name();
        let name = name.unwrap_or_default().to_string_lossy().into_owned();
        let Documents { texts, numbers } = Documents::read(dir)?;
        let pair = |a: &str, b: &str| {
            let number = |id: &str| {
                let number = numbers.get(id).copied();
                number.ok_or_else(|| format!("docs has no document {id:?}"))
            };
            let (a, b) = (number(a)?, number(b)?);
            if a == b {
                return Err("a pair of a document with itself".to_owned());
            }
            Ok((a.min(b), a.max(b)))
        };
        let near = read_near(dir, pair)?;
        let mut listed = Vec::new();
        if let Some(path) = find(dir, "pairs")? {
            each_line(&path, |columns| {
                let [a, b, ..] = columns else {
                    return Err(expected("identifier, tab, identifier", columns));
                };
                listed.push(pair(a, b)?);
                Ok(())
            })?;
        }
        let cluster = clusters(texts.len(), near.keys().chain(&listed));
        Ok(Set {
            name,
            texts,
            near,
            ignored: HashSet::new(),
            listed,
            cluster,
        })
    }

    /// Returns the mean difference between two similarities of a pair: the similarity in
    /// `near.tsv`, and the similarity that neardup computes from three-word shingles of the texts.
    /// Uses at most some 1,000 pairs. Returns `None` if no similarity can be computed.
    pub fn mean_difference(&self) -> Option<f64> {
        let mut pairs: Vec<_> = self.near.iter().collect();
        pairs.sort_unstable_by_key(|(pair, _)| **pair);
        let some = pairs.iter().step_by(pairs.len().div_ceil(1000).max(1));
        let differences: Vec<f64> = some
            .filter_map(|&(&(a, b), told)| {
                let [a, b] = [a, b].map(|number| self.texts[number as usize].as_str());
                let own = Sketcher::new(TextOptions::SET).jaccard_similarity(a, b, &mut || ())?;
                Some((own - f64::from(*told)).abs())
            })
            .collect();
        let count = differences.len();
        (count > 0).then(|| differences.iter().sum::<f64>() / count as f64)
    }

    /// Moves the similar pairs that `pairs.tsv` does not list from `near` to `ignored`.
    pub fn keep_listed(&mut self) {
        let listed: HashSet<Pair> = self.listed.iter().copied().collect();
        let others = self.near.extract_if(|pair, _| !listed.contains(pair));
        self.ignored.extend(others.map(|(pair, _)| pair));
    }
}

/// Returns the path of `name.tsv` or `name.tsv.gz` in the folder `dir`; `None` if neither exists.
fn find(dir: &Path, name: &str) -> Result<Option<PathBuf>> {
    ensure!(dir.is_dir(), "{} is not a folder", dir.display());
    let paths = ["tsv", "tsv.gz"].map(|ending| dir.join(format!("{name}.{ending}")));
    Ok(paths.into_iter().find(|path| path.exists()))
}

fn required(dir: &Path, name: &str, columns: &str) -> Result<PathBuf> {
    find(dir, name)?.with_context(|| {
        format!(
            "{} has neither {name}.tsv nor {name}.tsv.gz, with {columns} in each line",
            dir.display()
        )
    })
}

fn expected(what: &str, columns: &[&str]) -> String {
    format!(
        "{} where {what} are expected",
        ui::plural(columns.len(), "column", "columns")
    )
}

/// Decodes `\t`, `\n`, `\r` and `\\` in a text of `docs.tsv`. Keeps the backslash before any other
/// character.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some('t') => plain.push('\t'),
                Some('n') => plain.push('\n'),
                Some('r') => plain.push('\r'),
                Some('\\') | None => plain.push('\\'),
                Some(other) => plain.extend(['\\', other]),
            },
            _ => plain.push(c),
        }
    }
    plain
}

/// Returns, for each of `count` documents, the connected component that contains the document in
/// the graph of `pairs`. A component is identified by its smallest document number.
fn clusters<'a>(count: usize, pairs: impl Iterator<Item = &'a Pair>) -> Vec<u32> {
    let mut parent: Vec<u32> = (0..count as u32).collect();
    fn root(parent: &mut [u32], mut at: u32) -> u32 {
        while parent[at as usize] != at {
            parent[at as usize] = parent[parent[at as usize] as usize];
            at = parent[at as usize];
        }
        at
    }
    for &(a, b) in pairs {
        let (a, b) = (root(&mut parent, a), root(&mut parent, b));
        parent[a.max(b) as usize] = a.min(b);
    }
    (0..count as u32).map(|at| root(&mut parent, at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            std::fs::write(dir.path().join(name), content).unwrap();
        }
        dir
    }

    fn failure(files: &[(&str, &str)]) -> String {
        let dir = folder(files);
        let error = format!("{:#}", Set::read(dir.path()).err().expect("an error"));
        error.replace(&dir.path().display().to_string(), "DIR")
    }

    const DOCS: (&str, &str) = (
        "docs.tsv",
        "a\tone\\ntext\nb\ttwo\\\\\nc\tthree \\x\n\nd\tfour\\",
    );
    const NEAR: (&str, &str) = ("near.tsv", "b\ta\t0.95\nc\tb\t0.4\n");

    #[test]
    fn reads_a_set() {
        let dir = folder(&[DOCS, ("pairs.tsv", "a\tb\tedit\n")]);
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all(NEAR.1.as_bytes()).unwrap();
        std::fs::write(dir.path().join("near.tsv.gz"), gz.finish().unwrap()).unwrap();
        let mut set = Set::read(dir.path()).unwrap();
        assert_eq!(set.texts, ["one\ntext", "two\\", "three \\x", "four\\"]);
        assert_eq!(set.near, HashMap::from([((0, 1), 0.95), ((1, 2), 0.4)]));
        assert_eq!(set.listed, [(0, 1)]);
        assert_eq!(set.cluster, [0, 0, 0, 3]);
        set.keep_listed();
        assert_eq!(set.near, HashMap::from([((0, 1), 0.95)]));
        assert_eq!(set.ignored, HashSet::from([(1, 2)]));
        assert_eq!(set.cluster, [0, 0, 0, 3]);
    }

    #[test]
    fn similarities_are_compared_with_those_of_words() {
        let mut set = Set {
            name: String::new(),
            texts: ["a b c d", "A B C, e", "f"].map(str::to_owned).to_vec(),
            near: HashMap::new(),
            ignored: HashSet::new(),
            listed: Vec::new(),
            cluster: vec![0, 0, 2],
        };
        assert_eq!(set.mean_difference(), None);
        // The two texts share one of their three distinct shingles.
        set.near.insert((0, 1), 0.5);
        set.near.insert((1, 2), 0.0);
        let difference = set.mean_difference().unwrap();
        assert!((difference - 1.0 / 12.0).abs() < 1e-9, "{difference}");
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        let near = |lines| failure(&[DOCS, ("near.tsv", lines)]);
        assert_eq!(
            near("a\tb\t0.9\na\tb\n"),
            "DIR/near.tsv:2: 2 columns where identifier, tab, identifier, tab, Jaccard similarity \
                are expected"
        );
        assert_eq!(
            near("a\tb\t1.5"),
            "DIR/near.tsv:1: \"1.5\" is not a number from 0 to 1"
        );
        assert_eq!(
            near("a\tb\tNaN"),
            "DIR/near.tsv:1: \"NaN\" is not a number from 0 to 1"
        );
        assert_eq!(
            near("a\tx\t0.5"),
            "DIR/near.tsv:1: docs has no document \"x\""
        );
        assert_eq!(
            near("a\ta\t1"),
            "DIR/near.tsv:1: a pair of a document with itself"
        );
        assert_eq!(
            near("a\tb\t1\n\nb\ta\t1"),
            "DIR/near.tsv:3: the pair \"b\", \"a\" was there before"
        );
        assert_eq!(
            failure(&[("docs.tsv", "a\tx\nb\n"), NEAR]),
            "DIR/docs.tsv:2: 1 column where identifier, tab, text are expected"
        );
        assert_eq!(
            failure(&[("docs.tsv", "a\tx\na\ty\n"), NEAR]),
            "DIR/docs.tsv:2: the identifier \"a\" is that of document 0 too"
        );
        assert_eq!(
            failure(&[("docs.tsv", "a\tx\n"), NEAR]),
            "DIR/docs.tsv has no two documents"
        );
        assert_eq!(
            failure(&[DOCS, NEAR, ("pairs.tsv", "a\n")]),
            "DIR/pairs.tsv:1: 1 column where identifier, tab, identifier are expected"
        );
        assert!(failure(&[NEAR]).starts_with("DIR has neither docs.tsv nor docs.tsv.gz"));
        assert!(failure(&[DOCS]).starts_with("DIR has neither near.tsv nor near.tsv.gz"));
        assert!(failure(&[DOCS, ("near.tsv.gz", "not gzip")]).starts_with("DIR/near.tsv.gz:1: "));
        let error = Set::read(Path::new("/nonexistent/set")).err().unwrap();
        assert_eq!(error.to_string(), "/nonexistent/set is not a folder");
    }
}
