//! Cache of one Rust value in the relation cache entry of an open neardup index (`rd_amcache`).
use core::any::TypeId;
use core::ptr::NonNull;

use pgrx::pg_sys;

use super::rel::Rel;

/// Cached value and its type. The type detects an attempt to read the value as another type.
#[repr(C)]
struct Typed<T> {
    type_id: TypeId,
    value: T,
}

impl Rel<'_> {
    /// Returns the value that [`Rel::cache`] has stored with this index. `None` if there is none,
    /// or if the server has dropped it because the index may have been rebuilt. Raises an internal
    /// error if the relation is not a neardup index or the stored value has another type.
    pub fn cached<T: Copy + 'static>(self) -> Option<T> {
        // SAFETY: `cache` has written the value.
        self.pointer::<T>()
            .map(|pointer| unsafe { pointer.as_ref().value })
    }

    /// Stores a value with this index until the server drops it from the relation cache. Replaces
    /// an earlier value. Raises an internal error if the relation is not a neardup index or the
    /// earlier value has another type.
    pub fn cache<T: Copy + 'static>(self, value: T) {
        const { assert!(align_of::<Typed<T>>() <= 8) };
        if let Some(mut pointer) = self.pointer::<T>() {
            // SAFETY: `cache` has written the value. No reference to it exists.
            unsafe { pointer.as_mut().value = value };
            return;
        }
        let typed = Typed {
            type_id: TypeId::of::<T>(),
            value,
        };
        // SAFETY: the index is open. The memory has the size of the value, and the server frees it
        // in one piece.
        unsafe {
            let entry = self.raw();
            let pointer = pg_sys::MemoryContextAlloc((*entry).rd_indexcxt, size_of::<Typed<T>>());
            pointer.cast::<Typed<T>>().write(typed);
            (*entry).rd_amcache = pointer;
        }
    }

    fn pointer<T: Copy + 'static>(self) -> Option<NonNull<Typed<T>>> {
        assert!(self.is_neardup_index());
        // SAFETY: the index is open.
        let pointer = NonNull::new(unsafe { (*self.raw()).rd_amcache })?.cast::<Typed<T>>();
        // SAFETY: in an index of this access method only `cache` sets the field. The type id is
        // the first field of the value.
        assert!(unsafe { *pointer.cast::<TypeId>().as_ref() } == TypeId::of::<T>());
        Some(pointer)
    }
}
