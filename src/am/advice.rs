//! Advice to the user of CREATE INDEX.
use neardup_blocktree::block_layout::{BlockLayout, default_distance};
use neardup_blocktree::plan::Plan;

use neardup_pg::errors::UserNotice;
use neardup_pg::rel::Rel;

/// Tells the user if an index of the default distance would answer searches within the distance
/// asked for in less time, and with fewer tables. `rows`: the number of rows indexed.
pub fn compare_with_default<const N: usize>(index: Rel, asked: &BlockLayout<N>, rows: f64) {
    // Searches within a scope are planned by the rows of that scope.
    let (distance, bits) = (asked.distance(), asked.bits());
    if asked.scope_words() > 0 || distance <= default_distance(bits) {
        return;
    }
    let least = default_distance(bits);
    let blocks = BlockLayout::<N>::default_blocks(false, least, rows);
    let Ok(default) = BlockLayout::<N>::new(least, blocks) else {
        return;
    };
    let cost = |layout: &BlockLayout<N>| Plan::new(layout, distance, rows).cost();
    let (own, other) = (cost(asked), cost(&default));
    let (tables, fewer) = (asked.tables().len(), default.tables().len());
    if fewer < tables && other < own {
        UserNotice {
            message: format!(
                "index \"{}\" is larger than one with the default distance, and searches within \
                 {distance} bits take more time",
                index.shown()
            ),
            detail: format!(
                "With distance = {distance} there are {tables} tables, and a search costs some \
                 {own:.0} pages. With distance = {least} there are {fewer}, and it costs some \
                 {other:.0}."
            ),
            hint: format!(
                "Leave out \"distance\". SELECT * FROM neardup_tune_radius({bits}, {distance}, \
                 {rows}) compares the two."
            ),
        }
        .report();
    }
}
