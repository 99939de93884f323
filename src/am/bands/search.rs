//! Searching an index on signatures.
//!
//! Bands find all rows within what they guarantee. Beyond it, the sketches of all rows are looked
//! at, which is exact as well; or the bands nevertheless, which is not, if both the query and the
//! session allow it. Each row is checked again by the server: the index does not hold signatures.
use std::rc::Rc;

use neardup_blocktree::bands::{BandQuery, BandScan, Bands};
use neardup_blocktree::key::Tid;
use neardup_blocktree::level_cursor::{FullScan, Row};
use pgrx::pg_sys;

use super::scheme_hash;
use crate::am::index::Index;
use crate::am::scan_keys::{Presence, ScopeQuals};
use crate::am::search::Search;
use crate::am::strategies;
use crate::pg::memory::work_mem;
use crate::settings;
use crate::storage::pages::IndexPages;
use crate::types::signature::{Signature, SignatureBall, near_duplicate};

/// Condition of a scan key on the signature: at most some number of mismatches with a centre.
struct SignatureQual<'a> {
    center: Signature<'a>,
    mismatches: usize,
    approximate: bool,
}

/// Source of rows.
enum Source<const N: usize> {
    /// None, or no more.
    Nothing,
    /// All of them, or those whose sketches are near.
    All(FullScan<N>, Option<BandQuery<N>>),
    /// By bands.
    Bands(BandScan<N>),
}

struct BandSearch<'a, const N: usize> {
    index: Index<'a, N>,
    bands: Rc<Bands>,
    source: Source<N>,
    rows: Vec<Row<N>>,
}

/// A search in an index on signatures, which is to be begun by [`Search::rescan`].
pub fn open<'a, const N: usize>(index: Index<'a, N>) -> Box<dyn Search + 'a> {
    let bands = index
        .bands
        .clone()
        .expect("an index on signatures has bands");
    Box::new(BandSearch {
        index,
        bands,
        source: Source::Nothing,
        rows: Vec::new(),
    })
}

/// The condition that a key makes; `None` if nothing fulfils it.
///
/// # Safety
/// The key is for an operator of an operator class for signatures.
unsafe fn signature_qual<'a>(key: &pg_sys::ScanKeyData) -> Option<SignatureQual<'a>> {
    // SAFETY: the operator of strategy 1 has a ball on its right side, the others a signature.
    unsafe {
        if key.sk_strategy == strategies::WITHIN {
            let ball = SignatureBall::from_datum(key.sk_argument);
            return Some(SignatureQual {
                center: ball.center,
                mismatches: usize::try_from(ball.mismatches).ok()?,
                approximate: ball.approximate && settings::allow_approximate(),
            });
        }
        let center = Signature::from_datum(key.sk_argument);
        let mismatches = match key.sk_strategy {
            strategies::NEAR => near_duplicate(center.values.len()),
            _ => 0,
        };
        Some(SignatureQual {
            center,
            mismatches,
            approximate: false,
        })
    }
}

impl<const N: usize> BandSearch<'_, N> {
    /// Sets out for what the keys ask; false if nothing fulfils them.
    unsafe fn begin(&mut self, keys: &[pg_sys::ScanKeyData]) -> Option<()> {
        let (layout, relation) = (self.index.layout, self.index.relation());
        let mut narrowest: Option<SignatureQual> = None;
        let mut scope = ScopeQuals::new(layout.scope_columns);
        let mut presence = Presence::Any;
        for key in keys {
            // SAFETY: the caller's promise.
            unsafe {
                if scope.take(relation, key)? {
                    continue;
                }
                if let Some(both) = presence.and(key) {
                    presence = both?;
                    continue;
                }
                if key.sk_flags as u32 & pg_sys::SK_ISNULL != 0 {
                    return None;
                }
                let condition = signature_qual(key)?;
                if condition.center.values.len() != self.bands.hashes() {
                    // Nothing of another length is in the index, and can be compared.
                    return None;
                }
                if narrowest
                    .as_ref()
                    .is_none_or(|it| condition.mismatches < it.mismatches)
                {
                    narrowest = Some(condition);
                }
            }
        }
        let has_scope = layout.scope_columns > 0;
        let scope = scope.word();
        let design = || self.index.design.clone();
        let all = || FullScan::new(design(), scope);
        let Some(near) = narrowest else {
            let rows = match presence {
                Presence::Any => all(),
                Presence::Null => FullScan::nulls(design(), scope),
                Presence::NotNull => all().without_nulls(),
            };
            self.source = Source::All(rows, None);
            return Some(());
        };
        if presence == Presence::Null {
            return None;
        }
        let bands = &self.bands;
        let query = BandQuery::new(
            bands,
            near.center.values,
            scheme_hash(&near.center),
            scope,
            near.mismatches,
        );
        let by_bands = near.mismatches <= bands.guaranteed() || near.approximate;
        if !by_bands || has_scope && scope.is_none() {
            let only_signatures = all().without_nulls();
            self.source = Source::All(only_signatures, Some(query));
        } else if let Source::Bands(scan) = &mut self.source {
            // The usual case of a nested loop, which begins again for each outer row.
            scan.restart(query);
        } else {
            self.source = Source::Bands(BandScan::new(bands.clone(), query, work_mem()));
        }
        Some(())
    }
}

impl<const N: usize> Search for BandSearch<'_, N> {
    unsafe fn rescan(
        &mut self,
        keys: &[pg_sys::ScanKeyData],
        _order_bys: &[pg_sys::ScanKeyData],
        index_only: bool,
    ) -> bool {
        // The rows that bands find come from many leaves. The server asks for them only where it
        // needs the signature, which it cannot have from the index.
        assert!(
            !index_only || keys.is_empty(),
            "an index-only scan with a condition on signatures"
        );
        // SAFETY: the caller's promise. What is read from TOAST is in the memory that the caller
        // resets.
        if unsafe { self.begin(keys) }.is_none() {
            self.source = Source::Nothing;
        }
        // Without a condition each row fulfils them all.
        !keys.is_empty()
    }

    fn step(&mut self, tids: &mut Vec<Tid>) -> bool {
        let index = &self.index;
        let tree = index.tree();
        let more = match &mut self.source {
            Source::Nothing => false,
            Source::Bands(scan) => index.or_corrupt(scan.step(&tree, tids)),
            Source::All(scan, query) => {
                self.rows.clear();
                let more = index.or_corrupt(scan.step(&tree, &mut self.rows));
                let admitted = |row: &&Row<N>| match (&*query, &row.fingerprint) {
                    (Some(query), Some(key)) => query.admits(key),
                    (query, _) => query.is_none(),
                };
                tids.extend(self.rows.iter().filter(admitted).map(|row| row.tid));
                more
            }
        };
        let root = tree.root();
        self.index.remember_root(root);
        more
    }

    fn value(&self, _row: usize) -> Option<pg_sys::Datum> {
        None
    }

    fn pages(&self) -> &IndexPages<'_> {
        &self.index.pages
    }
}
