//! Cache of a value that an SQL function makes from one of its arguments. It is for arguments that
//! are slow to prepare and are the same for all rows of a query.
use core::any::TypeId;
use core::cell::RefCell;
use core::ptr;
use std::rc::Rc;

use neardup_sketch::memory::GrowVec;
use pgrx::{PgMemoryContexts, pg_sys};

use super::fmgr::Call;
use super::value::ValueType;

/// Size in bytes of a pointer to a value in a TOAST table.
const POINTER: usize = 2 + size_of::<pg_sys::varatt_external>();
/// Pointer to a value in a TOAST table. It contains the table's OID, the value's OID and its size.
type ToastPointer = [u8; POINTER];

/// Argument of an earlier call, and the value made from it.
struct Kept<T> {
    source: Source,
    value: Rc<T>,
}

/// Argument that a kept value was made from. Later calls compare their own argument with it.
#[derive(PartialEq)]
enum Source {
    /// Pointer to the argument in a TOAST table. As long as a query can see the argument, no other
    /// value has the same pointer.
    Toasted(ToastPointer),
    /// Bytes of the argument.
    Plain(Vec<u8>),
}

/// Memory for the one value that a function keeps; `None` before the first call.
type Slot<T> = Rc<RefCell<Option<Kept<T>>>>;

/// Memory for a kept value, with the type of the value. The type detects an attempt to read the
/// value as another type.
#[repr(C)]
struct TypedSlot<T> {
    type_id: TypeId,
    slot: Slot<T>,
}

impl Call {
    /// Returns the value that `make` makes from the bytes of argument `n`, a `bytea`, counted from
    /// 0. Keeps this value until a call with another argument replaces it. Later calls from the
    /// same place in the query return the kept value, without calling `make`, if their argument is
    /// equal. So an argument that is the same for all rows is read and prepared only once.
    ///
    /// A function can keep a value for one argument only, because the memory for the value is in
    /// the one field that the function manager's record has for this purpose (`fn_extra`).
    /// Set-returning functions and trigger functions use the field for other values, so they must
    /// not call this function.
    pub fn kept_argument<T: 'static>(&self, n: usize, make: impl FnOnce(&[u8]) -> T) -> Rc<T> {
        let (toasted, slot) = self.argument_and_slot(n);
        let source = |bytes: &[u8]| match toasted {
            Some(pointer) => Source::Toasted(pointer),
            None => {
                let mut copy = Vec::new();
                copy.grow_by(bytes);
                Source::Plain(copy)
            }
        };
        if let Some(kept) = &*slot.borrow()
            && match (&kept.source, toasted) {
                (Source::Toasted(kept), Some(pointer)) => *kept == pointer,
                (Source::Plain(kept), None) => kept == self.bytes(n),
                _ => false,
            }
        {
            return Rc::clone(&kept.value);
        }
        let bytes = self.bytes(n);
        let value = Rc::new(make(bytes));
        *slot.borrow_mut() = Some(Kept {
            source: source(bytes),
            value: Rc::clone(&value),
        });
        value
    }

    /// Returns the TOAST pointer of argument `n`, counted from 0, and the memory for the function's
    /// kept value. The pointer is `None` if the argument is not in a TOAST table.
    fn argument_and_slot<T: 'static>(&self, n: usize) -> (Option<ToastPointer>, Slot<T>) {
        let value = self.reference(n, ValueType::is_varlena);
        let value: *const pg_sys::varlena = value.cast_mut_ptr();
        // SAFETY: a value of variable length. A TOAST pointer has the size of `ToastPointer`.
        let pointer = unsafe {
            let toasted = pgrx::varlena::varatt_is_1b_e(value)
                && u32::from((*value.cast::<pg_sys::varattrib_1b_e>()).va_tag)
                    == pg_sys::vartag_external::VARTAG_ONDISK;
            toasted.then(|| ptr::read(value.cast::<ToastPointer>()))
        };
        // SAFETY: null, or a live record of the function.
        let Some(function) = (unsafe { self.function().as_mut() }) else {
            return (pointer, Slot::default());
        };
        // The server keeps the state of set-returning functions in `fn_extra`, too.
        assert!(!function.fn_retset);
        if function.fn_extra.is_null() {
            let typed = TypedSlot::<T> {
                type_id: TypeId::of::<T>(),
                slot: Slot::default(),
            };
            let mut memory = PgMemoryContexts::For(function.fn_mcxt);
            function.fn_extra = memory.leak_and_drop_on_delete(typed).cast();
        }
        // SAFETY: the field was set above or in an earlier call. Its value is dropped with the
        // memory of the function's record.
        let typed = unsafe {
            assert!(*function.fn_extra.cast::<TypeId>() == TypeId::of::<T>());
            &*function.fn_extra.cast::<TypedSlot<T>>()
        };
        (pointer, Rc::clone(&typed.slot))
    }
}
