//! Table of the experiments: `quorate reproduce --list`.

use crate::failure::{CommandResult, Failure};
use crate::output;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use quorate_lab::experiment::{Experiment, Runners, built_in, estimate_s};
use quorate_report::text::span;

/// A row for each experiment that comes with the binary.
pub(super) fn print(runners: &Runners, threads: usize) -> CommandResult {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table.set_header(["id", "what", "after", "points", "default takes about"]);
    for id in built_in::ids() {
        let experiment = built_in::find(id).map_err(Failure::run)?;
        table.add_row(row(&experiment, runners, threads)?);
    }
    for index in [3, 4] {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for line in table.lines() {
        output::line(line.trim_end());
    }
    Ok(())
}

fn row(experiment: &Experiment, runners: &Runners, threads: usize) -> Result<[String; 5], Failure> {
    let jobs = experiment.jobs("default").map_err(Failure::run)?;
    let takes = span(estimate_s(&jobs, runners, threads));
    let after = experiment.source.split(" (").next().unwrap_or_default();
    Ok([
        experiment.id.clone(),
        experiment.title.clone(),
        after.to_owned(),
        jobs.len().to_string(),
        takes,
    ])
}
