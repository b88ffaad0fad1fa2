//! Results of all seeds of a campaign.

use super::smallest::Smallest;
use quorate_crypto::{Digest, hash_parts};
use quorate_report::text::thousands;
use quorate_sim::{Failure, Report, Scenario};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Broken seeds shown in full.
const SHOWN_MAX: usize = 5;

/// Results of all seeds.
pub(super) struct Campaign {
    first: u64,
    reports: Vec<Report>,
    took: Duration,
    threads: usize,
    /// Of the first failure, the smallest scenario that fails like it.
    pub(super) smallest: Option<Smallest<Scenario>>,
}

impl Campaign {
    pub(super) fn new(first: u64, reports: Vec<Report>, took: Duration, threads: usize) -> Self {
        Self { first, reports, took, threads, smallest: None }
    }

    pub(super) fn broken(&self) -> impl Iterator<Item = (&Report, &Failure)> {
        self.reports.iter().filter_map(|report| Some((report, report.verdict.as_ref().err()?)))
    }

    /// One hash over all traces: the same for the same seeds on every machine.
    fn combined_hash(&self) -> Digest {
        let traces: Vec<u8> = self.reports.iter().flat_map(|report| report.trace_hash.0).collect();
        hash_parts("quorate v1 sim campaign", &[&traces])
    }

    pub(super) fn to_json(&self) -> Value {
        let failures: Vec<Value> = self.broken().map(failure_json).collect();
        json!({
            "from": self.first,
            "seeds": self.reports.len(),
            "threads": self.threads,
            "seconds": (self.took.as_secs_f64() * 10.0).round() / 10.0,
            "held": self.reports.len() - failures.len(),
            "failures": failures,
            "smallest": self.smallest.as_ref().map(Smallest::to_json),
            "commits": self.total(|report| report.decided_height.0),
            "commits_median": self.median_commits(),
            "views": self.total(|report| report.views.0),
            "tried": self.tried(),
            "operations": self.total(|report| report.completed),
            "events": self.total(|report| report.events),
            "virtual_seconds": self.virtual_seconds(),
            "trace_hash": hex::encode(self.reports[0].trace_hash.0),
            "combined_hash": hex::encode(self.combined_hash().0),
        })
    }

    fn total(&self, value: fn(&Report) -> u64) -> u64 {
        self.reports.iter().map(value).sum()
    }

    /// Half of the seeds decided no more heights than this.
    fn median_commits(&self) -> u64 {
        let mut heights: Vec<u64> = self.reports.iter().map(|r| r.decided_height.0).collect();
        heights.sort_unstable();
        heights.get(heights.len() / 2).copied().unwrap_or(0)
    }

    /// Number of times that each kind of fault was tried.
    fn tried(&self) -> BTreeMap<&'static str, u64> {
        let mut all = BTreeMap::new();
        for (kind, count) in self.reports.iter().flat_map(|report| &report.tried) {
            *all.entry(*kind).or_default() += count;
        }
        all
    }

    fn virtual_seconds(&self) -> u64 {
        self.total(|report| report.virtual_time.0) / 1_000_000
    }
}

fn failure_json((report, failure): (&Report, &Failure)) -> Value {
    json!({
        "seed": report.seed,
        "oracle": failure.oracle,
        "text": failure.text,
        "state": failure.state,
        "replay": failure.replay,
    })
}

impl std::fmt::Display for Campaign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (report, failure) in self.broken().take(SHOWN_MAX) {
            writeln!(f, "seed {}: {failure}\n", report.seed)?;
        }
        let others: Vec<_> = self.broken().skip(SHOWN_MAX).map(|(report, _)| report.seed).collect();
        if !others.is_empty() {
            writeln!(f, "broken too: seeds {others:?}\n")?;
        }
        if let Some(smallest) = &self.smallest {
            writeln!(f, "{smallest}\n")?;
        }
        let (seeds, broken) = (self.reports.len(), self.broken().count());
        writeln!(
            f,
            "{} seeds from {}: {} held, {broken} broken; {:.1} s on {} threads",
            thousands(seeds as u64),
            self.first,
            thousands((seeds - broken) as u64),
            self.took.as_secs_f64(),
            self.threads,
        )?;
        writeln!(
            f,
            "  {} operations, {} events, {} s of virtual time",
            thousands(self.total(|report| report.completed)),
            thousands(self.total(|report| report.events)),
            thousands(self.virtual_seconds()),
        )?;
        writeln!(
            f,
            "  {} commits, median {} a seed, in {} views",
            thousands(self.total(|report| report.decided_height.0)),
            thousands(self.median_commits()),
            thousands(self.total(|report| report.views.0)),
        )?;
        let tried = self.tried();
        if !tried.is_empty() {
            let kinds: Vec<String> =
                tried.iter().map(|(kind, count)| format!("{} {kind}", thousands(*count))).collect();
            writeln!(f, "  tried: {}", kinds.join(", "))?;
        }
        let first = hex::encode(self.reports[0].trace_hash.0);
        writeln!(f, "  trace of seed {}: {first}", self.first)?;
        write!(f, "  trace of all seeds: {}", hex::encode(self.combined_hash().0))
    }
}
