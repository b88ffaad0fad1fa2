//! `quorate state verify`: a state's file, checked offline.

use super::{Look, fail, print};
use crate::failure::{CommandResult, Failure};
use clap::Args;
use quorate_lab::ServiceKind;
use quorate_node::config::read_committee_file;
use quorate_node::rescue::{CheckedState, check};
use quorate_types::CommitteeFile;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Check a state that `quorate state export` wrote, offline
///
/// Every hand-over from the first committee file on, the certificate of the root, each chunk, and
/// that the state comes to that root, which is computed in memory. Members sign of the sessions of
/// clients their history alone: whoever has two surviving disks compares `snapshot`. Exit code 0:
/// it holds. 1: it does not, and the reason is said. 2: a file cannot be read.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// File of the state
    file: PathBuf,
    /// The committee file that founded the network whose state it is
    #[arg(long, value_name = "GENESIS")]
    committee: PathBuf,
    /// The genesis file, if the service has one
    #[arg(long, value_name = "FILE")]
    genesis: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let first = read_committee_file(&self.committee).map_err(Failure::usage)?;
        let checked = checked(&self.file, &first, self.genesis.as_deref())?;
        let look = Look::of(&checked.state, checked.by);
        let CheckedState { sessions, history, state, .. } = &checked;
        let epoch = history.owner_of(state.manifest.header.height).epoch();
        let text = format!(
            "The state holds: it is what members certified.\n\n{look}\nepoch         {}\n\
             sessions      {sessions}",
            epoch.0
        );
        print(&json!({ "state": look, "epoch": epoch.0, "sessions": sessions }), &text, self.json);
        Ok(())
    }
}

/// Checks a state's file from the first committee file on.
pub(crate) fn checked(
    file: &Path,
    first: &CommitteeFile,
    genesis: Option<&Path>,
) -> Result<CheckedState, Failure> {
    let service: ServiceKind = first.settings.service.parse().map_err(Failure::usage)?;
    let genesis = genesis.map(|path| service.read_genesis(path)).transpose();
    let genesis = genesis.map_err(Failure::usage)?.map(|(_, genesis)| genesis);
    let service =
        service.build(genesis).map_err(|error| Failure::usage(format!("{error} (--genesis)")))?;
    check(file, first, service).map_err(fail)
}
