//! Options of what a measurement prints and writes.

use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_lab::bench;
use quorate_report::Report;
use quorate_report::page::{self, file};
use std::path::PathBuf;

/// Form in which a result is shown, and where its page goes.
#[derive(Debug, Args)]
pub(super) struct ReportOptions {
    /// Write the report page to this file; a name that ends in .json gets the result alone, and of
    /// a suite one that ends in .md a page with its result beside it
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
    /// Write no report page; otherwise it goes to quorate-results/, except with --json
    #[arg(long, conflicts_with = "report")]
    pub(super) no_report: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
    /// Show no progress meanwhile
    #[arg(long)]
    pub(super) quiet: bool,
}

impl ReportOptions {
    /// Prints a result, writes its page, and says where that is.
    pub(super) fn show(&self, report: Report) -> CommandResult {
        let report = Report { command: super::report::command(), ..report };
        if self.json {
            output::json(&report);
        } else {
            output::line(bench::render(&report).trim_end());
        }
        let Some(path) = self.page(&report) else { return Ok(()) };
        file::write(&path, &page::name_runs(vec![report], &[])).map_err(Failure::run)?;
        if !self.json {
            output::line(&format!("\nreport page: {}", path.display()));
        }
        Ok(())
    }

    fn page(&self, report: &Report) -> Option<PathBuf> {
        let by_default = !self.no_report && !self.json;
        self.report.clone().or_else(|| by_default.then(|| file::default_path(report)))
    }
}
