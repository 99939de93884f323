//! Representatives among crowded signatures, in a list for each bucket, within a limit of memory.
//!
//! A node is compared with the representatives in its own buckets, whose rows may have to be
//! fetched. Fingerprints are compared in another way ([`crate::crowded_centers`]), because their
//! nodes have no buckets and are compared without a fetch.

use super::rows::RowCache;
use super::{RowSource, Sketch};
use crate::clusters::{Centers, split};
use crate::key::Tid;
use crate::paged::Paged;
use crate::sort::{Entry, TempFiles};

/// End of a list.
const NONE: u32 = u32::MAX;
/// Numbers in a link: the next link of its list, then the representative's rank, four of its
/// sketch, and the block and line of its entry.
const LINK_NUMBERS: u32 = 8;

/// Lists of representatives, one for each crowded bucket, in the order of ranks.
pub struct BucketCenters<F: TempFiles, S: RowSource> {
    mismatches: u32,
    rows: RowCache<S>,
    /// First and last link of each bucket.
    ends: Paged<F>,
    links: Paged<F>,
    count: u32,
    /// Next representative in each bucket of the current node: its rank and its link.
    next: Vec<(u32, u32)>,
}

impl<F: TempFiles, S: RowSource> BucketCenters<F, S> {
    /// Creates empty lists for `buckets` buckets. Near signatures differ in at most `mismatches`
    /// positions. `memory` is in bytes.
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

    fn link(&mut self, files: &mut F, link: u32, number: u32) -> u32 {
        self.links.get(files, LINK_NUMBERS * link + number)
    }

    /// Returns the rank and the number of a link, or `None` for the end of a list.
    fn ranked(&mut self, files: &mut F, link: u32) -> Option<(u32, u32)> {
        (link != NONE).then(|| (self.link(files, link, 1), link))
    }

    /// Returns the number of bits in which the sketch of a representative differs from another.
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
