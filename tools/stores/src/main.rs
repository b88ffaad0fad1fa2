//! Stores for the replicated state side by side, and `io_uring` beside what the log and the
//! transport do: `README.md` says how they are run, docs/results/stores.md what was measured.

mod history;
mod phases;
mod process;
mod run;
mod stores;
mod table;
mod uring;
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
    /// Measures one store with one number of keys and one size of values: a line of JSON
    Run(run::Run),
    /// Measures a history of past states in one store: a line of JSON
    History(history::History),
    /// Prints lines of JSON, of which the files consist, as a table in Markdown
    Table {
        /// Files of lines that `run` or `uring` printed
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Measures `io_uring` beside system calls: a line of JSON for each row
    Uring {
        #[command(subcommand)]
        what: uring::What,
    },
    /// One phase of a run, in a process of its own
    #[command(hide = true)]
    Phase {
        #[command(subcommand)]
        phase: phases::Phase,
        #[command(flatten)]
        subject: phases::Subject,
    },
}

fn main() {
    match Arguments::parse().command {
        Command::Run(run) => run.measure(),
        Command::History(history) => history.measure(),
        Command::Table { files } => table::print(&files),
        Command::Uring { what } => what.measure(),
        Command::Phase { phase, subject } => phase.carry_out(&subject),
    }
}
