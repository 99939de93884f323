//! Plain data of a report: everything on the page follows from it.

/// The most radii that a page can offer: its stylesheet has rules for as many.
pub const MOST_RADII: usize = 17;

/// Kind of distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Hamming distance of fingerprints with this number of bits.
    Bits(u32),
    /// The same, where the distance estimates the similarity of the texts.
    Estimated(u32),
    /// Share of the positions in which two signatures differ, from 0 to 1.
    Signatures,
}

/// Report on the near-duplicates of a table.
#[derive(Clone, Debug)]
pub struct Report {
    /// Title of the page.
    pub title: String,
    /// The table's name.
    pub table: String,
    /// The index's name.
    pub index: String,
    /// Time of the snapshot, as people read it.
    pub made_at: String,
    /// Kind of all distances.
    pub measure: Measure,
    /// Rows that were looked at.
    pub rows: u64,
    /// Bytes of their texts; `None` where no text is known.
    pub bytes: Option<u64>,
    /// Column, or expression, with the texts.
    pub body: Option<String>,
    /// Expression that names rows.
    pub key: String,
    /// Condition that rows had to meet.
    pub filter: Option<String>,
    /// Order that says which row of a group stays.
    pub keep: Option<String>,
    /// Results for each radius, from the least on: 1 to [`MOST_RADII`].
    pub radii: Vec<Radius>,
    /// Number of the radius that the page shows at first, counted from 0. The groups are those
    /// of this radius.
    pub chosen: usize,
    /// Pairs by distance.
    pub histogram: Histogram,
    /// The largest groups.
    pub groups: Vec<Group>,
    /// Limits that the page keeps within.
    pub limits: Limits,
}

impl Report {
    /// Results for the radius that the page shows at first. Panics without radii.
    pub fn chosen_radius(&self) -> &Radius {
        &self.radii[self.chosen]
    }
}

/// Results for one radius.
#[derive(Clone, Debug)]
pub struct Radius {
    /// The greatest distance of near-duplicates.
    pub distance: f64,
    /// Groups of two rows or more.
    pub groups: u64,
    /// Rows that would go if one of each group stayed.
    pub copies: u64,
    /// Bytes of the texts of these; `None` where no text is known.
    pub bytes: Option<u64>,
    /// Statement that removes them.
    pub statement: String,
}

/// Pairs by distance.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// From the least distance on.
    pub bars: Vec<Bar>,
    /// Rows that were compared with all for the bars that are estimates.
    pub sample_rows: u64,
}

impl Histogram {
    /// Returns whether the number of pairs of a bar is an estimate.
    pub fn has_estimates(&self) -> bool {
        self.bars.iter().any(|bar| bar.margin > 0)
    }

    /// The greatest distance up to which all pairs are counted. `None` if none are.
    pub fn counted_up_to(&self) -> Option<f64> {
        let counted = self.bars.iter().take_while(|bar| bar.margin == 0);
        counted.last().map(|bar| bar.distance)
    }

    /// Returns whether nearly all pairs of different values have an even distance.
    pub fn is_even(&self) -> bool {
        /// Least number of pairs that show it.
        const MIN_PAIRS: u64 = 20;
        /// Even distances have at least this many times the pairs of odd ones.
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
    /// The distance; of signatures the greatest of a range.
    pub distance: f64,
    /// Number of pairs.
    pub pairs: u64,
    /// Half of the 95 % confidence interval of that number. 0 if all pairs were counted.
    pub margin: u64,
}

/// Group of near-duplicates.
#[derive(Clone, Debug)]
pub struct Group {
    /// Rows in the group.
    pub size: u64,
    /// Greatest distance of a row from the one that is kept.
    pub widest: f64,
    /// The row that is kept, and others behind it: all, or as many as the limits allow.
    pub members: Vec<Member>,
}

/// Row of a group.
#[derive(Clone, Debug)]
pub struct Member {
    /// The row's name; `None` for NULL.
    pub key: Option<String>,
    /// Distance from the row that is kept.
    pub distance: f64,
    /// The numbers of the radii at which the row would go, counted from 0.
    pub goes_at: Vec<usize>,
    /// Its text.
    pub text: Text,
}

/// Text of a row.
#[derive(Clone, Debug)]
pub enum Text {
    /// The report has none: its column is not known, or the value is NULL.
    None,
    /// No room was left for it.
    LeftOut,
    /// Beginning of a text, or the whole.
    Some {
        /// The characters that are shown.
        shown: String,
        /// Bytes of the whole.
        bytes: u64,
        /// True if more follows.
        is_cut: bool,
        /// Digest of the whole: equal for equal texts.
        digest: String,
    },
}

/// Limits of a page.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most groups.
    pub groups: u64,
    /// The most rows of a group.
    pub members: u64,
    /// The most characters of a text.
    pub characters: u64,
}
