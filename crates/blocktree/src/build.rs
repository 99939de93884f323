//! Builds the tree of a new index, page by page, from sorted rows. The tree has one part for each
//! permutation (ordered copy of all keys), and one for the rows without a value (NULL). The shape
//! of a leaf says which common bytes it omits from its keys, and so how many entries fit.

use crate::bands::{self, Bands};
use crate::block_layout::{BlockLayout, Permutation};
use crate::inner::{self, InnerMut};
use crate::key::{Block, EntryKey, Key, Tid};
use crate::leaf::{self, LeafMut};
use crate::meta::{Meta, MetaMut, Root};
use crate::metric::{Metric, UsualBound};
use crate::page::{PAGE_SIZE, Page};
use crate::sets;
use crate::shape::{Shape, is_narrow, separator_within};
use crate::sort::{ExternalSort, TempFiles};

/// Host of an index build: stores the pages of the new tree and reports progress.
pub trait BuildHost: TempFiles {
    /// Writes a page of the new tree. The build calls it for the blocks from 1 on in ascending
    /// order, and for block 0 last.
    fn put(&mut self, block: Block, page: &mut Page);
    /// Reports progress: `done` of `permutations` permutations (ordered copies of all keys) are
    /// written.
    fn permutation_done(&mut self, done: usize, permutations: usize);
}

/// Default fill factor of leaves, in percent. The leaves of a new index then have room for the
/// inserts between two vacuums. This holds if each vacuum removes as many entries as were inserted
/// before it, and these are at most a tenth of all entries.
pub const DEFAULT_LEAF_FILL: u8 = 80;

/// Fill factors of the pages of a new tree, in percent of their capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Fill factor of leaves, in percent.
    pub leaf: u8,
    /// Fill factor of inner pages, in percent.
    pub inner: u8,
}

impl Fill {
    /// Returns the maximum number of entries of a leaf with the shape `shape`, at this fill factor.
    /// At least 2.
    pub(crate) fn of_leaf<const N: usize>(self, shape: Shape<N>) -> usize {
        (shape.capacity() * usize::from(self.leaf) / 100).max(2)
    }

    /// Returns the maximum number of entries of an inner page with keys of `N` words, at this fill
    /// factor. At least 2.
    pub(crate) fn of_inner<const N: usize>(self) -> usize {
        (inner::capacity::<N>() * usize::from(self.inner) / 100).max(2)
    }
}

impl Default for Fill {
    /// Returns the default fill factors: [`DEFAULT_LEAF_FILL`], and 90 percent for inner pages,
    /// which get far fewer entries than leaves.
    fn default() -> Self {
        Fill {
            leaf: DEFAULT_LEAF_FILL,
            inner: 90,
        }
    }
}

/// Writes the tree of an index on fingerprints and returns its meta page. `rows` has the rows with
/// a fingerprint, and `nulls` the rows without one. The meta page stores `radius`, the radius in
/// bits of searches that do not state one.
pub fn build<H: BuildHost, const N: usize>(
    host: &mut H,
    layout: &BlockLayout<N>,
    radius: u32,
    rows: &mut ExternalSort<H, N>,
    nulls: &mut ExternalSort<H, N>,
    fill: Fill,
) -> Meta {
    let permutations = layout.permutations();
    let root = write_tree(
        host,
        permutations.len(),
        nulls,
        fill,
        |host, writer, number| {
            writer.write_permutation(host, number, rows, Some(&permutations[number]));
        },
    );
    let meta = Meta {
        metric: Metric::Hamming {
            bits: layout.bits(),
        },
        words: N as u8,
        scope_words: layout.scope_words() as u8,
        guaranteed_radius: layout.radius() as u8,
        blocks: layout.blocks().len() as u8,
        permutations: permutations.len() as u16,
        bound: Some(UsualBound::Radius(radius)),
        root,
    };
    put_meta::<H, N>(host, meta)
}

/// Writes the tree of an index on signatures and returns its meta page. `rows` has the keys of each
/// band, and `nulls` the rows without a signature. The meta page stores `similarity`, the minimum
/// similarity of searches that do not state one.
pub fn build_bands<H: BuildHost, const N: usize>(
    host: &mut H,
    bands: &Bands,
    similarity: f64,
    rows: &mut [ExternalSort<H, N>],
    nulls: &mut ExternalSort<H, N>,
    fill: Fill,
) -> Meta {
    debug_assert_eq!(rows.len(), bands.count());
    let root = write_tree(host, rows.len(), nulls, fill, |host, writer, number| {
        writer.write_permutation(host, number, &mut rows[number], None);
        // Frees memory for the sorts of the other bands.
        rows[number] = ExternalSort::new(0);
    });
    let meta = Meta {
        metric: Metric::Jaccard(bands.hashes()),
        words: N as u8,
        scope_words: (N - bands::WORDS) as u8,
        guaranteed_radius: 0,
        blocks: bands.band_width() as u8,
        permutations: rows.len() as u16,
        bound: Some(UsualBound::Similarity(similarity)),
        root,
    };
    put_meta::<H, N>(host, meta)
}

/// Writes the tree of an index on sets and returns its meta page. `rows` has the keys of the two
/// permutations (rows, elements), and `nulls` the rows without a set.
pub fn build_sets<H: BuildHost, const N: usize>(
    host: &mut H,
    rows: &mut [ExternalSort<H, N>],
    nulls: &mut ExternalSort<H, N>,
    fill: Fill,
) -> Meta {
    debug_assert_eq!(rows.len(), sets::PERMUTATIONS);
    let root = write_tree(host, rows.len(), nulls, fill, |host, writer, number| {
        writer.write_permutation(host, number, &mut rows[number], None);
        rows[number] = ExternalSort::new(0);
    });
    let meta = Meta {
        metric: Metric::Overlap,
        words: N as u8,
        scope_words: (N - sets::WORDS) as u8,
        guaranteed_radius: 0,
        blocks: 0,
        permutations: rows.len() as u16,
        bound: None,
        root,
    };
    put_meta::<H, N>(host, meta)
}

/// Writes the leaves of all permutations, the leaves of the rows without a value (`nulls`), and all
/// inner pages. Returns the root. `write_permutation` gets the number of a permutation and writes
/// its leaves.
fn write_tree<H: BuildHost, const N: usize>(
    host: &mut H,
    permutations: usize,
    nulls: &mut ExternalSort<H, N>,
    fill: Fill,
    mut write_permutation: impl FnMut(&mut H, &mut LeafWriter<N>, usize),
) -> Root {
    let mut writer = LeafWriter::new(fill);
    for number in 0..permutations {
        write_permutation(host, &mut writer, number);
        host.permutation_done(number + 1, permutations);
    }
    writer.write_permutation(host, permutations, nulls, None);
    writer.finish(host)
}

/// Writes the meta page, which is the last page of a build.
fn put_meta<H: BuildHost, const N: usize>(host: &mut H, meta: Meta) -> Meta {
    let mut page = [0; PAGE_SIZE];
    MetaMut::format::<N>(&mut page, &meta);
    host.put(0, &mut page);
    meta
}

/// Writes leaves one after the other. Keeps the entries of the current leaf in memory, because the
/// shape of a leaf, and so its capacity, depends on all its entries.
struct LeafWriter<const N: usize> {
    page: Box<Page>,
    fill: Fill,
    /// Low key of the current leaf.
    start: EntryKey<N>,
    /// Block of the current leaf.
    block: Block,
    /// Entries of the current leaf.
    entries: Vec<(Key<N>, Tid)>,
    /// Shape of a leaf with the entries of the current leaf.
    shape: Shape<N>,
    /// Maximum number of entries of a leaf of this shape at the fill factor.
    room: usize,
    /// Low key and block of each page that has been written on the current level.
    starts: Vec<(EntryKey<N>, Block)>,
}

impl<const N: usize> LeafWriter<N> {
    fn new(fill: Fill) -> Self {
        LeafWriter {
            page: Box::new([0; PAGE_SIZE]),
            fill,
            start: EntryKey::start_of(0),
            block: 1,
            entries: Vec::with_capacity(leaf::most_entries::<N>()),
            shape: Shape::LEAST,
            room: 0,
            starts: Vec::new(),
        }
    }

    /// Writes all leaves of the permutation with the number `number`, from the keys in `rows`. The
    /// last leaf stays in memory until the next permutation begins or the build ends. `permutation`
    /// rearranges the keys. If it is `None`, they are stored unchanged.
    fn write_permutation<H: BuildHost>(
        &mut self,
        host: &mut H,
        number: usize,
        rows: &mut ExternalSort<H, N>,
        permutation: Option<&Permutation<N>>,
    ) {
        let start = EntryKey::start_of(number as u16);
        if number > 0 {
            self.write_leaf(host, Some(start));
        }
        self.begin_leaf(start);
        rows.in_order(host, permutation, |host, entry| {
            self.push(host, entry.key, Tid::from_packed(entry.tid));
        });
        self.divide_last(host);
    }

    /// Begins a new leaf without entries, with the low key `start`.
    fn begin_leaf(&mut self, start: EntryKey<N>) {
        self.start = start;
        self.shape = Shape::LEAST;
        self.room = self.fill.of_leaf(self.shape);
        self.entries.clear();
    }

    fn entry_key(&self, (key, tid): (Key<N>, Tid)) -> EntryKey<N> {
        EntryKey::new(self.start.permutation, key, tid)
    }

    /// Adds an entry to the current leaf, or to the next leaf if the current one is full.
    #[inline]
    fn push<H: BuildHost>(&mut self, host: &mut H, key: Key<N>, tid: Tid) {
        self.fit(&key, tid);
        if let Some(&last) = self.entries.last()
            && self.entries.len() >= self.room
        {
            self.end_leaf(host, last, (key, tid));
            self.fit(&key, tid);
        }
        self.entries.push((key, tid));
    }

    /// Changes the shape of the current leaf so that an entry with this key and this row address
    /// can be stored in it.
    #[inline]
    fn fit(&mut self, key: &Key<N>, tid: Tid) {
        let shape = self.shape.extended_for(&self.start, key, is_narrow(tid));
        if shape != self.shape {
            self.shape = shape;
            self.room = self.fill.of_leaf(shape);
        }
    }

    /// Writes the current leaf. `next` is the low key of the next leaf, or `None` if this is the
    /// last leaf of the tree.
    fn write_leaf<H: BuildHost>(&mut self, host: &mut H, next: Option<EntryKey<N>>) {
        let narrow = self.entries.iter().all(|&(_, tid)| is_narrow(tid));
        let shape = Shape::between(&self.start, next.as_ref(), narrow);
        let mut leaf = LeafMut::format_leaf(&mut self.page, &self.start, shape);
        leaf.push_all(self.entries.iter().copied());
        leaf.set_right_sibling(next.map(|next| (next, self.block + 1)));
        host.put(self.block, &mut self.page);
        self.starts.push((self.start, self.block));
        self.block += 1;
    }

    /// Writes the current leaf and begins the next one. `last` is the last entry of the current
    /// leaf, and `next` the first entry of the next one.
    fn end_leaf<H: BuildHost>(&mut self, host: &mut H, last: (Key<N>, Tid), next: (Key<N>, Tid)) {
        let (last, next) = (self.entry_key(last), self.entry_key(next));
        let left_out = Shape::LEAST
            .extended_for(&self.start, &last.key, true)
            .left_out();
        let separator = separator_within(&last, &next, left_out);
        self.write_leaf(host, Some(separator));
        self.begin_leaf(separator);
    }

    /// Splits the last leaf of a permutation until its entries fit. A leaf omits only bytes that
    /// all keys in its range have in common, and the range of the last leaf reaches to the end of
    /// the permutation. So its entries may take more space than [`LeafWriter::push`] assumed.
    fn divide_last<H: BuildHost>(&mut self, host: &mut H) {
        loop {
            let whole = Shape::between(&self.start, None, self.shape.is_narrow());
            if self.entries.len() <= self.fill.of_leaf(whole) {
                break;
            }
            let rest = self.entries.split_off(self.entries.len() / 2);
            let last = self.entries[self.entries.len() - 1];
            self.end_leaf(host, last, rest[0]);
            rest.iter().for_each(|(key, tid)| self.fit(key, *tid));
            self.entries.extend(rest);
        }
    }

    /// Writes the last leaf and all levels of inner pages. Returns the root.
    fn finish<H: BuildHost>(mut self, host: &mut H) -> Root {
        self.write_leaf(host, None);
        let mut level = 0;
        let mut next = self.block;
        while level == 0 || self.starts.len() > 1 {
            level += 1;
            let mut above = Vec::new();
            let mut groups = self.starts.chunks(self.fill.of_inner::<N>()).peekable();
            while let Some(group) = groups.next() {
                let mut page = InnerMut::format_at(&mut self.page, level, &group[0].0);
                for (start, block) in group {
                    page.push(start, *block);
                }
                page.set_right_sibling(groups.peek().map(|after| (after[0].0, next + 1)));
                host.put(next, &mut self.page);
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
