//! Generates parts of the SQL reference: synopses of functions, the defaults in tables of
//! parameters, and the list of pages. They are made from the SQL script, so that names, types and
//! defaults agree with it.
use super::script::SCRIPT;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const FOLDER: &str = "docs/reference";
/// Page that lists the pages of the reference in a table. The rows of the table are generated, and
/// nothing may follow them.
const CONTENTS: &str = "docs/sql-reference.md";
const CONTENTS_HEAD: &str = "| page | contents |\n|---|---|\n";
/// Beginning of the first line of a generated code block, a synopsis. The rest of the line names
/// the functions to show, separated by blanks: `name`, or `name(first_parameter)` for one of
/// several functions with this name.
const SYNOPSIS: &str = "```synopsis ";
/// Head of a table of parameters. The second column of such a table is generated.
const PARAMETERS: &str = "| parameter | default | meaning |";
/// Maximum number of bytes of a line in a synopsis.
const COLUMNS: usize = 96;

/// Returns the path of each page of the reference that has generated parts, with the text that the
/// page should have.
///
/// # Errors
/// If a file cannot be read, or a page names a function or parameter that the script lacks.
pub fn files(root: &Path) -> Result<Vec<(String, String)>> {
    let script = fs::read_to_string(root.join(SCRIPT)).with_context(|| SCRIPT.to_owned())?;
    let functions = Functions::parse(&script)?;
    let summary = fs::read_to_string(root.join("docs/SUMMARY.md"))?;
    let mut pages = Vec::new();
    let mut contents = String::new();
    // The list has the pages in the order of the book.
    for name in summary.split("](reference/").skip(1) {
        let name = name.split(')').next().unwrap_or_default();
        let path = format!("{FOLDER}/{name}");
        let text = fs::read_to_string(root.join(&path)).with_context(|| path.clone())?;
        contents += &contents_row(name, &text);
        let text = page(&text, &functions).with_context(|| path.clone())?;
        pages.push((path, text));
    }
    let list = fs::read_to_string(root.join(CONTENTS))?;
    let (start, _) = list
        .split_once(CONTENTS_HEAD)
        .context("no table of pages")?;
    pages.push((
        CONTENTS.to_owned(),
        format!("{start}{CONTENTS_HEAD}{contents}"),
    ));
    Ok(pages)
}

/// Returns the row of the page `name` in the list of pages: the page's title with a link, and the
/// SQL names in its headings. `text` is the text of the page.
fn contents_row(name: &str, text: &str) -> String {
    let title = text.lines().next().unwrap_or_default();
    let mut entries: Vec<&str> = Vec::new();
    for heading in text.lines().filter_map(|line| line.strip_prefix("## ")) {
        let heading = heading.split(": ").next().unwrap_or(heading);
        entries.extend(heading.split(", ").filter(|it| !it.starts_with("Balls")));
    }
    let title = title.trim_start_matches("# ");
    let entries = entries.join(", ").replace('|', "\\|");
    format!("| [{title}](reference/{name}) | {entries} |\n")
}

/// Returns the text of a page with current synopses and defaults in place of those in `text`.
fn page(text: &str, functions: &Functions) -> Result<String> {
    let mut result = String::new();
    let mut selected: Vec<&Function> = Vec::new();
    let mut in_parameters = false;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("## ") {
            selected.clear();
        }
        if let Some(selectors) = line.strip_prefix(SYNOPSIS) {
            let found = functions.select(selectors)?;
            writeln!(result, "{line}")?;
            for function in &found {
                result += &function.synopsis();
            }
            result += "```\n";
            selected.extend(found);
            lines.by_ref().find(|line| *line == "```");
            continue;
        }
        in_parameters = line == PARAMETERS || in_parameters && line.starts_with('|');
        if in_parameters && line.starts_with("| `") {
            writeln!(result, "{}", parameter_row(line, &selected)?)?;
        } else {
            writeln!(result, "{line}")?;
        }
    }
    Ok(result)
}

/// Returns a row of a table of parameters with the current defaults of the parameters. `functions`
/// are the functions of the reference entry that contains the table.
fn parameter_row(row: &str, functions: &[&Function]) -> Result<String> {
    let mut cells = row.splitn(4, '|').skip(1);
    let names = cells.next().unwrap_or_default();
    let meaning = cells
        .nth(1)
        .with_context(|| format!("missing cell: {row}"))?;
    ensure!(
        !meaning.trim_matches([' ', '|']).is_empty(),
        "no meaning: {row}"
    );
    let mut defaults: Vec<&str> = Vec::new();
    for name in names.split('`').skip(1).step_by(2) {
        let parameters: Vec<&Parameter> = (functions.iter())
            .flat_map(|it| &it.parameters)
            .filter(|it| it.name == name)
            .collect();
        ensure!(
            !parameters.is_empty(),
            "no parameter {name} in the entry of: {row}"
        );
        for default in parameters.iter().filter_map(|it| it.default.as_deref()) {
            if !defaults.contains(&default) {
                defaults.push(default);
            }
        }
    }
    let defaults: Vec<String> = defaults.iter().map(|it| format!("`{it}`")).collect();
    let mut cell = defaults.join(", ");
    if !cell.is_empty() {
        cell.push(' ');
    }
    Ok(format!("|{names}| {cell}|{meaning}"))
}

/// Functions and aggregates that the SQL script creates, in the order of the script.
struct Functions(Vec<Function>);

struct Function {
    name: String,
    parameters: Vec<Parameter>,
    /// SQL type of the result, or the columns of a set or record in parentheses.
    result: String,
}

struct Parameter {
    name: String,
    sql_type: String,
    default: Option<String>,
}

impl Functions {
    fn parse(script: &str) -> Result<Self> {
        // Return types of all functions, in which aggregates look up the type of their final
        // function.
        let mut results = BTreeMap::new();
        let mut functions = Vec::new();
        for statement in script.split("\nCREATE FUNCTION ").skip(1) {
            let function = Function::parse(statement)?;
            results.insert(function.name.clone(), function.result.clone());
            functions.push(function);
        }
        for statement in script.split("\nCREATE AGGREGATE ").skip(1) {
            let mut function = Function::parse(statement)?;
            let option = |key: &str| {
                let value = statement.split_once(key)?.1;
                Some(value.split([',', '\n', ')']).next()?.trim())
            };
            let statement_end = statement.find(';').unwrap_or(statement.len());
            let statement = &statement[..statement_end];
            let finish = statement
                .contains("FINALFUNC")
                .then(|| option("FINALFUNC = "))
                .flatten();
            let result = match finish {
                Some(finish) => results.get(finish).map(String::as_str),
                None => option("STYPE = "),
            };
            function.result = result.context("aggregate without a type")?.to_owned();
            functions.push(function);
        }
        Ok(Self(functions))
    }

    /// Returns the functions that `selectors` names, separated by blanks. A selector is a name, or
    /// `name(first_parameter)`, as in the first line of a synopsis ([`SYNOPSIS`]).
    fn select(&self, selectors: &str) -> Result<Vec<&Function>> {
        let mut selected = Vec::new();
        for selector in selectors.split_whitespace() {
            let (name, first) = selector.split_once('(').unwrap_or((selector, ""));
            let first = first.trim_end_matches(')');
            let before = selected.len();
            selected.extend(self.0.iter().filter(|it| {
                let starts_with = (it.parameters.first()).is_some_and(|it| it.name == first);
                it.name == name && (first.is_empty() || starts_with)
            }));
            ensure!(
                selected.len() > before,
                "{SCRIPT} has no function {selector}"
            );
        }
        Ok(selected)
    }
}

impl Function {
    /// Parses a CREATE FUNCTION or CREATE AGGREGATE statement. `statement` begins with the name of
    /// the function.
    fn parse(statement: &str) -> Result<Self> {
        let (name, rest) = statement
            .split_once('(')
            .context("function without parameters")?;
        let (list, rest) = rest.split_at(closing_parenthesis(rest).context(name.to_owned())?);
        let mut parameters = Vec::new();
        let mut columns = Vec::new();
        for text in split_list(list) {
            match text.strip_prefix("OUT ") {
                Some(column) => columns.push(plain_type(column)),
                None => parameters.push(Parameter::parse(&text)),
            }
        }
        let returns = (rest.split_once("RETURNS"))
            .map(|(_, it)| it.split("LANGUAGE").next().unwrap_or_default().trim());
        let set = returns.and_then(|it| it.strip_prefix("SETOF "));
        let result = if !columns.is_empty() {
            let row = format!("({})", columns.join(", "));
            if set.is_some() {
                format!("setof {row}")
            } else {
                row
            }
        } else if let Some(set) = set {
            format!("setof {}", plain_type(set))
        } else {
            plain_type(returns.unwrap_or_default())
        };
        Ok(Self {
            name: name.trim().to_owned(),
            parameters,
            result,
        })
    }

    /// Returns the function's lines in a synopsis.
    fn synopsis(&self) -> String {
        let parts: Vec<String> = (self.parameters.iter())
            .map(|it| match &it.default {
                Some(default) => format!("{} {} DEFAULT {default}", it.name, it.sql_type),
                None => format!("{} {}", it.name, it.sql_type),
            })
            .collect();
        let line = format!("{}({}) → {}\n", self.name, parts.join(", "), self.result);
        if line.chars().count() <= COLUMNS {
            return line;
        }
        let mut text = format!("{}(\n", self.name);
        text += &wrapped(&parts);
        let end = format!(") → {}\n", self.result);
        if end.chars().count() <= COLUMNS {
            return text + &end;
        }
        let (start, columns) = self.result.split_once('(').unwrap_or(("", &self.result));
        let columns: Vec<String> = split_list(columns.trim_end_matches(')'));
        text + &format!(") → {start}(\n") + &wrapped(&columns) + ")\n"
    }
}

impl Parameter {
    fn parse(text: &str) -> Self {
        let (declaration, default) = match text.split_once(" DEFAULT ") {
            Some((declaration, default)) => (declaration, Some(default.to_owned())),
            None => (text, None),
        };
        let (name, sql_type) = declaration.split_once(' ').unwrap_or(("", declaration));
        Self {
            name: name.to_owned(),
            sql_type: plain_type(sql_type),
            default,
        }
    }
}

/// Replaces the type in the declaration of a parameter or column by its name in the SQL standard.
fn plain_type(declaration: &str) -> String {
    declaration.replace("float8", "double precision")
}

/// Joins the items of a list by commas, in indented lines of at most [`COLUMNS`] bytes.
fn wrapped(parts: &[String]) -> String {
    let mut text = String::new();
    let mut line = String::new();
    for (i, part) in parts.iter().enumerate() {
        let comma = if i + 1 < parts.len() { "," } else { "" };
        if !line.is_empty() && line.len() + part.len() + 2 > COLUMNS {
            text += &format!("{line}\n");
            line.clear();
        }
        line += if line.is_empty() { "    " } else { " " };
        line += part;
        line += comma;
    }
    if !line.is_empty() {
        text += &format!("{line}\n");
    }
    text
}

/// Returns the byte offset of the parenthesis that closes a list. `text` begins after the opening
/// parenthesis. `None` if the list is not closed.
fn closing_parenthesis(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(i),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Splits a list at its commas, but not at commas in parentheses. Reduces white space in the items
/// to single blanks.
fn split_list(list: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut depth = 0;
    for c in list.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 {
            items.push(String::new());
        } else if let Some(item) = items.last_mut() {
            item.push(c);
        }
    }
    let plain = |item: &String| item.split_whitespace().collect::<Vec<_>>().join(" ");
    items
        .iter()
        .map(plain)
        .filter(|item| !item.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTIONS: &str = "
CREATE FUNCTION f(relation regclass, keep text DEFAULT 'a, b',
    OUT a tid, OUT b float8)
    RETURNS SETOF record LANGUAGE C AS 'MODULE_PATHNAME', 'f';
CREATE FUNCTION f(number numeric(3, 1)) RETURNS bytea LANGUAGE C;
CREATE AGGREGATE f_agg(x text) (
    SFUNC = f, STYPE = internal,
    FINALFUNC = f
);
CREATE AGGREGATE g_agg(x text) (SFUNC = f, STYPE = bigint);
";

    #[test]
    fn synopses_have_names_types_and_defaults() -> Result<()> {
        let functions = Functions::parse(FUNCTIONS)?;
        let synopses: Vec<String> = (functions.select("f(number) f_agg g_agg")?.iter())
            .map(|it| it.synopsis())
            .collect();
        let expected = [
            "f(number numeric(3, 1)) → bytea\n",
            "f_agg(x text) → bytea\n",
            "g_agg(x text) → bigint\n",
        ];
        assert_eq!(synopses, expected);
        assert!(functions.select("h").is_err());
        Ok(())
    }

    #[test]
    fn a_page_gets_synopses_and_defaults() -> Result<()> {
        let functions = Functions::parse(&FUNCTIONS.replace("'a, b'", "NULL"))?;
        let text = "# Page\n\n## `f`\n\n```synopsis f(relation)\nold\n```\n\n\
            | parameter | default | meaning |\n|---|---|---|\n| `keep` | 5 | order |\n";
        let expected = text
            .replace(
                "old",
                "f(relation regclass, keep text DEFAULT NULL) → setof (a tid, b double precision)",
            )
            .replace("| 5 |", "| `NULL` |");
        assert_eq!(page(text, &functions)?, expected);
        let unknown = text.replace("`keep`", "`kept`");
        assert!(page(&unknown, &functions).is_err());
        Ok(())
    }
}
