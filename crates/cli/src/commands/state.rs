//! `quorate state`: the state of a network that lost more members than it tolerates, on its way to
//! a new one.

mod export;
mod import;
mod verify;

pub(crate) use verify::checked;

use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::{Args, Subcommand};
use quorate_node::rescue::RescueError;
use quorate_types::{CertifiedBy, ExportedState};
use serde::Serialize;
use std::fmt;

/// Take the state of a network that lost too many members to a new one.
///
/// A network that lost more members than it tolerates decides nothing any more, and no command
/// brings it back. What one surviving disk has on record as certified goes on in a new network,
/// whose committee file names the old one, the height and the root: that is an act of the people
/// who run it, who agree on that file. Nothing here connects to anybody.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate state export --config net/validator-3/config.toml --out state\n  \
    quorate state verify state --committee net/committee.toml\n  \
    quorate committee found --from-state state --committee net/committee.toml \\\n      \
    --members new/*.toml --out committee.toml\n  \
    quorate state import state --config config.toml")]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Export(export::Options),
    Verify(verify::Options),
    Import(import::Options),
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        match &self.command {
            Command::Export(options) => options.run(),
            Command::Verify(options) => options.run(),
            Command::Import(options) => options.run(),
        }
    }
}

/// A state as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct Look {
    network: String,
    height: u64,
    root: String,
    snapshot: String,
    operations: u64,
    certified_by: &'static str,
}

impl Look {
    pub(crate) fn of(state: &ExportedState, by: CertifiedBy) -> Self {
        let from = state.from_state();
        Self {
            network: from.network.to_string(),
            height: from.height.0,
            root: from.root.to_hex(),
            snapshot: from.snapshot.to_hex(),
            operations: state.manifest.operations,
            certified_by: match by {
                CertifiedBy::Members => "so many members that one is honest",
                CertifiedBy::HandOver => "a quorum, which handed over to the next epoch with it",
            },
        }
    }
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "network       {}", self.network)?;
        writeln!(f, "height        {}, after {} operations", self.height, self.operations)?;
        writeln!(f, "root          {}", self.root)?;
        writeln!(f, "certified by  {}", self.certified_by)?;
        write!(f, "snapshot      {}", self.snapshot)
    }
}

/// The failure that an error means.
pub(crate) fn fail(error: RescueError) -> Failure {
    match error {
        RescueError::Running(_)
        | RescueError::NothingCertified { .. }
        | RescueError::Chunk { .. }
        | RescueError::Refused { .. }
        | RescueError::OtherRoot { .. }
        | RescueError::OtherState { .. } => Failure::run(error),
        RescueError::LacksVersion(_) => Failure::LacksVersion(error.to_string()),
        RescueError::Storage(_) => Failure::Disk(error.to_string()),
        error => Failure::usage(error),
    }
}

/// Prints a state, and what is to be said of it.
pub(crate) fn print(look: &impl Serialize, text: &str, as_json: bool) {
    if as_json {
        output::json(look);
    } else {
        output::line(text);
    }
}
