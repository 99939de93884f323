//! Clusters at each radius: totals, and the largest clusters of one radius.
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use neardup_blocktree::key::Tid;
use neardup_report::data::Limits;

use neardup_pg::value::Value;

/// Totals of one radius.
#[derive(Default)]
pub struct Totals {
    pub clusters: u64,
    /// Number of rows to remove.
    pub copies: u64,
    /// Bytes of the texts of these rows.
    pub bytes: u64,
}

/// Row of the result of `neardup_clusters`, with the bytes of its text.
pub struct ClusterRow {
    pub member: Tid,
    pub representative: Tid,
    pub size: u64,
    pub distance: f64,
    pub bytes: u64,
}

impl ClusterRow {
    /// Reads a row of the query. Only the bytes may be NULL.
    pub fn read(row: &[Option<Value>]) -> Option<Self> {
        let [
            Some(member),
            Some(representative),
            Some(size),
            Some(distance),
            bytes,
        ] = row
        else {
            return None;
        };
        Some(ClusterRow {
            member: member.as_tid(),
            representative: representative.as_tid(),
            size: size.integer()?.unsigned_abs(),
            distance: distance.float()?,
            bytes: bytes.and_then(Value::integer).unwrap_or(0).unsigned_abs(),
        })
    }

    /// Returns whether the row would be removed.
    pub fn goes(&self) -> bool {
        self.member != self.representative
    }
}

impl Totals {
    pub fn add(&mut self, row: &ClusterRow) {
        match row.goes() {
            true => {
                self.copies += 1;
                self.bytes += row.bytes;
            }
            false => self.clusters += 1,
        }
    }
}

/// One of the largest clusters.
pub struct FoundCluster {
    pub size: u64,
    /// Maximum distance of a row from the kept row.
    pub widest: f64,
    /// The kept row, then the farthest other rows, the nearest of them first.
    pub rows: Vec<ListedRow>,
}

/// Row of such a cluster.
pub struct ListedRow {
    pub row: Tid,
    pub distance: f64,
    /// Numbers of the radii at which the row would be removed.
    pub goes_at: Vec<usize>,
}

/// Largest clusters of a result that is sorted by cluster, the kept row first.
pub struct Largest {
    limits: Limits,
    /// Smallest cluster on top. The last one on top if several have this size.
    heap: BinaryHeap<Reverse<(u64, Reverse<u64>)>>,
    kept: HashMap<u64, FoundCluster>,
    /// Number of the current cluster, and the cluster if it is among the largest so far.
    number: u64,
    open: Option<OpenCluster>,
}

struct OpenCluster {
    size: u64,
    kept: Tid,
    widest: f64,
    /// Farthest other rows, the nearest on top. The last one on top if several have this distance.
    others: BinaryHeap<Reverse<(u64, Reverse<u64>, Tid)>>,
    seen: u64,
}

impl Largest {
    pub fn new(limits: Limits) -> Self {
        Largest {
            limits,
            heap: BinaryHeap::new(),
            kept: HashMap::new(),
            number: 0,
            open: None,
        }
    }

    pub fn add(&mut self, row: &ClusterRow) {
        if !row.goes() {
            self.close();
            self.number += 1;
            let is_full = self.heap.len() as u64 >= self.limits.clusters;
            let least = self.heap.peek().map_or(0, |Reverse((size, _))| *size);
            if !is_full || row.size > least {
                self.open = (self.limits.clusters > 0).then(|| OpenCluster::new(row));
            }
        } else if let Some(open) = &mut self.open {
            open.add(row, self.limits.members as usize - 1);
        }
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        self.heap.push(Reverse((open.size, Reverse(self.number))));
        self.kept.insert(self.number, open.into_cluster());
        if self.heap.len() as u64 > self.limits.clusters
            && let Some(Reverse((_, Reverse(number)))) = self.heap.pop()
        {
            self.kept.remove(&number);
        }
    }

    /// Returns the clusters, the largest first. Clusters of equal size keep their order.
    pub fn into_clusters(mut self) -> Vec<FoundCluster> {
        self.close();
        let mut clusters: Vec<(u64, FoundCluster)> = self.kept.into_iter().collect();
        clusters.sort_unstable_by_key(|(number, cluster)| (Reverse(cluster.size), *number));
        clusters.into_iter().map(|(_, cluster)| cluster).collect()
    }
}

impl OpenCluster {
    fn new(kept: &ClusterRow) -> Self {
        OpenCluster {
            size: kept.size,
            kept: kept.member,
            widest: 0.0,
            others: BinaryHeap::new(),
            seen: 0,
        }
    }

    fn add(&mut self, row: &ClusterRow, most: usize) {
        self.widest = self.widest.max(row.distance);
        self.seen += 1;
        // The bits of non-negative floats have the same order as the floats.
        let key = (row.distance.to_bits(), Reverse(self.seen), row.member);
        self.others.push(Reverse(key));
        if self.others.len() > most {
            self.others.pop();
        }
    }

    fn into_cluster(self) -> FoundCluster {
        let row = |row, distance| ListedRow {
            row,
            distance,
            goes_at: Vec::new(),
        };
        let mut others: Vec<_> = self.others.into_iter().map(|Reverse(one)| one).collect();
        others.sort_unstable_by_key(|(distance, Reverse(seen), _)| (*distance, *seen));
        let others = others
            .into_iter()
            .map(|(distance, _, tid)| row(tid, f64::from_bits(distance)));
        FoundCluster {
            size: self.size,
            widest: self.widest,
            rows: [row(self.kept, 0.0)].into_iter().chain(others).collect(),
        }
    }
}
