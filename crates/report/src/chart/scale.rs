//! Axes: from values to positions, and where the ticks are.

use crate::text::thousands;

/// Mapping of values to positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Evenly, in proportion to values.
    Linear,
    /// By their logarithm. Values at or below zero lie on the lower edge.
    Log,
    /// Shares from 0 to 1, by the logarithm of what is left to 1: 90 %, 99 % and 99.9 % are evenly
    /// spaced.
    Tail,
}

/// One axis of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Quantity on the axis, with its unit.
    pub label: String,
    /// The unit alone, for readouts.
    pub unit: &'static str,
    /// Mapping of values to positions.
    pub kind: Kind,
    /// The least value shown.
    pub low: f64,
    /// The greatest value shown.
    pub high: f64,
}

impl Axis {
    /// An axis that shows exactly from `low` to `high`.
    #[must_use]
    pub fn exact(label: &str, unit: &'static str, kind: Kind, low: f64, high: f64) -> Self {
        let ordered = low.is_finite() && high.is_finite() && low < high;
        let (low, high) = if ordered { (low, high) } else { (0.0, 1.0) };
        let low = if kind == Kind::Log { low.max(high * 1e-9).max(1e-9) } else { low };
        Self { label: label.to_owned(), unit, kind, low, high }
    }

    /// A linear axis from zero that holds all of `values` with a little room above.
    #[must_use]
    pub fn from_zero(label: &str, unit: &'static str, values: impl Iterator<Item = f64>) -> Self {
        let highest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let high = if highest > 0.0 { highest * 1.06 } else { 1.0 };
        Self::exact(label, unit, Kind::Linear, 0.0, high)
    }

    /// A logarithmic axis that holds all positive `values`, and at least a factor of ten.
    #[must_use]
    pub fn log(label: &str, unit: &'static str, values: impl Iterator<Item = f64>) -> Self {
        let usable = values.filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) =
            usable.fold((f64::MAX, 0.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
        if high <= 0.0 {
            return Self::exact(label, unit, Kind::Log, 1.0, 100.0);
        }
        let (low, high) = (low / 1.15, high * 1.15);
        let missing = (10.0 * low / high).max(1.0).sqrt();
        Self::exact(label, unit, Kind::Log, low / missing, high * missing)
    }

    /// Position of a value: 0 at the low end, 1 at the high end, held in between.
    #[must_use]
    pub fn share(&self, value: f64) -> f64 {
        let (low, high, at) = (self.warp(self.low), self.warp(self.high), self.warp(value));
        let share = (at - low) / (high - low);
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    fn warp(&self, value: f64) -> f64 {
        match self.kind {
            Kind::Linear => value,
            Kind::Log => value.max(self.low).log10(),
            Kind::Tail => -(1.0 - value.clamp(0.0, 1.0 - 1e-9)).log10(),
        }
    }

    /// Values worth a line, with their texts; at most about `count`.
    #[must_use]
    pub fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        match self.kind {
            Kind::Linear => self.linear_ticks(count.max(1)),
            Kind::Log => self.log_ticks(count.max(2)),
            Kind::Tail => self.tail_ticks(),
        }
    }

    fn linear_ticks(&self, count: usize) -> Vec<(f64, String)> {
        let rough = (self.high - self.low) / count as f64;
        let power = 10_f64.powf(rough.log10().floor());
        let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= rough);
        let step = factor.unwrap_or(10.0) * power;
        let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
        let (first, last) = ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
        let tick = |index: i64| {
            let value = index as f64 * step;
            (value, number(value, decimals))
        };
        (first..=last).map(tick).collect()
    }

    fn log_ticks(&self, count: usize) -> Vec<(f64, String)> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let with = |factors: &[f64]| -> Vec<f64> {
            let all = decades.clone().flat_map(|d| factors.iter().map(move |f| f * 10_f64.powi(d)));
            all.filter(|value| (self.low..=self.high).contains(value)).collect()
        };
        let choices = [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]];
        let fitting = choices.iter().map(|factors| with(factors)).find(|v| v.len() <= count);
        let values = fitting.unwrap_or_else(|| with(&[1.0]));
        let text = |value: f64| {
            let decimals = (-value.log10().floor()).clamp(0.0, 6.0) as usize;
            (value, number(value, decimals))
        };
        values.into_iter().map(text).collect()
    }

    fn tail_ticks(&self) -> Vec<(f64, String)> {
        let ticks = [
            (0.0, "0 %"),
            (0.5, "50 %"),
            (0.9, "90 %"),
            (0.99, "99 %"),
            (0.999, "99.9 %"),
            (0.9999, "99.99 %"),
            (0.99999, "99.999 %"),
            (0.999999, "99.9999 %"),
        ];
        let shown = ticks.into_iter().filter(|tick| (self.low..=self.high).contains(&tick.0));
        shown.map(|(value, text)| (value, text.to_owned())).collect()
    }
}

/// A number with thousands separated and so many decimals.
fn number(value: f64, decimals: usize) -> String {
    if decimals > 0 {
        return format!("{value:.decimals$}").replace('-', "−");
    }
    let sign = if value < -0.5 { "−" } else { "" };
    format!("{sign}{}", thousands(value.abs().round() as u64))
}

#[cfg(test)]
mod tests;
