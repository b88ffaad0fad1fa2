//! Ethereum's state trie beside the state tree, under the transfers of a ledger: `README.md` says
//! how it is run, docs/results/evm-proofs.md what was measured.

mod ethereum;
mod nodes;
mod own;
mod process;
mod run;
mod table;
mod workload;

use clap::{Parser, Subcommand};
use std::path::PathBuf;

#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures one tree under one load: a line of JSON
    Run(run::Run),
    /// Prints lines of JSON, of which the files consist, as a table in Markdown
    Table {
        /// Files of lines that `run` printed
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

fn main() {
    match Arguments::parse().command {
        Command::Run(run) => run.measure(),
        Command::Table { files } => table::print(&files),
    }
}
