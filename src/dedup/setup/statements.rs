//! Statements of the result of `neardup_setup`, filled in from templates.
use std::ffi::CString;

use super::Goal;
use super::subject::Subject;
use super::templates::{self, Template};
use crate::dedup::trigger::names;
use neardup_pg::catalog;
use neardup_sketch::minhash_fingerprint;

/// Number of bits of the fingerprints of `minhash64`, which all statements use.
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
    let (add, remove) = match subject.goal {
        Goal::Search => (templates::ADD_SEARCH, templates::REMOVE_SEARCH),
        Goal::Skip | Goal::Error => (templates::ADD_RULE, templates::REMOVE_RULE),
        Goal::Mark => (templates::ADD_MARKS, templates::REMOVE_MARKS),
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
        let radius = minhash_fingerprint::radius(subject.similarity, FINGERPRINT_BITS);
        values.add("radius", radius.to_string().into_bytes());
        values.add("key_type", subject.key_type.clone());
        values.add("arguments", arguments(subject));
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

/// Returns the arguments of the triggers in CREATE TRIGGER, as SQL literals.
fn arguments(subject: &Subject) -> Vec<u8> {
    let names = &subject.names;
    let mut arguments = vec![
        names::argument(&names.fingerprint),
        names::argument(&subject.text),
        format!("similarity={}", subject.similarity).into_bytes(),
    ];
    match subject.goal {
        Goal::Search | Goal::Skip => arguments.push(b"action=skip".to_vec()),
        Goal::Error => arguments.push(b"action=error".to_vec()),
        Goal::Mark => {
            arguments.push(b"action=mark".to_vec());
            arguments.push([b"mark=".to_vec(), names::argument(&names.mark)].concat());
        }
    }
    let literals: Vec<Vec<u8>> = (arguments.into_iter())
        .map(|argument| catalog::literal(&names::cstring(&argument)))
        .collect();
    literals.join(b", ".as_slice())
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
