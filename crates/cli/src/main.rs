//! The `quorate` command.
//!
//! What exit codes mean is in [`failure::EXIT_CODES`].

mod allocator;
mod commands;
mod failure;
mod output;
mod passphrase;
mod secret;
mod signals;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Byzantine fault-tolerant replication: run a committee, measure it, break it.
#[derive(Debug, Parser)]
#[command(
    name = "quorate",
    version = quorate_lab::machine::version_and_commit(),
    arg_required_else_help = true,
    after_help = format!(
        "Start with `quorate bench`: a real committee of four under load, on this machine.\n\n{}",
        failure::EXIT_CODES
    )
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure a real local committee under open-loop load
    Bench(Box<commands::bench::Options>),
    /// Put a running committee under load
    Load(Box<commands::load::Options>),
    /// Estimate throughput and latency on machines and regions that are not here
    Estimate(Box<commands::estimate::Options>),
    /// Measure what every operation of a validator costs on this machine: a price list for
    /// estimates
    Calibrate(commands::calibrate::Options),
    /// Recommend a signature scheme for each committee size, with the table behind it
    Compare(Box<commands::compare::Options>),
    /// Hold the model against real committees on this machine
    Validate(commands::validate::Options),
    /// Draw results of benches again, or compare them
    Report(commands::report::Options),
    /// Run an experiment: measure its points, draw its figures beside the paper's
    Reproduce(commands::reproduce::Options),
    /// Print results of an experiment as a table for a page
    Table(commands::table::Options),
    /// Write keys and configurations of a new committee
    Testnet(Box<commands::testnet::Options>),
    /// Run one validator of a committee
    Run(commands::run::Options),
    /// Show the status of validators side by side, once or continually
    Status(commands::status::Options),
    /// Let in users of a validator's status page or of JSON-RPC
    Token(commands::token::Options),
    /// Read and write the key-value store of a running committee
    Kv(Box<commands::kv::Options>),
    /// Run Ethereum's public execution tests on the EVM ledger
    EvmTests(commands::evm_tests::Options),
    /// Pay without consensus: authorities, wallets, measurements
    Pay(Box<commands::pay::Options>),
    /// Check a receipt offline
    Receipt(commands::receipt::Options),
    /// Check evidence that members broke a rule, offline
    Evidence(commands::evidence::Options),
    /// Make a validator's keys, or a committee's together; seal them, show their public parts
    Keys(commands::keys::Options),
    /// Change the committee: draft the next epoch, have it accepted and signed, bring it to members
    Committee(Box<commands::committee::Options>),
    /// Take the state of a network that lost too many members to a new one
    State(commands::state::Options),
    /// Check a validator's configuration, show what it amounts to, or explain its fields
    Config(commands::config::Options),
    /// Search seeds of the simulator for a violation
    #[cfg(feature = "lab")]
    Sim(commands::sim::Options),
    /// Print a script that lets a shell complete commands and options
    Completions(commands::completions::Options),
    /// Print the manual page, or write a page for every command
    Man(commands::man::Options),
}

impl Command {
    /// Tells whether it runs committees in virtual time, in this process.
    fn simulates(&self) -> bool {
        #[cfg(feature = "lab")]
        if matches!(self, Self::Sim(_)) {
            return true;
        }
        matches!(self, Self::Estimate(_) | Self::Compare(_) | Self::Reproduce(_))
    }
}

fn main() -> ExitCode {
    allocator::configure();
    let command = Cli::parse().command;
    if command.simulates() {
        allocator::keep();
    }
    let result = match command {
        Command::Bench(options) => options.run(),
        Command::Load(options) => options.run(),
        Command::Estimate(options) => options.run(),
        Command::Calibrate(options) => options.run(),
        Command::Compare(options) => options.run(),
        Command::Validate(options) => options.run(),
        Command::Report(options) => options.run(),
        Command::Reproduce(options) => options.run(),
        Command::Table(options) => options.run(),
        Command::Testnet(options) => options.run(),
        Command::Run(options) => options.run(),
        Command::Status(options) => options.run(),
        Command::Token(options) => options.run(),
        Command::Kv(options) => options.run(),
        Command::EvmTests(options) => options.run(),
        Command::Pay(options) => options.run(),
        Command::Receipt(options) => options.run(),
        Command::Evidence(options) => options.run(),
        Command::Keys(options) => options.run(),
        Command::Committee(options) => options.run(),
        Command::State(options) => options.run(),
        Command::Config(options) => options.run(),
        #[cfg(feature = "lab")]
        Command::Sim(options) => options.run(),
        Command::Completions(options) => options.run(),
        Command::Man(options) => options.run(),
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
