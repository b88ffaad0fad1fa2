//! Mean and spread of repeats.

/// Mean and standard deviation of some repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Mean of the values.
    pub mean: f64,
    /// The sample's standard deviation, by n − 1; 0 of a single value.
    pub deviation: f64,
    /// Number of values, at least one.
    pub count: usize,
}

impl Spread {
    /// Of these values; `None` of nothing.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len();
        if count == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        Some(Self { mean, deviation, count })
    }

    /// The lowest of these values, in the mean's place; `None` of nothing.
    #[must_use]
    pub fn lowest(values: &[f64]) -> Option<Self> {
        let lowest = values.iter().copied().min_by(f64::total_cmp)?;
        Some(Self { mean: lowest, deviation: 0.0, count: values.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn the_lowest_stands_alone() {
        assert_eq!(Spread::lowest(&[]), None);
        let spread = Spread::lowest(&[2.2, 1.3, 1.4]).unwrap();
        assert_eq!(spread, Spread { mean: 1.3, deviation: 0.0, count: 3 });
    }

    #[test]
    fn the_spread_is_that_of_a_sample() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[5.0]), Some(Spread { mean: 5.0, deviation: 0.0, count: 1 }));
        let spread = Spread::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((spread.mean, spread.count), (5.0, 8));
        // Squares add up to 32, over n − 1 = 7.
        assert!((spread.deviation - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }
}
