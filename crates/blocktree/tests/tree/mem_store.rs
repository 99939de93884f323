//! A store in memory that checks the lock order, makes all changes whole or not at all, and can
//! "crash" at any of them.

use neardup_blocktree::build::BuildHost;
use neardup_blocktree::key::Block;
use neardup_blocktree::page::{Kind, PAGE_SIZE, Page, PageRef};
use neardup_blocktree::sort::TempFiles;
use neardup_blocktree::store::{
    PAGES_PER_RECORD, PageChange, PageGuard, PrefetchPages, ReadPages, UnlockedCopy, WritePages,
};
use parking_lot::{ArcRwLockReadGuard, ArcRwLockWriteGuard, RawRwLock, RwLock};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cell::RefCell;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

thread_local! {
    /// Blocks that this thread has locked, with their level; `None` for unreachable pages.
    static HELD: RefCell<Vec<(Block, Option<u16>)>> = const { RefCell::new(Vec::new()) };
}

/// Returns whether this thread has no page locked.
pub fn holds_no_lock() -> bool {
    HELD.with_borrow(Vec::is_empty)
}

/// Payload of a simulated crash.
pub struct Crash;

/// Payload of an access beyond the end, which PostgreSQL's buffer manager reports by itself.
pub struct NoSuchBlock;

pub struct MemStore {
    pages: RwLock<Vec<Arc<RwLock<Page>>>>,
    /// Changes until the crash; negative for never.
    fuse: AtomicI64,
    /// Number of checks for interrupts.
    pauses: AtomicU64,
    /// Number of glances.
    glances: AtomicU64,
    /// Number of changes. Each page begins with that of its last one, as with a log position.
    changes: AtomicU64,
}

impl MemStore {
    pub fn new() -> Self {
        MemStore {
            pages: RwLock::new(Vec::new()),
            fuse: AtomicI64::new(-1),
            pauses: AtomicU64::new(0),
            glances: AtomicU64::new(0),
            changes: AtomicU64::new(0),
        }
    }

    pub fn crash_after(&self, changes: i64) {
        self.fuse.store(changes, Ordering::Relaxed);
    }

    /// Cuts off the pages after the first `blocks`.
    pub fn truncate(&self, blocks: Block) {
        self.pages.write().truncate(blocks as usize);
    }

    pub fn pauses(&self) -> u64 {
        self.pauses.load(Ordering::Relaxed)
    }

    pub fn blocks(&self) -> Block {
        self.pages.read().len() as Block
    }

    /// Overwrites bytes behind the tree's back.
    pub fn damage(&self, block: Block, offset: usize, bytes: &[u8]) {
        self.page(block).write()[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn page(&self, block: Block) -> Arc<RwLock<Page>> {
        let page = self.pages.read().get(block as usize).cloned();
        page.unwrap_or_else(|| std::panic::resume_unwind(Box::new(NoSuchBlock)))
    }

    /// The first bytes of pages that are changed now.
    fn next_version(&self) -> [u8; 8] {
        (self.changes.fetch_add(1, Ordering::Relaxed) + 1).to_ne_bytes()
    }

    fn burn(&self) {
        let burning = self.fuse.load(Ordering::Relaxed) >= 0;
        if burning && self.fuse.fetch_sub(1, Ordering::Relaxed) == 0 {
            std::panic::resume_unwind(Box::new(Crash));
        }
    }
}

/// Fields that do not depend on the number of words in a key.
fn view(page: &Page) -> PageRef<'_, 0> {
    PageRef::new(page)
}

/// Level of a page in the order of locking: the meta page is above all.
fn height(page: &Page) -> u16 {
    if view(page).kind() == Some(Kind::Meta) {
        u16::MAX
    } else {
        view(page).level()
    }
}

fn hold(block: Block, page: &Page) {
    HELD.with_borrow_mut(|held| {
        if view(page).kind() == Some(Kind::Free) {
            return held.push((block, None));
        }
        let highest = held.iter().filter_map(|(_, level)| *level).max();
        assert!(
            highest.is_none_or(|highest| height(page) > highest),
            "block {block} on level {} locked while holding {held:?}",
            height(page)
        );
        held.push((block, Some(height(page))));
    });
}

fn release(block: Block) {
    HELD.with_borrow_mut(|held| held.retain(|(other, _)| *other != block));
}

pub struct Read(ArcRwLockReadGuard<RawRwLock, Page>, Block);
pub struct Write(ArcRwLockWriteGuard<RawRwLock, Page>, Block);

impl Deref for Read {
    type Target = Page;
    fn deref(&self) -> &Page {
        &self.0
    }
}
impl Deref for Write {
    type Target = Page;
    fn deref(&self) -> &Page {
        &self.0
    }
}
impl PageGuard for Read {
    fn block(&self) -> Block {
        self.1
    }
}
impl PageGuard for Write {
    fn block(&self) -> Block {
        self.1
    }
}
impl Drop for Read {
    fn drop(&mut self) {
        release(self.1);
    }
}
impl Drop for Write {
    fn drop(&mut self) {
        release(self.1);
    }
}

impl ReadPages for MemStore {
    type Read<'a> = Read;

    fn read(&self, block: Block) -> Read {
        let guard = self.page(block).read_arc();
        hold(block, &guard);
        Read(guard, block)
    }

    fn version(&self, page: &Page) -> Option<u64> {
        page.first_chunk()
            .map(|version| u64::from_ne_bytes(*version))
    }

    fn check_interrupts(&self) {
        self.pauses.fetch_add(1, Ordering::Relaxed);
    }
}

impl PrefetchPages for MemStore {
    fn glance(&self, leaf: Block) -> Option<UnlockedCopy> {
        let mut glance = UnlockedCopy {
            head: [0; 8],
            tail: [0; 64],
        };
        // Nothing but what is prefetched may depend on what it says.
        let number = self.glances.fetch_add(1, Ordering::Relaxed);
        if number.is_multiple_of(4) {
            let mut bytes = StdRng::seed_from_u64(number);
            bytes.fill(&mut glance.head);
            bytes.fill(&mut glance.tail);
            return Some(glance);
        }
        let page = self.page(leaf);
        let page = page.try_read()?;
        glance
            .head
            .copy_from_slice(&page[UnlockedCopy::HEAD..][..8]);
        glance.tail.copy_from_slice(&page[UnlockedCopy::TAIL..]);
        Some(glance)
    }

    fn prefetch_part(&self, _leaf: Block, bytes: Range<usize>) {
        assert!(bytes.start <= bytes.end);
    }
}

impl WritePages for MemStore {
    type Write<'a> = Write;

    fn write(&self, block: Block) -> Write {
        let guard = self.page(block).write_arc();
        hold(block, &guard);
        Write(guard, block)
    }

    fn try_write(&self, block: Block) -> Option<Write> {
        let guard = self.page(block).try_write_arc()?;
        // As for `try_cleanup_lock`.
        HELD.with_borrow_mut(|held| held.push((block, Some(height(&guard)))));
        Some(Write(guard, block))
    }

    fn write_new(&self, block: Block) -> Write {
        let guard = self.page(block).write_arc();
        HELD.with_borrow_mut(|held| held.push((block, None)));
        Write(guard, block)
    }

    fn cleanup_lock(&self, block: Block) -> Write {
        self.write(block)
    }

    fn try_cleanup_lock(&self, block: Block) -> Option<Write> {
        let guard = self.page(block).try_write_arc()?;
        // An operation that does not wait may take pages in any order.
        HELD.with_borrow_mut(|held| held.push((block, Some(view(&guard).level()))));
        Some(Write(guard, block))
    }

    fn allocate(&self) -> Write {
        let page = Arc::new(RwLock::new([0; PAGE_SIZE]));
        let guard = page.write_arc();
        let mut pages = self.pages.write();
        pages.push(page);
        let block = pages.len() as Block - 1;
        HELD.with_borrow_mut(|held| held.push((block, None)));
        Write(guard, block)
    }

    fn write_logged(&self, changes: &mut [PageChange<'_, Write>]) {
        assert!(changes.len() <= PAGES_PER_RECORD);
        self.burn();
        let version = self.next_version();
        for PageChange { page, patches } in changes {
            let mut end = 0;
            for patch in patches {
                assert!(patch.offset >= end, "patches out of order");
                end = patch.offset + patch.bytes.len();
                page.0[patch.offset..end].copy_from_slice(patch.bytes);
            }
            page.0[..8].copy_from_slice(&version);
            assert_hole_is_zero(page);
        }
    }

    fn change<const P: usize>(&self, pages: [&mut Write; P], edit: impl FnOnce([&mut Page; P])) {
        const { assert!(P <= PAGES_PER_RECORD) };
        self.burn();
        let mut images: [Page; P] = std::array::from_fn(|i| **pages[i]);
        edit(images.each_mut());
        let version = self.next_version();
        for (page, mut image) in pages.into_iter().zip(images) {
            image[..8].copy_from_slice(&version);
            assert_hole_is_zero(&image);
            *page.0 = image;
        }
    }

    /// Half of them, so that vacuums go both ways.
    fn logs_whole(&self, page: &Write) -> bool {
        page[0].is_multiple_of(2)
    }
}

/// Recovery zeroes the hole, so nothing may live there.
fn assert_hole_is_zero(page: &Page) {
    assert!(page[view(page).hole()].iter().all(|&byte| byte == 0));
}

/// A temporary file in memory.
pub struct File {
    bytes: Vec<u8>,
    at: usize,
}

impl TempFiles for &MemStore {
    type File = File;

    fn create(&mut self) -> File {
        File {
            bytes: Vec::new(),
            at: 0,
        }
    }
    fn write(&mut self, file: &mut File, bytes: &[u8]) {
        // Nothing but `seek` leads anywhere but to the end.
        let end = (file.at + bytes.len()).max(file.bytes.len());
        file.bytes.resize(end, 0);
        file.bytes[file.at..file.at + bytes.len()].copy_from_slice(bytes);
        file.at += bytes.len();
    }
    fn rewind(&mut self, file: &mut File) {
        file.at = 0;
    }
    fn seek(&mut self, file: &mut File, offset: u64) {
        file.at = offset as usize;
    }
    fn read(&mut self, file: &mut File, bytes: &mut [u8]) {
        bytes.copy_from_slice(&file.bytes[file.at..file.at + bytes.len()]);
        file.at += bytes.len();
    }
    fn check_interrupts(&mut self) {}
}

impl BuildHost for &MemStore {
    fn put(&mut self, block: Block, page: &mut Page) {
        assert_hole_is_zero(page);
        let mut pages = self.pages.write();
        if block == 0 {
            *pages[0].write() = *page;
            return;
        }
        if pages.is_empty() {
            pages.push(Arc::new(RwLock::new([0; PAGE_SIZE])));
        }
        assert_eq!(block as usize, pages.len(), "blocks come in order");
        pages.push(Arc::new(RwLock::new(*page)));
    }
    fn permutation_done(&mut self, _: usize, _: usize) {}
}
