//! `quorate sim --payments` and `--payments-model`.

use super::smallest::{self, Smallest};
use crate::failure::{Code, CommandResult, Failure};
use crate::output;
use indicatif::{ProgressBar, ProgressStyle};
use quorate_report::text::thousands;
use quorate_sim::mutants::Mutant;
use quorate_sim::payments::{Report, Scenario, model, run_many};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

/// Broken seeds shown in full.
const SHOWN_MAX: usize = 5;

/// Parameters of a search for a broken seed.
pub(super) struct Search<'a> {
    pub(super) threads: usize,
    /// Rule that is switched off.
    pub(super) mutant: Option<Mutant>,
    /// Longest search for the smallest scenario that fails like the first broken seed.
    pub(super) seconds: u64,
    /// Directory for that scenario; `None`: not looked for.
    pub(super) out: Option<&'a Path>,
}

impl Search<'_> {
    /// Runs seeds of authorities, payers and thieves.
    ///
    /// # Errors
    /// When a property breaks, or a file cannot be written.
    pub(super) fn run(&self, seeds: Range<u64>, as_json: bool) -> CommandResult {
        let begun = Instant::now();
        let bar = ProgressBar::new(seeds.end - seeds.start);
        let style =
            ProgressStyle::with_template("{bar:30} {pos}/{len} seeds · {per_sec} · {eta} left");
        bar.set_style(style.expect("a constant that parses"));
        let first = seeds.start;
        let reports = run_many(
            seeds,
            self.threads,
            |seed| self.draw(seed),
            |report| {
                bar.inc(1);
                if let Err(failure) = &report.verdict {
                    bar.println(format!(
                        "seed {} breaks {}: {}",
                        report.seed, failure.oracle, failure.replay
                    ));
                }
            },
        );
        bar.finish_and_clear();
        let (took, threads) = (begun.elapsed(), self.threads);
        let mut campaign = Campaign { first, reports, took, threads, smallest: None };
        campaign.smallest = self.smallest(&campaign)?;
        campaign.end(as_json)
    }

    fn draw(&self, seed: u64) -> Scenario {
        let scenario = Scenario::from_seed(seed);
        match self.mutant {
            Some(mutant) => scenario.with_mutant(mutant),
            None => scenario,
        }
    }

    /// Of the first broken seed.
    fn smallest(&self, campaign: &Campaign) -> Result<Option<Smallest<Scenario>>, Failure> {
        let (Some(out), Some((seed, failure))) = (self.out, campaign.broken().next()) else {
            return Ok(None);
        };
        let file = out.join(format!("payments-seed-{seed}.toml"));
        smallest::find(&self.draw(seed), failure, self.seconds, &file)
    }
}

/// Runs the scenario in a file.
///
/// # Errors
/// When it is refused, or breaks a property.
pub(super) fn replay(file: &Path, text: &str, as_json: bool) -> CommandResult {
    let scenario: Scenario = smallest::parse(text, file)?;
    smallest::needs_mutants(file, scenario.mutant)?;
    let begun = Instant::now();
    let reports = vec![quorate_sim::payments::run(&scenario)];
    let (first, took) = (scenario.seed, begun.elapsed());
    Campaign { first, reports, took, threads: 1, smallest: None }.end(as_json)
}

/// Shows one authority so many transactions whose answers a model foretells.
pub(super) fn run_model(
    seed: u64,
    transactions: u64,
    mutant: Option<Mutant>,
    as_json: bool,
) -> CommandResult {
    let begun = Instant::now();
    let outcome = model::run(seed, transactions, mutant);
    let seconds = rounded(begun.elapsed());
    if as_json {
        let (tally, failure) = match &outcome {
            Ok(tally) => (Some(tally), None),
            Err(broken) => (None, Some(&broken.text)),
        };
        output::json(&json!({
            "seed": seed,
            "transactions": transactions,
            "answers": tally,
            "failure": failure,
            "seconds": seconds,
        }));
    } else {
        output::line(&match &outcome {
            Ok(tally) => {
                let answers: Vec<String> = tally
                    .iter()
                    .map(|(word, count)| format!("{:>12}  {word}\n", thousands(*count)))
                    .collect();
                let count = thousands(transactions);
                format!("{}{count} transactions as foretold; {seconds} s", answers.concat())
            }
            Err(broken) => format!(
                "{}: {}\nto run it again: quorate sim --payments-model {transactions} --seed {seed}{}",
                broken.oracle,
                broken.text,
                quorate_sim::replay::mutant(mutant)
            ),
        });
    }
    outcome.map(|_| ()).map_err(|_| Failure::Reported(Code::Run))
}

/// Results of all seeds.
struct Campaign {
    first: u64,
    reports: Vec<Report>,
    took: Duration,
    threads: usize,
    /// Of the first failure, the smallest scenario that fails like it.
    smallest: Option<Smallest<Scenario>>,
}

impl Campaign {
    fn end(&self, as_json: bool) -> CommandResult {
        if as_json {
            output::json(&self.to_json());
        } else {
            output::line(&self.in_words());
        }
        if self.broken().next().is_none() { Ok(()) } else { Err(Failure::Reported(Code::Run)) }
    }

    fn broken(&self) -> impl Iterator<Item = (u64, &quorate_sim::Failure)> {
        self.reports.iter().filter_map(|report| Some((report.seed, report.verdict.as_ref().err()?)))
    }

    fn total(&self, value: fn(&Report) -> u64) -> u64 {
        self.reports.iter().map(value).sum()
    }

    fn tried(&self) -> BTreeMap<&'static str, u64> {
        let mut all = BTreeMap::new();
        for (kind, count) in self.reports.iter().flat_map(|report| &report.tried) {
            *all.entry(*kind).or_default() += count;
        }
        all
    }

    fn in_words(&self) -> String {
        let mut text = String::new();
        for (seed, failure) in self.broken().take(SHOWN_MAX) {
            text += &format!("seed {seed}: {failure}\n\n");
        }
        let others: Vec<_> = self.broken().skip(SHOWN_MAX).map(|(seed, _)| seed).collect();
        if !others.is_empty() {
            text += &format!("broken too: seeds {others:?}\n\n");
        }
        if let Some(smallest) = &self.smallest {
            text += &format!("{smallest}\n\n");
        }
        let broken = self.broken().count();
        let tried = self.tried();
        let tried: Vec<String> =
            tried.iter().map(|(kind, count)| format!("{} {kind}", thousands(*count))).collect();
        text += &format!(
            "{} seeds from {}: {} held, {broken} broken; {} s on {} threads\n  \
             {} payments certified, {} of thieves; {} conflicts and {} invalid orders refused\n  \
             {} coins frozen, {} decided; {} refunded, {} lost by honest payers that spent twice\n  \
             {} events, {} s of virtual time\n  tried: {}\n  trace of seed {}: {}",
            thousands(self.reports.len() as u64),
            self.first,
            thousands((self.reports.len() - broken) as u64),
            rounded(self.took),
            self.threads,
            thousands(self.total(|report| report.certified)),
            thousands(self.total(|report| report.thieves_certified)),
            thousands(self.total(|report| report.conflicts)),
            thousands(self.total(|report| report.invalid)),
            thousands(self.total(|report| report.frozen)),
            thousands(self.total(|report| report.decided)),
            thousands(self.total(|report| report.refunded)),
            thousands(self.total(|report| report.lost)),
            thousands(self.total(|report| report.events)),
            thousands(self.total(|report| report.virtual_time.0) / 1_000_000),
            tried.join(", "),
            self.first,
            hex::encode(self.reports[0].trace_hash.0),
        );
        text
    }

    fn to_json(&self) -> Value {
        let failures = self.broken().map(|(seed, failure)| {
            json!({
                "seed": seed,
                "oracle": failure.oracle,
                "text": failure.text,
                "state": failure.state,
                "replay": failure.replay,
            })
        });
        let failures: Vec<Value> = failures.collect();
        json!({
            "from": self.first,
            "seeds": self.reports.len(),
            "held": self.reports.len() - failures.len(),
            "failures": failures,
            "certified": self.total(|report| report.certified),
            "thieves_certified": self.total(|report| report.thieves_certified),
            "conflicts": self.total(|report| report.conflicts),
            "invalid": self.total(|report| report.invalid),
            "frozen": self.total(|report| report.frozen),
            "decided": self.total(|report| report.decided),
            "refunded": self.total(|report| report.refunded),
            "lost": self.total(|report| report.lost),
            "smallest": self.smallest.as_ref().map(Smallest::to_json),
            "events": self.total(|report| report.events),
            "virtual_seconds": self.total(|report| report.virtual_time.0) / 1_000_000,
            "tried": self.tried(),
            "trace_hash": hex::encode(self.reports[0].trace_hash.0),
            "threads": self.threads,
            "seconds": rounded(self.took),
        })
    }
}

fn rounded(took: Duration) -> f64 {
    (took.as_secs_f64() * 10.0).round() / 10.0
}
