//! Temporary files of the server, for sorts and lists that do not fit in memory.
use neardup_blocktree::sort::TempFiles;
use pgrx::{PgSqlErrorCode, pg_sys};

use crate::compat;
use crate::errors::UserError;

/// Creates temporary files in the server's temporary tablespaces.
#[derive(Clone, Copy)]
pub struct TempSpace;

/// Temporary file of the server. It counts towards `temp_file_limit`. It is deleted when this value
/// is dropped, or at the end of the transaction at the latest.
pub struct TempFile {
    raw: *mut pg_sys::BufFile,
    /// Transaction that created the file. The file must not be used in a later one.
    transaction: u32,
}

impl TempFile {
    fn raw(&self) -> *mut pg_sys::BufFile {
        assert!(self.is_open(), "a file of an earlier transaction");
        self.raw
    }

    fn is_open(&self) -> bool {
        self.transaction == compat::local_transaction()
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // SAFETY: the file is open. After an error its resource owner closes it. If the value is
        // dropped during the cleanup of the transaction, the owner has already closed it.
        unsafe {
            if !std::thread::panicking() && pg_sys::IsTransactionState() && self.is_open() {
                pg_sys::BufFileClose(self.raw)
            }
        }
    }
}

impl TempFiles for TempSpace {
    type File = TempFile;

    fn create(&mut self) -> TempFile {
        // A table scan may reset the current memory context between two rows, so the file is made
        // in the transaction's context.
        // SAFETY: within a transaction.
        let raw = unsafe {
            let current = pg_sys::MemoryContextSwitchTo(pg_sys::TopTransactionContext);
            let file = pg_sys::BufFileCreateTemp(false);
            pg_sys::MemoryContextSwitchTo(current);
            file
        };
        TempFile {
            raw,
            transaction: compat::local_transaction(),
        }
    }

    fn write(&mut self, file: &mut TempFile, bytes: &[u8]) {
        // SAFETY: the file is open, and the server only reads the bytes.
        unsafe {
            pg_sys::BufFileWrite(
                file.raw(),
                bytes.as_ptr().cast_mut().cast(),
                bytes.len() as _,
            )
        };
    }

    fn rewind(&mut self, file: &mut TempFile) {
        self.seek(file, 0);
    }

    fn read(&mut self, file: &mut TempFile, bytes: &mut [u8]) {
        // SAFETY: the file is open, and `bytes` has room for the bytes read.
        unsafe { compat::buf_file_read_exact(file.raw(), bytes) };
    }

    fn seek(&mut self, file: &mut TempFile, offset: u64) {
        // SAFETY: the file is open. The server finds the segment that an offset lies in.
        let failed = unsafe { pg_sys::BufFileSeek(file.raw(), 0, offset as _, 0) } != 0;
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
