//! `quorate reproduce`: experiments, and the figures drawn from them.

mod list;
mod parts;
mod progress;

use crate::failure::{CommandResult, Failure};
use crate::{output, signals};
use clap::Args;
use progress::Progress;
use quorate_lab::experiment::page::{self, Origin};
use quorate_lab::experiment::{
    DriveError, Experiment, Job, Plan, Record, RunnerKind, Runners, Setup, Shard, built_in, drive,
    estimate_s, results, sort,
};
use quorate_lab::machine::MachineInfo;
use quorate_report::text::span;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Run an experiment: measure its points, and draw its figures beside the paper's.
///
/// Every finished point is a line of JSON in the results file, with its full configuration. At the
/// end come one page that needs nothing but itself, and each figure as an SVG file.
///
/// Over several machines each measures a part of the points, with --shard, and leaves a file of
/// lines; --join checks that all parts are there, of one experiment and program, and goes on as if
/// one machine had measured them all. Parts take about as long as one another, by the estimates of
/// --list. What is simulated comes out the same on every machine; what is timed has to be measured
/// on machines of one kind.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate reproduce --list            what there is, and how long it takes\n  \
    quorate reproduce J4                its default preset\n  \
    quorate reproduce J1 --full         the paper's repeats and longer points; says first how long\n  \
    quorate reproduce J1 --full --resume\n                                      \
    go on where it was stopped\n  \
    quorate reproduce mine.toml         an experiment of your own: see docs/laboratory.md\n  \
    quorate reproduce J5 --shard 0/3    the first of three parts; 1/3 and 2/3 elsewhere\n  \
    quorate reproduce J5 --join quorate-results\n                                      \
    all three, from their files in that folder\n\n\
    Exit code 1: interrupted, nothing could be measured, or parts are missing. Exit code 2: there is\n\
    no such experiment, its file is refused, or files are not parts of it.")]
pub(crate) struct Options {
    /// Experiment to run: an id of --list, or a file's name
    #[arg(value_name = "ID", required_unless_present = "list")]
    experiment: Option<String>,
    /// Show all experiments, what they show and how long their default preset takes here
    #[arg(long, exclusive = true)]
    list: bool,
    /// Run the preset 'full' instead of 'default'
    #[arg(long, conflicts_with = "preset")]
    full: bool,
    /// Run another preset of the experiment's file
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Go on with the results that are there; those of another commit or machine are measured again
    #[arg(long)]
    resume: bool,
    /// Measure nothing: draw the results that are there again
    #[arg(long, conflicts_with = "resume")]
    draw: bool,
    /// Measure one of N parts of the points, number I from 0 on, and draw nothing: see --join
    #[arg(long, value_name = "I/N", conflicts_with = "draw")]
    shard: Option<Shard>,
    /// Measure nothing: put together what all parts measured, from their files or folders of them,
    /// and draw it
    #[arg(long, value_name = "FILE", num_args = 1..,
          conflicts_with_all = ["shard", "draw", "resume"])]
    join: Vec<PathBuf>,
    /// Measure what would be simulated on real processes on this machine instead
    #[arg(long)]
    processes: bool,
    /// Directory for results and figures
    #[arg(long, value_name = "DIR", default_value = "quorate-results")]
    out: PathBuf,
    /// Number of points simulated side by side; by default one a core
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
    /// Print one JSON object: what was measured, and what was written; of a part, the lines of its
    /// file
    #[arg(long)]
    json: bool,
    /// Show no progress meanwhile
    #[arg(long)]
    quiet: bool,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let executable =
            std::env::current_exe().map_err(|error| Failure::run(format!("who am I? {error}")))?;
        let runners = Runners::new(executable);
        let Some(name) = &self.experiment else {
            return list::print(&runners, self.threads());
        };
        let experiment = built_in::find(name).map_err(Failure::usage)?;
        let jobs = self.jobs(&experiment)?;
        if let Some(shard) = self.shard {
            return self.measure_part(shard, &experiment, &jobs, &runners);
        }
        let path = self.out.join(format!("{}.jsonl", self.whole(&experiment)));
        let records = if self.draw {
            self.read(&path, &jobs)?
        } else if !self.join.is_empty() {
            self.join_parts(&experiment, &jobs, &path, &runners)?
        } else {
            self.measure(&experiment, jobs, &path, &runners)?
        };
        let origin = Origin { preset: self.stem(), command: super::report::command() };
        let written = page::write(&self.out, &experiment, &records, &origin);
        let written = written.map_err(|error| {
            Failure::run(format!("cannot write to {}: {error}", self.out.display()))
        })?;
        self.say(&records, &path, &written);
        if records.iter().all(|record| record.failed.is_some()) {
            return Err(Failure::run("nothing could be measured: the page says why"));
        }
        Ok(())
    }

    fn preset_name(&self) -> &str {
        let usual = if self.full { "full" } else { "default" };
        self.preset.as_deref().unwrap_or(usual)
    }

    /// The preset, as files are named by it.
    fn stem(&self) -> String {
        let preset = self.preset_name();
        if self.processes { format!("{preset}-processes") } else { preset.to_owned() }
    }

    /// Name of the experiment with its preset, which its files begin with.
    fn whole(&self, experiment: &Experiment) -> String {
        format!("{}.{}", experiment.id, self.stem())
    }

    fn jobs(&self, experiment: &Experiment) -> Result<Vec<Job>, Failure> {
        let mut jobs = experiment.jobs(self.preset_name()).map_err(Failure::usage)?;
        for job in jobs
            .iter_mut()
            .filter(|job| self.processes && job.setup.runner == RunnerKind::Simulated)
        {
            job.setup = Setup { runner: RunnerKind::Processes, ..job.setup.clone() };
            job.key = job.setup.key();
        }
        Ok(jobs)
    }

    fn measure(
        &self,
        experiment: &Experiment,
        jobs: Vec<Job>,
        results: &Path,
        runners: &Runners,
    ) -> Result<Vec<Record>, Failure> {
        let interrupted = signals::interrupted().map_err(Failure::run)?;
        let threads = self.threads();
        let estimate = estimate_s(&jobs, runners, threads);
        if !self.quiet {
            eprintln!("{}: {} points, about {}", experiment.id, jobs.len(), span(estimate));
        }
        let plan = Plan {
            experiment,
            preset: self.preset_name(),
            jobs,
            shard: self.shard,
            results: results.to_owned(),
            resume: self.resume,
            machine: json!(MachineInfo::here()),
            threads,
        };
        let progress = Progress::new(self.quiet);
        drive(&plan, runners, &|event| progress.show(&event), &interrupted)
            .map_err(|error| fail(error, results))
    }

    /// The results that are there and belong to the preset.
    fn read(&self, path: &Path, jobs: &[Job]) -> Result<Vec<Record>, Failure> {
        let mut records = results::read(path).map_err(Failure::usage)?;
        records.retain(|record| jobs.iter().any(|job| job.key == record.key));
        if records.is_empty() {
            let text = format!("{} has no results of this preset: run it first", path.display());
            return Err(Failure::usage(text));
        }
        sort(&mut records, jobs);
        Ok(records)
    }

    fn say(&self, records: &[Record], results: &Path, written: &[PathBuf]) {
        let failed = records.iter().filter(|record| record.failed.is_some()).count();
        if self.json {
            output::json(&json!({ "records": records, "results": results, "written": written }));
            return;
        }
        let failures = match failed {
            0 => String::new(),
            some => format!(", {some} of them without a result"),
        };
        output::line(&format!("{} points{failures}", records.len()));
        output::line(&format!("results: {}", results.display()));
        for path in written {
            let html = path.extension().is_some_and(|extension| extension == "html");
            output::line(&format!("{}: {}", if html { "page" } else { "figure" }, path.display()));
        }
    }

    fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(cores).max(1)
    }
}

fn fail(error: DriveError, results: &Path) -> Failure {
    match error {
        DriveError::Interrupted => Failure::run(format!(
            "interrupted; what was finished is in {}: go on with --resume",
            results.display()
        )),
        DriveError::Refused(reason) => Failure::usage(reason),
        other @ DriveError::Results(_) => Failure::run(other),
    }
}
