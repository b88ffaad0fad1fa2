//! `quorate table`: result lines as a table for a page.

use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_lab::experiment::{TableSpec, results, tabulate};
use std::path::PathBuf;

/// Print result lines of an experiment as a table in Markdown.
///
/// Points that are alike in the fields of --rows are one row, with the mean of their repeats and
/// its standard deviation; '*' marks a point in doubt.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    quorate table A1.default.jsonl --rows validators,rate --columns committed_tps,latency_first_mean_ms")]
pub(crate) struct Options {
    /// Results, as quorate reproduce writes them
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Fields of a point that tell rows apart
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',', required = true)]
    rows: Vec<String>,
    /// Metrics to show
    #[arg(long, value_name = "METRIC,...", value_delimiter = ',', required = true)]
    columns: Vec<String>,
    /// Only points with this value of a field; may be repeated
    #[arg(long, value_name = "FIELD=VALUE", value_parser = field)]
    only: Vec<(String, String)>,
}

fn field(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=');
    let (field, value) = parts.ok_or_else(|| format!("'{text}' is not FIELD=VALUE"))?;
    Ok((field.to_owned(), value.to_owned()))
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let records =
            results::read(&self.file).map_err(|error| Failure::usage(error.to_string()))?;
        let spec = TableSpec {
            rows: self.rows.clone(),
            columns: self.columns.clone(),
            only: self.only.clone(),
        };
        let table = tabulate(&records, &spec);
        let named = |error| Failure::usage(format!("{}: {error}", self.file.display()));
        output::text(&table.map_err(named)?);
        Ok(())
    }
}
