//! Arguments of the trigger `neardup_dedup`: column names, then options `name=value`.
use std::ffi::{CStr, CString};

use super::bound_argument::BoundArgument;
use super::names::{self, cstring};
use crate::dedup::bound::IndexBounds;
use neardup_blocktree::metric::NEAR_DUPLICATE_SIMILARITY;
use neardup_pg::caller_sql::Condition;
use neardup_pg::errors::UserError;
use neardup_pg::rel::Trigger;

/// Action on a new row that is a near-duplicate of an existing row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Does not write the row.
    Skip,
    /// Raises error 23P01 instead of writing the row.
    Error,
    /// Writes the row, with the key of the existing row in this column.
    Mark(CString),
    /// Does not write the row, but records it in a log table.
    Log(Log),
}

/// Log table of `action=log`, which records the skipped rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Name of the log table, as written.
    pub table: CString,
    /// Columns of the skipped rows that are not recorded.
    pub omit: Vec<CString>,
}

/// Option `manual`: whether the trigger obeys the marks that statements set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manual {
    /// All marks (`manual=true`).
    All,
    /// No marks (`manual=false`).
    None,
    /// Marks of rows that meet this condition (`manual=<condition>`).
    Where(CString),
}

impl Manual {
    /// Returns the condition of the option, or `None` if the option is missing, true or false.
    pub fn condition(&self) -> Option<Condition> {
        match self {
            Manual::Where(text) => Some(Condition::parse("manual", text.to_bytes())),
            Manual::All | Manual::None => None,
        }
    }
}

/// Options `time` and `within`: rows are compared only if their times are near each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeArgument {
    /// Name of the column with the times or ranges.
    pub column: CString,
    /// Maximum distance of two times, as written. `None` for ranges.
    pub within: Option<CString>,
}

/// Option `confirm`: the texts of near rows are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Confirm {
    /// Name of the text column.
    pub column: CString,
    /// Minimum Jaccard similarity of the texts.
    pub similarity: f64,
}

impl Confirm {
    /// Creates the option from its text column and the value of the option `similarity`. Without
    /// that option, the minimum similarity is `usual`.
    ///
    /// # Errors
    /// A sentence that explains why the similarity is invalid.
    pub fn new(column: CString, similarity: Option<&CStr>, usual: f64) -> Result<Self, String> {
        let similarity = match similarity {
            None => Some(usual),
            Some(text) => text.to_str().ok().and_then(|text| text.parse().ok()),
        };
        let similarity = similarity.filter(|similarity| (0.0..=1.0).contains(similarity));
        let similarity = similarity.ok_or("The similarity must be a number from 0 to 1.")?;
        Ok(Confirm { column, similarity })
    }
}

/// Arguments of one trigger. Column names are in the encoding of the database.
#[derive(Clone, Debug, PartialEq)]
pub struct Arguments {
    /// Name of the trigger, for messages.
    name: String,
    /// Column of the fingerprint or signature.
    pub fingerprint: CString,
    /// Column of the text that the trigger computes fingerprints from. `None` if the row has its
    /// fingerprint already.
    pub text: Option<CString>,
    /// Bound of near-duplicates.
    pub near: BoundArgument,
    /// Column of the texts that are compared, and their minimum similarity. `None` without the
    /// option `confirm`.
    pub confirm: Option<Confirm>,
    /// Action on a new row that is a near-duplicate of an existing row.
    pub action: Action,
    /// Column that identifies rows to users. `None` for the primary key.
    pub key: Option<CString>,
    /// Scope columns, whose values must be equal in compared rows.
    pub scope: Vec<CString>,
    /// Options `time` and `within`. `None` if rows are compared whatever their times.
    pub time: Option<TimeArgument>,
    /// True if the client gets a notice of each row that the trigger skips.
    pub notice: bool,
    /// Whether the trigger obeys the marks that statements set.
    pub manual: Manual,
    /// Name of the function that makes fingerprints. `None` for the default of the fingerprint
    /// column's type.
    pub function: Option<CString>,
    /// Names and values of the options of the function that makes fingerprints.
    pub parameters: Vec<(CString, CString)>,
}

/// Names of the trigger's own options. All other options belong to the function that makes
/// fingerprints.
pub const OPTIONS: [&str; 14] = [
    "radius",
    "similarity",
    "action",
    "mark",
    "manual",
    "log",
    "omit",
    "notice",
    "key",
    "scope",
    "function",
    "confirm",
    "time",
    "within",
];

/// Arguments of a trigger, divided into column names and options.
struct Sorted {
    /// Names of the fingerprint column and, if there is one, of the text column.
    columns: Vec<CString>,
    /// Names and values of the trigger's own options.
    own: Vec<(&'static str, CString)>,
    parameters: Vec<(CString, CString)>,
}

impl Sorted {
    fn new(arguments: &[CString]) -> Result<Self, String> {
        let mut sorted = Sorted {
            columns: Vec::new(),
            own: Vec::new(),
            parameters: Vec::new(),
        };
        for argument in arguments {
            let bytes = argument.to_bytes();
            let equals = match names::is_quoted(bytes) {
                true => None,
                false => bytes.iter().position(|&byte| byte == b'='),
            };
            match equals {
                Some(at) => {
                    sorted.option(bytes[..at].trim_ascii(), bytes[at + 1..].trim_ascii())?
                }
                None => sorted.column(bytes)?,
            }
        }
        Ok(sorted)
    }

    fn column(&mut self, argument: &[u8]) -> Result<(), String> {
        if !self.parameters.is_empty() || self.columns.len() == 2 {
            return Err(format!(
                "\"{}\" is not an option. Write options as name=value.",
                String::from_utf8_lossy(argument)
            ));
        }
        self.columns.push(names::single(argument)?);
        Ok(())
    }

    fn option(&mut self, name: &[u8], value: &[u8]) -> Result<(), String> {
        let twice = || {
            let name = String::from_utf8_lossy(name);
            format!("The option \"{name}\" is given twice.")
        };
        let value = cstring(value);
        if name == b"distance" {
            return Err(
                "The option \"distance\" does not exist. The bound is \"radius\" for fingerprints, \
                 such as radius=6, and \"similarity\" for signatures, such as similarity=0.8."
                    .into(),
            );
        }
        match OPTIONS.into_iter().find(|own| own.as_bytes() == name) {
            Some(own) if self.own.iter().any(|(other, _)| *other == own) => return Err(twice()),
            Some(own) => self.own.push((own, value)),
            None if (self.parameters.iter()).any(|(other, _)| other.as_bytes() == name) => {
                return Err(twice());
            }
            None => self.parameters.push((cstring(name), value)),
        }
        Ok(())
    }

    /// Returns the value of one of the trigger's own options.
    fn get(&self, name: &str) -> Option<&CStr> {
        let found = self.own.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| value.as_c_str())
    }

    /// Returns the column name in an option of the trigger, or `None` without the option.
    fn column_option(&self, name: &str) -> Result<Option<CString>, String> {
        (self
            .get(name)
            .map(|value| names::single(value.to_bytes()))
            .transpose())
        .map_err(|why| format!("The option \"{name}\" must be a column. {why}"))
    }

    /// Returns the column names in the option `name` of the trigger. Returns no names if the
    /// trigger does not have the option. `example` is a valid value, which an error message shows.
    fn columns_option(&self, name: &str, example: &str) -> Result<Vec<CString>, String> {
        let list = self.get(name).map(|value| names::list(value.to_bytes()));
        let list = list.transpose().map_err(|why| {
            format!(
                "The option \"{name}\" must be a list of columns, such as {name}={example}. {why}"
            )
        })?;
        Ok(list.unwrap_or_default())
    }

    /// Returns the value of the option `name`, which is true or false. Returns `default` if the
    /// trigger does not have the option.
    fn flag(&self, name: &str, default: bool) -> Result<bool, String> {
        match self.get(name).map(CStr::to_bytes) {
            None => Ok(default),
            Some(b"true" | b"on") => Ok(true),
            Some(b"false" | b"off") => Ok(false),
            Some(other) => Err(format!(
                "The option \"{name}\" must be true or false, not \"{}\".",
                String::from_utf8_lossy(other)
            )),
        }
    }

    fn manual(&self) -> Manual {
        match self.flag("manual", true) {
            Ok(true) => Manual::All,
            Ok(false) => Manual::None,
            Err(_) => Manual::Where(self.get("manual").unwrap_or_default().to_owned()),
        }
    }

    fn confirm(&self) -> Result<Option<Confirm>, String> {
        let Some(column) = self.column_option("confirm")? else {
            return Ok(None);
        };
        Confirm::new(column, self.get("similarity"), NEAR_DUPLICATE_SIMILARITY).map(Some)
    }

    fn time(&self) -> Result<Option<TimeArgument>, String> {
        let within = self.get("within").map(CStr::to_owned);
        match (self.column_option("time")?, within) {
            (Some(column), within) => Ok(Some(TimeArgument { column, within })),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(
                "The option \"within\" requires the option \"time\", such as time=published."
                    .into(),
            ),
        }
    }

    fn near(&self, confirm: Option<&Confirm>) -> Result<BoundArgument, String> {
        if let Some(confirm) = confirm {
            return Ok(match self.get("radius") {
                Some(radius) => BoundArgument::Radius(radius.to_owned()),
                None => BoundArgument::Candidates(confirm.similarity),
            });
        }
        match (self.get("radius"), self.get("similarity")) {
            (None, None) => Ok(BoundArgument::OfIndex),
            (Some(radius), None) => Ok(BoundArgument::Radius(radius.to_owned())),
            (None, Some(similarity)) => Ok(BoundArgument::Similarity(similarity.to_owned())),
            (Some(_), Some(_)) => Err("Specify \"radius\" or \"similarity\", not both.".into()),
        }
    }

    fn action(&self) -> Result<Action, String> {
        let action = self.get("action").unwrap_or(c"skip").to_bytes();
        let parsed = match action {
            b"skip" => Action::Skip,
            b"error" => Action::Error,
            b"mark" => Action::Mark(self.column_option("mark")?.ok_or(
                "The action mark needs a column for the marks, such as mark=duplicate_of.",
            )?),
            b"log" => Action::Log(Log {
                table: (self.get("log").map(CStr::to_owned))
                    .ok_or("The action log needs a table for the log, such as log=dropped.")?,
                omit: self.columns_option("omit", "body,fp")?,
            }),
            other => {
                return Err(format!(
                    "The action \"{}\" does not exist. The actions are skip, error, mark and log.",
                    String::from_utf8_lossy(other)
                ));
            }
        };
        for (name, of) in OPTIONS_OF_ACTIONS {
            let belongs = of.iter().any(|of| of.as_bytes() == action);
            if self.get(name).is_some() && !belongs {
                return Err(format!(
                    "The option \"{name}\" is valid only for the action{} {}, but the action is \
                     {}.",
                    if of.len() == 1 { "" } else { "s" },
                    of.join(" and "),
                    String::from_utf8_lossy(action)
                ));
            }
        }
        Ok(parsed)
    }
}

/// Names of the options that are valid only with some actions, and these actions.
const OPTIONS_OF_ACTIONS: [(&str, &[&str]); 5] = [
    ("log", &["log"]),
    ("mark", &["mark"]),
    ("manual", &["mark"]),
    ("omit", &["log"]),
    ("notice", &["skip", "log"]),
];

impl Arguments {
    /// Reads a trigger's arguments. Raises an error if they are invalid.
    pub fn from_trigger(trigger: &Trigger) -> Self {
        Self::read(trigger).unwrap_or_else(|why| senseless(&trigger.name.to_string_lossy(), why))
    }

    /// Reads a trigger's arguments.
    ///
    /// # Errors
    /// A sentence that explains why the arguments are invalid.
    pub fn read(trigger: &Trigger) -> Result<Self, String> {
        Self::parse(&trigger.name.to_string_lossy(), &trigger.arguments)
    }

    /// Returns whether two triggers compare the same rows: they have the same fingerprint column,
    /// the same scope columns and the same column of times.
    pub fn compares_alike(&self, other: &Self) -> bool {
        let time = |arguments: &Self| arguments.time.as_ref().map(|time| time.column.clone());
        let sorted = |scope: &[CString]| {
            let mut scope = scope.to_vec();
            scope.sort();
            scope
        };
        self.fingerprint == other.fingerprint
            && sorted(&self.scope) == sorted(&other.scope)
            && time(self) == time(other)
    }

    /// Returns whether two triggers differ at most in their bound, their action and the mark
    /// column, so that the statements of `neardup_setup` can replace one by the other.
    pub fn has_same_options(&self, other: &Self) -> bool {
        let confirmed = |arguments: &Self| arguments.confirm.as_ref().map(|c| c.column.clone());
        self.fingerprint == other.fingerprint
            && self.text == other.text
            && self.key == other.key
            && self.scope == other.scope
            && self.time == other.time
            && self.notice == other.notice
            && self.manual == other.manual
            && self.function == other.function
            && self.parameters == other.parameters
            && confirmed(self) == confirmed(other)
    }

    /// Returns whether two triggers set the same marks: they compare the same rows and texts, and
    /// have the same key column and mark column.
    pub fn marks_alike(&self, other: &Self) -> bool {
        let text = |arguments: &Self| {
            let confirm = arguments.confirm.as_ref();
            confirm.map(|confirm| confirm.column.clone())
        };
        self.compares_alike(other)
            && self.action == other.action
            && self.key == other.key
            && text(self) == text(other)
    }

    /// Raises an error if the trigger marks rows and states no bound. `bounds` are the bounds of
    /// the indexes that the trigger could use. The error lists them.
    pub fn require_bound_of_marks(&self, bounds: &IndexBounds) {
        if !matches!(
            (&self.near, &self.action),
            (BoundArgument::OfIndex, Action::Mark(_))
        ) {
            return;
        }
        let option = bounds.example("=");
        UserError::invalid_parameter(format!(
            "trigger \"{}\" marks rows but does not specify a bound",
            self.name
        ))
        .detail(
            "Without a bound of its own, the trigger would use the bound of the index. A change of \
             the index would then make existing marks wrong.",
        )
        .hint(format!(
            "Add '{option}' to the arguments of neardup_dedup in both triggers. Index {}.",
            bounds.list()
        ))
        .raise()
    }

    /// Returns the value in `meaning`. If `meaning` is an error, raises an error with its sentence,
    /// which explains why an argument of the trigger is invalid.
    pub fn or_invalid<T>(&self, meaning: Result<T, String>) -> T {
        meaning.unwrap_or_else(|why| senseless(&self.name, why))
    }

    /// Returns an error if the arguments state a similarity, but the fingerprints cannot estimate
    /// one because simhash makes them.
    pub fn check_similarity(&self) -> Result<(), String> {
        let function = self.function.as_deref().unwrap_or_default().to_bytes();
        let has_similarity = matches!(
            self.near,
            BoundArgument::Similarity(_) | BoundArgument::Candidates(_)
        );
        match has_similarity && function.starts_with(b"simhash") {
            true => Err(
                "The option \"similarity\" requires minhash64 or minhash128. The distance between \
                 simhash fingerprints does not estimate a similarity."
                    .into(),
            ),
            false => Ok(()),
        }
    }

    /// Parses the arguments of a trigger with this name.
    ///
    /// # Errors
    /// A sentence that explains why the arguments are invalid.
    pub fn parse(name: &str, arguments: &[CString]) -> Result<Self, String> {
        let sorted = Sorted::new(arguments)?;
        let mut columns = sorted.columns.iter().cloned();
        let fingerprint = columns.next().ok_or("The fingerprint column is missing.")?;
        let text = columns.next();
        let computes = sorted.get("function").map(|_| "function".to_owned());
        let computes = computes.or_else(|| {
            let (name, _) = sorted.parameters.first()?;
            Some(name.to_string_lossy().into_owned())
        });
        if let (None, Some(name)) = (&text, computes) {
            return Err(format!(
                "The option \"{name}\" is for computing fingerprints, but no text column is given. \
                 The options of neardup_dedup are {}.",
                OPTIONS.join(", ")
            ));
        }
        let confirm = sorted.confirm()?;
        Ok(Arguments {
            name: name.to_owned(),
            fingerprint,
            text,
            near: sorted.near(confirm.as_ref())?,
            confirm,
            action: sorted.action()?,
            key: sorted.column_option("key")?,
            scope: sorted.columns_option("scope", "site,language")?,
            time: sorted.time()?,
            notice: sorted.flag("notice", false)?,
            manual: sorted.manual(),
            function: sorted.get("function").map(CStr::to_owned),
            parameters: sorted.parameters,
        })
    }
}

fn senseless(trigger: &str, why: String) -> ! {
    UserError::invalid_parameter(format!(
        "trigger \"{trigger}\" passes invalid arguments to neardup_dedup"
    ))
    .detail(why)
    .hint(
        "Pass the fingerprint column, then the text column if the trigger computes the \
         fingerprint, and then options: neardup_dedup('fp', 'body', 'radius=6', 'action=skip').",
    )
    .raise()
}
