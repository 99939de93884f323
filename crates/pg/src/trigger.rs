//! Calls of a function as a row trigger.
use core::any::TypeId;
use core::marker::PhantomData;

use pgrx::pg_sys;

use super::fmgr::Call;
use super::new_row::NewRow;
use super::rel::{Rel, Trigger};
use super::server;

/// Call by a trigger, with its rows. `'a` is the lifetime of the call.
pub struct TriggerCall<'a> {
    data: &'a pg_sys::TriggerData,
    table: Rel<'a>,
    function: *mut pg_sys::FmgrInfo,
    /// Memory context that lives as long as the statement.
    memory: pg_sys::MemoryContext,
    _call: PhantomData<&'a Call>,
}

/// Trigger state and its type, which detects a state of another type.
#[repr(C)]
struct Kept<T> {
    type_id: TypeId,
    state: T,
}

impl<'a> TriggerCall<'a> {
    /// Wraps a call by a trigger; `None` for other calls.
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

    /// The event, its timing and its level, as the server's flags.
    pub fn event(&self) -> pg_sys::TriggerEvent {
        self.data.tg_event
    }

    /// The table.
    pub fn table(&self) -> Rel<'a> {
        self.table
    }

    /// The trigger.
    pub fn trigger(&self) -> Trigger {
        // SAFETY: the server passes the trigger that it fires.
        unsafe { Trigger::copy(&*self.data.tg_trigger) }
    }

    /// The inserted or deleted row, or the old version of an updated row.
    pub fn row(&self) -> NewRow<'a> {
        self.taken_apart(self.data.tg_trigtuple)
    }

    /// The new version of an updated row.
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

    /// Identifies the statement by the address of its memory context.
    pub fn statement(&self) -> usize {
        self.memory as usize
    }

    /// The trigger's state, made in the first call of a statement and dropped at its end.
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
