//! Totals of the clusters at one radius of a report, and the selection of the largest clusters. A
//! report is an HTML page. For each cluster it shows the kept row (the representative), and the
//! rows to remove (all others).
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use neardup_blocktree::key::Tid;
use neardup_report::data::Limits;

use neardup_pg::value::Value;

/// Totals of the clusters at one radius.
#[derive(Default)]
pub struct Totals {
    /// Number of clusters.
    pub clusters: u64,
    /// Number of rows to remove: all rows of clusters except the representatives.
    pub copies: u64,
    /// Size of the texts of the rows to remove, in bytes.
    pub bytes: u64,
}

/// Row of the result of `neardup_clusters`: a member of a cluster, with the size of its text.
pub struct ClusterRow {
    pub member: Tid,
    pub representative: Tid,
    /// Number of rows of the cluster.
    pub size: u64,
    /// Distance of the member from its representative: a number of bits or, for signatures, 1 minus
    /// the similarity.
    pub distance: f64,
    /// Size of the member's text in bytes. 0 if the text is NULL.
    pub bytes: u64,
}

impl ClusterRow {
    /// Converts a row of the report's query for clusters. Its columns are in the order of the
    /// fields. The last column, the size of the text, may be NULL. Returns `None` if another column
    /// is NULL.
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

    /// Returns whether the row would be removed, because it is not the representative of its
    /// cluster.
    pub fn goes(&self) -> bool {
        self.member != self.representative
    }
}

impl Totals {
    /// Adds a row of a cluster to the totals.
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

/// One of the largest clusters, with the rows that the page lists.
pub struct FoundCluster {
    /// Number of rows of the cluster.
    pub size: u64,
    /// Maximum distance of a row of the cluster from the kept row.
    pub widest: f64,
    /// The kept row, then the rows with the largest distances from it, in ascending order of
    /// distance.
    pub rows: Vec<ListedRow>,
}

/// Row of a [`FoundCluster`].
pub struct ListedRow {
    /// Address of the row.
    pub row: Tid,
    /// Distance from the kept row.
    pub distance: f64,
    /// Radii at which the row would be removed, as positions in the report's list of radii.
    pub removed_at: Vec<usize>,
}

/// Selects the largest clusters from the result of `neardup_clusters`, whose rows are added one by
/// one. The rows are sorted by cluster, with the kept row of each cluster first. Clusters are
/// numbered from 1 in this order.
pub struct Largest {
    limits: Limits,
    /// Size and number of each of the largest clusters so far. The top is the cluster that is
    /// dropped when there are too many: the smallest one. Of several clusters with this size, the
    /// one with the highest number is on top.
    heap: BinaryHeap<Reverse<(u64, Reverse<u64>)>>,
    /// The largest clusters so far, by number.
    kept: HashMap<u64, FoundCluster>,
    /// Number of the cluster whose rows are being added, from 1.
    number: u64,
    /// The cluster whose rows are being added. `None` if it is not among the largest so far.
    open: Option<OpenCluster>,
}

/// Cluster whose rows are being added.
struct OpenCluster {
    size: u64,
    kept: Tid,
    widest: f64,
    /// Rows with the largest distances from the kept row so far. The top is the row that is dropped
    /// when there are too many: the one with the smallest distance. Of several rows with this
    /// distance, the row that was added last is on top.
    others: BinaryHeap<Reverse<(u64, Reverse<u64>, Tid)>>,
    /// Number of rows added after the kept row.
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

    /// Adds the next row of the result.
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

    /// Returns the selected clusters, the largest first. Clusters of equal size are in the
    /// order in which they were added.
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

    /// Adds a row other than the kept row. Keeps only the `most` rows with the largest distances.
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
            removed_at: Vec::new(),
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
