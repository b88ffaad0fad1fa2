//! Points of a comparison, each measured or taken from what was kept of it.

use super::search::{self, Knee};
use super::{Candidate, ComparisonSpec, Finding, Means};
use crate::experiment::results::Writer;
use crate::experiment::{Measured, Point, Record, RunError, RunnerKind, Setup, Shard};
use crate::side_by_side::side_by_side;
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Results of points measured before, by key; those of one key in the order of their measurement.
pub(super) type Known = BTreeMap<String, VecDeque<Record>>;

/// The knee of a candidate at a size.
pub(super) type SizedKnee = (u16, Candidate, Knee);

/// Measures the points of a comparison, and keeps their results.
pub(super) struct Bench<'a> {
    pub(super) spec: &'a ComparisonSpec,
    means: Means<'a>,
    /// The part of the comparison that is measured, if it is not the whole.
    shard: Option<Shard>,
    /// Results that need not be measured.
    known: Mutex<Known>,
    /// `true` if nothing else may be measured.
    only_known: bool,
    /// File for every result, where there is one.
    writer: Option<Mutex<Writer>>,
    records: Mutex<Vec<Record>>,
}

impl<'a> Bench<'a> {
    /// Measures all of a comparison.
    pub(super) fn new(spec: &'a ComparisonSpec, means: Means<'a>) -> Self {
        let (known, records) = (Mutex::default(), Mutex::default());
        Self { spec, means, shard: None, known, only_known: false, writer: None, records }
    }

    /// Measures a part of one, beyond what is known of it, and writes every result.
    pub(super) fn of_part(self, shard: Shard, known: Known, writer: Writer) -> Self {
        let (known, writer) = (Mutex::new(known), Some(Mutex::new(writer)));
        Self { shard: Some(shard), known, writer, ..self }
    }

    /// Searches with nothing but what is known.
    pub(super) fn of_known(self, known: Known) -> Self {
        Self { known: Mutex::new(known), only_known: true, ..self }
    }

    /// The searches are over. What is left of a comparison whose searches were done elsewhere may
    /// be measured here, unless it was known there already at what rate.
    pub(super) fn is_searched(&mut self) {
        self.only_known &= self.spec.rate.is_some();
    }

    /// A callback that counts up to so many steps.
    pub(super) fn steps(&self, steps: usize) -> impl Fn() + Sync + use<'a> {
        let (progress, done) = (self.means.progress, AtomicUsize::new(0));
        move || progress(done.fetch_add(1, Ordering::Relaxed) + 1, steps)
    }

    fn threads(&self) -> usize {
        if self.means.runner.is_parallel() { self.means.threads.max(1) } else { 1 }
    }

    /// The knees of some candidates at all sizes.
    pub(super) fn search(
        &self,
        candidates: &[Candidate],
        sizes: &[u16],
        step: &(dyn Fn() + Sync),
    ) -> Result<Vec<SizedKnee>, RunError> {
        let knees = side_by_side(candidates, self.threads(), |candidate| {
            self.knees(*candidate, sizes, step)
        })?;
        Ok(knees.into_iter().flatten().collect())
    }

    /// The knees of one candidate. What it takes at one size is where the search begins at the
    /// next.
    pub(super) fn knees(
        &self,
        candidate: Candidate,
        sizes: &[u16],
        step: &(dyn Fn() + Sync),
    ) -> Result<Vec<SizedKnee>, RunError> {
        let mut found: Vec<SizedKnee> = Vec::with_capacity(sizes.len());
        for &size in sizes {
            let near = found.last().map(|(_, _, knee)| knee.rate);
            let measure = |rate, give_up_ms| self.measure(size, candidate, (rate, give_up_ms));
            found.push((size, candidate, search::knee(self.spec.rate, near, measure)?));
            step();
        }
        Ok(found)
    }

    /// A look at each candidate whose knee is known, at the rate common to those of its size.
    pub(super) fn check(
        &self,
        knees: &[SizedKnee],
        step: &(dyn Fn() + Sync),
    ) -> Result<Vec<Finding>, RunError> {
        // The largest first, so that no core waits at the end for one that began late.
        let mut largest_first = knees.to_vec();
        largest_first.sort_by_key(|(size, ..)| Reverse(*size));
        side_by_side(&largest_first, self.threads(), |(size, candidate, knee)| {
            let found = self.finding(*size, *candidate, knee, common_rate(self.spec, knees, *size));
            step();
            found
        })
    }

    /// A point at a rate, given up when so many milliseconds of it are under way; `None` when
    /// nothing came of it.
    pub(super) fn measure(
        &self,
        validators: u16,
        candidate: Candidate,
        (rate, give_up_ms): (u64, u64),
    ) -> Result<Option<Measured>, RunError> {
        let mut setup = setup(self.spec, validators, candidate, rate);
        if setup.runner == RunnerKind::Simulated {
            setup.give_up_ms = give_up_ms;
        }
        let known = self.known.lock().get_mut(&setup.key()).and_then(VecDeque::pop_front);
        let record = match known {
            Some(record) => record,
            None if self.only_known => return Err(RunError::Failed("a point is missing".into())),
            None => self.measured(&setup)?,
        };
        let measured = record.failed.is_none().then(|| Measured {
            numbers: record.measured.clone(),
            signatures: record.signatures,
            details: record.details.clone(),
        });
        self.records.lock().push(record);
        Ok(measured)
    }

    /// The result of a point that is measured now.
    fn measured(&self, setup: &Setup) -> Result<Record, RunError> {
        if self.means.interrupted.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        let point = Point {
            experiment: "compare",
            preset: &self.spec.preset(),
            shard: self.shard,
            setup,
            machine: self.means.machine,
        };
        let record = point.measure(self.means.runner, self.means.interrupted)?;
        if let Some(writer) = &self.writer {
            writer.lock().add(&record).map_err(|error| RunError::Refused(error.to_string()))?;
        }
        Ok(record)
    }

    fn finding(
        &self,
        validators: u16,
        candidate: Candidate,
        knee: &Knee,
        common_rate: u64,
    ) -> Result<Finding, RunError> {
        let there = self.measure(validators, candidate, (common_rate, 0))?;
        let there = there.filter(|measured| search::kept_up(measured, common_rate, knee.idle_ms));
        let number = |name: &str| there.as_ref()?.numbers.get(name).copied();
        // A failed search still says how large a certificate is.
        Ok(Finding {
            validators,
            candidate,
            knee_tps: knee.committed_tps,
            kept_rate: knee.rate,
            limit_tps: knee.limit.as_ref().map(|(rate, _)| *rate as f64),
            bound: knee.limit.as_ref().map(|(_, bound)| bound.clone()),
            idle_ms: knee.idle_ms,
            common_rate,
            latency_ms: there.as_ref().and_then(|measured| search::latency(measured, "p50")),
            latency_p99_ms: there.as_ref().and_then(|measured| search::latency(measured, "p99")),
            cpu_share: number("busiest_share"),
            certificate_bytes: knee.certificate_bytes,
        })
    }

    /// All results, in an order that does not depend on which was there first: by size, candidate,
    /// and then as the search asked for them.
    pub(super) fn into_records(self) -> Vec<Record> {
        let mut records = self.records.into_inner();
        let candidate = |setup: &Setup| Candidate::of(setup);
        records.sort_by_key(|one| self.spec.place(one.setup.validators, candidate(&one.setup)));
        records
    }
}

impl Candidate {
    /// Candidate that a point is of.
    pub(super) fn of(setup: &Setup) -> Self {
        Self { scheme: setup.scheme, verify: setup.settings.verify }
    }
}

/// Everything that decides a point.
pub(super) fn setup(
    spec: &ComparisonSpec,
    validators: u16,
    candidate: Candidate,
    rate: u64,
) -> Setup {
    let mut setup = Setup { validators, scheme: candidate.scheme, rate, ..spec.base.clone() };
    setup.settings.verify = candidate.verify;
    setup
}

/// Half of what the weakest of the better half takes, or what was asked for: a rate that a
/// candidate which is far behind does not decide.
fn common_rate(spec: &ComparisonSpec, knees: &[SizedKnee], size: u16) -> u64 {
    if let Some(rate) = spec.rate {
        return rate;
    }
    let of_size = knees.iter().filter(|(of, ..)| *of == size);
    let mut rates: Vec<u64> = of_size.map(|(_, _, knee)| knee.rate).collect();
    rates.sort_unstable_by(|a, b| b.cmp(a));
    let weakest = rates.get(rates.len().saturating_sub(1) / 2).copied().unwrap_or(0);
    (weakest / 2).max(search::RATE_MIN)
}
