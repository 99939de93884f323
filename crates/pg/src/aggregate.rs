//! States of aggregates, kept in memory that the server accounts for and frees. A state is a value
//! of variable length, which [`Call::edit_state`] changes, or a list of words ([`GroupWords`]).
use neardup_sketch::memory::WordStore;
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::{self, Datum};

use super::errors::UserError;
use super::fmgr::Call;
use super::value::ValueType;
use super::{server, varlena};

impl Call {
    /// Changes the state of an aggregate and returns the changed state. The state is argument `n`,
    /// counted from 0, and has a variable length. `edit` gets the bytes after the state's header,
    /// aligned to four bytes, and changes them. If an aggregate makes the call, `edit` changes the
    /// state itself. Any other caller, such as a window function, may still use the old state, so
    /// `edit` changes a copy.
    pub fn edit_state(&self, n: usize, edit: impl FnOnce(&mut [u8])) -> Datum {
        let state = self.reference(n, ValueType::is_varlena);
        let may_change = matches!(self.aggregate(), Some((_, true)));
        // SAFETY: `state` is a value of variable length.
        let is_plain = unsafe { pgrx::varlena::varatt_is_4b_u(state.cast_mut_ptr()) };
        let state = match may_change && is_plain {
            true => state,
            // The server copies this result into the aggregate's memory and frees the old state.
            false => varlena::build(&[self.aligned_bytes(n)]),
        };
        // SAFETY: nothing else uses the copy yet. An aggregate's state was made by one of its
        // steps or copied by the server, which passes it to one step at a time. Both have a plain
        // header.
        edit(unsafe { varlena::plain_body_mut(state) });
        state
    }
}

/// Aggregate state that is a growable list of 64-bit words. A support function of the aggregate
/// returns it as a value of type `internal`, which the server passes to the next support function.
/// The server frees the list with its memory context.
pub struct GroupWords {
    words: *mut u64,
    len: usize,
    capacity: usize,
    context: pg_sys::MemoryContext,
}

impl GroupWords {
    /// Makes an empty list that lives as long as the current group of the aggregate. Raises error
    /// 0A000 if the call does not come from an aggregate.
    pub fn new<'a>(call: &Call) -> &'a mut Self {
        Self::new_in(context(call))
    }

    /// Makes an empty list in the current memory context, as the result of a deserialization
    /// function. Such a result need not live long, because the aggregate soon merges it into
    /// another state. Raises error 0A000 if the call does not come from an aggregate.
    pub fn new_short_lived<'a>(call: &Call) -> &'a mut Self {
        context(call);
        Self::new_in(server::current_memory_context())
    }

    fn new_in<'a>(context: pg_sys::MemoryContext) -> &'a mut Self {
        let none = GroupWords {
            words: core::ptr::null_mut(),
            len: 0,
            capacity: 0,
            context,
        };
        // SAFETY: the allocation has room for the value and lives as long as the context. The
        // server passes it only to functions of this aggregate, one at a time.
        unsafe {
            let pointer = pg_sys::MemoryContextAlloc(context, size_of::<Self>()).cast::<Self>();
            pointer.write(none);
            &mut *pointer
        }
    }

    /// Returns the list in argument `n`, counted from 0, which an earlier support function of the
    /// aggregate has returned. `None` if the argument is NULL. Raises error 0A000 if the call does
    /// not come from an aggregate.
    pub fn from_arg<'a>(call: &Call, n: usize) -> Option<&'a mut Self> {
        context(call);
        // SAFETY: all values of type `internal` that an aggregate passes were made by `as_datum`.
        (!call.is_null(n)).then(|| unsafe { &mut *call.internal::<Self>(n) })
    }

    /// Returns the list as a datum of type `internal`, for the next support function of the
    /// aggregate.
    pub fn as_datum(&mut self) -> Datum {
        Datum::from(core::ptr::from_mut(self))
    }

    /// All words of the list.
    pub fn as_slice(&self) -> &[u64] {
        if self.words.is_null() {
            return &[];
        }
        // SAFETY: `len` words are allocated and set.
        unsafe { core::slice::from_raw_parts(self.words, self.len) }
    }

    /// All words of the list, which the caller may change.
    pub fn as_mut_slice(&mut self) -> &mut [u64] {
        if self.words.is_null() {
            return &mut [];
        }
        // SAFETY: `len` words are allocated and set.
        unsafe { core::slice::from_raw_parts_mut(self.words, self.len) }
    }

    /// Inserts `count` words with the value 0 before the word at index `at`. If `at` is the length
    /// of the list, the words are appended.
    pub fn insert_zeroes(&mut self, at: usize, count: usize) {
        assert!(at <= self.len);
        let len = self.len + count;
        // SAFETY: the buffer gets room for `len` words before words move inside it; the first
        // `self.len` are set. The server raises an error if it has no more memory.
        unsafe {
            if self.words.is_null() {
                self.words = pg_sys::MemoryContextAlloc(self.context, 8 * len).cast();
                self.capacity = len;
            } else if len > self.capacity {
                let capacity = len.max(2 * self.capacity);
                self.words = pg_sys::repalloc(self.words.cast(), 8 * capacity).cast();
                self.capacity = capacity;
            }
            let gap = self.words.add(at);
            core::ptr::copy(gap, gap.add(count), self.len - at);
            gap.write_bytes(0, count);
        }
        self.len = len;
    }
}

impl WordStore for &mut GroupWords {
    fn words(&self) -> &[u64] {
        self.as_slice()
    }
    fn words_mut(&mut self) -> &mut [u64] {
        self.as_mut_slice()
    }
    fn insert_zeroes(&mut self, at: usize, count: usize) {
        (**self).insert_zeroes(at, count);
    }
}

/// Memory context of the aggregate's current group. Raises error 0A000 if the call does not come
/// from an aggregate.
fn context(call: &Call) -> pg_sys::MemoryContext {
    call.aggregate()
        .map(|(context, _)| context)
        .unwrap_or_else(|| {
            UserError::new(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                "aggregate support function was called directly",
            )
            .hint("Call the aggregate function instead.")
            .raise()
        })
}
