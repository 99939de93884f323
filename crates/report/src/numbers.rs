//! Formats counts, sizes, shares and distances for the report page.
use crate::data::Measure;

/// Returns a count with commas between thousands, such as `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Returns the count `n` followed by a noun: `one`, the singular, if `n` is 1, and otherwise
/// `many`, the plural.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// Returns a number of bytes as a size in decimal units, such as `1.9 kB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return counted(bytes, "byte", "bytes");
    }
    let (mut value, mut unit) = (bytes as f64 / 1000.0, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if value < 9.95 { 1 } else { 0 };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// Returns `part / whole` in percent. The result is `0 %` only if `part` is 0, and `100 %` only if
/// it is `whole`.
pub fn percent(part: u64, whole: u64) -> String {
    let share = 100.0 * part as f64 / whole.max(1) as f64;
    match share {
        _ if part == 0 => "0 %".to_owned(),
        share if share < 0.1 => "less than 0.1 %".to_owned(),
        share if share < 10.0 => format!("{share:.1} %"),
        share if share > 99.0 && part < whole => "more than 99 %".to_owned(),
        share => format!("{share:.0} %"),
    }
}

/// Returns the similarity that a distance corresponds to, from 0 to 1, or `None` if the distance
/// does not estimate a similarity.
fn similarity(measure: Measure, distance: f64) -> Option<f64> {
    match measure {
        Measure::Bits(_) => None,
        Measure::Estimated(bits) => Some((1.0 - 2.0 * distance / f64::from(bits)).max(0.0)),
        Measure::Signatures => Some(1.0 - distance),
    }
}

/// Returns a distance as a number without a unit. If `measure` estimates a similarity, the number
/// is the similarity in percent. Otherwise it is the distance in bits.
pub fn distance(measure: Measure, distance: f64) -> String {
    let Some(similarity) = similarity(measure, distance) else {
        return format!("{distance:.0}");
    };
    let digits = match measure {
        // The similarities of two successive distances differ by at least 1.5 percent, so no
        // fraction is needed to tell them apart.
        Measure::Estimated(..=128) => 0,
        _ => 1,
    };
    let shown = format!("{:.digits$}", 100.0 * similarity);
    match shown.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => shown,
    }
}

/// Returns a distance with its unit. If `measure` estimates a similarity, this is the similarity in
/// percent. Otherwise it is the distance in bits.
pub fn short_distance(measure: Measure, value: f64) -> String {
    let shown = distance(measure, value);
    match measure {
        Measure::Bits(_) => bits(value),
        Measure::Estimated(_) | Measure::Signatures => format!("{shown} %"),
    }
}

/// Returns a distance in bits with the unit, such as `6 bits`.
pub fn bits(value: f64) -> String {
    let unit = if value == 1.0 { "bit" } else { "bits" };
    format!("{value:.0} {unit}")
}

/// Returns one or two table cells that show a distance: the number of bits for [`Measure::Bits`],
/// the similarity for [`Measure::Signatures`], and both for [`Measure::Estimated`].
pub fn distance_cells(measure: Measure, value: f64) -> String {
    let shown = match measure {
        Measure::Bits(_) => distance(measure, value),
        Measure::Estimated(_) | Measure::Signatures => short_distance(measure, value),
    };
    match measure {
        Measure::Estimated(_) => format!("<th scope=\"row\">{shown}</th><td>{value:.0}</td>"),
        Measure::Bits(_) | Measure::Signatures => format!("<th scope=\"row\">{shown}</th>"),
    }
}

/// Returns a distance for use in a sentence, such as `81 % (6 bits)`.
pub fn distance_with_unit(measure: Measure, value: f64) -> String {
    let shown = short_distance(measure, value);
    match measure {
        Measure::Bits(_) => shown,
        Measure::Estimated(_) => format!("{shown} ({})", bits(value)),
        Measure::Signatures => format!("similarity {shown}"),
    }
}

/// Returns a phrase for the pairs within a distance, such as `within 3 bits` or `at similarity 80 %
/// or more`.
pub fn within(measure: Measure, value: f64) -> String {
    let shown = short_distance(measure, value);
    match measure {
        Measure::Bits(_) => format!("within {shown}"),
        Measure::Estimated(_) => {
            format!("at similarity {shown} or more (within {})", bits(value))
        }
        Measure::Signatures => format!("at similarity {shown} or more"),
    }
}

/// Returns a number of pairs, with its margin of error if it is an estimate (`margin` is not 0).
pub fn estimate(pairs: u64, margin: u64) -> String {
    match (pairs, margin) {
        (pairs, 0) => count(pairs),
        (0, margin) => format!("at most about {}", count(margin)),
        (pairs, margin) => format!("\u{2248} {} \u{b1} {}", count(pairs), count(margin)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_sizes() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(size(1), "1 byte");
        assert_eq!(size(1_949), "1.9 kB");
        assert_eq!(size(999_600), "1.0 MB");
        assert_eq!(size(u64::MAX), "18446744 TB");
    }

    #[test]
    fn percentages_do_not_round_to_none_or_all() {
        assert_eq!(percent(0, 0), "0 %");
        assert_eq!(percent(1, 100_000), "less than 0.1 %");
        assert_eq!(percent(1, 40), "2.5 %");
        assert_eq!(percent(999, 1000), "more than 99 %");
        assert_eq!(percent(5, 5), "100 %");
    }

    #[test]
    fn distances() {
        assert_eq!(distance_with_unit(Measure::Bits(64), 1.0), "1 bit");
        assert_eq!(distance_with_unit(Measure::Bits(64), 6.0), "6 bits");
        assert_eq!(distance(Measure::Signatures, 0.2), "80");
        assert_eq!(distance(Measure::Signatures, 0.0), "100");
        assert_eq!(distance(Measure::Signatures, 1.0), "0");
        assert_eq!(distance(Measure::Signatures, 0.0546875), "94.5");
        let estimated = Measure::Estimated(64);
        assert_eq!(distance_with_unit(estimated, 6.0), "81 % (6 bits)");
        assert_eq!(
            within(estimated, 1.0),
            "at similarity 97 % or more (within 1 bit)"
        );
        assert_eq!(distance(estimated, 40.0), "0");
    }

    #[test]
    fn estimates_have_a_margin() {
        assert_eq!(estimate(3_188, 0), "3,188");
        assert_eq!(estimate(1_800, 950), "\u{2248} 1,800 \u{b1} 950");
        assert_eq!(estimate(0, 45), "at most about 45");
    }
}
