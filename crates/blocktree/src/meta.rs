//! The meta page (block 0) of an index: its parameters, the location of the root, and the free
//! lists. An index is on fingerprints, on MinHash signatures or on arrays. A free list has the
//! pages of one level that VACUUM has removed from the tree and that a split can reuse.

use crate::key::{Block, EntryKey};
use crate::metric::{Metric, UsualBound};
use crate::page::{self, Corruption, HEADER, Kind, Page, PageMut, PageRef};
use std::ops::{Deref, DerefMut};

/// Magic number of neardup indexes ("ndup"). It is in the first four bytes behind the page header
/// of the meta page.
pub const MAGIC: u32 = 0x6e64_7570;

/// Version of the on-disk format that this code reads and writes.
pub const VERSION: u16 = 4;

/// Location of the tree's root: block and level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Root {
    /// Block of the root page.
    pub block: Block,
    /// Level of the root page, counted from 0 for the leaves. It is at least 1, because each
    /// permutation has its own leaf from the start.
    pub level: u16,
}

/// Parameters on the meta page, without the free lists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Meta {
    /// Metric of the index, with the number of bits of a fingerprint or the number of hashes of a
    /// signature.
    pub metric: Metric<usize>,
    /// Number of 64-bit words of a key, including the scope's word.
    pub words: u8,
    /// Number of words at the front of a key that hold the hash of the scope: 0 or 1. The scope
    /// consists of the columns that must be equal in two near-duplicates.
    pub scope_words: u8,
    /// Guaranteed radius of an index on fingerprints, in bits: within it, two fingerprints agree in
    /// the leading bits of their keys in at least one permutation. 0 for other indexes. For
    /// signatures, the number of bands determines the guaranteed radius.
    pub guaranteed_radius: u8,
    /// For fingerprints: number of blocks into which a fingerprint is cut. For signatures: number
    /// of hashes in each band (group of hashes), or 0 if all hashes are divided evenly among the
    /// bands. 0 for arrays.
    pub blocks: u8,
    /// Number of permutations (ordered copies of all keys), not counting the additional one for
    /// rows without a value (NULL).
    pub permutations: u16,
    /// Radius or similarity of searches that do not state one. The permutations were chosen for it.
    /// `None` for arrays.
    pub bound: Option<UsualBound>,
    /// Location of the tree's root.
    pub root: Root,
}

/// Reason why a meta page cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetaError {
    /// The page is damaged, or is not the meta page of a neardup index.
    Corrupt(Corruption),
    /// The index has another version of the on-disk format. The value is that version.
    Version(u16),
}

const VERSION_AT: usize = HEADER + 4;
const SIZE: usize = HEADER + 6;
const WORDS: usize = HEADER + 8;
const SCOPE_WORDS: usize = HEADER + 9;
const GUARANTEED_RADIUS: usize = HEADER + 10;
const BLOCKS: usize = HEADER + 11;
const PERMUTATIONS: usize = HEADER + 12;
const ROOT_LEVEL: usize = HEADER + 14;
const ROOT: usize = HEADER + 16;
const METRIC: usize = HEADER + 20;
/// Offset of the usual bound: a radius as an integer, or a similarity as a float.
const BOUND: usize = HEADER + 24;
const FREE: usize = HEADER + 32;
const END: usize = FREE + FREE_LISTS * FREE_LIST;
/// Bytes of one free list on the meta page: 4 for the first free page, 4 for the number of free
/// pages.
const FREE_LIST: usize = 8;

/// Number of free lists: one for each level from the leaves (0) on, enough for a tree of 10^9
/// entries. Higher levels have none. A free page is reused only on its own level, because a process
/// may still follow an outdated link to it. On another level, that process could lock pages in an
/// order that causes a deadlock.
pub const FREE_LISTS: usize = 4;

/// Free list of one level: a linked list of free pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeList {
    /// First free page. `None` if the list is empty. The right link of each free page leads to the
    /// next free page.
    pub first: Option<Block>,
    /// Number of free pages in the list.
    pub count: u32,
}

/// View of the meta page. `P` is a reference to the page, or the guard of the locked page.
#[derive(Clone, Copy, Debug)]
pub struct MetaView<P>(P);

/// View of the meta page for reading.
pub type MetaRef<'a> = MetaView<&'a Page>;
/// View of the meta page for changing it.
pub type MetaMut<'a> = MetaView<&'a mut Page>;

impl<P: Deref<Target = Page>> MetaView<P> {
    /// Makes a view of a page, which must be block 0, without checking it.
    pub fn new(page: P) -> Self {
        MetaView(page)
    }

    /// Reads and checks the parameters and the location of the root.
    pub fn read(&self) -> Result<Meta, MetaError> {
        let page = &*self.0;
        let wrong = |what| Err(MetaError::Corrupt(Corruption { block: 0, what }));
        let kind = PageRef::<0>::new(page).kind();
        if kind != Some(Kind::Meta) || page::u32_at(page, HEADER) != MAGIC {
            return wrong("not the meta page of a neardup index");
        }
        let version = page::u16_at(page, VERSION_AT);
        if version != VERSION {
            return Err(MetaError::Version(version));
        }
        let size = page::u16_at(page, SIZE);
        let Some(metric) = Metric::from_code(page[METRIC], size) else {
            return wrong("meta page of an index over something unknown");
        };
        let Some(bound) = metric.bound_from_word(page::u64_at(page, BOUND)) else {
            return wrong("meta page with an impossible radius or similarity");
        };
        let meta = Meta {
            metric,
            words: page[WORDS],
            scope_words: page[SCOPE_WORDS],
            guaranteed_radius: page[GUARANTEED_RADIUS],
            blocks: page[BLOCKS],
            permutations: page::u16_at(page, PERMUTATIONS),
            bound,
            root: Root {
                block: page::u32_at(page, ROOT),
                level: page::u16_at(page, ROOT_LEVEL),
            },
        };
        let words = metric.words() + usize::from(meta.scope_words);
        if size == 0 || usize::from(meta.words) != words || meta.root.block == 0 {
            return wrong("meta page with impossible values");
        }
        Ok(meta)
    }

    /// Reads the location of the root from a meta page whose version was checked before. So another
    /// version is reported as corruption.
    pub fn root(&self) -> Result<Root, Corruption> {
        let meta = self.read().map_err(|error| match error {
            MetaError::Corrupt(corruption) => corruption,
            MetaError::Version(_) => Corruption {
                block: 0,
                what: "the layout version changed under way",
            },
        })?;
        Ok(meta.root)
    }

    /// Returns the free list of a level. It is empty for levels that have no list.
    pub fn free_list(&self, level: u16) -> FreeList {
        if usize::from(level) >= FREE_LISTS {
            return FreeList::default();
        }
        let at = FREE + FREE_LIST * usize::from(level);
        FreeList {
            first: Some(page::u32_at(&self.0, at)).filter(|&first| first != 0),
            count: page::u32_at(&self.0, at + 4),
        }
    }
}

impl<P: DerefMut<Target = Page>> MetaView<P> {
    /// Formats a page as the meta page of an index with keys of `N` words, with empty free lists.
    pub fn format<const N: usize>(mut page: P, meta: &Meta) -> Self {
        let mut view = PageMut::<N>::new(&mut page);
        view.format(Kind::Meta, 0, &EntryKey::start_of(0));
        let end = view.hole().end;
        view.set_hole(END..end);
        page::put_u32(&mut page, HEADER, MAGIC);
        page::put_u16(&mut page, VERSION_AT, VERSION);
        page::put_u16(&mut page, SIZE, meta.metric.value_size() as u16);
        page[WORDS] = meta.words;
        page[SCOPE_WORDS] = meta.scope_words;
        page[METRIC] = meta.metric.code();
        page[GUARANTEED_RADIUS] = meta.guaranteed_radius;
        page[BLOCKS] = meta.blocks;
        page::put_u16(&mut page, PERMUTATIONS, meta.permutations);
        page::put_u64(&mut page, BOUND, meta.bound.map_or(0, UsualBound::to_word));
        let mut view = MetaView(page);
        view.set_root(meta.root);
        view
    }

    /// Stores a new location of the root.
    pub(crate) fn set_root(&mut self, root: Root) {
        page::put_u16(&mut self.0, ROOT_LEVEL, root.level);
        page::put_u32(&mut self.0, ROOT, root.block);
    }

    /// Stores the free list of a level below [`FREE_LISTS`].
    pub(crate) fn set_free_list(&mut self, level: u16, list: FreeList) {
        let at = FREE + FREE_LIST * usize::from(level);
        page::put_u32(&mut self.0, at, list.first.unwrap_or(0));
        page::put_u32(&mut self.0, at + 4, list.count);
    }

    /// Formats `page`, which is at `block`, as a free page and puts it at the front of the free
    /// list of a level below [`FREE_LISTS`].
    pub(crate) fn add_free<const N: usize>(&mut self, page: &mut Page, block: Block, level: u16) {
        let FreeList { first, count } = self.free_list(level);
        PageMut::<N>::new(page).free(level, first);
        let list = FreeList {
            first: Some(block),
            count: count + 1,
        };
        self.set_free_list(level, list);
    }
}
