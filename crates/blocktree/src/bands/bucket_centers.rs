//! Representatives of clusters among crowded signatures (signatures that are near many others). A
//! bucket consists of the signatures that have the same hash in a band. Each bucket with crowded
//! signatures has a linked list of representatives. The lists are in arrays that move to temporary
//! files beyond a memory limit. Nodes and ranks are explained in [`crate::clusters`].
//!
//! A node is compared only with the representatives in the node's own buckets. A comparison may
//! fetch the heap rows of both. Representatives among crowded fingerprints are in
//! [`crate::crowded_centers`]: fingerprints have no buckets and are compared without a fetch.

use super::rows::RowCache;
use super::{RowSource, Sketch};
use crate::clusters::{Centers, split};
use crate::key::Tid;
use crate::paged::Paged;
use crate::sort::{Entry, TempFiles};

/// Link number that marks the end of a list, or an empty list.
const NONE: u32 = u32::MAX;
/// Number of 32-bit numbers that one link takes in `links`. In this order: the next link of the
/// same list, the representative's rank, four numbers of the representative's sketch, the heap
/// block and the line pointer of the representative's row.
const LINK_NUMBERS: u32 = 8;

/// One list of representatives for each crowded bucket. Each list is in ascending order of rank.
pub struct BucketCenters<F: TempFiles, S: RowSource> {
    /// Maximum number of positions in which near signatures differ.
    mismatches: u32,
    rows: RowCache<S>,
    /// Two numbers for each bucket, by bucket number: the first and the last link of the bucket's
    /// list.
    ends: Paged<F>,
    /// [`LINK_NUMBERS`] numbers for each link, by the number of the link.
    links: Paged<F>,
    /// Number of links in all lists.
    count: u32,
    /// Buffer for the search of one node. It has an element for each bucket of the node whose list
    /// has representatives left: the rank and the link of the list's next representative.
    next: Vec<(u32, u32)>,
}

impl<F: TempFiles, S: RowSource> BucketCenters<F, S> {
    /// Creates empty lists of representatives for `buckets` buckets. `source` fetches the rows that
    /// are compared. Near signatures differ in at most `mismatches` positions. The lists and the
    /// row cache take `memory` bytes.
    pub fn new(files: &mut F, buckets: u32, source: S, mismatches: usize, memory: usize) -> Self {
        BucketCenters {
            mismatches: mismatches as u32,
            rows: RowCache::new(files, source, memory / 2),
            ends: Paged::new(files, 2 * buckets as usize, memory / 4, |_| NONE),
            links: Paged::new(files, 0, memory / 4, |_| NONE),
            count: 0,
            next: Vec::new(),
        }
    }

    /// Returns one of the [`LINK_NUMBERS`] numbers of a link, by the position `number`.
    fn link(&mut self, files: &mut F, link: u32, number: u32) -> u32 {
        self.links.get(files, LINK_NUMBERS * link + number)
    }

    /// Returns the rank of a link's representative, and the link itself. `None` if `link` is the
    /// end of a list.
    fn ranked(&mut self, files: &mut F, link: u32) -> Option<(u32, u32)> {
        (link != NONE).then(|| (self.link(files, link, 1), link))
    }

    /// Returns in how many bits the sketch of a link's representative differs from `sketch`.
    fn differing(&mut self, files: &mut F, link: u32, sketch: Sketch) -> u32 {
        (0..4)
            .map(|i| {
                let part = (sketch[i as usize / 2] >> (32 * (1 - i % 2))) as u32;
                (self.link(files, link, 2 + i) ^ part).count_ones()
            })
            .sum()
    }
}

impl<F: TempFiles, S: RowSource> Centers<F, 4> for BucketCenters<F, S> {
    fn first_near(&mut self, files: &mut F, own: &[Entry<4>], below: u32) -> Option<u32> {
        let mut next = std::mem::take(&mut self.next);
        next.clear();
        for entry in own {
            let first = self.ends.get(files, 2 * entry.key[1] as u32);
            next.extend(self.ranked(files, first));
        }
        let mut found = None;
        while let Some(&(rank, link)) = next.iter().min()
            && rank < below
        {
            let sketch = [own[0].key[2], own[0].key[3]];
            if self.differing(files, link, sketch) <= self.mismatches {
                let center = Tid {
                    block: self.link(files, link, 6),
                    offset: self.link(files, link, 7) as u16,
                };
                if self.rows.are_near(Tid::from_packed(own[0].tid), center) {
                    found = Some(rank);
                    break;
                }
            }
            next.retain_mut(|other| {
                if other.0 != rank {
                    return true;
                }
                let after = self.link(files, other.1, 0);
                let ranked = self.ranked(files, after);
                *other = ranked.unwrap_or(*other);
                ranked.is_some()
            });
        }
        self.next = next;
        found
    }

    fn push(&mut self, files: &mut F, own: &[Entry<4>]) {
        for entry in own {
            let link = self.count;
            if link == NONE / LINK_NUMBERS {
                files.out_of_memory();
            }
            self.count += 1;
            self.links.grow(files, (LINK_NUMBERS * self.count) as usize);
            let row = Tid::from_packed(entry.tid);
            let [rank, bucket, high, low] = entry.key;
            let [(s0, s1), (s2, s3)] = [high, low].map(split);
            let (rank, row) = (split(rank).0, [row.block, u32::from(row.offset)]);
            for (i, number) in (0..).zip([NONE, rank, s0, s1, s2, s3, row[0], row[1]]) {
                self.links.set(files, LINK_NUMBERS * link + i, number);
            }
            let (first, last) = (2 * bucket as u32, 2 * bucket as u32 + 1);
            match self.ends.get(files, last) {
                NONE => self.ends.set(files, first, link),
                last => self.links.set(files, LINK_NUMBERS * last, link),
            }
            self.ends.set(files, last, link);
        }
    }
}
