//! Types of the extension, which a trigger recognises by their names.
use std::ffi::CString;

use pgrx::pg_sys;

use neardup_pg::catalog;

/// SQL types of the extension, found by the schema of the extension.
#[derive(Clone, Copy)]
pub struct ExtensionTypes {
    schema: pg_sys::Oid,
}

impl ExtensionTypes {
    /// Finds the types of the extension in the schema of `function`, one of the extension's
    /// functions.
    pub fn beside(function: pg_sys::Oid) -> Self {
        ExtensionTypes {
            schema: catalog::schema_of_function(function),
        }
    }

    pub fn schema(self) -> pg_sys::Oid {
        self.schema
    }

    /// Returns the name of a type of the extension, or `None` for another type. A domain has the
    /// name of its base type.
    pub fn name(self, oid: pg_sys::Oid) -> Option<CString> {
        catalog::type_name_in(self.schema, catalog::base_type(oid))
    }
}
