//! `neardup_explain`: comparison of two texts by their features, as JSON, which shows why their
//! fingerprints or signatures differ.
mod report;

use std::io;

use neardup_sketch::memory::GrowVec;
use neardup_sketch::minhash::matches;
use neardup_sketch::options::NamedOption;
use neardup_sketch::{BitsOf, FeatureDiff, Sketcher, TextOptions};
use pgrx::pg_sys::Datum;

use super::html::visible_text;
use super::minhash::default_family;
use super::text_options;
use neardup_pg::errors::UserError;
use neardup_pg::fmgr::{Call, export};
use neardup_pg::jsonb::jsonb;
use neardup_pg::memory::check_interrupts;
use report::{Compared, Number, Report};

/// Function whose results for two texts `neardup_explain` compares.
#[derive(Clone, Copy, PartialEq)]
enum Explained {
    Simhash,
    Simhash128,
    Minhash64,
    Minhash128,
    /// The function that returns MinHash signatures.
    Minhash,
}

impl NamedOption for Explained {
    const PARAMETER: &str = "function";
    const NAMES: &[(&str, Self)] = &[
        ("simhash", Self::Simhash),
        ("simhash128", Self::Simhash128),
        ("minhash64", Self::Minhash64),
        ("minhash128", Self::Minhash128),
        ("minhash", Self::Minhash),
    ];
}

/// Position of the argument `weight` of `neardup_explain`.
const WEIGHT: usize = 4;
/// Positions of the arguments `shingle` and `weight`. If one of them is NULL, it gets the default
/// value of the explained function.
const OPTIONAL: [usize; 2] = [3, WEIGHT];

/// `neardup_explain(a, b, options, top, function)`: compares the features of the texts `a` and `b`,
/// and returns the result as jsonb. Among the options, `shingle` and `weight` may be NULL. If any
/// other argument is NULL, the result is NULL.
fn explain(call: &mut Call) -> Datum {
    if (0..call.arg_count()).any(|n| call.is_null(n) && !OPTIONAL.contains(&n)) {
        return call.return_null();
    }
    let [a, b] = [0, 1].map(|n| call.utf8(n));
    let function: Explained = text_options::named(call, 9);
    let options = text_options::with_defaults(call, 2, function.defaults(call));
    let top = call.int4(8);
    let Ok(top) = usize::try_from(top) else {
        UserError::invalid_parameter("\"top\" must not be negative")
            .detail(format!("The value is {top}."))
            .hint(
                "Pass the maximum number of features in each list. The value 0 returns empty \
                 lists.",
            )
            .raise()
    };
    let compared = function.compare(&a, &b, options);
    let diff = FeatureDiff::new(
        &a,
        &b,
        &options,
        top,
        function.bits(),
        &mut check_interrupts,
    );
    let mut json = JsonBuffer::default();
    let texts = [0, 1].map(|n| visible_text(call, n, options.html));
    let report = Report::new(function.name(), &options, compared, &diff, &texts);
    serde_json::to_writer(&mut json, &report)
        .expect("a report has string keys only, and writing to memory cannot fail");
    jsonb(String::from_utf8(json.bytes).expect("JSON is UTF-8"))
}

impl Explained {
    /// Returns the default options of the function. Raises an error if the caller gave a weight,
    /// but the function has none.
    fn defaults(self, call: &Call) -> TextOptions {
        match self {
            Self::Simhash | Self::Simhash128 => TextOptions::SIMHASH,
            Self::Minhash64 | Self::Minhash128 | Self::Minhash => {
                if !call.is_null(WEIGHT) {
                    UserError::invalid_parameter(format!("{} does not use weights", self.name()))
                        .detail("The function uses only the set of features.")
                        .hint("Omit \"weight\", or pass function => 'simhash', which uses weights.")
                        .raise();
                }
                TextOptions::SET
            }
        }
    }

    /// Returns the kind of the function's fingerprints, or `None` for signatures. The report needs
    /// it to show how many bits of the fingerprint each change of the text flips.
    fn bits(self) -> Option<BitsOf> {
        match self {
            Self::Simhash => Some(BitsOf::Simhash64),
            Self::Simhash128 => Some(BitsOf::Simhash128),
            Self::Minhash64 => Some(BitsOf::Minhash64),
            Self::Minhash128 => Some(BitsOf::Minhash128),
            Self::Minhash => None,
        }
    }

    /// Computes the fingerprints or signatures of both texts and their distance.
    fn compare(self, a: &str, b: &str, options: TextOptions) -> Compared {
        let check = &mut check_interrupts;
        Sketcher::with_thread_local(options, |sketcher| match self {
            Self::Simhash => {
                let each = [a, b].map(|text| sketcher.simhash64(text, check));
                Compared::fingerprints(each.map(|bits| bits.map(u128::from)), 64, false)
            }
            Self::Minhash64 => {
                let each = [a, b].map(|text| sketcher.minhash64(text, check));
                Compared::fingerprints(each.map(|bits| bits.map(u128::from)), 64, true)
            }
            Self::Simhash128 => {
                let each = [a, b].map(|text| sketcher.simhash128(text, check));
                Compared::fingerprints(each, 128, false)
            }
            Self::Minhash128 => {
                let each = [a, b].map(|text| sketcher.minhash128(text, check));
                Compared::fingerprints(each, 128, true)
            }
            Self::Minhash => {
                let family = default_family();
                Compared::signatures([a, b].map(|text| sketcher.signature(text, &family, check)))
            }
        })
    }
}

impl Compared {
    /// Returns the comparison of two fingerprints of `bits` bits. `minima` is true for minhash
    /// fingerprints, whose distance estimates a similarity, and false for simhashes.
    fn fingerprints(each: [Option<u128>; 2], bits: u32, minima: bool) -> Self {
        let distance = match each {
            [Some(a), Some(b)] => Some((a ^ b).count_ones()),
            _ => None,
        };
        // If the minimum from which a bit is computed differs, the bit differs with probability one
        // half.
        let estimate = |distance: u32| 1.0 - 2.0 * f64::from(distance) / f64::from(bits);
        let digits = bits as usize / 4;
        Self {
            is_signature: false,
            has_weights: !minima,
            fingerprints: each.map(|bits| bits.map(|bits| format!("{bits:0digits$x}"))),
            distance: distance.map(|distance| Number::Double(distance.into())),
            estimate: distance
                .filter(|_| minima)
                .map(|distance| estimate(distance).max(0.0)),
        }
    }

    /// Returns the comparison of two signatures. If one is `None`, there is no distance.
    fn signatures(each: [Option<Vec<u32>>; 2]) -> Self {
        let similarity = match &each {
            [Some(a), Some(b)] => Some(matches(a, b) as f64 / a.len() as f64),
            _ => None,
        };
        Self {
            is_signature: true,
            has_weights: false,
            fingerprints: [None, None],
            distance: similarity.map(|similarity| Number::Double(1.0 - similarity)),
            estimate: similarity,
        }
    }
}

/// Number of bytes of JSON between two checks for interrupts.
const CHECK_BYTES: usize = 1 << 18;

/// Buffer for the JSON result. Raises error 53200 if memory runs out, and checks for interrupts.
#[derive(Default)]
struct JsonBuffer {
    bytes: Vec<u8>,
    /// Number of bytes written since the last check for interrupts.
    unchecked: usize,
}

impl io::Write for JsonBuffer {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.bytes.grow_by(part);
        self.unchecked += part.len();
        if self.unchecked >= CHECK_BYTES {
            self.unchecked = 0;
            check_interrupts();
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

export! {
    guarded "neardup_explain" => explain;
}
