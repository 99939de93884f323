//! Version differences in settings and in the storage parameters of indexes.
use pgrx::pg_sys;

/// Describes an integer storage parameter of an index (`relopt_parse_elt`). `name` is the
/// parameter's name. `offset` is where the server writes the value, in bytes from the start of the
/// structure of parsed options.
pub fn int_option(name: &'static core::ffi::CStr, offset: usize) -> pg_sys::relopt_parse_elt {
    pg_sys::relopt_parse_elt {
        optname: name.as_ptr(),
        opttype: pg_sys::relopt_type::RELOPT_TYPE_INT,
        offset: offset as core::ffi::c_int,
        // 0: the server need not record whether the option was set or has its default.
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        isset_offset: 0,
    }
}

/// Describes a floating-point storage parameter of an index; the arguments are as for
/// [`int_option`].
pub fn real_option(name: &'static core::ffi::CStr, offset: usize) -> pg_sys::relopt_parse_elt {
    pg_sys::relopt_parse_elt {
        opttype: pg_sys::relopt_type::RELOPT_TYPE_REAL,
        ..int_option(name, offset)
    }
}

/// Sets `search_path` to `pg_catalog, pg_temp` until the current nesting level of settings ends.
/// Functions of this extension need this path when they run index expressions with the rights of
/// the table's owner. With another path, the user who calls such a function could choose which
/// objects the owner's expressions use.
///
/// From version 17 on, users can have the privilege MAINTAIN for tables of other owners. So the
/// server itself sets the same path in its maintenance commands, such as REINDEX and ANALYZE.
/// Earlier versions do not change the path.
pub fn restrict_search_path() {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    // SAFETY: changes a setting of this backend. The value is that of later versions.
    unsafe {
        pg_sys::set_config_option(
            c"search_path".as_ptr(),
            c"pg_catalog, pg_temp".as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
    }
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    // SAFETY: changes a setting of this backend.
    unsafe {
        pg_sys::RestrictSearchPath()
    }
}
