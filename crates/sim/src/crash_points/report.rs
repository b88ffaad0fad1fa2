//! Findings of a search through the crash points.

use crate::oracles::Violation;
use std::collections::BTreeMap;

/// Result of a search, with its coverage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Boundaries of the recorded run, and failures of its disks.
    pub points: u64,
    /// Number of boundaries by the step before them.
    pub steps: BTreeMap<&'static str, u64>,
    /// Number of cases looked at, by kind.
    pub cases: BTreeMap<&'static str, u64>,
    /// Cases in which something is wrong, by point; the search ends soon after the first.
    pub broken: Vec<Broken>,
}

/// A case in which something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Number of the crash point.
    pub point: u64,
    /// Step of the subject just before it.
    pub after: &'static str,
    /// Way in which it crashed.
    pub mode: String,
    /// Property that was broken.
    pub violation: Violation,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { point, after, mode, violation } = self;
        let Violation { oracle, text } = violation;
        write!(f, "point {point}, after \"{after}\", crashed \"{mode}\": {oracle}: {text}")
    }
}
