//! What a backend knows of an index: its meta page, and the designs and plans made from it.
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use neardup_blocktree::design::Design;
use neardup_blocktree::meta::{self, Meta, MetaError, Root};
use neardup_blocktree::page::Corruption;
use neardup_blocktree::plan::Plan;
use neardup_blocktree::store::PageStore;
use pgrx::{PgSqlErrorCode, pg_sys};

use crate::pg::errors::UserError;
use crate::storage::pages::IndexPages;

/// Words of a key: those of a 64-bit fingerprint.
pub const WORDS: usize = 1;

/// Bits of a fingerprint.
pub const BITS: u32 = 64 * WORDS as u32;

/// An index's fingerprint, as keys are made of.
pub type Key = neardup_blocktree::key::Key<WORDS>;

type Tree<'a> = neardup_blocktree::tree::Tree<'a, IndexPages, WORDS>;

/// An open index with what its meta page says.
pub struct Index {
    relation: pg_sys::Relation,
    /// The meta page, as it was when this backend read it first. Only the root changes later.
    pub meta: Meta,
    /// The design that it names.
    pub design: Rc<Design<WORDS>>,
    /// Its pages.
    pub pages: IndexPages,
}

impl Index {
    /// Reads the meta page, or what the relation cache remembers of it.
    ///
    /// # Safety
    /// The relation is an index of this access method and stays open as long as the result lives.
    pub unsafe fn open(relation: pg_sys::Relation) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::with_pages(relation, IndexPages::new(relation)) }
    }

    /// The same over pages that were opened for some purpose.
    ///
    /// # Safety
    /// As for [`Index::open`]; the pages are this relation's.
    pub unsafe fn with_pages(relation: pg_sys::Relation, pages: IndexPages) -> Self {
        // SAFETY: `rd_amcache` is null or what was put there below. It is plain memory, which the
        // server frees in one piece whenever the index may have been rebuilt.
        let meta = unsafe {
            let cached = (*relation).rd_amcache.cast::<Meta>();
            if cached.is_null() {
                let meta = read_meta(relation, &pages);
                let place = pg_sys::MemoryContextAlloc((*relation).rd_indexcxt, size_of::<Meta>());
                place.cast::<Meta>().write(meta);
                (*relation).rd_amcache = place;
                meta
            } else {
                *cached
            }
        };
        let design = design_of(relation, &meta);
        Index {
            relation,
            meta,
            design,
            pages,
        }
    }

    /// The tree, from the newest root that this backend knows.
    pub fn tree(&self) -> Tree<'_> {
        Tree::new(&self.pages, self.meta.root)
    }

    /// Keeps the root that a tree has come across for this backend's next look.
    pub fn remember(&mut self, root: Root) {
        if root != self.meta.root {
            self.meta.root = root;
            // SAFETY: as in `with_pages`; null if the server has dropped it since.
            unsafe {
                if let Some(cached) = (*self.relation).rd_amcache.cast::<Meta>().as_mut() {
                    cached.root = root;
                }
            }
        }
    }

    /// The number of rows, by the size of the index.
    pub fn rows(&self) -> f64 {
        rows_of(&self.meta, f64::from(self.pages.blocks()))
    }

    /// Ends the statement if the tree is damaged.
    pub fn sound<T>(&self, result: Result<T, Corruption>) -> T {
        // SAFETY: the relation is open.
        result.unwrap_or_else(|corruption| unsafe { raise_corruption(self.relation, &corruption) })
    }
}

/// The number of rows in an index of so many blocks.
pub fn rows_of(meta: &Meta, blocks: f64) -> f64 {
    neardup_blocktree::design::ENTRIES_PER_LEAF * blocks / f64::from(meta.tables.max(1))
}

/// The name of an open relation.
///
/// # Safety
/// The relation is open.
pub unsafe fn name(relation: pg_sys::Relation) -> String {
    // SAFETY: the caller's promise; a name is a C string in a fixed array.
    unsafe {
        let name = (*(*relation).rd_rel).relname.data.as_ptr();
        core::ffi::CStr::from_ptr(name)
            .to_string_lossy()
            .into_owned()
    }
}

unsafe fn read_meta(relation: pg_sys::Relation, pages: &IndexPages) -> Meta {
    let meta = meta::read(&pages.read(0));
    match meta {
        Ok(meta) if usize::from(meta.words) == WORDS && meta.scope_words == 0 => meta,
        Ok(_) => {
            let what = "keys of a width that its type does not have";
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
                format!("index \"{name}\" has layout version {version}, which this version of neardup does not know"),
            )
            .detail(format!("It reads and writes layout version {}.", meta::VERSION))
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
        format!("index \"{name}\" is damaged"),
    )
    .detail(format!("In {corruption}."))
    .hint(format!(
        "REINDEX INDEX {name} makes it anew from the table. Look for failing disks or memory."
    ))
    .raise()
}

thread_local! {
    /// Designs by distance and blocks. There are few, and each is small.
    static DESIGNS: RefCell<HashMap<(u8, u8), Rc<Design<WORDS>>>> = RefCell::default();
    /// Plans by distance, blocks, radius, and the number of rows as a power of two.
    static PLANS: RefCell<HashMap<(u8, u8, u32, i32), Rc<Plan<WORDS>>>> = RefCell::default();
}

fn design_of(relation: pg_sys::Relation, meta: &Meta) -> Rc<Design<WORDS>> {
    let known = (meta.distance, meta.blocks);
    if let Some(design) = DESIGNS.with_borrow(|designs| designs.get(&known).cloned()) {
        return design;
    }
    let design = Design::new(u32::from(meta.distance), u32::from(meta.blocks))
        .ok()
        .filter(|design| design.tables().len() == usize::from(meta.tables));
    let Some(design) = design else {
        let what = "meta page with an impossible design";
        // SAFETY: the caller's relation is open.
        unsafe { raise_corruption(relation, &Corruption { block: 0, what }) }
    };
    let design = Rc::new(design);
    DESIGNS.with_borrow_mut(|designs| designs.insert(known, design.clone()));
    design
}

/// The plan for searches of a radius among so many rows.
pub fn plan_of(meta: &Meta, design: &Design<WORDS>, radius: u32, rows: f64) -> Rc<Plan<WORDS>> {
    // Rows to a power of two are as good as their exact number, and keep the plans few.
    let magnitude = rows.max(1.0).log2().round();
    let known = (meta.distance, meta.blocks, radius, magnitude as i32);
    if let Some(plan) = PLANS.with_borrow(|plans| plans.get(&known).cloned()) {
        return plan;
    }
    let plan = Rc::new(Plan::new(design, radius, magnitude.exp2()));
    PLANS.with_borrow_mut(|plans| plans.insert(known, plan.clone()));
    plan
}
