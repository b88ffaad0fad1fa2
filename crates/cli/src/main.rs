//! The `quorate` command.
//!
//! Exit codes: 0 for success, 1 for a run that failed, 2 for options or files that are wrong.

mod allocator;
mod commands;
mod failure;
mod output;
mod signals;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Byzantine fault-tolerant replication: run a committee, measure it, break it.
#[derive(Debug, Parser)]
#[command(
    name = "quorate",
    version = quorate_lab::machine::version(),
    arg_required_else_help = true,
    after_help = "Start with `quorate bench`: a real committee of four under load, on this machine.\n\
                  Exit codes: 0 success, 1 the run failed, 2 the options or files are wrong."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure a real local committee under open-loop load
    Bench(commands::bench::Options),
    /// Draw results of benches again, or compare them
    Report(commands::report::Options),
    /// Write keys and configurations of a new committee
    Testnet(commands::testnet::Options),
    /// Run one validator
    Run(commands::run::Options),
    /// Show how validators are, side by side
    Status(commands::status::Options),
    /// Make a validator's keys, or show their public parts
    Keys(commands::keys::Options),
    /// Search seeds of the simulator for a violation
    Sim(commands::sim::Options),
}

fn main() -> ExitCode {
    allocator::configure();
    let result = match Cli::parse().command {
        Command::Bench(options) => options.run(),
        Command::Report(options) => options.run(),
        Command::Testnet(options) => options.run(),
        Command::Run(options) => options.run(),
        Command::Status(options) => options.run(),
        Command::Keys(options) => options.run(),
        Command::Sim(options) => options.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_options_are_consistent() {
        Cli::command().debug_assert();
    }
}
