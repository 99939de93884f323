//! Cache of the state that triggers prepare. A backend keeps the state of a trigger from one
//! statement to the next, until the server reports a change of an object that the state depends on.
//!
//! The cache follows the server's plan cache. The server processes the reports of other sessions
//! when it locks a table, and those of its own transaction after each statement and after a
//! rollback. A callback then marks entries as stale. It frees nothing, because it must not fail,
//! and because a running statement can still use the state.
use core::any::Any;
use core::cell::{Cell, RefCell};
use core::mem::ManuallyDrop;
use std::rc::Rc;

use pgrx::pg_sys::{self, Oid, SysCacheIdentifier};

use super::catalog_changes::{on_change, on_change_of_row, on_relation_change};
use super::rel::Rel;
use super::trigger::TriggerCall;
use super::{catalog, server};

/// Maximum number of entries. A new entry in a full cache replaces the entry whose last use is the
/// longest ago. An entry takes about 10 kB. Each partition of a table has triggers of its own, and
/// so entries of its own.
const MAX_ENTRIES: usize = 256;

/// System caches whose changes make all entries stale. They contain the schemas, operators and
/// operator classes that a trigger's statements use, the functions that expressions call, and the
/// roles whose privileges the planner checks. These objects change rarely.
const WATCHED: [pg_sys::SysCacheIdentifier::Type; 7] = [
    SysCacheIdentifier::AMOPSTRATEGY,
    SysCacheIdentifier::AUTHMEMROLEMEM,
    SysCacheIdentifier::AUTHOID,
    SysCacheIdentifier::CLAOID,
    SysCacheIdentifier::NAMESPACEOID,
    SysCacheIdentifier::OPEROID,
    SysCacheIdentifier::PROCOID,
];

/// State that a trigger prepares once and uses in many statements. It must not hold open relations,
/// pinned buffers, or memory that ends with a statement or transaction.
pub trait Prepared: 'static {
    /// Returns whether the expressions that the state contains are still valid.
    fn is_valid(&self) -> bool;
}

/// Trigger, user and settings for which a state was prepared. Only statements with equal values use
/// the state.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Conditions {
    trigger: Oid,
    /// Current user. The planner inlines a function only if the user may execute it.
    user: Oid,
    /// Setting `IntervalStyle`, by which the server reads intervals in the trigger's arguments.
    interval_style: i32,
    /// Setting `standard_conforming_strings`, by which the server reads string literals in those of
    /// the trigger's arguments that are SQL conditions.
    standard_conforming_strings: bool,
}

struct Entry {
    conditions: Conditions,
    /// OIDs of the trigger's table and of its indexes.
    relations: Vec<Oid>,
    /// Types of the table's columns, and the types below a domain, as their hash values in the
    /// system cache of types. The server reports a change of a type by this hash value.
    types: Vec<u32>,
    state: Rc<dyn Any>,
    is_stale: bool,
    /// Number of the lookup that used the entry last.
    last_lookup: u64,
}

thread_local! {
    /// Entries of the cache, at most [`MAX_ENTRIES`]. They are not dropped at the end of the
    /// process, when the server's memory must not be freed any more. Code that borrows the entries
    /// must not call the server, because the server could call one of the callbacks, which borrow
    /// the entries too.
    static ENTRIES: RefCell<ManuallyDrop<Vec<Entry>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
    /// Number of changes that the server has reported.
    static CHANGES: Cell<u64> = const { Cell::new(0) };
    /// Number of lookups.
    static LOOKUPS: Cell<u64> = const { Cell::new(0) };
    /// True once the callbacks are registered.
    static WATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Returns the state of the trigger that is called. If the cache does not have it, calls `prepare`,
/// and returns the result. Keeps the result in the cache unless the trigger, or an object that the
/// state may depend on, changed meanwhile. If `prepare` raises an error, the cache stays as it was.
pub fn prepared<T: Prepared>(call: &TriggerCall, prepare: impl FnOnce(&TriggerCall) -> T) -> Rc<T> {
    watch();
    let conditions = Conditions {
        trigger: call.trigger_oid(),
        user: server::GetUserId(),
        interval_style: server::interval_style(),
        standard_conforming_strings: server::standard_conforming_strings(),
    };
    let lookup = LOOKUPS.get() + 1;
    LOOKUPS.set(lookup);
    let found = ENTRIES.with_borrow_mut(|entries| {
        let mut entries = entries.iter_mut();
        let entry = entries.find(|entry| !entry.is_stale && entry.conditions == conditions)?;
        entry.last_lookup = lookup;
        Some(Rc::clone(&entry.state))
    });
    let found = found.and_then(|state| state.downcast::<T>().ok());
    if let Some(state) = found
        && state.is_valid()
    {
        return state;
    }
    let changes = CHANGES.get();
    let state = Rc::new(prepare(call));
    let entry = Entry {
        conditions,
        relations: relations(call.table()),
        types: type_hashes(call.table()),
        state: Rc::clone(&state) as Rc<dyn Any>,
        is_stale: false,
        last_lookup: lookup,
    };
    // Does not keep a state that was prepared while an object changed: parts of it can be older
    // than the change. Nor does it keep the state of a replaced trigger: the server reads triggers
    // when the statement begins, and a function that the statement calls can replace one.
    let is_current = || call.table().triggers().contains(&call.trigger());
    if is_current() && CHANGES.get() == changes {
        keep(entry);
    }
    state
}

/// Adds an entry. Removes stale entries, the entry that the new one replaces and, if the cache is
/// full, the entry whose last use is the longest ago.
fn keep(entry: Entry) {
    let removed = ENTRIES.with_borrow_mut(|entries| {
        let conditions = entry.conditions;
        let is_outdated = |other: &mut Entry| other.is_stale || other.conditions == conditions;
        let mut removed: Vec<Entry> = entries.extract_if(.., is_outdated).collect();
        if entries.len() >= MAX_ENTRIES {
            let oldest = (entries.iter().enumerate()).min_by_key(|(_, entry)| entry.last_lookup);
            removed.extend(oldest.map(|(at, _)| at).map(|at| entries.swap_remove(at)));
        }
        entries.push(entry);
        removed
    });
    // Dropped outside the borrow, because this calls the server.
    drop(removed);
}

/// Returns the OIDs of a table and of its indexes.
fn relations(table: Rel) -> Vec<Oid> {
    let mut relations = table.indexes();
    relations.push(table.oid());
    relations
}

/// Returns the hash values of the types of a table's columns, and of all types below a domain.
fn type_hashes(table: Rel) -> Vec<u32> {
    let mut types: Vec<u32> = (table.attributes())
        .flat_map(|column| catalog::with_types_below(column.atttypid))
        .map(server::type_hash)
        .collect();
    types.sort_unstable();
    types.dedup();
    types
}

/// Registers the callbacks when it is called for the first time.
fn watch() {
    if WATCHING.replace(true) {
        return;
    }
    for cache in WATCHED {
        on_change(cache, || discard(|_| true));
    }
    on_change_of_row(SysCacheIdentifier::TYPEOID, |hash| {
        // 0 stands for all types.
        discard(|entry| hash == 0 || entry.types.contains(&hash));
    });
    on_relation_change(|relation| {
        // The invalid OID stands for all relations.
        discard(|entry| relation == pg_sys::InvalidOid || entry.relations.contains(&relation));
    });
}

/// Counts a change, and marks the entries that it concerns as stale.
fn discard(concerns: impl Fn(&Entry) -> bool) {
    CHANGES.set(CHANGES.get().wrapping_add(1));
    ENTRIES.with_borrow_mut(|entries| {
        for entry in entries.iter_mut() {
            entry.is_stale |= concerns(entry);
        }
    });
}
