//! Conditions that are written with the server's own comparison operators.
//!
//! `<%>` returns a domain over float8, so that clients see a number. A bound such as `0.2` is a
//! numeric, and for (domain over float8, numeric) the parser takes the server's own operator on two
//! float8, which has no support function of this extension. An operator of the extension's own for
//! that pair of types is no way out: integers, too, can be brought to the domain, so that
//! `1 <= 2.5` would be ambiguous in every query of the database. An untyped parameter has the type
//! of the operator found, and is to be a float8, which every driver can send, not the domain.
//!
//! The same holds for an untyped parameter that is compared with a `hamming`, which is to be an
//! integer, and for `(fp <~> q)::int <= 3`.
//!
//! So the conditions are rewritten one step later: after the planner has simplified them, and
//! before it assigns them to relations. `get_relation_info_hook` runs just there. It is installed
//! when the library is loaded, which needs no preloading: `<%>` has a support function, which the
//! planner calls while it simplifies the very conditions that are to be rewritten.
//!
//! Conditions on a UNION ALL have been assigned already when its parts are opened. They are
//! rewritten where they then stand, from where the planner copies them to each part.
use core::cell::Cell;
use std::rc::Rc;

use pgrx::pg_sys::{Node, NodeTag, Oid, PlannerInfo, RelOptInfo};
use pgrx::{pg_guard, pg_sys};

use super::catalog::{self, Catalog};
use super::comparison::comparison_of;
use super::{forms, jaccard, nodes};

thread_local! {
    /// The hook that stood there before.
    static PREVIOUS: Cell<pg_sys::get_relation_info_hook_type> = const { Cell::new(None) };
}

/// Installs the hook.
pub fn install() {
    // SAFETY: the server loads the library once, and runs in one thread.
    unsafe {
        PREVIOUS.set(pg_sys::get_relation_info_hook);
        pg_sys::get_relation_info_hook = Some(relation_info);
    }
}

/// Called by the planner for each table of a query, when it has read the table's indexes.
#[pg_guard]
unsafe extern "C-unwind" fn relation_info(
    root: *mut PlannerInfo,
    table: Oid,
    has_children: bool,
    rel: *mut RelOptInfo,
) {
    // SAFETY: the planner passes its state and the relation that it is about to plan.
    unsafe {
        if let Some(previous) = PREVIOUS.get() {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous(root, table, has_children, rel));
        }
        // A backend that has not met the extension's operators has nothing to rewrite.
        let Some(catalog) = catalog::current() else {
            return;
        };
        let conditions = Conditions { catalog, root };
        match (*rel).reloptkind {
            // Once more for each table; what has been rewritten stays as it is.
            pg_sys::RelOptKind::RELOPT_BASEREL => conditions.rewrite_query(),
            _ => conditions.rewrite_parent((*rel).relid),
        }
        for index in nodes::members((*rel).indexlist) {
            let index: *mut pg_sys::IndexOptInfo = index.cast();
            // A partial index is used where the condition implies its predicate, which must be
            // in the same form.
            conditions.rewrite_list((*index).indpred, true);
        }
    }
}

/// The conditions of a query that is being planned.
struct Conditions {
    catalog: Rc<Catalog>,
    root: *mut PlannerInfo,
}

impl Conditions {
    /// Rewrites the conditions of the query, and those of row security on its tables.
    ///
    /// # Safety
    /// The planner's state is alive, and the conditions are simplified.
    unsafe fn rewrite_query(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            let query = (*self.root).parse;
            self.rewrite_join_tree((*query).jointree.cast());
            for entry in nodes::members((*query).rtable) {
                let entry: *mut pg_sys::RangeTblEntry = entry.cast();
                self.rewrite_list((*entry).securityQuals, true);
            }
        }
    }

    /// # Safety
    /// As for `rewrite_query`; the node is part of a query's join tree.
    unsafe fn rewrite_join_tree(&self, node: *mut Node) {
        if node.is_null() {
            // The planner's state is a dummy while the server plans a CREATE INDEX or a CLUSTER.
            return;
        }
        // SAFETY: tags are checked before casts.
        unsafe {
            if let Some(from) = nodes::downcast::<pg_sys::FromExpr>(node, NodeTag::T_FromExpr) {
                (*from).quals = self.rewritten((*from).quals, true);
                for item in nodes::members((*from).fromlist) {
                    self.rewrite_join_tree(item);
                }
            } else if let Some(join) =
                nodes::downcast::<pg_sys::JoinExpr>(node, NodeTag::T_JoinExpr)
            {
                (*join).quals = self.rewritten((*join).quals, true);
                self.rewrite_join_tree((*join).larg);
                self.rewrite_join_tree((*join).rarg);
            }
        }
    }

    /// Rewrites the conditions that stand at the relation which a part of a UNION ALL belongs to.
    ///
    /// # Safety
    /// As for `rewrite_query`; `part` is a relation of the query.
    unsafe fn rewrite_parent(&self, part: pg_sys::Index) {
        // SAFETY: both arrays have an element for each relation, which may be null.
        unsafe {
            let root = &*self.root;
            if root.append_rel_array.is_null() {
                return;
            }
            let link = *root.append_rel_array.add(part as usize);
            if link.is_null() {
                return;
            }
            let parent = *root.simple_rel_array.add((*link).parent_relid as usize);
            if !parent.is_null() {
                self.rewrite_list((*parent).baserestrictinfo, true);
                self.rewrite_list((*parent).joininfo, true);
            }
        }
    }

    /// Rewrites the elements of a list in place. `truth_only`: of a condition on rows it matters
    /// only whether it is true, so that NULL is as good as false; below NOT it is not.
    ///
    /// # Safety
    /// `list` is null or a list of expressions that belongs to the planner.
    unsafe fn rewrite_list(&self, list: *mut pg_sys::List, truth_only: bool) {
        // SAFETY: the caller's promise.
        unsafe {
            for position in 0..pg_sys::list_length(list) {
                let cell = (*list).elements.add(position as usize);
                (*cell).ptr_value = self.rewritten((*cell).ptr_value.cast(), truth_only).cast();
            }
        }
    }

    /// A condition in the form that indexes know, or as it is. Only what an index can serve is
    /// looked into: comparisons, and AND, OR and NOT of them.
    ///
    /// # Safety
    /// `node` is null, or an expression that belongs to the planner.
    unsafe fn rewritten(&self, node: *mut Node, truth_only: bool) -> *mut Node {
        if node.is_null() {
            return node;
        }
        // SAFETY: the tag says which struct it is.
        unsafe {
            match nodes::tag(node) {
                NodeTag::T_List => self.rewrite_list(node.cast(), truth_only),
                NodeTag::T_BoolExpr => {
                    let expression = node.cast::<pg_sys::BoolExpr>();
                    let negates = (*expression).boolop == pg_sys::BoolExprType::NOT_EXPR;
                    self.rewrite_list((*expression).args, truth_only && !negates);
                }
                NodeTag::T_RestrictInfo => self.rewrite_assigned(node.cast()),
                NodeTag::T_OpExpr => {
                    if let Some(replacement) = self.comparison(node.cast(), truth_only) {
                        return replacement;
                    }
                }
                NodeTag::T_ScalarArrayOpExpr => {
                    let replacement = forms::rewritten(&self.catalog, self.root, node, truth_only);
                    return replacement.unwrap_or(node);
                }
                _ => {}
            }
        }
        node
    }

    /// Rewrites a condition that has been assigned to a relation.
    ///
    /// # Safety
    /// As for `rewritten`.
    unsafe fn rewrite_assigned(&self, info: *mut pg_sys::RestrictInfo) {
        // SAFETY: the caller's promise.
        unsafe {
            let rewritten = self.rewritten((*info).clause.cast(), true).cast();
            if rewritten != (*info).clause {
                (*info).clause = rewritten;
                // True of the operator that has gone.
                (*info).can_join = false;
                (*info).mergeopfamilies = core::ptr::null_mut();
                (*info).hashjoinoperator = pg_sys::InvalidOid;
            }
            (*info).orclause = self.rewritten((*info).orclause.cast(), true).cast();
        }
    }

    /// A comparison with an estimate of signatures or a distance of fingerprints, in terms of
    /// balls.
    ///
    /// # Safety
    /// As for `rewritten`.
    unsafe fn comparison(
        &self,
        operator: *mut pg_sys::OpExpr,
        truth_only: bool,
    ) -> Option<*mut Node> {
        // SAFETY: the caller's promise.
        unsafe {
            let [left, right] = nodes::elements((*operator).args)?;
            let (catalog, root) = (&*self.catalog, self.root);
            forms::rewritten(catalog, root, operator.cast(), truth_only).or_else(|| {
                let of_floats = || comparison_of((*operator).opno, pg_sys::FLOAT8OID);
                jaccard::comparison(catalog, root, left, right, of_floats)
            })
        }
    }
}
