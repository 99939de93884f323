//! An open index: its meta page, and the block layouts and plans made from it. A backend caches
//! all of them.
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use neardup_blocktree::bands::Bands;
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::empty_search::LoneRow;
use neardup_blocktree::index_metric::IndexMetric;
use neardup_blocktree::key::Block;
use neardup_blocktree::leaf;
use neardup_blocktree::meta::{self, Meta, MetaError, MetaRef, Root};
use neardup_blocktree::metric::{Metric, UsualBound};
use neardup_blocktree::page::Corruption;
use neardup_blocktree::plan::Plan;
use neardup_blocktree::store::ReadPages;
use neardup_blocktree::tree::Tree;
use pgrx::PgSqlErrorCode;

use super::index_cache::{self, IndexCache};
use super::keys::{Layout, with_words};
use neardup_pg::compat::OldSnapshotCheck;
use neardup_pg::errors::UserError;
use neardup_pg::rel::Rel;
use neardup_pg::scan_desc::Rest;
use neardup_pg::storage::pages::IndexPages;

/// Entry of the relation cache for an index. The server stores it as one block of plain memory.
#[derive(Clone, Copy)]
struct Cached {
    /// The meta page as this backend first read it. Only the root changes later.
    meta: Meta,
    layout: Layout,
    /// Identifies this entry.
    serial: u64,
}

/// An open index with the contents of its meta page. Keys have `N` words.
pub struct Index<'a, const N: usize> {
    /// Layout of the keys.
    pub layout: Layout,
    /// The meta page.
    pub meta: Meta,
    /// Block layout that the meta page names.
    pub block_layout: Rc<BlockLayout<N>>,
    /// Metric that the meta page names.
    pub metric: IndexMetric,
    /// Pages of the index.
    pub pages: IndexPages<'a>,
    /// Number of pages when the index was opened, or a little before.
    pub blocks: Block,
    cache: Option<Rc<IndexCache>>,
}

/// Returns the number of words in the keys of an open index.
pub fn words_of(index: Rel) -> usize {
    usize::from(cached(index).meta.words)
}

/// Returns the radius or similarity of most searches, as the build stored it. `None` for arrays.
pub fn bound_of(index: Rel) -> Option<UsualBound> {
    cached(index).meta.bound
}

/// Returns whether an open index has a meta page that this version can read.
pub fn is_readable(index: Rel) -> bool {
    let pages = IndexPages::new(index, OldSnapshotCheck::NONE);
    pages.blocks() > 0 && MetaRef::new(&pages.read(0)).read().is_ok()
}

/// Returns the slot that keeps the state of a finished scan of an open index for the next scan.
pub fn rest_of(index: Rel) -> Rc<Rest> {
    index_cache::cache_of(index, cached(index).serial)
        .rest
        .clone()
}

impl<'a, const N: usize> Index<'a, N> {
    /// Opens an index for a function that must find all rows visible to the active snapshot. Reads
    /// the meta page, or its copy in the relation cache. Raises an internal error if the relation
    /// is not a neardup index with keys of `N` words.
    pub fn open(index: Rel<'a>) -> Self {
        Self::with_pages(IndexPages::new(index, OldSnapshotCheck::from_active()))
    }

    /// Opens an index with the data that the current transaction has cached for it. Meant for work
    /// row by row; the index stays locked until the transaction ends. Readers set the check of
    /// their snapshot ([`IndexPages::set_check`]).
    pub fn open_cached(index: Rel<'a>) -> Self {
        let cache = index_cache::cache_of(index, cached(index).serial);
        let pages = IndexPages::new(index, OldSnapshotCheck::NONE);
        let blocks = cache.blocks(&pages);
        Self::with_all(pages, blocks, Some(cache))
    }

    /// Opens an index like [`Index::open`], over pages that the caller has opened, for example
    /// with a ring of buffers.
    pub fn with_pages(pages: IndexPages<'a>) -> Self {
        let blocks = pages.blocks();
        Self::with_all(pages, blocks, None)
    }

    fn with_all(pages: IndexPages<'a>, blocks: Block, cache: Option<Rc<IndexCache>>) -> Self {
        let relation = pages.relation();
        let Cached { meta, layout, .. } = cached(relation);
        assert_eq!(usize::from(meta.words), N);
        let (metric, block_layout) = block_layout_of(relation, &meta);
        let mut index = Index {
            layout,
            meta,
            block_layout,
            metric,
            pages,
            blocks,
            cache,
        };
        index.check_root();
        index
    }

    /// Opens the index again in the transaction that cached it ([`Index::open_cached`]).
    pub fn reopen(&mut self) {
        let relation = self.relation();
        self.pages = IndexPages::new(relation, OldSnapshotCheck::NONE);
        self.meta.root = cached(relation).meta.root;
        if let Some(cache) = &self.cache {
            self.blocks = cache.blocks(&self.pages);
        }
        self.check_root();
    }

    /// Reads the root's block again if VACUUM moved the root and truncated the index.
    fn check_root(&mut self) {
        if self.meta.root.block >= self.blocks {
            let meta = read_meta(self.relation(), &self.layout);
            self.remember_root(meta.root);
        }
    }

    /// Returns the index relation.
    pub fn relation(&self) -> Rel<'a> {
        self.pages.relation()
    }

    /// Returns the tree, with the newest root that this backend knows.
    pub fn tree(&self) -> Tree<'_, IndexPages<'a>, N> {
        let tree = Tree::new(&self.pages, self.meta.root);
        match &self.cache {
            Some(cache) => tree.with_leaf_cache(&cache.leaves),
            None => tree,
        }
    }

    /// Takes the row that this transaction has just added, if nothing was near it at that moment
    /// and the server is about to check a constraint for it. The constraint's search would find
    /// only this row, which the server ignores.
    pub fn take_lone_row(&self) -> Option<LoneRow> {
        self.cache.as_ref()?.leaves.take_lone_row()
    }

    /// Caches a newer root that a tree has found, for the next use of the index in this backend.
    pub fn remember_root(&mut self, root: Root) {
        if root != self.meta.root {
            self.meta.root = root;
            // The server may have dropped the entry since.
            let index = self.relation();
            if let Some(mut cached) = index.cached::<Cached>() {
                cached.meta.root = root;
                index.cache(cached);
            }
        }
    }

    /// Estimates the number of rows from the size of the index.
    pub fn rows(&self) -> f64 {
        rows_of(&self.meta, f64::from(self.blocks))
    }

    /// Estimates the number of rows from the server's last count and the growth since then, or
    /// from the size of the index if the server has not counted.
    pub fn estimated_rows(&self) -> f64 {
        (self.relation().rows_per_block())
            .map_or_else(|| self.rows(), |rows| rows * f64::from(self.blocks))
    }

    /// Raises an error if the tree is damaged.
    pub fn or_corrupt<T>(&self, result: Result<T, Corruption>) -> T {
        result.unwrap_or_else(|corruption| raise_corruption(self.relation(), &corruption))
    }
}

/// Number of rows in an index of `blocks` blocks.
pub fn rows_of(meta: &Meta, blocks: f64) -> f64 {
    leaf::usual_count(usize::from(meta.words)) * blocks / f64::from(meta.permutations.max(1))
}

/// Returns the quoted name of an open relation, with its schema where a statement needs it.
pub fn name(relation: Rel) -> String {
    relation.shown_qualified()
}

fn cached(index: Rel) -> Cached {
    if let Some(cached) = index.cached() {
        return cached;
    }
    let layout = Layout::from_index(index);
    let cached = Cached {
        meta: read_meta(index, &layout),
        layout,
        serial: index_cache::next_serial(),
    };
    index.cache(cached);
    cached
}

fn read_meta(relation: Rel, layout: &Layout) -> Meta {
    let pages = IndexPages::new(relation, OldSnapshotCheck::NONE);
    let meta = MetaRef::new(&pages.read(0)).read();
    match meta {
        Ok(meta)
            if usize::from(meta.words) == layout.words()
                && meta.metric.of_type() == layout.metric
                && usize::from(meta.scope_words) == layout.scope_words() =>
        {
            meta
        }
        Ok(_) => {
            let what = "keys of another layout than its columns make";
            raise_corruption(relation, &Corruption { block: 0, what })
        }
        Err(MetaError::Corrupt(corruption)) => raise_corruption(relation, &corruption),
        Err(MetaError::Version(version)) => refuse_version(relation, version),
    }
}

/// Raises error 0A000: another version of neardup made the index. The index is unusable, so the
/// hint is the statement that rebuilds it with the weakest lock that the server allows.
fn refuse_version(relation: Rel, version: u16) -> ! {
    let name = name(relation);
    let concurrently = match relation.is_for_exclusion() {
        // The server refuses to rebuild the index of an exclusion constraint concurrently.
        true => "",
        false => " CONCURRENTLY",
    };
    UserError::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!(
            "index \"{}\" has the layout of another version of neardup",
            relation.shown()
        ),
    )
    .detail(format!(
        "The index has layout version {version}. This version of neardup uses layout version {}.",
        meta::VERSION
    ))
    .hint(format!("REINDEX INDEX{concurrently} {name};"))
    .raise()
}

fn raise_corruption(relation: Rel, corruption: &Corruption) -> ! {
    let name = name(relation);
    UserError::new(
        PgSqlErrorCode::ERRCODE_INDEX_CORRUPTED,
        format!("index \"{}\" is damaged", relation.shown()),
    )
    .detail(format!("In {corruption}."))
    .hint(format!(
        "REINDEX INDEX {name} rebuilds it from the table. Look for failing disks or memory."
    ))
    .raise()
}

/// Identity of a metric and a block layout: a meta page without the root.
type Known = (Metric<usize>, u8, u8, u8, u8, u16);

fn known(meta: &Meta) -> Known {
    let Meta {
        metric,
        words,
        scope_words,
        guaranteed_radius,
        blocks,
        permutations,
        bound: _,
        root: _,
    } = *meta;
    (
        metric,
        words,
        scope_words,
        guaranteed_radius,
        blocks,
        permutations,
    )
}

/// Cache of values that a backend computes once, for keys of any width.
type Cache<K> = RefCell<Vec<(K, Rc<dyn Any>)>>;

thread_local! {
    /// Metrics and block layouts. There are few, and each is small. The words in the key determine
    /// the type of the value.
    static BLOCK_LAYOUTS: Cache<Known> = RefCell::default();
    /// Plans by block layout, radius, and the number of rows as a power of two.
    static PLANS: Cache<(Known, u32, i32)> = RefCell::default();
}

/// Returns the cached value of a key, or makes it.
fn remembered<K: Eq, T: 'static>(
    cache: &'static std::thread::LocalKey<Cache<K>>,
    key: K,
    make: impl FnOnce() -> T,
) -> Rc<T> {
    // Moves frequently used entries towards the front.
    let found = cache.with_borrow_mut(|cache| {
        let position =
            (cache.iter()).position(|(known, value)| *known == key && value.is::<T>())?;
        cache.swap(position, position / 2);
        Some(cache[position / 2].1.clone())
    });
    if let Some(Ok(value)) = found.map(Rc::downcast::<T>) {
        return value;
    }
    let value = Rc::new(make());
    cache.with_borrow_mut(|cache| cache.push((key, value.clone())));
    value
}

/// Returns the metric of a neardup index.
pub fn metric_of(index: Rel) -> IndexMetric {
    with_words!(words_of(index), N => block_layout_of::<N>(index, &cached(index).meta).0)
}

fn block_layout_of<const N: usize>(
    relation: Rel,
    meta: &Meta,
) -> (IndexMetric, Rc<BlockLayout<N>>) {
    let block_layout = remembered(&BLOCK_LAYOUTS, known(meta), || {
        let (blocks, permutations) = (meta.blocks, usize::from(meta.permutations));
        let bands = |hashes| Bands::new(hashes, permutations, usize::from(blocks)).ok();
        let metric = (meta.metric).try_map(|hashes| bands(hashes).map(Rc::new))?;
        let (scope, radius) = (meta.scope_words > 0, u32::from(meta.guaranteed_radius));
        let of_parameters = || BlockLayout::in_scope(scope, radius, u32::from(blocks));
        let layout = metric.block_layout(scope, of_parameters).ok()?;
        (layout.permutations().len() == permutations).then(|| (metric, Rc::new(layout)))
    });
    match &*block_layout {
        Some(block_layout) => block_layout.clone(),
        None => impossible_layout(relation),
    }
}

fn impossible_layout(relation: Rel) -> ! {
    let what = "meta page with an impossible block layout";
    raise_corruption(relation, &Corruption { block: 0, what })
}

/// Returns the plan for searches within a radius among `rows` rows.
pub fn plan_of<const N: usize>(
    meta: &Meta,
    block_layout: &BlockLayout<N>,
    radius: u32,
    rows: f64,
) -> Rc<Plan<N>> {
    // A radius beyond the width covers everything, and the nearest power of two is a good enough
    // number of rows. Both keep the number of plans small.
    let radius = radius.min(block_layout.bits());
    let magnitude = rows.max(1.0).log2().round();
    remembered(&PLANS, (known(meta), radius, magnitude as i32), || {
        Plan::new(block_layout, radius, magnitude.exp2())
    })
}
