//! Writing a new tree, page after page, from rows that come in its order.

use crate::bands::{self, Bands};
use crate::block_layout::{BlockLayout, PermutedTable};
use crate::inner::{self, InnerMut};
use crate::key::{Block, EntryKey, Tid};
use crate::leaf::{self, LeafMut, LeafRef};
use crate::meta::{Meta, MetaMut, Metric, Root};
use crate::page::{PAGE_SIZE, Page, PageMut};
use crate::sets;
use crate::sort::{ExternalSort, TempFiles};

/// Receiver of the pages of a new tree and of reports of progress.
pub trait BuildHost: TempFiles {
    /// Takes a page. Blocks come in ascending order from 1, and block 0 last of all.
    fn put(&mut self, block: Block, page: &mut Page);
    /// Tells that the rows of one more table are written.
    fn table_done(&mut self, done: usize, tables: usize);
}

/// Fill factor of the pages of a new tree, in per cent of their capacity.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// Of leaves.
    pub leaf: u8,
    /// Of inner pages.
    pub inner: u8,
}

impl Fill {
    /// The most entries of a page on a level.
    pub(crate) fn entries<const N: usize>(self, level: u16) -> usize {
        let (capacity, percent) = match level {
            0 => (leaf::capacity::<N>(), self.leaf),
            _ => (inner::capacity::<N>(), self.inner),
        };
        (capacity * usize::from(percent) / 100).max(2)
    }
}

impl Default for Fill {
    /// Room for some inserts before the first splits, as PostgreSQL's btree leaves.
    fn default() -> Self {
        Fill {
            leaf: 90,
            inner: 90,
        }
    }
}

/// Writes a tree of these rows and of the rows that have no fingerprint.
pub fn build<H: BuildHost, const N: usize>(
    host: &mut H,
    layout: &BlockLayout<N>,
    rows: &mut ExternalSort<H, N>,
    nulls: &mut ExternalSort<H, N>,
    fill: Fill,
) -> Meta {
    let tables = layout.tables();
    let root = write_tree(host, tables.len(), nulls, fill, |host, writer, number| {
        writer.write_table(host, number, rows, Some(&tables[number]));
    });
    let meta = Meta {
        metric: Metric::Hamming,
        bits: layout.bits() as u16,
        words: N as u8,
        scope_words: layout.scope_words() as u8,
        distance: layout.distance() as u8,
        blocks: layout.blocks().len() as u8,
        tables: tables.len() as u16,
        root,
    };
    put_meta::<H, N>(host, meta)
}

/// Writes a tree of the rows of each band, in the order of their keys, and of the rows that have no
/// signature.
pub fn build_bands<H: BuildHost, const N: usize>(
    host: &mut H,
    bands: &Bands,
    rows: &mut [ExternalSort<H, N>],
    nulls: &mut ExternalSort<H, N>,
    fill: Fill,
) -> Meta {
    debug_assert_eq!(rows.len(), bands.count());
    let root = write_tree(host, rows.len(), nulls, fill, |host, writer, number| {
        writer.write_table(host, number, &mut rows[number], None);
        // Its memory is of use to the bands to come.
        rows[number] = ExternalSort::new(0);
    });
    let meta = Meta {
        metric: Metric::MinHash,
        bits: bands.hashes() as u16,
        words: N as u8,
        scope_words: (N - bands::WORDS) as u8,
        distance: 0,
        blocks: bands.rows() as u8,
        tables: rows.len() as u16,
        root,
    };
    put_meta::<H, N>(host, meta)
}

/// Writes a tree of the rows with a set, of their elements, and of the rows that have no set.
pub fn build_sets<H: BuildHost, const N: usize>(
    host: &mut H,
    rows: &mut [ExternalSort<H, N>],
    nulls: &mut ExternalSort<H, N>,
    fill: Fill,
) -> Meta {
    debug_assert_eq!(rows.len(), sets::TABLES);
    let root = write_tree(host, rows.len(), nulls, fill, |host, writer, number| {
        writer.write_table(host, number, &mut rows[number], None);
        rows[number] = ExternalSort::new(0);
    });
    let meta = Meta {
        metric: Metric::Overlap,
        bits: sets::BITS as u16,
        words: N as u8,
        scope_words: (N - sets::WORDS) as u8,
        distance: 0,
        blocks: 0,
        tables: rows.len() as u16,
        root,
    };
    put_meta::<H, N>(host, meta)
}

/// Writes table after table, the rows without a value and the levels above, and returns the root.
fn write_tree<H: BuildHost, const N: usize>(
    host: &mut H,
    tables: usize,
    nulls: &mut ExternalSort<H, N>,
    fill: Fill,
    mut write_table: impl FnMut(&mut H, &mut LeafWriter<N>, usize),
) -> Root {
    let mut writer = LeafWriter::new(fill);
    for number in 0..tables {
        write_table(host, &mut writer, number);
        host.table_done(number + 1, tables);
    }
    writer.write_table(host, tables, nulls, None);
    writer.finish(host)
}

/// Writes the meta page, the last one.
fn put_meta<H: BuildHost, const N: usize>(host: &mut H, meta: Meta) -> Meta {
    let mut page = [0; PAGE_SIZE];
    MetaMut::format::<N>(&mut page, &meta);
    host.put(0, &mut page);
    meta
}

/// Fills leaves one after the other, the current one in memory.
struct LeafWriter<const N: usize> {
    leaf: Box<Page>,
    block: Block,
    /// The last entry of the current leaf.
    last: Option<EntryKey<N>>,
    /// Start of each page of the current level.
    starts: Vec<(EntryKey<N>, Block)>,
    per_leaf: usize,
    per_inner: usize,
}

impl<const N: usize> LeafWriter<N> {
    fn new(fill: Fill) -> Self {
        LeafWriter {
            leaf: Box::new([0; PAGE_SIZE]),
            block: 0,
            last: None,
            starts: Vec::new(),
            per_leaf: fill.entries::<N>(0),
            per_inner: fill.entries::<N>(1),
        }
    }

    /// Writes all entries of a table.
    fn write_table<H: BuildHost>(
        &mut self,
        host: &mut H,
        number: usize,
        rows: &mut ExternalSort<H, N>,
        table: Option<&PermutedTable<N>>,
    ) {
        self.begin_leaf(host, EntryKey::start_of(number as u16));
        self.last = None;
        rows.in_order(host, table, |host, entry| {
            self.push(host, entry.key, Tid::from_packed(entry.tid));
        });
    }

    /// Ends the current leaf and begins the next, which starts at an entry key.
    fn begin_leaf<H: BuildHost>(&mut self, host: &mut H, start: EntryKey<N>) {
        let next = self.block + 1;
        if self.block != 0 {
            PageMut::new(&mut self.leaf).set_right_sibling(Some((start, next)));
            host.put(self.block, &mut self.leaf);
        }
        self.block = next;
        self.starts.push((start, next));
        LeafMut::format_leaf(&mut self.leaf, &start);
    }

    fn push<H: BuildHost>(&mut self, host: &mut H, key: [u64; N], tid: Tid) {
        let leaf = LeafRef::<N>::unchecked(&self.leaf);
        let entry_key = EntryKey::new(leaf.table(), key, tid);
        if leaf.count() == self.per_leaf
            && let Some(last) = self.last
        {
            self.begin_leaf(host, EntryKey::separator(&last, &entry_key));
        }
        LeafMut::unchecked(&mut self.leaf).push(&key, tid);
        self.last = Some(entry_key);
    }

    /// Ends the last leaf and writes the levels above.
    fn finish<H: BuildHost>(mut self, host: &mut H) -> Root {
        host.put(self.block, &mut self.leaf);
        let mut level = 0;
        let mut next = self.block + 1;
        while level == 0 || self.starts.len() > 1 {
            level += 1;
            let mut above = Vec::new();
            let mut groups = self.starts.chunks(self.per_inner).peekable();
            while let Some(group) = groups.next() {
                let mut page = InnerMut::format_at(&mut self.leaf, level, &group[0].0);
                for (start, block) in group {
                    page.push(start, *block);
                }
                page.set_right_sibling(groups.peek().map(|after| (after[0].0, next + 1)));
                host.put(next, &mut self.leaf);
                above.push((group[0].0, next));
                next += 1;
            }
            self.starts = above;
        }
        Root {
            block: self.starts[0].1,
            level,
        }
    }
}
