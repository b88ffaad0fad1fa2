//! Figures for people.

/// A whole number with a comma between thousands.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Milliseconds: three significant digits below a hundred, whole above.
#[must_use]
pub fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.2}"),
        ms if ms < 100.0 => format!("{ms:.1}"),
        ms => thousands(ms.round() as u64),
    }
}

/// A row of bars, one a value, each in eighths of the largest.
#[must_use]
pub fn sparkline(values: impl IntoIterator<Item = f64>) -> String {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let values: Vec<f64> = values.into_iter().collect();
    let largest = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let bar = |value: f64| BARS[((value / largest * 8.0).round() as usize).min(8)];
    values.into_iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::{milliseconds, sparkline, thousands};

    #[test]
    fn figures_read_well() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(milliseconds(1.234), "1.23");
        assert_eq!(milliseconds(12.34), "12.3");
        assert_eq!(milliseconds(1_234.5), "1,235");
        assert_eq!(sparkline([0.0, 1.0, 2.0]), " ▄█");
        assert_eq!(sparkline([0.0, 0.0]), "  ");
    }
}
