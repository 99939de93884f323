//! Look-ups in the catalogues, and names as SQL text has them.
use std::ffi::{CStr, CString};

use pgrx::pg_sys::{self, Datum, Oid};

use super::server::{self, owned};

/// The bytes of a name that need not exist.
fn bytes(text: Option<CString>) -> Vec<u8> {
    text.unwrap_or_default().into_bytes()
}

/// The schema of a function.
pub fn schema_of_function(function: Oid) -> Oid {
    server::get_func_namespace(function)
}

/// The name of a schema; empty if there is none.
pub fn schema_name(schema: Oid) -> CString {
    server::get_namespace_name(schema).unwrap_or_default()
}

/// A function's name with its schema, quoted where need be.
pub fn qualified_function(function: Oid) -> Vec<u8> {
    let schema = schema_name(schema_of_function(function));
    let name = server::get_func_name(function).unwrap_or_default();
    qualified(&schema, &name)
}

/// A relation's name with its schema, quoted where need be; `None` if there is no such relation.
pub fn qualified_relation(relation: Oid) -> Option<Vec<u8>> {
    let name = server::get_rel_name(relation)?;
    let schema = server::get_rel_namespace(relation);
    Some(qualified(&schema_name(schema), &name))
}

/// Returns whether the database has an extension of this name.
pub fn extension_exists(name: &CStr) -> bool {
    server::get_extension_oid(name, true) != pg_sys::InvalidOid
}

/// The name of a relation for messages, or its number if there is none.
pub fn relation_name(relation: Oid) -> String {
    match server::get_rel_name(relation) {
        Some(name) => name.to_string_lossy().into_owned(),
        None => relation.to_u32().to_string(),
    }
}

/// The kind of a relation (`pg_class.relkind`); 0 if there is none.
pub fn relation_kind(relation: Oid) -> u8 {
    server::get_rel_relkind(relation) as u8
}

/// The owner of a relation; `None` if there is no such relation.
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

/// Returns whether only a superuser can have made a type, or a cast from it to another such type:
/// base types are those. Enums, composite types and ranges are the work of any role, and so are the
/// functions that their casts call. A domain counts as the type that it is over.
pub fn is_base_type(oid: Oid) -> bool {
    let oid = base_type(oid);
    let element = array_element(oid);
    match element == pg_sys::InvalidOid {
        true => server::get_typtype(oid) as u8 == pg_sys::TYPTYPE_BASE,
        false => is_base_type(element),
    }
}

/// A name with its schema, quoted where need be.
pub fn qualified(schema: &CStr, name: &CStr) -> Vec<u8> {
    bytes(server::quote_qualified_identifier(schema, name))
}

/// A name, quoted where need be.
pub fn quoted(name: &CStr) -> Vec<u8> {
    bytes(server::quote_identifier(name))
}

/// A text as an SQL literal.
pub fn literal(text: &CStr) -> Vec<u8> {
    bytes(server::quote_literal_cstr(text))
}

/// Looks a table up by a name as written by a user, and returns it with its quoted name. A name
/// without a schema is one of the given schema. An unknown table is error 42P01.
pub fn find_table(name: &CStr, schema: Oid) -> (Oid, Vec<u8>) {
    // SAFETY: lists and names live in the current memory context.
    unsafe {
        let names = pg_sys::textToQualifiedNameList(pg_sys::cstring_to_text(name.as_ptr()));
        let place = pg_sys::makeRangeVarFromNameList(names);
        if (*place).schemaname.is_null() {
            (*place).schemaname = pg_sys::get_namespace_name(schema);
        }
        // No lock: the name goes into a statement, which takes its own.
        let no_lock = pg_sys::NoLock as pg_sys::LOCKMODE;
        let table =
            pg_sys::RangeVarGetRelidExtended(place, no_lock, 0, None, core::ptr::null_mut());
        let name = pg_sys::quote_qualified_identifier((*place).schemaname, (*place).relname);
        (table, bytes(owned(name)))
    }
}

/// The type that a domain is over; any other type itself.
pub fn base_type(oid: Oid) -> Oid {
    server::getBaseType(oid)
}

/// The type of the elements of an array type; InvalidOid if it is none.
pub fn array_element(oid: Oid) -> Oid {
    server::get_element_type(oid)
}

/// Returns whether values of a type can be taken as `text` as they are.
pub fn is_text(oid: Oid) -> bool {
    server::IsBinaryCoercible(oid, pg_sys::TEXTOID)
}

/// The name of a type, for messages.
pub fn type_name(oid: Oid) -> String {
    (server::format_type_be(oid).unwrap_or_default())
        .to_string_lossy()
        .into_owned()
}

/// The name of a type with its schema and modifier, as SQL needs it under any `search_path`.
pub fn qualified_type(oid: Oid, modifier: i32) -> Vec<u8> {
    let flags = pg_sys::FORMAT_TYPE_TYPEMOD_GIVEN | pg_sys::FORMAT_TYPE_FORCE_QUALIFY;
    bytes(server::format_type_extended(oid, modifier, flags as u16))
}

/// The name `first_second_label`, as the server makes names of indexes: it shortens the first two
/// parts to the longest name that the server stores.
pub fn derived_name(first: &CStr, second: Option<&CStr>, label: &CStr) -> CString {
    server::makeObjectName(first, second, label).unwrap_or_default()
}

/// Rows of a catalogue that the server caches by their OID.
///
/// # Safety
/// The type is that of the rows in the cache.
unsafe trait CachedRow: Copy {
    /// Cache by OID.
    const CACHE: pg_sys::SysCacheIdentifier::Type;
}

// SAFETY: caches of the server, with the catalogues whose rows they hold.
unsafe impl CachedRow for pg_sys::FormData_pg_type {
    const CACHE: pg_sys::SysCacheIdentifier::Type = pg_sys::SysCacheIdentifier::TYPEOID;
}
// SAFETY: as above.
unsafe impl CachedRow for pg_sys::FormData_pg_operator {
    const CACHE: pg_sys::SysCacheIdentifier::Type = pg_sys::SysCacheIdentifier::OPEROID;
}
// SAFETY: as above.
unsafe impl CachedRow for pg_sys::FormData_pg_opclass {
    const CACHE: pg_sys::SysCacheIdentifier::Type = pg_sys::SysCacheIdentifier::CLAOID;
}
// SAFETY: as above.
unsafe impl CachedRow for pg_sys::FormData_pg_class {
    const CACHE: pg_sys::SysCacheIdentifier::Type = pg_sys::SysCacheIdentifier::RELOID;
}
// SAFETY: as above.
unsafe impl CachedRow for pg_sys::FormData_pg_authid {
    const CACHE: pg_sys::SysCacheIdentifier::Type = pg_sys::SysCacheIdentifier::AUTHOID;
}

/// A row of a catalogue; `None` if there is no such row.
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

/// A name in a catalogue.
pub fn name_of(name: &pg_sys::NameData) -> CString {
    let bytes = name.data.map(|byte| byte as u8);
    let name = CStr::from_bytes_until_nul(&bytes).expect("the server ends names with a zero byte");
    name.to_owned()
}

/// The name of a type, without a schema, if it is in this one.
pub fn type_name_in(schema: Oid, oid: Oid) -> Option<CString> {
    let form = row::<pg_sys::FormData_pg_type>(oid)?;
    (form.typnamespace == schema).then(|| name_of(&form.typname))
}

/// The name of a function, without a schema, if it belongs to the extension of another function.
pub fn name_in_extension_of(other: Oid, function: Oid) -> Option<CString> {
    let extension_of = |function| {
        let class = pg_sys::ProcedureRelationId;
        server::getExtensionOfObject(class, function)
    };
    let is_of_extension = schema_of_function(other) == schema_of_function(function)
        && extension_of(other) == extension_of(function);
    is_of_extension.then(|| server::get_func_name(function))?
}

/// The catalogue's row of an operator; `None` if there is no such operator.
pub fn operator(oid: Oid) -> Option<pg_sys::FormData_pg_operator> {
    row(oid)
}

/// An operator with its schema, as `OPERATOR(schema.name)`; `None` if there is no such operator.
pub fn operator_text(oid: Oid) -> Option<Vec<u8>> {
    let form = operator(oid)?;
    let schema = quoted(&schema_name(form.oprnamespace));
    let name = name_of(&form.oprname);
    Some([b"OPERATOR(", schema.as_slice(), b".", name.to_bytes(), b")"].concat())
}

/// An operator class. Raises an internal error if there is none.
pub fn operator_class(class: Oid) -> pg_sys::FormData_pg_opclass {
    row(class)
        .unwrap_or_else(|| panic!("cache lookup failed for operator class {}", class.to_u32()))
}

/// An entry of the type cache, with the fields that flags stand for.
pub fn cached_type(oid: Oid, flags: u32) -> &'static pg_sys::TypeCacheEntry {
    // SAFETY: entries stay for the backend's life.
    unsafe { &*pg_sys::lookup_type_cache(oid, flags as i32) }
}

/// The default operator family of a type for btree; InvalidOid if it has none.
pub fn btree_family(oid: Oid) -> Oid {
    cached_type(oid, pg_sys::TYPECACHE_BTREE_OPFAMILY).btree_opf
}

/// The strategy of an operator in a family; 0 if it is none of them.
pub fn strategy_in_family(operator: Oid, family: Oid) -> i32 {
    server::get_op_opfamily_strategy(operator, family)
}

/// The operator of a family with this strategy number and these types.
pub fn family_member(family: Oid, left: Oid, right: Oid, strategy: u32) -> Option<Oid> {
    let oid = server::get_opfamily_member(family, left, right, strategy as i16);
    (oid != pg_sys::InvalidOid).then_some(oid)
}

/// The types of the arguments and of the result of a plain function. Raises an internal error for
/// aggregates, window functions and procedures, and if there is no such function.
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

/// Kind of an object that has a name in a schema.
#[derive(Clone, Copy)]
pub enum Named<'a> {
    /// A type.
    Type,
    /// A table, an index, or any other relation.
    Relation,
    /// An operator on these two types.
    Operator(Oid, Oid),
    /// A function of these types.
    Function(&'a [Oid]),
}

/// Looks an object up by its name in a schema.
pub fn find(schema: Oid, name: &CStr, kind: Named) -> Option<Oid> {
    use pg_sys::SysCacheIdentifier::{OPERNAMENSP, PROCNAMEARGSNSP, RELNAMENSP, TYPENAMENSP};
    let (schema, none) = (Datum::from(schema), Datum::null());
    // SAFETY: the keys have the number and types that the caches are keyed by.
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

/// The default operators `=` and `<` of a type, as far as it has them.
pub fn default_operators(oid: Oid) -> (Option<Oid>, Option<Oid>) {
    let wanted = pg_sys::TYPECACHE_EQ_OPR | pg_sys::TYPECACHE_LT_OPR;
    let entry = cached_type(oid, wanted);
    let known = |operator| (operator != pg_sys::InvalidOid).then_some(operator);
    (known(entry.eq_opr), known(entry.lt_opr))
}

/// The operators of a family.
pub fn family_operators(family: Oid) -> Vec<pg_sys::FormData_pg_amop> {
    let mut forms = Vec::new();
    for_each_row(Datum::from(family), |form, _| forms.push(*form));
    forms
}

/// The type of an operator's result.
pub fn operator_result(operator: Oid) -> Oid {
    server::get_op_rettype(operator)
}

/// Returns whether a type stands for several, as `anyarray` does.
pub fn is_pseudo_type(oid: Oid) -> bool {
    server::get_typtype(oid) as u8 == pg_sys::TYPTYPE_PSEUDO
}

/// Catalogue rows that the server caches in lists by a first key.
///
/// # Safety
/// The type is that of the rows in the cache.
unsafe trait ListedRow {
    /// Cache by that key and others.
    const CACHE: pg_sys::SysCacheIdentifier::Type;
}

// SAFETY: caches of the server, with the catalogues whose rows they hold.
unsafe impl ListedRow for pg_sys::FormData_pg_amop {
    const CACHE: pg_sys::SysCacheIdentifier::Type = pg_sys::SysCacheIdentifier::AMOPSTRATEGY;
}
// SAFETY: as above.
unsafe impl ListedRow for pg_sys::FormData_pg_proc {
    const CACHE: pg_sys::SysCacheIdentifier::Type = pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP;
}

/// Calls a function with each row of a catalogue that has this first key, and its tuple.
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

/// The names of the parameters behind the first, of the functions of a schema with this name that
/// take a text first: each once, those of the function with the fewest first.
pub fn parameters_of_text_functions(schema: Oid, function: &CStr) -> Vec<CString> {
    let mut found: Vec<Vec<CString>> = Vec::new();
    for_each_row(
        Datum::from(function.as_ptr()),
        |form: &pg_sys::FormData_pg_proc, tuple| {
            let (mut types, mut modes) = (core::ptr::null_mut(), core::ptr::null_mut());
            let mut names = core::ptr::null_mut();
            // SAFETY: a function's row, with as many types as it has arguments. The server fills in
            // the names of these and of the columns of its result, or null.
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
    // The server lists functions in no particular order.
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
