//! Index of the PostgreSQL extension neardup: keys by which near-duplicates are found, and the
//! B-link tree that stores them. The keys of fingerprints are block permutations (Manku, Jain, Das
//! Sarma: "Detecting near-duplicates for web crawling", WWW 2007).
//!
//! docs/dev/architecture.md describes the steps of a search and of an insert through these modules.
//!
//! # Example
//! A page store in memory, for one thread. It needs no locks: its guards are copies of pages.
//!
//! ```
//! use neardup_blocktree::block_layout::BlockLayout;
//! use neardup_blocktree::build::{BuildHost, Fill, build};
//! use neardup_blocktree::key::{Block, EntryKey, Tid};
//! use neardup_blocktree::page::{PAGE_SIZE, Page};
//! use neardup_blocktree::plan::Plan;
//! use neardup_blocktree::scan::Scan;
//! use neardup_blocktree::sort::{ExternalSort, TempFiles};
//! use neardup_blocktree::store::{
//!     PageChange, PageGuard, Patch, PrefetchPages, ReadPages, WritePages,
//! };
//! use neardup_blocktree::tree::Tree;
//! use std::cell::RefCell;
//! use std::io::{Cursor, Read, Write};
//! use std::rc::Rc;
//!
//! struct Memory(RefCell<Vec<Rc<Page>>>);
//! struct Locked(Block, Rc<Page>);
//!
//! impl std::ops::Deref for Locked {
//!     type Target = Page;
//!     fn deref(&self) -> &Page { &self.1 }
//! }
//! impl PageGuard for Locked {
//!     fn block(&self) -> Block { self.0 }
//! }
//! impl ReadPages for Memory {
//!     type Read<'a> = Locked;
//!     fn read(&self, block: Block) -> Locked {
//!         Locked(block, self.0.borrow()[block as usize].clone())
//!     }
//!     fn check_interrupts(&self) {}
//! }
//! impl PrefetchPages for Memory {}
//! impl WritePages for Memory {
//!     type Write<'a> = Locked;
//!     fn write(&self, block: Block) -> Locked { self.read(block) }
//!     fn try_write(&self, block: Block) -> Option<Locked> { Some(self.read(block)) }
//!     fn write_new(&self, block: Block) -> Locked { self.read(block) }
//!     fn cleanup_lock(&self, block: Block) -> Locked { self.read(block) }
//!     fn try_cleanup_lock(&self, block: Block) -> Option<Locked> { Some(self.read(block)) }
//!     fn allocate(&self) -> Locked {
//!         self.0.borrow_mut().push(Rc::new([0; PAGE_SIZE]));
//!         self.read(self.0.borrow().len() as Block - 1)
//!     }
//!     fn change<const P: usize>(
//!         &self, mut pages: [&mut Locked; P], edit: impl FnOnce([&mut Page; P]),
//!     ) {
//!         edit(pages.each_mut().map(|page| Rc::make_mut(&mut page.1)));
//!         for page in pages {
//!             self.0.borrow_mut()[page.0 as usize] = page.1.clone();
//!         }
//!     }
//!     fn write_logged<'b>(&'b self, changes: &mut [PageChange<'_, Locked>]) {
//!         for PageChange { page, patches } in changes {
//!             self.change([*page], |[page]| {
//!                 for Patch { offset, bytes } in patches {
//!                     page[*offset..][..bytes.len()].copy_from_slice(bytes);
//!                 }
//!             });
//!         }
//!     }
//! }
//!
//! // A build writes pages one after the other, block 0 last.
//! impl BuildHost for Memory {
//!     fn put(&mut self, block: Block, page: &mut Page) {
//!         let pages = self.0.get_mut();
//!         pages.resize(pages.len().max(block as usize + 1), Rc::new([0; PAGE_SIZE]));
//!         pages[block as usize] = Rc::new(*page);
//!     }
//!     fn permutation_done(&mut self, _done: usize, _permutations: usize) {}
//! }
//! // Rows that do not fit into memory are sorted in files.
//! impl TempFiles for Memory {
//!     type File = Cursor<Vec<u8>>;
//!     fn create(&mut self) -> Self::File { Cursor::default() }
//!     fn write(&mut self, file: &mut Self::File, bytes: &[u8]) {
//!         file.write_all(bytes).unwrap();
//!     }
//!     fn rewind(&mut self, file: &mut Self::File) { file.set_position(0); }
//!     fn read(&mut self, file: &mut Self::File, bytes: &mut [u8]) {
//!         file.read_exact(bytes).unwrap();
//!     }
//!     fn seek(&mut self, file: &mut Self::File, offset: u64) { file.set_position(offset); }
//!     fn check_interrupts(&mut self) {}
//! }
//!
//! // An index of 64-bit fingerprints that guarantees a radius of 3 bits, with two rows.
//! let mut store = Memory(RefCell::default());
//! let layout = Rc::new(BlockLayout::<1>::new(3, 4).unwrap());
//! let (mut rows, mut nulls) = (ExternalSort::new(0), ExternalSort::new(0));
//! rows.push(&mut store, [0x0123_4567_89ab_cdef], Tid::new(0, 1));
//! rows.push(&mut store, [0xfedc_ba98_7654_3210], Tid::new(0, 2));
//! let meta = build(&mut store, &layout, 3, &mut rows, &mut nulls, Fill::default());
//!
//! // Insert another row: an entry in each permutation.
//! let tree = Tree::new(&store, meta.root);
//! for (number, permutation) in (0..).zip(layout.permutations()) {
//!     let key = permutation.permute(&[0x0123_4567_89ab_cdee]);
//!     tree.insert(&EntryKey::new(number, key, Tid::new(0, 3)))?;
//! }
//!
//! // Find the rows within 2 bits of a query.
//! let plan = Rc::new(Plan::new(&layout, 2, 3.0));
//! let mut scan = Scan::new(layout, plan, [0x0123_4567_89ab_cded]);
//! let mut found = Vec::new();
//! while scan.step(&tree, &mut found)? {}
//! found.sort_by_key(|row| row.distance);
//! let found: Vec<_> = found.iter().map(|row| (row.tid, row.distance)).collect();
//! assert_eq!(found, [(Tid::new(0, 1), 1), (Tid::new(0, 3), 2)]);
//! # Ok::<(), neardup_blocktree::page::Corruption>(())
//! ```
//!
//! The modules, from the values to the algorithms:
//! * [`key`]: row addresses, keys, and the total order of the tree's entries;
//! * [`block_layout`]: blocks of a fingerprint, and the permutations of an index on fingerprints;
//! * [`bands`]: permutations and searches of an index on MinHash signatures;
//! * [`sets`]: permutations and searches of an index on arrays, which finds overlapping sets;
//! * [`metric`]: which of these three an index uses, and the conventional threshold of
//!   near-duplicates; [`index_metric`]: the permutations of an index by its metric;
//! * [`shared_keys`], [`approximate_keys`]: keys of fingerprints and signatures for joins without
//!   an index;
//! * [`layout_choice`]: the best block layout for a radius and a number of rows;
//! * [`plan`]: the permutations that a search reads, and which prefixes it looks up in each;
//! * [`page`], [`shape`], [`leaf`], [`inner`], [`meta`]: formats of pages;
//! * [`filter`]: vector kernels for the distances of a leaf's keys from a query;
//! * [`store`]: interface to the buffer manager (locks, logging, allocation);
//! * [`leaf_cache`]: the last used leaf of each permutation; [`empty_search`]: searches without a
//!   result, which an insertion of the same value need not repeat;
//! * [`tree`], [`insert`], [`level_cursor`], [`scan`], [`knn`], [`vacuum`], [`merge`], [`compact`],
//!   [`check`], [`info`]: algorithms on the tree;
//! * [`pairs`]: search for all pairs within a radius, one permutation after the other;
//! * [`clusters`], [`crowded_centers`]: clusters of such pairs;
//! * [`sort`], [`paged`], [`spilled_lists`], [`spilled_bytes`]: external sort, arrays, lists and
//!   byte strings within a memory limit;
//! * [`repeated_passages`]: passages that earlier documents contain;
//! * [`build`]: the tree of a new index, from sorted rows.
//!
//! No module uses PostgreSQL. Pages have the header that its buffer manager expects.

pub mod approximate_keys;
pub mod bands;
pub mod block_layout;
pub mod build;
pub mod check;
pub mod clusters;
pub mod compact;
pub mod crowded_centers;
pub mod empty_search;
pub mod filter;
pub mod full_scan;
pub mod index_metric;
pub mod info;
pub mod inner;
mod inner_cache;
pub mod insert;
pub mod key;
pub mod knn;
pub mod layout_choice;
pub mod leaf;
pub mod leaf_cache;
mod leaf_prefetch;
mod leaf_queue;
pub mod level_cursor;
mod look_ahead;
pub mod merge;
pub mod meta;
pub mod metric;
pub mod page;
pub mod paged;
pub mod pairs;
pub mod plan;
mod probes;
pub mod repeated_passages;
pub mod scan;
pub mod sets;
pub mod shape;
pub mod shared_keys;
pub mod sort;
pub mod spilled_bytes;
pub mod spilled_lists;
pub mod store;
mod topk;
pub mod tree;
pub mod vacuum;
