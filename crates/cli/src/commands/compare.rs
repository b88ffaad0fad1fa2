//! `quorate compare`: which scheme fits a committee of each size.

mod parts;

use super::wan::Wan;
use crate::failure::{CommandResult, Failure};
use crate::{output, signals};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use quorate_consensus::ProtocolKind;
use quorate_crypto::{Policy, SchemeKind};
use quorate_engine::{FlowControl, Settings};
use quorate_lab::compare::{self, Candidate, Comparison, ComparisonSpec, Means};
use quorate_lab::experiment::page::{self, Origin};
use quorate_lab::experiment::results::Writer;
use quorate_lab::experiment::{RunnerKind, Runners, Setup, Shard};
use quorate_lab::machine::MachineInfo;
use quorate_model::Prices;
use quorate_storage::Durability;
use serde_json::json;
use std::path::PathBuf;

/// Seconds of load before those that count, and milliseconds of them in which it grows to its rate:
/// of the model, whose points begin in the middle of their load, and of processes, whose windows
/// open first.
const WARMUP_S: u64 = 2;
const WARMUP_PROCESSES_S: u64 = 8;
const RAMP_MS: u64 = 500;

/// Recommend a signature scheme for each committee size, with the table behind it.
///
/// For each size and each way of voting the simulator searches for the highest rate that is kept up
/// with; then all are held against one another at one rate. Ends with one recommended line for each
/// size, and its reason.
///
/// Over several machines --shard I/N, with the same other options, does part I of the searches. A
/// search goes by its own results, from size to size, so one way of voting is one machine's: there
/// are as many parts as schemes and policies at most. --join, again with the same options, takes
/// the searches up, measures each way of voting at the common rate (with --rate the parts did
/// that), and recommends as one machine would.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate compare -n 4,20,40,60,80 --wan us-east-1,us-west-1,ap-southeast-2,eu-central-1\n  \
    quorate compare -n 20 --rate 30000 --machine t3.medium\n                                     \
    for a load that is known\n  \
    quorate calibrate -o here.toml && quorate compare -n 10 --machine here.toml\n  \
    quorate compare -n 4 --processes     measured on real processes on this machine\n  \
    quorate compare -n 80 --shard 0/2    the first of two parts of the searches; 1/2 elsewhere\n  \
    quorate compare -n 80 --join quorate-results\n                                       \
    both, from their files in that folder\n\n\
    Kept up with is a rate of which 92 % are committed, at a median latency of at most twice that\n\
    under little load. Points are short: rates are known to within 8 %.")]
pub(crate) struct Options {
    /// Committee sizes to compare, in members
    #[arg(short = 'n', long, value_name = "N,N,...", value_delimiter = ',',
          default_values_t = [4, 20, 40, 60, 80],
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    validators: Vec<u16>,
    /// Rate that the committee must take, in operations a second; by default the highest rate wins
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=400_000))]
    rate: Option<u64>,
    /// Prices of operations on the machines: a list that comes with this program, or a file
    #[arg(long, visible_alias = "prices", default_value = "this-machine", value_name = "PRICES")]
    machine: String,
    /// Cores of each machine [default: as many as the price list's has]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1_024))]
    cores: Option<u16>,
    /// Bandwidth of each machine in each direction, in megabits a second
    #[arg(long, default_value_t = 5_000, value_name = "MBIT")]
    mbps: u64,
    #[command(flatten)]
    wan: Wan,
    /// Protocol that orders: jolteon, hotstuff (chained), hotstuff-basic, pbft, linear-pbft,
    /// linear-pbft-fast or sbft
    #[arg(long, default_value_t)]
    protocol: ProtocolKind,
    /// Voting schemes to compare
    #[arg(long, value_delimiter = ',', default_value = "ed25519,bls", value_parser = super::scheme)]
    schemes: Vec<SchemeKind>,
    /// Verifications of votes to compare: each, batch, aggregate
    #[arg(long, value_delimiter = ',', default_value = "aggregate,each")]
    policies: Vec<Policy>,
    /// Bytes of an operation
    #[arg(long, default_value_t = 512, value_name = "BYTES")]
    tx_bytes: usize,
    /// Longest time that a batch waits to be full, in milliseconds
    #[arg(long, default_value_t = 100, value_name = "MS")]
    batch_delay: u64,
    /// View timeout, in milliseconds
    #[arg(long, default_value_t = 5_000, value_name = "MS")]
    timeout: u64,
    /// Durability of votes: against a power cut (fsync), or only against the end of the process
    /// (os)
    #[arg(long, default_value = "fsync")]
    durability: Durability,
    /// Length of a point's measured window, in seconds, after two that do not count, or eight of
    /// processes
    #[arg(long, default_value_t = 4, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Seed that decides every draw
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Measure real processes on this machine instead of simulating machines
    #[arg(long)]
    processes: bool,
    /// Do one of N parts of the searches, number I from 0 on, and recommend nothing: see --join
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Go on with the results of the part that are there, if this program measured them
    #[arg(long, requires = "shard")]
    resume: bool,
    /// Take up the searches of all parts, from their files or folders of them
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "shard")]
    join: Vec<PathBuf>,
    /// Number of searches side by side; by default one a core
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
    /// Directory for the page, its figures and its lines, or for the results of a part
    #[arg(long, value_name = "DIR", default_value = "quorate-results")]
    out: PathBuf,
    /// Write no page
    #[arg(long)]
    no_page: bool,
    /// Print one JSON object; of a part, the lines of its file
    #[arg(long)]
    json: bool,
    /// Show no progress meanwhile
    #[arg(long)]
    quiet: bool,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let spec = self.spec()?;
        let executable =
            std::env::current_exe().map_err(|error| Failure::run(format!("who am I? {error}")))?;
        let interrupted = signals::interrupted().map_err(Failure::run)?;
        let runners = Runners::new(executable);
        let bar = self.bar();
        let progress = |done: usize, all: usize| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        };
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let machine = json!(MachineInfo::here());
        let means = Means {
            runner: runners.of(spec.base.runner),
            machine: &machine,
            threads: self.threads.unwrap_or_else(cores),
            progress: &progress,
            interrupted: &interrupted,
        };
        if let Some(shard) = self.shard {
            return self.measure_part(shard, &spec, &means);
        }
        let comparison = if self.join.is_empty() {
            compare::compare(&spec, &means).map_err(Failure::from)
        } else {
            self.join_parts(&spec, &means)
        };
        bar.finish_and_clear();
        let comparison = comparison?;
        self.print(&spec, &comparison);
        self.write(&spec, &comparison)
    }

    fn spec(&self) -> Result<ComparisonSpec, Failure> {
        let mut candidates: Vec<Candidate> = Vec::new();
        for &scheme in &self.schemes {
            for &verify in &self.policies {
                // Ed25519's shares do not add up: it has two ways of checking them, not three.
                let same = |other: &Candidate| {
                    let batches = |policy| policy != Policy::Each;
                    other.scheme == scheme
                        && (other.verify == verify
                            || scheme == SchemeKind::Ed25519
                                && batches(other.verify)
                                && batches(verify))
                };
                if !candidates.iter().any(same) {
                    candidates.push(Candidate { scheme, verify });
                }
            }
        }
        let list = Prices::find(&self.machine).map_err(Failure::usage)?;
        let emulation = self.wan.emulation().unwrap_or_default();
        let runner = if self.processes { RunnerKind::Processes } else { RunnerKind::Simulated };
        // A point of the model begins in the middle of its load.
        let flow_control = if self.processes { FlowControl::Delay } else { FlowControl::Warm };
        let base = Setup {
            runner,
            regions: emulation.regions,
            delay_ms: emulation.delay_ms,
            bandwidth_mbit: emulation.bandwidth_mbit,
            prices: self.machine.clone(),
            cores: self.cores.unwrap_or(list.cores),
            uplink_mbit: self.mbps,
            downlink_mbit: self.mbps,
            tx_bytes: self.tx_bytes,
            durability: self.durability,
            warmup_s: if self.processes { WARMUP_PROCESSES_S } else { WARMUP_S },
            duration_s: self.seconds,
            warm_connections: true,
            ramp_ms: RAMP_MS,
            seed: self.seed,
            settings: Settings {
                protocol: self.protocol,
                batch_delay_ms: self.batch_delay,
                timeout_ms: self.timeout,
                comparison: quorate_engine::Comparison { flow_control, ..Default::default() },
                ..Settings::default()
            },
            ..Setup::default()
        };
        let mut sizes = self.validators.clone();
        sizes.sort_unstable();
        sizes.dedup();
        for &validators in &sizes {
            Setup { validators, ..base.clone() }.validate().map_err(Failure::usage)?;
        }
        Ok(ComparisonSpec { sizes, candidates, rate: self.rate, base })
    }

    fn bar(&self) -> ProgressBar {
        let bar = if self.quiet { ProgressBar::hidden() } else { ProgressBar::new(1) };
        let template = "{bar:30} {pos}/{len} searches and checks · {elapsed} · {eta} left";
        bar.set_style(ProgressStyle::with_template(template).expect("a constant that parses"));
        if bar.is_hidden() && !self.quiet {
            eprintln!("searching; this takes some minutes for committees of 80");
        }
        bar.enable_steady_tick(std::time::Duration::from_millis(500));
        bar
    }

    fn print(&self, spec: &ComparisonSpec, comparison: &Comparison) {
        if self.json {
            output::json(&json!({
                "setup": spec.base,
                "rate": spec.rate,
                "precision": comparison.precision,
                "findings": comparison.findings,
                "advice": comparison.advice,
            }));
            return;
        }
        let real = spec.base.runner == RunnerKind::Processes;
        let origin = if real {
            "measured on real processes on this machine".to_owned()
        } else {
            format!("simulated at the prices of {}, signatures priced", self.machine)
        };
        output::line(&format!(
            "{}\nrates kept up with, to within {:.0} %; {origin}\n",
            compare::table(comparison).trim_end(),
            100.0 * comparison.precision,
        ));
        for advice in &comparison.advice {
            output::line(&advice.line);
        }
    }

    fn write(&self, spec: &ComparisonSpec, comparison: &Comparison) -> CommandResult {
        if self.no_page {
            return Ok(());
        }
        let (experiment, records) = compare::experiment(spec, comparison);
        let origin = Origin { preset: "points".to_owned(), command: super::report::command() };
        let written = page::write(&self.out, &experiment, &records, &origin);
        let unwritable = |error| format!("cannot write to {}: {error}", self.out.display());
        let written = written.map_err(|error| Failure::run(unwritable(error)))?;
        Writer::create(&self.out.join("compare.jsonl"), &records).map_err(Failure::run)?;
        if !self.json {
            output::line(&format!("\npage: {}", written[0].display()));
        }
        Ok(())
    }
}
