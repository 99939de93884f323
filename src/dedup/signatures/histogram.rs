//! Numbers of pairs of signatures at each distance.
use neardup_blocktree::bands::{Sketch, sketch_difference};
use neardup_blocktree::key::Tid;
use neardup_blocktree::pairs::KeyOrderScan;

use super::groups::Groups;
use super::hashes;
use super::rows::{ComparedRow, ComparedRows, SignatureRows};
use crate::am::index::Index;
use crate::dedup::distance_counts::{BottomKSample, Counts, mix};
use crate::dedup::row_filter::Wanted;
use crate::pg::locked_index::LockedIndex;
use crate::storage::temp::TempSpace;

/// Number of lines from similarity 1 to 0, without the line of 1 itself.
const STEPS: usize = 50;

/// The line of a number of mismatches: that of the greatest multiple of 1/[`STEPS`] that is not
/// above the similarity.
pub fn line(mismatches: usize, hashes: usize) -> u32 {
    (mismatches * STEPS).div_ceil(hashes) as u32
}

/// The least similarity of the pairs on a line.
pub fn similarity_of_line(line: u32) -> f64 {
    (STEPS - line as usize) as f64 / STEPS as f64
}

/// Row of the sample.
struct Sampled {
    entry: Tid,
    row: Tid,
    sketch: Sketch,
    found: ComparedRow,
}

/// Compares a sample of an index's wanted rows with all of them, or with one of each group of
/// equals if the flag beside them says so, and adds the pairs with up to `most` mismatches to the
/// counts.
pub fn sample<const N: usize>(
    index: &Index<N>,
    relations: &LockedIndex,
    mut counts: Counts,
    most: usize,
    rows: usize,
    (mut wanted, is_distinct): (Wanted, bool),
) -> Counts {
    let hashes = hashes(index);
    let mut groups = None;
    if is_distinct {
        let mut rows = SignatureRows::new(relations, index);
        let wanted = std::mem::replace(&mut wanted, Wanted::All);
        groups = Some(Groups::find(index, &mut rows, wanted, TempSpace));
    }
    let files = &mut TempSpace;
    let mut is_wanted = |entry| match &mut groups {
        Some(groups) => groups.is_wanted(entry),
        None => wanted.contains(files, entry),
    };
    let mut chosen_rows = BottomKSample::new(rows);
    let mut all = 0u64;
    each_entry(index, |sketch, entry| {
        if is_wanted(entry) {
            all += 1;
            chosen_rows.offer(mix(entry.packed()), (sketch, entry));
        }
    });
    let chosen = chosen_rows.into_vec();
    let asked = chosen.len();
    let mut compared = ComparedRows::new(SignatureRows::new(relations, index), hashes, most);
    let sample: Vec<Sampled> = (chosen.into_iter())
        .filter_map(|(sketch, entry)| {
            let (row, found) = compared.find(entry)?;
            Some(Sampled {
                entry,
                row,
                sketch,
                found,
            })
        })
        .collect();
    if sample.is_empty() {
        return counts;
    }
    // Rows that the snapshot sees, by the share of them in the sample. Each pair has two ends.
    let visible = all as f64 * sample.len() as f64 / asked as f64;
    counts.weight = visible / sample.len() as f64 / 2.0;
    each_entry(index, |sketch, entry| {
        if !is_wanted(entry) {
            return;
        }
        let mut other = None;
        for one in &sample {
            if one.entry == entry || sketch_difference(&one.sketch, &sketch) > most as u32 {
                continue;
            }
            let Some((row, found)) = other.get_or_insert_with(|| compared.find(entry)) else {
                return;
            };
            if let Some(differing) = compared.differing(&one.found, found)
                && differing <= most
            {
                counts.add(one.row, *row, line(differing, hashes));
            }
        }
    });
    counts
}

/// Calls a function for each entry of an index, with the sketch of its signature.
fn each_entry<const N: usize>(index: &Index<N>, mut each: impl FnMut(Sketch, Tid)) {
    let mut walk = KeyOrderScan::new(index.block_layout.clone());
    let (tree, mut entries) = (index.tree(), Vec::new());
    let mut more = true;
    while more {
        entries.clear();
        more = index.or_corrupt(walk.step(&tree, &mut |key, entry| {
            entries.push(([key[N - 2], key[N - 1]], entry));
        }));
        for &(sketch, entry) in &entries {
            pgrx::check_for_interrupts!();
            each(sketch, entry);
        }
    }
}
