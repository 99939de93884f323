//! Calls of an SQL function as a row trigger: the table, the rows and the trigger itself.
use core::any::TypeId;
use core::marker::PhantomData;

use pgrx::pg_sys;

use super::fmgr::Call;
use super::new_row::NewRow;
use super::rel::{Rel, Trigger};
use super::server;

/// One call of an SQL function by a row trigger. `'a` is the lifetime of the call.
pub struct TriggerCall<'a> {
    data: &'a pg_sys::TriggerData,
    table: Rel<'a>,
    function: *mut pg_sys::FmgrInfo,
    /// Memory context that lives as long as the statement that fires the trigger.
    memory: pg_sys::MemoryContext,
    _call: PhantomData<&'a Call>,
}

/// State that a trigger keeps during a statement, and its type. The type detects an attempt to read
/// the state as another type.
#[repr(C)]
struct Kept<T> {
    type_id: TypeId,
    state: T,
}

impl<'a> TriggerCall<'a> {
    /// Wraps the call of an SQL function; `None` if no trigger has called the function.
    pub fn new(call: &'a Call) -> Option<Self> {
        let context = call.context();
        // SAFETY: the context of a call is null or a node with a tag. The node and the open table
        // live as long as the call. Each trigger of a statement has a record of the function.
        unsafe {
            let is_trigger =
                !context.is_null() && (*context).type_ == pg_sys::NodeTag::T_TriggerData;
            is_trigger.then(|| {
                let data = &*context.cast::<pg_sys::TriggerData>();
                let function = call.function();
                TriggerCall {
                    data,
                    table: Rel::new(data.tg_relation),
                    function,
                    memory: (*function).fn_mcxt,
                    _call: PhantomData,
                }
            })
        }
    }

    /// Event, timing and level for which the trigger fires, as flags (`TRIGGER_EVENT_...`).
    pub fn event(&self) -> pg_sys::TriggerEvent {
        self.data.tg_event
    }

    /// Table whose row the trigger fires for.
    pub fn table(&self) -> Rel<'a> {
        self.table
    }

    /// OID of the trigger that fires.
    pub fn trigger_oid(&self) -> pg_sys::Oid {
        // SAFETY: the server passes the trigger that it fires.
        unsafe { (*self.data.tg_trigger).tgoid }
    }

    /// Description of the trigger that fires.
    pub fn trigger(&self) -> Trigger {
        // SAFETY: the server passes the trigger that it fires.
        unsafe { Trigger::copy(&*self.data.tg_trigger) }
    }

    /// The inserted or deleted row, or the old version of an updated row. Raises an internal error
    /// unless this is a row trigger.
    pub fn row(&self) -> NewRow<'a> {
        self.taken_apart(self.data.tg_trigtuple)
    }

    /// The new version of an updated row. Raises an internal error for other events.
    pub fn new_version(&self) -> NewRow<'a> {
        self.taken_apart(self.data.tg_newtuple)
    }

    fn taken_apart(&self, tuple: pg_sys::HeapTuple) -> NewRow<'a> {
        assert!(
            !tuple.is_null(),
            "a row trigger, and an event with this row"
        );
        // SAFETY: the tuple is a row of the table, and lives as long as the call.
        unsafe {
            let context = server::current_memory_context();
            NewRow::new(context, tuple, (*self.data.tg_relation).rd_att)
        }
    }

    /// Number that identifies the statement that fires the trigger: the address of the statement's
    /// memory context.
    pub fn statement(&self) -> usize {
        self.memory as usize
    }

    /// State that the trigger keeps during one statement. `make` makes it in the statement's first
    /// call. It is dropped when the statement ends.
    pub fn state<T: 'static>(&mut self, make: impl FnOnce(&Self) -> T) -> &mut T {
        // SAFETY: the server's field for this function is null or was set below, because triggers
        // call no other function of the library. The statement's end frees its memory.
        unsafe {
            if (*self.function).fn_extra.is_null() {
                let kept = Kept {
                    type_id: TypeId::of::<T>(),
                    state: make(self),
                };
                let mut context = pgrx::PgMemoryContexts::For(self.memory);
                (*self.function).fn_extra = context.leak_and_drop_on_delete(kept).cast();
            }
            let kept = (*self.function).fn_extra.cast::<Kept<T>>();
            assert!((*kept.cast::<Kept<()>>()).type_id == TypeId::of::<T>());
            &mut (*kept).state
        }
    }
}
