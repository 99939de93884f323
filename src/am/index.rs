//! Open indexes: the meta page of an index, and the block layouts and plans that follow from it. A
//! backend caches all of them.
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
use neardup_pg::scan_desc::StateCache;
use neardup_pg::storage::pages::IndexPages;

/// Data that this backend caches in the relation cache entry of an index (`rd_amcache`). The server
/// drops the data together with the entry.
#[derive(Clone, Copy)]
struct Cached {
    /// The meta page as this backend first read it. Only the root changes later.
    meta: Meta,
    /// Layout of the keys, from the columns of the index.
    layout: Layout,
    /// Serial number of the relation cache entry, by which [`index_cache`] recognizes it.
    serial: u64,
}

/// Open index with the contents of its meta page. Its keys have `N` words.
pub struct Index<'a, const N: usize> {
    /// Layout of the keys.
    pub layout: Layout,
    /// Contents of the meta page.
    pub meta: Meta,
    /// Permutations of the index (ordered copies of all keys), made from the parameters in the meta
    /// page.
    pub block_layout: Rc<BlockLayout<N>>,
    /// Metric of the index, made from the parameters in the meta page.
    pub metric: IndexMetric,
    /// Pages of the index in the server.
    pub pages: IndexPages<'a>,
    /// Number of pages in the index when it was opened, or a little before.
    pub blocks: Block,
    /// Data that the current transaction has cached for the index; `None` if the index was opened
    /// without this cache.
    cache: Option<Rc<IndexCache>>,
}

/// Returns the number of 64-bit words in a key of an open index.
pub fn words_of(index: Rel) -> usize {
    usize::from(cached(index).meta.words)
}

/// Returns the radius or similarity for which the index was built, because most searches use it.
/// `None` for an index on arrays.
pub fn bound_of(index: Rel) -> Option<UsualBound> {
    cached(index).meta.bound
}

/// Returns whether an open index has a meta page that this version of neardup can read.
pub fn is_readable(index: Rel) -> bool {
    let pages = IndexPages::new(index, OldSnapshotCheck::NONE);
    pages.blocks() > 0 && MetaRef::new(&pages.read(0)).read().is_ok()
}

/// Returns the cache in which a finished scan of an open index keeps its state for the next scan.
pub fn state_cache_of(index: Rel) -> Rc<StateCache> {
    index_cache::cache_of(index, cached(index).serial)
        .state_cache
        .clone()
}

impl<'a, const N: usize> Index<'a, N> {
    /// Opens an index for a function that must find all rows visible to the active snapshot. Reads
    /// the meta page, or its copy in the relation cache. Raises an internal error if the relation
    /// is not a neardup index or its keys do not have `N` words.
    pub fn open(index: Rel<'a>) -> Self {
        Self::with_pages(IndexPages::new(index, OldSnapshotCheck::from_active()))
    }

    /// Opens an index for a caller that opens it for each row. Uses the data that the current
    /// transaction has cached for the index. The index stays locked until the transaction ends.
    /// Does not check that the pages still have all rows that a snapshot sees. A caller that reads
    /// for a snapshot must set this check by [`IndexPages::set_check`].
    pub fn open_cached(index: Rel<'a>) -> Self {
        let cache = index_cache::cache_of(index, cached(index).serial);
        let pages = IndexPages::new(index, OldSnapshotCheck::NONE);
        let blocks = cache.blocks(&pages);
        Self::with_all(pages, blocks, Some(cache))
    }

    /// Opens an index like [`Index::open`], but reads it through `pages`. The caller makes `pages`
    /// with an [`OldSnapshotCheck`], which is applied to each page that is read, and with a ring of
    /// buffers if the pages should not fill shared buffers.
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

    /// Opens the index again, in the transaction that opened it by [`Index::open_cached`]. Used
    /// when the state of a finished scan is used for a new scan.
    pub fn reopen(&mut self) {
        let relation = self.relation();
        self.pages = IndexPages::new(relation, OldSnapshotCheck::NONE);
        self.meta.root = cached(relation).meta.root;
        if let Some(cache) = &self.cache {
            self.blocks = cache.blocks(&self.pages);
        }
        self.check_root();
    }

    /// Checks that the known root is still in the index. If the root is beyond the end of the
    /// index, VACUUM has moved the root and truncated the index. Then reads the root's block number
    /// from the meta page again.
    fn check_root(&mut self) {
        if self.meta.root.block >= self.blocks {
            let meta = read_meta(self.relation(), &self.layout);
            self.remember_root(meta.root);
        }
    }

    /// Returns the relation of the index.
    pub fn relation(&self) -> Rel<'a> {
        self.pages.relation()
    }

    /// Returns the tree of the index, with the newest root that this backend knows.
    pub fn tree(&self) -> Tree<'_, IndexPages<'a>, N> {
        let tree = Tree::new(&self.pages, self.meta.root);
        match &self.cache {
            Some(cache) => tree.with_leaf_cache(&cache.leaves),
            None => tree,
        }
    }

    /// Returns the row that this transaction has just added, if no other row was near it at that
    /// moment, and removes it from the cache. The search that checks the exclusion constraint can
    /// be skipped for such a row: it would find only the row itself, which the server ignores.
    /// Returns `None` if another row may have been near, if the index is not for an exclusion
    /// constraint, or if it was opened without the cache.
    pub fn take_lone_row(&self) -> Option<LoneRow> {
        self.cache.as_ref()?.leaves.take_lone_row()
    }

    /// Stores a newer root, which an operation on the tree has found, for later uses of the index
    /// in this backend.
    pub fn remember_root(&mut self, root: Root) {
        if root != self.meta.root {
            self.meta.root = root;
            // The server may have dropped the relation cache's data since the index was opened.
            let index = self.relation();
            if let Some(mut cached) = index.cached::<Cached>() {
                cached.meta.root = root;
                index.cache(cached);
            }
        }
    }

    /// Estimates the number of rows in the index from its number of pages.
    pub fn rows(&self) -> f64 {
        rows_of(&self.meta, f64::from(self.blocks))
    }

    /// Estimates the number of rows in the index: the rows per page at the server's last count
    /// (VACUUM or ANALYZE), multiplied by the present number of pages. Falls back to
    /// [`Index::rows`] if the server has not counted.
    pub fn estimated_rows(&self) -> f64 {
        (self.relation().rows_per_block())
            .map_or_else(|| self.rows(), |rows| rows * f64::from(self.blocks))
    }

    /// Returns the value in `result`, the result of an operation on the tree. Raises an error if
    /// `result` says that the tree is damaged.
    pub fn or_corrupt<T>(&self, result: Result<T, Corruption>) -> T {
        result.unwrap_or_else(|corruption| raise_corruption(self.relation(), &corruption))
    }
}

/// Estimates the number of rows in an index with this meta page and `blocks` pages.
pub fn rows_of(meta: &Meta, blocks: f64) -> f64 {
    leaf::usual_count(usize::from(meta.words)) * blocks / f64::from(meta.permutations.max(1))
}

/// Returns the name of an open relation with its schema, quoted if necessary, for use in a
/// statement.
pub fn name(relation: Rel) -> String {
    relation.shown_qualified()
}

/// Returns the data in the relation cache entry of an index. Reads the meta page if there is none.
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

/// Reads and checks the meta page. Raises an error if the meta page is damaged, if another version
/// of neardup has written it, or if it does not fit `layout`, the layout that follows from the
/// columns of the index.
fn read_meta(relation: Rel, layout: &Layout) -> Meta {
    let pages = IndexPages::new(relation, OldSnapshotCheck::NONE);
    let meta = MetaRef::new(&pages.read(0)).read();
    match meta {
        Ok(meta)
            if usize::from(meta.words) == layout.words()
                && meta.metric.without_signatures() == layout.metric
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

/// Raises error 0A000: the index is unusable, because another version of neardup has built it.
/// `version` is the layout version in the meta page. The hint is a REINDEX statement, with
/// CONCURRENTLY if the server allows this.
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
    .detail(format!("The damage is in {corruption}."))
    .hint(format!(
        "REINDEX INDEX {name} rebuilds the index from the table. Check for failing disks or memory."
    ))
    .raise()
}

/// Parameters in a meta page that determine the metric and the block layout of the index. In order:
/// the metric, the number of words in a key, the number of these words for the scope, the
/// guaranteed radius in bits, the number of blocks, and the number of permutations.
type LayoutParameters = (Metric<usize>, u8, u8, u8, u8, u16);

/// Returns the parameters of a meta page that determine its metric and its block layout.
fn layout_parameters(meta: &Meta) -> LayoutParameters {
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

/// Cache of values that a backend makes once for each key of type `K` and keeps until it ends.
type Cache<K> = RefCell<Vec<(K, Rc<dyn Any>)>>;

thread_local! {
    /// Metrics and block layouts by the parameters in a meta page. A value has the type
    /// `Option<(IndexMetric, Rc<BlockLayout<N>>)>`, where `N` is the number of words in a key. It
    /// is `None` if no block layout fits the parameters. Values are never removed, because there
    /// are few of them and each is small.
    static BLOCK_LAYOUTS: Cache<LayoutParameters> = RefCell::default();
    /// Search plans. The key of a plan has the parameters of the block layout, the radius in bits,
    /// and the binary logarithm of the number of rows.
    static PLANS: Cache<(LayoutParameters, u32, i32)> = RefCell::default();
}

/// Returns the value that `cache` has for `key`. If there is none, makes the value by `make` and
/// adds it to `cache`.
fn remembered<K: Eq, T: 'static>(
    cache: &'static std::thread::LocalKey<Cache<K>>,
    key: K,
    make: impl FnOnce() -> T,
) -> Rc<T> {
    // Exchanges the found entry with the one at half its position, so that frequently used entries
    // are near the front.
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

/// Returns the metric of an open neardup index.
pub fn metric_of(index: Rel) -> IndexMetric {
    with_words!(words_of(index), N => block_layout_of::<N>(index, &cached(index).meta).0)
}

/// Returns the metric and the block layout of an index with this meta page. Raises an error if no
/// block layout fits the parameters in the meta page.
fn block_layout_of<const N: usize>(
    relation: Rel,
    meta: &Meta,
) -> (IndexMetric, Rc<BlockLayout<N>>) {
    let block_layout = remembered(&BLOCK_LAYOUTS, layout_parameters(meta), || {
        let (blocks, permutations) = (meta.blocks, usize::from(meta.permutations));
        let bands = |hashes| Bands::new(hashes, permutations, usize::from(blocks)).ok();
        let metric = (meta.metric).try_map(|hashes| bands(hashes).map(Rc::new))?;
        let (scope, radius) = (meta.scope_words > 0, u32::from(meta.guaranteed_radius));
        let of_parameters = || BlockLayout::for_index(scope, radius, u32::from(blocks));
        let layout = metric.block_layout(scope, of_parameters).ok()?;
        (layout.permutations().len() == permutations).then(|| (metric, Rc::new(layout)))
    });
    match &*block_layout {
        Some(block_layout) => block_layout.clone(),
        None => impossible_layout(relation),
    }
}

/// Raises the error that no block layout fits the parameters in the meta page of `relation`.
fn impossible_layout(relation: Rel) -> ! {
    let what = "meta page with an impossible block layout";
    raise_corruption(relation, &Corruption { block: 0, what })
}

/// Returns the plan for a search within `radius` bits among `rows` rows, in an index with this meta
/// page and this block layout. The backend keeps each plan for later calls.
pub fn plan_of<const N: usize>(
    meta: &Meta,
    block_layout: &BlockLayout<N>,
    radius: u32,
    rows: f64,
) -> Rc<Plan<N>> {
    // A radius larger than the fingerprint's width finds all rows, and the nearest power of two is
    // an adequate number of rows. Both roundings keep the number of plans small.
    let radius = radius.min(block_layout.bits());
    let magnitude = rows.max(1.0).log2().round();
    remembered(
        &PLANS,
        (layout_parameters(meta), radius, magnitude as i32),
        || Plan::new(block_layout, radius, magnitude.exp2()),
    )
}
