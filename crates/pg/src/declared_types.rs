//! Declared types of the arguments of this extension's SQL functions, with a cache in each backend.
//!
//! Code that reads an argument that is passed by reference checks the argument's declared type.
//! Some functions run for each row of a scan, so a backend keeps the types that it has looked up in
//! the catalogue.
use core::cell::{Cell, RefCell};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::collections::HashMap;

use pgrx::pg_sys::{Oid, SysCacheIdentifier};

use super::catalog;
use super::catalog_changes::on_change;
use super::value::ValueType;

/// Number of entries of the cache [`RECENT`]. Functions whose OIDs are equal modulo this number
/// replace each other in the cache. The extension's functions have nearly consecutive OIDs, so this
/// is rare.
const RECENT_ENTRIES: usize = 512;

/// Cache of the declared types of functions. The index of an entry is the function's OID modulo
/// [`RECENT_ENTRIES`]. An entry is null, or has the types of the function that was looked up last
/// among the functions with this index.
static RECENT: [AtomicPtr<DeclaredTypes>; RECENT_ENTRIES] =
    [const { AtomicPtr::new(ptr::null_mut()) }; RECENT_ENTRIES];

thread_local! {
    /// Declared types of all functions that this backend has looked up, by the function's OID. They
    /// are leaked, so that references to them stay valid.
    static KNOWN: RefCell<HashMap<Oid, &'static DeclaredTypes>> = RefCell::default();
    /// True once [`forget`] is registered for changes of pg_proc.
    static WATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Declared types of the arguments of one SQL function.
#[derive(PartialEq)]
pub struct DeclaredTypes {
    function: Oid,
    types: Box<[ValueType]>,
}

impl DeclaredTypes {
    /// The declared types of a function if the backend's cache `RECENT` has them; `None` otherwise.
    /// Does not read the catalogue.
    #[inline(always)]
    pub fn recent(function: Oid) -> Option<&'static Self> {
        let entry = RECENT[function.to_u32() as usize % RECENT_ENTRIES].load(Ordering::Acquire);
        // SAFETY: null, or an entry that `get` has leaked.
        let known = unsafe { entry.as_ref() };
        known.filter(|known| known.function == function)
    }

    /// Reads the declared types of a function from the catalogue, and puts them into the cache
    /// `RECENT`. Raises an internal error if there is no such function.
    #[cold]
    pub fn get(function: Oid) -> &'static Self {
        if !WATCHING.replace(true) {
            on_change(SysCacheIdentifier::PROCOID, forget);
        }
        let (types, _) = catalog::function_signature(function);
        let current = DeclaredTypes {
            function,
            types: types.into_iter().map(ValueType::from_oid).collect(),
        };
        // A new function may have the OID of a dropped one.
        let known = KNOWN.with_borrow_mut(|known| match known.get(&function) {
            Some(&known) if *known == current => known,
            _ => {
                let leaked: &'static _ = Box::leak(Box::new(current));
                known.insert(function, leaked);
                leaked
            }
        });
        let entry = &RECENT[function.to_u32() as usize % RECENT_ENTRIES];
        entry.store(ptr::from_ref(known).cast_mut(), Ordering::Release);
        known
    }

    /// The declared type of argument `n`, counted from 0. Raises an internal error if the function
    /// has fewer arguments.
    #[inline(always)]
    pub fn argument(&self, n: usize) -> ValueType {
        self.types[n]
    }
}

/// Empties the cache [`RECENT`] after a change of pg_proc.
fn forget() {
    for entry in &RECENT {
        entry.store(ptr::null_mut(), Ordering::Release);
    }
}
