//! The trigger's arguments: columns, then `name=value`.
use std::ffi::{CStr, CString};

use super::names::{self, cstring};
use crate::am::strategies::near_radius;
use crate::pg::errors::UserError;
use crate::pg::rel::Trigger;
use crate::types::signature::{Bound, near_duplicate};

/// Action on a near-duplicate of an existing row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The row is left out.
    Skip,
    /// The statement ends with error 23P01.
    Error,
    /// The row is written, with the key of the row that it repeats in this column.
    Mark(CString),
    /// The row is left out, and recorded in this table.
    Log(CString),
}

/// Limit of near-duplicates, as it was written. Its meaning depends on the column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Near {
    /// As `~=` has it.
    Conventional,
    Distance(CString),
    Similarity(CString),
}

impl Near {
    /// The greatest distance of near-duplicates: in mismatches for signatures of `hashes` values;
    /// in bits for fingerprints, where `hashes` is `None`. An error is a sentence that says why the
    /// limit makes no sense.
    pub fn limit(&self, hashes: Option<usize>) -> Result<u32, String> {
        hashes.map_or_else(|| self.bits(), |hashes| self.mismatches(hashes))
    }

    fn bits(&self) -> Result<u32, String> {
        match self {
            Near::Conventional => Ok(near_radius(1)),
            Near::Distance(text) => number(text)
                .filter(|distance| (0..=256).contains(distance))
                .ok_or_else(|| {
                    format!(
                        "The distance is a number of bits from 0 to 256, and not \"{}\".",
                        text.to_string_lossy()
                    )
                }),
            Near::Similarity(_) => Err(
                "The option \"similarity\" is for signatures; fingerprints have a distance.".into(),
            ),
        }
    }

    /// The least similarity of signatures, for messages, if it makes sense.
    pub fn similarity(&self) -> f64 {
        let rounded = |share: f64| (share * 1e9).round() / 1e9;
        let share = match self {
            Near::Conventional => None,
            Near::Distance(text) => number(text).map(|distance: f64| rounded(1.0 - distance)),
            Near::Similarity(text) => number(text),
        };
        share.unwrap_or(0.8)
    }

    fn mismatches(&self, hashes: usize) -> Result<u32, String> {
        let (text, bound) = match self {
            Near::Conventional => return Ok(near_duplicate(hashes) as u32),
            Near::Distance(text) => (text, Bound::Distance),
            Near::Similarity(text) => (text, Bound::Similarity),
        };
        number(text)
            .filter(|share| (0.0..=1.0).contains(share))
            .map(|share| bound.mismatches(hashes, share).unsigned_abs())
            .ok_or_else(|| {
                format!(
                    "The distance or similarity of signatures is a number from 0 to 1, \
                 and not \"{}\".",
                    text.to_string_lossy()
                )
            })
    }
}

/// The arguments of one trigger. Names are in the encoding of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// The trigger's name, for messages.
    name: String,
    /// The column of the fingerprint, or of the signature.
    pub fingerprint: CString,
    /// The column of the text that it is computed from; `None`: the row comes with its fingerprint.
    pub text: Option<CString>,
    pub near: Near,
    pub action: Action,
    /// The column by which rows are named to users; `None`: the primary key.
    pub key: Option<CString>,
    /// Columns within whose equal values rows are compared.
    pub scope: Vec<CString>,
    /// Parameters of the function that makes fingerprints, by name.
    pub parameters: Vec<(CString, CString)>,
}

/// The options that are the trigger's own; all others are the fingerprint function's.
pub const OPTIONS: [&str; 7] = [
    "distance",
    "similarity",
    "action",
    "mark",
    "log",
    "key",
    "scope",
];

impl Arguments {
    /// Reads a trigger's arguments; raises an error if they make no sense.
    pub fn of(trigger: &Trigger) -> Self {
        Self::read(trigger).unwrap_or_else(|why| senseless(&trigger.name.to_string_lossy(), why))
    }

    /// Reads a trigger's arguments.
    ///
    /// # Errors
    /// A sentence that says what makes no sense about them.
    pub fn read(trigger: &Trigger) -> Result<Self, String> {
        Self::parse(&trigger.name.to_string_lossy(), &trigger.arguments)
    }

    /// Returns whether two triggers are about the same columns, and keep the same column of marks.
    pub fn marks_alike(&self, other: &Self) -> bool {
        let sorted = |scope: &[CString]| {
            let mut scope = scope.to_vec();
            scope.sort();
            scope
        };
        self.fingerprint == other.fingerprint
            && self.action == other.action
            && self.key == other.key
            && sorted(&self.scope) == sorted(&other.scope)
    }

    /// Returns the meaning of an argument, or raises the error that it has none.
    pub fn or_invalid<T>(&self, meaning: Result<T, String>) -> T {
        meaning.unwrap_or_else(|why| senseless(&self.name, why))
    }

    fn parse(name: &str, arguments: &[CString]) -> Result<Self, String> {
        let trigger = name;
        let mut columns = Vec::new();
        let (mut distance, mut similarity, mut action) = (None, None, None);
        let (mut mark, mut log, mut key, mut scope) = (None, None, None, None);
        let mut parameters: Vec<(CString, CString)> = Vec::new();
        for argument in arguments {
            let bytes = argument.to_bytes();
            let equals = match names::is_quoted(bytes) {
                true => None,
                false => bytes.iter().position(|&byte| byte == b'='),
            };
            let Some(at) = equals else {
                if !parameters.is_empty() || columns.len() == 2 {
                    return Err(format!(
                        "\"{}\" is no option: options are written as name=value.",
                        argument.to_string_lossy()
                    ));
                }
                columns.push(names::single(bytes)?);
                continue;
            };
            let name = bytes[..at].trim_ascii();
            let value = cstring(bytes[at + 1..].trim_ascii());
            let place = match name {
                b"distance" => &mut distance,
                b"similarity" => &mut similarity,
                b"action" => &mut action,
                b"mark" => &mut mark,
                b"log" => &mut log,
                b"key" => &mut key,
                b"scope" => &mut scope,
                _ => {
                    let name = cstring(name);
                    if parameters.iter().any(|(other, _)| *other == name) {
                        return Err(twice(name.as_bytes()));
                    }
                    parameters.push((name, value));
                    continue;
                }
            };
            if place.replace(value).is_some() {
                return Err(twice(name));
            }
        }
        let mut columns = columns.into_iter();
        let fingerprint = columns
            .next()
            .ok_or("The column of the fingerprint is missing.")?;
        let text = columns.next();
        if let (None, Some((name, _))) = (&text, parameters.first()) {
            return Err(format!(
                "The option \"{}\" is for computing fingerprints, but no column of a \
                 text is given. \
                 The trigger's own options are {}.",
                name.to_string_lossy(),
                OPTIONS.join(", ")
            ));
        }
        Ok(Arguments {
            name: trigger.to_owned(),
            fingerprint,
            text,
            near: match (distance, similarity) {
                (None, None) => Near::Conventional,
                (Some(distance), None) => Near::Distance(distance),
                (None, Some(similarity)) => Near::Similarity(similarity),
                (Some(_), Some(_)) => {
                    return Err("One of \"distance\" and \"similarity\" is enough.".into());
                }
            },
            action: parse_action(action.as_deref(), mark, log)?,
            key: (key.map(|key| names::single(key.to_bytes())).transpose())
                .map_err(|why| format!("The option \"key\" is a column. {why}"))?,
            scope: (scope.map(|scope| names::list(scope.to_bytes())).transpose())
                .map_err(|why| {
                    format!(
                        "The option \"scope\" is a list of columns, such as \
                         scope=site,language. {why}"
                    )
                })?
                .unwrap_or_default(),
            parameters,
        })
    }
}

fn parse_action(
    action: Option<&CStr>,
    mark: Option<CString>,
    log: Option<CString>,
) -> Result<Action, String> {
    let action = action.unwrap_or(c"skip").to_bytes();
    let surplus = match action {
        b"mark" => log.as_ref().map(|_| "log"),
        b"log" => mark.as_ref().map(|_| "mark"),
        _ => (log.as_ref().map(|_| "log")).or(mark.as_ref().map(|_| "mark")),
    };
    let parsed = match action {
        b"skip" => Action::Skip,
        b"error" => Action::Error,
        b"mark" => {
            let mark = mark.ok_or(
                "The action mark needs the column to write to, such as mark=duplicate_of.",
            )?;
            Action::Mark(
                names::single(mark.to_bytes())
                    .map_err(|why| format!("The option \"mark\" is a column. {why}"))?,
            )
        }
        b"log" => Action::Log(
            log.ok_or("The action log needs the table to write to, such as log=dropped.")?,
        ),
        other => {
            return Err(format!(
                "There is no action \"{}\": the actions are skip, error, mark and log.",
                String::from_utf8_lossy(other)
            ));
        }
    };
    match surplus {
        Some(name) => Err(format!(
            "The option \"{name}\" belongs to the action {name}, and the action is {}.",
            String::from_utf8_lossy(action)
        )),
        None => Ok(parsed),
    }
}

fn number<T: core::str::FromStr>(text: &CStr) -> Option<T> {
    text.to_str().ok()?.parse().ok()
}

fn senseless(trigger: &str, why: String) -> ! {
    UserError::invalid_parameter(format!(
        "the arguments of trigger \"{trigger}\" make no sense to neardup_dedup"
    ))
    .detail(why)
    .hint(
        "First the fingerprint's column, then the text's if the fingerprint is to be \
           computed, then options: neardup_dedup('fp', 'body', 'distance=3', 'action=skip').",
    )
    .raise()
}

fn twice(name: &[u8]) -> String {
    format!(
        "The option \"{}\" is given twice.",
        String::from_utf8_lossy(name)
    )
}
