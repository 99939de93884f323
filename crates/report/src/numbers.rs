//! Numbers as people read them.
use crate::data::Measure;

/// A count with commas between thousands.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut shown = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A count with its noun.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// A size in bytes, by thousands.
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

/// A share in percent; never 0 or 100 unless it is none or all.
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

/// A distance in bits or, for signatures, the similarity, without its unit.
pub fn distance(measure: Measure, distance: f64) -> String {
    match measure {
        Measure::Bits(_) => format!("{distance:.0}"),
        Measure::Signatures => {
            let shown = format!("{:.3}", 1.0 - distance);
            let shown = shown.trim_end_matches('0').trim_end_matches('.');
            shown.to_owned()
        }
    }
}

/// The same as in a sentence.
pub fn distance_with_unit(measure: Measure, value: f64) -> String {
    let shown = distance(measure, value);
    match measure {
        Measure::Bits(_) if value == 1.0 => format!("{shown} bit"),
        Measure::Bits(_) => format!("{shown} bits"),
        Measure::Signatures => format!("similarity {shown}"),
    }
}

/// The pairs within a distance as in a sentence.
pub fn within(measure: Measure, value: f64) -> String {
    let shown = distance_with_unit(measure, value);
    match measure {
        Measure::Bits(_) => format!("within {shown}"),
        Measure::Signatures => format!("at {shown} or more"),
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
        assert_eq!(distance(Measure::Signatures, 0.2), "0.8");
        assert_eq!(distance(Measure::Signatures, 0.0), "1");
        assert_eq!(distance(Measure::Signatures, 1.0), "0");
        assert_eq!(distance(Measure::Signatures, 0.0546875), "0.945");
    }
}
