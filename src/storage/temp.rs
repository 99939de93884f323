//! Temporary files of the server's.
use neardup_blocktree::sort::TempFiles;
use pgrx::{PgSqlErrorCode, pg_sys};

use crate::pg::compat;
use crate::pg::errors::UserError;

/// Where temporary files are made.
#[derive(Clone, Copy)]
pub struct TempSpace {
    /// The context that they live in.
    context: pg_sys::MemoryContext,
}

impl TempSpace {
    /// Files that live as long as a memory context at most.
    pub fn in_context(context: pg_sys::MemoryContext) -> Self {
        TempSpace { context }
    }

    /// Files that live as long as the current memory context at most.
    pub fn new() -> Self {
        TempSpace {
            // SAFETY: a variable of the server's.
            context: unsafe { pg_sys::CurrentMemoryContext },
        }
    }
}

/// A temporary file of the server's: it counts towards `temp_file_limit`, and goes with the
/// transaction at the latest.
pub struct TempFile(*mut pg_sys::BufFile);

impl Drop for TempFile {
    fn drop(&mut self) {
        // SAFETY: the file is open. After an error its resource owner closes it, and where a set is
        // dropped with its memory when the transaction is cleaned up, has done so before.
        unsafe {
            if !std::thread::panicking() && pg_sys::IsTransactionState() {
                pg_sys::BufFileClose(self.0)
            }
        }
    }
}

impl TempFiles for TempSpace {
    type File = TempFile;

    fn create(&mut self) -> TempFile {
        // A table's scan may reset the context that is current while it hands over a row.
        // SAFETY: within a transaction; the context outlives the files.
        unsafe {
            let current = pg_sys::MemoryContextSwitchTo(self.context);
            let file = pg_sys::BufFileCreateTemp(false);
            pg_sys::MemoryContextSwitchTo(current);
            TempFile(file)
        }
    }

    fn write(&mut self, file: &mut TempFile, bytes: &[u8]) {
        // SAFETY: the file is open, and the server only reads the bytes.
        unsafe { pg_sys::BufFileWrite(file.0, bytes.as_ptr().cast_mut().cast(), bytes.len() as _) };
    }

    fn rewind(&mut self, file: &mut TempFile) {
        // SAFETY: the file is open. Its start always exists, so the result tells nothing.
        unsafe { pg_sys::BufFileSeek(file.0, 0, 0, 0) };
    }

    fn read(&mut self, file: &mut TempFile, bytes: &mut [u8]) {
        // SAFETY: the file is open, and there is room for what is asked for.
        unsafe { compat::buf_file_read_exact(file.0, bytes) };
    }

    fn seek(&mut self, file: &mut TempFile, place: u64) {
        // SAFETY: the file is open. The server finds the segment that an offset lies in.
        let failed = unsafe { pg_sys::BufFileSeek(file.0, 0, place as _, 0) } != 0;
        if failed {
            UserError::new(
                PgSqlErrorCode::ERRCODE_IO_ERROR,
                "could not seek in a temporary file",
            )
            .raise();
        }
    }

    fn check_interrupts(&mut self) {
        pgrx::check_for_interrupts!();
    }

    fn out_of_memory(&mut self) -> ! {
        UserError::out_of_memory().raise()
    }
}
