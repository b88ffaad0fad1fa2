//! `quorate pay`: payments without consensus.

mod bench;
mod run;
mod testnet;

use crate::failure::CommandResult;
use clap::{Args, Subcommand};

/// Pay without consensus: authorities, wallets, measurements.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: PayCommand,
}

#[derive(Debug, Subcommand)]
enum PayCommand {
    /// Write keys and configurations of a new payment network
    Testnet(testnet::Options),
    /// Run one shard of one authority
    Run(run::Options),
    /// Measure all schemes: real authorities under load, beside what their signatures cost
    Bench(bench::Options),
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        match &self.command {
            PayCommand::Testnet(options) => options.run(),
            PayCommand::Run(options) => options.run(),
            PayCommand::Bench(options) => options.run(),
        }
    }
}
