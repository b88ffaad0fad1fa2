//! `quorate sim`: seeds in virtual time.

mod mutants;

use crate::failure::{Code, CommandResult, Failure};
use crate::output;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use mutants::MutantName;
use quorate_crypto::{Digest, hash_parts};
use quorate_lab::text::thousands;
use quorate_sim::{Report, Scenario, run_many};
use quorate_types::Weights;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Search seeds of the simulator for a violation.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate sim --seeds 1000           a thousand scenarios with crashes, partitions and liars\n  \
    quorate sim --seed 17              one of them again\n  \
    quorate sim --weights 4,4,4,4,1,1,1 --twins\n                                     \
    members weigh differently, all that may fail are twins\n  \
    quorate sim --mutant JolteonDoubleVote --seeds 200\n                                     \
    a rule left out: must fail (needs a build with --features mutants)")]
pub(crate) struct Options {
    /// How many seeds to run
    #[arg(long, default_value_t = 100, conflicts_with = "seed")]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0, conflicts_with = "seed")]
    from: u64,
    /// Run this seed alone
    #[arg(long)]
    seed: Option<u64>,
    /// Threads; the cores of this machine by default
    #[arg(long)]
    threads: Option<usize>,
    /// Leave out a rule, to see that it is missed; `list` names them all
    #[arg(long, value_name = "NAME")]
    mutant: Option<MutantName>,
    /// Replace the Byzantine members by twins: two machines with one key
    #[arg(long)]
    twins: bool,
    /// What each member's vote weighs, as in 3,1,1,1, instead of what the seed draws
    #[arg(long, value_name = "W,W,...")]
    weights: Option<Weights>,
    /// Add slow disks and power cuts of the whole committee
    #[arg(long)]
    storm: bool,
    /// Keep next to no log and take snapshots often; replicas are away for long, one loses its bodies
    #[arg(long)]
    retention: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let mutant = match &self.mutant {
            Some(MutantName::List) => {
                output::line(&mutants::names().join("\n"));
                return Ok(());
            }
            Some(MutantName::One(mutant)) => Some(*mutant),
            None => None,
        };
        if mutant.is_some() && !cfg!(feature = "mutants") {
            return Err(Failure::usage(
                "this build leaves out no rules; use \
                 `cargo run --release -p quorate-cli --features mutants -- sim …`",
            ));
        }
        let (first, count) = self.seed.map_or((self.from, self.seeds), |seed| (seed, 1));
        if count == 0 {
            return Err(Failure::usage("--seeds must be at least 1"));
        }
        let last = first.checked_add(count).ok_or_else(|| Failure::usage("seeds end at 2^64"))?;
        let draw = |seed| {
            let mut scenario = match &self.weights {
                Some(weights) => Scenario::weighted(seed, weights.clone()),
                None => Scenario::from_seed(seed),
            };
            if self.twins {
                scenario = scenario.with_twins();
            }
            if self.retention {
                scenario = scenario.with_retention();
            }
            if self.storm {
                scenario = scenario.with_storm();
            }
            match mutant {
                Some(mutant) => scenario.with_mutant(mutant),
                None => scenario,
            }
        };
        let begun = Instant::now();
        let reports = self.run_all(first..last, draw);
        let campaign = Campaign { first, reports, took: begun.elapsed(), threads: self.threads() };
        if self.json {
            output::json(&campaign.to_json());
        } else {
            output::line(&campaign.to_string());
        }
        if campaign.broken().next().is_some() { Err(Failure::Reported(Code::Run)) } else { Ok(()) }
    }

    fn run_all(
        &self,
        seeds: std::ops::Range<u64>,
        draw: impl Fn(u64) -> Scenario + Sync,
    ) -> Vec<Report> {
        let bar = ProgressBar::new(seeds.end - seeds.start);
        bar.set_style(
            ProgressStyle::with_template(
                "{bar:30} {pos}/{len} seeds · {per_sec} · {eta} left {msg}",
            )
            .expect("a constant that parses"),
        );
        let mut broken = 0;
        let reports = run_many(seeds, self.threads(), draw, |report| {
            bar.inc(1);
            if let Err(failure) = &report.verdict {
                broken += 1;
                bar.set_message(format!("· {broken} broken"));
                bar.println(format!(
                    "seed {} breaks {}: {}",
                    report.seed, failure.oracle, failure.replay
                ));
            }
        });
        bar.finish_and_clear();
        reports
    }

    fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(cores).max(1)
    }
}

/// Broken seeds shown in full.
const SHOWN_MAX: usize = 5;

/// What came of all the seeds.
struct Campaign {
    first: u64,
    reports: Vec<Report>,
    took: Duration,
    threads: usize,
}

impl Campaign {
    fn broken(&self) -> impl Iterator<Item = (&Report, &quorate_sim::Failure)> {
        self.reports.iter().filter_map(|report| Some((report, report.verdict.as_ref().err()?)))
    }

    /// One hash over all traces: the same for the same seeds on every machine.
    fn combined_hash(&self) -> Digest {
        let traces: Vec<u8> = self.reports.iter().flat_map(|report| report.trace_hash.0).collect();
        hash_parts("quorate v1 sim campaign", &[&traces])
    }

    fn to_json(&self) -> Value {
        let failures: Vec<Value> = self.broken().map(failure_json).collect();
        json!({
            "from": self.first,
            "seeds": self.reports.len(),
            "threads": self.threads,
            "seconds": (self.took.as_secs_f64() * 10.0).round() / 10.0,
            "held": self.reports.len() - failures.len(),
            "failures": failures,
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

    fn virtual_seconds(&self) -> u64 {
        self.total(|report| report.virtual_time.0) / 1_000_000
    }
}

fn failure_json((report, failure): (&Report, &quorate_sim::Failure)) -> Value {
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
        let first = hex::encode(self.reports[0].trace_hash.0);
        writeln!(f, "  trace of seed {}: {first}", self.first)?;
        write!(f, "  trace of all seeds: {}", hex::encode(self.combined_hash().0))
    }
}
