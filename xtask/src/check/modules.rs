//! Reads the modules of a crate and their imports from the source text. An import is a path that
//! leads to another module of the crate, in a `use` declaration, an expression or a type.
//!
//! A path to a re-exported name counts as an import of the module that defines the name. Items
//! under `#[cfg(test)]` are skipped.
use super::sources::{Source, line_of};
use std::collections::BTreeMap;

/// Maximum number of re-exports (`pub use`) that are followed to find the module that defines a
/// name. If a path has more, it counts as an import of the module that was reached.
const MOST_REEXPORTS: usize = 8;

/// Path of a module from the crate root, with one name for each level. The path of the root is
/// empty.
pub type Name = Vec<String>;

/// Module that has its own file.
#[derive(Debug)]
pub struct Module<'a> {
    /// File of the module.
    pub source: &'a Source,
    /// Paths of the imported modules, each with the number of the line that first imports it.
    pub imports: BTreeMap<Name, usize>,
}

/// Returns the modules of the crate whose root file is `root`, with their paths as keys. `sources`
/// are the files of the workspace.
pub fn modules_of_crate<'a>(sources: &'a [Source], root: &'a Source) -> BTreeMap<Name, Module<'a>> {
    let mut files = BTreeMap::new();
    let mut rest = vec![(Name::new(), root)];
    while let Some((name, source)) = rest.pop() {
        let file = File::read(&source.code);
        for child in &file.children {
            if let Some(found) = file_of(sources, source, name.is_empty(), child) {
                rest.push((joined(&name, child), found));
            }
        }
        files.insert(name, (source, file));
    }
    let modules = files.iter().map(|(name, (source, file))| {
        let mut imports = BTreeMap::new();
        for (at, path) in &file.paths {
            if let Some(module) = resolve(&files, name, path, 0).filter(|found| found != name) {
                imports
                    .entry(module)
                    .or_insert_with(|| line_of(&source.code, *at));
            }
        }
        (name.clone(), Module { source, imports })
    });
    modules.collect()
}

type Files<'a> = BTreeMap<Name, (&'a Source, File)>;

fn joined(name: &[String], child: &str) -> Name {
    [name, &[child.to_owned()]].concat()
}

/// Returns the file of the module `child`, which the file `parent` declares; `None` if the file is
/// not in `sources`. `is_root` is true if `parent` is the root file of the crate.
fn file_of<'a>(
    sources: &'a [Source],
    parent: &Source,
    is_root: bool,
    child: &str,
) -> Option<&'a Source> {
    let (folder, file) = parent.path.rsplit_once('/')?;
    let folder = if is_root || file == "mod.rs" {
        folder.to_owned()
    } else {
        format!("{folder}/{}", file.trim_end_matches(".rs"))
    };
    let paths = [
        format!("{folder}/{child}.rs"),
        format!("{folder}/{child}/mod.rs"),
    ];
    sources.iter().find(|source| paths.contains(&source.path))
}

/// Returns the module to which `path` leads if it is written in the module `name`; `None` if the
/// path leads out of the crate. `files` has the modules of the crate. `depth` is the number of
/// re-exports that the caller has followed, at most [`MOST_REEXPORTS`].
fn resolve(files: &Files, name: &[String], path: &[String], depth: usize) -> Option<Name> {
    let (first, mut rest) = path.split_first()?;
    let mut module: Name = match first.as_str() {
        "crate" => Name::new(),
        "self" => name.to_vec(),
        "super" => name.split_last()?.1.to_vec(),
        // The path begins with a child module, or leads to another crate.
        child => {
            let child = joined(name, child);
            files.contains_key(&child).then_some(child)?
        }
    };
    while let Some((next, more)) = rest.split_first() {
        let child = joined(&module, next);
        if next == "super" {
            module.pop()?;
        } else if files.contains_key(&child) {
            module = child;
        } else {
            break;
        }
        rest = more;
    }
    let (_, file) = files.get(&module)?;
    let reexport = rest.first().and_then(|item| file.reexports.get(item));
    match reexport {
        Some(path) if depth < MOST_REEXPORTS => {
            resolve(files, &module, path, depth + 1).or(Some(module))
        }
        _ => Some(module),
    }
}

/// What one source file contributes to the list of modules and imports of its crate.
#[derive(Debug, Default, PartialEq, Eq)]
struct File {
    /// Names of the modules that the file declares by `mod name;`. Their code is in other files.
    children: Vec<String>,
    /// Paths with at least two names, such as `super::links`, each with its byte offset in the
    /// file.
    paths: Vec<(usize, Vec<String>)>,
    /// Names that the file re-exports by `pub use`, each with the path to which it leads.
    reexports: BTreeMap<String, Vec<String>>,
}

impl File {
    fn read(code: &str) -> Self {
        let tokens = tokens(code);
        let mut reader = Reader {
            tokens: &tokens,
            at: 0,
            depth: 0,
            inline: Vec::new(),
            file: Self::default(),
        };
        while reader.at < tokens.len() {
            reader.step();
        }
        reader.file
    }
}

/// Splits code without comments and literals into names, `::` and other single characters. Returns
/// each with its byte offset.
fn tokens(code: &str) -> Vec<(usize, &str)> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = code[at..].chars().next() {
        let rest = &code[at..];
        let length = if is_name(first) {
            rest.find(|c| !is_name(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() {
            tokens.push((at, &rest[..length]));
        }
        at += length;
    }
    tokens
}

/// Reads the declarations of a file from its tokens.
struct Reader<'a> {
    tokens: &'a [(usize, &'a str)],
    /// Index of the next token.
    at: usize,
    /// Number of open braces before the next token.
    depth: usize,
    /// For each inline module (`mod name { ... }`) around the next token, the number of open braces
    /// within its body.
    inline: Vec<usize>,
    file: File,
}

impl<'a> Reader<'a> {
    fn token(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |(_, token)| token)
    }

    fn step(&mut self) {
        let is_name = |token: &str| token.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let (here, next) = (self.token(self.at), self.token(self.at + 1));
        let test = ["#", "[", "cfg", "(", "test", ")", "]"];
        if (0..test.len()).all(|i| self.token(self.at + i) == test[i]) {
            self.at += test.len();
            return self.skip_item();
        }
        match here {
            "{" => self.depth += 1,
            "}" => {
                self.depth = self.depth.saturating_sub(1);
                self.inline.retain(|depth| *depth <= self.depth);
            }
            "mod" if self.token(self.at + 2) == ";" => self.file.children.push(next.to_owned()),
            "mod" if self.token(self.at + 2) == "{" => self.inline.push(self.depth + 1),
            // Skips `impl Trait + use<'a>`, which captures lifetimes.
            "use" if next != "<" => return self.read_use(),
            name if is_name(name) && next == "::" => return self.read_path(),
            _ => (),
        }
        self.at += 1;
    }

    /// Skips the rest of an item: up to its semicolon, or to the end of its body.
    fn skip_item(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.tokens.len() {
            let token = self.token(self.at);
            self.at += 1;
            match token {
                "{" => depth += 1,
                "}" if depth == 1 => return,
                "}" => depth = depth.saturating_sub(1),
                ";" if depth == 0 => return,
                _ => (),
            }
        }
    }

    /// Reads a path in an expression or in a type, and adds it to the file's paths.
    fn read_path(&mut self) {
        let begin = self.tokens[self.at].0;
        let follows_other = self.at > 0 && self.token(self.at - 1) == "::";
        let mut path = vec![self.token(self.at).to_owned()];
        while self.token(self.at + 1) == "::"
            && (self.token(self.at + 2)).starts_with(|c: char| c.is_alphabetic() || c == '_')
        {
            self.at += 2;
            path.push(self.token(self.at).to_owned());
        }
        self.at += 1;
        if !follows_other {
            self.push(begin, path);
        }
    }

    /// Reads a `use` declaration up to its semicolon. Adds its paths to the file's paths, and the
    /// names of a `pub use` to the re-exports.
    fn read_use(&mut self) {
        let before = self.at.checked_sub(1).map_or("", |at| self.token(at));
        let public = before == "pub" || before == ")";
        let begin = self.tokens[self.at].0;
        self.at += 1;
        let mut leaves = Vec::new();
        self.read_tree(&[], &mut leaves);
        for (path, name) in leaves {
            if public && self.inline.is_empty() {
                self.file.reexports.insert(name, path.clone());
            }
            self.push(begin, path);
        }
    }

    /// Reads one branch of a `use` tree. `prefix` has the names before the branch. Appends to
    /// `leaves` each imported path and the name under which it is visible.
    fn read_tree(&mut self, prefix: &[String], leaves: &mut Vec<(Vec<String>, String)>) {
        let mut path = prefix.to_vec();
        let mut alias = None;
        while self.at < self.tokens.len() {
            let token = self.token(self.at);
            match token {
                ";" | "," | "}" => break,
                "{" => {
                    self.at += 1;
                    while !matches!(self.token(self.at), "}" | ";" | "") {
                        self.read_tree(&path, leaves);
                        if self.token(self.at) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                "as" => {
                    self.at += 1;
                    alias = Some(self.token(self.at).to_owned());
                }
                "::" => (),
                // `a::{self}` names `a`.
                "self" if !path.is_empty() => (),
                name => path.push(name.to_owned()),
            }
            self.at += 1;
        }
        let name = alias.or_else(|| path.last().cloned()).unwrap_or_default();
        leaves.push((path, name));
    }

    fn push(&mut self, at: usize, mut path: Vec<String>) {
        // An inline module is in the same file as its parent, so `super` in it is the module of
        // this file.
        for _ in &self.inline {
            if path.first().is_some_and(|first| first == "super") {
                path[0] = "self".to_owned();
                if path.get(1).is_some_and(|next| next == "super") {
                    path.remove(0);
                }
            }
        }
        self.file.paths.push((at, path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split("::").map(str::to_owned).collect()
    }

    #[test]
    fn paths_of_a_file_are_read() {
        let code = "pub use a::{self, b::{C, d as D}, *};\nmod x;\nmod y {\n use super::z::Z;\n}\n\
                    fn f() { crate::g::h(); Self::i(); j.k() }\n#[cfg(test)]\nmod tests { use \
                    q::r; }\n\
                    #[cfg(test)]\nuse s::t;\nuse super::super::u;\n";
        let file = File::read(code);
        assert_eq!(file.children, ["x"]);
        let paths: Vec<String> = file.paths.iter().map(|(_, path)| path.join("::")).collect();
        assert_eq!(
            paths,
            [
                "a",
                "a::b::C",
                "a::b::d",
                "a::*",
                "self::z::Z",
                "crate::g::h",
                "Self::i",
                "super::super::u"
            ]
        );
        assert_eq!(file.reexports["D"], path("a::b::d"));
        assert_eq!(file.reexports["C"], path("a::b::C"));
    }

    #[test]
    fn what_is_no_import_is_read_to_its_end() {
        let code = "fn f<'a>() -> impl I + use<'a> { g(); a::h(); }\nuse {\na::b; c::d;";
        let file = File::read(code);
        let paths: Vec<String> = file.paths.iter().map(|(_, path)| path.join("::")).collect();
        assert_eq!(paths, ["a::h", "a::b", "c::d"]);
    }

    #[test]
    fn imports_lead_to_the_module_that_defines_a_name() {
        let sources = [
            Source::new("c/src/lib.rs", "mod a;\nmod b;\n"),
            Source::new("c/src/a/mod.rs", "mod deep;\npub use deep::Item;\n"),
            Source::new("c/src/a/deep.rs", "use super::Other;\n"),
            Source::new("c/src/b.rs", "\nuse crate::a::Item;\nuse std::fs;\n"),
        ];
        let modules = modules_of_crate(&sources, &sources[0]);
        assert_eq!(modules.len(), 4);
        let imports = |name: &str| &modules[&path(name)].imports;
        assert_eq!(*imports("b"), BTreeMap::from([(path("a::deep"), 2)]));
        assert_eq!(*imports("a"), BTreeMap::from([(path("a::deep"), 2)]));
        assert_eq!(*imports("a::deep"), BTreeMap::from([(path("a"), 1)]));
    }
}
