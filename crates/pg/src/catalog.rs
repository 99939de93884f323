//! Lookups in the system catalogues, and names quoted for SQL text.
use std::ffi::{CStr, CString};

use pgrx::pg_sys::{self, Datum, Oid};

use super::server::{self, owned};

/// The bytes of a text; empty for `None`.
fn bytes(text: Option<CString>) -> Vec<u8> {
    text.unwrap_or_default().into_bytes()
}

/// The OID of the schema of a function; `InvalidOid` if there is no such function.
pub fn schema_of_function(function: Oid) -> Oid {
    server::get_func_namespace(function)
}

/// The name of a schema, unquoted; empty if there is no such schema.
pub fn schema_name(schema: Oid) -> CString {
    server::get_namespace_name(schema).unwrap_or_default()
}

/// The name of a function with its schema, as SQL text, quoted if necessary.
pub fn qualified_function(function: Oid) -> Vec<u8> {
    let schema = schema_name(schema_of_function(function));
    let name = server::get_func_name(function).unwrap_or_default();
    qualified(&schema, &name)
}

/// The name of a relation with its schema, as SQL text, quoted if necessary; `None` if there is no
/// such relation.
pub fn qualified_relation(relation: Oid) -> Option<Vec<u8>> {
    let name = server::get_rel_name(relation)?;
    let schema = server::get_rel_namespace(relation);
    Some(qualified(&schema_name(schema), &name))
}

/// Returns whether an extension of this name is installed in the current database.
pub fn extension_exists(name: &CStr) -> bool {
    server::get_extension_oid(name, true) != pg_sys::InvalidOid
}

/// Returns the name of a relation without its schema, for messages. Returns the OID as text if
/// there is no such relation.
pub fn relation_name(relation: Oid) -> String {
    match server::get_rel_name(relation) {
        Some(name) => name.to_string_lossy().into_owned(),
        None => relation.to_u32().to_string(),
    }
}

/// The kind of a relation (`pg_class.relkind`, such as `RELKIND_INDEX`); 0 if there is no such
/// relation.
pub fn relation_kind(relation: Oid) -> u8 {
    server::get_rel_relkind(relation) as u8
}

/// The OID of the role that owns a relation; `None` if there is no such relation.
pub fn relation_owner(relation: Oid) -> Option<Oid> {
    Some(row::<pg_sys::FormData_pg_class>(relation)?.relowner)
}

/// The name of a role for messages, and whether the role may log in; `None` if there is no such
/// role.
pub fn role(oid: Oid) -> Option<(String, bool)> {
    let role = row::<pg_sys::FormData_pg_authid>(oid)?;
    let name = name_of(&role.rolname).to_string_lossy().into_owned();
    Some((name, role.rolcanlogin))
}

/// Returns whether a type is a base type, an array of a base type, or a domain over one of these.
/// Only superusers can make base types and casts between them. Any role can make other types, such
/// as enums and ranges, with casts that call functions of that role.
pub fn is_base_type(oid: Oid) -> bool {
    let oid = base_type(oid);
    let element = array_element(oid);
    match element == pg_sys::InvalidOid {
        true => server::get_typtype(oid) as u8 == pg_sys::TYPTYPE_BASE,
        false => is_base_type(element),
    }
}

/// A name with its schema, as SQL text, quoted if necessary.
pub fn qualified(schema: &CStr, name: &CStr) -> Vec<u8> {
    bytes(server::quote_qualified_identifier(schema, name))
}

/// A name as SQL text, quoted if necessary.
pub fn quoted(name: &CStr) -> Vec<u8> {
    bytes(server::quote_identifier(name))
}

/// A text as an SQL string literal.
pub fn literal(text: &CStr) -> Vec<u8> {
    bytes(server::quote_literal_cstr(text))
}

/// Looks up a table by a name that a user has written as SQL. Returns the table's OID, and its name
/// with the schema, quoted if necessary. A name without a schema is looked up in `schema`. Raises
/// error 42P01 if there is no such table.
pub fn find_table(name: &CStr, schema: Oid) -> (Oid, Vec<u8>) {
    // SAFETY: lists and names live in the current memory context.
    unsafe {
        let names = pg_sys::textToQualifiedNameList(pg_sys::cstring_to_text(name.as_ptr()));
        let range_var = pg_sys::makeRangeVarFromNameList(names);
        if (*range_var).schemaname.is_null() {
            (*range_var).schemaname = pg_sys::get_namespace_name(schema);
        }
        // No lock, because the statement that uses the name locks the table.
        let no_lock = pg_sys::NoLock as pg_sys::LOCKMODE;
        let table =
            pg_sys::RangeVarGetRelidExtended(range_var, no_lock, 0, None, core::ptr::null_mut());
        let name =
            pg_sys::quote_qualified_identifier((*range_var).schemaname, (*range_var).relname);
        (table, bytes(owned(name)))
    }
}

/// OID of the language SQL in every database (`SQLlanguageId` in pg_language.dat).
const SQL_LANGUAGE: Oid = Oid::from_u32(14);

/// The OID of the base type of a domain, or of the type itself if it is not a domain.
pub fn base_type(oid: Oid) -> Oid {
    server::getBaseType(oid)
}

/// The OIDs of a type and, if it is a domain, of all types below it: further domains, and the base
/// type.
pub fn with_types_below(oid: Oid) -> Vec<Oid> {
    let below = |&oid: &Oid| {
        let form = row::<pg_sys::FormData_pg_type>(oid)?;
        (form.typbasetype != pg_sys::InvalidOid).then_some(form.typbasetype)
    };
    core::iter::successors(Some(oid), below).collect()
}

/// The OID of the element type of an array type; `InvalidOid` for any other type.
pub fn array_element(oid: Oid) -> Oid {
    server::get_element_type(oid)
}

/// Returns whether values of a type have the same binary form as `text`, such as `varchar`.
pub fn is_text(oid: Oid) -> bool {
    server::IsBinaryCoercible(oid, pg_sys::TEXTOID)
}

/// Returns whether a type, or the base type of a domain, holds texts: its values are stored like
/// `text`, or it is `char(n)`. Values of `char(n)` are padded with blanks, which a cast to `text`
/// removes.
pub fn is_text_or_char(oid: Oid) -> bool {
    let base = base_type(oid);
    base == pg_sys::BPCHAROID || is_text(base)
}

/// The name of a type, for messages.
pub fn type_name(oid: Oid) -> String {
    (server::format_type_be(oid).unwrap_or_default())
        .to_string_lossy()
        .into_owned()
}

/// The name of a type with its schema and its type modifier (-1 for none), as SQL text that is
/// valid under any `search_path`.
pub fn qualified_type(oid: Oid, modifier: i32) -> Vec<u8> {
    let flags = pg_sys::FORMAT_TYPE_TYPEMOD_GIVEN | pg_sys::FORMAT_TYPE_FORCE_QUALIFY;
    bytes(server::format_type_extended(oid, modifier, flags as u16))
}

/// Makes the object name `first_second_label`, or `first_label` if `second` is `None`. If the name
/// would exceed the server's maximum length, shortens `first` and `second`, as the server does for
/// names of indexes.
pub fn derived_name(first: &CStr, second: Option<&CStr>, label: &CStr) -> CString {
    server::makeObjectName(first, second, label).unwrap_or_default()
}

/// Row of a system catalogue that the server caches by the row's OID.
///
/// # Safety
/// The cache [`CachedRow::CACHE`] has rows of this type.
unsafe trait CachedRow: Copy {
    /// System cache that has the rows' OID as its key.
    const CACHE: pg_sys::SysCacheIdentifier::Type;
}

// SAFETY: the server's cache holds rows of this catalogue.
unsafe impl CachedRow for pg_sys::FormData_pg_type {
    const CACHE: pg_sys::SysCacheIdentifier::Type = pg_sys::SysCacheIdentifier::TYPEOID;
}
// SAFETY: the server's cache holds rows of this catalogue.
unsafe impl CachedRow for pg_sys::FormData_pg_operator {
    const CACHE: pg_sys::SysCacheIdentifier::Type = pg_sys::SysCacheIdentifier::OPEROID;
}
// SAFETY: the server's cache holds rows of this catalogue.
unsafe impl CachedRow for pg_sys::FormData_pg_opclass {
    const CACHE: pg_sys::SysCacheIdentifier::Type = pg_sys::SysCacheIdentifier::CLAOID;
}
// SAFETY: the server's cache holds rows of this catalogue.
unsafe impl CachedRow for pg_sys::FormData_pg_class {
    const CACHE: pg_sys::SysCacheIdentifier::Type = pg_sys::SysCacheIdentifier::RELOID;
}
// SAFETY: the server's cache holds rows of this catalogue.
unsafe impl CachedRow for pg_sys::FormData_pg_authid {
    const CACHE: pg_sys::SysCacheIdentifier::Type = pg_sys::SysCacheIdentifier::AUTHOID;
}

/// Copies the row with this OID of a system catalogue; `None` if there is no such row.
fn row<T: CachedRow>(oid: Oid) -> Option<T> {
    // SAFETY: the row is copied before it is released.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(T::CACHE as i32, oid.into());
        (!tuple.is_null()).then(|| {
            let row = *pg_sys::GETSTRUCT(tuple).cast::<T>();
            pg_sys::ReleaseSysCache(tuple);
            row
        })
    }
}

/// Copies a name in a catalogue row, as a C string.
pub fn name_of(name: &pg_sys::NameData) -> CString {
    let bytes = name.data.map(|byte| byte as u8);
    let name = CStr::from_bytes_until_nul(&bytes).expect("the server ends names with a zero byte");
    name.to_owned()
}

/// The name of the type `oid`, without its schema; `None` unless the type is in `schema`.
pub fn type_name_in(schema: Oid, oid: Oid) -> Option<CString> {
    let form = row::<pg_sys::FormData_pg_type>(oid)?;
    (form.typnamespace == schema).then(|| name_of(&form.typname))
}

/// The name of the function `function`, without its schema; `None` unless the function is in the
/// same schema and belongs to the same extension as the function `other`.
pub fn name_in_extension_of(other: Oid, function: Oid) -> Option<CString> {
    let extension_of = |function| {
        let class = pg_sys::ProcedureRelationId;
        server::getExtensionOfObject(class, function)
    };
    let is_of_extension = schema_of_function(other) == schema_of_function(function)
        && extension_of(other) == extension_of(function);
    is_of_extension.then(|| server::get_func_name(function))?
}

/// Copies the row of an operator in pg_operator; `None` if there is no such operator.
pub fn operator(oid: Oid) -> Option<pg_sys::FormData_pg_operator> {
    row(oid)
}

/// An operator as the SQL text `OPERATOR(schema.name)`; `None` if there is no such operator.
pub fn operator_text(oid: Oid) -> Option<Vec<u8>> {
    let form = operator(oid)?;
    let schema = quoted(&schema_name(form.oprnamespace));
    let name = name_of(&form.oprname);
    Some([b"OPERATOR(", schema.as_slice(), b".", name.to_bytes(), b")"].concat())
}

/// Copies the row of an operator class in pg_opclass. Raises an internal error if there is no such
/// operator class.
pub fn operator_class(class: Oid) -> pg_sys::FormData_pg_opclass {
    row(class)
        .unwrap_or_else(|| panic!("cache lookup failed for operator class {}", class.to_u32()))
}

/// The type cache's entry of a type, with the fields that `flags` (`TYPECACHE_...`) requests.
pub fn cached_type(oid: Oid, flags: u32) -> &'static pg_sys::TypeCacheEntry {
    // SAFETY: entries stay for the backend's life.
    unsafe { &*pg_sys::lookup_type_cache(oid, flags as i32) }
}

/// The OID of the default btree operator family of a type; `InvalidOid` if the type has none.
pub fn btree_family(oid: Oid) -> Oid {
    cached_type(oid, pg_sys::TYPECACHE_BTREE_OPFAMILY).btree_opf
}

/// The strategy number of an operator in an operator family; 0 if the family does not contain the
/// operator.
pub fn strategy_in_family(operator: Oid, family: Oid) -> i32 {
    server::get_op_opfamily_strategy(operator, family)
}

/// Returns the OID of an operator in an operator family. The operator is given by its strategy
/// number and by the types of its left and right operand. `None` if the family has no such
/// operator.
pub fn family_member(family: Oid, left: Oid, right: Oid, strategy: u32) -> Option<Oid> {
    let oid = server::get_opfamily_member(family, left, right, strategy as i16);
    (oid != pg_sys::InvalidOid).then_some(oid)
}

/// The OIDs of the argument types, and the OID of the result type, of a plain function. Raises an
/// internal error for aggregates, window functions and procedures, and if there is no such
/// function.
pub fn function_signature(function: Oid) -> (Vec<Oid>, Oid) {
    let (mut types, mut count) = (core::ptr::null_mut(), 0);
    // SAFETY: the server fills in an array of `count` types.
    unsafe {
        let result = pg_sys::get_func_signature(function, &mut types, &mut count);
        assert_eq!(
            pg_sys::get_func_prokind(function) as u8,
            pg_sys::PROKIND_FUNCTION
        );
        let types = (0..count as usize).map(|n| *types.add(n)).collect();
        (types, result)
    }
}

/// Kind of object to look up by name. A schema can have several operators or functions with one
/// name, so these kinds have the types of the operands or arguments too.
#[derive(Clone, Copy)]
pub enum Named<'a> {
    /// A type. Its name is unique in its schema.
    Type,
    /// A table, an index, or any other relation. Its name is unique in its schema.
    Relation,
    /// An operator with these types of its left and right operand.
    Operator(Oid, Oid),
    /// A function with these argument types.
    Function(&'a [Oid]),
}

/// Looks up the OID of an object by its schema, its name and its kind; `None` if there is no such
/// object.
pub fn find(schema: Oid, name: &CStr, kind: Named) -> Option<Oid> {
    use pg_sys::SysCacheIdentifier::{OPERNAMENSP, PROCNAMEARGSNSP, RELNAMENSP, TYPENAMENSP};
    let (schema, none) = (Datum::from(schema), Datum::null());
    // SAFETY: the keys match the key columns of the caches.
    let oid = unsafe {
        let (cache, column, [a, b, c]) = match kind {
            Named::Type => (TYPENAMENSP, pg_sys::Anum_pg_type_oid, [schema, none, none]),
            Named::Relation => (RELNAMENSP, pg_sys::Anum_pg_class_oid, [schema, none, none]),
            Named::Operator(left, right) => {
                let keys = [left.into(), right.into(), schema];
                (OPERNAMENSP, pg_sys::Anum_pg_operator_oid, keys)
            }
            Named::Function(types) => {
                let types = pg_sys::buildoidvector(types.as_ptr(), types.len() as i32);
                let keys = [Datum::from(types), schema, none];
                (PROCNAMEARGSNSP, pg_sys::Anum_pg_proc_oid, keys)
            }
        };
        pg_sys::GetSysCacheOid(cache as i32, column as i16, name.as_ptr().into(), a, b, c)
    };
    (oid != pg_sys::InvalidOid).then_some(oid)
}

/// The OIDs of the operators `=` and `<` of a type's default operator classes; `None` for each
/// operator that the type does not have.
pub fn default_operators(oid: Oid) -> (Option<Oid>, Option<Oid>) {
    let wanted = pg_sys::TYPECACHE_EQ_OPR | pg_sys::TYPECACHE_LT_OPR;
    let entry = cached_type(oid, wanted);
    let known = |operator| (operator != pg_sys::InvalidOid).then_some(operator);
    (known(entry.eq_opr), known(entry.lt_opr))
}

/// Copies the rows in pg_amop of all operators of an operator family.
pub fn family_operators(family: Oid) -> Vec<pg_sys::FormData_pg_amop> {
    let mut forms = Vec::new();
    for_each_row(Datum::from(family), |form, _| forms.push(*form));
    forms
}

/// The OID of the type that an operator returns.
pub fn operator_result(operator: Oid) -> Oid {
    server::get_op_rettype(operator)
}

/// Returns whether a type is a pseudo-type, such as `anyarray`.
pub fn is_pseudo_type(oid: Oid) -> bool {
    server::get_typtype(oid) as u8 == pg_sys::TYPTYPE_PSEUDO
}

/// Row of a system catalogue that the server caches in lists: each list has all rows with the same
/// first key.
///
/// # Safety
/// The cache [`ListedRow::CACHE`] has rows of this type.
unsafe trait ListedRow {
    /// System cache with several key columns. A list has all rows with one value of the first key
    /// column.
    const CACHE: pg_sys::SysCacheIdentifier::Type;
}

// SAFETY: the server's cache holds rows of this catalogue.
unsafe impl ListedRow for pg_sys::FormData_pg_amop {
    const CACHE: pg_sys::SysCacheIdentifier::Type = pg_sys::SysCacheIdentifier::AMOPSTRATEGY;
}
// SAFETY: the server's cache holds rows of this catalogue.
unsafe impl ListedRow for pg_sys::FormData_pg_proc {
    const CACHE: pg_sys::SysCacheIdentifier::Type = pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP;
}

/// Calls `each` for each catalogue row whose first key in [`ListedRow::CACHE`] is `key`. The
/// arguments of `each` are the row's columns of fixed length, and the whole row as a tuple.
fn for_each_row<T: ListedRow>(key: Datum, mut each: impl FnMut(&T, pg_sys::HeapTuple)) {
    let none = Datum::null();
    // SAFETY: the list is released after the last row, or by the server after an error.
    unsafe {
        let list = pg_sys::SearchSysCacheList(T::CACHE as i32, 1, key, none, none);
        for i in 0..(*list).n_members {
            let member = *(*list).members.as_ptr().add(i as usize);
            let tuple = &raw mut (*member).tuple;
            each(&*pg_sys::GETSTRUCT(tuple).cast::<T>(), tuple);
        }
        pg_sys::ReleaseCatCacheList(list);
    }
}

/// Returns whether a function is written in SQL. False if there is no such function.
pub fn is_in_sql(function: Oid) -> bool {
    // SAFETY: the row is released after its last use.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::PROCOID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, function.into());
        if tuple.is_null() {
            return false;
        }
        let form = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_proc>();
        let is_in_sql = form.prolang == SQL_LANGUAGE;
        pg_sys::ReleaseSysCache(tuple);
        is_in_sql
    }
}

/// The names of a function's parameters, in their order. Empty if the parameters have no names, or
/// if there is no such function.
pub fn parameter_names(function: Oid) -> Vec<CString> {
    let (mut types, mut modes) = (core::ptr::null_mut(), core::ptr::null_mut());
    let mut names = core::ptr::null_mut();
    // SAFETY: the row is released after its last use. The server fills in the names of the
    // parameters and result columns, or null. `pronargs` of them are parameters.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::PROCOID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, function.into());
        if tuple.is_null() {
            return Vec::new();
        }
        let form = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_proc>();
        let parameters = usize::from(form.pronargs as u16);
        let count = pg_sys::get_func_arg_info(tuple, &mut types, &mut names, &mut modes);
        let known = match names.is_null() {
            true => 0,
            false => parameters.min(count as usize),
        };
        let names: Option<Vec<CString>> = (0..known).map(|n| owned(*names.add(n))).collect();
        pg_sys::ReleaseSysCache(tuple);
        names.unwrap_or_default()
    }
}

/// Returns the parameter names of all functions with the name `function` in `schema` whose first
/// parameter is a `text`. Skips this first parameter, and includes output parameters and result
/// columns. Each name occurs once. The parameters of functions with fewer parameters come first.
pub fn parameters_of_text_functions(schema: Oid, function: &CStr) -> Vec<CString> {
    let mut found: Vec<Vec<CString>> = Vec::new();
    for_each_row(
        Datum::from(function.as_ptr()),
        |form: &pg_sys::FormData_pg_proc, tuple| {
            let (mut types, mut modes) = (core::ptr::null_mut(), core::ptr::null_mut());
            let mut names = core::ptr::null_mut();
            // SAFETY: a function's row has a type for each argument. The server fills in the names
            // of the arguments and result columns, or null.
            unsafe {
                let takes_text =
                    form.pronargs > 0 && *form.proargtypes.values.as_ptr() == pg_sys::TEXTOID;
                if form.pronamespace != schema || !takes_text {
                    return;
                }
                let count = pg_sys::get_func_arg_info(tuple, &mut types, &mut names, &mut modes);
                if !names.is_null() {
                    found.push(
                        (1..count as usize)
                            .filter_map(|n| owned(*names.add(n)))
                            .collect(),
                    );
                }
            }
        },
    );
    // The server lists the functions in no particular order.
    found.sort_unstable_by_key(Vec::len);
    found
        .into_iter()
        .flatten()
        .fold(Vec::new(), |mut all, name| {
            if !all.contains(&name) {
                all.push(name);
            }
            all
        })
}
