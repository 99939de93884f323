//! Checks that the modules of each crate have no import cycle, and that the folders of the
//! extension import each other only in the allowed directions.
use super::Violation;
use super::directions::{DIRECTIONS, ROOT};
use super::modules::{Module, Name, modules_of_crate};
use super::sources::Source;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const CIRCLES: &str = "circles";
const DIRECTION: &str = "directions";

type Modules<'a> = BTreeMap<Name, Module<'a>>;

/// Finds modules in a cycle of imports, and imports that the table of directions ([`DIRECTIONS`])
/// does not allow.
pub fn check(sources: &[Source]) -> Vec<Violation> {
    let roots = sources.iter().filter(|source| is_root(&source.path));
    let mut violations = Vec::new();
    for root in roots {
        let modules = modules_of_crate(sources, root);
        violations.extend(circles(&modules));
        if root.path == ROOT {
            violations.extend(against_directions(&modules));
        }
    }
    violations
}

fn is_root(path: &str) -> bool {
    path == "tests/suite.rs" || path.ends_with("/lib.rs") || path.ends_with("/main.rs")
}

/// Returns a violation for each module from which a chain of imports leads back to the same module.
/// Imports of enclosing modules are allowed and do not count.
fn circles(modules: &Modules) -> Vec<Violation> {
    (modules.iter())
        .filter_map(|(name, module)| {
            let circle = shortest_circle(modules, name)?;
            let shown: Vec<String> = circle.iter().map(|name| name.join("::")).collect();
            Some(Violation {
                rule: CIRCLES,
                path: module.source.path.clone(),
                line: module.imports[&circle[1]],
                message: format!(
                    "circle of imports {}: move what both need into a module of its own",
                    shown.join(" -> ")
                ),
            })
        })
        .collect()
}

/// Returns the shortest chain of imports from the module `start` back to `start`. The chain has
/// `start` at both ends. `None` if there is no such chain.
fn shortest_circle(modules: &Modules, start: &Name) -> Option<Vec<Name>> {
    let mut previous: BTreeMap<&Name, &Name> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(name) = queue.pop_front() {
        let imports = modules[name].imports.keys();
        for import in imports.filter(|import| !name.starts_with(import)) {
            if import == start {
                let mut circle = vec![start.clone(), name.clone()];
                while let Some(before) = previous.get(circle.last()?) {
                    circle.push((*before).clone());
                }
                circle.reverse();
                return Some(circle);
            }
            if !previous.contains_key(import) {
                previous.insert(import, name);
                queue.push_back(import);
            }
        }
    }
    None
}

/// Finds imports between folders of the extension that the table of directions does not allow.
fn against_directions(modules: &Modules) -> Vec<Violation> {
    let mut violations = BTreeSet::new();
    for (name, module) in modules {
        // The root module imports every folder.
        let Some(from) = name.first() else { continue };
        let row = DIRECTIONS.iter().find(|(folder, _)| folder == from);
        let Some((_, allowed)) = row else {
            violations.insert(Violation {
                rule: DIRECTION,
                path: module.source.path.clone(),
                line: 0,
                message: format!(
                    "the table in xtask/src/check/directions.rs has no row for {from}"
                ),
            });
            continue;
        };
        for (import, &line) in &module.imports {
            let Some(to) = import.first().filter(|to| *to != from) else {
                continue;
            };
            if !allowed.contains(&to.as_str()) {
                violations.insert(Violation {
                    rule: DIRECTION,
                    path: module.source.path.clone(),
                    line,
                    message: format!(
                        "{from} does not import {to}: pass the value in, or move the item down \
                         (the table is in xtask/src/check/directions.rs)"
                    ),
                });
            }
        }
    }
    violations.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<(String, usize, &'static str)> {
        let sources: Vec<Source> = (files.iter())
            .map(|(path, text)| Source::new(path, text))
            .collect();
        (check(&sources).into_iter())
            .map(|violation| (violation.path, violation.line, violation.rule))
            .collect()
    }

    #[test]
    fn circles_are_found_with_their_lines() {
        let files = [
            ("c/src/lib.rs", "mod a;\nmod b;\nmod d;\nmod e;\n"),
            ("c/src/a.rs", "use crate::b::B;\n"),
            ("c/src/b.rs", "\nfn f() { crate::d::f() }\n"),
            ("c/src/d.rs", "\n\nuse crate::{e, a};\n"),
            ("c/src/e.rs", ""),
        ];
        let expected = [("a", 1), ("b", 2), ("d", 3)]
            .map(|(name, line)| (format!("c/src/{name}.rs"), line, CIRCLES));
        assert_eq!(found(&files), expected);
    }

    #[test]
    fn a_module_may_use_those_that_hold_it() {
        let files = [
            ("c/src/main.rs", "mod a;\n"),
            ("c/src/a/mod.rs", "mod b;\nmod d;\nuse b::f;\n"),
            ("c/src/a/b.rs", "use super::Item;\n"),
            (
                "c/src/a/d.rs",
                "use super::b;\n#[cfg(test)]\nmod tests { use super::super::d; }\n",
            ),
        ];
        assert_eq!(found(&files), []);
    }

    #[test]
    fn folders_import_in_one_direction() {
        let files = [
            (
                "src/lib.rs",
                "mod am;\nmod planner;\nmod other;\nuse am::f;\n",
            ),
            ("src/am/mod.rs", "use crate::planner::Plan;\n"),
            ("src/planner.rs", "use crate::am::Item;\n"),
            ("src/other.rs", ""),
        ];
        let directions: Vec<_> = (found(&files).into_iter())
            .filter(|found| found.2 == DIRECTION)
            .collect();
        let expected = [("src/other.rs", 0), ("src/planner.rs", 1)]
            .map(|(path, line)| (path.to_owned(), line, DIRECTION));
        assert_eq!(directions, expected);
    }
}
