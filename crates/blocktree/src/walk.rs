//! Finding all rows, and going along the pages of a level.

use crate::design::Design;
use crate::key::{Block, Key, Position, Tid};
use crate::leaf;
use crate::page::{self, Result};
use crate::store::{Held, PageStore};
use crate::tree::Tree;
use std::rc::Rc;

/// Where to look next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next<const N: usize> {
    /// From the root, for the leaf where this position belongs.
    Descend(Position<N>),
    /// In this leaf, or wherever the position belongs by now.
    At(Block, Position<N>),
    /// Nowhere: all is seen.
    Nowhere,
}

impl<const N: usize> Next<N> {
    /// The position, and where to look for it first.
    #[inline]
    pub(crate) fn split(self) -> Option<(Position<N>, Option<Block>)> {
        match self {
            Next::Descend(position) => Some((position, None)),
            Next::At(block, position) => Some((position, Some(block))),
            Next::Nowhere => None,
        }
    }
}

/// A walk along the pages of a level, or the leaves of one table, from left to right. It stands on
/// no page between steps.
#[derive(Clone, Copy, Debug)]
pub struct Walk<const N: usize> {
    level: u16,
    next: Next<N>,
}

impl<const N: usize> Walk<N> {
    /// Along the leaves of a table.
    pub fn new(table: u16) -> Self {
        Self::at(Position::start_of(table))
    }

    /// Along all inner pages of a level.
    pub fn on_level(level: u16) -> Self {
        Walk {
            level,
            next: Next::Descend(Position::start_of(0)),
        }
    }

    /// From the leaf where a position belongs to the last of its table.
    pub(crate) fn at(position: Position<N>) -> Self {
        Walk {
            level: 0,
            next: Next::Descend(position),
        }
    }

    /// The next page, locked in the way of `take`, and where on it the walk goes on: what lies
    /// before that position, on a page that was merged into this one, has been passed. `None`
    /// after the last.
    pub fn step<S: PageStore, P: Held>(
        &mut self,
        tree: &Tree<'_, S, N>,
        take: impl Fn(Block) -> P,
    ) -> Result<Option<(P, Position<N>)>> {
        let Some((position, hint)) = self.next.split() else {
            return Ok(None);
        };
        let page = tree.find(&position, self.level, hint, take)?;
        self.next = match page::high::<N>(&page).zip(page::right(&page)) {
            Some((high, right)) if self.level > 0 || high.table == position.table => {
                Next::At(right, high)
            }
            _ => Next::Nowhere,
        };
        Ok(Some((page, position)))
    }

    fn stop(&mut self) {
        self.next = Next::Nowhere;
    }
}

/// A row of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<const N: usize> {
    /// Its address.
    pub tid: Tid,
    /// Its fingerprint, behind its scope; `None` if it has none.
    pub fingerprint: Option<Key<N>>,
}

/// All rows of an index, or of a scope, those without a fingerprint too: each stands once in the
/// first table or in that of the nulls.
#[derive(Clone, Debug)]
pub struct AllRows<const N: usize> {
    design: Rc<Design<N>>,
    walk: Walk<N>,
    scope: Option<u64>,
    /// The table of the nulls, while it is still to come.
    null_table: Option<u16>,
}

impl<const N: usize> AllRows<N> {
    /// From the first row; with a scope, which needs keys that have one, of that scope only.
    pub fn new(design: Rc<Design<N>>, scope: Option<u64>) -> Self {
        debug_assert!(scope.is_none() || design.scope_words() > 0);
        AllRows {
            walk: Self::walk(0, scope),
            scope,
            null_table: Some(design.null_table()),
            design,
        }
    }

    /// The rows without a fingerprint only.
    pub fn nulls(design: Rc<Design<N>>, scope: Option<u64>) -> Self {
        AllRows {
            walk: Self::walk(design.null_table(), scope),
            scope,
            null_table: None,
            design,
        }
    }

    /// The same without the rows that have no fingerprint.
    pub fn without_nulls(mut self) -> Self {
        self.null_table = None;
        self
    }

    fn walk(table: u16, scope: Option<u64>) -> Walk<N> {
        let mut key = [0; N];
        key[0] = scope.unwrap_or(0);
        Walk::at(Position::before_key(table, key))
    }

    /// Looks at one more leaf and appends its rows. False: there was none left.
    pub fn step<S: PageStore>(
        &mut self,
        tree: &Tree<'_, S, N>,
        rows: &mut Vec<Row<N>>,
    ) -> Result<bool> {
        let Some((leaf, from)) = self.walk.step(tree, |block| tree.store.read(block))? else {
            let Some(table) = self.null_table.take() else {
                return Ok(false);
            };
            self.walk = Self::walk(table, self.scope);
            return Ok(true);
        };
        let table = self.design.tables().get(usize::from(page::table(&leaf)));
        for i in 0..leaf::count::<N>(&leaf) {
            let position = leaf::position::<N>(&leaf, i);
            if position >= from && self.scope.is_none_or(|scope| scope == position.key[0]) {
                let fingerprint = table.map(|table| table.restore(&position.key));
                rows.push(Row {
                    tid: position.tid,
                    fingerprint,
                });
            }
        }
        let beyond = |scope: u64| page::high::<N>(&leaf).is_some_and(|high| high.key[0] > scope);
        if self.scope.is_some_and(beyond) {
            self.walk.stop();
        }
        tree.store.leave(leaf);
        Ok(true)
    }
}
