//! Options whose values have names in SQL.

use std::fmt;

/// Defines an enum from one list of its values, and implements [`NamedOption`] for it. `$parameter`
/// is the name of the SQL parameter. Each value has a description, which is a constant of the type
/// `$Description`. The field `name` of the description is the name of the value in SQL.
macro_rules! described_option {
    (
        $(#[$about:meta])*
        pub enum $Option:ident ($parameter:literal, $Description:ident) {
            $($(#[$doc:meta])* $Value:ident => $description:expr,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Option {
            $($(#[$doc])* $Value,)*
        }

        impl $Option {
            const fn description(self) -> &'static $Description {
                match self {
                    $(Self::$Value => {
                        const DESCRIPTION: $Description = $description;
                        &DESCRIPTION
                    })*
                }
            }
        }

        impl $crate::named_option::NamedOption for $Option {
            const PARAMETER: &str = $parameter;
            const NAMES: &[(&str, Self)] =
                &[$((Self::$Value.description().name, Self::$Value),)*];
        }
    };
}
pub(crate) use described_option;

/// Option of an SQL function whose values have names, such as `tokens => 'char'`.
pub trait NamedOption: Copy + PartialEq + 'static {
    /// Name of the SQL parameter, such as `tokens`.
    const PARAMETER: &str;
    /// All values of the option, each with its SQL name.
    const NAMES: &[(&str, Self)];

    /// Returns the value whose SQL name is `name`. Upper and lower case are different.
    ///
    /// # Errors
    ///
    /// If no value has this name. The error lists all names.
    fn from_name(name: &[u8]) -> Result<Self, UnknownName> {
        Self::NAMES
            .iter()
            .find(|(known, _)| known.as_bytes() == name)
            .map(|(_, value)| *value)
            .ok_or_else(|| UnknownName {
                parameter: Self::PARAMETER,
                known: Self::NAMES.iter().map(|(name, _)| *name).collect(),
            })
    }

    /// Returns the SQL name of this value.
    fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(_, value)| *value == self)
            .map_or("", |(name, _)| name)
    }
}

/// Error: a name is not the SQL name of any value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// Name of the SQL parameter.
    pub parameter: &'static str,
    /// SQL names of all values of the option.
    pub known: Vec<&'static str>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} must be one of: {}",
            self.parameter,
            self.known.join(", ")
        )
    }
}

impl std::error::Error for UnknownName {}
