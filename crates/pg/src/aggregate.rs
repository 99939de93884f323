//! Aggregate state in memory that the server accounts for and frees.
use neardup_sketch::simhash::exact::WordStore;
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::{self, Datum};

use super::errors::UserError;
use super::fmgr::Call;
use super::value::ValueType;
use super::{server, varlena};

impl Call {
    /// Changes the bytes behind the header of argument `n`, a value of variable length. Changes
    /// them in place if the value is the state of the calling aggregate, else in a copy. Returns
    /// the changed value. The bytes are aligned to four bytes.
    pub fn edit_state(&self, n: usize, edit: impl FnOnce(&mut [u8])) -> Datum {
        let state = self.reference(n, ValueType::is_varlena);
        let may_change = matches!(self.aggregate(), Some((_, true)));
        // SAFETY: a value of variable length.
        let is_plain = unsafe { pgrx::varlena::varatt_is_4b_u(state.cast_mut_ptr()) };
        let state = match may_change && is_plain {
            true => state,
            // The server copies the result again and frees the previous state.
            false => varlena::build(&[self.aligned_bytes(n)]),
        };
        // SAFETY: nothing else uses the copy yet. An aggregate's state was made by one of its
        // steps or copied by the server, which passes it to one step at a time. Both have a plain
        // header.
        edit(unsafe { varlena::plain_body_mut(state) });
        state
    }
}

/// List of 64-bit words in an aggregate's memory, which lives as long as the current group.
pub struct GroupWords {
    words: *mut u64,
    len: usize,
    capacity: usize,
    context: pg_sys::MemoryContext,
}

impl GroupWords {
    /// Empty list in the memory of the aggregate's current group.
    pub fn new<'a>(call: &Call) -> &'a mut Self {
        Self::new_in(context(call))
    }

    /// Empty list in the current memory context, for this step of the aggregate only.
    pub fn new_for_now<'a>(call: &Call) -> &'a mut Self {
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

    /// List that argument `n` points to; `None` if the argument is NULL.
    pub fn from_arg<'a>(call: &Call, n: usize) -> Option<&'a mut Self> {
        context(call);
        // SAFETY: all values of type `internal` that an aggregate passes were made by `as_datum`.
        (!call.is_null(n)).then(|| unsafe { &mut *call.internal::<Self>(n) })
    }

    /// The state as a datum of type `internal`.
    pub fn as_datum(&mut self) -> Datum {
        Datum::from(core::ptr::from_mut(self))
    }

    /// All words.
    pub fn as_slice(&self) -> &[u64] {
        if self.words.is_null() {
            return &[];
        }
        // SAFETY: `len` words are allocated and set.
        unsafe { core::slice::from_raw_parts(self.words, self.len) }
    }

    /// All words, mutable.
    pub fn as_mut_slice(&mut self) -> &mut [u64] {
        if self.words.is_null() {
            return &mut [];
        }
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(self.words, self.len) }
    }

    /// Inserts `count` zeroes before index `at`, or at the end if `at` is the length.
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

/// Memory context of the current group. Raises error 0A000 if the caller is not an aggregate.
fn context(call: &Call) -> pg_sys::MemoryContext {
    call.aggregate()
        .map(|(context, _)| context)
        .unwrap_or_else(|| {
            UserError::new(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                "support function of an aggregate was called directly",
            )
            .hint("Call the aggregate.")
            .raise()
        })
}
