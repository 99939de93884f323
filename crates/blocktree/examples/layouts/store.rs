//! Page store in memory that costs about what shared buffers cost: a pin and a lock for each page,
//! and prefetches.
use neardup_blocktree::build::BuildHost;
use neardup_blocktree::key::Block;
use neardup_blocktree::page::{PAGE_SIZE, Page};
use neardup_blocktree::sort::TempFiles;
use neardup_blocktree::store::{PageGuard, PrefetchPages, ReadPages, UnlockedCopy};
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes from the start of a leaf that the server prefetches.
const MOST_OF_A_LEAF: usize = 60 * LINE;
const START_OF_A_LEAF: usize = 10 * LINE;

/// Header of a buffer, on a cache line of its own.
#[repr(align(64))]
#[derive(Default)]
struct Buffer {
    pins: AtomicU64,
    lock: AtomicU64,
}

/// Pages by block number.
#[derive(Default)]
pub struct Store {
    pages: Vec<Box<Page>>,
    buffers: Vec<Buffer>,
}

impl Store {
    fn prefetch_lines(&self, block: Block, bytes: Range<usize>) {
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let page = self.pages[block as usize].as_ptr().cast::<i8>();
            for line in bytes.start / LINE..bytes.end.min(PAGE_SIZE).div_ceil(LINE) {
                // SAFETY: a prefetch reads nothing that the program can see.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(page.wrapping_add(line * LINE)) };
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (block, bytes);
    }

    fn prefetch_page(&self, block: Block, bytes: usize) {
        self.prefetch_lines(block, PAGE_SIZE - LINE..PAGE_SIZE);
        self.prefetch_lines(block, 0..bytes.max(LINE));
    }
}

/// Locked page.
pub struct Guard<'a> {
    page: &'a Page,
    buffer: &'a Buffer,
    block: Block,
}

impl Deref for Guard<'_> {
    type Target = Page;
    fn deref(&self) -> &Page {
        self.page
    }
}

impl PageGuard for Guard<'_> {
    fn block(&self) -> Block {
        self.block
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.buffer.lock.fetch_sub(1, Ordering::Release);
        self.buffer.pins.fetch_sub(1, Ordering::Release);
    }
}

impl ReadPages for Store {
    type Read<'a> = Guard<'a>;

    fn read(&self, block: Block) -> Guard<'_> {
        let (page, buffer) = (&self.pages[block as usize], &self.buffers[block as usize]);
        buffer.pins.fetch_add(1, Ordering::Acquire);
        buffer.lock.fetch_add(1, Ordering::Acquire);
        Guard {
            page,
            buffer,
            block,
        }
    }

    fn check_interrupts(&self) {}
}

impl PrefetchPages for Store {
    fn prefetch(&self, leaf: Block) {
        self.prefetch_page(leaf, MOST_OF_A_LEAF);
    }

    fn prefetch_next(&self, leaf: Block) {
        self.prefetch_page(leaf, START_OF_A_LEAF);
    }

    fn prefetch_ends(&self, leaf: Block) {
        self.prefetch_page(leaf, 0);
    }

    fn prefetch_part(&self, leaf: Block, bytes: Range<usize>) {
        self.prefetch_lines(leaf, bytes);
    }

    fn glance(&self, leaf: Block) -> Option<UnlockedCopy> {
        let page = &self.pages[leaf as usize];
        let (mut head, mut tail) = ([0; 8], [0; 64]);
        head.copy_from_slice(&page[UnlockedCopy::HEAD..][..8]);
        tail.copy_from_slice(&page[UnlockedCopy::TAIL..][..64]);
        Some(UnlockedCopy { head, tail })
    }
}

impl TempFiles for Store {
    type File = ();

    fn create(&mut self) {
        unreachable!("rows are sorted in memory");
    }
    fn write(&mut self, (): &mut (), _: &[u8]) {}
    fn rewind(&mut self, (): &mut ()) {}
    fn read(&mut self, (): &mut (), _: &mut [u8]) {}
    fn seek(&mut self, (): &mut (), _: u64) {}
    fn check_interrupts(&mut self) {}
}

impl BuildHost for Store {
    fn put(&mut self, block: Block, page: &mut Page) {
        while self.pages.len() <= block as usize {
            self.pages.push(Box::new([0; PAGE_SIZE]));
            self.buffers.push(Buffer::default());
        }
        self.pages[block as usize].copy_from_slice(page);
    }

    fn permutation_done(&mut self, _: usize, _: usize) {}
}
