//! The meta page, block 0: the parameters of the index, its root, and the lists of free pages.

use crate::key::{Block, EntryKey};
use crate::metric::{Metric, UsualBound};
use crate::page::{self, Corruption, HEADER, Kind, Page, PageMut, PageRef};
use std::ops::{Deref, DerefMut};

/// The first four bytes of the meta page's content: "ndup".
pub const MAGIC: u32 = 0x6e64_7570;

/// The version of the layout that this code reads and writes.
pub const VERSION: u16 = 3;

/// Block and height of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Root {
    /// The root's block.
    pub block: Block,
    /// Its height above the leaves: 1 or more, since each permutation has a leaf from the start.
    pub level: u16,
}

/// Content of the meta page, without the free lists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Meta {
    /// The metric of the index, with the number of hashes in a signature.
    pub metric: Metric<usize>,
    /// Number of 64-bit words of a key: the fingerprint's, preceded by the scope's.
    pub words: u8,
    /// Words of the key that hold a scope, in front of the fingerprint's: 0 or 1.
    pub scope_words: u8,
    /// The guaranteed radius over bits; over symbols it follows from the permutations, and this is
    /// 0.
    pub guaranteed_radius: u8,
    /// The blocks a fingerprint is cut into, or the symbols of each band (0: shared out evenly).
    pub blocks: u8,
    /// Permutations, without that of the rows that have no fingerprint.
    pub permutations: u16,
    /// Bound of searches that state none. The permutations were chosen for it. `None` for arrays.
    pub bound: Option<UsualBound>,
    /// The tree's root.
    pub root: Root,
}

/// Reason why a meta page cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetaError {
    /// Not a meta page of this kind of index, or damaged.
    Corrupt(Corruption),
    /// Written in a layout of another version.
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
/// A radius as an integer, or a similarity as a floating-point number.
const BOUND: usize = HEADER + 24;
const FREE: usize = HEADER + 32;
const END: usize = FREE + FREE_LISTS * FREE_LIST;
/// Bytes of a list of free pages: the first of them, and how many there are.
const FREE_LIST: usize = 8;

/// Number of lists of free pages: one for each level from the leaves (0) on, enough for a tree of
/// 10^9 entries. Levels above have no list. A page is reused on its own level only, so that locks
/// keep their order even for a reader that follows an outdated link.
pub const FREE_LISTS: usize = 4;

/// The free pages of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeList {
    /// The first. Each leads to the next by its right link.
    pub first: Option<Block>,
    /// Number of free pages.
    pub count: u32,
}

/// View of the meta page. `P` is as for [`page::PageView`].
#[derive(Clone, Copy, Debug)]
pub struct MetaView<P>(P);

/// View of the meta page for reading.
pub type MetaRef<'a> = MetaView<&'a Page>;
/// View of the meta page for changing it.
pub type MetaMut<'a> = MetaView<&'a mut Page>;

impl<P: Deref<Target = Page>> MetaView<P> {
    /// A view of block 0.
    pub fn new(page: P) -> Self {
        MetaView(page)
    }

    /// Reads and checks the parameters.
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

    /// Reads where the root stands, of a meta page that has been read before.
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

    /// Free pages of a level. Levels above the supported ones have none.
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
    /// Makes a page the meta page of an index with keys of `N` words.
    pub fn format<const N: usize>(mut page: P, meta: &Meta) -> Self {
        let mut view = PageMut::<N>::new(&mut page);
        view.format(Kind::Meta, 0, &EntryKey::start_of(0));
        let end = view.hole().end;
        view.set_hole(END..end);
        page::put_u32(&mut page, HEADER, MAGIC);
        page::put_u16(&mut page, VERSION_AT, VERSION);
        page::put_u16(&mut page, SIZE, meta.metric.size() as u16);
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

    /// Changes the root.
    pub(crate) fn set_root(&mut self, root: Root) {
        page::put_u16(&mut self.0, ROOT_LEVEL, root.level);
        page::put_u32(&mut self.0, ROOT, root.block);
    }

    /// Changes the list of a level, which can have one.
    pub(crate) fn set_free_list(&mut self, level: u16, list: FreeList) {
        let at = FREE + FREE_LIST * usize::from(level);
        page::put_u32(&mut self.0, at, list.first.unwrap_or(0));
        page::put_u32(&mut self.0, at + 4, list.count);
    }

    /// Takes a page out of use and puts it in front of the list of its level, which can have one.
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
