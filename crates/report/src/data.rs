//! Plain data of a report, from which the page is made. A cluster is a set of near-duplicate rows
//! at one radius, the maximum distance. One row of each cluster is kept, and the SQL on the page
//! removes the other rows.

/// Maximum number of radii on a page. The stylesheet has a fixed set of rules, one for each radius.
/// [`page`](crate::page()) panics if a report has more radii.
pub const MAX_RADII: usize = 17;

/// Kind of the distances between rows. It determines their unit, and whether they show the
/// similarity of the texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Hamming distance of fingerprints with this number of bits. It does not estimate a
    /// similarity.
    Bits(u32),
    /// Hamming distance of fingerprints with this number of bits, from which the similarity of the
    /// texts is estimated.
    Estimated(u32),
    /// Share of the positions in which two signatures differ, from 0 to 1.
    Signatures,
}

/// Report on the near-duplicates of a table.
#[derive(Clone, Debug)]
pub struct Report {
    /// Title of the page.
    pub title: String,
    /// Name of the table.
    pub table: String,
    /// Name of the index.
    pub index: String,
    /// Time of the snapshot of the table, in readable form.
    pub made_at: String,
    /// Kind of all distances in the report.
    pub measure: Measure,
    /// Number of rows that were examined.
    pub rows: u64,
    /// Number of bytes of the texts of all examined rows, or `None` if no text is known.
    pub bytes: Option<u64>,
    /// SQL expression of the texts, such as a column name, or `None` if it is not known.
    pub body: Option<String>,
    /// SQL expression whose value names a row on the page.
    pub key: String,
    /// SQL condition of the examined rows, or `None` if all rows of the table were examined.
    pub filter: Option<String>,
    /// SQL order of rows. The first row of a cluster in this order is kept. If `None`, the first
    /// row in the table is kept.
    pub keep: Option<String>,
    /// Results for each radius, in ascending order: 1 to [`MAX_RADII`] results.
    pub radii: Vec<Radius>,
    /// Index in `radii` of the radius that the page shows at first. The clusters belong to this
    /// radius.
    pub chosen: usize,
    /// Number of pairs of rows at each distance.
    pub histogram: Histogram,
    /// The largest clusters at the chosen radius, the largest first.
    pub clusters: Vec<Cluster>,
    /// Maximum numbers of clusters, rows and characters that the page shows.
    pub limits: Limits,
}

impl Report {
    /// Returns the results for the radius that the page shows at first. Panics if there is none.
    pub fn chosen_radius(&self) -> &Radius {
        &self.radii[self.chosen]
    }
}

/// Results for one radius: the clusters, and the rows that would be removed.
#[derive(Clone, Debug)]
pub struct Radius {
    /// Maximum distance of near-duplicates.
    pub value: f64,
    /// Number of clusters. Each cluster has at least two rows.
    pub clusters: u64,
    /// Number of rows that would be removed if one row of each cluster were kept.
    pub copies: u64,
    /// Number of bytes of the texts of the rows that would be removed, or `None` if no text is
    /// known.
    pub bytes: Option<u64>,
    /// SQL that removes all rows of each cluster but the kept row.
    pub statement: String,
}

/// Numbers of pairs of rows by their distance.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Bars in ascending order of distance.
    pub bars: Vec<Bar>,
    /// Number of sampled rows. For the bars that are estimates, these rows were compared with all
    /// rows.
    pub sample_rows: u64,
}

impl Histogram {
    /// Returns true if the number of pairs of at least one bar is an estimate.
    pub fn has_estimates(&self) -> bool {
        self.bars.iter().any(|bar| bar.margin > 0)
    }

    /// Returns the greatest distance such that the pairs at this distance and at all smaller
    /// distances were counted, not estimated. Returns `None` if the first bar is an estimate.
    pub fn counted_up_to(&self) -> Option<f64> {
        let counted = self.bars.iter().take_while(|bar| bar.margin == 0);
        counted.last().map(|bar| bar.distance)
    }

    /// Returns true if nearly all pairs of different values have an even distance. That is so for
    /// perceptual hashes that have exactly half of their bits set: the distance between two such
    /// hashes is always even.
    pub fn is_even(&self) -> bool {
        /// Minimum number of pairs with even distances. With fewer pairs, the result is false.
        const MIN_PAIRS: u64 = 20;
        /// Minimum ratio of the pairs with even distances to the pairs with odd distances. Below
        /// it, the result is false.
        const RATIO: u64 = 20;
        let pairs = |odd| {
            let bars = self.bars.iter().skip(1);
            let bars = bars.filter(|bar| (bar.distance as u64 % 2 == 1) == odd);
            bars.map(|bar| bar.pairs).sum::<u64>()
        };
        let (odd, even) = (pairs(true), pairs(false));
        even >= MIN_PAIRS && even / RATIO >= odd
    }
}

/// Pairs of rows at one distance: a bar of the histogram.
#[derive(Clone, Copy, Debug)]
pub struct Bar {
    /// Distance of the pairs. For signatures, the maximum of the range of distances that the bar
    /// covers.
    pub distance: f64,
    /// Number of pairs at this distance.
    pub pairs: u64,
    /// Half of the width of the 95 % confidence interval of `pairs`, or 0 if all pairs were
    /// counted.
    pub margin: u64,
}

/// Cluster of near-duplicates.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Number of rows in the cluster.
    pub size: u64,
    /// Maximum distance between the kept row and another row of the cluster.
    pub widest: f64,
    /// The kept row first, then other rows of the cluster, as many as the limits allow.
    pub members: Vec<Member>,
}

/// Row of a cluster.
#[derive(Clone, Debug)]
pub struct Member {
    /// Name of the row: the value of [`Report::key`], or `None` if it is NULL.
    pub key: Option<String>,
    /// Distance between the row and the kept row of its cluster.
    pub distance: f64,
    /// Indexes in [`Report::radii`] of the radii at which the row would be removed.
    pub removed_at: Vec<usize>,
    /// Text of the row.
    pub text: Text,
}

/// Text of a row, as far as the page has it.
#[derive(Clone, Debug)]
pub enum Text {
    /// No text: the expression of the texts is not known, or the row's text is NULL.
    None,
    /// The row has a text, but the page has no room for it.
    LeftOut,
    /// The beginning of the row's text, or the whole text.
    Some {
        /// Characters of the text that the page may show.
        shown: String,
        /// Number of bytes of the whole text.
        bytes: u64,
        /// True if the text is longer than `shown`.
        is_cut: bool,
        /// Digest of the whole text. Equal texts have equal digests.
        digest: String,
    },
}

/// Maximum numbers of clusters, rows and characters that a page shows.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of clusters on the page.
    pub clusters: u64,
    /// Maximum number of rows of one cluster on the page.
    pub members: u64,
    /// Maximum number of characters of a row's text that the page shows and compares. The rest of a
    /// longer text is cut.
    pub characters: u64,
}
