//! Test fingerprints, the same in every run.

const CONSTANT: u64 = 0x0123_4567_89ab_cdef;

/// Pseudorandom numbers by SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): small, seeded, and stable.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }

    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize].clone()
    }

    /// Returns a value at most `distance` bits away from `center`.
    pub fn near(&mut self, center: u64, distance: u64) -> u64 {
        let flips = self.below(distance + 1);
        (0..flips).fold(center, |value, _| value ^ (1 << self.below(64)))
    }
}

/// Distribution of fingerprints. Each is hard for an index in a different way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Uniform, with every tenth row near the one before it.
    Uniform,
    /// Only 37 distinct values.
    FewValues,
    /// 12 centres, each with many rows within 10 bits.
    Balls,
    /// The first 40 bits are alike in all rows: the keys of some permutations begin alike.
    LeadingAlike,
    /// The last 40 bits are alike in all rows: the keys of other permutations begin alike.
    TrailingAlike,
    /// Consecutive small numbers.
    Counting,
    /// One value in all rows, so that only row addresses distinguish the entries of leaves.
    Equal,
}

impl Shape {
    pub const ALL: [Shape; 7] = [
        Shape::Uniform,
        Shape::FewValues,
        Shape::Balls,
        Shape::LeadingAlike,
        Shape::TrailingAlike,
        Shape::Counting,
        Shape::Equal,
    ];

    /// Returns a value with many rows around it, if the shape has one.
    pub fn center(self, seed: u64) -> u64 {
        match self {
            Shape::FewValues | Shape::Balls => Random::new(seed).bits(),
            _ => CONSTANT,
        }
    }

    /// Returns `rows` values, in the order of the rows; about one in 16 is NULL.
    pub fn values(self, rows: usize, seed: u64) -> Vec<Option<u64>> {
        let mut random = Random::new(seed);
        let centers: Vec<u64> = (0..37).map(|_| random.bits()).collect();
        let mut values: Vec<Option<u64>> = Vec::with_capacity(rows);
        for row in 0..rows {
            let value = match self {
                Shape::Uniform => match values.last() {
                    Some(&Some(last)) if row % 10 == 0 => random.near(last, 12),
                    _ => random.bits(),
                },
                Shape::FewValues => random.pick(&centers),
                Shape::Balls => {
                    let center = random.pick(&centers[..12]);
                    random.near(center, 10)
                }
                Shape::LeadingAlike => CONSTANT & !0xff_ffff | random.below(1 << 24),
                Shape::TrailingAlike => CONSTANT >> 24 | random.bits() << 40,
                Shape::Counting => row as u64,
                Shape::Equal => CONSTANT,
            };
            values.push((random.below(16) != 0).then_some(value));
        }
        values
    }
}

/// A probe: all rows within a radius of a centre.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    pub center: u64,
    /// Radius in bits. A negative radius contains nothing.
    pub radius: i32,
}

/// Returns one probe for each radius. Half of the centres are near the value of a row, a quarter
/// equal the value of a row, and a quarter are random.
pub fn probes(values: &[Option<u64>], radii: &[i32], seed: u64) -> Vec<Probe> {
    let mut random = Random::new(seed);
    let known: Vec<u64> = values.iter().copied().flatten().collect();
    let probe = |(i, &radius): (usize, &i32)| {
        let center = match i % 4 {
            0 if !known.is_empty() => random.pick(&known),
            1 | 2 if !known.is_empty() => {
                let known = random.pick(&known);
                random.near(known, u64::from(radius.clamp(0, 8) as u32))
            }
            _ => random.bits(),
        };
        Probe { center, radius }
    };
    radii.iter().enumerate().map(probe).collect()
}

/// Radii at which behavior changes: guaranteed radii, radii that probe neighbouring buckets, radii
/// that read a whole permutation, and radii that contain nothing or everything.
pub const RADII: [i32; 20] = [
    -1,
    0,
    1,
    2,
    3,
    3,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    12,
    16,
    24,
    31,
    64,
    i32::MAX,
];
