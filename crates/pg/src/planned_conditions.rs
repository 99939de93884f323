//! The conditions of a query, replaced where they stand while the query is being planned.
use core::cell::Cell;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, BoolExprType, Node, NodeTag, Oid, PlannerInfo, RelOptInfo};

use super::expr::Expr;
use super::planner::Planner;

/// A relation that the planner has just read from the catalogue.
pub struct PlannedRelation<'a> {
    /// The planner's call.
    pub planner: Planner<'a>,
    pub(super) rel: &'a RelOptInfo,
}

thread_local! {
    static REWRITE: Cell<Option<fn(&PlannedRelation)>> = const { Cell::new(None) };
    /// The hook that another library had installed before.
    static PREVIOUS: Cell<pg_sys::get_relation_info_hook_type> = const { Cell::new(None) };
}

/// Installs a function as `get_relation_info_hook`: the planner calls it for each table of a query,
/// after it has read the table's indexes. Called once, when the library is loaded.
pub fn install(rewrite: fn(&PlannedRelation)) {
    assert!(REWRITE.replace(Some(rewrite)).is_none());
    // SAFETY: the server has a single thread, and never unloads the library.
    unsafe {
        PREVIOUS.set(pg_sys::get_relation_info_hook);
        pg_sys::get_relation_info_hook = Some(relation_info);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_info(
    root: *mut PlannerInfo,
    table: Oid,
    has_children: bool,
    rel: *mut RelOptInfo,
) {
    // SAFETY: the planner passes its state and the relation that it is about to plan.
    let relation = unsafe {
        if let Some(previous) = PREVIOUS.get() {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous(root, table, has_children, rel));
        }
        PlannedRelation::new(root, rel)
    };
    if let Some(rewrite) = REWRITE.get() {
        rewrite(&relation);
    }
}

/// Where a comparison stands.
#[derive(Clone, Copy)]
pub struct Place {
    /// True where it matters only whether the condition is true, so that NULL is as good as false.
    /// False below NOT.
    pub truth_only: bool,
    /// True for conditions of the query, false for predicates of indexes.
    pub in_query: bool,
}

impl<'a> PlannedRelation<'a> {
    /// Wraps what the server passes to `get_relation_info_hook`.
    ///
    /// # Safety
    /// Both come from the server and live for `'a`, as for [`Planner::new`].
    unsafe fn new(root: *mut PlannerInfo, rel: *mut RelOptInfo) -> Self {
        // SAFETY: the caller's promise.
        let (planner, rel) = unsafe { (Planner::new(root), &*rel) };
        PlannedRelation { planner, rel }
    }

    /// Replaces comparisons in the conditions of the query and of row security on its tables; or,
    /// if the relation is a part of a UNION ALL, in the conditions that have been assigned to the
    /// relation which it belongs to. Those in predicates of the relation's indexes are replaced
    /// in both cases.
    ///
    /// `replace` gets comparisons by an operator and `ANY` of an array, at the top or below AND, OR
    /// and NOT.
    pub fn replace_comparisons(&self, replace: impl Fn(Expr<'a>, Place) -> Option<Expr<'a>>) {
        let Some(root) = self.planner.root() else {
            return;
        };
        // SAFETY: the planner's state, its query and the relation are alive. Both arrays have an
        // element for each relation, which may be null.
        unsafe {
            let of_query = Place {
                truth_only: true,
                in_query: true,
            };
            let of_index = Place {
                in_query: false,
                ..of_query
            };
            let indexes = self.rel.indexlist;
            let visit_index = || visit(indexes.cast(), of_index, &replace);
            let visit = |node: *mut pg_sys::List| visit(node.cast(), of_query, &replace);
            if self.rel.reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL {
                // Once more for each table; what has been replaced stays as it is.
                let query = (*root).parse;
                visit((*query).jointree.cast());
                visit((*query).rtable);
            } else if !(*root).append_rel_array.is_null()
                && let Some(link) =
                    (*(*root).append_rel_array.add(self.rel.relid as usize)).as_ref()
                && let parent = *(*root).simple_rel_array.add(link.parent_relid as usize)
                && let Some(parent) = parent.as_ref()
            {
                visit(parent.baserestrictinfo);
                visit(parent.joininfo);
            }
            visit_index();
        }
    }
}

/// Replaces comparisons below a node in place. Returns the node, or what replaces it.
///
/// # Safety
/// `node` is null or part of a query that is being planned, with simplified conditions.
unsafe fn visit<'a>(
    node: *mut Node,
    place: Place,
    replace: &impl Fn(Expr<'a>, Place) -> Option<Expr<'a>>,
) -> *mut Node {
    if node.is_null() {
        // The planner's state is a dummy while the server plans a CREATE INDEX or a CLUSTER.
        return node;
    }
    // SAFETY: the tag says which struct it is; all belong to the planner.
    unsafe {
        let condition = Place {
            truth_only: true,
            ..place
        };
        match (*node).type_ {
            NodeTag::T_List => {
                let list: *mut pg_sys::List = node.cast();
                for position in 0..pg_sys::list_length(list) as usize {
                    let cell = (*list).elements.add(position);
                    let visited = visit((*cell).ptr_value.cast(), place, replace);
                    // Conditions of row security are a list of lists.
                    (*cell).ptr_value = flattened(visited).cast();
                }
            }
            NodeTag::T_FromExpr | NodeTag::T_JoinExpr => visit_join_tree(node, condition, replace),
            NodeTag::T_RangeTblEntry => {
                let entry: *mut pg_sys::RangeTblEntry = node.cast();
                visit((*entry).securityQuals.cast(), condition, replace);
            }
            // A partial index is used where the condition implies its predicate, which must be in
            // the same form.
            NodeTag::T_IndexOptInfo => {
                let index: *mut pg_sys::IndexOptInfo = node.cast();
                visit((*index).indpred.cast(), condition, replace);
            }
            NodeTag::T_BoolExpr => {
                let expression: *mut pg_sys::BoolExpr = node.cast();
                let negates = (*expression).boolop == BoolExprType::NOT_EXPR;
                let truth_only = place.truth_only && !negates;
                let place = Place {
                    truth_only,
                    ..place
                };
                visit((*expression).args.cast(), place, replace);
            }
            NodeTag::T_RestrictInfo => visit_restriction(node.cast(), condition, replace),
            NodeTag::T_OpExpr | NodeTag::T_ScalarArrayOpExpr => {
                if let Some(replacement) = replace(Expr::new(node), place) {
                    assert!(replacement.has_type(pg_sys::BOOLOID));
                    return replacement.as_ptr();
                }
            }
            _ => {}
        }
    }
    node
}

/// Replaces comparisons in a node of the join tree, and flattens its conditions.
///
/// # Safety
/// As for [`visit`]; the node is a `FromExpr` or a `JoinExpr`.
unsafe fn visit_join_tree<'a>(
    node: *mut Node,
    place: Place,
    replace: &impl Fn(Expr<'a>, Place) -> Option<Expr<'a>>,
) {
    // SAFETY: the caller's promise; the tag says which struct it is.
    unsafe {
        let visit = |node| visit(node, place, replace);
        if (*node).type_ == NodeTag::T_FromExpr {
            let from: *mut pg_sys::FromExpr = node.cast();
            (*from).quals = flattened(visit((*from).quals));
            visit((*from).fromlist.cast());
        } else {
            let join: *mut pg_sys::JoinExpr = node.cast();
            (*join).quals = flattened(visit((*join).quals));
            visit((*join).larg);
            visit((*join).rarg);
        }
    }
}

/// Moves the arguments of nested ANDs into the list of conditions. A replacement can be an AND, and
/// the planner does not match an index with the arguments of a nested one.
///
/// # Safety
/// `conditions` is null or belongs to a query that is being planned.
unsafe fn flattened(conditions: *mut Node) -> *mut Node {
    // SAFETY: the tags say which structs these are; all belong to the planner.
    unsafe {
        if conditions.is_null() || (*conditions).type_ != NodeTag::T_List {
            return conditions;
        }
        let list: *mut pg_sys::List = conditions.cast();
        let positions = 0..pg_sys::list_length(list) as usize;
        let condition = |position| (*(*list).elements.add(position)).ptr_value.cast::<Node>();
        let is_and = |node: *mut Node| {
            (*node).type_ == NodeTag::T_BoolExpr
                && (*node.cast::<pg_sys::BoolExpr>()).boolop == BoolExprType::AND_EXPR
        };
        if !positions.clone().map(condition).any(is_and) {
            return conditions;
        }
        let mut flat: *mut pg_sys::List = core::ptr::null_mut();
        for condition in positions.map(condition) {
            // A condition that is not an AND makes a list of itself.
            flat = pg_sys::list_concat(flat, pg_sys::make_ands_implicit(condition.cast()));
        }
        flat.cast()
    }
}

/// Replaces comparisons in a condition that has been assigned to a relation.
///
/// # Safety
/// As for [`visit`]; the condition is not null.
unsafe fn visit_restriction<'a>(
    condition: *mut pg_sys::RestrictInfo,
    place: Place,
    replace: &impl Fn(Expr<'a>, Place) -> Option<Expr<'a>>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let clause = visit((*condition).clause.cast(), place, replace).cast();
        if clause != (*condition).clause {
            (*condition).clause = clause;
            // These fields describe the operator that was replaced.
            (*condition).can_join = false;
            (*condition).mergeopfamilies = core::ptr::null_mut();
            (*condition).hashjoinoperator = pg_sys::InvalidOid;
        }
        (*condition).orclause = visit((*condition).orclause.cast(), place, replace).cast();
    }
}
