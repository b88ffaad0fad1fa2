//! Goals of rows, and whether they are met.

use super::figures::{self, Figure};
use crate::experiment::metrics;
use quorate_report::text::thousands;
use serde::{Deserialize, Serialize};

/// Name of the number that a row beside another has: its rate over the other's.
pub(super) const RATIO: &str = "ratio";
/// And its goodput over the other's rate.
pub(super) const GOODPUT_RATIO: &str = "goodput_ratio";
/// Both: a row that stands beside none has neither.
pub(super) const RATIOS: [&str; 2] = [RATIO, GOODPUT_RATIO];

/// Value that a number of a row should reach, or keep to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Name of the number, one of [`metrics::METRICS`].
    pub metric: String,
    /// Value to reach or to keep to.
    #[serde(flatten)]
    pub limit: Limit,
}

/// Side of a value that is good.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// This much or more.
    AtLeast(f64),
    /// This much or less.
    AtMost(f64),
}

/// A goal beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// What is wanted of the number.
    #[serde(flatten)]
    pub goal: Goal,
    /// The number; absent where it was not measured.
    pub measured: Option<f64>,
    /// `true` if it is met; absent where nothing was measured.
    pub met: Option<bool>,
}

impl Goal {
    /// The goal beside a number.
    pub(super) fn judge(&self, measured: Option<f64>) -> Judged {
        let met = measured.map(|number| match self.limit {
            Limit::AtLeast(least) => number >= least,
            Limit::AtMost(most) => number <= most,
        });
        Judged { goal: self.clone(), measured, met }
    }
}

impl Judged {
    /// The goal in a few words, and whether it is met; `beside` is the row that a ratio is to.
    pub(super) fn describe(&self, beside: Option<&str>) -> String {
        let verdict = match self.met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "not measured",
        };
        let (sign, value) = match self.goal.limit {
            Limit::AtLeast(least) => ("≥", least),
            Limit::AtMost(most) => ("≤", most),
        };
        if let Some(Figure { short, unit, text, .. }) = figures::named(&self.goal.metric) {
            let value = text(value);
            let words = [*short, sign, &value, *unit, verdict];
            return words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        }
        // Numbers without a column are said here.
        let measured = self.measured.map_or(String::new(), |value| format!(" ({})", number(value)));
        let value = if value >= 1_000.0 { number(value) } else { value.to_string() };
        match (self.goal.metric.as_str(), beside) {
            (RATIO, Some(row)) => return format!("{sign} {value} of {row} {verdict}{measured}"),
            (GOODPUT_RATIO, Some(row)) => {
                return format!("goodput {sign} {value} of {row} {verdict}{measured}");
            }
            _ => {}
        }
        let metric = metrics::find(&self.goal.metric);
        let name = metric.map_or(self.goal.metric.clone(), metrics::label);
        format!("{name} {sign} {value} {verdict}{measured}")
    }
}

/// A number as text, with two places where it is small and not whole.
fn number(value: f64) -> String {
    if value >= 100.0 || value.fract() == 0.0 {
        return thousands(value.round() as u64);
    }
    format!("{value:.2}")
}
