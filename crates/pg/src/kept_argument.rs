//! Arguments that take long to prepare, and are the same for all rows of a query.
use core::any::TypeId;
use core::cell::RefCell;
use core::ptr;
use std::rc::Rc;

use neardup_sketch::memory::GrowVec;
use pgrx::{PgMemoryContexts, pg_sys};

use super::fmgr::Call;
use super::value::ValueType;

/// Bytes of a pointer to a value in a TOAST table.
const POINTER: usize = 2 + size_of::<pg_sys::varatt_external>();
/// A pointer to a value in a TOAST table: its table and number there, and its size.
type ToastPointer = [u8; POINTER];

/// The value that was made of an argument, and the argument.
struct Kept<T> {
    source: Source,
    made: Rc<T>,
}

/// A value, to be recognized when it comes again.
#[derive(PartialEq)]
enum Source {
    /// A pointer names the same value as long as a query can see it.
    Toasted(ToastPointer),
    Plain(Vec<u8>),
}

/// Place of a function for what it keeps.
type Place<T> = Rc<RefCell<Option<Kept<T>>>>;

/// A place with the type of what is kept there, by which one of another function is told.
#[repr(C)]
struct TypedPlace<T> {
    type_id: TypeId,
    place: Place<T>,
}

impl Call {
    /// Makes something of argument `n`, a `bytea`, and keeps it for the next calls of the function
    /// in the query that have the same argument: it is read from TOAST, and prepared, once.
    ///
    /// A function keeps one argument, returns no set and is no trigger's.
    pub fn kept_argument<T: 'static>(&self, n: usize, make: impl FnOnce(&[u8]) -> T) -> Rc<T> {
        let (toasted, place) = self.argument_and_place(n);
        let source = |bytes: &[u8]| match toasted {
            Some(pointer) => Source::Toasted(pointer),
            None => {
                let mut copy = Vec::new();
                copy.grow_by(bytes);
                Source::Plain(copy)
            }
        };
        if let Some(kept) = &*place.borrow()
            && match (&kept.source, toasted) {
                (Source::Toasted(kept), Some(pointer)) => *kept == pointer,
                (Source::Plain(kept), None) => kept == self.bytes(n),
                _ => false,
            }
        {
            return Rc::clone(&kept.made);
        }
        let bytes = self.bytes(n);
        let made = Rc::new(make(bytes));
        *place.borrow_mut() = Some(Kept {
            source: source(bytes),
            made: Rc::clone(&made),
        });
        made
    }

    /// The pointer that argument `n` is, if it lies in a TOAST table, and the function's place.
    fn argument_and_place<T: 'static>(&self, n: usize) -> (Option<ToastPointer>, Place<T>) {
        let value = self.reference(n, ValueType::is_varlena);
        let value: *const pg_sys::varlena = value.cast_mut_ptr();
        // SAFETY: a value of variable length. A pointer to a value in a TOAST table has that size.
        let pointer = unsafe {
            let toasted = pgrx::varlena::varatt_is_1b_e(value)
                && u32::from((*value.cast::<pg_sys::varattrib_1b_e>()).va_tag)
                    == pg_sys::vartag_external::VARTAG_ONDISK;
            toasted.then(|| ptr::read(value.cast::<ToastPointer>()))
        };
        // SAFETY: null, or a live record of the function.
        let Some(function) = (unsafe { self.function().as_mut() }) else {
            return (pointer, Place::default());
        };
        // The server keeps the state of a set in the same field.
        assert!(!function.fn_retset);
        if function.fn_extra.is_null() {
            let typed = TypedPlace::<T> {
                type_id: TypeId::of::<T>(),
                place: Place::default(),
            };
            let mut memory = PgMemoryContexts::For(function.fn_mcxt);
            function.fn_extra = memory.leak_and_drop_on_delete(typed).cast();
        }
        // SAFETY: the field was null or was set above. Its value is dropped with the memory of the
        // function's record.
        let typed = unsafe {
            assert!(*function.fn_extra.cast::<TypeId>() == TypeId::of::<T>());
            &*function.fn_extra.cast::<TypedPlace<T>>()
        };
        (pointer, Rc::clone(&typed.place))
    }
}
