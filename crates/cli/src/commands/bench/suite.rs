//! `quorate bench --suite`: rows of a suite in one sitting, beside their goals.

use super::super::report;
use super::super::report_options::ReportOptions;
use crate::failure::{Code, CommandResult, Failure};
use crate::{output, signals};
use clap::{Arg, Args};
use indicatif::ProgressBar;
use quorate_lab::experiment::Runners;
use quorate_lab::machine::{self, MachineInfo};
use quorate_lab::suite::{self, Event, Sitting, Suite, SuiteResult};
use quorate_report::text::span;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of a suite.
#[derive(Debug, Args)]
pub(super) struct SuiteOptions {
    /// Measure the rows of a suite instead, in random order: those of this file, or of the suite
    /// that comes along. What a row runs is in the file: see docs/laboratory.md
    #[arg(long, value_name = "FILE", num_args = 0..=1, help_heading = "Suite")]
    suite: Option<Option<PathBuf>>,
    /// Rows of the suite to measure, by their keys; by default all
    #[arg(
        long,
        value_name = "KEY,...",
        value_delimiter = ',',
        requires = "suite",
        help_heading = "Suite"
    )]
    only: Vec<String>,
    /// Compare with this earlier result of the suite, row by row: of the same machine alone
    #[arg(long, value_name = "FILE", requires = "suite", help_heading = "Suite")]
    against: Option<PathBuf>,
    /// Compare with an earlier result of another machine all the same
    #[arg(long, requires = "against", help_heading = "Suite")]
    other_machine: bool,
    /// Measure nothing: show the result in this file again
    #[arg(
        long,
        value_name = "FILE",
        requires = "suite",
        conflicts_with = "only",
        help_heading = "Suite"
    )]
    draw: Option<PathBuf>,
}

/// Options that a suite takes. The others are of one run, which the suite's file describes.
const TAKEN: [&str; 10] = [
    "suite",
    "only",
    "against",
    "other_machine",
    "draw",
    "seed",
    "report",
    "no_report",
    "json",
    "quiet",
];

/// Excludes an option of one run from a suite.
pub(super) fn exclude(option: Arg) -> Arg {
    if TAKEN.contains(&option.get_id().as_str()) { option } else { option.conflicts_with("suite") }
}

impl SuiteOptions {
    pub(super) fn is_asked_for(&self) -> bool {
        self.suite.is_some()
    }

    pub(super) fn run(&self, seed: u64, options: &ReportOptions) -> CommandResult {
        check_name(options)?;
        let drawn = self.draw.as_deref().map(SuiteResult::read).transpose();
        let drawn = drawn.map_err(Failure::usage)?;
        let machine = drawn.as_ref().map_or_else(here, |result| result.machine.clone());
        if let Some(path) = page(options) {
            let refused = |reason| Failure::Usage(format!("{}: {reason}", path.display()));
            suite::check_binary(&machine).map_err(refused)?;
        }
        let earlier = self.earlier(&machine)?;
        let mut result = match drawn {
            Some(result) => result,
            None => self.measure(seed, &machine, options.quiet)?,
        };
        if let Some(earlier) = &earlier {
            result.compare(earlier);
        }
        self.show(&result, options)?;
        judge(&result)
    }

    /// The result to compare with, where there is one that what is measured may stand beside.
    fn earlier(&self, machine: &Value) -> Result<Option<SuiteResult>, Failure> {
        let Some(path) = &self.against else { return Ok(None) };
        let earlier = SuiteResult::read(path).map_err(Failure::usage)?;
        earlier.check_earlier(machine, self.other_machine).map_err(Failure::usage)?;
        Ok(Some(earlier))
    }

    fn measure(&self, seed: u64, machine: &Value, quiet: bool) -> Result<SuiteResult, Failure> {
        let suite = match &self.suite {
            Some(Some(path)) => Suite::read(path).map_err(Failure::usage)?,
            Some(None) | None => Suite::built_in(),
        };
        let suite = match self.only.as_slice() {
            [] => suite,
            keys => suite.only(keys).map_err(Failure::usage)?,
        };
        let executable = std::env::current_exe().map_err(Failure::run)?;
        let runners = Runners::new(executable);
        let interrupted = signals::interrupted().map_err(Failure::run)?;
        let progress = Progress::new(quiet);
        let about = span(suite::estimate_s(&suite, &runners));
        progress.say(&format!("{}: {} rows, about {about}", suite.id, suite.rows.len()));
        let sitting = Sitting {
            suite: &suite,
            seed,
            machine,
            folder: &std::env::temp_dir(),
            command: &report::command(),
        };
        let mut show = |event: Event<'_>| progress.show(&event);
        Ok(suite::sit(&sitting, &runners, &mut show, &interrupted))
    }

    fn show(&self, result: &SuiteResult, options: &ReportOptions) -> CommandResult {
        if options.json {
            output::json(result);
        } else {
            output::line(suite::render(result).trim_end());
        }
        for path in self.write(result, options)? {
            if !options.json {
                let what = if ends_in(&path, "md") { "page" } else { "result" };
                output::line(&format!("\n{what}: {}", path.display()));
            }
        }
        Ok(())
    }

    /// Writes the result, and a page where one was asked for. Returns what was written.
    fn write(
        &self,
        result: &SuiteResult,
        options: &ReportOptions,
    ) -> Result<Vec<PathBuf>, Failure> {
        let by_default = !options.no_report && !options.json && self.draw.is_none();
        let path = options.report.clone();
        let Some(path) = path.or_else(|| by_default.then(|| default_path(result))) else {
            return Ok(Vec::new());
        };
        let json = path.with_extension("json");
        result.write(&json).map_err(Failure::run)?;
        if page(options).is_none() {
            return Ok(vec![json]);
        }
        suite::write_page(&path, result).map_err(Failure::run)?;
        Ok(vec![path, json])
    }
}

/// The page that is asked for.
fn page(options: &ReportOptions) -> Option<&Path> {
    options.report.as_deref().filter(|path| ends_in(path, "md"))
}

/// Refuses a file that would get neither a page nor a result.
fn check_name(options: &ReportOptions) -> CommandResult {
    match &options.report {
        Some(path) if !ends_in(path, "md") && !ends_in(path, "json") => {
            Err(Failure::Usage(format!(
                "--report {}: a suite's result is a file that ends in .json, or in .md for a page",
                path.display()
            )))
        }
        _ => Ok(()),
    }
}

fn ends_in(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|extension| extension == ending)
}

/// In `quorate-results/`, by the suite and the beginning of the sitting.
fn default_path(result: &SuiteResult) -> PathBuf {
    let digits: String = result.started.chars().filter(char::is_ascii_digit).collect();
    let (day, time) = digits.split_at(digits.len().min(8));
    Path::new("quorate-results").join(format!("{}-{day}-{time}.json", result.suite))
}

/// This machine and binary, with the disk that committees use.
fn here() -> Value {
    let mut machine = json!(MachineInfo::here());
    machine["disk"] = json!(machine::filesystem(&std::env::temp_dir()));
    machine
}

/// Rows that are missing are a failure; goals that are missed are none.
fn judge(result: &SuiteResult) -> CommandResult {
    if let Some(reason) = &result.ended_early {
        let (measured, all) = (result.rows.len(), result.order.len());
        return Err(Failure::run(format!("{reason}; {measured} of {all} rows were measured")));
    }
    match result.rows.iter().any(|row| row.record.failed.is_some()) {
        true => Err(Failure::Reported(Code::Run)),
        false => Ok(()),
    }
}

/// A spinner on a terminal, and a line for each row.
struct Progress {
    spinner: ProgressBar,
    quiet: bool,
}

impl Progress {
    fn new(quiet: bool) -> Self {
        let spinner = if quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        spinner.enable_steady_tick(Duration::from_millis(100));
        Self { spinner, quiet }
    }

    fn show(&self, event: &Event<'_>) {
        match event {
            Event::Started { row, place, total } => {
                let text = format!("{place} of {total}: {}: {}", row.key, row.title);
                if self.spinner.is_hidden() {
                    self.say(&text);
                } else {
                    self.spinner.set_message(text);
                }
            }
            Event::Finished(row) => self.say(&suite::line(row)),
        }
    }

    fn say(&self, text: &str) {
        match (self.quiet, self.spinner.is_hidden()) {
            (true, _) => {}
            (false, true) => eprintln!("{text}"),
            (false, false) => self.spinner.println(text),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.spinner.finish_and_clear();
    }
}
