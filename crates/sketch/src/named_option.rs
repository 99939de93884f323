//! Options whose values have names in SQL.

use std::fmt;

/// Defines an option by a single list of its values and a description of each. The description is
/// a struct with the field `name`.
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

/// Option whose values have names in SQL.
pub trait NamedOption: Copy + PartialEq + 'static {
    /// Name of the parameter.
    const PARAMETER: &str;
    /// Names of all values.
    const NAMES: &[(&str, Self)];

    /// Returns the value with this name.
    ///
    /// # Errors
    ///
    /// If no value has this name.
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

    /// Returns the name of this value.
    fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(_, value)| *value == self)
            .map_or("", |(name, _)| name)
    }
}

/// Error: a parameter does not have a value of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// Name of the parameter.
    pub parameter: &'static str,
    /// Names of all values.
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
