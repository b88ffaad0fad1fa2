//! `quorate pay bench`: all schemes under load.

use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use comfy_table::{Table, presets};
use indicatif::ProgressBar;
use quorate_lab::machine::MachineInfo;
use quorate_lab::pay::{
    Alone, Cores, OverSpent, PayBenchConfig, PayBenchError, PayReport, measure, median,
};
use quorate_payments::PayScheme;
use quorate_storage::Durability;
use serde_json::json;
use std::time::Duration;

/// Measure all schemes: real authorities under load, beside what their signatures cost.
///
/// For each scheme: one authority on processors of its own, fed from the others with prepared
/// payments as fast as it votes; then all authorities at half of what the machine can do, for
/// latencies. Payments have one input, with a certificate of its own, and two outputs. Everything
/// is checked and locks are durable.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate pay bench                four authorities, plain, merkle and bls\n  \
    quorate pay bench -n 10          certificates of seven votes\n  \
    quorate pay bench --shards 2     each authority in two processes\n  \
    quorate pay bench --cores 1,2,4  one authority on one, two and four processors\n  \
    quorate pay bench --scheme merkle --spent 100000000\n  \
    \x20                                one over 10^8 spent inputs too: 8 GB of disk, some minutes")]
pub(crate) struct Options {
    /// Number of payment authorities
    #[arg(short = 'n', long, default_value_t = 4,
          value_parser = clap::value_parser!(u16).range(1..=100))]
    authorities: u16,
    /// Number of processes that each authority shares its payers among
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=16))]
    shards: u16,
    /// Number of processors for the authority that is measured alone, divided among its shards; its
    /// load runs on the others alone. Several are measured one after the other. Unless told: one
    /// for each shard, or all shared where there are too few
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    cores: Vec<u16>,
    /// Schemes to measure: plain, merkle, bls, bls-threshold
    #[arg(long, value_delimiter = ',', default_value = "plain,merkle,bls")]
    scheme: Vec<PayScheme>,
    /// Length of each load, in seconds
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=600))]
    duration: u64,
    /// Durability of locks: against a power cut (fsync), or only against the end of the process
    /// (os)
    #[arg(long, default_value = "fsync")]
    durability: Durability,
    /// Measure one authority over so many inputs spent before, too, and over none, four times each
    /// in turn; they take 77 bytes each in the folder for temporary files
    #[arg(long, default_value_t = 0, value_name = "INPUTS",
          value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    spent: u64,
    /// Print the reports as JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let executable = std::env::current_exe().map_err(Failure::run)?;
        let plans = self.plan_cores()?;
        let config = PayBenchConfig {
            executable,
            schemes: self.scheme.clone(),
            authorities: self.authorities,
            shards: self.shards,
            cores: None,
            duration: Duration::from_secs(self.duration),
            durability: self.durability,
            spent: self.spent,
        };
        let progress = ProgressBar::new_spinner();
        progress.enable_steady_tick(Duration::from_millis(100));
        let mut reports = Vec::new();
        for scheme in &config.schemes {
            for cores in &plans {
                let config = PayBenchConfig { cores: *cores, ..config.clone() };
                let say = |what: &str| progress.set_message(format!("{scheme}: {what}"));
                reports.push(measure(&config, *scheme, &say).map_err(Failure::run)?);
            }
        }
        progress.finish_and_clear();
        if self.json {
            output::json(&json!({ "machine": MachineInfo::here(), "reports": reports }));
        } else {
            output::line(&self.describe(&reports));
            for report in &reports {
                report
                    .over_spent
                    .iter()
                    .for_each(|over| output::line(&describe_spent(report, over)));
            }
        }
        Ok(())
    }

    /// Numbers of processors to measure one after the other, each of which can be divided.
    fn plan_cores(&self) -> Result<Vec<Option<usize>>, Failure> {
        let asked = self.cores.iter().map(|cores| Some(usize::from(*cores)));
        let plans: Vec<_> = if self.cores.is_empty() { vec![None] } else { asked.collect() };
        for cores in &plans {
            Cores::plan(*cores, self.shards).map_err(|error| match error {
                PayBenchError::Cores(error) => Failure::Usage(format!("--cores: {error}")),
                error => Failure::run(error),
            })?;
        }
        Ok(plans)
    }

    fn describe(&self, reports: &[PayReport]) -> String {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_header([
            "scheme",
            "cores",
            "order",
            "µs a vote",
            "per core",
            "bound",
            "of it",
            "one authority",
            "all",
            "p50",
            "p99",
        ]);
        for report in reports {
            table.add_row(row(report));
        }
        let machine = MachineInfo::here();
        let quorum = reports.first().map_or(0, |report| report.quorum);
        format!(
            "{n} authorities, certificates of {quorum} votes, {shards} shard{s} each, {durability}; {cores} cores, {cpu}, commit {commit}\n\n{table}\n\n{divisions}\n\n\
             per core: transactions a second by the processor time of one authority, everything included. bound: what\n\
             its signatures and hashes alone allow there. one authority: measured, on its cores, fed from the others.\n\
             all: payments a second with a quorum's votes by all authorities on this machine, at the rate that was\n\
             due; p50, p99: from when they were due, in milliseconds.",
            n = self.authorities,
            shards = self.shards,
            s = if self.shards == 1 { "" } else { "s" },
            durability = self.durability,
            cores = machine.cores,
            cpu = machine.cpu,
            commit = machine.commit,
            divisions = divisions(reports),
        )
    }
}

/// Processors that served what, a line for each division.
fn divisions(reports: &[PayReport]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for report in reports {
        let line = match &report.cores {
            None => "shared: authority and load ran on all processors".into(),
            Some(Cores { shards, load }) => {
                let named = |(shard, cores): (u16, &Vec<usize>)| {
                    format!("shard {shard} on {}; ", list(cores))
                };
                let shards: String = (0..).zip(shards).map(named).collect();
                format!("processors: {shards}load on {}", list(load))
            }
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.join("\n")
}

fn list(cores: &[usize]) -> String {
    let names: Vec<String> = cores.iter().map(usize::to_string).collect();
    names.join(", ")
}

fn row(report: &PayReport) -> Vec<String> {
    vec![
        report.scheme.to_string(),
        report.cores.as_ref().map_or("shared".into(), |cores| cores.of_authority().to_string()),
        format!("{} B", report.order_bytes),
        format!("{:.1}", report.cpu_us),
        format!("{:.0}/s", report.per_core_tx_s()),
        format!("{:.0}/s", report.bound.tx_s()),
        format!("{:.0} %", report.share_of_bound() * 100.0),
        format!("{:.0}/s", report.one_authority_tx_s),
        format!("{:.0} of {:.0}/s", report.all_tx_s, report.all_due_tx_s),
        format!("{:.1}", report.latency_ms.p50),
        format!("{:.1}", report.latency_ms.p99),
    ]
}

fn describe_spent(report: &PayReport, over: &OverSpent) -> String {
    let loads = |loads: &[Alone]| {
        let of = |figure: fn(&Alone) -> f64| median(loads.iter().map(figure));
        format!("{:.1} µs a vote and {:.0}/s", of(|load| load.cpu_us), of(|load| load.rate))
    };
    format!(
        "\n{}: over {} spent inputs {}, over none {}, medians of {} loads each in turn: {:.1} % of the rate per core.\n\
         A start over them took {:.1} s, and {} MiB of memory were resident.",
        report.scheme,
        over.inputs,
        loads(&over.spent),
        loads(&over.none),
        over.spent.len(),
        over.share() * 100.0,
        over.start_s,
        over.resident_mb,
    )
}
