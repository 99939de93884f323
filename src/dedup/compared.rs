//! Result of comparing two rows, as it is shown in pairs and clusters.

/// Result of comparing two rows.
#[derive(Clone, Copy)]
pub struct Compared {
    /// Number of bits in which the two fingerprints differ, or of positions in which the two
    /// signatures differ.
    pub differing: u32,
    /// Jaccard similarity of the two texts. `None` if the texts were not compared.
    pub similarity: Option<f64>,
}

impl Compared {
    /// Creates the result of comparing two fingerprints or signatures without their texts.
    pub fn estimated(differing: u32) -> Self {
        Compared {
            differing,
            similarity: None,
        }
    }
}
