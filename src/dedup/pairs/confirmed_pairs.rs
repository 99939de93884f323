//! Pairs of rows whose texts are compared, for the argument `confirm` of `neardup_pairs`.
use neardup_blocktree::key::Tid;
use neardup_blocktree::sort::{ExternalSort, Sorted};

use super::PairSearch;
use crate::dedup::compared::Compared;
use crate::dedup::confirm::{Confirmation, FeatureSets};
use crate::dedup::limits::share;
use neardup_pg::locked_index::LockedIndex;
use neardup_pg::storage::temp::TempSpace;

/// Iterator over the candidate pairs with similar texts. Compares the texts of a pair when the
/// iteration reaches the pair. The candidate pairs are in the order in which the features of their
/// first rows are stored, so these features are read sequentially.
pub struct ConfirmedPairs {
    /// Features of the texts of all candidates.
    sets: FeatureSets,
    /// Candidate pairs. The key has the offsets in `sets` of the features of both rows, then the
    /// addresses of both rows. The value is the number of differing bits or positions.
    candidates: Sorted<TempSpace, 4>,
    /// Minimum Jaccard similarity of two texts.
    similarity: f64,
}

impl ConfirmedPairs {
    /// Runs `search`, which finds the candidate pairs, to its end. Then reads the texts of all rows
    /// in these pairs, and stores the features of the texts for the comparison.
    pub fn new(
        search: &mut dyn PairSearch,
        relations: &LockedIndex,
        confirmation: &Confirmation,
    ) -> Self {
        let files = &mut TempSpace;
        let mut pairs = ExternalSort::<TempSpace, 2>::new(share());
        let mut rows = ExternalSort::<TempSpace, 1>::new(share());
        search.for_each_pair(&mut |[a, b], differing| {
            let differing = Tid::from_packed(u64::from(differing));
            pairs.push(&mut TempSpace, [a.packed(), b.packed()], differing);
            for row in [a, b] {
                rows.push(&mut TempSpace, [row.packed()], Tid::MIN);
            }
        });
        let mut sets = FeatureSets::new();
        let mut texts = read_texts(files, rows, relations, confirmation, &mut sets);
        let first = with_offsets(files, pairs, &mut texts, |[a, b], offset| [b, offset, a]);
        let mut candidates = with_offsets(files, first, &mut texts, |[b, first, a], second| {
            [first, second, a, b]
        });
        ConfirmedPairs {
            sets,
            candidates: candidates.sorted(files, None),
            similarity: confirmation.similarity,
        }
    }

    /// Returns the next pair with similar texts: the addresses of its rows, the lower first, and
    /// the comparison of the rows. `None` after the last pair.
    pub fn next_pair(&mut self) -> Option<([Tid; 2], Compared)> {
        loop {
            pgrx::check_for_interrupts!();
            let pair = self.candidates.next(&mut TempSpace)?;
            let [first, second, a, b] = pair.key;
            let similarity =
                (self.sets).similarity_at(&mut TempSpace, [first, second], self.similarity);
            if similarity.is_some() {
                let differing = pair.tid as u32;
                let compared = Compared {
                    differing,
                    similarity,
                };
                return Some(([a, b].map(Tid::from_packed), compared));
            }
        }
    }
}

/// List of rows with the features of their texts. The key is the row's address, and the value is
/// the offset of the features in [`FeatureSets`].
type Texts = ExternalSort<TempSpace, 1>;

/// Reads the text of each row in `rows`, and stores the features of the text in `sets`. Returns the
/// offset of the features for each row. A row that occurs several times in `rows` is read once.
fn read_texts(
    files: &mut TempSpace,
    mut rows: ExternalSort<TempSpace, 1>,
    relations: &LockedIndex,
    confirmation: &Confirmation,
    sets: &mut FeatureSets,
) -> Texts {
    let mut count = 0;
    let mut last = None;
    rows.in_order(files, None, |_, row| {
        count += u64::from(last.replace(row.key) != Some(row.key));
    });
    let mut sorted = rows.sorted(files, None);
    let mut row_files = *files;
    let mut last = None;
    let mut next = || {
        loop {
            let row = sorted.next(&mut row_files)?;
            if last.replace(row.key) != Some(row.key) {
                return Some(Tid::from_packed(row.key[0]));
            }
        }
    };
    let mut texts = Texts::new(share());
    confirmation.for_each_text(relations, count, &mut next, |row, features| {
        let offset = sets.push(files, features);
        texts.push(files, [row.packed()], Tid::from_packed(offset));
    });
    texts
}

/// Looks up the features of a row for each of `entries`. The first word of an entry's key is the
/// address of the row. Returns the entries with new keys: `joined` makes the new key from the old
/// key and the offset of the features in [`FeatureSets`].
fn with_offsets<const N: usize, const M: usize>(
    files: &mut TempSpace,
    mut entries: ExternalSort<TempSpace, N>,
    texts: &mut Texts,
    joined: impl Fn([u64; N], u64) -> [u64; M],
) -> ExternalSort<TempSpace, M> {
    let mut result = ExternalSort::new(share());
    let mut texts = texts.sorted(files, None);
    let mut text = texts.next(files);
    entries.in_order(files, None, |files, entry| {
        while text.is_some_and(|text| text.key[0] < entry.key[0]) {
            text = texts.next(files);
        }
        // There is a text for each entry, because the query for the texts sees the same rows as the
        // search.
        if let Some(text) = text.filter(|text| text.key[0] == entry.key[0]) {
            let key = joined(entry.key, text.tid);
            result.push(files, key, Tid::from_packed(entry.tid));
        }
    });
    result
}
