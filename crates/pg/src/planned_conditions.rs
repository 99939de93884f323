//! Replaces comparisons in the conditions of a query (WHERE, JOIN ON, row security, index
//! predicates) while the server plans the query. The server's hook `get_relation_info_hook` makes
//! this possible.
use core::cell::Cell;

use pgrx::pg_guard;
use pgrx::pg_sys::{self, BoolExprType, Node, NodeTag, Oid, PlannerInfo, RelOptInfo};

use super::expr::Expr;
use super::planner::Planner;

/// Table of a query that is being planned. The planner has just read it and its indexes from the
/// catalogue.
pub struct PlannedRelation<'a> {
    /// State of the planner that called the hook.
    pub planner: Planner<'a>,
    /// The table as the planner describes it.
    pub(super) rel: &'a RelOptInfo,
}

thread_local! {
    static REWRITE: Cell<Option<fn(&PlannedRelation)>> = const { Cell::new(None) };
    /// Hook that another library installed before this one, and that must still be called.
    static PREVIOUS: Cell<pg_sys::get_relation_info_hook_type> = const { Cell::new(None) };
}

/// Installs `rewrite` as `get_relation_info_hook`. The planner calls `rewrite` for each table of a
/// query, after it has read the table's indexes. Call this function once, while the server loads
/// the library.
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

/// Position of a comparison in a query or in the predicate of an index.
#[derive(Clone, Copy)]
pub struct ConditionContext {
    /// True if NULL and false have the same effect at this position, as at the top of WHERE. A
    /// replacement of the comparison may then return false where the comparison returns NULL, and
    /// vice versa. False below NOT.
    pub truth_only: bool,
    /// True if the comparison is in a condition of the query, false if it is in the predicate of an
    /// index.
    pub in_query: bool,
}

impl<'a> PlannedRelation<'a> {
    /// Wraps the two arguments that the server passes to `get_relation_info_hook`.
    ///
    /// # Safety
    /// Both pointers come from the server and live for `'a`, as [`Planner::new`] requires.
    unsafe fn new(root: *mut PlannerInfo, rel: *mut RelOptInfo) -> Self {
        // SAFETY: the caller's promise.
        let (planner, rel) = unsafe { (Planner::new(root), &*rel) };
        PlannedRelation { planner, rel }
    }

    /// Calls `replace` for each comparison in the conditions of the query, in the row security of
    /// the query's tables, and in the predicates of this relation's indexes. Replaces the
    /// comparison by the expression that `replace` returns; `None` keeps the comparison.
    ///
    /// A partition, or an arm of a UNION ALL, has a parent relation. The planner makes the
    /// conditions of such a relation later, as copies of the parent's conditions. So for such a
    /// relation, the function visits the conditions of the parent instead of all conditions of the
    /// query.
    ///
    /// A comparison is an operator expression, or an operator with `ANY` of an array. Comparisons
    /// are found at the top level of a condition and below AND, OR and NOT.
    pub fn replace_comparisons(
        &self,
        replace: impl Fn(Expr<'a>, ConditionContext) -> Option<Expr<'a>>,
    ) {
        let Some(root) = self.planner.root() else {
            return;
        };
        // SAFETY: the planner's state, its query and the relation are alive. Both arrays have an
        // element for each relation, which may be null.
        unsafe {
            let of_query = ConditionContext {
                truth_only: true,
                in_query: true,
            };
            let of_index = ConditionContext {
                in_query: false,
                ..of_query
            };
            let indexes = self.rel.indexlist;
            let visit_index = || visit(indexes.cast(), of_index, &replace);
            let visit = |node: *mut pg_sys::List| visit(node.cast(), of_query, &replace);
            if self.rel.reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL {
                // This runs once for each table of the query. A later run does not replace a
                // replacement.
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

/// Replaces comparisons in a node of the query and in the nodes below it. Changes the nodes in
/// place, and returns the node or its replacement.
///
/// # Safety
/// `node` is null or belongs to a query that is being planned, with simplified conditions.
unsafe fn visit<'a>(
    node: *mut Node,
    context: ConditionContext,
    replace: &impl Fn(Expr<'a>, ConditionContext) -> Option<Expr<'a>>,
) -> *mut Node {
    if node.is_null() {
        // CREATE INDEX and CLUSTER call the planner with an empty dummy query.
        return node;
    }
    // SAFETY: the node's tag identifies its struct. All nodes belong to the planner.
    unsafe {
        let condition = ConditionContext {
            truth_only: true,
            ..context
        };
        match (*node).type_ {
            NodeTag::T_List => {
                let list: *mut pg_sys::List = node.cast();
                for position in 0..pg_sys::list_length(list) as usize {
                    let cell = (*list).elements.add(position);
                    let visited = visit((*cell).ptr_value.cast(), context, replace);
                    // Conditions of row security are lists inside a list.
                    (*cell).ptr_value = flattened(visited).cast();
                }
            }
            NodeTag::T_FromExpr | NodeTag::T_JoinExpr => visit_join_tree(node, condition, replace),
            NodeTag::T_RangeTblEntry => {
                let entry: *mut pg_sys::RangeTblEntry = node.cast();
                visit((*entry).securityQuals.cast(), condition, replace);
            }
            // The planner uses a partial index if the query's condition implies the predicate. It
            // detects this only if the condition and the predicate have the same form.
            NodeTag::T_IndexOptInfo => {
                let index: *mut pg_sys::IndexOptInfo = node.cast();
                visit((*index).indpred.cast(), condition, replace);
            }
            NodeTag::T_BoolExpr => {
                let expression: *mut pg_sys::BoolExpr = node.cast();
                let negates = (*expression).boolop == BoolExprType::NOT_EXPR;
                let truth_only = context.truth_only && !negates;
                let context = ConditionContext {
                    truth_only,
                    ..context
                };
                visit((*expression).args.cast(), context, replace);
            }
            NodeTag::T_RestrictInfo => visit_restriction(node.cast(), condition, replace),
            NodeTag::T_OpExpr | NodeTag::T_ScalarArrayOpExpr => {
                if let Some(replacement) = replace(Expr::new(node), context) {
                    assert!(replacement.has_type(pg_sys::BOOLOID));
                    return replacement.as_ptr();
                }
            }
            _ => {}
        }
    }
    node
}

/// Replaces comparisons in the conditions of a FROM or JOIN node and of the nodes below it. If a
/// replacement is an AND, its arguments become separate conditions (see [`flattened`]).
///
/// # Safety
/// The conditions of [`visit`] hold, and the node is a `FromExpr` or a `JoinExpr`.
unsafe fn visit_join_tree<'a>(
    node: *mut Node,
    context: ConditionContext,
    replace: &impl Fn(Expr<'a>, ConditionContext) -> Option<Expr<'a>>,
) {
    // SAFETY: the caller's promise; the node's tag identifies its struct.
    unsafe {
        let visit = |node| visit(node, context, replace);
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

/// Replaces each AND in a list of conditions by its arguments, because the replacement of a
/// comparison can be an AND. The planner matches indexes only with elements of the list, not with
/// the arguments of an AND that is an element. Returns a node that is not a list unchanged.
///
/// # Safety
/// `conditions` is null or belongs to a query that is being planned.
unsafe fn flattened(conditions: *mut Node) -> *mut Node {
    // SAFETY: the tags identify the structs. All nodes belong to the planner.
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
            // `make_ands_implicit` returns the arguments of an AND, and a list of one for another
            // node.
            flat = pg_sys::list_concat(flat, pg_sys::make_ands_implicit(condition.cast()));
        }
        flat.cast()
    }
}

/// Replaces comparisons in a condition that the planner has already assigned to a relation
/// (`RestrictInfo`).
///
/// # Safety
/// The conditions of [`visit`] hold, and the condition is not null.
unsafe fn visit_restriction<'a>(
    condition: *mut pg_sys::RestrictInfo,
    context: ConditionContext,
    replace: &impl Fn(Expr<'a>, ConditionContext) -> Option<Expr<'a>>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let clause = visit((*condition).clause.cast(), context, replace).cast();
        if clause != (*condition).clause {
            (*condition).clause = clause;
            // These fields of the condition describe the replaced operator, so they are reset.
            (*condition).can_join = false;
            (*condition).mergeopfamilies = core::ptr::null_mut();
            (*condition).hashjoinoperator = pg_sys::InvalidOid;
        }
        (*condition).orclause = visit((*condition).orclause.cast(), context, replace).cast();
    }
}
