//! Metric of an index: from values to keys, and distances of values.
//!
//! Each way in which fingerprints, signatures and sets differ is one function here. Beyond that,
//! only the searches and their costs know which of them an index holds.
use std::rc::Rc;

use neardup_blocktree::bands::Bands;
use neardup_blocktree::block_layout::BlockLayout;
use neardup_blocktree::build::{BuildHost, Fill, build, build_bands, build_sets};
use neardup_blocktree::key::{EntryKey, Key, Tid};
use neardup_blocktree::page::Corruption;
use neardup_blocktree::sort::ExternalSort;
use neardup_blocktree::store::PageStore;
use neardup_blocktree::tree::Tree;
use neardup_blocktree::{meta, sets};
use neardup_sketch::memory::GrowVec;
use pgrx::pg_sys;

use super::keys::Layout;
use super::minhash::{expect_length, scheme_hash, with_signature};
use super::sets::elements;
use crate::pg::index_row::IndexRow;
use crate::pg::value::Value;
use crate::registry;
use crate::types::signature::{self, SignatureBall};
use crate::types::{Ball, Fingerprint, Fingerprint64, Fingerprint128, Fingerprint256};

/// Metric of an index.
#[derive(Clone)]
pub enum Metric {
    /// Hamming distance of fingerprints. All tables hold one key, each permuted in its own way.
    Hamming,
    /// Mismatches of signatures. Each table holds the key of a band.
    MinHash(Rc<Bands>),
    /// Common elements of sets, which have no distance. One table holds rows, one their elements.
    Overlap,
}

/// From values to keys.
impl Metric {
    /// The metric that a meta page names, if it has bands where it needs them.
    pub fn new(metric: meta::Metric, bands: impl FnOnce() -> Option<Bands>) -> Option<Self> {
        match metric {
            meta::Metric::Hamming => Some(Metric::Hamming),
            meta::Metric::MinHash => bands().map(|bands| Metric::MinHash(Rc::new(bands))),
            meta::Metric::Overlap => Some(Metric::Overlap),
        }
    }

    /// The bands of signatures.
    pub fn bands(&self) -> Option<&Rc<Bands>> {
        match self {
            Metric::Hamming | Metric::Overlap => None,
            Metric::MinHash(bands) => Some(bands),
        }
    }

    /// Returns whether values are fingerprints.
    pub fn is_hamming(&self) -> bool {
        matches!(self, Metric::Hamming)
    }

    /// The tables of an index, of which those of fingerprints follow from parameters.
    pub fn block_layout<E, const N: usize>(
        &self,
        scope: bool,
        of_parameters: impl FnOnce() -> Result<BlockLayout<N>, E>,
    ) -> Result<BlockLayout<N>, E> {
        match self {
            Metric::Hamming => of_parameters(),
            Metric::MinHash(bands) => Ok(bands.layout(scope)),
            Metric::Overlap => Ok(BlockLayout::of_sets(scope)),
        }
    }

    /// Number of sorts of a build. Each key of a row goes to the sort of its own number, and those
    /// behind to the last.
    pub fn sorts(&self) -> usize {
        match self {
            Metric::Hamming => 1,
            Metric::MinHash(bands) => bands.count(),
            Metric::Overlap => sets::TABLES,
        }
    }

    /// Memory of a sort, of `memory` bytes for all of them.
    pub fn sort_memory(&self, sort: usize, memory: usize) -> usize {
        match self {
            Metric::Hamming | Metric::MinHash(_) => memory / self.sorts(),
            // Rows have several elements.
            Metric::Overlap if sort == usize::from(sets::ROW_TABLE) => memory / 8,
            Metric::Overlap => memory - memory / 8,
        }
    }

    /// Appends the keys of a row: one of a fingerprint, one for each band of a signature, and those
    /// of a set, its sum and its elements; or one and false if the value is NULL.
    #[inline]
    pub fn keys<const N: usize>(
        &self,
        layout: &Layout,
        row: &IndexRow,
        keys: &mut Vec<Key<N>>,
    ) -> bool {
        let scope = layout.row_scope(row.index(), |column| row.get(column));
        let mut key = layout.key_in_scope(scope);
        let Some(value) = row.get(layout.scope_columns) else {
            keys.push(key);
            return false;
        };
        match self {
            Metric::Hamming => {
                layout.put_fingerprint(&mut key, value);
                keys.push(key);
            }
            Metric::MinHash(bands) => with_signature(value, |signature| {
                expect_length(row.index(), bands, signature);
                let (values, kind) = (signature.values, scheme_hash(signature));
                let sketch = bands.sketch(values);
                let key = |band| bands.key(band, values, kind, scope, &sketch);
                keys.extend((0..bands.count()).map(key));
            }),
            Metric::Overlap => {
                let elements = elements(value);
                let sum = sets::sum(elements.iter().copied());
                let numbers = [sum].into_iter().chain(elements);
                keys.grow_all(numbers.map(|number| sets::key(number, scope)));
            }
        }
        true
    }

    /// The key under which a row with these keys stands in a table.
    #[inline]
    pub fn entry_key<const N: usize>(
        &self,
        layout: &BlockLayout<N>,
        keys: &[Key<N>],
        table: u16,
    ) -> Key<N> {
        match self {
            Metric::Hamming => layout.tables()[usize::from(table)].permute(&keys[0]),
            Metric::MinHash(_) | Metric::Overlap => keys[usize::from(table)],
        }
    }

    /// Adds a row with these keys and a value to a tree.
    pub fn insert<S: PageStore, const N: usize>(
        &self,
        tree: &Tree<S, N>,
        layout: &BlockLayout<N>,
        keys: &[Key<N>],
        tid: Tid,
    ) -> Result<(), Corruption> {
        if let (Metric::Overlap, [sum, elements @ ..]) = (self, keys) {
            tree.insert(&EntryKey::new(sets::ROW_TABLE, *sum, tid))?;
            let entry_key = |&key: &Key<N>| EntryKey::new(sets::ELEMENT_TABLE, key, tid);
            return tree.insert_all(elements.iter().map(entry_key));
        }
        let entries = (0..layout.null_table()).map(|table| EntryKey {
            table,
            key: self.entry_key(layout, keys, table),
            tid,
        });
        tree.insert_row(entries)
    }

    /// Writes a new tree of sorted keys, those at one position of each row together.
    pub fn write_tree<H: BuildHost, const N: usize>(
        &self,
        host: &mut H,
        layout: &BlockLayout<N>,
        rows: &mut [ExternalSort<H, N>],
        nulls: &mut ExternalSort<H, N>,
        fill: Fill,
    ) {
        match self {
            Metric::Hamming => build(host, layout, &mut rows[0], nulls, fill),
            Metric::MinHash(bands) => build_bands(host, bands, rows, nulls, fill),
            Metric::Overlap => build_sets(host, rows, nulls, fill),
        };
    }
}

/// Distances of values of an index's last column. Who asks for them has refused an index on sets.
impl Metric {
    /// Returns whether an index finds all rows within a distance without being read whole.
    pub fn finds_all_within(&self, distance: u32) -> bool {
        (self.bands()).is_none_or(|bands| distance as usize <= bands.guaranteed())
    }

    /// Returns whether an index gives rows from the nearest on.
    pub fn comes_in_order(&self) -> bool {
        self.bands().is_none()
    }

    /// The unit of distances, for messages.
    pub fn unit(&self) -> String {
        match self {
            Metric::Hamming => "bits".to_owned(),
            Metric::MinHash(bands) => format!("of {} hashes", bands.hashes()),
            Metric::Overlap => no_distances(),
        }
    }

    /// A distance for users.
    pub fn shown(&self, distance: u32) -> Value<'static> {
        match self {
            Metric::Hamming => Value::int4(distance as i32),
            Metric::MinHash(bands) => {
                Value::float8(signature::distance(distance as usize, bands.hashes()))
            }
            Metric::Overlap => no_distances(),
        }
    }

    /// The distance of two values; `None` for signatures that were made in different ways.
    pub fn distance(&self, a: Value, b: Value) -> Option<u32> {
        match self {
            Metric::Hamming => {
                assert_eq!(a.length(), b.length());
                let (a, b) = (words(a), words(b));
                Some(a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum())
            }
            Metric::MinHash(_) => with_signature(a, |a| {
                with_signature(b, |b| a.mismatches(b).map(|it| it as u32))
            }),
            Metric::Overlap => no_distances(),
        }
    }

    /// A value as rows in flight are compared by it.
    pub fn in_flight(&self, value: Value) -> registry::Value {
        match self {
            Metric::Hamming => registry::Value::of_words(&words(value)),
            Metric::MinHash(_) => with_signature(value, registry::Value::of_signature),
            Metric::Overlap => no_distances(),
        }
    }

    /// A number that values which can be near each other have in common.
    pub fn group(&self, value: Value) -> u64 {
        match self {
            Metric::Hamming => value.length() as u64 / 8,
            Metric::MinHash(_) => with_signature(value, |signature| {
                scheme_hash(signature).wrapping_add(signature.values.len() as u64)
            }),
            Metric::Overlap => no_distances(),
        }
    }

    /// The ball of all values within a distance of one, as the operator `<@` takes it.
    pub(super) fn ball(&self, center: Value, radius: u32) -> pg_sys::Datum {
        match (self, center.length()) {
            (Metric::Hamming, 8) => ball::<Fingerprint64>(center, radius),
            (Metric::Hamming, 16) => ball::<Fingerprint128>(center, radius),
            (Metric::Hamming, _) => ball::<Fingerprint256>(center, radius),
            (Metric::MinHash(_), _) => with_signature(center, |&center| {
                SignatureBall {
                    center,
                    mismatches: radius as i32,
                    approximate: false,
                }
                .into_datum()
            }),
            (Metric::Overlap, _) => no_distances(),
        }
    }
}

fn no_distances() -> ! {
    unreachable!("sets have no distances")
}

/// The words of a fingerprint, the most significant first; the rest is zero.
fn words(fingerprint: Value) -> [u64; 4] {
    let mut words = [0; 4];
    fingerprint.copy_words(&mut words[..fingerprint.length() as usize / 8]);
    words
}

fn ball<T: Fingerprint>(center: Value, radius: u32) -> pg_sys::Datum {
    let bytes: Vec<u8> = (words(center).iter())
        .flat_map(|word| word.to_be_bytes())
        .collect();
    match T::Bytes::try_from(&bytes[..T::BITS as usize / 8]) {
        Ok(bytes) => Ball::new(T::from_bytes(bytes), radius as i32).into_datum(),
        Err(_) => unreachable!("as many bytes as the type has"),
    }
}
