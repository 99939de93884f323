//! The conditions of a query, replaced where they stand while the query is being planned.
use core::marker::PhantomData;

use pgrx::pg_sys::{self, BoolExprType, Node, NodeTag, PlannerInfo, RelOptInfo};

use super::expr::Expr;
use super::planner::Planner;

/// A relation that the planner has just read from the catalogue.
pub struct PlannedRelation<'a> {
    planner: Planner<'a>,
    root: *mut PlannerInfo,
    rel: *mut RelOptInfo,
    _call: PhantomData<&'a ()>,
}

impl<'a> PlannedRelation<'a> {
    /// Wraps what the server passes to `get_relation_info_hook`.
    ///
    /// # Safety
    /// Both come from the server and live for `'a`, as for [`Planner::new`].
    pub unsafe fn new(root: *mut PlannerInfo, rel: *mut RelOptInfo) -> Self {
        PlannedRelation {
            // SAFETY: the caller's promise.
            planner: unsafe { Planner::new(root) },
            root,
            rel,
            _call: PhantomData,
        }
    }

    /// The planner's state.
    pub fn planner(&self) -> Planner<'a> {
        self.planner
    }

    /// Replaces comparisons in the conditions of the query and of row security on its tables; or,
    /// if the relation is a part of a UNION ALL, in the conditions that have been assigned to the
    /// relation which it belongs to. Those in predicates of the relation's indexes are replaced
    /// in both cases.
    ///
    /// `replace` gets comparisons by an operator and `ANY` of an array, at the top or below AND, OR
    /// and NOT. The flag is true where it matters only whether the condition is true, so that NULL
    /// is as good as false; below NOT it is not.
    pub fn replace_comparisons(&self, replace: impl Fn(Expr<'a>, bool) -> Option<Expr<'a>>) {
        let walk = Walk {
            replace,
            _call: PhantomData,
        };
        // SAFETY: the planner's state, its query and the relation are alive. Both arrays have an
        // element for each relation, which may be null.
        unsafe {
            let (root, rel) = (&*self.root, &*self.rel);
            let assigned = match rel.reloptkind {
                // Once more for each table; what has been replaced stays as it is.
                pg_sys::RelOptKind::RELOPT_BASEREL => {
                    let query = root.parse;
                    walk.visit((*query).jointree.cast(), true);
                    walk.visit((*query).rtable.cast(), true);
                    None
                }
                _ if root.append_rel_array.is_null() => None,
                _ => (*root.append_rel_array.add(rel.relid as usize)).as_ref(),
            };
            if let Some(link) = assigned {
                let parent = *root.simple_rel_array.add(link.parent_relid as usize);
                if let Some(parent) = parent.as_ref() {
                    walk.visit(parent.baserestrictinfo.cast(), true);
                    walk.visit(parent.joininfo.cast(), true);
                }
            }
            walk.visit(rel.indexlist.cast(), true);
        }
    }
}

struct Walk<'a, F> {
    replace: F,
    _call: PhantomData<&'a ()>,
}

impl<'a, F: Fn(Expr<'a>, bool) -> Option<Expr<'a>>> Walk<'a, F> {
    /// Replaces comparisons below a node in place. Returns the node, or what replaces it.
    ///
    /// # Safety
    /// `node` is null or part of a query that is being planned, with simplified conditions.
    unsafe fn visit(&self, node: *mut Node, truth_only: bool) -> *mut Node {
        if node.is_null() {
            // The planner's state is a dummy while the server plans a CREATE INDEX or a CLUSTER.
            return node;
        }
        // SAFETY: the tag says which struct it is; all belong to the planner.
        unsafe {
            match (*node).type_ {
                NodeTag::T_List => {
                    let list: *mut pg_sys::List = node.cast();
                    for position in 0..pg_sys::list_length(list) {
                        let cell = (*list).elements.add(position as usize);
                        let element = self.visit((*cell).ptr_value.cast(), truth_only);
                        (*cell).ptr_value = element.cast();
                    }
                }
                NodeTag::T_FromExpr => {
                    let from: *mut pg_sys::FromExpr = node.cast();
                    (*from).quals = self.visit((*from).quals, true);
                    self.visit((*from).fromlist.cast(), true);
                }
                NodeTag::T_JoinExpr => {
                    let join: *mut pg_sys::JoinExpr = node.cast();
                    (*join).quals = self.visit((*join).quals, true);
                    self.visit((*join).larg, true);
                    self.visit((*join).rarg, true);
                }
                NodeTag::T_RangeTblEntry => {
                    let entry: *mut pg_sys::RangeTblEntry = node.cast();
                    self.visit((*entry).securityQuals.cast(), true);
                }
                NodeTag::T_IndexOptInfo => {
                    let index: *mut pg_sys::IndexOptInfo = node.cast();
                    // A partial index is used where the condition implies its predicate, which must
                    // be in the same form.
                    self.visit((*index).indpred.cast(), true);
                }
                NodeTag::T_BoolExpr => {
                    let expression: *mut pg_sys::BoolExpr = node.cast();
                    let negates = (*expression).boolop == BoolExprType::NOT_EXPR;
                    self.visit((*expression).args.cast(), truth_only && !negates);
                }
                NodeTag::T_RestrictInfo => self.visit_assigned(node.cast()),
                NodeTag::T_OpExpr | NodeTag::T_ScalarArrayOpExpr => {
                    if let Some(replacement) = (self.replace)(Expr::new(node), truth_only) {
                        assert!(replacement.has_type(pg_sys::BOOLOID));
                        return replacement.as_ptr();
                    }
                }
                _ => {}
            }
        }
        node
    }

    /// Replaces comparisons in a condition that has been assigned to a relation.
    ///
    /// # Safety
    /// As for `visit`.
    unsafe fn visit_assigned(&self, info: *mut pg_sys::RestrictInfo) {
        // SAFETY: the caller's promise.
        unsafe {
            let clause = self.visit((*info).clause.cast(), true).cast();
            if clause != (*info).clause {
                (*info).clause = clause;
                // True of the operator that was replaced.
                (*info).can_join = false;
                (*info).mergeopfamilies = core::ptr::null_mut();
                (*info).hashjoinoperator = pg_sys::InvalidOid;
            }
            (*info).orclause = self.visit((*info).orclause.cast(), true).cast();
        }
    }
}
