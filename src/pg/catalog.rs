//! Look-ups in the catalogues, and names as SQL text has them.
use core::ffi::{CStr, c_char};
use std::ffi::CString;

use pgrx::pg_sys::{self, Datum, Oid};

/// A C string of the server's as one of Rust's; `None` for null.
///
/// # Safety
/// The pointer is null, or to a C string.
pub unsafe fn owned(text: *const c_char) -> Option<CString> {
    // SAFETY: the caller's promise.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_owned())
}

/// The bytes of a name that need not exist.
fn bytes(text: Option<CString>) -> Vec<u8> {
    text.unwrap_or_default().into_bytes()
}

/// The schema of a function.
pub fn schema_of_function(function: Oid) -> Oid {
    // SAFETY: a catalogue look-up.
    unsafe { pg_sys::get_func_namespace(function) }
}

/// The name of a schema; empty if there is none.
pub fn schema_name(schema: Oid) -> CString {
    // SAFETY: null, or a C string.
    unsafe { owned(pg_sys::get_namespace_name(schema)) }.unwrap_or_default()
}

/// A function's name with its schema, quoted where need be.
pub fn qualified_function(function: Oid) -> Vec<u8> {
    let schema = schema_name(schema_of_function(function));
    // SAFETY: null, or a C string.
    let name = unsafe { owned(pg_sys::get_func_name(function)) }.unwrap_or_default();
    qualified(&schema, &name)
}

/// A relation's name with its schema, quoted where need be; `None` if there is no such relation.
pub fn qualified_relation(relation: Oid) -> Option<Vec<u8>> {
    // SAFETY: null, or a C string.
    let name = unsafe { owned(pg_sys::get_rel_name(relation)) }?;
    // SAFETY: a catalogue look-up.
    let schema = unsafe { pg_sys::get_rel_namespace(relation) };
    Some(qualified(&schema_name(schema), &name))
}

/// The name of a relation for messages, or its number if there is none.
pub fn relation_name(relation: Oid) -> String {
    // SAFETY: null, or a C string.
    match unsafe { owned(pg_sys::get_rel_name(relation)) } {
        Some(name) => name.to_string_lossy().into_owned(),
        None => relation.to_u32().to_string(),
    }
}

/// The kind of a relation (`pg_class.relkind`); 0 if there is none.
pub fn relation_kind(relation: Oid) -> u8 {
    // SAFETY: a catalogue look-up.
    unsafe { pg_sys::get_rel_relkind(relation) as u8 }
}

/// A name with its schema, quoted where need be.
pub fn qualified(schema: &CStr, name: &CStr) -> Vec<u8> {
    // SAFETY: a new C string of two.
    bytes(unsafe {
        owned(pg_sys::quote_qualified_identifier(
            schema.as_ptr(),
            name.as_ptr(),
        ))
    })
}

/// A name, quoted where need be.
pub fn quoted(name: &CStr) -> Vec<u8> {
    // SAFETY: the server returns the name itself or a new C string.
    bytes(unsafe { owned(pg_sys::quote_identifier(name.as_ptr())) })
}

/// A text as an SQL literal.
pub fn literal(text: &CStr) -> Vec<u8> {
    // SAFETY: a new C string.
    bytes(unsafe { owned(pg_sys::quote_literal_cstr(text.as_ptr())) })
}

/// Looks a table up by a name as written by a user, and returns its quoted name. A name without a
/// schema is one of the given schema. An unknown table is error 42P01.
pub fn find_table(name: &CStr, schema: Oid) -> Vec<u8> {
    // SAFETY: lists and names live in the current memory context.
    unsafe {
        let names = pg_sys::textToQualifiedNameList(pg_sys::cstring_to_text(name.as_ptr()));
        let place = pg_sys::makeRangeVarFromNameList(names);
        if (*place).schemaname.is_null() {
            (*place).schemaname = pg_sys::get_namespace_name(schema);
        }
        // No lock: the name goes into a statement, which takes its own.
        let no_lock = pg_sys::NoLock as pg_sys::LOCKMODE;
        pg_sys::RangeVarGetRelidExtended(place, no_lock, 0, None, core::ptr::null_mut());
        bytes(owned(pg_sys::quote_qualified_identifier(
            (*place).schemaname,
            (*place).relname,
        )))
    }
}

/// The type that a domain is over; any other type itself.
pub fn base_type(oid: Oid) -> Oid {
    // SAFETY: a catalogue look-up.
    unsafe { pg_sys::getBaseType(oid) }
}

/// The type of the elements of an array type; InvalidOid if it is none.
pub fn array_element(oid: Oid) -> Oid {
    // SAFETY: a catalogue look-up.
    unsafe { pg_sys::get_element_type(oid) }
}

/// Returns whether values of a type can be taken as `text` as they are.
pub fn is_text(oid: Oid) -> bool {
    // SAFETY: a catalogue look-up.
    unsafe { pg_sys::IsBinaryCoercible(oid, pg_sys::TEXTOID) }
}

/// The name of a type, for messages.
pub fn type_name(oid: Oid) -> String {
    // SAFETY: a new C string.
    unsafe { owned(pg_sys::format_type_be(oid)) }
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
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
    // SAFETY: the server's names end with a zero byte.
    unsafe { CStr::from_ptr(name.data.as_ptr()) }.to_owned()
}

/// The name of a type, without a schema, if it is in this one.
pub fn type_name_in(schema: Oid, oid: Oid) -> Option<CString> {
    let form = row::<pg_sys::FormData_pg_type>(oid)?;
    (form.typnamespace == schema).then(|| name_of(&form.typname))
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

/// The default operator family of a type for btree; InvalidOid if it has none.
pub fn btree_family(oid: Oid) -> Oid {
    // SAFETY: entries of the type cache stay for the backend's life.
    unsafe { (*pg_sys::lookup_type_cache(oid, pg_sys::TYPECACHE_BTREE_OPFAMILY as i32)).btree_opf }
}

/// The strategy of an operator in a family; 0 if it is none of them.
pub fn strategy_in_family(operator: Oid, family: Oid) -> i32 {
    // SAFETY: a catalogue look-up.
    unsafe { pg_sys::get_op_opfamily_strategy(operator, family) }
}

/// The operator of a family with this strategy number and these types.
pub fn family_member(family: Oid, left: Oid, right: Oid, strategy: u32) -> Option<Oid> {
    // SAFETY: a catalogue look-up.
    let oid = unsafe { pg_sys::get_opfamily_member(family, left, right, strategy as i16) };
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
    Type,
    /// An operator on these two types.
    Operator(Oid, Oid),
    /// A function of these types.
    Function(&'a [Oid]),
}

/// Looks an object up by its name in a schema.
pub fn find(schema: Oid, name: &CStr, kind: Named) -> Option<Oid> {
    use pg_sys::SysCacheIdentifier::{OPERNAMENSP, PROCNAMEARGSNSP, TYPENAMENSP};
    let (schema, none) = (Datum::from(schema), Datum::null());
    // SAFETY: the keys have the number and types that the caches are keyed by.
    let oid = unsafe {
        let (cache, column, [a, b, c]) = match kind {
            Named::Type => (TYPENAMENSP, pg_sys::Anum_pg_type_oid, [schema, none, none]),
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
    // SAFETY: entries of the type cache stay for the backend's life.
    let (eq, lt) = unsafe {
        let entry = &*pg_sys::lookup_type_cache(oid, wanted as i32);
        (entry.eq_opr, entry.lt_opr)
    };
    let known = |operator| (operator != pg_sys::InvalidOid).then_some(operator);
    (known(eq), known(lt))
}

/// The operators of a family.
pub fn family_operators(family: Oid) -> Vec<pg_sys::FormData_pg_amop> {
    // SAFETY: entries are copied before the list is released.
    unsafe {
        let list = pg_sys::SearchSysCacheList(
            pg_sys::SysCacheIdentifier::AMOPSTRATEGY as i32,
            1,
            Datum::from(family),
            Datum::null(),
            Datum::null(),
        );
        let forms = (0..(*list).n_members)
            .map(|i| {
                let member = *(*list).members.as_ptr().add(i as usize);
                *pg_sys::GETSTRUCT(&raw mut (*member).tuple).cast::<pg_sys::FormData_pg_amop>()
            })
            .collect();
        pg_sys::ReleaseCatCacheList(list);
        forms
    }
}

/// The type of an operator's result.
pub fn operator_result(operator: Oid) -> Oid {
    // SAFETY: a catalogue look-up.
    unsafe { pg_sys::get_op_rettype(operator) }
}

/// Returns whether a type stands for several, as `anyarray` does.
pub fn is_pseudo_type(oid: Oid) -> bool {
    // SAFETY: a catalogue look-up.
    unsafe { pg_sys::get_typtype(oid) as u8 == pg_sys::TYPTYPE_PSEUDO }
}

/// The names of the parameters behind the first, of the functions of a schema with this name that
/// take a text first.
pub fn parameters_of_text_functions(schema: Oid, function: &CStr) -> Vec<CString> {
    // SAFETY: entries are read before the list is released.
    unsafe {
        let list = pg_sys::SearchSysCacheList(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as i32,
            1,
            Datum::from(function.as_ptr()),
            Datum::null(),
            Datum::null(),
        );
        let mut found = Vec::new();
        for i in 0..(*list).n_members {
            let member = *(*list).members.as_ptr().add(i as usize);
            let tuple = &raw mut (*member).tuple;
            let form = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_proc>();
            let takes_text =
                form.pronargs > 0 && *form.proargtypes.values.as_ptr() == pg_sys::TEXTOID;
            if form.pronamespace != schema || !takes_text {
                continue;
            }
            let (mut types, mut names, mut modes) = (
                core::ptr::null_mut(),
                core::ptr::null_mut(),
                core::ptr::null_mut(),
            );
            let count = pg_sys::get_func_arg_info(tuple, &mut types, &mut names, &mut modes);
            if !names.is_null() {
                found.extend((1..count as usize).filter_map(|n| owned(*names.add(n))));
            }
        }
        pg_sys::ReleaseCatCacheList(list);
        found
    }
}
