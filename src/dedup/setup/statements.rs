//! Statements of the result of `neardup_setup`, filled in from templates.
use std::ffi::{CStr, CString};

use super::Goal;
use super::subject::Subject;
use super::templates::{self, Template};
use crate::dedup::trigger::compute;
use crate::dedup::trigger::trigger_arguments::Manual;
use neardup_blocktree::metric::Metric;
use neardup_pg::catalog;
use neardup_pg::order_by::OrderBy;

/// Number of bits of a fingerprint. The statements make fingerprints with `minhash64`.
const FINGERPRINT_BITS: u32 = 64;

/// Row of the result of `neardup_setup`: a statement to run.
pub struct Step {
    /// Number of the statement within its part, from 1.
    pub number: i32,
    /// `add` or `remove`.
    pub part: &'static str,
    pub statement: Vec<u8>,
    /// Note for the user who runs the statement.
    pub note: Vec<u8>,
}

/// Returns the statements that drop invalid indexes and add objects, then the statements that
/// remove these objects.
pub fn steps(subject: &Subject, invalid_indexes: &[CString]) -> Vec<Step> {
    let (add, remove) = match (subject.goal, &subject.keep) {
        (Goal::Search, _) => (templates::ADD_SEARCH, templates::REMOVE_SEARCH),
        (Goal::Skip | Goal::Error, _) => (templates::ADD_RULE, templates::REMOVE_RULE),
        (Goal::Mark, None) => (templates::ADD_MARKS, templates::REMOVE_MARKS),
        (Goal::Mark, Some(_)) => (templates::ADD_MARKS_IN_ORDER, templates::REMOVE_MARKS),
    };
    let values = Values::new(subject);
    let leftovers = invalid_indexes.iter().map(|index| {
        let mut values = values.clone();
        values.add("invalid_index", values.in_schema(index));
        (values, &templates::DROP_INVALID_INDEX)
    });
    let add = leftovers.chain(add.iter().map(|template| (values.clone(), template)));
    let remove = remove.iter().map(|template| (values.clone(), template));
    numbered("add", add)
        .chain(numbered("remove", remove))
        .collect()
}

fn numbered<'a>(
    part: &'static str,
    templates: impl Iterator<Item = (Values, &'a Template)>,
) -> impl Iterator<Item = Step> {
    (1..)
        .zip(templates)
        .map(move |(number, (values, template))| Step {
            number,
            part,
            statement: values.fill(template.statement),
            note: values.fill(template.note),
        })
}

/// Values for the names in braces in templates.
#[derive(Clone)]
struct Values {
    /// Schema of the table.
    schema: CString,
    values: Vec<(&'static str, Vec<u8>)>,
}

impl Values {
    fn new(subject: &Subject) -> Self {
        let (table, names) = (subject.table, &subject.names);
        let mut values = Values {
            schema: catalog::schema_name(table.schema()),
            values: Vec::new(),
        };
        let name = table.qualified_name();
        let literal = CString::new(name.as_slice()).unwrap_or_default();
        values.add("table_literal", catalog::literal(&literal));
        values.add("table", name);
        let extension = catalog::schema_name(subject.types.schema());
        values.add("extension", catalog::quoted(&extension));
        for (name, value) in [
            ("text", &subject.text),
            ("fp", &names.fingerprint),
            ("mark", &names.mark),
            ("trigger", &names.trigger),
            ("marks_trigger", &names.marks_trigger),
            ("search_index", &names.search_index),
            ("fp_index", &names.fingerprint_index),
            ("mark_index", &names.mark_index),
        ] {
            values.add(name, catalog::quoted(value));
        }
        for (name, index) in [
            ("search_index_in_schema", &names.search_index),
            ("fp_index_in_schema", &names.fingerprint_index),
            ("mark_index_in_schema", &names.mark_index),
        ] {
            values.add(name, values.in_schema(index));
        }
        values.add("similarity", subject.similarity.to_string().into_bytes());
        let metric = Metric::Hamming {
            bits: FINGERPRINT_BITS,
        };
        // The bound is a similarity in the right form, so it has a radius.
        let radius = subject.arguments.near.max_distance(metric);
        let radius = radius.ok().flatten().unwrap_or_default();
        values.add("radius", radius.to_string().into_bytes());
        for (name, text) in [
            ("fingerprint", catalog::quoted(&subject.text)),
            ("fingerprint_of_row", column_of_row(&subject.text)),
            ("fingerprint_of_parameter", b"$1".to_vec()),
        ] {
            let parameters = &subject.arguments.parameters;
            let call = compute::call(subject.types, c"minhash64", parameters, &text);
            values.add(name, call);
        }
        values.add("scope", scope_columns(&subject.arguments.scope));
        values.add("update_of", update_of(subject));
        values.add("key_type", subject.key_type.clone());
        let key = subject.key_column.map(|key| table.column_name(key));
        values.add(
            "key",
            key.map_or_else(Vec::new, |key| catalog::quoted(&key)),
        );
        let keep = subject.keep.as_ref().map(OrderBy::sql);
        values.add("keep", keep.unwrap_or_default());
        let written: Vec<Vec<u8>> = (subject.written.iter())
            .map(|argument| catalog::literal(argument))
            .collect();
        values.add("arguments", written.join(b", ".as_slice()));
        values.add("quote", dollar_quote(&values));
        values
    }

    fn add(&mut self, name: &'static str, value: Vec<u8>) {
        self.values.push((name, value));
    }

    /// Returns the qualified name of an index, which is in the table's schema.
    fn in_schema(&self, index: &CString) -> Vec<u8> {
        catalog::qualified(&self.schema, index)
    }

    /// Replaces the names in braces in a template by their values. Braces within a value are kept.
    fn fill(&self, template: &str) -> Vec<u8> {
        let mut parts = template.split('{');
        let mut filled = parts.next().unwrap_or_default().as_bytes().to_vec();
        for part in parts {
            let (name, text) = part.split_once('}').expect("a template closes its braces");
            let mut values = self.values.iter();
            let (_, value) = (values.find(|(known, _)| *known == name))
                .unwrap_or_else(|| panic!("a template has the unknown name {name}"));
            filled.extend_from_slice(value);
            filled.extend_from_slice(text.as_bytes());
        }
        filled
    }
}

/// Returns SQL for a column of the table, whose alias in the templates is `t`.
fn column_of_row(column: &CStr) -> Vec<u8> {
    [b"t.".as_slice(), &catalog::quoted(column)].concat()
}

/// Returns the leading columns of an index: quoted names, each followed by a comma.
fn scope_columns(scope: &[CString]) -> Vec<u8> {
    scope
        .iter()
        .flat_map(|column| [catalog::quoted(column), b", ".to_vec()].concat())
        .collect()
}

/// Returns the column list ` OF ...` for the UPDATE event of the trigger. Returns nothing if the
/// option `manual` has a condition on rows. The condition may use any column, so the trigger must
/// fire for every UPDATE.
fn update_of(subject: &Subject) -> Vec<u8> {
    if matches!(subject.arguments.manual, Manual::Where(_)) {
        return Vec::new();
    }
    let mut columns = vec![subject.text.clone()];
    if subject.goal == Goal::Mark {
        columns.push(subject.names.fingerprint.clone());
        columns.push(subject.names.mark.clone());
    }
    columns.extend(subject.arguments.scope.iter().cloned());
    let confirmed = subject.arguments.confirm.as_ref();
    columns.extend(confirmed.map(|confirm| confirm.column.clone()));
    let timed = subject.arguments.time.as_ref();
    columns.extend(timed.map(|time| time.column.clone()));
    // The server rejects a column that is listed twice.
    let mut names: Vec<Vec<u8>> = Vec::new();
    for column in &columns {
        let name = catalog::quoted(column);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    [b" OF ".as_slice(), &names.join(b", ".as_slice())].concat()
}

/// Returns a dollar quote that no value contains.
fn dollar_quote(values: &Values) -> Vec<u8> {
    let is_free = |quote: &[u8]| {
        let mut values = values.values.iter();
        !values.any(|(_, value)| value.windows(quote.len()).any(|part| part == quote))
    };
    let quotes = (1..).map(|number| format!("$neardup{number}$").into_bytes());
    let mut quotes = std::iter::once(b"$neardup$".to_vec()).chain(quotes);
    quotes
        .find(|quote| is_free(quote))
        .expect("values are finite")
}
