//! `quorate validate`: the model held against real committees on this machine.

use crate::failure::{CommandResult, Failure};
use crate::{output, signals};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use quorate_lab::calibrate;
use quorate_lab::experiment::{Runners, results};
use quorate_lab::machine::MachineInfo;
use quorate_lab::validate::{self, Means, Pair, ValidationSpec};
use quorate_model::Prices;
use quorate_storage::Durability;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Hold the model against real committees on this machine.
///
/// Measures what every operation costs here, then each point twice: with real processes, and by
/// the model at those prices. The table shows both beside each other, with the ratios of the model
/// to reality; latency is judged where both commit what is offered.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate validate                               four, ten and twenty validators, 36 points\n  \
    quorate validate -n 4 --durability fsync       one size, one durability\n  \
    quorate validate --prices here.toml            at the prices of an earlier calibration\n  \
    quorate validate --from validate.jsonl --markdown\n                                                 \
    the table of lines that were kept, for a page\n\n\
    Let nothing else run meanwhile. '!' marks a ratio that is off by more than 15 %.")]
pub(crate) struct Options {
    /// Committee sizes, in members
    #[arg(short = 'n', long, value_name = "N,N,...", value_delimiter = ',',
          default_values_t = [4, 10, 20],
          value_parser = clap::value_parser!(u16).range(1..=200))]
    validators: Vec<u16>,
    /// Durabilities of votes: fsync, os
    #[arg(long, value_delimiter = ',', default_value = "fsync,os")]
    durability: Vec<Durability>,
    /// One-way delays between members, emulated, in milliseconds
    #[arg(long, value_name = "MS,MS,...", value_delimiter = ',', default_values_t = [0, 25])]
    delay: Vec<u64>,
    /// Operations offered per second, by all clients together
    #[arg(long, value_name = "RATE,RATE,...", value_delimiter = ',',
          default_values_t = [100, 20_000, 75_000],
          value_parser = clap::value_parser!(u64).range(1..=400_000))]
    rate: Vec<u64>,
    /// Prices of this machine, instead of measuring them: a file, or a list that comes with this
    /// program
    #[arg(long, value_name = "NAME|FILE")]
    prices: Option<String>,
    /// Length of a point's measured window, in seconds, after four that do not count
    #[arg(long, default_value_t = 6, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Seed that decides every draw
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Directory for the price list and the results
    #[arg(long, value_name = "DIR", default_value = "quorate-results")]
    out: PathBuf,
    /// Measure nothing: show the results in this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prices", "out"])]
    from: Option<PathBuf>,
    /// Print the table in Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Show no progress meanwhile
    #[arg(long)]
    quiet: bool,
}

/// Seconds of load before those that count.
const WARMUP_S: u64 = 4;

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let pairs = match &self.from {
            Some(file) => kept(file)?,
            None => self.measure()?,
        };
        self.print(&pairs);
        Ok(())
    }

    fn measure(&self) -> Result<Vec<Pair>, Failure> {
        let interrupted = signals::interrupted().map_err(Failure::run)?;
        let executable = std::env::current_exe().map_err(Failure::run)?;
        std::fs::create_dir_all(&self.out).map_err(|error| self.unwritable(&error))?;
        let spec = self.spec(&executable)?;
        let runners = Runners::new(executable);
        let machine = json!(MachineInfo::here());
        let bar = self.bar();
        let progress = |done: usize, all: usize| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        };
        let results = self.out.join("validate.jsonl");
        let means = Means {
            runners: &runners,
            machine: &machine,
            results: &results,
            progress: &progress,
            interrupted: &interrupted,
        };
        let pairs = validate::validate(&spec, &means);
        bar.finish_and_clear();
        Ok(pairs?)
    }

    fn spec(&self, program: &Path) -> Result<ValidationSpec, Failure> {
        let prices = match &self.prices {
            Some(name) => name.clone(),
            None => self.calibrated(program)?,
        };
        let list = Prices::find(&prices).map_err(Failure::usage)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let spec = ValidationSpec {
            sizes: self.validators.clone(),
            durabilities: self.durability.clone(),
            delays_ms: self.delay.clone(),
            rates: self.rate.clone(),
            prices,
            cores: u16::try_from(cores).unwrap_or(list.cores),
            warmup_s: WARMUP_S,
            duration_s: self.seconds,
            seed: self.seed,
        };
        for point in spec.points() {
            point.validate().map_err(Failure::usage)?;
        }
        Ok(spec)
    }

    /// The price list of this machine, measured now; the name of its file.
    fn calibrated(&self, program: &Path) -> Result<String, Failure> {
        if !self.quiet {
            eprintln!("measuring prices");
        }
        let folder = std::env::temp_dir();
        let prices = calibrate::calibrate(&folder, program, &mut |_| {});
        let path = self.out.join("here.toml");
        std::fs::write(&path, prices?.to_toml()).map_err(|error| self.unwritable(&error))?;
        Ok(path.display().to_string())
    }

    fn unwritable(&self, error: &std::io::Error) -> Failure {
        Failure::run(format!("cannot write to {}: {error}", self.out.display()))
    }

    fn bar(&self) -> ProgressBar {
        let bar = if self.quiet { ProgressBar::hidden() } else { ProgressBar::new(1) };
        let template = "{bar:30} {pos}/{len} points · {elapsed} · {eta} left";
        bar.set_style(ProgressStyle::with_template(template).expect("a constant that parses"));
        bar.enable_steady_tick(std::time::Duration::from_millis(500));
        bar
    }

    fn print(&self, pairs: &[Pair]) {
        if self.json {
            let each = pairs.iter().map(|pair| {
                json!({
                    "setup": pair.real.setup,
                    "real": pair.real.measured,
                    "model": pair.model.measured,
                    "ratios": pair.ratios(),
                    "remarks": pair.remarks(),
                    "meets_goal": pair.judge(),
                })
            });
            output::json(&json!({ "goal": validate::GOAL, "points": each.collect::<Vec<_>>() }));
            return;
        }
        if self.markdown {
            return output::text(&validate::markdown(pairs));
        }
        for pair in pairs {
            let setup = &pair.real.setup;
            for remark in pair.remarks() {
                output::line(&format!(
                    "n = {}, {}, {} ms, {} tx/s: {remark}",
                    setup.validators, setup.durability, setup.delay_ms, setup.rate
                ));
            }
        }
        let met = pairs.iter().filter(|pair| pair.judge()).count();
        output::line(&format!(
            "{}\n{met} of {} points within {:.0} % in throughput and, where both commit what is \
             offered, in the median latency",
            validate::table(pairs),
            pairs.len(),
            100.0 * validate::GOAL,
        ));
        if self.from.is_none() {
            output::line(&format!("results: {}", self.out.join("validate.jsonl").display()));
        }
    }
}

fn kept(file: &Path) -> Result<Vec<Pair>, Failure> {
    let records = results::read(file).map_err(|error| Failure::usage(error.to_string()))?;
    let named = |error: String| Failure::usage(format!("{}: {error}", file.display()));
    let pairs = validate::pairs(records).map_err(named)?;
    if pairs.is_empty() {
        return Err(named("no point is whole".to_owned()));
    }
    Ok(pairs)
}
