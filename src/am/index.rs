//! What a backend knows of an index: its meta page, and the designs and plans made from it.
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use neardup_blocktree::bands::Bands;
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::key::Block;
use neardup_blocktree::leaf;
use neardup_blocktree::meta::{self, Meta, MetaError, Metric, Root};
use neardup_blocktree::page::Corruption;
use neardup_blocktree::plan::Plan;
use neardup_blocktree::store::PageStore;
use neardup_blocktree::tree::Tree;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::index_cache::{self, IndexCache};
use super::keys::Layout;
use crate::pg::errors::UserError;
use crate::storage::pages::IndexPages;

/// What the relation cache remembers of an index, in one piece of plain memory.
#[derive(Clone, Copy)]
struct Cached {
    /// The meta page, as it was when this backend read it first. Only the root changes later.
    meta: Meta,
    layout: Layout,
    /// Tells this entry from others.
    serial: u64,
}

/// An open index with what its meta page says. Keys have `N` words.
pub struct Index<const N: usize> {
    relation: pg_sys::Relation,
    /// What its columns make of keys.
    pub layout: Layout,
    /// The meta page.
    pub meta: Meta,
    /// The design that it names.
    pub design: Rc<BlockLayout<N>>,
    /// The bands that it names, of an index on signatures.
    pub bands: Option<Rc<Bands>>,
    /// Its pages.
    pub pages: IndexPages,
    /// How many there were when it was opened, or a little before.
    pub blocks: Block,
    cache: Option<Rc<IndexCache>>,
}

/// The words of an open index's keys.
///
/// # Safety
/// The relation is an index of this access method.
pub unsafe fn words_of(relation: pg_sys::Relation) -> usize {
    // SAFETY: the caller's promise.
    usize::from(unsafe { cached(relation) }.meta.words)
}

impl<const N: usize> Index<N> {
    /// Reads the meta page, or what the relation cache remembers of it.
    ///
    /// # Safety
    /// The relation is an index of this access method, with keys of `N` words, and stays open as
    /// long as the result lives.
    pub unsafe fn open(relation: pg_sys::Relation) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::with_pages(relation, IndexPages::new(relation)) }
    }

    /// The same with what this transaction knows of it. To be used for what is done row by row; it
    /// locks the index until the transaction ends.
    ///
    /// # Safety
    /// As for [`Index::open`].
    pub unsafe fn open_cached(relation: pg_sys::Relation) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let cache = index_cache::cache_of(relation, cached(relation).serial);
            let pages = IndexPages::new(relation);
            let blocks = cache.blocks(&pages);
            Self::with_all(relation, pages, blocks, Some(cache))
        }
    }

    /// The same over pages that were opened for some purpose.
    ///
    /// # Safety
    /// As for [`Index::open`]; the pages are this relation's.
    pub unsafe fn with_pages(relation: pg_sys::Relation, pages: IndexPages) -> Self {
        let blocks = pages.blocks();
        // SAFETY: the caller's promise.
        unsafe { Self::with_all(relation, pages, blocks, None) }
    }

    unsafe fn with_all(
        relation: pg_sys::Relation,
        pages: IndexPages,
        blocks: Block,
        cache: Option<Rc<IndexCache>>,
    ) -> Self {
        // SAFETY: the caller's promise.
        let Cached { meta, layout, .. } = unsafe { cached(relation) };
        let bands = bands_of(relation, &meta);
        let design = design_of(relation, &meta, bands.as_deref());
        let mut index = Index {
            relation,
            layout,
            meta,
            design,
            bands,
            pages,
            blocks,
            cache,
        };
        if meta.root.block >= blocks {
            // The root has been moved, and the end of the index cut off.
            // SAFETY: the caller's promise.
            let meta = unsafe { read_meta(relation, &layout) };
            index.remember_root(meta.root);
        }
        index
    }

    /// The relation.
    pub fn relation(&self) -> pg_sys::Relation {
        self.relation
    }

    /// The tree, from the newest root that this backend knows.
    pub fn tree(&self) -> Tree<'_, IndexPages, N> {
        let tree = Tree::new(&self.pages, self.meta.root);
        match &self.cache {
            Some(cache) => tree.with_leaf_cache(&cache.leaves),
            None => tree,
        }
    }

    /// Keeps the root that a tree has come across for this backend's next look.
    pub fn remember_root(&mut self, root: Root) {
        if root != self.meta.root {
            self.meta.root = root;
            // SAFETY: as in `cached`; null if the server has dropped it since.
            unsafe {
                if let Some(cached) = (*self.relation).rd_amcache.cast::<Cached>().as_mut() {
                    cached.meta.root = root;
                }
            }
        }
    }

    /// The number of rows, by the size of the index.
    pub fn rows(&self) -> f64 {
        rows_of(&self.meta, f64::from(self.blocks))
    }

    /// Ends the statement if the tree is damaged.
    pub fn or_corrupt<T>(&self, result: Result<T, Corruption>) -> T {
        // SAFETY: the relation is open.
        result.unwrap_or_else(|corruption| unsafe { raise_corruption(self.relation, &corruption) })
    }
}

/// The number of rows in an index of so many blocks.
pub fn rows_of(meta: &Meta, blocks: f64) -> f64 {
    leaf::usual_count(usize::from(meta.words)) * blocks / f64::from(meta.tables.max(1))
}

/// The name of an open relation, quoted and with its schema where a statement needs that.
///
/// # Safety
/// The relation is open.
pub unsafe fn name(relation: pg_sys::Relation) -> String {
    // SAFETY: the caller's promise; names are C strings, the schema's null if it is just dropped.
    unsafe {
        let form = (*relation).rd_rel;
        let schema = pg_sys::get_namespace_name((*form).relnamespace);
        let name = pg_sys::quote_qualified_identifier(schema, (*form).relname.data.as_ptr());
        core::ffi::CStr::from_ptr(name)
            .to_string_lossy()
            .into_owned()
    }
}

unsafe fn cached(relation: pg_sys::Relation) -> Cached {
    // SAFETY: `rd_amcache` is null or what was put there below. It is plain memory, which the
    // server frees in one piece whenever the index may have been rebuilt.
    unsafe {
        let place = (*relation).rd_amcache.cast::<Cached>();
        if let Some(cached) = place.as_ref() {
            return *cached;
        }
        let layout = Layout::of(relation);
        let meta = read_meta(relation, &layout);
        let cached = Cached {
            meta,
            layout,
            serial: index_cache::next_serial(),
        };
        let place = pg_sys::MemoryContextAlloc((*relation).rd_indexcxt, size_of::<Cached>());
        place.cast::<Cached>().write(cached);
        (*relation).rd_amcache = place;
        cached
    }
}

unsafe fn read_meta(relation: pg_sys::Relation, layout: &Layout) -> Meta {
    // SAFETY: the caller's relation is open.
    let pages = unsafe { IndexPages::new(relation) };
    let meta = meta::read(&pages.read(0));
    match meta {
        Ok(meta)
            if usize::from(meta.words) == layout.words()
                && (meta.metric == Metric::MinHash) == layout.signatures
                && usize::from(meta.scope_words) == layout.scope_words() =>
        {
            meta
        }
        Ok(_) => {
            let what = "keys of another layout than its columns make";
            // SAFETY: the caller's relation is open.
            unsafe { raise_corruption(relation, &Corruption { block: 0, what }) }
        }
        // SAFETY: as above.
        Err(MetaError::Corrupt(corruption)) => unsafe { raise_corruption(relation, &corruption) },
        Err(MetaError::Version(version)) => {
            // SAFETY: as above.
            let name = unsafe { name(relation) };
            UserError::new(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!(
                    "index {name} has layout version {version}, \
                     which this version of neardup does not know"
                ),
            )
            .detail(format!(
                "It reads and writes layout version {}.",
                meta::VERSION
            ))
            .hint(format!("REINDEX INDEX {name};"))
            .raise()
        }
    }
}

unsafe fn raise_corruption(relation: pg_sys::Relation, corruption: &Corruption) -> ! {
    // SAFETY: the caller's relation is open.
    let name = unsafe { name(relation) };
    UserError::new(
        PgSqlErrorCode::ERRCODE_INDEX_CORRUPTED,
        format!("index {name} is damaged"),
    )
    .detail(format!("In {corruption}."))
    .hint(format!(
        "REINDEX INDEX {name} makes it anew from the table. Look for failing disks or memory."
    ))
    .raise()
}

/// What a design, or bands, are made from: a meta page without the root.
type Known = (Metric, u16, u8, u8, u8, u8, u16);

fn known(meta: &Meta) -> Known {
    let Meta {
        metric,
        bits,
        words,
        scope_words,
        distance,
        blocks,
        tables,
        root: _,
    } = *meta;
    (metric, bits, words, scope_words, distance, blocks, tables)
}

/// What a backend makes once, of whatever width.
type Cache<K> = RefCell<Vec<(K, Rc<dyn Any>)>>;

thread_local! {
    /// Designs. There are few, and each is small. The words say of what type each is.
    static DESIGNS: Cache<Known> = RefCell::default();
    /// Bands, likewise.
    static BANDS: Cache<Known> = RefCell::default();
    /// Plans by design, radius, and the number of rows as a power of two.
    static PLANS: Cache<(Known, u32, i32)> = RefCell::default();
}

/// What a cache has for a key, or what is made for it now.
fn remembered<K: Eq, T: 'static>(
    cache: &'static std::thread::LocalKey<Cache<K>>,
    key: K,
    make: impl FnOnce() -> T,
) -> Rc<T> {
    // What is asked for often moves to the front.
    let found = cache.with_borrow_mut(|cache| {
        let place = (cache.iter()).position(|(known, value)| *known == key && value.is::<T>())?;
        cache.swap(place, place / 2);
        Some(cache[place / 2].1.clone())
    });
    if let Some(Ok(value)) = found.map(Rc::downcast::<T>) {
        return value;
    }
    let value = Rc::new(make());
    cache.with_borrow_mut(|cache| cache.push((key, value.clone())));
    value
}

fn bands_of(relation: pg_sys::Relation, meta: &Meta) -> Option<Rc<Bands>> {
    if meta.metric != Metric::MinHash {
        return None;
    }
    let bands = remembered(&BANDS, known(meta), || {
        let (hashes, count) = (usize::from(meta.bits), usize::from(meta.tables));
        Bands::new(hashes, count, usize::from(meta.blocks))
            .ok()
            .map(Rc::new)
    });
    Some(
        (*bands)
            .clone()
            .unwrap_or_else(|| impossible_design(relation)),
    )
}

fn design_of<const N: usize>(
    relation: pg_sys::Relation,
    meta: &Meta,
    bands: Option<&Bands>,
) -> Rc<BlockLayout<N>> {
    let design = remembered(&DESIGNS, known(meta), || {
        if let Some(bands) = bands {
            return Some(Rc::new(bands.layout(meta.scope_words > 0)));
        }
        let (distance, blocks) = (u32::from(meta.distance), u32::from(meta.blocks));
        BlockLayout::in_scope(meta.scope_words > 0, distance, blocks)
            .ok()
            .map(Rc::new)
    });
    match &*design {
        Some(design) if design.tables().len() == usize::from(meta.tables) => design.clone(),
        _ => impossible_design(relation),
    }
}

fn impossible_design(relation: pg_sys::Relation) -> ! {
    let what = "meta page with an impossible design";
    // SAFETY: the caller's relation is open.
    unsafe { raise_corruption(relation, &Corruption { block: 0, what }) }
}

/// The plan for searches of a radius among so many rows.
pub fn plan_of<const N: usize>(
    meta: &Meta,
    design: &BlockLayout<N>,
    radius: u32,
    rows: f64,
) -> Rc<Plan<N>> {
    // A radius beyond the width holds everything; rows to a power of two are as good as their
    // exact number. Both keep the plans few.
    let radius = radius.min(design.bits());
    let magnitude = rows.max(1.0).log2().round();
    remembered(&PLANS, (known(meta), radius, magnitude as i32), || {
        Plan::new(design, radius, magnitude.exp2())
    })
}
