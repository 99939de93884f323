//! Plain data of a report, from which the whole page is made.

/// Maximum number of radii on a page. The stylesheet has rules for this number.
pub const MOST_RADII: usize = 17;

/// Kind of distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Hamming distance of fingerprints with this number of bits.
    Bits(u32),
    /// Hamming distance that estimates the similarity of the texts, with this number of bits.
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
    /// Time of the snapshot, in readable form.
    pub made_at: String,
    /// Kind of all distances.
    pub measure: Measure,
    /// Number of rows that were examined.
    pub rows: u64,
    /// Bytes of the texts of these rows, or `None` if no text is known.
    pub bytes: Option<u64>,
    /// Column, or expression, with the texts.
    pub body: Option<String>,
    /// Expression that names rows.
    pub key: String,
    /// Condition that rows had to meet, if any.
    pub filter: Option<String>,
    /// Order that decides which row of a cluster is kept, if any.
    pub keep: Option<String>,
    /// Results for each radius, in ascending order: 1 to [`MOST_RADII`] results.
    pub radii: Vec<Radius>,
    /// Index of the radius that the page shows at first. The clusters belong to this radius.
    pub chosen: usize,
    /// Pairs by distance.
    pub histogram: Histogram,
    /// The largest clusters.
    pub clusters: Vec<Cluster>,
    /// Limits of the page.
    pub limits: Limits,
}

impl Report {
    /// Returns the results for the radius that the page shows at first. Panics without radii.
    pub fn chosen_radius(&self) -> &Radius {
        &self.radii[self.chosen]
    }
}

/// Results for one radius.
#[derive(Clone, Debug)]
pub struct Radius {
    /// Maximum distance of near-duplicates.
    pub value: f64,
    /// Number of clusters of two rows or more.
    pub clusters: u64,
    /// Number of rows that would be removed if one row of each cluster were kept.
    pub copies: u64,
    /// Bytes of the texts of these rows, or `None` if no text is known.
    pub bytes: Option<u64>,
    /// Statement that removes these rows.
    pub statement: String,
}

/// Pairs by distance.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Bars in ascending order of distance.
    pub bars: Vec<Bar>,
    /// Number of rows compared with all rows for the bars that are estimates.
    pub sample_rows: u64,
}

impl Histogram {
    /// Returns true if the number of pairs of a bar is an estimate.
    pub fn has_estimates(&self) -> bool {
        self.bars.iter().any(|bar| bar.margin > 0)
    }

    /// Returns the maximum distance up to which all pairs are counted, or `None` if no pairs are.
    pub fn counted_up_to(&self) -> Option<f64> {
        let counted = self.bars.iter().take_while(|bar| bar.margin == 0);
        counted.last().map(|bar| bar.distance)
    }

    /// Returns true if nearly all pairs of different values have an even distance.
    pub fn is_even(&self) -> bool {
        /// Minimum number of pairs to decide this.
        const MIN_PAIRS: u64 = 20;
        /// Minimum ratio of the pairs with even distances to those with odd distances.
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

/// Pairs at one distance.
#[derive(Clone, Copy, Debug)]
pub struct Bar {
    /// Distance. For signatures, the maximum of a range.
    pub distance: f64,
    /// Number of pairs.
    pub pairs: u64,
    /// Half of the 95 % confidence interval of the number of pairs. 0 if all pairs were counted.
    pub margin: u64,
}

/// Cluster of near-duplicates.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Number of rows in the cluster.
    pub size: u64,
    /// Maximum distance of a row from the kept row.
    pub widest: f64,
    /// The kept row, followed by the others, up to the limits.
    pub members: Vec<Member>,
}

/// Row of a cluster.
#[derive(Clone, Debug)]
pub struct Member {
    /// Name of the row, or `None` for NULL.
    pub key: Option<String>,
    /// Distance from the kept row.
    pub distance: f64,
    /// Indexes of the radii at which the row would be removed.
    pub goes_at: Vec<usize>,
    /// Text of the row.
    pub text: Text,
}

/// Text of a row.
#[derive(Clone, Debug)]
pub enum Text {
    /// No text: the column is not known, or the value is NULL.
    None,
    /// The text did not fit into the page.
    LeftOut,
    /// Start of a text, or the whole text.
    Some {
        /// The characters that are shown.
        shown: String,
        /// Bytes of the whole text.
        bytes: u64,
        /// True if the text is longer than `shown`.
        is_cut: bool,
        /// Digest of the whole text. Equal texts have equal digests.
        digest: String,
    },
}

/// Limits of a page.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of clusters.
    pub clusters: u64,
    /// Maximum number of rows of a cluster.
    pub members: u64,
    /// Maximum number of characters of a text.
    pub characters: u64,
}
