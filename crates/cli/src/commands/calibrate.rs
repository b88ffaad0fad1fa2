//! `quorate calibrate`: the price list of this machine.

use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use quorate_lab::calibrate;
use quorate_model::Prices;
use std::path::{Path, PathBuf};

/// Measure what every operation of a validator costs on this machine.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate calibrate -o here.toml                 measure, about ten seconds\n  \
    quorate estimate -n 20 --prices here.toml      use it\n\n\
    Let nothing else run meanwhile. Every price is for one core working alone; the file says the unit\n\
    of each and may be edited.")]
pub(crate) struct Options {
    /// Write the list to this file instead of to standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The disk to measure: one that holds this folder
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Print the list as one JSON object
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let prices = self.measure()?;
        if let Some(path) = &self.output {
            write(path, &prices)?;
        }
        if self.json {
            output::json(&prices);
        } else if let Some(path) = &self.output {
            output::line(&format!("price list: {}", path.display()));
        } else {
            output::text(&prices.to_toml());
        }
        Ok(())
    }

    fn measure(&self) -> Result<Prices, Failure> {
        let bar = ProgressBar::new(calibrate::PARTS.len() as u64);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} · measuring {msg}");
        bar.set_style(style.expect("a constant that parses"));
        let begin = &mut |part| {
            bar.inc(1);
            bar.set_message(part);
        };
        let folder = self.dir.clone().unwrap_or_else(std::env::temp_dir);
        let program = std::env::current_exe().map_err(Failure::run)?;
        let prices = calibrate::calibrate(&folder, &program, begin);
        bar.finish_and_clear();
        prices.map_err(Failure::from)
    }
}

fn write(path: &Path, prices: &Prices) -> CommandResult {
    std::fs::write(path, prices.to_toml())
        .map_err(|reason| Failure::usage(format!("{}: {reason}", path.display())))
}
