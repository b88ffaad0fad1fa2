//! `quorate report`: results drawn again, and compared.

use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_lab::bench;
use quorate_report::Report;
use quorate_report::chart::{self, Plot, Size};
use quorate_report::merge::merge;
use quorate_report::page::{Run, caption, charts, compare, file, name_runs, title};
use quorate_report::results::Measurement;
use std::fs;
use std::path::{Path, PathBuf};

/// Draw results of benches and loads again, compare them, or join loads.
///
/// Reads report pages and the output of `quorate bench --json` and `quorate load --json`. One
/// result gives its page again; two or more give a page that compares them, and a table with ratios
/// to the first. No page is written when only a chart is asked for.
///
/// --merge makes one result of loads that ran at once on one network: counts and histograms are
/// added, so that percentiles are those of all operations, and rates over the time that all windows
/// have in common.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate report quorate-results/*.html             compare everything there\n  \
    quorate report ed25519.json bls.json --html comparison.html\n  \
    quorate report --merge one.json two.json           loads on one network at once, as one result\n  \
    quorate report --merge one.json two.json --json > both.json\n  \
    quorate report ed25519.html bls.html --svg chart.svg --chart throughput --chart latency\n\n\
    Charts: throughput, latency, latency-heat, latency-distribution, latency-percentiles,\n  \
    validators-committed, validators-cpu, validators-memory, validators-height.\n\n\
    Exit code 2: a file cannot be read, or holds no result of this format; or the results are not\n\
    of loads that ran at once on one network.")]
pub(crate) struct Options {
    /// Report pages or JSON results; the first is what the others are compared with
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Join results of `quorate load` that ran at once on one network, in any order
    #[arg(long, conflicts_with = "label")]
    merge: bool,
    /// Names of the runs, in their order; by default what differs in their settings
    #[arg(long, value_name = "NAME")]
    label: Vec<String>,
    /// Path of the page; by default beside the first file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write charts as one SVG file that stands alone
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Charts to put into the SVG file; may be repeated
    #[arg(long, value_name = "NAME", default_value = "throughput", requires = "svg",
          value_parser = clap::builder::PossibleValuesParser::new(charts::NAMES))]
    chart: Vec<String>,
    /// Heading of the SVG file; by default the page's title
    #[arg(long, requires = "svg")]
    title: Option<String>,
    /// Width of the SVG file, in pixels
    #[arg(long, requires = "svg", default_value_t = 880, value_name = "PIXELS",
          value_parser = clap::value_parser!(u16).range(320..=4_000))]
    width: u16,
    /// Height of each chart in it between its axes, in pixels
    #[arg(long, requires = "svg", default_value_t = 190, value_name = "PIXELS",
          value_parser = clap::value_parser!(u16).range(80..=2_000))]
    height: u16,
    /// Print the results as JSON, a list if there are several, and write no page unless asked
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let reports = self.read()?;
        let reports = if self.merge { vec![self.joined(&reports)?] } else { reports };
        let runs = name_runs(reports, &self.label);
        if self.json {
            let reports: Vec<&Report> = runs.iter().map(|run| &run.report).collect();
            match &reports[..] {
                [single] => output::json(single),
                several => output::json(&several),
            }
        } else {
            output::line(text(&runs).trim_end());
        }
        if let Some(path) = &self.svg {
            self.write_svg(path, &runs)?;
        }
        if let Some(path) = self.page(&runs) {
            file::write(&path, &runs).map_err(Failure::run)?;
            self.say("report page", &path);
        }
        Ok(())
    }

    fn read(&self) -> Result<Vec<Report>, Failure> {
        let mut reports = Vec::new();
        for path in &self.files {
            reports.extend(file::read(path).map_err(Failure::usage)?);
        }
        if self.label.len() > reports.len() {
            let text = format!("{} names for {} results", self.label.len(), reports.len());
            return Err(Failure::usage(text));
        }
        Ok(reports)
    }

    /// Loads that ran at once as one result.
    fn joined(&self, reports: &[Report]) -> Result<Report, Failure> {
        let merged = merge(reports).map_err(Failure::usage)?;
        if let Measurement::Merged(loads) = &merged.measurement {
            loads.warning().into_iter().for_each(|warning| eprintln!("warning: {warning}"));
        }
        Ok(Report { command: command(), ..merged })
    }

    fn write_svg(&self, path: &Path, runs: &[Run]) -> CommandResult {
        let all = charts::of(runs);
        let named = self.chart.iter().flat_map(|name| all.iter().filter(move |p| p.name == *name));
        let plots: Vec<Plot> = named.cloned().collect();
        let size = Size { width: self.width.into(), height: self.height.into() };
        let heading = self.title.clone().unwrap_or_else(|| title(runs));
        let drawn = chart::standalone(&heading, &[caption(runs)], &plots, size);
        let unwritable = |error| Failure::run(format!("cannot write {}: {error}", path.display()));
        fs::write(path, drawn).map_err(unwritable)?;
        self.say("chart", path);
        Ok(())
    }

    /// Path of the page: none when only something else was asked for.
    fn page(&self, runs: &[Run]) -> Option<PathBuf> {
        if self.html.is_some() || self.svg.is_some() || self.json {
            return self.html.clone();
        }
        let stem =
            |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = match (runs, &self.files[..]) {
            ([_], [first, _, ..]) => format!("{}-merged", stem(first)?),
            ([_], _) => stem(&self.files[0])?,
            (_, [one]) => stem(one)?,
            (_, [first, .., last]) => format!("{}-against-{}", stem(first)?, stem(last)?),
            (_, []) => return None,
        };
        Some(self.files[0].with_file_name(format!("{name}.html")))
    }

    fn say(&self, what: &str, path: &Path) {
        if !self.json {
            output::line(&format!("\n{what}: {}", path.display()));
        }
    }
}

fn text(runs: &[Run]) -> String {
    match runs {
        [run] => bench::render(&run.report),
        several => compare::table(several),
    }
}

/// This program's command as it can be pasted, the program by its name alone.
pub(crate) fn command() -> String {
    let mut words: Vec<String> = std::env::args().collect();
    if let Some(program) = words.first_mut() {
        "quorate".clone_into(program);
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%_-+=:,./".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
